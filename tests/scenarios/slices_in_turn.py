"""Who gets which slice, and what the others hear: pods of several priorities, and pods for which the scheduler ends others."""
from cluster.slices import SliceCluster
from scenario import expect, expect_that, scenario


def two_nodes_and_two_pods(*priorities):
    """n01 and n02 have one slice each, of nearly the whole GPU; a and b, of these priorities, wait for them and are not bound yet."""
    c = SliceCluster()
    for name in ("n01", "n02"):
        c.slice_node(name)
    for name, priority in zip(("a", "b"), priorities):
        c.wait_for_slice(name, 39, priority=priority)
    c.partition()
    expect("slices", (c.slices("n01"), c.slices("n02")), ({0: {39: 1}}, {0: {39: 1}}))
    return c


def heard(tick):
    """What each pod hears."""
    return {event["target"]["name"]: event["event"]["note"] for event in tick.events()}


@scenario
def no_slice_is_promised_twice():
    """A third pod of another priority waits: one slice serves one pod, so its Event promises none."""
    c = two_nodes_and_two_pods(5, 4)
    c.wait_for_slice("c", 39, priority=3)
    for _ in range(3):
        said = heard(c.after("2m"))
        expect("pods for which slices are planned", sorted(p for p, note in said.items() if "planned on node" in note), ["a", "b"])


@scenario
def finished_slices_of_others_keep_no_pod_from_a_node_with_room():
    """The same with an empty third node: it is cut for the third pod, which runs there."""
    c = two_nodes_and_two_pods(5, 4)
    c.slice_node("n03")
    c.wait_for_slice("c", 39, priority=3)
    c.partition()
    expect("slices of n03", c.slices("n03"), {0: {39: 1}})
    c.schedule()
    expect("pods that run", sorted(c.assigned), ["a", "b", "c"])


@scenario
def a_pod_of_the_same_priority_gets_the_node_with_room():
    """The neighbour: all three pods are alike."""
    c = two_nodes_and_two_pods(4, 4)
    c.slice_node("n03")
    c.wait_for_slice("c", 39, priority=4)
    c.partition()
    c.schedule()
    expect("pods that run", sorted(c.assigned), ["a", "b", "c"])


def beside_a_finished_slice(nominated):
    """n01 has a free slice of 20 GiB for a pod of priority 9, and one of priority 0 waits for 39. Its slices afterwards."""
    c = SliceCluster()
    c.slice_node("n01")
    high = c.wait_for_slice("high", 20, priority=9)
    c.partition()
    if nominated:
        high["status"]["nominatedNodeName"] = "n01"
    else:
        c.end_pod("high")
    c.wait_for_slice("low", 39)
    c.partition()
    return c.slices("n01")


@scenario
def a_slice_for_which_the_scheduler_ends_other_pods_is_kept():
    """The scheduler preempts others on n01 so that the pod has CPUs there: meanwhile nobody of a lower priority gets its slice."""
    expect("slices", beside_a_finished_slice(nominated=True), {0: {20: 1}})


@scenario
def a_slice_for_which_nobody_waits_is_given_up():
    """The neighbour: the pod has ended."""
    expect("slices", beside_a_finished_slice(nominated=False), {0: {39: 1}})


@scenario
def another_pod_gets_a_slice_beside_that_of_a_nominated_one():
    """The scheduler keeps the free slice for the pod that it has nominated, so one of the same size is cut for another pod."""
    c = SliceCluster()
    c.slice_node("n01")
    high = c.wait_for_slice("high", 10, priority=9)
    c.partition()
    high["status"]["nominatedNodeName"] = "n01"
    c.wait_for_slice("low", 10)
    c.partition()
    expect_that(c.slices("n01") == {0: {10: 2}}, "two slices of 10 GiB", c.slices("n01"))
