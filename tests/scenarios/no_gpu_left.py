"""A node that shows 0 of 0 GPUs counts as in service: it is the canary, and its failure stops the fleet."""
from scenario import GFD_LABELS, GPU, expect, fleet, scenario, ts

OPTIONS = ["--cluster-max-unavailable", "100%"]
BUDGET = {"maxUnavailable": 2, "maxUnavailablePerGroup": 2}


def others_are_rolled(c, sick):
    c.edit(any=ts(8))
    for _ in range(25):
        c.after("11m")
    expect("nodes that do not run the edit", [n for n in c.nodes() if n != sick and c.capacity(n) != 16], [])


@scenario
def a_node_that_lost_all_gpus_before_the_edit_stops_nobody():
    """All GPUs of a node fell off the bus before the edit: GFD counts 0, and the kubelet shows 0."""
    c = fleet(6, ts(4), rollout=BUDGET, options=OPTIONS)
    c.reboot("n01", gpus=0)
    c.after("1m")
    others_are_rolled(c, "n01")


@scenario
def a_node_without_driver_and_labels_before_the_edit_stops_nobody():
    """After a reboot without driver the plugin crashes, the kubelet shows 0 of 0, and GFD's labels are gone."""
    c = fleet(6, ts(4), rollout=BUDGET, options=OPTIONS)
    c.behave("crash", "n05")
    c.restart("n05")
    c.node("n05")["status"].update(capacity={GPU: "0"}, allocatable={GPU: "0"})
    c.machines["n05"].gfd = False
    for key in GFD_LABELS:
        c.labels("n05").pop(key, None)
    c.touch(c.node("n05"))
    c.after("1m")
    others_are_rolled(c, "n05")
