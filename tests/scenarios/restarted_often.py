"""An operator that is restarted every five minutes never remediates and never reports."""
from scenario import expect, expect_that, fleet, mps, scenario, ts


@scenario
def drift_is_repaired():
    """A node serves nothing for over an hour, and each look is a new process: it is restarted."""
    c = fleet(4, ts(4))
    c.serve("n01", 0)
    for _ in range(14):
        c.after("5m")
    expect("capacity", c.capacity("n01"), 8)


@scenario
def a_node_that_joined_wrong_ends_as_failed():
    """A new node never gets Ready pods: restarted once, then Failed, and named."""
    c = fleet(3, ts(4))
    c.add_node("n99", come_up=False)
    c.machines["n99"].behaviour = "crash"
    c.react()
    for _ in range(30):
        c.after("5m")
    expect("state", c.state("n99"), "Failed")


@scenario
def a_rolling_update_that_stands_still_is_reported():
    """No pod is replaced for over an hour."""
    c = fleet(3, mps(4))
    c.template("h2")
    c.edit(any=mps(8))
    for _ in range(20):
        tick = c.after("5m")
    expect_that(tick.findings("RollingUpdateStalled"), "RollingUpdateStalled", [f["reason"] for f in tick.all_findings])


@scenario
def daemonset_restart_where_every_node_crashes_is_degraded():
    """DaemonSetRestart, and every new pod crashes: Degraded after verifyTimeout."""
    c = fleet(4, ts(4), rollout={"mechanism": "DaemonSetRestart", "workloads": "Interrupt",
                                 "canary": {"nodesPerGroup": 0}})
    c.behave("crash", *c.nodes())
    c.edit(any=ts(8))
    for _ in range(24):
        c.after("5m")
    expect("Degraded", c.condition("default", "Degraded").get("status"), "True")
