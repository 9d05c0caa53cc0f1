"""Dynamic MPS partitioning over several looks: slices that pods use stay, whatever people and late reports do."""
from cluster.slices import CONFIG_MAP, MARK, NAMESPACE, NOS, NOS_BEFORE, SliceCluster, geometry_of, profile
from scenario import CONFIG_LABEL, expect, expect_that, scenario


def served(*sizes, **options):
    """A node n01 that has slices of these sizes, each used by a pod p0, p1, ..."""
    c = SliceCluster()
    c.slice_node("n01", **options)
    for at, size in enumerate(sizes):
        c.wait_for_slice("p%d" % at, size)
    c.partition()
    c.schedule()
    c.react()
    expect("pods that run", sorted(c.assigned), ["p%d" % at for at in range(len(sizes))])
    return c


def rewrite_keys(c, data):
    found = c.get("ConfigMap", CONFIG_MAP, NAMESPACE)
    found["data"] = data
    c.touch(found)


@scenario
def pods_that_wait_get_their_slices():
    """Two pods wait: one key, one label, and both run; the look after that is silent."""
    c = served(10, 20)
    expect("slices", c.slices("n01"), {0: {10: 1, 20: 1}})
    expect("keys", len(c.keys()), 1)


@scenario
def the_key_of_a_node_that_vanished_is_put_back():
    """The fork's chart is upgraded and writes its ConfigMap anew: the key that a node's label names is back at the next look."""
    c = served(10, 20)
    before = dict(c.keys())
    rewrite_keys(c, {})
    c.after("2m")
    expect("keys", c.keys(), before)
    expect("the label", c.label("n01"), list(before)[0])


@scenario
def the_key_of_a_node_that_vanished_with_its_slices_is_written_for_a_pod_that_waits():
    """The same, and the plugin has restarted without the key, so that n01 reports nothing: a pod that waits gets the slice that it had."""
    c = served(10)
    c.end_pod("p0")
    rewrite_keys(c, {})
    c.slice_nodes["n01"]["loaded"] = {}
    c.react()
    c.wait_for_slice("w", 10)
    c.partition()
    c.schedule()
    expect("pods that run", sorted(c.assigned), ["w"])


@scenario
def a_key_that_is_still_there_is_not_written_again():
    """The neighbour: the ConfigMap gets a further key of somebody else, and the operator writes nothing."""
    c = served(10, 20)
    rewrite_keys(c, dict(c.keys(), other="version: v1\n"))
    expect("writes", [a for a in c.after("2m").actions if a["action"] == "PatchConfigMap"], [])


def two_gpus_in_halves(used_by, gpu):
    """n01 with slices of 20 and 19 GiB on each of two GPUs. Only that pod, a or b, has one: 20 GiB of that GPU. A pod waits for 39 GiB."""
    c = SliceCluster()
    c.slice_node("n01", gpus=2)
    sizes = {"a": 20, "b": 20, "x": 19, "y": 19}
    for name, size in sizes.items():
        c.wait_for_slice(name, size)
    c.partition()
    c.bind(used_by, "n01", [gpu])
    for name in sizes:
        if name != used_by:
            c.end_pod(name)
    c.react()
    c.wait_for_slice("big", 39)
    return c


@scenario
def a_slice_that_a_pod_took_a_moment_ago_stays():
    """A pod ended on GPU 0 and another one was bound on GPU 1 five seconds ago; the agent reports every ten: GPU 1 keeps it."""
    c = two_gpus_in_halves("a", 0)
    c.after("2m")  # The key for it.
    c.wait("2m")
    c.slice_nodes["n01"]["agent"] = False
    c.end_pod("a")
    c.wait_for_slice("late", 20)
    expect_that(c.bind("late", "n01", [1]), "a free slice on GPU 1")
    c.after("5s", held="2m")  # The model fails where a used slice leaves.
    expect_that(c.slices("n01").get(1, {}).get(20, 0) == 1, "GPU 1 to keep the slice", c.slices("n01"))


@scenario
def a_slice_that_a_pod_took_before_the_last_report_stays():
    """The neighbour: the agent has reported since, and GPU 0 is the one that is cut."""
    c = two_gpus_in_halves("b", 1)
    c.partition()
    expect("slices", c.slices("n01")[0], {39: 1})


