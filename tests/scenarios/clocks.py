"""Clocks of API servers: one is set back after an edit, and each plugin is restarted for it, not again and again; two of
them differ."""
import datetime

from scenario import expect, expect_that, fleet, mps, scenario, ts


def deletions_of_plugins(c):
    out = {name: 0 for name in c.nodes()}
    for tick in c.ticks:
        for action in tick.of("DeletePod"):
            name = action["target"]["name"]
            if name.startswith("nvidia-device-plugin-daemonset"):
                out[tick.node_of[(action["target"]["namespace"], name)]] += 1
    return out


def set_back_after_an_edit(before, after, step, looks="2m"):
    """The clock was ahead when the text was edited, and is put right 20 s later. A node that was in progress by then may be
    restarted a second time: its list of pods has a time that lies ahead, too."""
    c = fleet(3, before)
    c.edit(any=after)
    c.after("20s")
    c.set_clock_back(step)
    for _ in range(40):
        c.after(looks)
    deleted = deletions_of_plugins(c)
    expect_that(all(count in (1, 2) for count in deleted.values()), "one or two restarts of each plugin", deleted)
    expect("what the plugins have loaded", {c.loaded[c.plugin(name)] for name in c.nodes()}, {after})
    return c


@scenario
def a_clock_that_is_set_back_by_an_hour_after_an_edit_does_not_restart_a_node_without_end():
    """An hour, with a look every two minutes."""
    c = set_back_after_an_edit(ts(4), ts(8), "1h")
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def a_clock_that_is_set_back_by_five_minutes_after_an_edit_does_not_restart_a_node_without_end():
    """Five minutes, with a look every 30 s."""
    set_back_after_an_edit(ts(4), ts(8), "5m", "30s")


@scenario
def a_clock_that_is_set_back_after_an_mps_edit_does_not_restart_a_node_without_end():
    """Under MPS, where every restart kills the clients."""
    c = set_back_after_an_edit(mps(4), mps(8), "1h")
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def a_clock_that_is_set_back_after_an_edit_that_no_label_shows_does_not_restart_a_node_without_end():
    """The same with a text that no label shows."""
    set_back_after_an_edit(ts(4), ts(4, fail=True), "1h")


@scenario
def an_edit_at_the_right_time_restarts_each_node_once():
    """The neighbour: the clock is right."""
    c = fleet(3, ts(4))
    c.edit(any=ts(8))
    for _ in range(40):
        c.after("2m")
    expect("restarts", deletions_of_plugins(c), {name: 1 for name in c.nodes()})


@scenario
def pods_whose_api_server_is_ahead_have_not_read_an_edit_that_seems_older():
    """The pods of n02 come just before an edit that no label shows, and bear a time two seconds after it: the clock of their
    API server is ahead. n02 is changed like the other nodes."""
    c = fleet(3, ts(8))
    c.after("5m")
    c.restart("n02")
    c.created_at("n02", c.clock + datetime.timedelta(seconds=2))
    c.edit(any=ts(8, fail=True))
    c.converge()
    expect("what the nodes run", {c.loaded[c.plugin(name)] for name in c.nodes()}, {ts(8, fail=True)})


@scenario
def pods_that_came_ten_seconds_after_an_edit_have_read_it():
    """That is more than the clocks of API servers differ by: the pods of n02 stay."""
    c = fleet(3, ts(8), rollout={"paused": True})
    c.edit(any=ts(8, fail=True))
    c.wait("10s")
    c.restart("n02")
    before = c.uids("n02")
    c.after("5m")
    c.policy(rollout={"paused": False})
    c.converge()
    expect("the pods of n02", c.uids("n02"), before)
    expect("what the nodes run", {c.loaded[c.plugin(name)] for name in c.nodes()}, {ts(8, fail=True)})
