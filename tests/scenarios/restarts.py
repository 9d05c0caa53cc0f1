"""Mechanism DaemonSetRestart, and nodes whose new pods cannot have read the edit that they were made for."""
import json

from scenario import (CONFIG_LABEL, GPU, INVALID, Cluster, expect, expect_that, fleet, mps, none, numbered, scenario,
                      stamp, ts)

BY_DAEMONSET = {"mechanism": "DaemonSetRestart", "workloads": "Interrupt", "canary": {"nodesPerGroup": 0}}


def born(c, name, when):
    """The node's pods were made at that time, whatever the DaemonSets' controller did."""
    for pod in c.operand_pods(name):
        pod["metadata"]["creationTimestamp"] = stamp(when)
        for status in pod["status"]["containerStatuses"]:
            status["state"] = {"running": {"startedAt": stamp(when)}}
        c.touch(pod)


def is_at_rest(c):
    expect("Ready", c.condition("default", "Ready").get("status"), "True")
    expect("nodes that wait", c.counts().get("pending", 0), 0)


@scenario
def a_node_whose_pods_were_made_in_the_second_of_the_edit_is_restarted_after_all():
    """The DaemonSets were restarted, and one node's new pods carry the edit's own second: they prove nothing."""
    c = fleet(3, ts(4), rollout=BY_DAEMONSET)
    edited = c.clock
    c.edit(any=ts(8))
    c.after("30s")
    born(c, "n01", edited)
    before = c.plugin("n01")
    tick = c.after("1m")
    expect("the plugin's pod of n01 at first", c.plugin("n01"), before)
    expect_that([finding for finding in tick.all_findings if "n01" in finding["message"]], "a finding that names n01",
                tick.all_findings)
    c.after("11m")
    c.converge()
    expect_that(c.plugin("n01") != before, "a new pod of the plugin on n01", before)
    is_at_rest(c)


@scenario
def a_daemonset_restart_goes_on_after_an_edit_of_another_key():
    """While the DaemonSets' controller works, somebody edits a key that no node uses."""
    c = fleet(3, ts(4), more={"other": ts(2)}, rollout=BY_DAEMONSET)
    c.edit(any=ts(8))
    c.after("30s")
    c.edit(other=ts(3))
    c.converge()
    expect("capacities", sorted({c.capacity(name) for name in c.nodes()}), [16])
    is_at_rest(c)


@scenario
def a_revision_that_comes_back_is_brought_by_the_daemonsets_again():
    """By DaemonSet to one text, node by node to another one, and by DaemonSet back to the first."""
    c = fleet(3, ts(4), rollout=BY_DAEMONSET)
    c.edit(any=ts(8))
    c.converge()
    c.policy(rollout={"mechanism": "NodeByNode"})
    c.edit(any=ts(6))
    c.converge()
    expect("capacities in between", sorted({c.capacity(name) for name in c.nodes()}), [12])
    c.policy(rollout={"mechanism": "DaemonSetRestart"})
    c.edit(any=ts(8))
    restarts = len(c.restarts)
    c.converge()
    expect_that(len(c.restarts) > restarts, "the DaemonSets to be restarted", c.restarts)
    expect("capacities", sorted({c.capacity(name) for name in c.nodes()}), [16])
    is_at_rest(c)


@scenario
def drift_that_is_adopted_is_over_once_the_daemonsets_have_brought_new_pods():
    """Nodes that had drifted at the installation are adopted: one restart of the DaemonSets, and all are recorded."""
    c = Cluster({"any": ts(4)})
    c.add_nodes(*numbered(3))
    c.policy(rollout=BY_DAEMONSET)
    c.wait("5m")
    c.edit(any=ts(8))
    c.install()
    policy = c.get("SharingPolicy", "default")
    policy["metadata"].setdefault("annotations", {})["gpusharing.dev/adopt-drift"] = "true"
    c.touch(policy)
    c.converge()
    expect("capacities", sorted({c.capacity(name) for name in c.nodes()}), [16])
    expect("restarts of each DaemonSet", max(len([1 for name, _ in c.restarts if name == each])
                                             for each, _ in c.restarts), 1)
    is_at_rest(c)


