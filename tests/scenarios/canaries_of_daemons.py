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
