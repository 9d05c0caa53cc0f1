"""While nothing changes, no status is written: not by an operator that has just been started, and not because a time in
a message has moved."""
from scenario import expect, expect_that, fleet, mps, none, one, scenario, ts

HOLD = "gpusharing.dev/hold"


def writes(tick):
    return ["%s: %s" % (action["target"]["name"], [condition["message"] for condition in
                                                   action["status"].get("conditions", [])] +
                        [node["message"] for node in action["status"].get("nodes", [])
                         if isinstance(action["status"].get("nodes"), list)] +
                        [blocked["message"] for blocked in action["status"].get("blocked", [])])
            for action in tick.of("PatchStatus")]


def expect_silence(c, looks=5, each="2m", first=2):
    """From the third look on nothing is written."""
    for _ in range(first):
        c.after(each)
    for _ in range(looks):
        expect("statuses that are written", writes(c.after(each)), [])


def blocked_message(c):
    return one(c.get("SharingPolicy", "default")["status"]["blocked"])["message"]


@scenario
def a_node_that_waits_for_a_pod_until_a_time():
    """The message says until when the node waits for its pod, which stays the same."""
    c = fleet(2, mps(4), rollout={"idleTimeout": "4h"})
    for name in c.nodes():
        c.consumer("job-" + name, name)
    c.edit(any=mps(8))
    expect_silence(c)
    expect_that("if this lasts until" in blocked_message(c), "a time", blocked_message(c))


@scenario
def a_node_that_waits_for_a_pod_after_a_hold():
    """The same after a hold: the time is that of the hold's end and idleTimeout."""
    c = fleet(1, mps(4), rollout={"idleTimeout": "4h"})
    c.consumer("job-0", "n01")
    c.edit(any=mps(8))
    c.after("2m")
    c.after("2m")
    c.annotate("Node", "n01", HOLD, "true")
    for _ in range(3):
        c.after("30m")
    c.annotate("Node", "n01", HOLD, None)
    expect_silence(c, first=3)
    # Edited at about 08:46, held until about 10:20.
    expect_that("until 2026-03-02T14:2" in blocked_message(c), "a time four hours after the hold", blocked_message(c))


@scenario
def a_canary_that_soaks():
    """The message says when the soak ends, which stays the same."""
    c = fleet(4, ts(4), rollout={"canary": {"nodesPerGroup": 1, "soak": "4h"}})
    c.edit(any=ts(8))
    for _ in range(3):
        c.after("2m")
    expect_silence(c)
    message = c.condition("default", "Progressing")["message"]
    expect_that("the next nodes start at" in message, "a time", message)


@scenario
def a_node_that_was_deferred():
    """A person uncordoned the node during its drain."""
    c = fleet(2, mps(4), rollout={"idleTimeout": "4h", "maxUnavailable": 1})
    for name in c.nodes():
        c.consumer("job-" + name, name)
    c.edit(any=mps(8))
    c.after("2m")
    c.after("2m")
    c.cordon(one(c.in_progress()), on=False)
    expect_silence(c, first=4)


def expect_silence_of_new_pods(behaviour):
    c = fleet(2, ts(4), rollout={"verifyTimeout": "4h"})
    c.behave(behaviour, *c.nodes())
    c.edit(any=ts(8))
    expect_silence(c, first=4)


@scenario
def a_node_whose_pods_do_not_come_up():
    """The new pods of a node in a change crash."""
    expect_silence_of_new_pods("crash")


@scenario
def a_node_that_does_not_show_its_profile():
    """The new pods of a node in a change are Ready, and the node goes on to show what it showed."""
    expect_silence_of_new_pods("unchanged")


@scenario
def a_node_that_is_held_in_its_change():
    """A person holds a node in a change."""
    c = fleet(2, ts(4))
    c.behave("starting", *c.nodes())
    c.edit(any=ts(8))
    c.after("2m")
    c.annotate("Node", one(c.in_progress()), HOLD, "true")
    expect_silence(c, looks=12)


@scenario
def a_rollout_that_is_paused():
    """An edit waits while the policy is paused."""
    c = fleet(2, ts(4), rollout={"paused": True})
    c.edit(any=ts(8))
    expect_silence(c)


@scenario
def a_rollout_outside_its_windows():
    """An edit waits for a window."""
    c = fleet(2, ts(4), rollout={"maintenanceWindows": [{"cron": "0 2 * * *", "duration": "1h", "timeZone": "UTC"}]})
    c.edit(any=ts(8))
    expect_silence(c)