@scenario
def a_key_that_another_node_names_is_not_rewritten():
    """n01's key was edited and a person let n02 name it: pods use its slices on n02, and n01's turn does not rewrite it."""
    c = SliceCluster()
    c.slice_node("n01")
    c.wait_for_slice("a", 10, nodeSelector={"kubernetes.io/hostname": "n01"})
    c.after("2m")
    c.after("2m")
    key = list(c.keys())[0]
    rewrite_keys(c, {key: profile({0: {10: 1, 20: 1}})})
    c.slice_node("n02", labels={CONFIG_LABEL: key})
    c.wait_for_slice("user", 20, nodeSelector={"kubernetes.io/hostname": "n02"})
    c.schedule()
    c.react()
    expect("where the pod runs", c.assigned.get("user", [""])[0], "n02")
    c.after("2m")  # The model fails where a used slice leaves.
    expect("slices of the key", geometry_of(c.keys()[key]), {0: {10: 1, 20: 1}})


@scenario
def a_plugin_that_is_not_the_fork_gets_no_slices_by_size():
    """The official plugin v0.17.1 was put on the label of nos: one replica ends it, so nothing is written, and a finding says so."""
    c = SliceCluster()
    c.fork(image="nvcr.io/nvidia/k8s-device-plugin:v0.17.1")
    c.slice_node("n01")
    c.wait_for_slice("a", 10)
    ticks = [c.after("2m") for _ in range(4)]
    expect("keys", list(c.keys()), [])
    expect("the label", c.label("n01"), None)
    expect_that(any(tick.found_on("PartitioningNeedsFork") for tick in ticks), "PartitioningNeedsFork about n01",
                ticks[-1].all_findings)


@scenario
def a_node_with_the_former_label_and_a_key_of_nos_is_served():
    """Only nos.nebuly.ai stands there, and the profile label still names a key of nos: no plugin ever reports it, and pods wait."""
    c = SliceCluster()
    c.keys()["n01-1700000000"] = profile({0: {10: 2}})
    c.slice_node("n01", spelling=NOS_BEFORE, labels={CONFIG_LABEL: "n01-1700000000"})
    c.wait_for_slice("a", 20)
    for _ in range(6):
        c.after("20m")
        c.schedule()
    expect("the label that the plugin selects by", c.label("n01", NOS), "mps")
    expect("pods that run", sorted(c.assigned), ["a"])


@scenario
def a_node_with_the_former_label_is_served():
    """The neighbour: the same node without a profile label."""
    c = SliceCluster()
    c.slice_node("n01", spelling=NOS_BEFORE)
    c.wait_for_slice("a", 20)
    for _ in range(6):
        c.after("20m")
        c.schedule()
    expect("pods that run", sorted(c.assigned), ["a"])


@scenario
def a_node_that_was_released_and_gets_the_former_label_is_served():
    """The agent's report of before still stands there: no plugin offers those slices, so the node gets its label, and pods run."""
    c = served(10)
    c.end_pod("p0")
    c.react()
    c.set_label("n01", NOS, None)
    for _ in range(3):
        c.after("2m")
    expect("the profile label of the released node", c.label("n01"), None)
    c.set_label("n01", NOS_BEFORE, "mps")
    c.wait_for_slice("a", 10)
    for _ in range(4):
        c.after("2m")
    expect("the label that the plugin selects by", c.label("n01", NOS), "mps")
    c.schedule()
    expect("pods that run", sorted(c.assigned), ["a"])


@scenario
def the_present_label_comes_back_where_the_owner_left_the_former_one():
    """A script resets labels and takes nos.nebuly.com away, which the operator had set: the plugin leaves, so it is set again."""
    c = served(10, spelling=NOS_BEFORE)
    c.set_label("n01", NOS, None)
    for _ in range(4):
        c.after("10m")
    expect("the label that the plugin selects by", c.label("n01", NOS), "mps")
    expect("allocatable", c.node("n01")["status"]["allocatable"], {"nvidia.com/gpu-10gb": "1"})


@scenario
def leaving_restores_no_key_of_the_operator():
    """Its annotation was removed, as a finding advises; after another move the node leaves: no label names the operator's key."""
    c = served(10)
    c.annotate("Node", "n01", MARK, None)
    c.wait_for_slice("b", 20)
    c.partition()
    c.schedule()
    for name in ("p0", "b"):
        c.end_pod(name)
    c.react()
    c.set_label("n01", NOS, None)
    for _ in range(3):
        c.after("2m")
    expect("the profile label", c.label("n01"), None)


@scenario
def leaving_restores_what_stood_there_before():
    """The neighbour: a person's label stood there, and it is back."""
    c = served(10, labels={CONFIG_LABEL: "custom"})
    c.end_pod("p0")
    c.react()
    c.set_label("n01", NOS, None)
    for _ in range(3):
        c.after("2m")
    expect("the profile label", c.label("n01"), "custom")
    expect("its annotation", c.annotations("n01").get(MARK), None)


