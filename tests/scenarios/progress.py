"""What statuses and findings say while a rollout progresses."""
from scenario import expect, expect_that, fleet, mps, one, scenario, stamp, ts


def conditions_of(c):
    return [condition for rollout in c.rollouts() for condition in rollout.get("status", {}).get("conditions", [])]


def expect_messages(c):
    expect("conditions without a message", [x["type"] for x in conditions_of(c) if not x["message"]], [])


def expect_the_same_message(c):
    """Progressing of the policy and of the only SharingRollout; returns its message."""
    of_rollout = {x["type"]: x["message"] for x in one(c.rollouts())["status"]["conditions"]}["Progressing"]
    of_policy = c.condition("default", "Progressing")["message"]
    expect("Progressing of the SharingRollout", of_rollout, of_policy)
    return of_policy


@scenario
def the_conditions_of_a_rollout_have_a_message():
    """An ordinary rollout: in no look a condition of the SharingRollout is without a message."""
    c = fleet(3, ts(4))
    c.edit(any=ts(8))
    for _ in range(7):
        c.after("2m")
        expect_messages(c)
    expect("capacity", c.capacity("n03"), 16)


@scenario
def the_last_node_in_progress_is_named():
    """The only node does not become Ready: Progressing names it, in the policy and in the SharingRollout."""
    c = fleet(1, ts(4))
    c.behave("starting", "n01")
    c.edit(any=ts(8))
    for _ in range(3):
        c.after("2m")
    message = expect_the_same_message(c)
    expect_that("n01" in message, "the name of the node", message)


@scenario
def nodes_that_wait_for_their_daemonset_are_named():
    """A new template makes its pods crash during a RollingUpdate, and an edit waits for it: no condition is empty."""
    c = fleet(4, ts(4))
    c.bad_templates.add("h2")
    c.template("h2")
    c.restart("n01")
    c.after("2m")
    c.edit(any=ts(8))
    for _ in range(4):
        c.after("2m")
        expect_messages(c)


@scenario
def findings_do_not_repeat():
    """The text becomes invalid while a node is half-way: every finding is reported once."""
    c = fleet(3, mps(4))
    c.edit(any=mps(8))
    c.after("2m")
    c.after("5s")
    c.edit(any=mps(1))
    for _ in range(4):
        tick = c.after("2m")
    found = [(f["object"]["kind"], f["object"]["name"], f["reason"], f["message"]) for f in tick.all_findings]
    expect("findings", sorted(found), sorted(set(found)))
    expect_that(found, "a finding about the text")


@scenario
def a_rollout_that_is_started_again_counts_its_time_from_then():
    """A rollout is aborted, and started again twelve minutes later (`rollout start`): it began when it was started again."""
    c = fleet(8, ts(4), rollout={"maxUnavailable": 1})
    c.edit(any=ts(8))
    for _ in range(3):
        c.after("30s")
    c.switch(aborted=True)
    for _ in range(6):
        c.after("2m")
    again = stamp(c.clock)
    policy = c.get("SharingPolicy", "default")
    policy["metadata"].setdefault("annotations", {})["gpusharing.dev/retry"] = again
    for rollout in c.rollouts():
        rollout["spec"].pop("aborted", None)
        c.touch(rollout)
    c.touch(policy)
    for _ in range(8):
        c.after("30s")
    active = one([r for r in c.rollouts() if r.get("status", {}).get("phase") == "Progressing"])["status"]
    expect_that(active.get("startedAt", "") >= again, "a start after " + again, active.get("startedAt"))


@scenario
def the_counts_of_a_superseded_rollout_add_up():
    """A rollout is superseded while one of three nodes has the revision and another one changes: its counts stay as they
    were, and add up to its total."""
    c = fleet(3, ts(4), rollout={"canary": {"nodesPerGroup": 0}})
    c.edit(any=ts(8))
    for _ in range(8):
        c.after("1m")
        last = dict(one(c.rollouts()).get("status", {}).get("counts", {}))
        if (last.get("updated"), last.get("inProgress")) == (1, 1):
            break
    expect("nodes that are updated and in progress", (last.get("updated"), last.get("inProgress")), (1, 1))
    c.edit(any=ts(6))
    c.converge()
    counts = one(c.rollouts("Superseded"))["status"]["counts"]
    expect("sum of the counts", sum(count for kind, count in counts.items() if kind != "total"), counts["total"])
    expect("counts", counts, last)
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {12})


def only_failed_nodes_remain(c):
    """Progressing of the policy and of the SharingRollout: nothing is settled while the rollout has not ended."""
    for _ in range(10):
        c.after("3m")
    expect("state of n01", c.state("n01"), "Failed")
    message = expect_the_same_message(c)
    expect_that("rollout start" in message and "n01" in message, "a message with the node and the command", message)
    progressing = {x["type"]: x for x in one(c.rollouts())["status"]["conditions"]}["Progressing"]
    expect("reason of the policy's Progressing", c.condition("default", "Progressing")["reason"], progressing["reason"])
    expect("status of both", (c.condition("default", "Progressing")["status"], progressing["status"]), ("False", "False"))
    return one(c.rollouts())["status"]["phase"], progressing["reason"]


