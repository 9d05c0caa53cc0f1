"""Nodes that do not show their profile and are not changed now: NotReady, held, or failed and set aside."""
from cluster.program import ask
from scenario import CONFIG_LABEL, expect, expect_that, fleet, scenario, ts


def unready_pods(c, name):
    for pod in c.operand_pods(name):
        pod["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
        c.touch(pod)


def named(c, tick, name):
    ready = c.condition("default", "Ready")
    expect_that(name in ready["message"] or any(name in f["object"]["name"] + f["message"] for f in tick.all_findings),
                name + " in Ready or in a finding", ready)
    expect_that(not ready["message"].rstrip().endswith(":"), "a message that does not break off", ready)


@scenario
def a_node_that_is_not_ready_is_named_when_its_pods_are_not_ready():
    """A node gets NotReady, and its pods with it, as the node lifecycle controller marks them: Ready names the node."""
    c = fleet(3, ts(4))
    c.set_ready("n01", False)
    unready_pods(c, "n01")
    for _ in range(3):
        tick = c.after("5m")
    named(c, tick, "n01")


@scenario
def a_held_node_that_serves_nothing_is_named():
    """A person holds a node that serves no GPU any more: Ready or a finding names it."""
    c = fleet(3, ts(4))
    c.annotate("Node", "n01", "gpusharing.dev/hold", "true")
    c.serve("n01", 0)
    for _ in range(3):
        tick = c.after("5m")
    named(c, tick, "n01")


def stop_is_named(words, stop):
    """n01 serves nothing for 44 minutes, and is not repaired because of this stop, which everything names."""
    c = fleet(2, ts(4), start="2026-03-02T10:00:00Z")
    stop(c)
    c.after("1m")
    c.serve("n01", 0)
    ticks = [c.after("11m") for _ in range(4)]
    expect("disruptions", [tick.now for tick in ticks if tick.disrupts()], [])
    ready = c.condition("default", "Ready")
    expect_that(words in ready["message"], "the stop in the condition Ready", ready)
    found = [finding for finding in ticks[-1].all_findings if words in finding["message"]]
    expect("nodes of findings that name the stop", [finding["object"]["name"] for finding in found], ["n01"])
    told = ask(["explain", "n01", "-f", "-"], c.manifests()).stdout
    expect_that("not repaired: " in told and words in told, "the stop in `explain n01`", told)
    expect("the last look", c.after("11m").actions, [])


@scenario
def a_drifting_node_that_a_pause_keeps_from_its_repair_is_named_with_it():
    """The policy is paused: Ready, a finding and `explain` say that the node is not repaired for that."""
    stop_is_named("spec.rollout.paused", lambda c: c.policy(rollout={"paused": True}))


@scenario
def a_drifting_node_that_a_paused_config_map_keeps_from_its_repair_is_named_with_it():
    """The same with the ConfigMap paused."""
    stop_is_named("gpusharing.dev/paused", lambda c: c.annotate("ConfigMap", c.config_map, "gpusharing.dev/paused",
                                                                "true", c.namespace))


@scenario
def a_drifting_node_that_mode_observe_keeps_from_its_repair_is_named_with_it():
    """The same in mode Observe, in which no other word says that an operator would repair the node."""
    stop_is_named("Observe", lambda c: c.policy(mode="Observe"))


@scenario
def a_drifting_node_that_waits_for_a_window_is_named_with_it():
    """The same where a window is far away: on a 29 February, so that it is also closed by the clock that `explain` reads."""
    window = {"cron": "0 2 29 2 *", "duration": "1h"}
    stop_is_named("maintenance window", lambda c: c.policy(rollout={"maintenanceWindows": [window]}))


@scenario
def a_relabelled_node_that_mode_observe_keeps_from_its_restart_is_named_with_it():
    """A label is moved in mode Observe, and the plugin does not reload: `explain` says that no restart follows."""
    c = fleet(2, ts(4), more={"slices": ts(6)})
    c.policy(mode="Observe")
    c.after("1m")
    c.behave("unchanged", "n01")
    c.set_label("n01", CONFIG_LABEL, "slices")
    ticks = [c.after("5m") for _ in range(5)]
    expect("disruptions", [tick.now for tick in ticks if tick.disrupts()], [])
    told = ask(["explain", "n01", "-f", "-"], c.manifests()).stdout
    expect_that("Verifying" in told and "does not restart it now: " in told and "Observe" in told, "the mode", told)


@scenario
def a_drifting_node_that_is_repaired_has_no_such_word():
    """The neighbour: nothing stops the repair: in the minutes before it, nothing says that the node is not repaired."""
    c = fleet(2, ts(4))
    c.serve("n01", 0)
    c.after("5m")
    expect_that("not repaired" not in c.condition("default", "Ready")["message"], "only the difference",
                c.condition("default", "Ready"))
    for _ in range(4):
        c.after("11m")
    expect("the capacity of n01", c.capacity("n01"), 8)


def failed_canary(c):
    for _ in range(8):
        c.after("2m")
    return [name for name in c.nodes() if c.state(name) == "Failed"][0]


def holder_is_named(prepare):
    c = fleet(3, ts(4))
    c.behave("crash", "n01")
    c.edit(any=ts(8))
    bad = failed_canary(c)
    prepare(c, bad)
    c.edit(any=ts(6))
    for _ in range(4):
        tick = c.after("2m")
    progressing = c.condition("default", "Progressing")
    expect("the reason", (progressing["status"], progressing["reason"]), ("False", "BudgetExhausted"))
    expect_that(bad + " holds" in progressing["message"], "the holder of the slot", progressing)


@scenario
def a_failed_node_that_is_not_ready_is_named_as_the_holder_of_its_slot():
    """The canary fails and gets NotReady; the text is edited again: the message says that it holds the only slot."""
    holder_is_named(lambda c, bad: c.set_ready(bad, False))


@scenario
def a_failed_node_that_is_held_is_named_as_the_holder_of_its_slot():
    """The canary fails, on-call holds it and edits again: the message says that it holds the only slot."""
    holder_is_named(lambda c, bad: c.annotate("Node", bad, "gpusharing.dev/hold", "true"))


@scenario
def a_failed_node_that_is_tainted_is_named_as_the_holder_of_its_slot():
    """The canary fails and gets a taint; the text is edited again."""
    def taint(c, bad):
        c.node(bad)["spec"]["taints"] = [{"key": "m", "value": "t", "effect": "NoSchedule"}]
        c.touch(c.node(bad))
    holder_is_named(taint)


@scenario
def a_policy_with_no_node_that_failed_does_not_say_failed():
    """Ready says that n01 failed to verify: then the counts have a failed node."""
    c = fleet(3, ts(4))
    c.behave("crash", "n01")
    c.edit(any=ts(8))
    bad = failed_canary(c)
    c.set_ready(bad, False)
    c.edit(any=ts(6))
    for _ in range(4):
        c.after("2m")
    ready = c.condition("default", "Ready")
    expect(ready["reason"] + " beside counts", c.counts()["failed"] > 0, ready["reason"] == "VerificationFailed")


@scenario
def a_node_that_joins_and_is_not_ready_is_named_with_that_reason():
    """A node joins, is recorded never and is NotReady for six hours: Progressing does not say RollingOut."""
    c = fleet(3, ts(4))
    c.add_node("n09")
    c.set_ready("n09", False)
    unready_pods(c, "n09")
    for _ in range(12):
        c.after("30m")
    expect("Progressing", c.condition("default", "Progressing")["status"], "False")
