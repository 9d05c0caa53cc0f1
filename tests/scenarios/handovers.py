"""Nodes that go from one policy to another: their label, their history, and the policy that goes."""
from scenario import COMPONENTS, CONFIG_LABEL, Cluster, expect, expect_that, numbered, scenario, ts

WIDE = {"maxUnavailable": "100%", "maxUnavailablePerGroup": "100%"}


def labelled_by_p(deletion_policy):
    """Three nodes that policy p has moved to key k."""
    c = Cluster({"any": ts(4), "k": ts(8), "m": ts(6)}, options=["--cluster-max-unavailable", "100%"])
    c.add_nodes(*numbered(3))
    c.policy(rollout=dict(WIDE))
    c.policy("p", priority=5, profile={"configMapKey": "k"}, deletionPolicy=deletion_policy, rollout=dict(WIDE))
    c.install()
    c.converge()
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})
    return c


def restarted_and_left(c):
    """(nodes that start, whether p is left) within an hour."""
    ticks = [c.after("3m") for _ in range(20)]
    return [name for tick in ticks for name in tick.started()], c.get("SharingPolicy", "p") is not None


@scenario
def a_policy_with_revert_that_is_renamed_goes():
    """GitOps deletes p and creates p2 with the same content: nothing is restarted, and the deletion of p ends."""
    c = labelled_by_p("Revert")
    c.policy("p2", priority=5, profile={"configMapKey": "k"}, deletionPolicy="Revert", rollout=dict(WIDE))
    c.delete_policy("p")
    expect("(nodes that start, p is left)", restarted_and_left(c), ([], False))
    expect("labels", {c.labels(name)[CONFIG_LABEL] for name in c.nodes()}, {"k"})


@scenario
def a_policy_with_revert_whose_nodes_another_one_keeps_on_its_key_goes():
    """A policy of higher priority wants the same key: when p is deleted there is nothing to revert, and it goes."""
    c = labelled_by_p("Revert")
    c.policy("r", priority=9, profile={"configMapKey": "k"}, rollout=dict(WIDE))
    c.after("3m")
    c.delete_policy("p")
    expect("(nodes that start, p is left)", restarted_and_left(c), ([], False))


@scenario
def a_policy_with_retain_that_is_renamed_restarts_nothing():
    """The neighbour with Retain: p goes at once, its nodes stay as they are, and p2 can change them later."""
    c = labelled_by_p("Retain")
    c.policy("p2", priority=5, profile={"configMapKey": "k"}, rollout=dict(WIDE))
    c.delete_policy("p")
    expect("(nodes that start, p is left)", restarted_and_left(c), ([], False))
    c.policy("p2", profile={"configMapKey": "m"})
    c.converge()
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {12})


@scenario
def a_policy_with_revert_whose_nodes_another_one_takes_to_another_key_goes():
    """The neighbour with another key: the nodes go to it by one change each, and p goes with its last label."""
    c = labelled_by_p("Revert")
    c.policy("r", priority=9, profile={"configMapKey": "m"}, rollout=dict(WIDE))
    c.delete_policy("p")
    started, left = restarted_and_left(c)
    expect("(nodes that start, p is left)", (sorted(started), left), (c.nodes(), False))
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {12})


def is_taken_back(c):
    """All nodes run the default again, without a label, and p is gone."""
    for _ in range(20):
        c.after("3m")
    expect("(labels, capacities, p is left)",
           ([c.labels(name).get(CONFIG_LABEL) for name in c.nodes()], [c.capacity(name) for name in c.nodes()],
            c.get("SharingPolicy", "p") is not None), ([None] * 3, [8] * 3, False))


@scenario
def a_revert_outlives_an_hour_without_the_plugins_daemonsets():
    """p (Revert) is deleted while the GPU Operator is being installed anew: afterwards its nodes go back all the same."""
    c = labelled_by_p("Revert")
    for component in c.components():
        c.remove("DaemonSet", COMPONENTS[component][0], c.namespace)
    for pod in c.operand_pods():
        c.drop(pod)
    c.react()
    c.after("3m")
    c.delete_policy("p")
    for _ in range(3):
        c.after("20m")
    for component in c.components():
        c.daemonset(component)
    c.react()
    is_taken_back(c)


@scenario
def a_revert_reaches_a_node_whose_plugin_was_switched_off_meanwhile():
    """p (Revert) is deleted while a person has switched the plugin off on n02 (gpu.deploy.device-plugin=false)."""
    c = labelled_by_p("Revert")
    c.set_label("n02", "nvidia.com/gpu.deploy.device-plugin", "false")
    c.after("3m")
    c.delete_policy("p")
    for _ in range(6):
        c.after("5m")
    c.set_label("n02", "nvidia.com/gpu.deploy.device-plugin", "true")
    is_taken_back(c)


@scenario
def a_revert_reaches_a_node_that_was_not_ready():
    """The neighbour: n02 is NotReady when p is deleted: p waits for it, and goes when n02 is back."""
    c = labelled_by_p("Revert")
    c.set_ready("n02", False)
    c.delete_policy("p")
    for _ in range(6):
        c.after("5m")
    c.set_ready("n02", True)
    c.react()
    is_taken_back(c)


@scenario
def labels_of_three_owners_come_back_in_their_order():
    """A person's label, p (takeover, Revert) above it, r above p: when r goes p's key is back, and then the person's."""
    c = Cluster({"any": ts(4), "k": ts(8), "m": ts(6), "mine": ts(3)}, options=["--cluster-max-unavailable", "100%"])
    c.add_nodes(*numbered(3))
    c.policy(rollout=dict(WIDE))
    c.install()
    c.set_label("n01", CONFIG_LABEL, "mine")
    c.converge()
    c.policy("p", priority=5, profile={"configMapKey": "k"}, deletionPolicy="Revert", takeover=True, rollout=dict(WIDE))
    c.converge()
    c.policy("r", priority=9, profile={"configMapKey": "m"}, deletionPolicy="Revert", rollout=dict(WIDE))
    c.converge()
    for gone, capacities in (("", [12, 12, 12]), ("r", [16, 16, 16]), ("p", [6, 8, 8])):
        if gone:
            c.delete_policy(gone)
            c.converge()
        expect("capacities without " + gone, [c.capacity(name) for name in c.nodes()], capacities)
    expect("the label of n01", c.labels("n01")[CONFIG_LABEL], "mine")


@scenario
def a_revert_that_waits_for_a_held_node_does_not_progress():
    """p (Revert) is deleted, and a person holds n02 for ten hours: Progressing of p is not True, or names n02."""
    c = labelled_by_p("Revert")
    c.annotate("Node", "n02", "gpusharing.dev/hold", "true")
    c.delete_policy("p")
    for _ in range(12):
        c.after("3m")
    for _ in range(3):
        c.after("3h")
    expect("capacities", [c.capacity(name) for name in c.nodes()], [8, 16, 8])
    progressing = c.condition("p", "Progressing")
    expect_that(progressing["status"] == "False" or "n02" in progressing["message"], "n02 to be named", progressing)