@scenario
def both_statuses_agree_where_a_template_under_on_delete_has_failed_everywhere():
    """OnDelete: the pods of the only node fail with a new template. The SharingRollout is Paused by MaxFailures, and the
    policy does not call that Settled."""
    c = fleet(1, ts(4), on_delete=True)
    c.behave("crash", "n01")
    c.template("h2")
    expect("phase and reason", only_failed_nodes_remain(c), ("Paused", "MaxFailures"))


@scenario
def both_statuses_agree_where_an_edit_has_failed_everywhere():
    """The same for an edit."""
    c = fleet(1, ts(4))
    c.behave("crash", "n01")
    c.edit(any=ts(8))
    expect("phase and reason", only_failed_nodes_remain(c), ("Paused", "MaxFailures"))


@scenario
def both_statuses_agree_where_one_node_of_three_has_failed():
    """One of three nodes fails, which the policy tolerates: the others are changed, and both statuses name the node."""
    c = fleet(3, ts(4), rollout={"maxFailures": 2, "maxUnavailable": 2, "maxUnavailablePerGroup": 2,
                                 "canary": {"nodesPerGroup": 0}}, options=["--cluster-max-unavailable", "2"])
    c.behave("crash", "n01")
    c.edit(any=ts(8))
    expect("phase and reason", only_failed_nodes_remain(c), ("Failed", "VerificationFailed"))


@scenario
def a_policy_without_failed_nodes_is_settled():
    """The neighbour: every node has the revision, and nothing is being changed."""
    c = fleet(2, ts(4))
    c.edit(any=ts(8))
    c.converge()
    progressing = c.condition("default", "Progressing")
    expect("Progressing", (progressing["status"], progressing["reason"]), ("False", "Settled"))


def phases_of_the_last_rollout(c, looks, each="2m"):
    """The phases of the newest SharingRollout in their order; looks with the same phase count once."""
    out = []
    for _ in range(looks):
        c.after(each)
        phase = c.rollouts()[-1].get("status", {}).get("phase")
        if phase and out[-1:] != [phase]:
            out.append(phase)
    return out


def completed_and_drifting(nodes, *drifting):
    c = fleet(nodes, ts(4))
    c.edit(any=ts(8))
    c.converge()
    for name in drifting:
        c.show_half(name)
    return c


@scenario
def nodes_that_drift_are_one_attempt_and_complete_once():
    """Four of six nodes stop showing their profile, and are repaired one after the other: the SharingRollout is reopened
    once, and Completed once, when the last one is repaired."""
    c = completed_and_drifting(6, "n01", "n02", "n03", "n04")
    expect("phases", phases_of_the_last_rollout(c, 20), ["Completed", "Progressing", "Completed"])
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def an_edit_that_is_taken_back_after_a_restart_of_the_daemonsets_is_one_attempt_and_completes_once():
    """DaemonSetRestart: an edit is taken back after the restart. The pods were created in between, so the DaemonSets are
    restarted once more at once, and the SharingRollout of the former text is Completed once."""
    c = fleet(4, ts(4), rollout={"mechanism": "DaemonSetRestart", "workloads": "Interrupt", "canary": {"nodesPerGroup": 0},
                                 "maxUnavailable": "100%", "maxUnavailablePerGroup": "100%"},
              options=["--cluster-max-unavailable", "100%"])
    c.edit(any=ts(8))
    while not c.restarts:
        c.after("10s")
    c.edit(any=ts(4))
    c.policy(rollout={"maxUnavailable": 1, "maxUnavailablePerGroup": 1})
    restarts = len(c.restarts)
    expect("phases", phases_of_the_last_rollout(c, 30, "1m"), ["Completed"])
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {8})
    expect("further restarts of a DaemonSet", len(c.restarts) - restarts, 2)


@scenario
def nodes_that_cannot_be_repaired_keep_no_rollout_open():
    """The neighbour: two nodes drift and are repaired. A third one has a taint, a person holds a fourth one, and a device
    of a fifth one is missing: the SharingRollout is Completed without them."""
    c = completed_and_drifting(6, "n01", "n02", "n03", "n04")
    c.node("n03")["spec"]["taints"] = [{"key": "m", "value": "t", "effect": "NoSchedule"}]
    c.touch(c.node("n03"))
    c.annotate("Node", "n04", "gpusharing.dev/hold", "true")
    c.serve("n05", 8)
    expect("phases", phases_of_the_last_rollout(c, 20), ["Completed", "Progressing", "Completed"])
    expect("capacities", [c.capacity(name) for name in c.nodes()], [16, 16, 4, 4, 8, 16])


@scenario
def a_repair_that_waits_for_a_slot_says_so():
    """Two nodes drift, and a third one gets NotReady while the first one is repaired: both statuses say that it holds the
    slot that the second repair needs."""
    c = completed_and_drifting(4, "n01", "n02")
    while not c.in_progress():
        c.after("2m")
    c.set_ready("n04", False)
    for _ in range(4):
        c.after("2m")
    message = expect_the_same_message(c)
    expect_that("n04" in message, "the node that holds the slot", message)
    progressing = c.condition("default", "Progressing")
    expect("Progressing", (progressing["status"], progressing["reason"]), ("False", "BudgetExhausted"))
    c.set_ready("n04", True)
    c.converge()
    expect("phase", one(c.rollouts())["status"]["phase"], "Completed")
