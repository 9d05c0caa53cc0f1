"""Stops that hold although nodes are away for a moment, while another key of the policy keeps its nodes."""
from scenario import CONFIG_LABEL, Cluster, expect, numbered, scenario, ts


def started(ticks):
    return [n for t in ticks for n in t.started()]


def with_two_keys(switch):
    """Policy team (pool a) governs n01 to n03 on key any and n04 on key slices; the edit of any is stopped after its canary; default is
    paused."""
    c = Cluster({"any": ts(4), "slices": ts(6)}, options=["--cluster-max-unavailable", "2"])
    c.add_nodes(*numbered(3), labels={"pool": "a"})
    c.add_nodes("n04", labels={"pool": "a", CONFIG_LABEL: "slices"})
    c.policy("default", rollout={"paused": True})
    c.policy("team", priority=5, selector={"pool": "a"}, rollout={"canary": {"nodesPerGroup": 1, "soak": "30m"}, "maxUnavailable": 1})
    c.install()
    c.edit(any=ts(8))
    ticks = [c.after("1m") for _ in range(6)]
    expect("the canary", len(started(ticks)), 1)
    c.switch(**{switch: True})
    for _ in range(3):
        c.after("5m")
    return c


def flap(c, names, key="pool"):
    """The label is away for a minute."""
    kept = {n: c.labels(n)[key] for n in names}
    for n in names:
        c.labels(n).pop(key)
        c.touch(c.node(n))
    for _ in range(3):
        c.after("20s")
    for n in names:
        c.labels(n)[key] = kept[n]
        c.touch(c.node(n))


@scenario
def an_abort_outlives_a_minute_without_pool_labels_while_another_key_keeps_its_node():
    """The nodes of key any lose their pool label for a minute, the node of key slices keeps it: the aborted rollout stays aborted."""
    c = with_two_keys("aborted")
    flap(c, numbered(3))
    ticks = [c.after("5m") for _ in range(20)]
    expect("started", started(ticks), [])


@scenario
def a_pause_outlives_a_minute_without_pool_labels_while_another_key_keeps_its_node():
    """The same with a paused rollout."""
    c = with_two_keys("paused")
    flap(c, numbered(3))
    ticks = [c.after("5m") for _ in range(20)]
    expect("started", started(ticks), [])


@scenario
def an_abort_outlives_nos_for_a_while():
    """default governs any (n01, n02) and slices (n03); the rollout of slices is aborted before n03 changes; n03 is given to nos for a few
    minutes and returned: it does not start."""
    c = Cluster({"any": ts(4), "slices": ts(6)}, options=["--cluster-max-unavailable", "2"])
    c.add_nodes(*numbered(2))
    c.add_nodes("n03", labels={CONFIG_LABEL: "slices"})
    c.policy("default", mode="Approve")
    c.install()
    c.edit(slices=ts(8))
    for _ in range(3):
        c.after("1m")
    c.switch(aborted=True)
    c.policy("default", mode="Enforce")
    for _ in range(3):
        c.after("1m")
    c.set_label("n03", "nos.nebuly.com/gpu-partitioning", "mps")
    for _ in range(3):
        c.after("1m")
    c.set_label("n03", "nos.nebuly.com/gpu-partitioning", None)
    ticks = [c.after("5m") for _ in range(12)]
    expect("started", started(ticks), [])
