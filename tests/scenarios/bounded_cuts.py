"""What bounds the cuts of nodes: pods that slices do not help, and a ConfigMap that is full."""
from cluster.slices import CONFIG_MAP, NAMESPACE, SliceCluster
from scenario import CONFIG_LABEL, expect, expect_that, numbered, scenario, ts

CLAIM = "pod has unbound immediate PersistentVolumeClaims. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."


def nodes(count):
    c = SliceCluster()
    for number in range(count):
        c.slice_node("n%d" % number)
    return c


def looks(c, count, each, held):
    """The nodes whose slices were changed over so many looks, in their order. Nobody binds a pod."""
    cut = []
    for _ in range(count):
        cut += [a["target"]["name"] for a in c.after(each, held=held).of("PatchNode") if CONFIG_LABEL in a["set"]]
    return cut


def waiting(said, **spec):
    """Two nodes, and a pod that waits for 20 GiB, about which the scheduler says that."""
    c = nodes(2)
    c.wait_for_slice("w", 20, **spec)["status"]["conditions"][0]["message"] = said
    return c


@scenario
def no_node_is_cut_for_a_pod_that_lacks_no_slice():
    """The scheduler says that a volume claim is not bound, and nothing of slices: nothing is written, and the pod hears why."""
    c = waiting("0/2 nodes are available: " + CLAIM)
    expect("nodes that are cut", looks(c, 6, "2m", "2m"), [])
    notes = [said["event"]["note"] for said in c.plan("2m").events("SliceUnavailable")]
    expect_that(len(notes) == 1 and "no GPU is cut for it" in notes[0], "one Event that says why", notes)


@scenario
def a_node_is_cut_for_a_pod_that_lacks_its_slice_beside_something_else():
    """The neighbour: one node of two lacks the slice."""
    c = waiting("0/2 nodes are available: 1 Insufficient nvidia.com/gpu-20gb, 1 node(s) had volume node affinity conflict.")
    expect("how many nodes are cut", len(looks(c, 6, "2m", "2m")), 1)


@scenario
def the_words_of_another_scheduler_keep_no_pod_from_its_slice():
    """The neighbour: another scheduler says something that names no resource, from which nothing follows."""
    c = waiting("pod group team/w is not ready, 1 Pending, 1 minAvailable", schedulerName="volcano")
    expect("how many nodes are cut", len(looks(c, 6, "2m", "2m")), 1)


@scenario
def a_pod_that_is_never_bound_gets_three_nodes_cut_in_an_hour():
    """Slices are free for a pod, and the scheduler leaves it where it is. Each look is a restart, so that all is read from the nodes."""
    c = nodes(6)
    c.wait_for_slice("w", 20)
    cut = looks(c, 20, "3m", "20m")
    expect("nodes that are cut within an hour", (len(cut), len(set(cut))), (3, 3))
    notes = [said["event"]["note"] for said in c.plan("20m").events("SliceUnavailable")]
    expect_that(len(notes) == 1 and "no other node is cut" in notes[0], "one Event that says so", notes)


@scenario
def an_hour_later_a_fourth_node_is_cut():
    """The neighbour: it might help by then."""
    c = nodes(6)
    c.wait_for_slice("w", 20)
    expect("nodes that are cut", len(set(looks(c, 30, "3m", "20m"))) > 3, True)


@scenario
def cuts_for_others_prolong_nobody_s_hour():
    """The three nodes that were cut for a pod are cut again and again for others, which take it no further: an hour after its own cuts a fourth is cut for it."""
    c = nodes(6)
    c.wait_for_slice("w", 20)
    cut, size = [], 1
    for look in range(60):
        if look >= 10 and look % 13 == 0:
            size += 1
            for n in range(3):
                c.wait_for_slice("q%d-%d" % (n, look), size, nodeSelector={"kubernetes.io/hostname": "n%d" % n})
        if look >= 16 and look % 13 == 6:
            for n in range(3):
                c.end_pod("q%d-%d" % (n, look - 6))
        cut += looks(c, 1, "3m", "20m")
    expect_that(set(cut) - {"n0", "n1", "n2"}, "a fourth node", cut)


@scenario
def pods_that_nothing_can_serve_keep_no_other_from_its_slice():
    """A hundred pods of somebody ask for slices that no GPU has, and an Event says so of each: the one that asks for 20 GiB gets them."""
    c = nodes(2)
    for number in range(100):
        c.wait_for_slice("large-%03d" % number, 999)
    c.wait_for_slice("w", 20)
    expect("how many nodes are cut", len(looks(c, 3, "2m", "20m")), 1)


def full(of_others):
    """Four nodes that are gone have left a key each, n0 has one and one to return to, and others' data fill the ConfigMap."""
    c = nodes(1)
    for number in range(4):
        c.slice_node("old%d" % number)
        c.wait_for_slice("p%d" % number, 30, nodeSelector={"kubernetes.io/hostname": "old%d" % number})
    for size in (5, 6):
        c.wait_for_slice("q%d" % size, size, nodeSelector={"kubernetes.io/hostname": "n0"})
        c.partition()
    expect("keys", len(c.keys()), 6)
    for number in range(4) if of_others else ():
        c.lose_node("old%d" % number)
        c.end_pod("p%d" % number)
    c.keys()["notes"] = "-" * (1000000 - 100 - sum(len(key) + len(text) for key, text in c.keys().items()))
    c.touch(c.get("ConfigMap", CONFIG_MAP, NAMESPACE))
    c.wait("1h")
    c.slice_node("new")
    c.wait_for_slice("w", 20, nodeSelector={"kubernetes.io/hostname": "new"})
    return c


@scenario
def dead_keys_make_room_within_minutes_and_keys_to_return_to_stay():
    """Nothing names the keys of four nodes that are gone: they go, and n0 keeps its key to return to. A pod on a new node is served."""
    c = full(of_others=True)
    before = {key for key in c.keys() if key.startswith("gso-n0-")}
    for _ in range(5):
        c.after("6m")
    expect("slices of the new node", c.slices("new"), {0: {20: 1}})
    expect_that(before <= set(c.keys()) and "notes" in c.keys(), "the keys of n0 and the data of others", sorted(c.keys()))


@scenario
def keys_to_return_to_make_room_where_there_are_no_dead_ones():
    """The neighbour: all nodes are there. The key to return to, which n0 has not needed for long, makes the room."""
    c = full(of_others=False)
    for _ in range(5):
        c.after("6m")
    expect("slices of the new node", c.slices("new"), {0: {20: 1}})


@scenario
def a_cut_and_a_restart_share_the_budget_of_the_cluster():
    """One node may be unavailable. A pod waits for a slice, and a profile of the official plugin is edited: no look begins both."""
    c = SliceCluster({"any": ts(4)}, options=["--cluster-max-unavailable", "1"])
    c.add_nodes(*numbered(3))
    c.slice_node("s01")
    c.install()
    c.wait_for_slice("w", 20, nodeSelector={"kubernetes.io/hostname": "s01"})
    c.after("2m")
    c.edit(any=ts(8))
    for _ in range(20):
        tick = c.after("2m")
        begun = tick.started() + ["s01" for a in tick.of("PatchNode") if "gso-" in a.get("set", {}).get(CONFIG_LABEL, "")]
        expect_that(len(begun) <= 1, "one node at a time", begun)
    expect("capacity", {c.capacity(name) for name in numbered(3)}, {16})
    expect("slices of s01", c.slices("s01"), {0: {20: 1}})