@scenario
def a_node_that_joined_in_the_second_of_an_edit_can_be_approved():
    """Mode Approve: a node joins in the very second in which its key is edited, and has to be restarted for it."""
    c = fleet(2, ts(4), more={"slices": ts(2)})
    c.policy(mode="Approve")
    c.wait("5m")
    c.tick()
    edited = c.clock
    c.edit(slices=ts(6))
    c.add_node("n99", labels={CONFIG_LABEL: "slices"})
    born(c, "n99", edited)
    before = c.plugin("n99")
    for _ in range(3):
        tick = c.after("10m")
    expect_that(c.rollouts(), "a SharingRollout that can be approved", c.condition("default", "Progressing"))
    expect_that([finding for finding in tick.all_findings if finding["object"]["name"] == "n99"],
                "a finding that says why n99 waits", tick.all_findings)
    c.switch(approved=True)
    c.converge()
    expect_that(c.plugin("n99") != before, "a new pod of the plugin on n99", before)
    is_at_rest(c)


@scenario
def drift_is_repaired_though_the_operator_restarts_every_six_minutes():
    """verifyTimeout is ten minutes, and every look is a new operator: a node that drifts is repaired all the same."""
    c = fleet(3, ts(4))
    c.after("11m")
    c.show_half("n01")
    for _ in range(20):
        c.after("6m")
    expect("the capacity of n01", c.capacity("n01"), 8)


@scenario
def a_node_that_joined_wrong_is_repaired_though_the_operator_restarts_every_six_minutes():
    """The same for a node that joins and does not show its profile."""
    c = fleet(3, ts(4))
    c.after("11m")
    c.add_node("n04")
    c.show_half("n04")
    for _ in range(20):
        c.after("6m")
    expect("the capacity of n04", c.capacity("n04"), 8)


@scenario
def a_rolling_update_that_stands_still_is_reported_though_the_operator_restarts():
    """The same for a template that replaces no pod: a warning within three hours."""
    c = fleet(4, mps(4))
    c.after("1m")
    c.template("h2")
    c.edit(any=mps(8))
    ticks = [c.after("6m") for _ in range(30)]
    told = [f["reason"] for tick in ticks for f in tick.all_findings if f["severity"] != "info"]
    expect_that(told, "a warning about the roll that stands still", told)


def is_left_alone(c, name="n02"):
    before = c.uids(name)
    for _ in range(6):
        c.after("2m")
    expect("pods of " + name, c.uids(name), before)
    progressing = c.condition("default", "Progressing")
    expect("Progressing", (progressing.get("status"), progressing.get("reason")), ("False", "MechanismUnusable"))
    expect_that(name in progressing["message"], "a message that names " + name, progressing["message"])
    return progressing["message"]


@scenario
def a_held_node_is_not_restarted_by_its_daemonset():
    """A person holds a node: no restart of the DaemonSets while it is held."""
    c = fleet(3, ts(4), rollout=BY_DAEMONSET)
    c.annotate("Node", "n02", "gpusharing.dev/hold", "true")
    c.after("1m")
    c.edit(any=ts(8))
    expect_that("Held" in is_left_alone(c), "a message that names who holds n02", c.condition("default", "Progressing"))
    c.annotate("Node", "n02", "gpusharing.dev/hold", None)
    c.converge()
    expect("capacities once nobody holds n02", sorted({c.capacity(each) for each in c.nodes()}), [16])


@scenario
def a_node_whose_own_key_is_broken_does_not_lose_its_gpus():
    """A node runs key special, whose text is broken now, on its old text: a restart would take its GPUs to 0 (S5)."""
    c = fleet(3, ts(4), more={"special": ts(2)}, rollout=BY_DAEMONSET)
    c.set_label("n02", CONFIG_LABEL, "special")
    for _ in range(4):
        c.after("3m")
    c.edit(special=INVALID)
    c.after("1m")
    c.after("1m")
    c.edit(any=ts(8))
    is_left_alone(c)
    expect("GPUs of n02", c.node("n02")["status"]["allocatable"][GPU], "4")