@scenario
def a_rollout_that_has_failed():
    """The canary has failed."""
    c = fleet(2, ts(4))
    c.behave("crash", *c.nodes())
    c.edit(any=ts(8))
    for _ in range(8):
        c.after("2m")
    expect_silence(c)


@scenario
def a_node_that_drifts_and_is_not_repaired():
    """A node does not show its profile, and its policy is paused."""
    c = fleet(2, ts(4), rollout={"paused": True})
    c.show_half("n01")
    for _ in range(8):
        c.after("2m")
    expect_silence(c)


@scenario
def a_node_that_is_not_ready():
    """A node is NotReady while an edit is rolled out."""
    c = fleet(2, ts(4))
    c.set_ready("n02", False)
    c.edit(any=ts(8))
    for _ in range(8):
        c.after("2m")
    expect_silence(c)


@scenario
def a_label_that_was_moved_and_has_no_effect():
    """A person moves a label under a pause, and the plugin does not reload."""
    c = fleet(2, ts(4), more={"two": ts(2)}, rollout={"paused": True})
    c.behave("unchanged", "n01")
    c.set_label("n01", "nvidia.com/device-plugin.config", "two")
    for _ in range(5):
        c.after("2m")
    expect_silence(c)


@scenario
def a_policy_in_mode_observe():
    """Mode Observe: an edit would roll."""
    c = fleet(2, none())
    c.policy(mode="Observe")
    c.edit(any=ts(8))
    expect_silence(c)


@scenario
def a_rollout_that_waits_for_an_approval():
    """Mode Approve, and nobody has approved."""
    c = fleet(2, mps(4))
    c.policy(mode="Approve")
    c.edit(any=mps(8))
    expect_silence(c)


@scenario
def a_node_whose_pods_a_budget_keeps():
    """workloads: Evict, and a PodDisruptionBudget refuses."""
    c = fleet(2, mps(4), rollout={"workloads": "Evict", "idleTimeout": "4h"})
    for name in c.nodes():
        c.consumer("job-" + name, name)
        c.refuses_eviction.add("job-" + name)
    c.edit(any=mps(8))
    expect_silence(c, first=4)


@scenario
def nodes_that_wait_for_a_full_budget():
    """One node waits for its pod, and the others wait for its slot."""
    c = fleet(4, mps(4), rollout={"maxUnavailable": 1, "idleTimeout": "4h", "canary": {"nodesPerGroup": 0}})
    for name in c.nodes():
        c.consumer("job-" + name, name)
    c.edit(any=mps(8))
    expect_silence(c, first=4)


@scenario
def a_canary_that_stops_showing_its_profile():
    """The canary was verified, and shows something else during its soak, under a pause."""
    c = fleet(3, ts(4), rollout={"canary": {"nodesPerGroup": 1, "soak": "4h"}})
    c.edit(any=ts(8))
    for _ in range(3):
        c.after("2m")
    canary = one([name for name in c.nodes() if c.capacity(name) == 16])
    c.policy(rollout={"paused": True})
    c.show_half(canary)
    expect_silence(c, first=4)


@scenario
def a_profile_that_is_invalid():
    """The text cannot be parsed."""
    c = fleet(2, ts(4))
    c.edit(any="version: v1\nsharing: [\n")
    expect_silence(c)


@scenario
def nodes_that_follow_their_daemonsets():
    """RollingUpdate: the DaemonSets have a new template, and replace no pod for hours."""
    c = fleet(3, ts(4))
    c.template("next")
    expect_silence(c, looks=12, first=8)


@scenario
def a_node_that_joins_and_does_not_come_up():
    """A node joins, and its plugin crashes, under a pause."""
    c = fleet(2, ts(4), rollout={"paused": True})
    machine = c.add_node("n03", come_up=False)
    machine.behaviour = "crash"
    c.react()
    for _ in range(8):
        c.after("2m")
    expect_silence(c)


@scenario
def a_deleted_policy_that_reverts():
    """A policy with deletionPolicy Revert is deleted, and the revert waits for pods."""
    c = fleet(2, ts(4), more={"mps": mps(4)}, rollout={"idleTimeout": "4h"})
    c.policy("p", priority=5, profile={"configMapKey": "mps"}, deletionPolicy="Revert",
             rollout={"idleTimeout": "4h", "maxUnavailable": "100%"})
    c.converge()
    for name in c.nodes():
        c.consumer("job-" + name, name)
    c.delete_policy("p")
    expect_silence(c, first=4)
