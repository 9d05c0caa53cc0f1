"""RollingUpdate replaces pods with a new template, and has not reached a node that does not show its profile."""
from scenario import expect, expect_that, fleet, mps, scenario


def drifting_while_the_daemonset_rolls():
    """RollingUpdate replaces the pods with a new template, and one node that it has not reached stops showing MPS."""
    c = fleet(3, mps(4))
    c.wait("1h")
    c.tick()
    c.template("h2")
    c.show_half("n01")
    return c


@scenario
def a_drifting_node_is_left_to_the_rolling_update_that_will_reach_it():
    """The DaemonSet's controller replaces the pod anyway, within its own budget: the operator waits, and says for what."""
    c = drifting_while_the_daemonset_rolls()
    ticks = [c.after("11m") for _ in range(5)]
    expect("pods that the operator deleted", sum([tick.deleted_pods() for tick in ticks], []), [])
    expect("nodes started", sum([tick.started() for tick in ticks], []), [])
    told = [finding["message"] for finding in ticks[-1].findings("Drift") if finding["object"]["name"] == "n01"]
    expect_that(told and "RollingUpdate" in told[0], "what the drifting node waits for", told)


@scenario
def a_node_that_drifts_with_the_new_template_is_repaired():
    """The neighbour: the controller has replaced the pods, and the node still does not show its profile."""
    c = drifting_while_the_daemonset_rolls()
    for _ in range(3):
        c.after("11m")
    c.restart("n01")
    c.show_half("n01")
    deleted = sum([c.after("11m").deleted_pods() for _ in range(4)], [])
    expect_that(deleted, "pods that the operator deleted", deleted)
    expect("capacity", c.capacity("n01"), 8)


@scenario
def a_node_that_joined_and_does_not_serve_right_is_left_to_the_rolling_update():
    """A new node shows half of its profile, and a new template comes: its pods are the DaemonSet controller's."""
    c = fleet(3, mps(4))
    c.wait("1h")
    c.tick()
    c.add_node("n04")
    c.show_half("n04")
    c.template("h2")
    ticks = [c.after("11m") for _ in range(5)]
    expect("pods that the operator deleted", sum([tick.deleted_pods() for tick in ticks], []), [])
    told = c.condition("default", "Progressing").get("message", "")
    expect_that("1 node waits for the DaemonSets" in told, "what the new node waits for", told)