@scenario
def a_tainted_node_does_not_lose_its_pods():
    """The plugin does not tolerate a node's taint: a deleted pod would not come back."""
    c = fleet(3, ts(4), rollout=BY_DAEMONSET)
    c.node("n02")["spec"]["taints"] = [{"key": "maintenance", "value": "true", "effect": "NoSchedule"}]
    c.touch(c.node("n02"))
    c.after("1m")
    c.edit(any=ts(8))
    is_left_alone(c)


@scenario
def a_node_with_mig_is_not_restarted_into_mps():
    """MIG is on, and the edit goes to MPS: Blocked(MIGEnabled) under NodeByNode, restarted into it here (S5)."""
    c = fleet(3, ts(4), rollout=BY_DAEMONSET)
    c.enable_mig("n02")
    c.after("1m")
    c.edit(any=mps(4))
    is_left_alone(c)


@scenario
def a_node_under_a_driver_upgrade_is_not_restarted():
    """A driver upgrade holds the node."""
    c = fleet(3, ts(4), rollout=BY_DAEMONSET)
    c.set_label("n02", "nvidia.com/gpu-driver-upgrade-state", "drain-required")
    c.after("1m")
    c.edit(any=ts(8))
    is_left_alone(c)


@scenario
def a_node_with_kai_reservations_is_not_restarted_into_replicas():
    """KAI shares the GPUs of a node (S8)."""
    c = fleet(3, none(), rollout=BY_DAEMONSET)
    c.put({"apiVersion": "v1", "kind": "Pod",
           "metadata": {"name": "gpu-reservation-n02-abc", "namespace": "kai-resource-reservation",
                        "labels": {"app": "kai-resource-reservation", "runai-gpu-group": "g1"}},
           "spec": {"nodeName": "n02", "containers": [{"name": "r", "resources": {"limits": {GPU: "1"},
                                                                                 "requests": {GPU: "1"}}}]},
           "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
    c.after("1m")
    c.edit(any=ts(8))
    is_left_alone(c)


@scenario
def a_restart_for_one_key_does_not_bring_an_aborted_text_of_another():
    """The rollout of key special is aborted, that of key any approved: n02 does not read the aborted text (S10)."""
    c = fleet(3, ts(4), more={"special": ts(2)}, rollout=BY_DAEMONSET)
    c.set_label("n02", CONFIG_LABEL, "special")
    for _ in range(4):
        c.after("3m")
    c.policy(mode="Approve")
    c.after("1m")
    c.edit(special=ts(6), any=ts(8))
    c.after("2m")
    c.after("2m")
    for rollout in c.rollouts():
        if rollout["spec"]["key"] == "special":
            c.switch(rollout["metadata"]["name"], aborted=True)
    c.after("1m")
    for rollout in c.rollouts():
        if rollout["spec"]["key"] == "any":
            c.switch(rollout["metadata"]["name"], approved=True)
    is_left_alone(c)


@scenario
def a_node_is_not_recorded_with_a_text_that_it_never_showed():
    """A node gets new pods and does not show the edit. The text is edited again, and the operator restarts: it still
    knows from the SharingRollout what the node must have shown."""
    c = fleet(2, ts(4), rollout={"canary": {"nodesPerGroup": 0}})
    c.behave("unchanged", "n01")
    c.edit(any=ts(8))
    c.after("20s")
    c.after("20s")
    expect("n01 is in a change", "n01" in c.in_progress(), True)
    never_shown = json.loads(c.annotations("n01")["gpusharing.dev/change"])["to"]
    c.edit(any=INVALID)
    for _ in range(4):
        c.after("20s")
    expect_that(c.annotations("n01").get("gpusharing.dev/revision") != never_shown, "another revision than the edit's",
                c.annotations("n01"))
