"""Walks: what happens to a fleet is chosen by chance, and every look is judged by what each pod has really loaded.
walk_suite.py runs them.

A walk edits profiles and takes edits back, moves labels, reboots nodes, restarts containers, steps the API server's clock,
removes the operator's annotations, keeps GFD's labels away, pauses, holds, cordons, loses nodes, lets new ones join, and
ends the operator between two writes. It ends with an edit after which nothing stands in the way.

The judge knows the text that each pod has loaded. It wants to see:
- no node recorded with a revision that its pods have not loaded;
- no policy that says UpToDate while a node runs another text than its target;
- after the last edit: every node runs its target and is recorded with it, nothing of a change is left, and no node lost
  its plugin pod twice.
"""
import datetime
import random

from cluster.profile_texts import Meaning
from scenario import CONFIG_LABEL, INVALID, REVISION, Cluster, Failure, fleet, mps, numbered, stamp, ts

HOLD = "gpusharing.dev/hold"
GRACE = datetime.timedelta(minutes=2)  # A deleted policy governs for half a minute, and until the look after that.
UNPROVEN = "v1-0000000000000000"  # The revision of a node that serves, and nothing shows which text.

# Texts of the key `any`. Those of the same replicas differ in no label that a node shows, the last one in what an MPS daemon
# reads as well.
TEXTS = {"ts4": ts(4), "ts4fail": ts(4, fail=True), "ts8": ts(8), "mps4": mps(4), "mps4loose": mps(4, fail=False),
         "mps4single": mps(4, mig="single")}
# Of the key `slices`.
SLICES = {"ts6": ts(6), "ts6fail": ts(6, fail=True)}
LAST = {"ts5": ts(5), "mps4last": mps(4, fail=False, mig="single")}
NAMES = {text: name for of_key in (TEXTS, SLICES, LAST) for name, text in of_key.items()}
TO_LEARN = list(NAMES)
NAMES[INVALID] = "invalid"


def learn_revisions():
    """{text: revision}, as the operator names them after it has rolled each of them out once."""
    known = {}
    c = fleet(1, ts(2))
    for text in TO_LEARN:
        c.edit(any=text)
        c.converge()
        known[text] = c.annotations("n01")[REVISION]
    return known


REVISIONS = {}


def reads(component, text):
    """What a component reads of a text; pods of two texts are alike if that is the same."""
    if component == "plugin":
        return text
    meaning = Meaning(text)
    return meaning.strategy, meaning.replicas, meaning.renamed, "migStrategy: single" in text


