"""Workloads get one turn: a node is cordoned for them once for a revision, whatever ends that turn. Under Evict only
idleTimeout and a person end it."""
import json

from scenario import expect, expect_that, fleet, mps, one, scenario


def busy_fleet(nodes=2, **rollout):
    c = fleet(nodes, mps(4), rollout=dict({"canary": {"nodesPerGroup": 0}, "idleTimeout": "30m"}, **rollout))
    for name in c.nodes():
        c.consumer("job-" + name, name)
    c.edit(any=mps(8))
    return c


def cordons(c, looks, each="5m"):
    """{node: how often the operator cordoned it} over so many looks."""
    times = {name: 0 for name in c.nodes()}
    for _ in range(looks):
        for action in c.after(each).of("PatchNode"):
            times[action["target"]["name"]] += action.get("unschedulable") is True
    return times


@scenario
def a_pause_in_the_drain_does_not_give_the_workloads_a_second_turn():
    """The policy is paused and resumed again and again while a node waits for its job: it is cordoned once."""
    c = busy_fleet(nodes=1)
    times = cordons(c, 3)
    for _ in range(4):
        for paused in (True, False):
            c.policy(rollout={"paused": paused})
            for name, count in cordons(c, 3).items():
                times[name] += count
    expect("cordons", times, {"n01": 1})
    expect("(state, cordoned)", (c.state("n01"), c.cordoned("n01")), ("", False))
    c.end("job-n01")
    c.converge(each="3m")
    expect("capacity once it is idle", c.capacity("n01"), 16)


@scenario
def a_window_that_closes_in_the_drain_ends_the_turn():
    """A maintenance window of twenty minutes opens each hour, and a job never ends: the node is cordoned in one of them."""
    c = busy_fleet(nodes=1, maintenanceWindows=[{"cron": "0 * * * *", "duration": "20m", "timeZone": "UTC"}])
    expect("cordons in ten hours", cordons(c, 120), {"n01": 1})
    expect("whether it is cordoned", c.cordoned("n01"), False)


def evicting(**rollout):
    """One node whose job a PodDisruptionBudget protects, under Evict, twenty seconds into its drain."""
    c = busy_fleet(nodes=1, workloads="Evict", idleTimeout="1h", **rollout)
    c.refuses_eviction.add("job-n01")
    c.after("20s")
    return c


@scenario
def a_pause_ends_no_turn_of_a_policy_that_evicts():
    """The policy is paused in the drain, and resumed once the PodDisruptionBudget allows the eviction: the job is evicted."""
    c = evicting()
    c.after("20s")
    expect("cordoned in the drain", c.cordoned("n01"), True)
    c.policy(rollout={"paused": True})
    c.after("1m")
    expect("cordoned while it is paused", c.cordoned("n01"), False)
    c.refuses_eviction.clear()
    c.policy(rollout={"paused": False})
    c.converge(each="1m")
    expect("capacity", c.capacity("n01"), 16)


@scenario
def each_window_is_another_turn_under_a_policy_that_evicts():
    """A maintenance window of twenty minutes opens each hour. The PodDisruptionBudget allows the eviction from the third
    hour on: the job is evicted in the next window."""
    c = evicting(maintenanceWindows=[{"cron": "0 * * * *", "duration": "20m", "timeZone": "UTC"}])
    expect("cordons in three hours", cordons(c, 36)["n01"] >= 2, True)
    c.refuses_eviction.clear()
    cordons(c, 15)
    expect("capacity an hour later", c.capacity("n01"), 16)


@scenario
def idle_timeout_ends_the_turn_of_a_policy_that_evicts():
    """The PodDisruptionBudget refuses for the whole of idleTimeout: the node is uncordoned, and not cordoned again."""
    c = evicting()
    cordons(c, 15)
    expect("cordons after idleTimeout", cordons(c, 30), {"n01": 0})
    expect("what ended its turn", json.loads(c.annotations("n01")["gpusharing.dev/deferred"])["by"], "idleTimeout")


