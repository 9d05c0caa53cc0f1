"""Nodes as nos has left them: it counts memory in thousands, rounded up, so that it cuts most GPUs beyond what they have."""
import json

from cluster.slices import SliceCluster
from scenario import expect, expect_that, scenario

CARDS = {  # MiB of the label -> how nos has cut the card in full, and a slice that is wanted in place of two of these.
    40536: ({10: 4}, 20), 81559: ({10: 8}, 20), 15360: ({8: 2}, 12), 32510: ({16: 2}, 24), 23028: ({12: 2}, 16),
    46068: ({23: 2}, 30)}


def heard(c, pod):
    return [said["event"] for said in c.plan("2m").events() if said["target"]["name"] == pod]


@scenario
def a_gpu_that_nos_has_cut_in_full_is_cut_again_for_a_pod():
    """All slices of the card are free, and a pod wants a larger one: it runs, whatever the card."""
    for mib, (sizes, wanted) in CARDS.items():
        c = SliceCluster()
        c.slice_node("n01", mib=mib, cut={0: sizes})
        c.wait_for_slice("w", wanted)
        c.partition()
        c.schedule()
        expect("pods that run on %d MiB" % mib, sorted(c.assigned), ["w"])


@scenario
def a_slice_of_a_gpu_that_nos_has_cut_in_full_serves_a_pod_as_it_is():
    """The neighbour: a free slice fits the pod, and nothing is changed."""
    c = SliceCluster()
    c.slice_node("n01", mib=40536, cut={0: {10: 4}})
    c.wait_for_slice("w", 10)
    expect("writes", [a for a in c.after("2m").actions if a["action"] != "RecordEvent"], [])


@scenario
def used_slices_beyond_the_memory_stay_and_the_gpu_gets_nothing_new():
    """Pods use all slices of GPU 0, and those of GPU 1 are free: a pod gets its slice on GPU 1, which keeps within its memory."""
    c = SliceCluster()
    c.slice_node("n01", gpus=2, mib=40536, cut={0: {10: 4}, 1: {10: 4}})
    for at in range(4):
        c.wait_for_slice("p%d" % at, 10)
        expect_that(c.bind("p%d" % at, "n01", [0]), "a free slice on GPU 0")
    c.react()
    c.wait("10m")
    c.wait_for_slice("w", 20)
    c.partition()
    c.schedule()
    expect("slices of GPU 0", c.slices("n01")[0], {10: 4})
    expect("the GPU of the pod", c.assigned["w"], ("n01", [(1, 20)]))
    c.wait_for_slice("late", 20)
    expect_that(all(said["reason"] == "SliceUnavailable" for said in heard(c, "late")), "no slice for a pod too many", heard(c, "late"))


@scenario
def a_gpu_that_is_not_cut_gives_up_what_is_beyond_its_memory_as_well():
    """Both GPUs are cut in full and free: with the slice for the pod, the new key promises of no GPU more than it has."""
    c = SliceCluster()
    c.slice_node("n01", gpus=2, mib=40536, cut={0: {10: 4}, 1: {10: 4}})
    c.wait_for_slice("w", 20)
    c.partition()  # The model fails where a GPU promises more.
    for gpu, sizes in c.slices("n01").items():
        expect_that(sum(size * count for size, count in sizes.items()) <= 39, "39 GiB at most on GPU %d" % gpu, sizes)


@scenario
def a_report_that_no_rounding_explains_is_left_alone():
    """The neighbour: five slices of 10 on a card of 40536 MiB. The node is named, and the pod hears that it is left alone."""
    c = SliceCluster()
    c.slice_node("n01", mib=40536)
    c.get("Node", "n01")["metadata"]["annotations"]["nos.nebuly.com/status-gpu-0-10gb-free"] = "5"
    c.slice_nodes["n01"]["agent"] = False
    c.wait_for_slice("w", 20)
    notes = heard(c, "w")
    expect("reasons", [said["reason"] for said in notes], ["SliceUnavailable"])
    expect_that("GPU 0 reports slices of 50 GiB" in notes[0]["note"], "why its node is left alone", notes)


def with_two_models(**annotations):
    """GPU 0 has 15360 MiB and GPU 1 has 40960, which GFD labels. Two pods want 30 GiB each, one 12."""
    c = SliceCluster()
    node = c.slice_node("n01", gpus=2, mib=[15360, 40960])
    node["metadata"]["annotations"].update(annotations)
    for name, size in (("a", 30), ("b", 30), ("small", 12)):
        c.wait_for_slice(name, size)
    return c


@scenario
def gpus_of_two_models_are_cut_by_their_own_memory():
    """The annotation states both: only one pod of 30 GiB is served, and the small one beside it."""
    c = with_two_models(**{"gpusharing.dev/devices": json.dumps(
        [{"name": "Tesla T4", "memoryMiB": 15360}, {"name": "NVIDIA A100-PCIE-40GB", "memoryMiB": 40960}])})
    c.partition()  # The model fails where the smaller GPU promises more than it has.
    c.schedule()
    expect("pods that run", sorted(c.assigned), ["a", "small"])


@scenario
def a_gpu_without_memory_in_the_annotation_counts_as_the_smallest():
    """The annotation states the memory of the smaller GPU alone: nothing is promised beyond that on either."""
    c = with_two_models(**{"gpusharing.dev/devices": json.dumps(
        [{"name": "Tesla T4", "memoryMiB": 15360}, {"name": "NVIDIA A100-PCIE-40GB"}])})
    c.partition()
    c.schedule()
    expect("pods that run", sorted(c.assigned), ["small"])


@scenario
def a_node_whose_stated_gpus_cannot_be_read_is_left_alone():
    """The annotation is no list of GPUs: no GPU is cut by a guess, and the node is named."""
    c = with_two_models(**{"gpusharing.dev/devices": "[15360]"})
    found = [f["message"] for f in c.plan("2m").all_findings if f["object"]["name"] == "n01"]
    expect_that(any("gpusharing.dev/devices cannot be read" in text for text in found), "a finding about n01", found)
    c.partition()
    expect("slices", c.slices("n01"), {})


@scenario
def gpus_of_unknown_size_make_no_pod_too_large():
    """GFD has not labelled the memory of n01's GPUs yet: the pod hears that, and not that no node could ever hold it."""
    c = SliceCluster()
    del c.slice_node("n01")["metadata"]["labels"]["nvidia.com/gpu.memory"]
    c.wait_for_slice("w", 20)
    notes = heard(c, "w")
    expect("reasons", [said["reason"] for said in notes], ["SliceUnavailable"])
    expect_that("nvidia.com/gpu.memory is missing" in notes[0]["note"], "what is missing", notes)


@scenario
def gpus_that_cannot_be_divided_hold_no_slice_and_the_event_says_why():
    """The neighbour: n01's GPUs are older than Volta, where MPS limits no memory: no slice ever fits there."""
    c = SliceCluster()
    c.slice_node("n01", labels={"nvidia.com/gpu.compute.major": "6"})
    c.wait_for_slice("w", 20)
    notes = heard(c, "w")
    expect("reasons", [said["reason"] for said in notes], ["SliceTooLarge"])
    expect_that("older than Volta" in notes[0]["note"] and "size is known" not in notes[0]["note"], "why", notes)