class Walk:
    """One walk, chosen by its seed."""

    def __init__(self, seed):
        if not REVISIONS:
            REVISIONS.update(learn_revisions())
        self.chance = random.Random(seed)
        self.story = []
        options = {"on_delete": self.chance.random() < 0.25, "gfd": self.chance.random() < 0.85}
        self.texts = self.chance.choice([["ts4", "ts4fail"], ["ts4", "ts4fail", "ts8"], ["mps4", "mps4loose", "ts4"],
                                         ["mps4", "mps4loose", "mps4single"], list(TEXTS)])
        self.c = Cluster({"any": TEXTS[self.texts[0]], "slices": SLICES["ts6"]}, **options)
        self.c.add_nodes(*numbered(3))
        self.c.policy(rollout={"workloads": self.chance.choice(["WaitForIdle", "Evict"]), "canary": {"nodesPerGroup": self.chance.choice([0, 1]), "soak": "1m"},
                               "maxUnavailable": self.chance.choice(["1", "100%"])})
        self.c.install()
        self.count = 3
        self.count_of_pods = 0
        self.cordoned = set()  # By a person.
        self.policies, self.gone_at = set(), None
        self.tell("walk %d: %s, texts %s" % (seed, options, self.texts))

    def tell(self, what):
        self.story.append("%s  %s" % (stamp(self.c.clock)[11:19], what))

    # --- What happens.
    def node(self):
        return self.chance.choice(self.c.nodes())

    def edit(self):
        name = self.chance.choice(self.texts)
        self.write(any=TEXTS[name])

    def write(self, **texts):
        """An edit, which the operator sees within a second."""
        self.tell("edit " + ", ".join("%s=%s" % (key, NAMES[text]) for key, text in texts.items()))
        self.c.edit(**texts)
        self.look("1s")

    def edit_and_back(self):
        """Both within seconds, and sometimes with new pods in between."""
        now = self.c.data()["any"]
        other = self.chance.choice([name for name in self.texts if TEXTS[name] != now])
        self.write(any=TEXTS[other])
        self.pause_for_a_moment()
        if self.chance.random() < 0.5:
            self.reboot()
            self.pause_for_a_moment()
        self.write(any=now)

    def edit_slices(self):
        name = self.chance.choice(list(SLICES))
        self.write(slices=SLICES[name])

    def move_label(self):
        node = self.node()
        value = self.chance.choice(["slices", None, "any"])
        self.tell("label of %s: %s" % (node, value))
        self.c.set_label(node, CONFIG_LABEL, value)

    def reboot(self):
        node = self.node()
        if not self.c.is_ready(node):
            return
        self.tell("reboot %s" % node)
        self.c.reboot(node)
        self.look("1s")

    def restart_plugin(self):
        node = self.node()
        pod = self.c.pod_of(self.chance.choice(["plugin", "gfd", "mps"]), node)
        if pod is not None and self.c.is_ready(node):
            self.tell("somebody deletes %s on %s" % (pod["metadata"]["name"], node))
            self.c.drop(pod)
            self.c.react()
            self.look("1s")

    def step_clock(self):
        by = self.chance.choice([-300, -60, 60, 300])
        self.tell("the clock of the API server steps by %d s" % by)
        step = datetime.timedelta(seconds=by)
        self.c.clock += step
        self.c.changed += step
        self.c.last_tick += step
        self.c.history = [(when + step, data) for when, data in self.c.history]

    def remove_annotations(self):
        node = self.node()
        self.tell("the annotations of what %s runs are removed" % node)
        for key in (REVISION, "gpusharing.dev/profile"):
            self.c.annotate("Node", node, key, None)

    def gfd_outage(self):
        node = self.node()
        self.tell("GFD's labels on %s are away for a while" % node)
        self.c.file_mode = True
        self.c.behave("starting", node)
        self.c.restart_gfd(node) if self.c.pod_of("gfd", node) else None

    def crash(self):
        node = self.node()
        self.tell("new plugin pods on %s crash" % node)
        self.c.behave("crash", node)

    def slow_image(self):
        node = self.node()
        self.tell("new pods on %s do not come for a while" % node)
        self.c.behave("absent", node)

    def heal(self):
        self.tell("new pods come up again")
        self.c.behave("healthy", *self.c.nodes())
        for name in self.c.nodes():
            for pod in list(self.c.operand_pods(name)):
                if not self.c.pod_ready(pod):
                    self.c.drop(pod)
        self.c.react()

    def pause(self):
        paused = self.chance.choice([True, False])
        self.tell("policy default: paused %s" % paused)
        self.c.policy(rollout={"paused": paused})

    def hold(self):
        node, value = self.node(), self.chance.choice(["true", None])
        self.tell("hold of %s: %s" % (node, value))
        self.c.annotate("Node", node, HOLD, value)

    def cordon(self):
        node, on = self.node(), self.chance.choice([True, False])
        self.tell("%s %s" % ("cordon" if on else "uncordon", node))
        (self.cordoned.add if on else self.cordoned.discard)(node)
        self.c.cordon(node, on)

    def lose_node(self):
        node = self.node()
        ready = not self.c.is_ready(node)
        self.tell("%s is %s" % (node, "Ready" if ready else "NotReady"))
        self.c.set_ready(node, ready)
        self.c.react()

    def join(self):
        if len(self.c.nodes()) < 5:
            self.count += 1
            self.tell("n%02d joins" % self.count)
            self.c.add_node("n%02d" % self.count)

    def leave(self):
        if len(self.c.nodes()) > 2:
            node = self.node()
            self.tell("%s is deleted" % node)
            self.c.delete_node(node)

    def gold_policy(self):
        """A policy for one node, and its deletion."""
        if self.c.get("SharingPolicy", "gold"):
            self.tell("policy gold is deleted")
            self.c.delete_policy("gold")
            return
        self.tell("policy gold selects n01 for slices")
        self.c.policy("gold", priority=10, selector={"kubernetes.io/hostname": "n01"},
                      profile={"configMapKey": "slices"},
                      deletionPolicy=self.chance.choice(["Retain", "Revert"]))

    def other_holder(self):
        """A driver upgrade, the MIG manager or a remediation system holds a node, or is done."""
        node = self.node()
        key, value, done = self.chance.choice([
            ("nvidia.com/gpu-driver-upgrade-state", "drain-required", "upgrade-done"),
            ("nvidia.com/mig.config.state", "pending", "success"),
            ("dgxc.nvidia.com/nvsentinel-state", "quarantined", None)])
        value = done if self.c.labels(node).get(key) == value else value
        self.tell("label of %s: %s=%s" % (node, key, value))
        self.c.set_label(node, key, value)

    def taint(self):
        node = self.node()
        taints = [] if self.c.node(node)["spec"].get("taints") else [
            {"key": "maintenance", "value": "true", "effect": "NoSchedule"}]
        self.tell("taints of %s: %s" % (node, taints))
        self.c.node(node)["spec"]["taints"] = taints
        self.c.touch(self.c.node(node))
        self.c.react()

    def mode(self):
        mode = self.chance.choice(["Enforce", "Enforce", "Approve", "Observe"])
        self.tell("policy default: mode %s" % mode)
        self.c.policy(mode=mode)

    def approve_or_abort(self):
        ended = ("Completed", "Failed", "Superseded", "RolledBack")
        rollouts = [rollout["metadata"]["name"] for rollout in self.c.all("SharingRollout")
                    if rollout.get("status", {}).get("phase") not in ended]
        if rollouts:
            name, switch = self.chance.choice(rollouts), self.chance.choice(["approved", "approved", "paused", "aborted"])
            self.tell("rollout %s: %s" % (name, switch))
            self.c.switch(name, **{switch: True})

    def invalid_text(self):
        self.tell("edit any=invalid")
        self.c.edit(any=INVALID)
        self.look("1s")

    def config_map_goes_and_comes(self):
        """As a GitOps tool that replaces it."""
        data = self.c.data()
        if not data:
            return
        self.tell("the ConfigMap is deleted")
        self.c.delete_config_map()
        self.look("1s")
        self.pause_for_a_moment()
        self.tell("the ConfigMap is created again")
        self.c.configure(data)

    def workload(self):
        """A pod that uses a GPU starts or ends."""
        running = [pod["metadata"]["name"] for pod in self.c.all("Pod") if pod["metadata"]["namespace"] == "team"]
        if running and self.chance.random() < 0.6:
            self.tell("%s ends" % running[0])
            self.c.end(running[0])
            return
        node = self.node()
        if not self.c.cordoned(node) and self.c.is_ready(node):
            self.count_of_pods += 1
            self.tell("work-%d starts on %s" % (self.count_of_pods, node))
            self.c.consumer("work-%d" % self.count_of_pods, node)

    def restart_container(self):
        """The plugin's container exits and starts again in its pod; it reads what the kubelet shows the pod by then."""
        node = self.node()
        pod = self.c.pod_of("plugin", node)
        text = self.c.text_for(node, self.c.projected())
        if pod is None or not self.c.pod_ready(pod) or not self.c.is_ready(node) or text is None:
            return
        self.tell("the plugin's container on %s restarts" % node)
        self.c.restart_container(node)

    def new_template(self):
        self.tell("a new template of the DaemonSets")
        self.c.template("h%d" % (2 + len(self.c.revisions)))
        if not self.c.on_delete:
            for pod in self.c.operand_pods():
                self.c.drop(pod)
            self.c.react()

    def pause_for_a_moment(self):
        self.c.wait("%ds" % self.chance.choice([1, 3, 20]))

    EVENTS = {edit: 8, edit_and_back: 3, edit_slices: 2, move_label: 2, reboot: 4, restart_plugin: 2, step_clock: 1,
              remove_annotations: 2, gfd_outage: 1, crash: 1, slow_image: 1, heal: 2, pause: 2, hold: 2, cordon: 1,
              lose_node: 2, join: 1, leave: 1, gold_policy: 1, new_template: 1, workload: 3, restart_container: 1,
              other_holder: 2, taint: 1, mode: 1, approve_or_abort: 2, invalid_text: 1, config_map_goes_and_comes: 1}

    # --- The judge.
    def look(self, duration=None, killed_after=None):
        """A look, judged by what the pods have loaded when it begins."""
        if duration:
            self.c.wait(duration)
        truth = {name: self.loaded_on(name) for name in self.c.nodes()}
        targets = {name: self.c.text_for(name, self.c.data()) for name in self.c.nodes()}
        policies = [policy["metadata"]["name"] for policy in self.c.all("SharingPolicy")]
        said = {policy: self.c.condition(policy, "Ready") for policy in policies}
        tick = self.c.tick(killed_after=killed_after)
        done = ["%s %s %s" % (action["action"], action["target"]["name"], action.get("reason", ""))
                for action in tick.actions if action["action"] in ("PatchNode", "DeletePod", "EvictPod")]
        self.tell("look" + (" (killed after %d)" % killed_after if killed_after is not None else "") +
                  (": " + ", ".join(done) if done else ""))
        for action in tick.of("PatchNode"):
            revision = action.get("annotations", {}).get("set", {}).get(REVISION)
            if revision is not None:
                self.judge_record(action["target"]["name"], revision, truth)
        said = {policy: (tick.condition(policy, "Ready") or said[policy]).get("reason") for policy in policies}
        # The nodes of a policy that has just been deleted are its for another moment, and no status speaks of them.
        if self.policies - set(policies):
            self.gone_at = self.c.clock
        self.policies = set(policies)
        leaving = self.gone_at is not None and abs(self.c.clock - self.gone_at) <= GRACE
        if all(reason in ("UpToDate", "NoNodes") for reason in said.values()) and not leaving:
            self.judge_ready(truth, targets)
        return tick

    def loaded_on(self, name):
        """{component: text} of the pods of a node that load profiles."""
        out = {}
        for component in ("plugin", "gfd", "mps"):
            pod = self.c.pod_of(component, name)
            if pod is not None:
                out[component] = self.c.loaded[pod["metadata"]["uid"]]
        return out

    def judge_record(self, name, revision, truth):
        """GFD and the MPS daemon need not have read a text that differs in nothing of theirs."""
        if revision == UNPROVEN:
            return
        text = [text for text, known in REVISIONS.items() if known == revision][0]
        loaded = truth[name]
        wrong = [component for component, of_pod in loaded.items() if reads(component, of_pod) != reads(component, text)]
        if wrong or "plugin" not in loaded:
            self.fail("%s is recorded with %s, and its pods have loaded %s" % (
                name, NAMES[text], {component: NAMES.get(of_pod) for component, of_pod in loaded.items()}))

    def judge_ready(self, truth, targets):
        for name, loaded in truth.items():
            for component in sorted({"plugin", *loaded}):
                if component not in loaded or reads(component, loaded[component]) != reads(component, targets[name]):
                    self.fail("every policy is UpToDate, and %s of %s has loaded %s instead of %s" % (
                        component, name, NAMES.get(loaded.get(component)), NAMES.get(targets[name])))

    def fail(self, what):
        for policy in self.c.all("SharingPolicy"):
            for condition in policy.get("status", {}).get("conditions", []):
                self.tell("policy %s: %s %s %s: %s" % (policy["metadata"]["name"], condition["type"], condition["status"],
                                                       condition["reason"], condition["message"]))
            self.tell("policy %s: %s" % (policy["metadata"]["name"], self.c.blocked(policy["metadata"]["name"])))
        for finding in self.c.ticks[-1].all_findings:
            self.tell("finding about %s: %s: %s" % (finding["object"]["name"], finding["reason"], finding["message"]))
        raise Failure(what)

    # --- The walk.
    def run(self, steps=25):
        events, weights = zip(*self.EVENTS.items())
        for _ in range(steps):
            for event in self.chance.choices(events, weights, k=self.chance.choice([1, 1, 2])):
                event(self)
                if self.chance.random() < 0.8:  # Else the operator is being restarted.
                    self.look("1s")
                self.pause_for_a_moment()
            killed = self.chance.choice([None, None, None, 1, 2])
            self.look(self.chance.choice(["1s", "15s", "40s", "2m", "2m", "12m"]), killed)
        self.end()

    def end(self):
        """Everything is well again, and one more edit follows."""
        self.tell("everything is well again")
        for name in self.c.nodes():
            self.c.set_ready(name, True)
            self.c.annotate("Node", name, HOLD, None)
            self.c.node(name)["spec"].pop("taints", None)
            for key in ("nvidia.com/gpu-driver-upgrade-state", "nvidia.com/mig.config.state",
                        "dgxc.nvidia.com/nvsentinel-state"):
                self.c.labels(name).pop(key, None)
            self.c.touch(self.c.node(name))
            if name in self.cordoned:
                self.c.cordon(name, False)
        for pod in self.c.all("Pod"):
            if pod["metadata"]["namespace"] == "team":
                self.c.end(pod["metadata"]["name"])
        self.c.policy(mode="Enforce", rollout={"paused": False})
        self.heal()
        # As `rollout resume` and `rollout start` do.
        for rollout in self.c.rollouts():
            if rollout["spec"].get("paused"):
                self.c.switch(rollout["metadata"]["name"], paused=False)
        self.look("1s")
        for rollout in self.c.rollouts():
            if rollout["spec"].get("aborted"):
                self.c.remove("SharingRollout", rollout["metadata"]["name"])
        for policy in self.c.all("SharingPolicy"):
            self.c.annotate("SharingPolicy", policy["metadata"]["name"], "gpusharing.dev/retry", stamp(self.c.clock))
        self.c.wait("6m")
        for _ in range(12):
            self.look("3m")
        begun = len(self.c.ticks)
        serves_mps = "mps" in self.c.components()
        self.write(any=LAST[self.chance.choice(["ts5", "mps4last"]) if serves_mps else "ts5"])
        for _ in range(60):
            self.look("3m")
            if all(tick.is_quiet() for tick in self.c.ticks[-4:]) and len(self.c.ticks) > begun + 6:
                break
        self.judge_end(begun)

    def judge_end(self, begun):
        lost = {}
        for tick in self.c.ticks[begun:]:
            for action in tick.of("DeletePod"):
                name = action["target"]["name"]
                if "mps" not in name and "plugin" in name:
                    node = tick.node_of[(action["target"]["namespace"], name)]
                    lost[node] = lost.get(node, 0) + 1
        if any(count > 1 for count in lost.values()):
            self.fail("plugin pods deleted after the last edit: %s" % lost)
        named = {name for policy in self.c.all("SharingPolicy")
                 for nodes in self.c.blocked(policy["metadata"]["name"]).values() for name in nodes}
        for name in sorted(set(self.c.nodes()) - named):
            target = self.c.text_for(name, self.c.data())
            loaded = self.loaded_on(name).get("plugin")
            left = {"state": self.c.state(name), "cordoned": self.c.cordoned(name),
                    "change": "gpusharing.dev/change" in self.c.annotations(name)}
            if loaded != target:
                self.fail("%s runs %s at the end, its target is %s, and no policy names it" % (
                    name, NAMES.get(loaded), NAMES.get(target)))
            daemon = self.loaded_on(name).get("mps", target)
            if reads("mps", daemon) != reads("mps", target):
                self.fail("the MPS daemon of %s runs %s at the end, its target is %s" % (
                    name, NAMES.get(daemon), NAMES.get(target)))
            if any(left.values()):
                self.fail("at the end, %s has %s left" % (name, left))
        policy = self.c.condition("default", "Ready")
        if policy.get("reason") not in ("UpToDate", "NoNodes"):
            self.fail("at the end, policy default says %s" % policy)
