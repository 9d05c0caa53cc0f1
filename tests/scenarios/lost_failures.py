"""Failed nodes that leave: whoever takes them away does not take the failure away."""
from scenario import expect, expect_that, fleet, scenario, ts

SICK = ("n03", "n05", "n07", "n09", "n11", "n12")


def failures_with(take_away):
    """Twelve nodes, two at a time, and half of them crash on the edit, one after the other. Which nodes have failed
    three hours later? maxFailures is 2; `take_away` is called for each failed node."""
    c = fleet(12, ts(4), rollout={"maxUnavailable": 3, "maxUnavailablePerGroup": 3, "maxFailures": 2},
              options=["--cluster-max-unavailable", "100%"])
    return c, failures_of_the_sick(c, take_away)


def failures_of_the_sick(c, take_away):
    """The nodes that have failed three hours after the edit."""
    c.behave("crash", *SICK)
    c.edit(any=ts(8))
    failed = []
    for _ in range(90):
        c.after("2m")
        for name in c.nodes():
            if c.state(name) == "Failed" and name not in failed:
                failed.append(name)
                take_away(c, name)
    return failed


def minutes_later(act):
    """`act`, once the operator has looked at the failed node twice."""
    def later(c, name):
        c.after("1m")
        c.after("1m")
        act(c, name)
    return later


def expect_a_stop(c, failed, policy="default"):
    """At most two failures, and those of nodes that were under way beside them."""
    expect_that(2 <= len(failed) <= 4, "two failed nodes, and those beside them", failed)
    expect("Progressing", c.condition(policy, "Progressing")["reason"], "MaxFailures")


@scenario
def failed_nodes_that_an_autoscaler_removes_still_count():
    """Node repair deletes each failed node some minutes later: after two failures the rollout stops all the same."""
    expect_a_stop(*failures_with(minutes_later(lambda c, name: c.delete_node(name))))


@scenario
def failed_nodes_on_which_the_plugin_is_switched_off_still_count():
    """On-call switches the plugin off on each failed node: after two failures the rollout stops all the same."""
    expect_a_stop(*failures_with(minutes_later(
        lambda c, name: c.set_label(name, "nvidia.com/gpu.deploy.device-plugin", "false"))))


@scenario
def failed_nodes_that_stay_stop_the_rollout():
    """The neighbour: the failed nodes stay as they are, and the rollout stops after two of them."""
    expect_a_stop(*failures_with(lambda c, name: None))


@scenario
def a_failed_canary_that_is_deleted_minutes_later_still_stops_the_rollout():
    """The neighbour: the canary fails, and its node is deleted five minutes later: nobody else starts."""
    c = fleet(4, ts(4))
    c.behave("crash", *c.nodes())
    c.edit(any=ts(8))
    while "Failed" not in [c.state(name) for name in c.nodes()]:
        c.after("2m")
    c.after("1m")
    c.after("4m")
    c.delete_node("n01")
    expect("starts", c.converge().started(), [])
    expect("Progressing", c.condition("default", "Progressing")["reason"], "MaxFailures")


@scenario
def failed_nodes_that_on_call_holds_still_count():
    """On-call holds each failed node to look into it: after two failures the rollout stops all the same."""
    expect_a_stop(*failures_with(minutes_later(lambda c, name: c.annotate("Node", name, "gpusharing.dev/hold", "true"))))


@scenario
def failed_nodes_that_get_not_ready_still_count():
    """Each failed node gets NotReady some minutes later, as with a bad card: the rollout stops after two."""
    expect_a_stop(*failures_with(minutes_later(lambda c, name: c.set_ready(name, False))))


@scenario
def failed_nodes_that_remediation_quarantines_still_count():
    """A remediation system quarantines each failed node: the rollout stops after two."""
    expect_a_stop(*failures_with(minutes_later(
        lambda c, name: c.set_label(name, "dgxc.nvidia.com/nvsentinel-state", "quarantined"))))


