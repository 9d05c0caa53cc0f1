"""Moves of a node's profile label that fail, or that seem to have failed, and what the operator remembers of them."""
from scenario import expect, expect_that, scenario
from slices_of_pods import served


def after_a_failed_move():
    """n01 has gone back to its former slices a moment ago; its plugin works again, and a pod waits for 20 GiB."""
    c = served(10)
    before = c.label("n01")
    c.wait_for_slice("w", 20)
    c.slice_nodes["n01"]["crashes"] = True
    for _ in range(3):
        c.after("2m")
    expect_that(c.label("n01") != before, "another label", before)
    c.after("16m")
    expect("the label after the failed move", c.label("n01"), before)
    c.slice_nodes["n01"]["crashes"] = False
    c.react()
    return c


def tried_again(c, hours):
    for _ in range(hours * 2):
        c.after("30m")
        c.schedule()
    expect("pods that run", sorted(c.assigned), ["p0", "w"])


@scenario
def a_move_that_failed_is_tried_again():
    """The pause after a failed move is ten minutes: within three hours the pod runs."""
    tried_again(after_a_failed_move(), 3)


@scenario
def a_clock_that_was_ahead_does_not_prolong_the_pause_after_a_failed_move():
    """The operator's clock was two days ahead when the move failed, and is set right: a time in the future counts as now."""
    c = after_a_failed_move()
    c.set_clock_back("48h")
    tried_again(c, 6)


def three_hours_after_a_move():
    """n01 was moved from 10 GiB to 10 and 20, has shown both since, and the pod with 20 GiB has ended."""
    c = served(10)
    c.wait_for_slice("b", 20)
    c.partition()
    c.schedule()
    expect("pods that run", sorted(c.assigned), ["b", "p0"])
    c.end_pod("b")
    c.react()
    for _ in range(3):
        c.after("1h")
    return c


@scenario
def a_plugin_that_restarts_hours_after_a_move_is_no_failed_move():
    """Three hours after a move the plugin restarts, and the operator as well (each look is a new process): no label moves."""
    c = three_hours_after_a_move()
    before = c.label("n01")
    c.slice_nodes["n01"]["plugin"] = False
    c.react()
    c.after("30s")
    expect("the profile label", c.label("n01"), before)


@scenario
def a_plugin_that_restarts_minutes_after_a_move_is_no_failed_move():
    """The same after 18 minutes: the agent has reported the new slices since, so the move was well, and no label moves."""
    c = served(10)
    c.wait_for_slice("b", 20)
    c.partition()
    c.schedule()
    c.end_pod("b")
    c.react()
    before = c.label("n01")
    c.wait("14m")
    c.slice_nodes["n01"]["plugin"] = False
    c.react()
    c.after("30s")
    expect("the profile label", c.label("n01"), before)


@scenario
def a_plugin_that_stays_away_after_a_move_is_a_failed_move():
    """The neighbour: it does not start with the new key at all, and after a quarter of an hour the former key is back."""
    c = after_a_failed_move()
    expect("keys", len(c.keys()), 2)
