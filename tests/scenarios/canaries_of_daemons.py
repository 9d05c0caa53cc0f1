"""The canary of a change of standalone MPS daemons: it must serve for the whole soak."""
from scenario import expect, expect_that, one, scenario
from standalone_daemons import MARK, NAMESPACE, with_daemons


def set_ready(c, node, ready):
    pod = one([pod for pod in c.all("Pod") if pod["metadata"]["namespace"] == NAMESPACE and pod["spec"]["nodeName"] == node])
    pod["status"]["conditions"] = [{"type": "Ready", "status": "True" if ready else "False"}]
    pod["status"]["containerStatuses"][0]["ready"] = ready
    c.touch(pod)


def replaced(soak):
    """Three nodes with a new template, until the first one has its new pod; returns the cluster and that node."""
    c, daemons = with_daemons()
    c.policy(rollout={"canary": {"nodesPerGroup": 1, "soak": soak}, "verifyTimeout": "20m"})
    daemons.template("new")
    while "new" not in daemons.pods().values():
        c.after("1m")
        daemons.react()
    return c, one([node for node, template in daemons.pods().items() if template == "new"])


def marked(c):
    return [node for node in c.nodes() if MARK in c.annotations(node)]


@scenario
def a_canary_soaks_from_the_moment_at_which_it_serves():
    """The new daemon needs nine minutes to get Ready, and the soak is ten: nobody follows two minutes later."""
    c, canary = replaced("10m")
    set_ready(c, canary, False)
    for _ in range(9):
        c.after("1m")
    set_ready(c, canary, True)
    for _ in range(3):
        c.after("1m")
    expect("nodes that follow before the soak is over", [node for node in marked(c) if node != canary], [])


@scenario
def after_the_soak_the_next_node_follows():
    """The neighbour: the new daemon is Ready at once, and ten minutes later the next node follows."""
    c, canary = replaced("10m")
    for _ in range(13):
        c.after("1m")
    expect_that([node for node in marked(c) if node != canary], "another node in the change", marked(c))


RETRY = "gpusharing.dev/retry"


def failed():
    """The same, and the canary's new daemon is not Ready within verifyTimeout. Returns the cluster, the daemons and that node."""
    c, daemons = with_daemons()
    c.policy(rollout={"canary": {"nodesPerGroup": 1, "soak": "1m"}, "verifyTimeout": "5m"})
    daemons.template("new")
    while "new" not in daemons.pods().values():
        c.after("1m")
        daemons.react()
    canary = one([node for node, template in daemons.pods().items() if template == "new"])
    set_ready(c, canary, False)
    c.after("1m")
    c.after("6m")
    return c, daemons, canary


def all_follow(c, daemons):
    """Each node has the new template within twenty minutes."""
    for _ in range(20):
        c.after("1m")
        daemons.react()
    expect("templates", set(daemons.pods().values()), {"new"})


@scenario
def a_failed_daemon_is_tried_again_by_rollout_start():
    """`rollout start` deletes the failed pod once; the new one is Ready, and all nodes follow."""
    c, daemons, canary = failed()
    expect("nodes that failed", c.after("1m").found_on("StandaloneMPSFailed"), [canary])
    c.annotate("SharingPolicy", "default", RETRY, "2026-03-02T09:00:00.000000Z")
    deleted = [name for _ in range(2) for name in c.after("10s").deleted_pods()]
    expect("pods that are deleted", len(deleted), 1)
    all_follow(c, daemons)


@scenario
def a_failed_daemon_stays_failed_when_the_operator_restarts():
    """Each look is a new operator, and a second after its start the node is still named: verifyTimeout does not begin again."""
    c, _, canary = failed()
    expect("nodes that failed", c.after("1s", held="0s").found_on("StandaloneMPSFailed"), [canary])


@scenario
def nothing_is_deleted_after_a_failure_that_nobody_retries():
    """The neighbour: without a request the pod stays as it is."""
    c, _, _ = failed()
    expect("pods that are deleted", [name for _ in range(5) for name in c.after("5m").deleted_pods()], [])


def lost_while_it_starts(soak="1m"):
    """The node of the canary gets NotReady while its new daemon starts, for longer than verifyTimeout."""
    c, daemons = with_daemons()
    c.policy(rollout={"canary": {"nodesPerGroup": 1, "soak": soak}, "verifyTimeout": "5m"})
    daemons.template("new")
    while "new" not in daemons.pods().values():
        c.after("1m")
        daemons.react()
    canary = one([node for node, template in daemons.pods().items() if template == "new"])
    set_ready(c, canary, False)
    c.set_ready(canary, False)
    ticks = [c.after("3m") for _ in range(5)]
    return c, daemons, canary, ticks


@scenario
def a_daemon_whose_node_is_not_ready_does_not_fail():
    """It is neither a failed canary nor a proof: no other node starts, and the finding names the node. Once that is Ready
    again the deadline begins anew, and all nodes follow."""
    c, daemons, canary, ticks = lost_while_it_starts()
    expect("nodes that failed", [tick.found_on("StandaloneMPSFailed") for tick in ticks], [[]] * 5)
    expect("nodes in the change", marked(c), [canary])
    expect("what is said of the node", canary in ticks[-1].found_on("StandaloneMPSWaits"), True)
    c.set_ready(canary, True)
    expect("nodes that failed", c.after("3m").found_on("StandaloneMPSFailed"), [])
    set_ready(c, canary, True)
    all_follow(c, daemons)


@scenario
def a_daemon_that_does_not_start_on_a_node_that_is_ready_again_fails():
    """The neighbour: the node is Ready again, and its daemon is not for verifyTimeout."""
    c, _, canary, _ = lost_while_it_starts()
    c.set_ready(canary, True)
    c.after("1m")
    c.after("6m")
    expect("nodes that failed", c.after("1m").found_on("StandaloneMPSFailed"), [canary])


@scenario
def a_daemon_is_not_deleted_while_its_node_is_not_ready():
    """A client keeps the node of the canary in its drain, and the node gets NotReady: its client is gone, and its old daemon
    stays until the node is Ready."""
    c, daemons = with_daemons(1)
    c.policy(rollout={"canary": {"nodesPerGroup": 1, "soak": "1m"}, "verifyTimeout": "5m"})
    c.consumer("train", "n01")
    daemons.template("new")
    while not marked(c):
        c.after("1m")
    c.set_ready("n01", False)
    c.end("train")
    expect("pods that are deleted", [name for _ in range(4) for name in c.after("3m").deleted_pods()], [])
    c.set_ready("n01", True)
    for _ in range(4):
        c.after("1m")
        daemons.react()
    expect("templates", daemons.pods(), {"n01": "new"})


@scenario
def a_cordoned_node_is_no_canary_of_a_daemon():
    """Somebody has cordoned two of three nodes, which hold the slots: the uncordoned one has none, and no daemon is tried
    before its."""
    c, daemons = with_daemons()
    c.policy(rollout={"canary": {"nodesPerGroup": 1, "soak": "1h"}, "maxUnavailable": 3, "maxUnavailablePerGroup": 3})
    for name in ("n01", "n02"):
        c.cordon(name)
    c.after("1m")
    daemons.template("new")
    for _ in range(6):
        c.after("1m")
        daemons.react()
    expect("nodes with the new daemon", [node for node, template in daemons.pods().items() if template == "new"], [])
