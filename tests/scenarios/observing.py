"""Mode Observe says what it would do, also about a policy's own key."""
from cluster.program import ask
from scenario import CONFIG_LABEL, Cluster, expect, expect_that, fleet, numbered, scenario, ts


def observed(**profile):
    """A policy that names a key other than the default, and only observes."""
    c = Cluster({"any": ts(4), "k": ts(8)})
    c.add_nodes(*numbered(3))
    c.policy("p", priority=5, mode="Observe", profile=profile)
    c.install()
    for _ in range(3):
        c.after("10m")
    expect("labels", [c.labels(name).get(CONFIG_LABEL) for name in c.nodes()], [None] * 3)
    return c


def says_what_it_would_do(c, name="p"):
    ready, progressing = c.condition(name, "Ready"), c.condition(name, "Progressing")
    expect("Ready", (ready["status"], ready["reason"]), ("False", "Observe"))
    expect_that("3 of 3 nodes" in progressing["message"], "how many nodes would change", progressing)


@scenario
def a_key_that_a_policy_would_bring_is_announced_under_observe():
    """Three nodes run the default, and an observing policy names another key: it says that three nodes would change."""
    says_what_it_would_do(observed(configMapKey="k"))


@scenario
def an_inline_profile_that_a_policy_would_bring_is_announced_under_observe():
    """The same with an inline profile, whose key is not written either."""
    c = observed(inline={"strategy": "time-slicing", "replicas": 8})
    expect("keys", sorted(c.data()), ["any", "k"])
    says_what_it_would_do(c)


@scenario
def a_key_that_does_not_exist_is_reported_under_observe():
    """An observing policy names a key that the ConfigMap does not have: ConfigValid is False, as it would be later."""
    c = observed(configMapKey="nokey")
    expect("ConfigValid", c.condition("p", "ConfigValid")["status"], "False")


@scenario
def an_edit_of_the_key_that_nodes_run_is_announced_under_observe():
    """The neighbour: the label is there, and its key is edited: three nodes would change."""
    c = fleet(3, ts(4), more={"k": ts(8)})
    c.policy("p", priority=5, profile={"configMapKey": "k"}, rollout={"maxUnavailable": "100%"})
    c.converge()
    c.policy("p", mode="Observe")
    c.edit(k=ts(6))
    for _ in range(3):
        c.after("10m")
    says_what_it_would_do(c)


@scenario
def a_policy_whose_nodes_run_its_key_is_ready_under_observe():
    """The neighbour: nodes have the label of the key already, and nothing would change."""
    c = fleet(3, ts(4), more={"k": ts(8)})
    c.policy("p", priority=5, profile={"configMapKey": "k"}, rollout={"maxUnavailable": "100%"})
    c.converge()
    c.policy("p", mode="Observe")
    for _ in range(3):
        c.after("10m")
    expect("Ready", c.condition("p", "Ready")["status"], "True")


def gone_with_a_stop(**spec):
    """A policy `team` for all nodes is deleted while it has a stop, and then the key is edited; hours pass."""
    c = fleet(4, ts(4))
    c.policy("team", priority=5, **spec)
    c.after("5m")
    c.delete_policy("team")
    c.after("5m")
    c.edit(any=ts(8))
    ticks = [c.after("30m") for _ in range(6)]
    expect("nodes that start", [name for tick in ticks for name in tick.started()], [])
    return c, ticks[-1]


@scenario
def nodes_that_a_deleted_policy_still_stops_are_counted_somewhere():
    """A policy was deleted in mode Observe, and four nodes wait for its stop: something says how many nodes that are."""
    c, tick = gone_with_a_stop(mode="Observe")
    texts = [finding["message"] for finding in tick.findings("PolicyGone")]
    texts += [c.condition("default", kind)["message"] for kind in ("Ready", "Progressing")]
    expect_that(any("4" in text and "node" in text for text in texts), "the four nodes that wait", texts)


@scenario
def a_policy_without_nodes_does_not_hide_a_deleted_one():
    """All nodes are governed by a deleted policy: the condition NoNodes of default names that policy."""
    c, _ = gone_with_a_stop(rollout={"paused": True})
    ready = c.condition("default", "Ready")
    expect("reason", ready["reason"], "NoNodes")
    expect_that("team" in ready["message"] or "deleted" in ready["message"], "the deleted policy", ready)


@scenario
def a_deleted_policy_that_still_governs_is_called_deleted():
    """A policy was deleted while it was paused and still governs four nodes: `explain` names it as deleted."""
    c, _ = gone_with_a_stop(rollout={"paused": True})
    said = ask(["explain", "n01", "-f", "-"], c.manifests()).stdout
    expect_that("team (deleted; its last spec still applies)" in said, "that the policy was deleted", said)
