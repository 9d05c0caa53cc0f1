"""Rollouts that stand still: policy and SharingRollout give the same reason in the same words."""
from scenario import CONFIG_LABEL, GFD_LABELS, expect, expect_that, fleet, mps, one, scenario, ts


def of_rollout(c, kind="Progressing"):
    """That condition of the only SharingRollout."""
    conditions = one(c.rollouts())["status"]["conditions"]
    return {condition["type"]: condition for condition in conditions}[kind]


def expect_the_same_standstill(c, reason):
    """Policy and SharingRollout do not progress, for the same reason and with the same message."""
    policy, rollout = c.condition("default", "Progressing"), of_rollout(c)
    expect("Progressing of the policy", (policy["status"], policy["reason"]), ("False", reason))
    expect("Progressing of the SharingRollout", [rollout[field] for field in ("status", "reason", "message")],
           [policy[field] for field in ("status", "reason", "message")])


def stuck_half_way(nodes):
    """The first of these nodes is mid-change, and DRA offers its GPUs as well; ten hours pass."""
    c = fleet(nodes, mps(4))
    c.edit(any=mps(8))
    node = one(c.after("2m").started())
    c.after("20s")
    c.put({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu.nvidia.com"},
           "spec": {"extendedResourceName": "nvidia.com/gpu"}})
    c.put({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "slice"},
           "spec": {"driver": "gpu.nvidia.com", "nodeName": node, "devices": [{"name": "gpu"}],
                    "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}})
    for _ in range(20):
        c.after("30m")
    return c, node


@scenario
def a_rollout_whose_only_node_is_stuck_half_way_does_not_progress():
    """An obstacle stops the only node half-way: policy and SharingRollout say so and name the node."""
    c, node = stuck_half_way(1)
    expect_the_same_standstill(c, "DRADoubleOffer")
    expect("nodes", [(entry["name"], entry["reason"]) for entry in one(c.rollouts())["status"].get("nodes", [])],
           [(node, "DRADoubleOffer")])


@scenario
def a_rollout_whose_canary_is_stuck_half_way_does_not_progress():
    """The same for the canary of three nodes: the others wait behind it."""
    c, node = stuck_half_way(3)
    expect_the_same_standstill(c, "DRADoubleOffer")
    expect_that(node in of_rollout(c)["message"], "the canary in the message", of_rollout(c))


@scenario
def a_rollout_outside_its_window_does_not_progress():
    """The window closes in mid-rollout: policy and SharingRollout say the same."""
    c = fleet(6, ts(4), rollout={"maxUnavailable": 1})
    c.edit(any=ts(8))
    for _ in range(4):
        c.after("3m")
    c.policy(rollout={"maintenanceWindows": [{"cron": "0 2 * * *", "duration": "1h"}]})
    for _ in range(3):
        c.after("2m")
    expect_the_same_standstill(c, "OutsideWindow")


def stalled_restart():
    """The operator restarts the DaemonSets, and their controller replaces no pod for three hours."""
    c = fleet(4, ts(4), rollout={"mechanism": "DaemonSetRestart", "workloads": "Interrupt",
                                 "canary": {"nodesPerGroup": 0}})

    def replace_nothing():
        c.restarts += c.restarts_wanted
        c.restarts_wanted = []
        c.template("restart-%d" % len(c.restarts))
    c.roll_daemonsets = replace_nothing
    c.edit(any=ts(8))
    c.after("2m")
    c.after("2m")
    c.wait("3h")
    c.after("2m", held="3h")
    return c


@scenario
def a_restart_of_the_daemonsets_that_replaces_no_pod_does_not_progress():
    """Policy and SharingRollout report the DaemonSets, and the counts of the SharingRollout add up."""
    c = stalled_restart()
    expect_the_same_standstill(c, "RollingUpdateStalled")
    counts = one(c.rollouts())["status"]["counts"]
    expect("sum of the counts", sum(counts[name] for name in counts if name != "total"), counts["total"])


@scenario
def a_paused_restart_of_the_daemonsets_that_replaces_no_pod_is_paused():
    """The same, and the policy is paused: both say Paused."""
    c = stalled_restart()
    c.policy(rollout={"mechanism": "DaemonSetRestart", "workloads": "Interrupt", "canary": {"nodesPerGroup": 0},
                      "paused": True})
    c.after("1m", held="3h")
    expect_the_same_standstill(c, "Paused")


def expect_not_rolling_out(c, reason, name):
    """Policy and SharingRollout say why they do not progress, and name the node."""
    progressing = c.condition("default", "Progressing")
    expect("Progressing", (progressing["status"], progressing["reason"]), ("False", reason))
    expect_that(reason == "GPUOperatorUpdating" or name in progressing["message"] or "window" in progressing["message"],
                "the node or the window named", progressing)


@scenario
def a_joined_node_without_labels_is_named_as_the_reason():
    """GFD writes no labels on a node that joined: after three days Progressing names the node and its labels."""
    c = fleet(3, ts(4))
    c.add_node("n98", come_up=False)
    c.machines["n98"].behaviour = "starting"
    c.react()
    c.behave("healthy", "n98")
    c.machines["n98"].gfd = False
    c.restart("n98")
    for _ in range(3):
        c.after("24h")
    expect_not_rolling_out(c, "LabelsMissing", "n98")


@scenario
def a_relabelled_node_that_waits_for_a_slot_is_named_as_the_reason():
    """Cordoned nodes hold all slots, and a relabelled node does not reload: Progressing says BudgetExhausted."""
    c = fleet(10, ts(4), more={"slices": ts(8)}, rollout={"maxUnavailable": 2, "maxUnavailablePerGroup": 2},
              options=["--cluster-max-unavailable", "2"])
    c.wait("10m")
    c.cordon("n09")
    c.cordon("n10")
    c.after("1m")
    c.behave("unchanged", "n01")
    c.set_label("n01", CONFIG_LABEL, "slices")
    for _ in range(3):
        c.after("24h")
    expect_not_rolling_out(c, "BudgetExhausted", "n01")


@scenario
def a_relabelled_node_that_waits_for_a_window_names_the_window():
    """A label moved in the morning does not reload, and windows are at night: Progressing says OutsideWindow."""
    c = fleet(3, ts(4), more={"slices": ts(8)},
              rollout={"maintenanceWindows": [{"cron": "0 2 * * *", "duration": "1h", "timeZone": "UTC"}]})
    c.wait("10m")
    c.behave("unchanged", "n01")
    c.set_label("n01", CONFIG_LABEL, "slices")
    for _ in range(4):
        c.after("30m")
    expect_not_rolling_out(c, "OutsideWindow", "n01")


@scenario
def a_relabelled_node_under_a_lasting_daemonset_difference_names_it():
    """ClusterPolicy and DaemonSets differ for days, and a relabelled node does not reload: Progressing says so."""
    c = fleet(3, ts(4), more={"slices": ts(8)})
    c.wait("10m")
    c.get("ClusterPolicy", "cluster-policy")["spec"]["devicePlugin"]["config"]["default"] = "slices"
    c.behave("unchanged", "n01")
    c.set_label("n01", CONFIG_LABEL, "slices")
    for _ in range(4):
        c.after("24h")
    expect_not_rolling_out(c, "GPUOperatorUpdating", "n01")


@scenario
def a_change_whose_labels_stay_away_is_named_as_the_reason():
    """After the restart of the only free node its labels stay away for days: Progressing names the node and its labels."""
    c = fleet(4, ts(4))
    c.file_mode = True
    for name in ("n02", "n03", "n04"):
        c.annotate("Node", name, "gpusharing.dev/hold", "true")
    c.edit(any=ts(8))
    shown = c.show_labels

    def without_labels(name, machine):
        if name != "n01":
            return shown(name, machine)
        for key in [key for key in c.labels(name) if key in GFD_LABELS]:
            c.labels(name).pop(key)
        return None

    c.show_labels = without_labels
    c.after("2m")
    expect("in progress", c.in_progress(), ["n01"])
    for _ in range(3):
        c.after("24h")
    expect_not_rolling_out(c, "LabelsMissing", "n01")
