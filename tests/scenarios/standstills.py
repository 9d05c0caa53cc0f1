"""Rollouts that stand still: policy and SharingRollout give the same reason in the same words."""
from scenario import expect, expect_that, fleet, mps, one, scenario, ts


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