@scenario
def failed_nodes_whose_pool_label_is_taken_away_still_count():
    """A policy selects a pool, and on-call takes failed nodes out of it: the rollout stops after two."""
    c = fleet(12, ts(4), options=["--cluster-max-unavailable", "100%"])
    for name in c.nodes():
        c.set_label(name, "pool", "a")
    c.policy("p", priority=5, selector={"pool": "a"}, rollout={"maxUnavailable": 3, "maxUnavailablePerGroup": 3,
                                                             "maxFailures": 2})
    c.policy(rollout={"paused": True})
    for _ in range(3):
        c.after("2m")
    failed = failures_of_the_sick(c, minutes_later(lambda c, name: c.set_label(name, "pool", None)))
    expect_a_stop(c, failed, policy="p")


def replace(c, name):
    """Another machine of that name, and fifty minutes later."""
    c.delete_node(name)
    c.add_node(name)
    for _ in range(10):
        c.after("5m")


def expect_a_repair(c, name):
    """The node serves nothing from now on: it is repaired within fifty minutes, and nothing is Degraded."""
    c.serve(name, 0)
    for _ in range(10):
        c.after("5m")
    expect("capacity of " + name, c.capacity(name), 16)
    expect("Degraded", c.condition("default", "Degraded").get("status"), "False")


@scenario
def a_failed_machine_that_was_replaced_leaves_no_stop_on_a_fleet_that_runs_the_revision():
    """The last of four nodes fails (its slot was the only one), the machine is replaced, and the new one runs the revision: all nodes
    show it. A node that drifts later is repaired, and Degraded ends."""
    c = fleet(4, ts(4), rollout={"maxUnavailable": 1}, options=["--cluster-max-unavailable", "1"])
    c.behave("crash", "n04")
    c.edit(any=ts(8))
    for _ in range(40):
        c.after("2m")
    expect("states", [c.state(n) for n in c.nodes()], ["", "", "", "Failed"])
    replace(c, "n04")
    expect("capacity", {c.capacity(n) for n in c.nodes()}, {16})
    expect_a_repair(c, "n02")


@scenario
def a_repair_that_fails_on_one_machine_does_not_end_the_repair_of_others():
    """All four nodes run a verified revision. n02 shows half of it, is restarted and crashes (bad hardware): Failed. The machine is
    replaced and serves. Later n03 serves nothing: it is repaired."""
    c = fleet(4, ts(4))
    c.edit(any=ts(8))
    c.converge(most=40)
    expect("capacity", {c.capacity(n) for n in c.nodes()}, {16})
    c.serve("n02", 8)
    c.labels("n02")["nvidia.com/gpu.replicas"] = "4"
    c.machines["n02"].behaviour = "crash"
    for _ in range(20):
        c.after("3m")
    expect("n02", c.state("n02"), "Failed")
    replace(c, "n02")
    expect_a_repair(c, "n03")


@scenario
def a_revision_that_failed_under_a_deleted_policy_is_remembered():
    """8 replicas fail on the canary of team; its node is removed for repair, and team is deleted: failures stay remembered, default does
    not take the next node down with the same text."""
    c = fleet(4, ts(4), rollout={"canary": {"nodesPerGroup": 1, "soak": "1h"}})
    c.policy("team", priority=5, selector={"nvidia.com/gpu.present": "true"},
             rollout={"canary": {"nodesPerGroup": 1, "soak": "1h"}, "maxUnavailable": 1})
    c.after("5m")
    c.behave("crash", *c.nodes())
    c.edit(any=ts(8))
    for _ in range(20):
        c.after("2m")
    failed = [n for n in c.nodes() if c.state(n) == "Failed"]
    expect("failed", len(failed), 1)
    c.delete_node(failed[0])
    for _ in range(3):
        c.after("5m")
    c.delete_policy("team")
    ticks = [c.after("5m") for _ in range(12)]
    expect("started", [name for tick in ticks for name in tick.started()], [])
