"""The chart's standalone MPS daemon (docs/standalone-mps.md), in manifests: `plan` sees its pods as the operator does."""
import json

from cluster.program import ask
from scenario import GPU, Cluster, expect, expect_that, numbered, one, scenario, stamp

NAMESPACE, NAME, MARK = "gpu-sharing-operator", "gpu-sharing-operator-mps", "gpusharing.dev/mps-daemon-change"
LABELS = {"app.kubernetes.io/name": "gpu-sharing-operator", "app.kubernetes.io/component": "standalone-mps"}


class Daemons:
    """The DaemonSet as the chart renders it (updateStrategy OnDelete), with a Ready pod on each node."""

    def __init__(self, cluster):
        self.cluster, self.numbers = cluster, []
        self.daemonset = cluster.put({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "generation": 1, "labels": LABELS},
            "spec": {"selector": {"matchLabels": LABELS}, "updateStrategy": {"type": "OnDelete"},
                     "template": {"metadata": {"labels": LABELS}, "spec": {
                         "nodeSelector": {"team.example/mps": "true"},
                         "containers": [{"name": "standalone-mps", "image": "gso:1", "args": ["mps-daemon", "run"]}]}}},
            "status": {}})
        self.template("old")

    def owner(self):
        return [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": NAME, "controller": True,
                 "uid": self.daemonset["metadata"]["uid"]}]

    def template(self, name):
        self.numbers.append(name)
        self.cluster.put({"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": len(self.numbers),
                          "metadata": {"name": NAME + "-" + name, "namespace": NAMESPACE, "uid": "revision-" + name,
                                       "labels": dict(LABELS, **{"controller-revision-hash": name}),
                                       "ownerReferences": self.owner()}})
        self.daemonset["metadata"]["generation"] += 1

    def pods(self):
        return {pod["spec"]["nodeName"]: pod["metadata"]["labels"]["controller-revision-hash"]
                for pod in self.cluster.all("Pod") if pod["metadata"]["namespace"] == NAMESPACE}

    def react(self):
        """The DaemonSet's controller: a pod of the newest template where there is none."""
        for node in set(self.cluster.nodes()) - set(self.pods()):
            self.cluster.put({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "%s-%s-%s" % (NAME, node, self.numbers[-1]), "namespace": NAMESPACE,
                             "labels": dict(LABELS, **{"controller-revision-hash": self.numbers[-1]}),
                             "ownerReferences": self.owner()},
                "spec": {"nodeName": node, "containers": [{"name": "standalone-mps", "image": "gso:1", "env": [
                    {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}]},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
                           "containerStatuses": [{"name": "standalone-mps", "ready": True, "restartCount": 0,
                                                  "state": {"running": {"startedAt": stamp(self.cluster.clock)}}}]}})


def with_daemons(count=3):
    c = Cluster({"any": "version: v1\n"})
    c.add_nodes(*numbered(count))
    for name in c.nodes():
        c.labels(name)["team.example/mps"] = "true"
    daemons = Daemons(c)
    daemons.react()
    c.install()
    return c, daemons


@scenario
def a_new_template_drains_one_node_first():
    """The chart's values change: one idle node is marked and cordoned, and its pod is the only one that is deleted."""
    c, daemons = with_daemons()
    daemons.template("new")
    marked = []
    for _ in range(3):
        tick = c.after("1m")
        marked += [action["target"]["name"] for action in tick.of("PatchNode")
                   if MARK in action["annotations"].get("set", {})]
        if marked:
            break
    name = one(marked)
    expect("cordoned", [node for node in c.nodes() if c.cordoned(node)], [name])


@scenario
def a_new_template_reaches_every_node():
    """The same until the end: every node has the new daemon, and nothing of the change is left behind."""
    c, daemons = with_daemons()
    daemons.template("new")
    for _ in range(20):
        c.after("1m")
        daemons.react()
    expect("templates", set(daemons.pods().values()), {"new"})
    expect("(marks, cordons)", ([node for node in c.nodes() if MARK in c.annotations(node)],
                                [node for node in c.nodes() if c.cordoned(node)]), ([], []))


def told(c):
    """(DaemonSet, template, phase, updated, total) of each SharingRollout."""
    return [(rollout["spec"].get("daemonSet"), rollout["spec"]["toRevision"], rollout.get("status", {}).get("phase"),
             rollout.get("status", {}).get("counts", {}).get("updated"), rollout.get("status", {}).get("counts", {}).get("total"))
            for rollout in c.rollouts()]


