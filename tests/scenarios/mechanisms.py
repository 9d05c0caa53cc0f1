"""DaemonSetRestart beside other policies, and what it does not restart the DaemonSets for."""
from scenario import Cluster, expect, expect_that, fleet, scenario, ts

BY_DAEMONSET = {"mechanism": "DaemonSetRestart", "workloads": "Interrupt", "canary": {"nodesPerGroup": 0}}


def beside_default(**spec):
    """Policy p for pool a uses DaemonSetRestart; default, for pool b, changes node by node."""
    c = Cluster({"any": ts(4), "k": ts(8)}, options=["--cluster-max-unavailable", "100%"])
    c.add_nodes("a1", "a2", labels={"pool": "a"})
    c.add_nodes("b1", "b2", labels={"pool": "b"})
    c.policy("p", priority=5, selector={"pool": "a"}, rollout=dict(BY_DAEMONSET), **spec)
    c.install()
    return c


def restarts(c):
    return [action["target"]["name"] for tick in c.ticks for action in tick.of("RestartDaemonSet")]


@scenario
def a_node_that_drifts_is_repaired_beside_a_policy_that_changes_one_by_one():
    """A node of a policy with DaemonSetRestart serves nothing: its own pods are replaced, which concerns no other policy."""
    c = beside_default()
    c.serve("a1", 0)
    for _ in range(10):
        c.after("3m")
    expect("capacity of a1", c.capacity("a1"), 8)
    expect("DaemonSets that were restarted", restarts(c), [])


@scenario
def a_label_that_a_policy_wants_needs_no_restart_of_the_daemonsets():
    """The policy names a key, so that its nodes only need a label: they get it, whatever mechanism other policies have."""
    c = beside_default(profile={"configMapKey": "k"})
    c.converge()
    expect("capacities", {name: c.capacity(name) for name in c.nodes()}, {"a1": 16, "a2": 16, "b1": 8, "b2": 8})
    expect("DaemonSets that were restarted", restarts(c), [])


@scenario
def an_edit_in_place_beside_a_policy_that_changes_one_by_one_says_so():
    """The neighbour: an edit would need a restart that reaches nodes of default: nobody of p moves, with that reason."""
    c = beside_default()
    c.edit(any=ts(8))
    c.converge()
    expect("DaemonSets that were restarted", restarts(c), [])
    expect("capacities", {name: c.capacity(name) for name in c.nodes()}, {"a1": 8, "a2": 8, "b1": 16, "b2": 16})
    progressing = c.condition("p", "Progressing")
    expect("Progressing of p", (progressing["status"], progressing["reason"]), ("False", "MechanismUnusable"))
    expect_that("default" in progressing["message"], "the other policy in the message", progressing)


@scenario
def one_drifting_node_restarts_no_other():
    """All policies use DaemonSetRestart, and one node stops serving: its pods are replaced, those of the others stay."""
    c = fleet(4, ts(4), rollout=dict(BY_DAEMONSET))
    others = {name: c.uids(name) for name in ("n01", "n03", "n04")}
    c.serve("n02", 0)
    for _ in range(8):
        c.after("3m")
    expect("capacity of n02", c.capacity("n02"), 8)
    expect("pods of the others", {name: c.uids(name) for name in others}, others)
    expect("DaemonSets that were restarted", restarts(c), [])


@scenario
def a_label_is_written_where_all_policies_restart_daemonsets():
    """The neighbour of the label: every policy has DaemonSetRestart, and the label alone does it."""
    c = beside_default(profile={"configMapKey": "k"})
    c.policy(rollout=dict(BY_DAEMONSET))
    c.converge()
    expect("capacities", {name: c.capacity(name) for name in c.nodes()}, {"a1": 16, "a2": 16, "b1": 8, "b2": 8})


@scenario
def a_pause_holds_back_the_restart_of_the_daemonsets():
    """The policy is paused when a key is edited: no DaemonSet is restarted before the pause ends, and then each once."""
    c = fleet(4, ts(4), rollout=dict(BY_DAEMONSET, paused=True))
    c.edit(any=ts(8))
    for _ in range(4):
        c.after("10m")
    expect("DaemonSets that were restarted", restarts(c), [])
    c.policy(rollout={"paused": False})
    c.converge()
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})
    expect("restarts of each DaemonSet", len(restarts(c)), len(set(restarts(c))))


@scenario
def a_node_that_was_not_ready_at_the_restart_follows_later():
    """A node is NotReady while the DaemonSets are restarted: it is named, and gets there when it is Ready again."""
    c = fleet(4, ts(4), rollout=dict(BY_DAEMONSET))
    c.set_ready("n02", False)
    c.edit(any=ts(8))
    c.converge()
    progressing = c.condition("default", "Progressing")
    expect_that(progressing["status"] == "False" and "n02" in progressing["message"], "n02 to be named", progressing)
    c.set_ready("n02", True)
    c.react()
    c.converge()
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})
