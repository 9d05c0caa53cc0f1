"""Nodes that nos partitions: another controller is in charge of their GPUs."""
from scenario import CONFIG_LABEL, expect, expect_that, fleet, mps, one, scenario

NOS = "nos.nebuly.com/gpu-partitioning"
NOS_BEFORE = "nos.nebuly.ai/gpu-partitioning"


def give_to_nos(c, name, label=NOS):
    """What a person and then nos itself write: the label, and the key of the node's own profile."""
    c.set_label(name, label, "mps")
    c.set_label(name, CONFIG_LABEL, name + "-1700000000")


@scenario
def nodes_of_nos_are_left_alone_and_hold_no_budget():
    """Two nodes of four belong to nos, and neither serves now: the other two are rolled, and these stay as they are."""
    c = fleet(4, mps(4), rollout={"maxUnavailable": 1, "maxUnavailablePerGroup": 1})
    give_to_nos(c, "n01")
    give_to_nos(c, "n02", NOS_BEFORE)
    for name in ("n01", "n02"):
        c.serve(name, 8, allocatable=0)
    before = {name: (c.uids(name), dict(c.labels(name)), dict(c.annotations(name))) for name in ("n01", "n02")}
    c.edit(any=mps(8))
    c.converge()
    after = {name: (c.uids(name), dict(c.labels(name)), dict(c.annotations(name))) for name in ("n01", "n02")}
    expect("nodes of nos", after, before)
    expect("capacity of the others", {c.capacity(name) for name in ("n03", "n04")}, {16})
    expect("nodes that the policy counts", c.counts().get("total"), 2)
    expect("blocked nodes", c.blocked(), {})
    said = c.condition("default", "PartitionedByNos")
    expect("PartitionedByNos", said.get("status"), "True")
    expect_that("n01, n02" in said.get("message", ""), "a message that names n01 and n02", said.get("message"))


@scenario
def a_drain_is_taken_back_when_nos_takes_the_node():
    """A node waits for its pods when it is given to nos: it is uncordoned, and no pod of it is restarted."""
    c = fleet(2, mps(4))
    for name in c.nodes():
        c.consumer("job-" + name, name)
    c.edit(any=mps(8))
    c.after("2m")
    name = one(c.in_progress())
    before = c.uids(name)
    expect("whether it is cordoned", c.cordoned(name), True)
    give_to_nos(c, name)
    c.after("10s")
    expect("whether it is cordoned afterwards", c.cordoned(name), False)
    expect("its state", c.state(name), "")
    c.end("job-" + name)
    c.converge()
    expect("its pods", c.uids(name), before)


@scenario
def a_node_that_nos_returns_gets_the_profile_of_the_others():
    """The label of nos goes away after an edit: the node is verified like one that joins, and gets there."""
    c = fleet(3, mps(4))
    give_to_nos(c, "n01")
    c.edit(any=mps(8))
    c.converge()
    expect("capacity of n01 while nos has it", c.capacity("n01"), 8)
    c.set_label("n01", NOS, None)
    c.set_label("n01", CONFIG_LABEL, None)
    c.converge()
    expect("capacity", {c.capacity(name) for name in c.nodes()}, {16})
    expect("nodes that the policy counts", c.counts().get("total"), 3)
    expect("PartitionedByNos", c.condition("default", "PartitionedByNos").get("status"), "False")
    expect("Ready", c.condition("default", "Ready").get("status"), "True")
