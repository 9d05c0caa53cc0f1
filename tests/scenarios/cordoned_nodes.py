"""Nodes that people have cordoned and that serve: they are changed in the slots that they hold, after the canary."""
from scenario import expect, expect_that, fleet, mps, numbered, one, scenario, ts


def with_cordoned(count, cordoned, before=None, options=(), **rollout):
    c = fleet(count, before or ts(4), options=list(options) or ["--cluster-max-unavailable", "100%"],
              rollout=dict({"maxUnavailable": "100%", "maxUnavailablePerGroup": "100%"}, **rollout))
    for name in c.nodes()[-cordoned:]:
        c.cordon(name)
    c.after("1m")
    return c


@scenario
def a_cordoned_canary_that_fails_stops_the_others():
    """Every node is cordoned, so that one of them is the canary: its plugin crashes, and no other node is tried."""
    c = with_cordoned(3, 3)
    c.behave("crash", *c.nodes())
    c.edit(any=ts(8))
    canary = one(sum([c.after("11m").started() for _ in range(6)], []))
    expect("(state, cordoned) of the canary", (c.state(canary), c.cordoned(canary)), ("Failed", True))
    expect("Progressing", c.condition("default", "Progressing").get("status"), "False")
    expect("Degraded", c.condition("default", "Degraded").get("status"), "True")


@scenario
def failures_of_cordoned_nodes_count():
    """Six of eight nodes are cordoned, and their plugins crash on the edit: after maxFailures of them no other node starts."""
    c = with_cordoned(8, 6, maxFailures=2, maxUnavailable=7, maxUnavailablePerGroup=7,
                      options=["--cluster-max-unavailable", "7"])
    c.behave("crash", *c.nodes()[2:])
    c.edit(any=ts(8))
    c.after("2m")
    c.after("2m")
    for _ in range(8):
        c.after("11m")
    expect_that(2 <= c.counts()["failed"] <= 7, "failed nodes", c.counts())
    expect("why it stopped", c.condition("default", "Progressing").get("reason"), "MaxFailures")
    started = sum([c.after("11m").started() for _ in range(4)], [])
    expect("nodes that start after that", started, [])


@scenario
def cordoned_nodes_wait_for_a_canary_that_has_no_slot():
    """Two of ten nodes are cordoned and hold both slots: the uncordoned canary has none, and nobody else is tried; the policy
    says so. When one of them is uncordoned, all get the edit."""
    c = with_cordoned(10, 2, maxUnavailable=2, maxUnavailablePerGroup=2, options=["--cluster-max-unavailable", "2"])
    c.edit(any=ts(8))
    expect("nodes started", sum([c.after("5m").started() for _ in range(6)], []), [])
    expect("why", c.condition("default", "Progressing").get("reason"), "BudgetExhausted")
    c.cordon("n10", on=False)
    c.converge()
    expect("capacity", {c.capacity(name) for name in c.nodes()}, {16})
    expect("cordoned nodes", [name for name in c.nodes() if c.cordoned(name)], ["n09"])


@scenario
def cordoned_nodes_behind_a_held_canary_are_named():
    """The only uncordoned node is held: the policy names it, and the cordoned ones that wait for it as their canary."""
    c = with_cordoned(4, 3)
    c.annotate("Node", "n01", "gpusharing.dev/hold", "true")
    c.edit(any=ts(8))
    expect("nodes started", sum([c.after("5m").started() for _ in range(3)], []), [])
    expect("why", (c.condition("default", "Progressing").get("reason"), c.condition("default", "Progressing").get("message")),
           ("Held", "the remaining nodes are held: n01; n02, n03, n04 are cordoned, and wait until their canary that is not "
                    "cordoned has shown the profile"))
    c.annotate("Node", "n01", "gpusharing.dev/hold", None)
    c.converge()
    expect("capacity", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def the_job_of_a_cordoned_node_is_respected():
    """MPS, WaitForIdle: the cordoned node with a job keeps its pods for as long as the job runs, and all others are changed."""
    c = with_cordoned(6, 2, before=mps(4))
    c.consumer("job", "n06")
    before = c.uids("n06")
    c.edit(any=mps(8))
    for _ in range(40):
        c.after("5m")
    expect("pods of the node with the job", c.uids("n06"), before)
    expect("capacity of the others", {c.capacity(name) for name in numbered(5)}, {16})
    c.end("job")
    c.converge(each="3m")
    expect("capacity of the node, and whether it is cordoned", (c.capacity("n06"), c.cordoned("n06")), (16, True))


@scenario
def a_node_that_is_cordoned_in_mid_change_by_nobody_but_a_person_stays_so():
    """A node is cordoned before its change and uncordoned in the middle of it, another one the other way round."""
    c = with_cordoned(2, 1, before=mps(4), canary={"nodesPerGroup": 0}, workloads="Interrupt", cordon=False)
    c.edit(any=mps(8))
    c.after("2m")
    expect("nodes in a change", c.in_progress(), ["n01", "n02"])
    c.cordon("n02", on=False)
    c.cordon("n01")
    c.converge(each="3m")
    expect("(capacity, cordoned)", [(c.capacity(name), c.cordoned(name)) for name in c.nodes()], [(16, True), (16, False)])


@scenario
def a_cordoned_node_without_a_gpu_is_a_repair():
    """A cordoned node serves nothing: it is repaired beside the canary, and its cordon stays."""
    c = with_cordoned(4, 1, canary={"nodesPerGroup": 1, "soak": "1h"})
    c.behave("crash", "n04")
    c.restart("n04")
    c.after("1m")
    c.behave("healthy", "n04")
    c.edit(any=ts(8))
    started = c.after("2m").started()
    expect_that("n04" in started and len(started) == 2, "n04 and one canary", started)
    c.converge(each="20m")
    expect("(capacity, cordoned)", (c.capacity("n04"), c.cordoned("n04")), (16, True))


@scenario
def a_text_that_no_broken_node_has_shown_is_tried_within_the_budget():
    """Six nodes serve nothing, and the next text is bad as well: never more than two of them are in a change, and each fails."""
    c = fleet(6, ts(4), rollout={"maxUnavailable": 2, "maxUnavailablePerGroup": 2}, options=["--cluster-max-unavailable", "2"])
    c.behave("crash", *c.nodes())
    c.restart()
    c.after("1m")
    c.edit(any=ts(8))
    most = 0
    for _ in range(10):
        c.after("6m")
        most = max(most, len(c.in_progress()))
    expect_that(0 < most <= 2, "at most two nodes in a change", most)