@scenario
def a_new_template_is_one_rollout():
    """The chart's values change: one SharingRollout of the DaemonSet says how far the daemons are, and is Completed at the end."""
    c, daemons = with_daemons()
    expect("rollouts before", told(c), [])
    daemons.template("new")
    for _ in range(20):
        c.after("1m")
        daemons.react()
    expect("rollouts", told(c), [(NAMESPACE + "/" + NAME, "new", "Completed", 3, 3)])
    expect("writes of the next look", c.after("2m").actions, [])


@scenario
def a_paused_rollout_of_a_template_replaces_no_daemon():
    """spec.paused of that SharingRollout: what waits is uncordoned, nothing is deleted; without it the rollout goes on."""
    c, daemons = with_daemons()
    for name in c.nodes():
        c.consumer("job-" + name, name, resource=GPU)
    daemons.template("new")
    for _ in range(3):
        c.after("1m")
    c.switch(paused=True)
    for name in c.nodes():
        c.remove("Pod", "job-" + name, "team")
    for _ in range(5):
        c.after("2m")
        daemons.react()
    expect("(templates, cordons)", (set(daemons.pods().values()), [node for node in c.nodes() if c.cordoned(node)]), ({"old"}, []))
    c.switch(paused=False)
    for _ in range(20):
        c.after("1m")
        daemons.react()
    expect("templates", set(daemons.pods().values()), {"new"})


@scenario
def a_rollout_of_a_template_is_not_completed_while_all_its_nodes_are_held():
    """Mode Approve: a person holds all nodes before anybody approves: no node has the template, so it is not Completed."""
    c, daemons = with_daemons()
    c.policy(mode="Approve")
    daemons.template("new")
    for _ in range(3):
        c.after("1m")
    expect("rollouts before", told(c), [(NAMESPACE + "/" + NAME, "new", "AwaitingApproval", 0, 3)])
    for name in c.nodes():
        c.annotate("Node", name, "gpusharing.dev/hold", "true")
    for _ in range(3):
        c.after("2m")
    expect_that(told(c)[0][2] in ("AwaitingApproval", "Paused"), "a rollout that is not Completed", told(c))
    for name in c.nodes():
        c.annotate("Node", name, "gpusharing.dev/hold", None)
    c.after("2m")
    c.switch(approved=True)
    for _ in range(20):
        c.after("1m")
        daemons.react()
    expect("templates", set(daemons.pods().values()), {"new"})


@scenario
def a_daemon_that_is_not_ready_is_named():
    """Its init container says what is missing on n01: the finding StandaloneMPSRefused names the node."""
    c, _ = with_daemons(1)
    pod = [pod for pod in c.all("Pod") if pod["metadata"]["namespace"] == NAMESPACE][0]
    pod["status"].update(conditions=[{"type": "Ready", "status": "False"}], phase="Pending", containerStatuses=[],
                         initContainerStatuses=[{"name": "standalone-mps-check", "ready": False, "restartCount": 4, "state": {
                             "waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {
                                 "exitCode": 1, "message": "no nvidia-smi"}}}])
    c.touch(pod)
    expect("nodes named", c.after("5m").found_on("StandaloneMPSRefused"), ["n01"])


@scenario
def a_daemon_whose_container_cannot_start_is_named():
    """Its image cannot be pulled, or the runtime refuses the container: the finding says which, in the kubelet's word."""
    for reason in ("ImagePullBackOff", "InvalidImageName", "CreateContainerError", "RunContainerError"):
        c, _ = with_daemons(1)
        pod = [pod for pod in c.all("Pod") if pod["metadata"]["namespace"] == NAMESPACE][0]
        pod["status"].update(conditions=[{"type": "Ready", "status": "False"}], phase="Pending", containerStatuses=[
            {"name": "standalone-mps", "ready": False, "restartCount": 0, "state": {"waiting": {"reason": reason}}}])
        c.touch(pod)
        texts = [f["message"] for f in c.after("5m").findings("StandaloneMPSRefused")]
        expect_that(len(texts) == 1 and texts[0].endswith("is not Ready: " + reason), "the reason " + reason, texts)


UPGRADE, CLIENTS = "nvidia.com/gpu-driver-upgrade-state", "nvidia.com/gpu.deploy.client"


