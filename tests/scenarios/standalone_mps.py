"""The chart's MPS daemons without a device plugin: nodes say where clients find them."""
import copy

from scenario import expect, expect_that, fleet, none, scenario

DIRECTORY = "gpusharing.dev/mps-pipe-directory"
NAMESPACE = "gpu-sharing-operator"
POOL = "team.example/mps"


def daemonset(c):
    return c.put({"apiVersion": "apps/v1", "kind": "DaemonSet",
                  "metadata": {"name": "gpu-sharing-operator-mps", "namespace": NAMESPACE, "uid": "ds-standalone"},
                  "spec": {"updateStrategy": {"type": "OnDelete"},
                           "selector": {"matchLabels": {"app.kubernetes.io/component": "standalone-mps"}},
                           "template": {"metadata": {"labels": {"app.kubernetes.io/component": "standalone-mps"}},
                                        "spec": {"nodeSelector": {POOL: "true"},
                                                 "initContainers": [{"name": "standalone-mps-check"}],
                                                 "containers": [{"name": "standalone-mps", "args": ["mps-daemon", "run"]}]}}}})


def daemon(c, node, directory, ready=True):
    """The DaemonSet's pod of the node, as the kubelet reports it once its init container has ended."""
    said = "pipeDirectory=%s driver=615.20 gpus=2\n" % directory
    return c.put({"apiVersion": "v1", "kind": "Pod",
                  "metadata": {"name": "mps-" + node, "namespace": NAMESPACE,
                               "labels": {"app.kubernetes.io/component": "standalone-mps"},
                               "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet",
                                                    "name": "gpu-sharing-operator-mps", "uid": "ds-standalone",
                                                    "controller": True}]},
                  "spec": {"nodeName": node, "initContainers": [{"name": "standalone-mps-check"}],
                           "containers": [{"name": "standalone-mps"}]},
                  "status": {"phase": "Running",
                             "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
                             "initContainerStatuses": [{"name": "standalone-mps-check", "ready": True, "restartCount": 0,
                                                        "state": {"terminated": {"exitCode": 0, "reason": "Completed",
                                                                                 "message": said}}}],
                             "containerStatuses": [{"name": "standalone-mps", "ready": ready, "restartCount": 0,
                                                    "state": {"running": {}}}]}})


def beside_a_fleet(directories):
    c = fleet(3, none())
    daemonset(c)
    for node, directory in directories.items():
        c.set_label(node, POOL, "true")
        daemon(c, node, directory)
    c.after("1m")
    return c


def said(c):
    return {name: c.labels(name)[DIRECTORY] for name in c.nodes() if DIRECTORY in c.labels(name)}


@scenario
def nodes_say_where_their_standalone_mps_daemon_is():
    """Drivers differ, and so do the directories of two daemons: each node has a label that says which one; a third has none."""
    c = beside_a_fleet({"n01": "/run/nvidia-mps", "n02": "/tmp/nvidia-mps"})
    expect("the labels", said(c), {"n01": "run.nvidia-mps", "n02": "tmp.nvidia-mps"})
    expect("writes of the next look", c.after("2m").actions, [])


@scenario
def the_label_outlives_restarts_of_the_daemon_and_not_its_end():
    """A daemon restarts and its pod is replaced: the label stays. It goes once the node has left the node selector."""
    c = beside_a_fleet({"n01": "/run/nvidia-mps"})
    before = {"n01": "run.nvidia-mps"}
    expect("the label at first", said(c), before)
    daemon(c, "n01", "/run/nvidia-mps", ready=False)
    c.after("10m")
    expect("the label while it is not Ready", said(c), before)
    c.remove("Pod", "mps-n01", NAMESPACE)
    c.after("90s")
    expect("the label while its pod is missing", said(c), before)
    daemon(c, "n01", "/run/nvidia-mps")
    c.after("10m")
    expect("the label afterwards", said(c), before)
    c.set_label("n01", POOL, None)
    c.remove("Pod", "mps-n01", NAMESPACE)
    c.after("3m")
    expect("the label at the end", said(c), {})


def lost(tick):
    return {f["object"]["name"]: f["message"] for f in tick.findings("StandaloneMPSLost")}


def with_a_client(client=True):
    c = beside_a_fleet({"n01": "/run/nvidia-mps", "n02": "/run/nvidia-mps"})
    if client:
        c.consumer("train-0", "n01")
    return c


@scenario
def a_node_that_leaves_under_its_clients_is_named():
    """A person takes the label of the DaemonSet from n01, where a client runs: the node is named, with the client and the way back."""
    c = with_a_client()
    c.set_label("n01", POOL, None)
    tick = c.after("10s")
    expect("nodes named at once", list(lost(tick)), ["n01"])
    for text in ("team/train-0", "kubectl label node n01 team.example/mps=true"):
        expect_that(text in lost(tick)["n01"], text, lost(tick)["n01"])
    expect("Events", [event["target"]["name"] for event in tick.events("StandaloneMPSLost")], ["n01"])
    c.remove("Pod", "mps-n01", NAMESPACE)
    expect("nodes named while its pod is gone", list(lost(c.after("1m"))), ["n01"])
    c.set_label("n01", POOL, "true")
    daemon(c, "n01", "/run/nvidia-mps")
    expect("nodes named once it is back", lost(c.after("1m")), {})


