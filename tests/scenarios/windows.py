"""Maintenance windows: local time, days, months, and nodes that are on their way when a window closes."""
from scenario import Cluster, expect, expect_that, fleet, moment, mps, numbered, one, scenario, stamp, ts


def window(cron, duration="1h", zone="UTC"):
    return {"maintenanceWindows": [{"cron": cron, "duration": duration, "timeZone": zone}]}


def starts_at(cron, moments, zone="UTC", duration="1h", begin="2026-03-02T08:00:00Z", **more):
    """At which of these moments an idle fleet with a waiting edit would start a node."""
    c = fleet(3, ts(4), rollout=dict(window(cron, duration, zone), **more), start=begin)
    c.edit(any=ts(8))
    c.wait("5m")
    out = []
    for when in moments:
        again = c.copy()
        again.tick(now=when, held="1h")
        if again.ticks[-1].started():
            out.append(when)
    return out


@scenario
def a_window_in_a_time_zone_opens_by_local_time():
    """02:00 in Berlin is 01:00 UTC in winter: nodes start from 01:00 to 02:00 UTC and not from 02:00."""
    times = ["2026-03-03T%s:00Z" % hour for hour in ("00:59", "01:01", "01:59", "02:01")]
    expect("times at which nodes start", starts_at("0 2 * * *", times, "Europe/Berlin"), times[1:3])


@scenario
def a_window_keeps_its_local_time_in_summer():
    """After the change to summer time 02:00 in Berlin is 00:00 UTC."""
    times = ["2026-03-31T%s:00Z" % hour for hour in ("00:01", "00:59", "01:01")]
    expect("times at which nodes start", starts_at("0 2 * * *", times, "Europe/Berlin"), times[:2])


@scenario
def a_window_in_the_hour_that_does_not_exist_opens_once():
    """On the day of the change 02:00 does not exist in Berlin: the window opens at 03:00, which is 01:00 UTC."""
    times = ["2026-03-29T%s:00Z" % hour for hour in ("00:59", "01:01", "01:59", "02:01")]
    expect("times at which nodes start", starts_at("0 2 * * *", times, "Europe/Berlin"), times[1:3])


@scenario
def a_window_of_a_night_ends_the_next_morning():
    """22:00 for eight hours on Saturdays: Sunday 05:59 is within it, Sunday 06:01 and Monday 05:00 are not."""
    times = ["2026-03-07T21:59:00Z", "2026-03-07T22:01:00Z", "2026-03-08T05:59:00Z", "2026-03-08T06:01:00Z",
             "2026-03-09T05:00:00Z"]
    expect("times at which nodes start", starts_at("0 22 * * SAT", times, duration="8h"), times[1:3])


@scenario
def a_window_by_date_or_weekday_opens_on_both():
    """As cron does it: day 13 or Friday. The 13th of April is a Monday."""
    times = ["2026-04-10T02:05:00Z", "2026-04-13T02:05:00Z", "2026-04-14T02:05:00Z"]
    expect("times at which nodes start", starts_at("0 2 13 * FRI", times), times[:2])


@scenario
def a_window_of_the_29th_of_february_waits_for_years():
    """Nothing starts on the 28th; the message names the day in 2028."""
    expect("times at which nodes start", starts_at("0 2 29 2 *", ["2027-02-28T02:05:00Z", "2028-02-29T02:05:00Z"]),
           ["2028-02-29T02:05:00Z"])
    c = fleet(2, ts(4), rollout=window("0 2 29 2 *"))
    c.edit(any=ts(8))
    c.after("2m")
    message = c.condition("default", "Progressing")["message"]
    expect_that("2028-02-29" in message, "the day when the window opens", message)


@scenario
def of_two_windows_either_one_is_enough():
    """A window at 02:00 and one at 14:00: nodes start in both, and not in between."""
    c = fleet(3, ts(4), rollout={"maintenanceWindows": [{"cron": "0 2 * * *", "duration": "1h"},
                                                        {"cron": "0 14 * * *", "duration": "30m"}]})
    c.edit(any=ts(8))
    c.wait("5m")
    out = []
    for when in ("2026-03-02T13:59:00Z", "2026-03-02T14:10:00Z", "2026-03-02T14:31:00Z", "2026-03-03T02:30:00Z"):
        again = c.copy()
        if again.tick(now=when, held="1h").started():
            out.append(when[11:16])
    expect("times at which nodes start", out, ["14:10", "02:30"])


@scenario
def a_window_that_cannot_be_read_keeps_all_closed_and_says_so():
    """The only window has a time zone that does not exist: nobody starts, and a condition names it."""
    c = fleet(3, ts(4), rollout=window("0 2 * * *", zone="Europe/Berln"))
    c.edit(any=ts(8))
    ticks = [c.after("1h") for _ in range(30)]
    expect("nodes that start", [name for tick in ticks for name in tick.started()], [])
    said = [str(c.condition("default", kind)) for kind in ("Ready", "Progressing", "Degraded", "ConfigValid")]
    said += [finding["message"] for finding in ticks[-1].all_findings]
    expect_that(any("Berln" in text for text in said), "the time zone in a message", said)


