"""Failed nodes: one that shows its profile after all, and one whose machine is replaced."""
from scenario import expect, fleet, mps, one, scenario, stamp, ts


def failed_and_paused():
    c = fleet(2, ts(4))
    c.behave("crash", *c.nodes())
    c.edit(any=mps(4))
    for _ in range(9):
        c.after("2m")
    expect("state", (c.state("n01"), c.cordoned("n01")), ("Failed", True))
    c.policy(rollout={"paused": True})
    return c


def expect_release(c):
    """A person restarts the pods of the failed node, which then show the profile: it is released under the pause."""
    c.machines["n01"].behaviour = "healthy"
    c.restart("n01")
    before = c.plugin("n01")
    for _ in range(4):
        c.after("2m")
    expect("n01 (state, cordoned) under the pause", (c.state("n01"), c.cordoned("n01")), ("", False))
    c.policy(rollout={"paused": False})
    for _ in range(8):
        c.after("2m")
    expect("whether n01 was restarted once more", c.plugin("n01") != before, False)


@scenario
def a_failed_node_recovers_under_a_pause():
    """A pause does not keep a node cordoned that shows its profile."""
    expect_release(failed_and_paused())


@scenario
def a_failed_node_recovers_under_a_pause_after_a_request_to_retry():
    """A request by `rollout start` changes nothing about what the pods show."""
    c = failed_and_paused()
    c.annotate("SharingPolicy", "default", "gpusharing.dev/retry", stamp(c.clock))
    c.after("2m")
    expect_release(c)


@scenario
def a_failed_node_recovers_under_a_pause_with_the_next_text():
    """The text is edited again while paused, and the pods show that text."""
    c = failed_and_paused()
    c.edit(any=mps(6))
    c.after("2m")
    expect_release(c)


@scenario
def a_new_machine_of_a_failed_nodes_name_does_not_lift_the_failure():
    """The canary fails, and a new machine of the same name joins and serves: no other node starts, and MaxFailures stays."""
    c = fleet(6, ts(4))
    c.behave("crash", *c.nodes())
    c.edit(any=ts(8))
    canary = one([name for _ in range(6) for name in c.after("11m").started()])
    expect("the state of the canary", c.state(canary), "Failed")
    c.delete_node(canary)
    c.after("2m")
    c.add_node(canary)
    ticks = [c.after("2m") for _ in range(8)]
    expect("started", [name for tick in ticks for name in tick.started()], [])
    expect("Progressing", c.condition("default", "Progressing")["reason"], "MaxFailures")
