"""Deadlines of a change that somebody has held: the time of the hold does not count. Every look is a restart of the
operator as well."""
from scenario import expect, expect_that, fleet, mps, one, scenario, ts

HOLD = "gpusharing.dev/hold"


def with_a_node_that_does_not_come_up(**rollout):
    """A node in a change has new pods that are not Ready."""
    c = fleet(3, ts(4), rollout=rollout or None)
    c.behave("starting", *c.nodes())
    c.edit(any=ts(8))
    c.after("2m")
    name = one(c.in_progress())
    c.after("1m")
    return c, name


def hold(c, name, looks, each="10m"):
    c.annotate("Node", name, HOLD, "true")
    for _ in range(looks):
        c.after(each)
    c.annotate("Node", name, HOLD, None)
    c.after("20s")


def failed_after(c, name, most=20):
    """After how many looks of a minute the node has failed."""
    for minute in range(1, most + 1):
        c.after("1m")
        if c.state(name) == "Failed":
            return minute
    return None


def expect_failure_after_hold(c, name):
    minutes = failed_after(c, name)
    expect_that(minutes is not None and 9 <= minutes <= 12, "the node to fail 10 minutes after the hold", minutes)


@scenario
def verify_timeout_starts_again_after_a_hold():
    """A person holds a node for an hour while its new pods are not Ready: when the hold ends, the node has
    verifyTimeout (10 minutes) to come up."""
    c, name = with_a_node_that_does_not_come_up()
    hold(c, name, 6)
    expect_failure_after_hold(c, name)


@scenario
def a_node_that_comes_up_after_a_hold_is_verified():
    """The same, and the pods are Ready five minutes after the hold: the node does not fail."""
    c, name = with_a_node_that_does_not_come_up()
    hold(c, name, 6)
    for _ in range(5):
        c.after("1m")
    c.behave("healthy", *c.nodes())
    c.restart(name)
    ticks = c.converge().ticks
    expect("states", {c.state(each) for each in c.nodes()}, {""})
    expect("findings", [tick.findings("VerificationFailed") for tick in ticks if tick.findings("VerificationFailed")], [])


@scenario
def verify_timeout_starts_again_after_a_second_hold():
    """Two holds, five minutes apart: the deadline starts when the second one ends."""
    c, name = with_a_node_that_does_not_come_up()
    hold(c, name, 3)
    for _ in range(5):
        c.after("1m")
    hold(c, name, 3)
    expect_failure_after_hold(c, name)


@scenario
def verify_timeout_passes_where_nobody_holds_the_node():
    """The neighbour: without a hold the node fails ten minutes after its pods were created."""
    c, name = with_a_node_that_does_not_come_up()
    minutes = failed_after(c, name)
    expect_that(minutes is not None and 7 <= minutes <= 11, "the node to fail after 10 minutes", minutes)


def with_a_node_that_waits():
    """A node is cordoned for an MPS edit and waits for a pod that does not end."""
    c = fleet(1, mps(4), rollout={"idleTimeout": "1h"})
    c.consumer("job-0", "n01")
    c.edit(any=mps(8))
    c.after("2m")
    c.after("2m")
    expect("cordoned", c.cordoned("n01"), True)
    return c


def deferred_after(c, most=10):
    """After how many looks of ten minutes the node is uncordoned."""
    for look in range(1, most + 1):
        c.after("10m")
        if not c.cordoned("n01"):
            return look
    return None


@scenario
def idle_timeout_starts_again_after_a_hold():
    """A person holds the node for three hours while it waits for its pod: afterwards it waits for idleTimeout again."""
    c = with_a_node_that_waits()
    hold(c, "n01", 6, "30m")
    c.after("1m")
    expect("cordoned", c.cordoned("n01"), True)
    looks = deferred_after(c)
    expect_that(looks is not None and 5 <= looks <= 7, "the node to be queued again an hour after the hold", looks)


@scenario
def idle_timeout_passes_where_nobody_holds_the_node():
    """The neighbour: without a hold the node is queued again after an hour."""
    looks = deferred_after(with_a_node_that_waits())
    expect_that(looks is not None and 5 <= looks <= 6, "the node to be queued again after an hour", looks)
