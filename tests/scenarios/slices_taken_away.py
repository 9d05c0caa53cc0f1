"""Slices that go although pods use them, or that cannot be there: labels that people move, GPUs that die, MIG."""
from cluster.slices import SliceCluster, profile
from scenario import CONFIG_LABEL, expect, expect_that, scenario
from slices_of_pods import rewrite_keys, served


def after_a_person_labels(c, key):
    c.person_labels("n01", key)
    ticks = [c.after("2m") for _ in range(4)]
    return [action for tick in ticks for action in tick.patched("n01")]


@scenario
def a_profile_label_that_a_person_removes_under_running_pods_comes_back():
    """The plugin drops all slices, pods that use them included: two minutes later the label names the operator's key again."""
    c = served(10, 20)
    before = c.label("n01")
    after_a_person_labels(c, None)
    expect("(label, slices)", (c.label("n01"), c.slices("n01")), (before, {0: {10: 1, 20: 1}}))


@scenario
def a_profile_label_that_names_another_key_under_running_pods_is_moved_back():
    """The same with a key of the person's own, which lacks one of the slices; the label is written once."""
    c = served(10, 20)
    before = c.label("n01")
    rewrite_keys(c, dict(c.keys(), mine=profile({0: {10: 1}})))
    writes = after_a_person_labels(c, "mine")
    expect("(label, slices)", (c.label("n01"), c.slices("n01")), (before, {0: {10: 1, 20: 1}}))
    expect("writes", len(writes), 1)


@scenario
def a_profile_label_that_a_person_removes_from_a_cordoned_node_comes_back():
    """The same on a node that is cordoned: no new pod comes there, and those that run have the same need of their slices."""
    c = served(10, 20)
    before = c.label("n01")
    c.get("Node", "n01")["spec"]["unschedulable"] = True
    after_a_person_labels(c, None)
    expect("(label, slices)", (c.label("n01"), c.slices("n01")), (before, {0: {10: 1, 20: 1}}))


def with_a_key_that_the_plugin_does_not_start_with(geometry):
    """The label of n01, whose pods use 10 and 20 GiB, eight minutes after a person let it name a key with these slices."""
    c = served(10, 20)
    rewrite_keys(c, dict(c.keys(), mine=profile(geometry)))
    c.slice_nodes["n01"]["crashes"] = True
    after_a_person_labels(c, "mine")
    return c.label("n01")


@scenario
def a_profile_label_that_names_a_key_which_crashes_the_plugin_is_moved_back():
    """A person lets n01 name a key without the slices of its pods, and the plugin crashes on it: the agent reports nothing new."""
    expect_that(with_a_key_that_the_plugin_does_not_start_with({5: {10: 1}}) != "mine", "the operator's key", "mine")


@scenario
def a_profile_label_that_names_a_key_with_all_slices_of_the_pods_stays():
    """The neighbour: the person's key has them, and it is the person's to mend."""
    expect("the label", with_a_key_that_the_plugin_does_not_start_with({0: {10: 1, 20: 1, 5: 1}}), "mine")


@scenario
def a_profile_label_that_a_person_removes_from_an_idle_node_stays_away():
    """The neighbour: no pod runs there any more, so nothing is written until a pod waits."""
    c = served(10)
    c.end_pod("p0")
    c.react()
    expect("writes", after_a_person_labels(c, None), [])
    c.wait_for_slice("w", 20)
    c.partition()
    c.schedule()
    expect("pods that run", sorted(c.assigned), ["w"])


@scenario
def a_gpu_that_dies_does_not_keep_the_others_from_pods():
    """n01 had two GPUs with a key for both. One falls off the bus: a finding says so, and the other one is cut for a pod that waits."""
    c = served(39, 39, gpus=2)
    for name in ("p0", "p1"):
        c.end_pod(name)
    c.lose_gpu("n01")
    tick = c.after("2m")
    expect("nodes named", tick.found_on("PartitioningUnconfirmed"), ["n01"])
    c.wait_for_slice("w", 20)
    c.partition()
    c.schedule()
    expect("pods that run", sorted(c.assigned), ["w"])
    expect("nodes named afterwards", c.after("2m").found_on("PartitioningUnconfirmed"), [])


def beside(resource):
    """A pod with that resource runs on n01, and another one waits for a slice. The label of n01 afterwards."""
    c = SliceCluster()
    c.slice_node("n01")
    c.put({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other", "namespace": "team"},
           "spec": {"nodeName": "n01", "containers": [{"name": "main", "resources": {"limits": {resource: "1"}}}]},
           "status": {"phase": "Running"}})
    c.wait_for_slice("w", 10)
    for _ in range(4):
        c.after("2m")
    return c.label("n01")


@scenario
def a_pod_with_a_network_card_does_not_stop_partitioning():
    """NVIDIA's Network Operator offers network cards as nvidia.com/hostdev, which are no GPUs."""
    expect_that(beside("nvidia.com/hostdev"), "a key for n01", None)


@scenario
def a_pod_with_a_whole_gpu_stops_partitioning():
    """The neighbour: it is not known which GPU the pod has."""
    expect("the label", beside("nvidia.com/gpu"), None)


@scenario
def a_node_with_mig_is_named_and_left_alone():
    """GPUs of n01 are in MIG mode, where nos's agent does not run: no key and no label is written, and a finding says why."""
    c = SliceCluster()
    c.slice_node("n01", labels={"nvidia.com/mig.config": "all-1g.5gb", "nvidia.com/mig.config.state": "success"})
    c.wait_for_slice("w", 10)
    for _ in range(4):
        tick = c.after("2m")
    expect("(keys, label)", (c.keys(), c.label("n01", CONFIG_LABEL)), ({}, None))
    expect("what is said", [f["message"] for f in tick.findings("PartitioningSkipped") if "MIG" in f["message"]][:1] != [], True)
    c.set_label("n01", "nvidia.com/mig.config", "all-disabled")
    c.partition()
    c.schedule()
    expect("pods that run without MIG", sorted(c.assigned), ["w"])
