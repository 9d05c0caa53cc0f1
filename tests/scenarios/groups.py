"""Groups: nodes of another product do not follow a revision that only other products have shown."""
from scenario import CONFIG_LABEL, Cluster, expect, fleet, numbered, scenario, ts

WIDE = ["--cluster-max-unavailable", "100%"]
OPEN = {"maxUnavailable": "100%", "maxUnavailablePerGroup": "100%"}
SOAKS = dict(OPEN, canary={"nodesPerGroup": 1, "soak": "1h"})


def two_products():
    """Three A100 and three T4 nodes that could all start at once after a canary of each product."""
    c = Cluster({"any": ts(4)}, options=WIDE)
    c.add_nodes(*numbered(3, "a"))
    c.add_nodes(*numbered(3, "t"), product="Tesla-T4", gpus=1)
    c.policy(rollout=SOAKS)
    c.install()
    return c


def first_wave(c):
    """The nodes that start first, within a few minutes."""
    first = []
    for _ in range(4):
        first = first or c.after("2m").started()
    return first


def rolled_out_beside(c):
    """An edit is rolled out while the T4 nodes cannot take part."""
    c.edit(any=ts(8))
    for _ in range(10):
        c.after("20m")
    expect("the capacity of the A100 nodes", {c.capacity(name) for name in numbered(3, "a")}, {16})
    expect("the capacity of the T4 nodes", {c.capacity(name) for name in numbered(3, "t")}, {4})


@scenario
def a_group_under_a_driver_upgrade_begins_with_its_own_canary():
    """The T4 nodes are in a driver upgrade while the A100 nodes are rolled out: afterwards one T4 node goes first."""
    c = two_products()
    for name in numbered(3, "t"):
        c.set_label(name, "nvidia.com/gpu-driver-upgrade-state", "drain-required")
    rolled_out_beside(c)
    for name in numbered(3, "t"):
        c.set_label(name, "nvidia.com/gpu-driver-upgrade-state", "upgrade-done")
    expect("how many T4 nodes start first", len(first_wave(c)), 1)


@scenario
def a_group_that_was_tainted_during_the_rollout_begins_with_its_own_canary():
    """The T4 nodes have a taint that the plugin does not tolerate during a rollout: without it, one T4 node goes first."""
    c = two_products()
    for name in numbered(3, "t"):
        c.node(name)["spec"]["taints"] = [{"key": "maintenance", "value": "true", "effect": "NoSchedule"}]
        c.touch(c.node(name))
    rolled_out_beside(c)
    for name in numbered(3, "t"):
        c.node(name)["spec"].pop("taints")
        c.touch(c.node(name))
    expect("how many T4 nodes start first", len(first_wave(c)), 1)


def ready_after_the_rollout():
    """The T4 nodes were NotReady while the A100 nodes were rolled out, and are Ready now."""
    c = two_products()
    for name in numbered(3, "t"):
        c.set_ready(name, False)
    rolled_out_beside(c)
    for name in numbered(3, "t"):
        c.set_ready(name, True)
    return c


@scenario
def a_group_that_was_not_ready_during_the_rollout_begins_with_its_own_canary():
    """The T4 nodes are NotReady while the A100 nodes are rolled out: when they are Ready, one T4 node goes first."""
    c = ready_after_the_rollout()
    expect("how many T4 nodes start first", len(first_wave(c)), 1)


@scenario
def a_group_that_comes_after_the_rollout_ends_up_on_the_revision():
    """The T4 nodes were NotReady during a rollout: their canary soaks, the others follow, and nothing is left to do."""
    c = ready_after_the_rollout()
    waves = [names for names in (c.after("20m").started() for _ in range(12)) if names]
    expect("how many nodes start in each wave", [len(names) for names in waves], [1, 2])
    expect("the capacity of all nodes", {c.capacity(name) for name in c.nodes()}, {16, 8})
    expect("Progressing", c.condition("default", "Progressing")["status"], "False")


@scenario
def nodes_of_another_product_that_a_policy_moves_to_a_verified_key_begin_with_a_canary():
    """Key slices was verified on A100 nodes, and a policy moves the T4 nodes to it: one of them goes first."""
    c = Cluster({"any": ts(4), "slices": ts(8)}, options=WIDE)
    c.add_nodes(*numbered(3, "a"), labels={"pool": "a"})
    c.add_nodes(*numbered(3, "t"), product="Tesla-T4", gpus=1, labels={"pool": "t"})
    c.install()
    c.policy("a", priority=5, selector={"pool": "a"}, profile={"configMapKey": "slices"}, rollout=SOAKS)
    for _ in range(10):
        c.after("20m")
    expect("the capacity of the A100 nodes", {c.capacity(name) for name in numbered(3, "a")}, {16})
    c.policy("t", priority=5, selector={"pool": "t"}, profile={"configMapKey": "slices"}, rollout=SOAKS)
    expect("how many T4 nodes start first", len(first_wave(c)), 1)


@scenario
def a_node_that_joined_before_a_bad_edit_does_not_go_down_beside_the_canary():
    """A node joins a minute before an edit that crashes: one node goes down for the edit, not two."""
    c = fleet(6, ts(4), rollout=OPEN, options=WIDE)
    c.add_node("n99")
    c.wait("50s")
    c.behave("crash", *c.nodes())
    c.edit(any=ts(8))
    ticks = [c.after("1m") for _ in range(5)]
    expect("how many nodes were started", len([name for tick in ticks for name in tick.started()]), 1)


@scenario
def nodes_whose_label_a_person_moved_and_that_do_not_reload_are_restarted_one_first():
    """A person moves six nodes to a key that was never verified, and the plugin does not reload: one is restarted first."""
    c = fleet(6, ts(4), more={"slices": ts(8)}, rollout=OPEN, options=WIDE)
    c.wait("10m")
    c.behave("unchanged", *c.nodes())
    for name in c.nodes():
        c.set_label(name, CONFIG_LABEL, "slices")
        c.serve(name, 8)
    c.behave("healthy", *c.nodes())  # A new pod shows its text.
    first = []
    for _ in range(5):
        first = first or c.after("5m").started()
    expect("how many nodes start first", len(first), 1)
    for _ in range(12):
        c.after("5m")
    expect("the capacity of all nodes", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def drifting_nodes_need_no_canary():
    """Three nodes stop showing a verified profile: all of them are repaired at once, as the budgets allow."""
    c = fleet(6, ts(4), rollout=OPEN, options=WIDE)
    for name in numbered(3):
        c.serve(name, 4)
        c.labels(name)["nvidia.com/gpu.replicas"] = "2"
    ticks = [c.after("11m") for _ in range(2)]
    expect("started", sorted(name for tick in ticks for name in tick.started()), numbered(3))
