"""KAI beside replicas: fractions and reservations that come, stay and go around a change; and who shares which GPU."""
import json

from cluster.program import ask
from scenario import GPU, expect, expect_that, fleet, mps, none, one, scenario, ts


def reservation(c, node):
    c.put({"apiVersion": "v1", "kind": "Pod",
           "metadata": {"name": "gpu-reservation-%s-abc" % node, "namespace": "kai-resource-reservation",
                        "labels": {"app": "kai-resource-reservation", "runai-gpu-group": "g1"}},
           "spec": {"nodeName": node, "containers": [{"name": "r", "resources": {"limits": {GPU: "1"},
                                                                                "requests": {GPU: "1"}}}]},
           "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})


def fraction(c, name, node):
    c.put({"apiVersion": "kai.scheduler/v1", "kind": "Config", "metadata": {"name": "kai-config"},
           "spec": {"namespace": "kai-scheduler", "admission": {"gpuSharing": True}}})
    c.consumer(name, node, gpus=0, annotations={"gpu-fraction": "0.5"}, labels={"runai-gpu-group": "g1"},
               schedulerName="kai-scheduler")


def kai_goes(c, name, node):
    c.end(name)
    c.remove("Pod", "gpu-reservation-%s-abc" % node, "kai-resource-reservation")


@scenario
def a_fraction_pod_without_a_reservation_keeps_replicas_away():
    """n01 has a fraction pod and no reservation: it is Blocked by name on the way to MPS, and the others are changed."""
    c = fleet(3, none(), rollout={"workloads": "Interrupt"})
    fraction(c, "fraction-0", "n01")
    c.after("1m")
    c.edit(any=mps(4))
    c.converge()
    expect("capacities", [c.capacity(name) for name in c.nodes()], [2, 8, 8])
    expect("blocked", c.blocked(), {"KAIReservations": ["n01"]})


@scenario
def kai_that_comes_while_a_node_drains_gives_the_node_back():
    """KAI reserves a GPU of the node that waits for its job: it is uncordoned and not restarted, and Blocked."""
    c = fleet(2, none())
    for name in c.nodes():
        c.consumer("job-" + name, name)
    c.edit(any=mps(4))
    name = one(c.after("2m").started())
    before = c.uids(name)
    reservation(c, name)
    fraction(c, "fraction-0", name)
    c.end("job-" + name)
    for _ in range(5):
        c.after("2m")
    expect("pods", c.uids(name), before)
    expect("(state, cordoned)", (c.state(name), c.cordoned(name)), ("Blocked", False))


@scenario
def a_node_that_kai_leaves_is_changed():
    """The same node when fraction and reservation have gone: it is changed like the others."""
    c = fleet(2, none())
    reservation(c, "n01")
    fraction(c, "fraction-0", "n01")
    c.after("1m")
    c.edit(any=mps(4))
    c.converge()
    expect("capacities beside KAI", [c.capacity(name) for name in c.nodes()], [2, 8])
    kai_goes(c, "fraction-0", "n01")
    c.converge()
    expect("capacities without KAI", [c.capacity(name) for name in c.nodes()], [8, 8])
    expect("state of n01", c.state("n01"), "")


@scenario
def more_replicas_do_not_come_to_a_node_of_kai():
    """The node serves four replicas and KAI shares its GPUs: eight replicas do not come, and the reason is named."""
    c = fleet(3, ts(4), rollout={"workloads": "Interrupt"})
    reservation(c, "n01")
    fraction(c, "fraction-0", "n01")
    c.after("1m")
    c.edit(any=ts(8))
    c.converge(most=20)
    expect("capacities", [c.capacity(name) for name in c.nodes()], [8, 16, 16])
    expect("blocked", c.blocked(), {"KAIReservations": ["n01"]})


@scenario
def replicas_leave_a_node_of_kai():
    """The way out is free: the edit ends sharing, and the node with KAI's pods is changed like the others."""
    c = fleet(3, ts(4), rollout={"workloads": "Interrupt"})
    reservation(c, "n01")
    fraction(c, "fraction-0", "n01")
    c.after("1m")
    c.edit(any=none())
    c.converge(most=30)
    expect("capacities", [c.capacity(name) for name in c.nodes()], [2, 2, 2])
    expect_that(c.get("Pod", "fraction-0", "team") is not None, "the fraction pod to run on")


MARK = "nvidia.mps/enabled"
KAI_CONFIG = {"apiVersion": "kai.scheduler/v1", "kind": "Config", "metadata": {"name": "kai-config"},
              "spec": {"namespace": "kai-scheduler", "admission": {"gpuSharing": True}}}


def marked(c):
    return [name for name in c.nodes() if MARK in c.labels(name)]


@scenario
def the_plugin_s_own_daemon_attracts_no_fractions():
    """The device plugin shares by MPS beside KAI: no node is marked for KAI's pods, and an earlier mark goes with its
    annotation. What another client has set stays and is a finding, unless the node's host runs a daemon, too."""
    c = fleet(3, mps(4))
    c.put(KAI_CONFIG)
    for name in ("n01", "n02"):
        c.labels(name)[MARK] = "true"
    c.annotations("n01")["gpusharing.dev/mps-enabled"] = "true"
    for _ in range(3):
        tick = c.after("2m")
    expect("(marked, foreign)", (marked(c), tick.found_on("MPSMarkWithoutDaemon")), (["n02"], ["n02"]))
    expect("annotation of n01", c.annotations("n01").get("gpusharing.dev/mps-enabled"), None)
    for name in ("n02", "n03"):
        c.annotations(name)["gpusharing.dev/mps-host"] = "true"
    for _ in range(3):
        tick = c.after("2m")
    expect("(marked, foreign) by declaration", (marked(c), tick.found_on("MPSMarkWithoutDaemon")), (["n02", "n03"], []))


def shared(c, *what):
    """The GPUs that KAI shares, as explain names them, and the text of explain."""
    document = json.loads(ask(["explain", *what, "-o", "json", "-f", "-"], c.manifests()).stdout)
    gpus = {gpu["group"]: [gpu["reservations"], gpu["device"], [
        "%(namespace)s/%(name)s %(fraction)s %(memoryMiB)s" % pod for pod in gpu["pods"]], gpu["fraction"], gpu["memoryMiB"]]
        for gpu in document["sharedGPUs"]}
    return gpus, ask(["explain", *what, "-f", "-"], c.manifests()).stdout


@scenario
def explain_shows_who_shares_a_gpu_by_fractions():
    """Pods of three namespaces have parts of two GPUs of n01, one of them of both: explain of the node, and of each pod,
    names group, reservation pod, GPU and parts, and their sum. A pod that KAI has not placed, and one that has ended, have
    no part. explain of a pod says that KAI limits nothing, unless its mode does."""
    c = fleet(2, none())
    c.put(KAI_CONFIG)
    held = {}
    for group in ("g1", "g2"):
        held[group] = ["kai-resource-reservation/gpu-reservation-n01-" + group]
        reservation(c, "n01")
        pod = c.get("Pod", "gpu-reservation-n01-abc", "kai-resource-reservation")
        c.remove("Pod", "gpu-reservation-n01-abc", "kai-resource-reservation")
        pod["metadata"].update(name="gpu-reservation-n01-" + group, uid="uid-" + group,
                               annotations={"run.ai/reserve_for_gpu_index": "GPU-" + group})
        pod["metadata"]["labels"]["runai-gpu-group"] = group
        c.put(pod)

    def part(name, namespace, scheduler="kai-scheduler", groups=("g1",), **annotations):
        labels = {"runai-gpu-group": groups[0]} if len(groups) == 1 else {"runai-gpu-group/" + group: group for group in groups}
        return c.consumer(name, "n01", gpus=0, namespace=namespace, labels=labels, schedulerName=scheduler,
                          annotations={key.replace("_", "-"): value for key, value in annotations.items()})
    part("a", "team", gpu_fraction="0.1")
    part("b", "lab", gpu_fraction="0.2")
    part("c", "lab", groups=("g1", "g2"), gpu_memory="2000", gpu_fraction_num_devices="2")
    part("forged", "stranger", scheduler="default-scheduler", gpu_fraction="0.5")
    part("ended", "team", gpu_fraction="0.5")["status"]["phase"] = "Succeeded"
    first = [held["g1"], "GPU-g1", ["lab/b 0.2 0", "lab/c  2000", "team/a 0.1 0"], 0.3, 2000]
    second = [held["g2"], "GPU-g2", ["lab/c  2000"], 0, 2000]
    gpus, text = shared(c, "n01")
    expect("GPUs of the node", gpus, {"g1": first, "g2": second})
    line = "lab/b 0.2, lab/c 2000 MiB, team/a 0.1; together 0.3 and 2000 MiB of it"
    expect_that(line in text, line, text)
    expect_that("team/a: a share of 0.1 of a GPU, from KAI" in text, "what a fraction pod asks for", text)
    expect("GPUs of n02", shared(c, "n02")[0], {})
    expect("GPUs of team/a", shared(c, "team/a")[0], {"g1": first})
    expect("GPUs of lab/c", shared(c, "lab/c")[0], {"g1": first, "g2": second})
    expect("GPUs of the forged pod", shared(c, "stranger/forged")[0], {})
    told = ask(["explain", "team/a", "-f", "-"], c.manifests())
    expect_that(line in told.stdout and "info FractionMemory" in told.stdout, "the parts, and that KAI limits none", told.stdout)
    expect_that("FractionMemory" not in shared(c, "stranger/forged")[1], "no share to be promised", "")
    for mode in ("HamiCore", "NvFractions"):
        c.put(dict(KAI_CONFIG, spec={"global": {"gpuSharingMode": mode}}))
        expect_that("FractionMemory" not in shared(c, "team/a")[1], "memory to be limited in the mode", mode)


@scenario
def more_than_a_whole_gpu_in_fractions_is_a_warning_on_its_node():
    """Parts of 0.6 and 0.6 of one GPU are too much, parts of 0.7, 0.2 and 0.1 are not, whatever their sum in binary."""
    for parts, wanted in (((0.6, 0.6), True), ((0.7, 0.2, 0.1), False)):
        c = fleet(1, none())
        c.put(KAI_CONFIG)
        reservation(c, "n01")
        for i, part in enumerate(parts):
            c.consumer("p%d" % i, "n01", gpus=0, labels={"runai-gpu-group": "g1"}, annotations={"gpu-fraction": str(part)},
                       schedulerName="kai-scheduler")
        text = " ".join(ask(["explain", "n01", "-f", "-"], c.manifests()).stdout.split())
        expect("warning of %s" % (parts,), "warning FractionsAboveOne: KAI's fractions on one GPU add up to more than 1: group g1" in text, wanted)


@scenario
def a_fraction_pod_that_selects_no_node_is_told_so():
    """As for a pod of whole GPUs: the label that no node has, every node, and exit status 1. One that selects a node waits
    for KAI, and sees its node."""
    for selector, code, words in (({"zone": "nowhere"}, 1, "error NotSelected: the pod selects no node with GPUs"),
                                  ({}, 0, "warning NotChosen"), ({}, 0, "KAI decides by the shares in use")):
        c = fleet(2, none())
        c.put(KAI_CONFIG)
        pod = c.consumer("train", "n01", gpus=0, labels={"kai.scheduler/queue": "default-queue"}, nodeSelector=selector,
                         annotations={"gpu-fraction": "0.5"}, schedulerName="kai-scheduler")
        del pod["spec"]["nodeName"]
        pod["status"] = {"phase": "Pending"}
        c.touch(pod)
        told = ask(["explain", "team/train", "-f", "-"], c.manifests())
        expect("exit status", told.returncode, code)
        text = " ".join(told.stdout.split())
        expect_that(words in text and "NODE FOR THIS POD n01, n02" in text, words, told.stdout)
