"""Nodes that do not show their profile and are not changed now: NotReady, held, or failed and set aside."""
from scenario import expect, expect_that, fleet, scenario, ts


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
