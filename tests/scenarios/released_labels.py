"""Labels that stay when a node leaves its policy (deletionPolicy Retain), and the policy that comes next."""
from scenario import CONFIG_LABEL, Cluster, expect, expect_that, numbered, scenario, ts


def labelled():
    """Three nodes of policy p, with its key k."""
    c = Cluster({"any": ts(4), "k": ts(8), "m": ts(6)}, options=["--cluster-max-unavailable", "100%"])
    c.add_nodes(*numbered(3))
    c.policy("p", priority=5, profile={"configMapKey": "k"}, rollout={"maxUnavailable": "100%"})
    c.install()
    c.converge()
    expect("labels", {c.labels(name).get(CONFIG_LABEL) for name in c.nodes()}, {"k"})
    return c


def says_who_wrote_the_label(c):
    """The nodes are changed, or the reason does not deny that the operator wrote the label."""
    for _ in range(12):
        tick = c.after("2m")
    wrong = [finding["message"] for finding in tick.findings("LabelOwnedByOther")
             if "was not set by the operator" in finding["message"]]
    expect("findings that say that the operator did not set its own label", wrong[:1], [])


@scenario
def a_label_that_a_deleted_policy_left_is_not_called_foreign():
    """p is deleted (Retain), created again with the same key, and names another key later: nobody else wrote the label."""
    c = labelled()
    c.delete_policy("p")
    for _ in range(3):
        c.after("2m")
    c.policy("p", priority=5, profile={"configMapKey": "k"}, rollout={"maxUnavailable": "100%"})
    c.after("2m")
    c.policy("p", profile={"configMapKey": "m"})
    says_who_wrote_the_label(c)


@scenario
def a_label_that_a_mistyped_selector_left_is_not_called_foreign():
    """p's selector is mistyped for ten minutes and mended; then p names another key."""
    c = labelled()
    c.policy("p", selector={"pool": "typo"})
    for _ in range(5):
        c.after("2m")
    c.get("SharingPolicy", "p")["spec"]["nodeSelector"] = {}
    c.policy("p")
    c.after("2m")
    c.policy("p", profile={"configMapKey": "m"})
    says_who_wrote_the_label(c)


@scenario
def a_label_that_a_person_wrote_is_called_foreign():
    """The neighbour: a person labels a node, and the policy does not take labels over: the finding says who did not."""
    c = labelled()
    c.delete_policy("p")
    for _ in range(3):
        c.after("2m")
    c.set_label("n01", CONFIG_LABEL, "any")
    c.policy("p", priority=5, profile={"configMapKey": "m"}, rollout={"maxUnavailable": "100%"})
    for _ in range(4):
        tick = c.after("2m")
    expect("label of n01", c.labels("n01")[CONFIG_LABEL], "any")
    expect_that("n01" in tick.found_on("LabelOwnedByOther"), "a finding about n01", tick.all_findings)