@scenario
def a_turn_that_a_pause_ended_is_not_called_idle_timeout():
    """WaitForIdle, and a pause after a minute: the annotation and the text name a stop."""
    c = busy_fleet(nodes=1)
    cordons(c, 1, each="1m")
    c.policy(rollout={"paused": True})
    cordons(c, 1, each="1m")
    c.policy(rollout={"paused": False})
    cordons(c, 2)
    expect("what ended its turn", json.loads(c.annotations("n01")["gpusharing.dev/deferred"])["by"], "stop")
    text = c.condition("default", "Progressing")["message"]
    expect_that("(until a pause" in text and "idleTimeout" not in text, "a text about a pause", text)


@scenario
def a_node_that_gave_its_slot_to_an_idle_one_is_changed_once_it_is_idle():
    """Three busy nodes and one slot: the node that waits gives way to those that become idle, one after the other, and is
    changed without a second cordon for its job when that has ended."""
    c = busy_fleet(nodes=3, maxUnavailable=1)
    waiting = one([name for name, count in cordons(c, 1, each="2m").items() if count])
    c.end(*["job-" + name for name in c.nodes() if name != waiting])
    times = cordons(c, 24)
    expect("cordons of the node that gave way", times[waiting], 0)
    expect("capacity of the others", {c.capacity(name) for name in c.nodes() if name != waiting}, {16})
    expect("(capacity, cordoned) of the node", (c.capacity(waiting), c.cordoned(waiting)), (8, False))
    c.end("job-" + waiting)
    c.converge(each="3m")
    expect("capacity of the node", c.capacity(waiting), 16)


@scenario
def a_node_is_changed_by_the_first_look_that_finds_it_idle():
    """Its job has had its turn, and ends hours later: the next look starts the node, also while another one waits."""
    c = busy_fleet(nodes=2)
    cordons(c, 30)
    expect("cordoned nodes", [name for name in c.nodes() if c.cordoned(name)], [])
    c.end("job-n02")
    expect("nodes that start", c.after("5m").started(), ["n02"])


@scenario
def a_retry_gives_the_workloads_another_turn():
    """`rollout start` sets the policy's annotation gpusharing.dev/retry: each node is cordoned once more."""
    c = busy_fleet(nodes=2)
    cordons(c, 30)
    c.annotate("SharingPolicy", "default", "gpusharing.dev/retry", "2")
    expect("cordons after the retry", cordons(c, 30), {"n01": 1, "n02": 1})


@scenario
def a_policy_that_evicts_now_gives_them_another_turn():
    """The jobs have had their turn, and the policy says Evict: they are evicted, and both nodes run the edit."""
    c = busy_fleet(nodes=2)
    cordons(c, 30)
    c.policy(rollout={"workloads": "Evict"})
    for _ in range(20):
        c.after("2m")
    expect("capacity", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def a_person_who_cordons_the_node_lets_it_run_empty():
    """The job has had its turn; an admin cordons the node, the job ends, and the node is changed and stays cordoned."""
    c = busy_fleet(nodes=1)
    cordons(c, 15)
    c.cordon("n01")
    c.after("5m")
    expect("its state while the job runs", c.state("n01"), "")
    c.end("job-n01")
    c.converge(each="3m")
    expect("(capacity, cordoned)", (c.capacity("n01"), c.cordoned("n01")), (16, True))


@scenario
def another_edit_is_another_turn():
    """The job has had its turn for one text, and the key is edited again: the node is cordoned once for that one too."""
    c = busy_fleet(nodes=1)
    expect("cordons for the first text", cordons(c, 30), {"n01": 1})
    c.edit(any=mps(6))
    expect("cordons for the second text", cordons(c, 30), {"n01": 1})
    expect_that(not c.cordoned("n01"), "an uncordoned node", c.cordoned("n01"))
