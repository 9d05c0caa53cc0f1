"""Policies whose way of rolling out is changed while a node waits for its workloads."""
from scenario import expect, fleet, mps, one, scenario, ts


def waiting(nodes=2):
    """An MPS edit on busy nodes; one of them waits for its job."""
    c = fleet(nodes, mps(4))
    for name in c.nodes():
        c.consumer("job-" + name, name)
    c.edit(any=mps(8))
    name = one(c.after("2m").started())
    c.after("2m")
    expect("evictions and deletions so far", [tick.evicted() + tick.deleted_pods() for tick in c.ticks if
                                              tick.evicted() or tick.deleted_pods()], [])
    return c, name


@scenario
def wait_for_idle_that_becomes_evict_evicts_from_the_node_that_waits():
    """The policy says Evict now: the pod of the cordoned node is evicted, and then that of the next one."""
    c, name = waiting()
    c.policy(rollout={"workloads": "Evict"})
    run = c.converge()
    expect("evicted", run.evicted()[0], "job-" + name)
    expect("capacities", [c.capacity(name) for name in c.nodes()], [16, 16])


@scenario
def wait_for_idle_that_becomes_interrupt_evicts_nobody():
    """The policy says Interrupt now: the daemons are replaced under their clients, and no pod of users is evicted."""
    c, _ = waiting()
    c.policy(rollout={"workloads": "Interrupt"})
    run = c.converge()
    expect("evicted", run.evicted(), [])
    expect("capacities", [c.capacity(name) for name in c.nodes()], [16, 16])
    expect("jobs", len([pod for pod in c.all("Pod") if pod["metadata"]["namespace"] == "team"]), 2)


@scenario
def a_shorter_idle_timeout_ends_a_wait_that_has_lasted_longer():
    """idleTimeout goes from one hour to five minutes when a node has waited for nine: it is given back at the next look."""
    c, name = waiting()
    for _ in range(3):
        c.after("2m")
    c.policy(rollout={"idleTimeout": "5m"})
    c.after("30s")
    expect("cordoned", c.cordoned(name), False)
    expect("pods deleted", [each for tick in c.ticks for each in tick.deleted_pods()], [])


@scenario
def evict_that_becomes_wait_for_idle_evicts_no_more():
    """A budget of the pods refuses the eviction, and the policy says WaitForIdle now: no eviction is asked for again."""
    c = fleet(1, mps(4), rollout={"workloads": "Evict"})
    c.consumer("job-0", "n01")
    c.refuses_eviction.add("job-0")
    c.edit(any=mps(8))
    for _ in range(4):
        c.after("2m")
    c.policy(rollout={"workloads": "WaitForIdle"})
    expect("evictions", [name for _ in range(4) for name in c.after("2m").evicted()], [])
    c.end("job-0")
    c.converge()
    expect("capacity", c.capacity("n01"), 16)


@scenario
def an_edit_that_needs_nothing_of_the_daemon_gives_the_drained_node_back():
    """The next text differs from the running one only for the plugin: the node is uncordoned, and its job runs on."""
    c, name = waiting(1)
    c.edit(any=mps(4, fail=True))
    for _ in range(3):
        c.after("2m")
    expect("(state, cordoned)", (c.state(name), c.cordoned(name)), ("", False))


@scenario
def a_shrinking_node_waits_until_as_many_pods_have_ended_as_must():
    """Eight replicas become four under six pods: the node waits for two of them, and not for the other four."""
    c = fleet(1, ts(8), gpus=1)
    for number in range(6):
        c.consumer("job-%d" % number, "n01")
    c.edit(any=ts(4))
    for _ in range(3):
        c.after("2m")
    c.end("job-0")
    c.after("2m")
    expect("pods deleted beside five jobs", [name for tick in c.ticks for name in tick.deleted_pods()], [])
    c.end("job-1")
    c.converge()
    expect("capacity", c.capacity("n01"), 4)


@scenario
def a_budget_that_is_lowered_lets_nodes_in_progress_finish():
    """Four nodes are under way when maxUnavailable becomes one: they finish, and then one starts after the other."""
    c = fleet(8, ts(4), rollout={"maxUnavailable": "50%", "maxUnavailablePerGroup": "50%"},
              options=["--cluster-max-unavailable", "100%"])
    c.edit(any=ts(8))
    while len(c.in_progress()) < 4:
        c.after("2m")
    c.policy(rollout={"maxUnavailable": 1})
    waves = c.converge().waves()
    expect("waves", [len(wave) for wave in waves], [1, 1, 1])
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def a_budget_of_nothing_is_named():
    """maxUnavailable 0: no node starts, and Progressing says whose budget it is."""
    c = fleet(3, ts(4), rollout={"maxUnavailable": 0})
    c.edit(any=ts(8))
    run = c.converge()
    expect("starts", run.started(), [])
    progressing = c.condition("default", "Progressing")
    expect("reason", progressing["reason"], "BudgetExhausted")
    expect("the budget in the message", "maxUnavailable" in progressing["message"], True)
