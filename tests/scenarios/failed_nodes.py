"""A failed node that shows its profile after all, while something stops the rollout."""
from scenario import expect, fleet, mps, scenario, stamp, ts


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
