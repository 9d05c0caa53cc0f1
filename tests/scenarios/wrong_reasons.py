"""Reasons and messages that must fit what a person sees in the cluster."""
from scenario import CONFIG_LABEL, Cluster, expect, expect_that, fleet, numbered, scenario, ts

EVERY_NODE = {"nvidia.com/gpu.present": "true"}


def said(c, tick):
    """All sentences of one look: findings, and conditions and blocked entries of every policy."""
    out = [finding["message"] for finding in tick.all_findings]
    for policy in c.all("SharingPolicy"):
        status = policy.get("status", {})
        out += [entry.get("message", "") for entry in status.get("conditions", []) + status.get("blocked", [])]
    return out


@scenario
def a_label_that_cannot_come_back_is_not_said_to_be_there():
    """Revert would restore the label z, and key z is gone: the node still has label k and serves it. No sentence says that
    its label names z; the policy that waits says which label cannot be restored."""
    c = Cluster({"any": ts(2), "k": ts(4), "z": ts(8)})
    c.add_nodes("n01", "n02")
    c.install()
    c.set_label("n01", CONFIG_LABEL, "z")
    c.converge()
    c.policy("p", priority=5, selector=EVERY_NODE, profile={"configMapKey": "k"}, deletionPolicy="Revert", takeover=True)
    c.converge()
    c.edit(z=None)
    c.delete_policy("p")
    for _ in range(6):
        tick = c.after("2m")
    expect("label of n01", c.labels("n01").get(CONFIG_LABEL), "k")
    wrong = [text for text in said(c, tick) if "node's label names the key \"z\"" in text]
    expect("sentences that name z as the node's label", wrong, [])
    expect_that("z" in c.condition("p", "Progressing").get("message", ""), "Progressing of p to name the key z",
                c.condition("p", "Progressing"))


@scenario
def a_policy_of_the_same_age_is_not_called_older():
    """Two policies of equal priority, applied in one second: the lower name governs, and the other says so."""
    c = fleet(2, ts(2), more={"a": ts(4), "b": ts(8)})
    for name, key in (("zz", "a"), ("aa", "b")):
        c.policy(name, priority=5, selector=EVERY_NODE, profile={"configMapKey": key})
    c.after("2m")
    overlap = c.condition("zz", "Overlapped")
    expect_that("aa" in overlap.get("message", ""), "Overlapped to name policy aa", overlap)
    expect_that("older" not in overlap["message"], "Overlapped not to call it older", overlap["message"])


@scenario
def an_older_policy_is_called_older():
    """The neighbour: the one that governs was applied a minute before."""
    c = fleet(2, ts(2), more={"a": ts(4), "b": ts(8)})
    for name, key in (("zz", "b"), ("aa", "a")):
        c.policy(name, priority=5, selector=EVERY_NODE, profile={"configMapKey": key})
        c.after("1m")
    expect("who governs", c.labels("n01").get(CONFIG_LABEL, "b"), "b")
    expect_that("older" in c.condition("aa", "Overlapped").get("message", ""), "aa to say that zz is older",
                c.condition("aa", "Overlapped"))


@scenario
def a_key_that_has_no_room_in_the_config_map_is_named():
    """The ConfigMap has nearly 1 MiB, so that an inline profile does not fit: nothing is written, and its nodes are Blocked
    with a reason, as on nodes that partitioning serves."""
    c = Cluster({"any": ts(4), "notes": "#" * ((1 << 20) - 200)})
    c.add_nodes(*numbered(2))
    c.install()
    c.policy("p", priority=5, selector=EVERY_NODE, profile={"inline": {"strategy": "time-slicing", "replicas": 8}})
    tick = c.after("5m")
    expect_that(c.blocked("p") or tick.findings("ConfigInvalid"), "a reason", c.condition("p", "Progressing"))


@scenario
def a_deleted_default_policy_does_not_revert_for_ever():
    """`default` writes a key with deletionPolicy Revert, and is deleted: six hours later its nodes have their former label,
    or it is there again; it is not being deleted with Progressing "Reverting" while nothing reverts."""
    c = fleet(2, ts(2), more={"k": ts(4)})
    c.policy("default", profile={"configMapKey": "k"}, deletionPolicy="Revert")
    c.converge()
    c.delete_policy("default")
    for _ in range(36):
        c.after("10m")
    labelled = [name for name in c.nodes() if c.labels(name).get(CONFIG_LABEL) == "k"]
    going = c.get("SharingPolicy", "default")["metadata"].get("deletionTimestamp") is not None
    stands = labelled and going and c.condition("default", "Progressing").get("reason") == "Reverting"
    expect_that(not stands, "the labels to be reverted, the policy to stay, or a reason why not",
                c.condition("default", "Progressing"))
