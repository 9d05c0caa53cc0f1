"""Nodes that leave a policy with deletionPolicy Revert."""
from scenario import CONFIG_LABEL, Cluster, expect, expect_that, numbered, scenario, ts


@scenario
def a_revert_that_a_paused_policy_holds_names_the_pause():
    """A policy with Revert is deleted, and default, which gets its nodes, is paused: its status names the pause."""
    c = Cluster({"any": ts(2), "slices": ts(4)})
    c.add_nodes(*numbered(2))
    c.install()
    c.policy("p", priority=5, selector={"nvidia.com/gpu.present": "true"}, deletionPolicy="Revert",
             profile={"configMapKey": "slices"})
    c.converge(each="3m")
    c.policy("default", rollout={"paused": True})
    c.after("1m")
    c.delete_policy("p")
    for _ in range(6):
        c.after("1h")
    progressing = c.condition("p", "Progressing")
    expect("Progressing", (progressing["status"], progressing["reason"]), ("False", "Paused"))
    expect_that("default" in progressing["message"], "the policy that is paused named", progressing)
    c.policy("default", rollout={"paused": False})
    for _ in range(8):
        c.after("3m")
    expect("labels", {c.labels(name).get(CONFIG_LABEL) for name in c.nodes()}, {None})


@scenario
def a_node_that_leaves_a_policy_with_revert_waits_for_observe_and_says_so():
    """A node leaves a policy with Revert, and default is in Observe: the label stays, and Progressing says Observe."""
    c = Cluster({"any": ts(2), "slices": ts(4)})
    c.add_nodes(*numbered(2), labels={"pool": "a"})
    c.install()
    c.policy("p", priority=5, selector={"pool": "a"}, deletionPolicy="Revert", profile={"configMapKey": "slices"})
    c.converge(each="3m")
    c.policy("default", mode="Observe")
    c.after("1m")
    c.set_label("n01", "pool", None)
    ticks = [c.after("5m") for _ in range(4)]
    expect("patches of the node", [patch["reason"] for tick in ticks for patch in tick.patched("n01")], [])
    progressing = c.condition("default", "Progressing")
    expect("Progressing", (progressing["status"], progressing["reason"]), ("False", "Observe"))
    expect("label", c.labels("n01").get(CONFIG_LABEL), "slices")


@scenario
def a_pool_label_that_vanishes_right_after_the_relabel_does_not_revert_the_node():
    """A policy has just written its key's label; the pool label is away for ten seconds: the node keeps the key."""
    c = Cluster({"any": ts(2), "big": ts(8)}, options=["--cluster-max-unavailable", "100%"])
    c.add_nodes(*numbered(2), labels={"pool": "a"})
    c.policy("default", rollout={"paused": True})
    c.install()
    c.policy("p", priority=5, selector={"pool": "a"}, deletionPolicy="Revert", profile={"configMapKey": "big"})
    started = []
    while not started:
        started = c.after("2m").started()
    name = started[0]
    expect("label", c.labels(name).get(CONFIG_LABEL), "big")
    c.labels(name).pop("pool")
    c.touch(c.node(name))
    for _ in range(3):
        c.after("3s")
    expect("label while the pool label is away", c.labels(name).get(CONFIG_LABEL), "big")
