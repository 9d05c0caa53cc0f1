"""A node that is not Blocked any more starts in the same look in which its mark goes: two patches of one node that contradict."""
from scenario import CONFIG_LABEL, expect, fleet, mps, scenario, ts


def patches_of_one_look(c):
    c.wait("3m")
    names = [action["target"]["name"] for action in c.plan("3m").of("PatchNode")]
    expect("nodes with two patches in one look", sorted({name for name in names if names.count(name) > 1}), [])
    c.converge()


@scenario
def a_taint_that_goes_lets_the_node_start_by_one_patch():
    """A node is Blocked by a taint during an edit; the taint goes: the node follows, by one patch."""
    c = fleet(3, mps(4))
    c.node("n02")["spec"]["taints"] = [{"key": "maintenance", "value": "true", "effect": "NoSchedule"}]
    c.touch(c.node("n02"))
    c.edit(any=mps(8))
    c.converge()
    expect("state", c.state("n02"), "Blocked")
    c.node("n02")["spec"]["taints"] = []
    c.touch(c.node("n02"))
    patches_of_one_look(c)
    expect("capacity", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def a_wrong_label_that_a_person_takes_away_lets_the_node_start_by_one_patch():
    """A label names a key that does not exist; after an edit of the default a person removes it."""
    c = fleet(3, ts(4))
    c.set_label("n02", CONFIG_LABEL, "typo")
    for _ in range(4):
        c.after("3m")
    expect("state", c.state("n02"), "Blocked")
    c.edit(any=ts(8))
    c.converge()
    c.set_label("n02", CONFIG_LABEL, None)
    patches_of_one_look(c)
    expect("capacity", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def a_node_that_is_recorded_and_no_longer_blocked_gets_one_patch():
    """A wrong label is removed, the default is edited, and the node reboots: one patch records it and removes its mark."""
    c = fleet(2, ts(4))
    c.set_label("n01", CONFIG_LABEL, "nokey")
    for _ in range(3):
        c.after("2m")
    expect("state", c.state("n01"), "Blocked")
    c.labels("n01").pop(CONFIG_LABEL)
    c.edit(any=ts(6))
    c.restart("n01")
    for _ in range(4):
        reasons = [action["reason"] for action in c.after("30s").patched("n01")]
        expect("patches of n01 in one look, beyond the first", reasons[1:], [])
    expect("state", c.state("n01"), "")