def pinned(c):
    """Names of nodes whose daemon keeps the driver's module in use, as `plan`, `audit` and `explain` say it; the latter with what
    to type."""
    named = c.after("1m").found_on("DriverPinned")
    expect("nodes that audit names", sorted(f["object"]["name"] for f in c.audit()[1] if f["reason"] == "DriverPinned"), named)
    for name in c.nodes():
        told = json.loads(ask(["explain", name, "-f", "-", "-o", "json"], c.manifests()).stdout)
        findings = [f for f in told["findings"] if f["reason"] == "DriverPinned"]
        expect("that explain says it of " + name, len(findings), 1 if name in named else 0)
        command = "kubectl label node %s team.example/mps-  # " % name
        expect_that(told["next"].startswith(command) == (name in named), "whether explain types it for " + name, told["next"])
    return named


@scenario
def a_daemon_that_stays_through_a_driver_upgrade_is_named():
    """The template heeds no driver upgrade: while the driver of n01 is replaced, its daemon's pod is named, with what to do."""
    c, daemons = with_daemons(2)
    for state, named in (("upgrade-required", []), ("pod-restart-required", ["n01"]), ("upgrade-failed", ["n01"]), ("upgrade-done", [])):
        c.set_label("n01", UPGRADE, state)
        expect("nodes named in state " + state, pinned(c), named)
    c.set_label("n01", CLIENTS, "paused-for-mig-change")
    expect("nodes named while the MIG manager has paused clients", pinned(c), ["n01"])
    message = c.after("1m").findings("DriverPinned")[0]["message"]
    daemons.daemonset["spec"]["template"]["spec"]["nodeSelector"] = {}
    c.touch(daemons.daemonset)
    unselected = c.after("1m").findings("DriverPinned")[0]["message"]
    expect_that("kubectl label node" not in unselected, "no label to remove where none is selected", unselected)
    daemons.daemonset["spec"]["template"]["spec"]["nodeSelector"] = {"team.example/mps": "true"}
    expect_that("kubectl label node n01 team.example/mps-" in message and "followDriverUpgrades" in message, "what to do", message)
    daemons.daemonset["spec"]["template"]["spec"]["containers"][0]["args"] = ["mps-daemon", "observe"]
    c.touch(daemons.daemonset)
    expect("nodes named of daemons that only watch", pinned(c), [])


@scenario
def a_daemon_that_yields_to_driver_upgrades_is_not_named():
    """The neighbour: the chart's affinity, or its node selector, lets the DaemonSet controller end the pod; it is about to."""
    for yields in ({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": UPGRADE, "operator": "NotIn", "values": ["pod-restart-required"]},
                                  {"key": CLIENTS, "operator": "NotIn", "values": ["paused-for-driver-upgrade"]}]}]}}}},
                   {"nodeSelector": {"team.example/mps": "true", CLIENTS: "true"}}):
        c, daemons = with_daemons(2)
        for name in c.nodes():
            c.set_label(name, CLIENTS, "true")
        daemons.daemonset["spec"]["template"]["spec"].update(yields)
        c.touch(daemons.daemonset)
        c.set_label("n01", UPGRADE, "pod-restart-required")
        c.set_label("n01", CLIENTS, "paused-for-driver-upgrade")
        expect("nodes named", pinned(c), [])
        expect("nodes whose daemon counts as lost", c.after("1m").found_on("StandaloneMPSLost"), [])


@scenario
def kai_finds_the_nodes_of_ready_daemons():
    """In a cluster with KAI a node with a Ready standalone daemon gets nvidia.mps/enabled=true (docs/kai.md)."""
    c, _ = with_daemons(2)
    c.put({"apiVersion": "kai.scheduler/v1", "kind": "Config", "metadata": {"name": "kai-config"}, "spec": {}})
    for _ in range(3):
        c.after("2m")
    expect("labels", [c.labels(name).get("nvidia.mps/enabled") for name in c.nodes()], ["true", "true"])


@scenario
def a_busy_node_is_not_restarted():
    """The neighbour: every node has a GPU client, so no daemon is replaced."""
    c, daemons = with_daemons()
    for name in c.nodes():
        c.consumer("job-" + name, name, resource=GPU)
    daemons.template("new")
    ticks = [c.after("2m") for _ in range(5)]
    expect_that(not any(tick.deleted_pods() for tick in ticks), "no pod to be deleted", ticks[-1].actions)
