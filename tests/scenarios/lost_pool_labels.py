"""The label of a node pool, which a policy selects by, is away for a moment while a node of it drains."""
from scenario import Cluster, expect, mps, one, scenario, ts

ONE_AT_A_TIME = {"maxUnavailable": 1, "canary": {"nodesPerGroup": 0}}


def draining_in_pool_a(interrupts=True):
    """Policy `a` waits for Jobs, the next policy, `default`, interrupts them. One of a's nodes waits for its Job."""
    c = Cluster({"any": ts(4)}, options=["--cluster-max-unavailable", "100%"])
    c.add_nodes("a1", "a2", labels={"pool": "a"})
    c.add_nodes("b1", labels={"pool": "b"})
    c.policy(rollout=dict(ONE_AT_A_TIME, workloads="Interrupt") if interrupts else {"paused": True})
    c.policy("a", priority=5, selector={"pool": "a"}, rollout=dict(ONE_AT_A_TIME))
    c.policy("b", priority=5, selector={"pool": "b"}, rollout={"paused": True})
    c.install()
    for name in ("a1", "a2"):
        c.consumer("job-" + name, name)
    c.edit(any=mps(8))
    for _ in range(2):
        c.after("2m")
    return c, one(c.in_progress())


@scenario
def a_draining_node_is_not_handed_to_the_next_policy_because_its_pool_label_is_away():
    """The label is away for ten seconds, and comes back: the node waits for its Job all the time."""
    c, waiting = draining_in_pool_a()
    c.set_label(waiting, "pool", None)
    ticks = [c.after("2s"), c.after("8s")]
    c.set_label(waiting, "pool", "a")
    ticks += [c.after("2m"), c.after("2m")]
    expect("nodes that lost a pod", sum([tick.restarted() for tick in ticks], []), [])
    expect("the node that waits", (c.in_progress(), c.cordoned(waiting)), ([waiting], True))


@scenario
def a_draining_node_whose_pool_label_is_away_obeys_its_own_policy():
    """While the label is away, the policy of the change is paused: the node is uncordoned, and the next policy, which
    governs it then, is paused as well."""
    c, waiting = draining_in_pool_a(interrupts=False)
    c.set_label(waiting, "pool", None)
    tick = c.after("2s")
    expect("nodes that lost a pod", tick.restarted(), [])
    expect("the node that waits", (c.in_progress(), c.cordoned(waiting)), ([waiting], True))
    c.policy("a", rollout={"paused": True})
    for _ in range(2):
        c.after("10s")
    expect("nodes in a change, and whether it is cordoned", (c.in_progress(), c.cordoned(waiting)), ([], False))


@scenario
def a_draining_node_that_gets_the_label_of_another_pool_goes_there():
    """The neighbour: somebody moves the node to pool b, whose policy is paused: it is uncordoned at once."""
    c, waiting = draining_in_pool_a()
    c.set_label(waiting, "pool", "b")
    for _ in range(2):
        tick = c.after("10s")
    expect("nodes that lost a pod", tick.restarted(), [])
    expect("whether the node is in a change, and cordoned", (waiting in c.in_progress(), c.cordoned(waiting)), (False, False))


@scenario
def a_draining_node_that_a_policy_of_higher_priority_selects_goes_there():
    """The neighbour: its label is away, and a paused policy of higher priority selects the node."""
    c, waiting = draining_in_pool_a()
    c.set_label(waiting, "pool", None)
    c.policy("all", priority=9, selector={}, rollout={"paused": True})
    for _ in range(2):
        c.after("10s")
    expect("whether the node is in a change, and cordoned", (waiting in c.in_progress(), c.cordoned(waiting)), (False, False))
