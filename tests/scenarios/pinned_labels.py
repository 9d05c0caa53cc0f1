"""A label that names the key which a node has anyway, and nodes that read an edit before their turn."""
from scenario import CONFIG_LABEL, REVISION, Cluster, expect, expect_that, fleet, numbered, one, scenario, ts

def edited_under_a_pause(**options):
    c = fleet(3, ts(4), more={"two": ts(2)}, rollout={"paused": True}, **options)
    c.edit(any=ts(8))
    c.after("5m")
    return c


@scenario
def a_label_that_names_the_default_key_starts_nothing():
    """n01 has the default key, and a person labels it with that key while an edit waits: the sidecars see the same file
    and reload nothing. The operator restarts the node in its turn, like the others."""
    c = edited_under_a_pause()
    before = c.uids("n01")
    c.set_label("n01", CONFIG_LABEL, "any")
    ticks = [c.after("5m") for _ in range(4)]
    expect("capacity, pods", (c.capacity("n01"), c.uids("n01")), (8, before))
    expect("nodes that start", [name for tick in ticks for name in tick.started()], [])
    expect("findings about n01", [f for f in ticks[-1].all_findings if f["object"]["name"] == "n01"], [])
    c.policy(rollout={"paused": False})
    run = c.converge()
    expect("nodes that start", sorted(run.started()), c.nodes())
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})


def read_early(c):
    """The label of n01 goes to another key and back within seconds: its plugin and GFD read the edit."""
    c.set_label("n01", CONFIG_LABEL, "two")
    c.wait("5s")
    c.set_label("n01", CONFIG_LABEL, None)
    expect("capacity", c.capacity("n01"), 16)


@scenario
def a_node_that_reads_an_edit_before_its_turn_is_named():
    """The label of n01 is changed and changed back while an edit waits: n01 shows the edit without canary and budget. A
    finding says so for as long as it waits, and it does not count as up to date."""
    c = edited_under_a_pause()
    before = c.annotations("n01").get(REVISION)
    read_early(c)
    for tick in [c.after("5m") for _ in range(4)]:
        expect("nodes that are named", tick.found_on("LoadedUngated"), ["n01"])
        expect("whether something starts", tick.disrupts(), False)
    expect("counts", (c.counts()["upToDate"], c.counts()["pending"]), (0, 3))
    expect("the recorded revision", c.annotations("n01").get(REVISION), before)


@scenario
def a_node_that_has_read_an_edit_before_its_turn_is_no_canary():
    """The pause ends: one node starts as canary, and the others wait for its soak, although n01 shows the edit."""
    c = edited_under_a_pause()
    read_early(c)
    c.after("5m")
    c.policy(rollout={"paused": False, "canary": {"nodesPerGroup": 1, "soak": "30m"}})
    ticks = [c.after("2m") for _ in range(10)]
    one([name for tick in ticks for name in tick.started()])
    expect("nodes that are up to date", c.counts()["upToDate"], 1)
    run = c.converge(each="10m")
    expect("nodes that start after the soak", len(set(run.started())), 2)
    expect("findings", run.ticks[-1].found_on("LoadedUngated"), [])


@scenario
def a_node_that_waits_for_an_edit_is_not_said_to_have_read_it():
    """The neighbour: n01 waits like the others, and shows what it has loaded."""
    c = edited_under_a_pause()
    expect("findings", [c.after("5m").found_on("LoadedUngated") for _ in range(3)], [[], [], []])


@scenario
def the_operator_does_not_pin_a_node_while_an_edit_waits():
    """No default key is set, and the nodes use the only key. A policy names that key, and an edit waits under a pause:
    the operator writes no label before the pause ends."""
    c = Cluster({"any": ts(4)}, default="", fallbacks="named,single")
    c.add_nodes(*numbered(2))
    c.install()
    c.edit(any=ts(8))
    c.policy("p", priority=5, profile={"configMapKey": "any"}, rollout={"paused": True})
    for _ in range(4):
        c.after("5m")
    expect("labels", {c.labels(name).get(CONFIG_LABEL) for name in c.nodes()}, {None})
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {8})
    c.policy("p", rollout={"paused": False})
    run = c.converge()
    expect_that(set(run.started()) == set(c.nodes()), "both nodes to start", run.started())
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})
