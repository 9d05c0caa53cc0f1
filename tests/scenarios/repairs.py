"""Repairs of nodes that have stopped showing the profile that they run."""
from scenario import expect, fleet, mps, scenario


@scenario
def a_drifting_mps_node_under_approve_is_repaired():
    """Under Approve an MPS node shows another number of replicas: it is repaired without an approval, at the first attempt."""
    c = fleet(4, mps(4))
    c.policy(mode="Approve")
    c.after("1m")
    c.serve("n01", 4)
    c.labels("n01")["nvidia.com/gpu.replicas"] = "2"
    for _ in range(8):
        c.after("11m")
    starts = sum(1 for tick in c.ticks if "n01" in tick.started())
    expect("the capacity of n01", c.capacity("n01"), 8)
    expect("how often n01 was started", starts, 1)


@scenario
def a_repair_that_waits_for_a_pod_under_approve_keeps_its_cordon():
    """Under Approve an MPS node with a pod on it must be repaired: it is cordoned once, and waits for the pod."""
    c = fleet(3, mps(4))
    c.policy(mode="Approve")
    c.after("1m")
    c.consumer("job", "n01")
    c.serve("n01", 4)
    c.labels("n01")["nvidia.com/gpu.replicas"] = "2"
    cordons = 0
    for _ in range(8):
        cordons += sum(1 for a in c.after("5m", held="11m").of("PatchNode") if a.get("unschedulable") is True)
    expect("cordons", cordons, 1)