@scenario
def daemons_that_end_with_their_daemonset_are_named():
    """The DaemonSet goes with the release, under a client of n01."""
    c = with_a_client()
    c.remove("DaemonSet", "gpu-sharing-operator-mps", NAMESPACE)
    for name in ("mps-n01", "mps-n02"):
        c.remove("Pod", name, NAMESPACE)
    named = lost(c.after("1m"))
    expect("nodes named", list(named), ["n01"])
    expect_that(": team/train-0. Its DaemonSet is gone. Delete" in named["n01"], "why", named["n01"])


def another_daemonset(c, name, verb, node):
    """One of another release, for one node."""
    other = copy.deepcopy(c.get("DaemonSet", "gpu-sharing-operator-mps", NAMESPACE))
    other["metadata"].update(name=name, uid="ds-" + name)
    other["spec"]["template"]["spec"].update(nodeSelector={"team.example/other": "true"},
                                             containers=[{"name": "standalone-mps", "args": ["mps-daemon", verb]}])
    c.put(other)
    c.set_label(node, "team.example/other", "true")


@scenario
def daemons_that_the_host_runs_are_not_lost():
    """n03 declares a daemon that its host runs, in clusters without and with a DaemonSet for other nodes: a client there has lost nothing."""
    for c in (fleet(3, none()), beside_a_fleet({"n01": "/run/nvidia-mps"})):
        c.annotate("Node", "n03", "gpusharing.dev/mps-host", "true")
        for _ in range(3):
            c.after("2m")
        expect("the label of the host's daemon", said(c).get("n03"), "tmp.nvidia-mps")
        c.consumer("train-0", "n03")
        for _ in range(3):
            expect("nodes named", lost(c.after("1m")), {})


@scenario
def a_daemonset_that_only_watches_hides_no_lost_daemon():
    """Another release watches the host's daemon on n03. n01 leaves its own DaemonSet under a client, and is named, with the label to set again."""
    for name in ("aaa-watches", "zzz-watches"):
        c = with_a_client()
        another_daemonset(c, name, "observe", "n03")
        c.set_label("n01", POOL, None)
        for pod_is_gone in (False, True):
            named = lost(c.after("10s"))
            expect("nodes named", list(named), ["n01"])
            expect_that(". DaemonSet gpu-sharing-operator/gpu-sharing-operator-mps selects nodes with team.example/mps=true" in named["n01"],
                        "the way back", named["n01"])
            if not pod_is_gone:
                c.remove("Pod", "mps-n01", NAMESPACE)


@scenario
def a_node_whose_daemon_is_only_watched_is_not_named():
    """The neighbour: n01 leaves a DaemonSet that only watches, beside one of another release that runs daemons; the host's daemon goes on."""
    c = with_a_client()
    another_daemonset(c, "runs", "run", "n03")
    watches = c.get("DaemonSet", "gpu-sharing-operator-mps", NAMESPACE)
    watches["spec"]["template"]["spec"]["containers"][0]["args"] = ["mps-daemon", "observe"]
    c.put(watches)
    c.set_label("n01", POOL, None)
    expect("nodes named", lost(c.after("10s")), {})


@scenario
def a_node_that_leaves_without_clients_is_not_named():
    """The neighbours: nobody uses the GPUs of the node; and a node whose pod is missing for a moment keeps its label."""
    c = with_a_client(client=False)
    c.set_label("n01", POOL, None)
    expect("nodes named without clients", lost(c.after("10s")), {})
    c = with_a_client()
    c.remove("Pod", "mps-n01", NAMESPACE)
    expect("nodes named while the pod is replaced", lost(c.after("1m")), {})


@scenario
def the_label_follows_a_daemon_that_moves():
    """The driver is upgraded, and the daemon comes back in the directory of the new one."""
    c = beside_a_fleet({"n01": "/tmp/nvidia-mps"})
    daemon(c, "n01", "/run/nvidia-mps")
    tick = c.after("1m")
    expect("the label", said(c), {"n01": "run.nvidia-mps"})
    expect_that(not tick.started(), "no node that starts a change", tick.started())


@scenario
def a_daemon_of_the_host_is_named_as_its_declaration_says():
    """Three hosts run a daemon without a pod, as their nodes declare: in a directory, and in the default one of their
    driver. The labels go with the declarations; a word that is neither names nothing."""
    c = fleet(4, none())
    for name, major, word in (("n01", "580", "/other/path"), ("n02", "615", "true"), ("n03", "580", "true"), ("n04", "615", "yes")):
        c.set_label(name, "nvidia.com/cuda.driver-version.major", major)
        c.annotations(name)["gpusharing.dev/mps-host"] = word
    c.after("1m")
    c.after("1m")
    expect("the labels", said(c), {"n01": "other.path", "n02": "run.nvidia-mps", "n03": "tmp.nvidia-mps"})
    for name in ("n01", "n02", "n03"):
        del c.annotations(name)["gpusharing.dev/mps-host"]
    c.after("3m")
    c.after("3m")
    expect("the labels without declarations", said(c), {})
