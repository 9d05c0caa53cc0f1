"""Taints that the device plugin does not tolerate: the node loses its pods, and stays counted and named."""
from scenario import expect, expect_that, fleet, mps, numbered, scenario, ts


def taint(c, name, effect, key="maintenance"):
    c.node(name)["spec"]["taints"] = [{"key": key, "value": "true", "effect": effect}]
    c.touch(c.node(name))
    c.react()


def in_sight(c, tick, name, total):
    named = [f for f in tick.all_findings if name in f["object"]["name"] + f["message"] and f["severity"] != "info"]
    blocked = any(name in nodes for nodes in c.blocked().values())
    expect_that(c.counts()["total"] == total and (named or blocked), "%s to be counted and named" % name,
                {"counts": c.counts(), "Ready": c.condition("default", "Ready")})


@scenario
def a_node_whose_taint_has_evicted_the_plugin_stays_in_sight():
    """Three of ten nodes get a NoExecute taint, and their plugin pods go: the nodes are counted and named."""
    c = fleet(10, mps(4))
    for name in numbered(3):
        taint(c, name, "NoExecute")
    c.edit(any=mps(8))
    c.converge()
    in_sight(c, c.after("2m"), "n01", 10)


@scenario
def a_tainted_node_that_reboots_stays_in_sight():
    """A NoSchedule taint and a reboot: the plugin's pod does not come back, and the node is counted and named."""
    c = fleet(6, ts(4))
    taint(c, "n01", "NoSchedule")
    c.after("1m")
    c.restart("n01")
    for _ in range(3):
        tick = c.after("2m")
    in_sight(c, tick, "n01", 6)


@scenario
def nodes_without_a_plugin_because_of_a_taint_hold_their_slots():
    """Three of ten nodes serve nothing because of a NoExecute taint, and 30 % are allowed: nobody else starts."""
    c = fleet(10, ts(4), rollout={"maxUnavailable": "30%"}, options=["--cluster-max-unavailable", "30%"])
    for name in numbered(3):
        taint(c, name, "NoExecute")
        c.serve(name, 0)
    c.after("1m")
    c.edit(any=ts(8))
    worst = 0
    for _ in range(10):
        c.after("2m")
        worst = max(worst, len(c.out_of_service()))
    expect_that(worst <= 3, "at most three out of service", worst)


@scenario
def a_node_that_is_tainted_after_its_pods_were_deleted_is_not_given_up():
    """The operator deletes the pods of a node, and a NoSchedule taint keeps new ones away: the node stays in sight."""
    c = fleet(6, ts(4), options=["--cluster-max-unavailable", "1"])
    c.edit(any=ts(8))
    c.wait("2m")
    may_start = c.may_start
    c.may_start = lambda component, name: False if name == "n01" else may_start(component, name)
    expect("started", c.tick(held="2m").started(), ["n01"])
    c.may_start = may_start
    taint(c, "n01", "NoSchedule")
    for _ in range(4):
        tick = c.after("2m")
    in_sight(c, tick, "n01", 6)
    expect("others that start while it serves nothing", [n for t in c.ticks[-4:] for n in t.started()], [])


@scenario
def tainted_nodes_that_serve_on_count_in_the_percentage_of_a_budget():
    """Three of ten nodes get a NoSchedule taint and serve on: 40 % are four of ten, where of seven they would be three."""
    c = fleet(10, ts(4), rollout={"maxUnavailable": "40%", "maxUnavailablePerGroup": "100%",
                                  "canary": {"nodesPerGroup": 0}}, options=["--cluster-max-unavailable", "100%"])
    for name in numbered(3):
        c.node(name)["spec"]["taints"] = [{"key": "maintenance", "value": "true", "effect": "NoSchedule"}]
        c.touch(c.node(name))
    c.edit(any=ts(8))
    started = c.after("2m").started()
    expect("the size of the first wave", len(started), 4)
    expect("tainted nodes in it", sorted(set(started) & set(numbered(3))), [])
