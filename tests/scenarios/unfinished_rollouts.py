"""Rollouts whose nodes cannot be changed, or whose record cannot be read: no SharingRollout says that it is complete, or
that it goes on."""
from scenario import expect, expect_that, fleet, mps, numbered, one, scenario, ts


def of_rollout(c, kind):
    """That condition of the only SharingRollout, as [status, reason]."""
    conditions = {condition["type"]: condition for condition in one(c.rollouts())["status"]["conditions"]}
    return [conditions[kind]["status"], conditions[kind]["reason"]]


def busy_on_the_way_to_mps():
    """Three nodes on time-slicing with a job each; the first one is drained for an edit to MPS."""
    c = fleet(3, ts(4))
    for name in c.nodes():
        c.consumer("job-" + name, name)
    c.edit(any=mps(4))
    c.after("2m")
    c.after("1m")
    expect("nodes in progress", len(c.in_progress()), 1)
    return c


@scenario
def a_rollout_whose_nodes_are_all_blocked_is_not_completed():
    """MIG is switched on on all nodes while the first one drains: none has the revision, so the SharingRollout is not
    Completed, is not Ready, and names them. When MIG is off again, all nodes get it."""
    c = busy_on_the_way_to_mps()
    labels = {name: dict(c.labels(name)) for name in c.nodes()}
    for name in c.nodes():
        c.enable_mig(name)
    for _ in range(4):
        c.after("2m")
    expect("updated nodes", one(c.rollouts())["status"]["counts"]["updated"], 0)
    expect("the phase", one(c.rollouts())["status"]["phase"], "Paused")
    expect("Ready", of_rollout(c, "Ready"), ["False", "MIGEnabled"])
    expect("Progressing", of_rollout(c, "Progressing"), ["False", "MIGEnabled"])
    expect("the last look", c.after("2m").actions, [])
    for name in c.nodes():
        c.labels(name).clear()
        c.labels(name).update({key: value for key, value in labels[name].items() if not key.startswith("gpusharing")})
        c.serve(name, 8)
        c.machines[name].frozen = False
        c.end("job-" + name)
    c.converge()
    expect("strategies", {c.labels(name)["nvidia.com/gpu.sharing-strategy"] for name in c.nodes()}, {"mps"})
    expect("the phase at the end", one(c.rollouts())["status"]["phase"], "Completed")


@scenario
def a_rollout_that_waits_for_an_approval_is_not_completed_by_a_driver_upgrade():
    """Mode Approve: the driver of all nodes is upgraded before anybody approves: the SharingRollout still waits."""
    c = fleet(3, ts(4))
    c.policy(mode="Approve")
    c.after("1m")
    c.edit(any=ts(8))
    c.after("2m")
    c.after("2m")
    for name in c.nodes():
        c.set_label(name, "nvidia.com/gpu-driver-upgrade-state", "drain-required")
    for _ in range(3):
        c.after("2m")
    expect("the phase during the upgrade", one(c.rollouts())["status"]["phase"], "AwaitingApproval")
    c.switch(approved=True)
    for name in c.nodes():
        c.set_label(name, "nvidia.com/gpu-driver-upgrade-state", "upgrade-done")
    c.converge()
    expect("capacity", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def a_rollout_is_completed_beside_a_blocked_node():
    """The neighbour: two nodes have the revision, and MIG blocks the third one, which the SharingRollout names."""
    c = fleet(3, ts(4))
    c.enable_mig("n02")
    c.edit(any=mps(4))
    c.converge()
    expect("the phase", one(c.rollouts())["status"]["phase"], "Completed")
    expect("nodes", [(entry["name"], entry["reason"]) for entry in one(c.rollouts())["status"]["nodes"]],
           [("n02", "MIGEnabled")])


@scenario
def a_node_half_way_is_named_while_the_record_cannot_be_read():
    """The record becomes garbage after the first pods of a node were deleted: policy and SharingRollout do not progress,
    for that reason, and name the node. When the record is mended, all nodes are changed."""
    c = fleet(3, mps(4))
    c.edit(any=mps(8))
    c.after("2m")
    name = one(c.after("20s").restarted())
    kept = [(found, dict(found["data"])) for found in c.own_config_maps()]
    for found, data in kept:
        found["data"] = {key: "{oops" for key in data}
        c.touch(found)
    c.after("2m")
    expect("the last look", c.after("2m").actions, [])
    for kind in ("Ready", "Progressing"):
        expect(kind + " of the SharingRollout", of_rollout(c, kind), ["False", "RecordUnreadable"])
        condition = c.condition("default", kind)
        expect(kind + " of the policy", [condition["status"], condition["reason"]], ["False", "RecordUnreadable"])
        expect_that(name in condition["message"], "the node that is half-way", condition["message"])
    for found, data in kept:
        found["data"] = data
        c.touch(found)
    c.converge()
    expect("capacity", {node: c.capacity(node) for node in c.nodes()}, dict.fromkeys(numbered(3), 16))
    expect("the phase at the end", one(c.rollouts())["status"]["phase"], "Completed")
