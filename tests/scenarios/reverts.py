"""Nodes that leave a policy with deletionPolicy Revert."""
import json

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


OTHER_LABEL = "example.com/gpu-profile"


def labelled_by_a_policy(**policy):
    """n01 has the label of policy p, n02 one that a person has set."""
    c = Cluster({"any": ts(2), "slices": ts(4)})
    c.add_nodes(*numbered(2))
    c.install()
    c.policy("p", priority=5, selector={"kubernetes.io/hostname": "n01"}, profile={"configMapKey": "slices"}, **policy)
    c.set_label("n02", CONFIG_LABEL, "any")
    c.converge(each="3m")
    expect("labels", [c.labels(name).get(CONFIG_LABEL) for name in c.nodes()], ["slices", "any"])
    return c


def roll_by_its_daemonset(c):
    """RollingUpdate reaches every node."""
    c.after("1m")
    for name in c.nodes():
        c.restart(name)
        c.after("2m")
    c.converge(each="3m")


@scenario
def a_label_under_the_former_name_is_taken_back():
    """NODE_LABEL is renamed: while the old pods run, the old label stays; then the policy's key is under the new name alone.
    What a person has set stays. It is renamed back, and nothing is left of the other name either."""
    c = labelled_by_a_policy()
    c.rename_node_label(OTHER_LABEL)
    c.after("1m")
    expect("the label that the old pods read", c.labels("n01").get(CONFIG_LABEL), "slices")
    roll_by_its_daemonset(c)
    expect("labels of n01", [c.labels("n01").get(label) for label in (OTHER_LABEL, CONFIG_LABEL)], ["slices", None])
    expect("label of n02", c.labels("n02").get(CONFIG_LABEL), "any")
    expect("capacity", c.capacity("n01"), 8)
    expect("the next look", c.after("1h").actions, [])
    c.rename_node_label(CONFIG_LABEL, "h3")
    roll_by_its_daemonset(c)
    expect("labels of n01", [c.labels("n01").get(label) for label in (OTHER_LABEL, CONFIG_LABEL)], [None, "slices"])


@scenario
def a_deleted_policy_does_not_wait_for_a_label_under_a_former_name():
    """The policy is deleted with Revert while NODE_LABEL is being renamed: it goes, and its label with it."""
    c = labelled_by_a_policy(deletionPolicy="Revert")
    c.rename_node_label(OTHER_LABEL)
    c.after("1m")
    c.delete_policy("p")
    roll_by_its_daemonset(c)
    for _ in range(4):
        c.after("1h")
    expect("the policy", c.get("SharingPolicy", "p"), None)
    expect("labels of n01", [c.labels("n01").get(label) for label in (OTHER_LABEL, CONFIG_LABEL)], [None, None])
    expect("capacity", c.capacity("n01"), 4)


@scenario
def a_label_that_only_an_annotation_names_stays():
    """The annotation of what the operator owns names a label that never selected a profile: nothing takes it away."""
    c = labelled_by_a_policy()
    c.set_label("n01", "example.com/rack", "7")
    owned = json.loads(c.annotations("n01")["gpusharing.dev/owned"])
    owned["labels"]["example.com/rack"] = {"before": None, "value": "7", "policy": "p"}
    c.annotate("Node", "n01", "gpusharing.dev/owned", json.dumps(owned))
    c.rename_node_label(OTHER_LABEL)
    roll_by_its_daemonset(c)
    expect("label", c.labels("n01").get("example.com/rack"), "7")