@scenario
def a_node_half_way_is_finished_after_the_window():
    """The window closes while a pod of a node is being replaced: the node is verified and uncordoned, no other starts."""
    c = fleet(4, mps(4), start="2026-03-02T01:10:00Z", rollout=window("0 2 * * *"))
    c.edit(any=mps(8))
    while not c.ticks[-1].restarted():
        c.after("1m")
    name = one(c.ticks[-1].restarted())
    c.clock = moment("2026-03-02T03:00:30Z")
    ticks = [c.after("1m") for _ in range(10)]
    expect("starts after the window", [each for tick in ticks for each in tick.started()], [])
    expect("the finished node", (c.capacity(name), c.state(name), c.cordoned(name)), (16, "", False))


@scenario
def drift_is_repaired_only_in_a_window():
    """A node stops serving outside the window: it is named, left, and repaired when the window opens."""
    c = fleet(3, ts(4), rollout=window("0 2 * * *"))
    c.serve("n02", 0)
    ticks = [c.after("30m") for _ in range(6)]
    expect("nodes restarted outside the window", [each for tick in ticks for each in tick.restarted()], [])
    ready = c.condition("default", "Ready")
    expect_that(ready["status"] == "False" and "n02" in str([ready] + ticks[-1].all_findings), "n02 to be named", ready)
    c.tick(now="2026-03-03T02:05:00Z", held="1h")
    for _ in range(4):
        c.after("2m")
    expect("the capacity of n02", c.capacity("n02"), 8)


@scenario
def a_window_that_is_added_half_way_stops_the_rest():
    """Half of the fleet is done when windows are added to the policy: the others wait for the night and then follow."""
    c = fleet(4, ts(4))
    c.edit(any=ts(8))
    while sum(c.capacity(name) == 16 for name in c.nodes()) < 2:
        c.after("2m")
    c.policy(rollout=window("0 2 * * *"))
    ticks = [c.after("10m") for _ in range(6)]
    expect("starts outside the window", [each for tick in ticks for each in tick.started()], [])
    c.tick(now="2026-03-03T02:05:00Z", held="1h")
    for _ in range(8):
        c.after("2m")
    expect("capacities", [c.capacity(name) for name in c.nodes()], [16] * 4)


@scenario
def a_soak_longer_than_the_window_is_over_in_the_next_one():
    """A window of one hour and a soak of six hours: the canary goes in the first night, the others in the second."""
    c = fleet(3, ts(4), start="2026-03-02T01:10:00Z",
              rollout=dict(window("0 2 * * *"), canary={"nodesPerGroup": 1, "soak": "6h"}, maxUnavailable="100%",
                           maxUnavailablePerGroup="100%"), options=["--cluster-max-unavailable", "100%"])
    c.edit(any=ts(8))
    first = []
    while stamp(c.clock) < "2026-03-02T03:00:00Z":
        first += c.after("5m").started()
    one(first)
    day = []
    while stamp(c.clock) < "2026-03-03T01:50:00Z":
        day += c.after("10m").started()
    expect("starts by day", day, [])
    second = []
    while stamp(c.clock) < "2026-03-03T03:00:00Z":
        second += c.after("5m").started()
    expect("how many start in the second night", len(second), 2)


@scenario
def a_window_of_another_policy_concerns_only_its_nodes():
    """A policy for the pool `batch` has windows at night, and `default` has none: by day only the other nodes start."""
    c = Cluster({"any": ts(4)}, options=["--cluster-max-unavailable", "100%"])
    c.add_nodes("a1", "a2", labels={"pool": "batch"})
    c.add_nodes("b1", "b2", labels={"pool": "web"})
    c.policy("batch", priority=5, selector={"pool": "batch"}, rollout=window("0 2 * * *"))
    c.install()
    c.edit(any=ts(8))
    run = c.converge()
    expect("nodes that started by day", sorted(run.started()), ["b1", "b2"])
    expect("Progressing of batch", c.condition("batch", "Progressing").get("reason"), "OutsideWindow")
    expect("Progressing of default", c.condition("default", "Progressing").get("reason"), "Settled")


@scenario
def a_person_who_pauses_in_the_window_is_heard_in_the_next():
    """A pause during the first night still holds in the second."""
    c = fleet(4, ts(4), start="2026-03-02T01:10:00Z", rollout=window("0 2 * * *"))
    c.edit(any=ts(8))
    while not c.after("5m").started():
        pass
    c.after("1m")
    c.switch(paused=True)
    later = []
    while stamp(c.clock) < "2026-03-03T04:00:00Z":
        later += c.after("10m").started()
    expect("starts in the second night", later, [])
