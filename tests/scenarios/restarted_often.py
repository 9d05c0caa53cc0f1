"""An operator that is restarted every five minutes never remediates and never reports."""
from scenario import expect, expect_that, fleet, mps, one, scenario, ts


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
def a_canary_that_is_lost_is_reported_with_the_way_out():
    """Each look is a new operator, and the canary is NotReady for over an hour: the policy stands still, and says what to do."""
    c = fleet(3, mps(4), rollout={"workloads": "Interrupt"})
    c.edit(any=mps(8))
    name = one(c.after("2m").started())
    c.set_ready(name, False)
    for _ in range(16):
        c.after("5m")
    shown = c.condition("default", "Progressing")
    expect("(status, reason)", (shown["status"], shown["reason"]), ("False", "NodesNotReady"))
    expect_that("delete the Node" in shown["message"], "the way out", shown["message"])
    c.set_ready(name, True)
    c.converge()
    expect("capacity", {c.capacity(node) for node in c.nodes()}, {16})


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


@scenario
def a_soak_ends_though_the_operator_restarts_every_six_minutes():
    """A soak of one hour, and every look is a new operator: the wave follows within 84 minutes and not within 50."""
    c = fleet(4, ts(4), rollout={"maxUnavailable": "100%", "maxUnavailablePerGroup": "100%", "canary": {"nodesPerGroup": 1, "soak": "1h"}},
              options=["--cluster-max-unavailable", "100%"])
    c.edit(any=ts(8))
    early = sum([c.after("6m").started() for _ in range(8)], [])
    one(early)
    late = sum([c.after("6m").started() for _ in range(8)], [])
    expect("nodes that follow", sorted(late), [name for name in c.nodes() if name not in early])


@scenario
def a_node_that_never_comes_up_fails_though_the_operator_restarts_every_four_minutes():
    """verifyTimeout is ten minutes, and every look is a new operator: the canary that crashes is Failed all the same."""
    c = fleet(3, ts(4))
    c.behave("crash", *c.nodes())
    c.edit(any=ts(8))
    for _ in range(9):
        c.after("4m", held="4m")
    failed = [name for name in c.nodes() if c.state(name) == "Failed"]
    expect("failed nodes", len(failed), 1)


@scenario
def a_busy_node_is_uncordoned_though_the_operator_restarts_every_six_minutes():
    """idleTimeout is one hour, and every look is a new operator: the node that waits for its pods is uncordoned within 92
    minutes, and not within 50."""
    c = fleet(1, mps(4), rollout={"idleTimeout": "1h"})
    c.consumer("job-0", "n01")
    c.edit(any=mps(8))
    expect("nodes that were started", c.after("2m").started(), ["n01"])
    for _ in range(8):
        c.after("6m", held="6m")
    expect("whether n01 is cordoned after 50 minutes", c.cordoned("n01"), True)
    for _ in range(7):
        c.after("6m", held="6m")
    expect("whether n01 is cordoned after 92 minutes", c.cordoned("n01"), False)
