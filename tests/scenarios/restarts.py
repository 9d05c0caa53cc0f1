"""Mechanism DaemonSetRestart, and nodes whose new pods cannot have read the edit that they were made for."""
from scenario import CONFIG_LABEL, Cluster, expect, expect_that, fleet, mps, numbered, scenario, stamp, ts

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
    c.serve("n01", 4)
    c.labels("n01")["nvidia.com/gpu.replicas"] = "2"
    for _ in range(20):
        c.after("6m")
    expect("the capacity of n01", c.capacity("n01"), 8)


@scenario
def a_node_that_joined_wrong_is_repaired_though_the_operator_restarts_every_six_minutes():
    """The same for a node that joins and does not show its profile."""
    c = fleet(3, ts(4))
    c.after("11m")
    c.add_node("n04")
    c.serve("n04", 4)
    c.labels("n04")["nvidia.com/gpu.replicas"] = "2"
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