@scenario
def a_report_that_makes_no_sense_does_not_stop_the_operator():
    """One node claims a GPU of 200 TiB with thousands of slices: it is skipped in time, and the other node is partitioned."""
    c = SliceCluster()
    node = c.slice_node("n01", mib=200 << 20)
    c.slice_nodes["n01"]["agent"] = False
    for size in range(1, 20):
        c.annotations("n01")["nos.nebuly.com/status-gpu-0-%dgb-free" % size] = "1000"
    c.touch(node)
    c.slice_node("n02")
    for name in ("a", "b"):
        c.wait_for_slice(name, 8000)
    c.wait_for_slice("c", 10, nodeSelector={"kubernetes.io/hostname": "n02"})
    for _ in range(4):
        c.after("2m")  # `plan` has 30 seconds.
    c.schedule()
    expect("pods that run", sorted(c.assigned), ["c"])


@scenario
def a_label_that_is_away_for_seconds_takes_no_slices():
    """A controller sets a node's labels anew, and nos's label is away for ten seconds: the slices of running pods stay."""
    c = served(10)
    before = c.label("n01")
    c.set_label("n01", NOS, None)
    c.after("5s")
    c.after("5s")
    c.set_label("n01", NOS, "mps")  # The model fails where a used slice leaves.
    c.after("2m")
    expect("the profile label", c.label("n01"), before)


@scenario
def a_held_node_is_not_released():
    """A person holds n01 and takes its label away: the operator skips the node until the hold is gone."""
    c = served(10)
    before = c.label("n01")
    c.annotate("Node", "n01", "gpusharing.dev/hold", "true")
    c.set_label("n01", NOS, None)
    for _ in range(3):
        c.after("10m")
    expect("the profile label while it is held", c.label("n01"), before)
    c.end_pod("p0")
    c.annotate("Node", "n01", "gpusharing.dev/hold", None)
    for _ in range(3):
        c.after("10m")
    expect("the profile label afterwards", c.label("n01"), None)


@scenario
def a_node_that_the_official_plugin_serves_as_well_is_left_alone():
    """The official plugin's DaemonSet selects n01 beside the fork, and its sidecar follows the same label: nothing is written."""
    c = SliceCluster()
    c.slice_node("n01", labels={"nvidia.com/gpu.present": "true"})
    c.wait_for_slice("a", 10)
    for _ in range(4):
        tick = c.after("2m")
    expect("the profile label", c.label("n01"), None)
    expect_that([f for f in tick.all_findings if f["object"]["name"] == "n01"], "a finding about n01", tick.all_findings)


@scenario
def a_node_that_only_the_official_plugin_serves_is_left_alone():
    """The neighbour: without the fork nothing is written, and PartitioningNeedsFork names the node."""
    c = SliceCluster()
    c.remove("DaemonSet", "nvidia-device-plugin", NAMESPACE)
    c.slice_node("n01", labels={"nvidia.com/gpu.present": "true"})
    c.wait_for_slice("a", 10)
    for _ in range(4):
        tick = c.after("2m")
    expect("(label, named)", (c.label("n01"), tick.found_on("PartitioningNeedsFork")), (None, ["n01"]))


def with_a_pod_that_asks_for_cpus(cpus):
    """n01 has 8 CPUs and one GPU. A pod of high priority wants all of the GPU and so many CPUs, another one 20 GiB."""
    c = SliceCluster()
    node = c.slice_node("n01")
    node["status"]["capacity"]["cpu"] = node["status"]["allocatable"]["cpu"] = "8"
    greedy = c.wait_for_slice("greedy", 39, priority=5)
    for kind in ("requests", "limits"):
        greedy["spec"]["containers"][0]["resources"][kind]["cpu"] = cpus
    c.wait_for_slice("modest", 20)
    c.partition()
    return c


@scenario
def a_pod_that_no_node_has_the_cpus_for_takes_no_slices_from_others():
    """The first pod asks for 64 CPUs and can never be bound: the scheduler finds a slice for the other one."""
    c = with_a_pod_that_asks_for_cpus("64")
    expect_that(c.bind("modest", "n01"), "a slice of 20 GiB", c.slices("n01"))


@scenario
def a_pod_that_a_node_has_the_cpus_for_comes_first():
    """The neighbour: it asks for 4 CPUs, and gets its slice."""
    c = with_a_pod_that_asks_for_cpus("4")
    expect_that(c.bind("greedy", "n01"), "a slice of 39 GiB", c.slices("n01"))
