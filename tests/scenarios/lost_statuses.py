"""Statuses that are lost, as after a restore from a backup: they report, and nothing is decided by them."""
from scenario import Cluster, expect, expect_that, fleet, numbered, scenario, ts

STEADY = {"maxUnavailable": 1, "canary": {"nodesPerGroup": 1, "soak": "5m"}}


def lose_statuses(c):
    """Every SharingPolicy and SharingRollout is there as a person would have written it: without a status."""
    for kind in ("SharingPolicy", "SharingRollout"):
        for it in c.all(kind):
            if it.pop("status", None) is not None:
                c.touch(it)


def starts_without_statuses(c, looks=12):
    lose_statuses(c)
    return sum([c.after("2m").started() for _ in range(looks)], [])


@scenario
def a_failed_canary_stops_the_rollout_without_statuses():
    """The canary has failed when the statuses are lost: no other node starts, and MaxFailures is reported again."""
    c = fleet(4, ts(4))
    c.behave("crash", *c.nodes())
    c.edit(any=ts(8))
    for _ in range(9):
        c.after("2m")
    expect("failed nodes", [name for name in c.nodes() if c.state(name) == "Failed"], ["n01"])
    c.behave("healthy", *c.nodes())
    expect("nodes started", starts_without_statuses(c), [])
    expect("reason", c.condition("default", "Progressing")["reason"], "MaxFailures")


@scenario
def a_paused_rollout_stays_paused_without_statuses():
    """The SharingRollout is paused when the statuses are lost: no node starts before it is resumed, and all do then."""
    c = fleet(4, ts(4), rollout=STEADY)
    c.edit(any=ts(8))
    c.after("2m")
    c.switch(paused=True)
    c.converge()
    expect("nodes started", starts_without_statuses(c), [])
    c.switch(paused=False)
    c.converge()
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def an_approval_is_waited_for_without_statuses():
    """Mode Approve: nobody has approved when the statuses are lost: no node starts before somebody does."""
    c = fleet(4, ts(4))
    c.policy(mode="Approve")
    c.edit(any=ts(8))
    c.after("2m")
    expect("nodes started", starts_without_statuses(c), [])
    c.switch(approved=True)
    c.converge()
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def a_canary_soaks_as_long_as_it_would_have_without_statuses():
    """The statuses are lost in the middle of a soak of one hour: nobody starts before its end, and all follow after it."""
    c = fleet(4, ts(4), rollout={"canary": {"nodesPerGroup": 1, "soak": "1h"}})
    c.edit(any=ts(8))
    for _ in range(8):
        c.after("2m")
    expect("nodes started in the first 40 minutes", starts_without_statuses(c, 12), [])
    for _ in range(30):
        c.after("2m")
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def a_fleet_at_rest_restarts_nothing_without_statuses():
    """Every node has the edit when the statuses are lost: nothing is restarted, and the policy is Ready again."""
    c = fleet(4, ts(4))
    c.edit(any=ts(8))
    c.converge()
    before = sum([c.uids(name) for name in c.nodes()], [])
    expect("nodes started", starts_without_statuses(c), [])
    expect("pods", sum([c.uids(name) for name in c.nodes()], []), before)
    expect("Ready", c.condition("default", "Ready")["status"], "True")


@scenario
def a_rollout_goes_on_whenever_its_statuses_are_lost():
    """The statuses are lost after each look of a rollout in turn: every node is restarted once, and never two at a time."""
    c = fleet(3, ts(4), rollout=STEADY)
    begun = len(c.ticks)
    c.edit(any=ts(8))
    for look in range(10):
        c.after("1m")
        lost = c.copy()
        lose_statuses(lost)
        for _ in range(16):
            lost.after("2m")
            expect_that(len(lost.in_progress()) <= 1, "one node at a time after a loss at look %d" % look, lost.in_progress())
        expect("capacities after a loss at look %d" % look, {lost.capacity(name) for name in lost.nodes()}, {16})
        started = sum([tick.started() for tick in lost.ticks[begun:]], [])
        expect("nodes started, with a loss at look %d" % look, sorted(started), lost.nodes())


@scenario
def a_rolled_back_profile_stays_rolled_back_without_statuses():
    """An inline profile has failed and was rolled back when the statuses are lost: it is not tried again unasked."""
    c = Cluster({"any": ts(4)}, options=["--cluster-max-unavailable", "100%"])
    c.add_nodes(*numbered(4))
    profile = {"inline": {"strategy": "time-slicing", "replicas": 8}}
    c.policy("p", priority=5, profile=profile,
             rollout={"maxUnavailable": 1, "canary": {"nodesPerGroup": 1, "soak": "1s"}, "onFailure": "Rollback"})
    c.install()
    c.converge()
    c.behave("unchanged", "n01")
    c.get("SharingPolicy", "p")["spec"]["profile"] = {"inline": {"strategy": "time-slicing", "replicas": 6}}
    c.policy("p")
    for _ in range(16):
        c.after("2m")
    expect("capacities after the rollback", {c.capacity(name) for name in c.nodes()}, {16})
    expect("nodes started", starts_without_statuses(c), [])
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})
