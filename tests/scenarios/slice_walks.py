"""Walks of nodes with slices: what happens is chosen by chance, and no pod ever loses a slice that it has. walk_suite.py
runs them.

Pods come, are bound, end; plugins crash on their next key, the agent is late or, where its pods can be seen, down, nodes are cordoned, vanish and join, people
move labels and hold nodes, the fork's ConfigMap is written anew, GPUs die, the operator ends between two writes. The model
fails where a used slice leaves or a GPU promises more than it has. In the end everything works again: the operator must
fall silent, and no pod may wait for which there is room.
"""
import random

from cluster.slices import CONFIG_MAP, MARK, NAMESPACE, NOS, SliceCluster, profile
from scenario import CONFIG_LABEL, Failure, expect_that
from slice_worlds import fits

SIZES = [4, 5, 8, 10, 12, 16, 20, 24, 30, 39]


class Walk:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.c = SliceCluster()
        self.story, self.number, self.keys_of_people = [], 0, 0
        self.agents, self.down = self.rng.random() < 0.5, set()  # Pods of the agent can be seen; nodes where it is down.
        for i in range(self.rng.randrange(1, 4)):
            self.join()
        self.sizes = self.rng.sample(SIZES, 3)

    def say(self, *what):
        self.story.append(" ".join(str(w) for w in what))

    def some_node(self):
        return self.rng.choice(sorted(self.c.slice_nodes)) if self.c.slice_nodes else None

    # What happens.
    def join(self):
        self.number += 1
        name = "n%02d" % self.number
        self.c.slice_node(name, gpus=self.rng.choice([1, 2, 2, 4]), mib=self.rng.choice([24564, 40960, 81559]))
        if self.agents:
            self.c.plugin_pod(name)
            self.c.agent_pod(name)
        self.say("join", name, self.c.slice_nodes[name]["gpus"], self.c.slice_nodes[name]["mib"])

    def come(self):
        for _ in range(self.rng.choice([1, 1, 2, 4])):
            self.number += 1
            name = "p%02d" % self.number
            sizes = self.rng.choices(self.sizes, k=self.rng.choice([1, 1, 1, 2]))
            priority = self.rng.choice([0, 0, 5])
            self.c.wait_for_slice(name, *sizes, priority=priority)
            self.say("come", name, sizes, priority)

    def end(self):
        running = sorted(self.c.assigned)
        for name in self.rng.sample(running, min(len(running), self.rng.choice([1, 1, 2, 3]))):
            self.c.end_pod(name)
            self.say("end", name)
        self.c.react()

    def schedule(self):
        before = set(self.c.assigned)
        self.c.schedule()
        self.say("schedule", {p: self.c.assigned[p] for p in sorted(set(self.c.assigned) - before)})
        self.c.react()

    def late(self):
        """A moment in which the agent has not reported yet: pods end and come on other GPUs, and the operator looks."""
        for state in self.c.slice_nodes.values():
            state["agent"] = False
        self.end()
        self.schedule()
        span = self.rng.choice([0, 3, 15])
        self.say("look in %d s, agents late" % span)
        self.c.after("%ds" % span, held=self.rng.choice(["0s", "2m", "5m"]))
        for name, state in self.c.slice_nodes.items():
            state["agent"] = name not in self.down
        self.c.react()

    def outage(self):
        """An agent is down, or runs again and has not reported yet."""
        name = self.some_node()
        if not self.agents:
            return
        if name not in self.down:
            self.down.add(name)
            self.c.stop_agent(name)
            self.say("agent down", name)
            return
        self.down.remove(name)
        self.c.start_agent(name, reports=False)
        span = self.rng.choice([1, 5, 20])
        self.say("agent up, look in %d s" % span, name)
        self.c.after("%ds" % span, held=self.rng.choice(["0s", "2m"]))
        if name in self.c.slice_nodes:
            self.c.slice_nodes[name]["agent"] = True
        self.c.react()

    def crash(self):
        name = self.some_node()
        if name:
            self.c.slice_nodes[name]["crashes"] = True
            self.say("crash", name)

    def mend(self):
        for name, state in self.c.slice_nodes.items():
            state["crashes"], state["plugin"] = False, True
            node = self.c.get("Node", name)
            node["spec"].pop("unschedulable", None)
            node["status"]["conditions"][0]["status"] = "True"
            node["metadata"]["annotations"].pop("gpusharing.dev/hold", None)
            self.c.touch(node)
        self.say("mend")
        self.c.react()
        for name in sorted(self.down & set(self.c.slice_nodes)):
            self.c.start_agent(name)
        self.down = set()

    def stop_plugin(self):
        name = self.some_node()
        if name:
            self.c.slice_nodes[name]["plugin"] = False
            self.say("plugin stops", name)
            self.c.react()

    def cordon(self):
        name = self.some_node()
        if name:
            node = self.c.get("Node", name)
            if self.rng.random() < 0.5:
                node["spec"]["unschedulable"] = True
            else:
                node["status"]["conditions"][0]["status"] = "Unknown"
            self.c.touch(node)
            self.say("cordon or NotReady", name)

    def hold(self):
        name = self.some_node()
        if name:
            self.c.annotate("Node", name, "gpusharing.dev/hold", "true")
            self.say("hold", name)

    def forget_mark(self):
        name = self.some_node()
        if name:
            self.c.annotate("Node", name, MARK, None)
            self.say("mark removed", name)

    def vanish(self):
        if len(self.c.slice_nodes) > 1:
            name = self.some_node()
            self.c.lose_node(name)
            self.down.discard(name)
            self.say("vanish", name)

    def person(self):
        name = self.some_node()
        if not name:
            return
        state = self.c.slice_nodes[name]
        if not state["plugin"] or state["crashes"]:
            return
        key = None
        if self.rng.random() < 0.6:
            self.keys_of_people += 1
            key = "mine-%d" % self.keys_of_people
            room = (state["mib"] - 512) // 1024
            size = self.rng.choice([s for s in self.sizes + [4] if s <= room])
            self.c.keys()[key] = profile({0: {size: 1}})
        self.say("person labels", name, key, self.c.keys().get(key))
        self.c.person_labels(name, key)
        self.c.react()

    def rewrite(self):
        found = self.c.get("ConfigMap", CONFIG_MAP, NAMESPACE)
        found["data"] = {}
        self.c.touch(found)
        self.say("ConfigMap anew")

    def lose_gpu(self):
        name = self.some_node()
        state = self.c.slice_nodes.get(name)
        if not state or state["gpus"] < 2:
            return
        last = state["gpus"] - 1
        for pod, (node, slices) in sorted(self.c.assigned.items()):
            if node == name and any(gpu == last for gpu, _ in slices):
                self.c.end_pod(pod)
        self.c.lose_gpu(name)
        self.say("GPU lost", name)
        self.c.react()

    def killed(self):
        self.say("operator killed after a write")
        self.c.clock += __import__("datetime").timedelta(minutes=2)
        self.c.tick(killed_after=self.rng.choice([0, 1, 2]))

    def look(self, span=None):
        span = span or self.rng.choice(["1s", "20s", "1m", "2m", "2m", "2m", "5m", "16m"])
        tick = self.c.after(span)
        writes = [(a["action"], a["target"]["name"], a.get("set", {}).get(CONFIG_LABEL) or list(a.get("set", {})))
                  for a in tick.actions if a["action"] in ("PatchNode", "PatchConfigMap")]
        self.say("look after", span, writes)
        self.events = {a["target"]["name"]: a["event"] for a in tick.actions if a["action"] == "RecordEvent"}
        return tick

    def run(self, steps=24):
        what = ([self.come] * 5 + [self.end] * 3 + [self.schedule] * 5 + [self.late] * 3 + [self.look] * 12 + [self.outage] * 3 +
                [self.crash, self.mend, self.stop_plugin, self.cordon, self.hold, self.vanish, self.join, self.person,
                 self.rewrite, self.lose_gpu, self.killed, self.forget_mark])
        for _ in range(steps):
            self.rng.choice(what)()
        self.finish()

    def finish(self):
        self.mend()
        for _ in range(24):
            self.schedule()
            self.look("30m")
        quiet = 0
        for _ in range(12):
            self.schedule()
            tick = self.look("5m")
            quiet = quiet + 1 if tick.is_quiet() else 0
        if quiet < 3:
            raise Failure("never silent")
        self.check_waiting(tick)

    def check_waiting(self, tick):
        for pod in self.c.all("Pod"):
            if pod["spec"].get("nodeName") or pod["status"]["phase"] != "Pending":
                continue
            name = pod["metadata"]["name"]
            if name not in self.events:
                raise Failure("no Event about %s" % name)
            for node, state in self.c.slice_nodes.items():
                if state.get("lost_by_person"):  # Its pods use more than it reports: the operator leaves it alone, and says so.
                    expect_that(any(node in finding["message"] for finding in tick.all_findings), "a finding about " + node)
                    continue
                capacity = (state["mib"] - 512) // 1024
                used = self.c.used(node)
                rooms = [capacity - sum(s * n for s, n in used.get(gpu, {}).items()) for gpu in range(state["gpus"])]
                if fits(self.c.sizes_of(pod), rooms, {gpu: [] for gpu in range(state["gpus"])}):
                    raise Failure("%s (%s) waits and fits on %s (rooms %s): %s\nfindings %s" % (
                        name, self.c.sizes_of(pod), node, rooms, self.events[name]["note"],
                        [f["message"] for f in tick.all_findings]))
