"""While a node drains."""
import datetime

from scenario import CONFIG_LABEL, expect, expect_that, fleet, mps, one, scenario, ts


@scenario
def nothing_is_deleted_on_a_node_that_is_lost_while_it_drains():
    """A node gets NotReady while it waits, and its pods are removed for that: no pod of it is deleted until it is back."""
    c = fleet(4, mps(4), rollout={"maxUnavailable": 1})
    for name in c.nodes():
        c.consumer("job-" + name, name)
    c.edit(any=mps(8))
    c.after("2m")
    c.after("2m")
    name = one(c.in_progress())
    c.set_ready(name, False)
    c.after("1m")
    c.end("job-" + name)
    ticks = [c.after("3m") for _ in range(4)]
    expect("deletions on the lost node", sum([tick.deleted_pods() for tick in ticks], []), [])


@scenario
def a_pod_that_is_never_evicted_spares_the_others():
    """Evict, MPS: one pod has no controller and keeps the node forever; the other one is not evicted for nothing."""
    c = fleet(1, mps(4), rollout={"workloads": "Evict"})
    c.consumer("bare", "n01", owner=None)
    c.consumer("job-0", "n01")
    c.edit(any=mps(8))
    ticks = [c.after("2m") for _ in range(8)]
    expect("evictions", sum([tick.evicted() for tick in ticks], []), [])


@scenario
def a_pod_that_asks_not_to_be_evicted_spares_the_others():
    """The same with safe-to-evict: "false"."""
    c = fleet(1, mps(4), rollout={"workloads": "Evict"})
    c.consumer("keep-0", "n01", annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"})
    c.consumer("job-0", "n01")
    c.edit(any=mps(8))
    ticks = [c.after("2m") for _ in range(8)]
    expect("evictions", sum([tick.evicted() for tick in ticks], []), [])


def message_while_a_pod_stays(c):
    c.consumer("job-0", "n01")
    c.edit(any=mps(8))
    for _ in range(3):
        c.after("2m")
    return one(c.get("SharingPolicy", "default")["status"]["blocked"])["message"]


@scenario
def the_operator_announces_when_it_uncordons_a_node():
    """A node that the operator has cordoned waits for a pod: the message says until when, and what follows."""
    message = message_while_a_pod_stays(fleet(1, mps(4)))
    expect_that("uncordons the node and queues it again" in message, "the end of the wait", message)


@scenario
def a_node_without_a_cordon_is_only_queued_again():
    """With cordon: false the message announces no uncordoning."""
    message = message_while_a_pod_stays(fleet(1, mps(4), rollout={"cordon": False}))
    expect_that("uncordons" not in message and "queues the node again" in message, "only the queue", message)


@scenario
def a_cordon_of_a_person_is_not_said_to_end():
    """A person cordoned the node before the change: the message announces no uncordoning."""
    c = fleet(1, mps(4))
    c.cordon("n01")
    message = message_while_a_pod_stays(c)
    expect_that("uncordons" not in message and "queues the node again" in message, "only the queue", message)


@scenario
def a_node_that_is_lost_while_it_drains_keeps_its_slot_and_waits_anew():
    """A node waits for a job and is NotReady for two hours, twice its idleTimeout: it stays in its change and is named. When it is
    Ready again, its job has all of idleTimeout once more, and then the node is uncordoned."""
    c = fleet(2, mps(4), rollout={"canary": {"nodesPerGroup": 0}, "maxUnavailable": 1})
    for name in c.nodes():
        c.consumer("job-" + name, name)
    c.edit(any=mps(8))
    c.after("20s")
    c.after("20s")
    waiting = one(c.in_progress())
    c.set_ready(waiting, False)
    for _ in range(12):
        c.after("10m")
    expect("nodes in a change", (c.in_progress(), c.cordoned(waiting)), ([waiting], True))
    expect_that(waiting in c.ticks[-1].found_on("NodesNotReady"), "a finding about the node", c.ticks[-1].findings())
    c.set_ready(waiting, True)
    for _ in range(5):
        c.after("10m")
        expect("the node within its idleTimeout", (c.in_progress(), c.cordoned(waiting)), ([waiting], True))
    for _ in range(2):
        c.after("10m")
    expect_that(waiting not in c.in_progress(), "the node to leave its change after idleTimeout", c.in_progress())
    expect("whether it is cordoned by the change", c.cordoned(waiting), False)


ONE_AT_A_TIME = {"maxUnavailable": 1, "canary": {"nodesPerGroup": 0}}


def all_busy(c):
    for name in c.nodes():
        c.consumer("job-" + name, name)


def with_the_only_slot(rollout):
    """Three busy nodes after an edit, and the one of them that waits for its job with the only slot."""
    c = fleet(3, mps(4), rollout=rollout, options=["--cluster-max-unavailable", "1"])
    all_busy(c)
    c.edit(any=mps(8))
    for _ in range(2):
        c.after("2m")
    return c, one(c.in_progress())


@scenario
def a_node_that_waits_gives_the_only_slot_to_one_that_became_idle():
    """All nodes are busy, and one waits for its job with the only slot. Another job ends: that node goes first, and the one that
    waited is not cordoned for its job again."""
    c, waiting = with_the_only_slot(ONE_AT_A_TIME)
    idle = [name for name in c.nodes() if name != waiting]
    c.end(*["job-" + name for name in idle])
    for _ in range(10):
        c.after("2m")
    expect("capacity of the idle nodes", {c.capacity(name) for name in idle}, {16})
    expect("the job that the first node waits for", c.get("Pod", "job-" + waiting, "team")["status"]["phase"], "Running")
    expect("nodes in a change", (c.in_progress(), c.cordoned(waiting)), ([], False))


@scenario
def a_node_that_waits_keeps_its_slot_while_the_others_are_busy():
    """Nobody could use the slot: the node stays cordoned, so that its jobs end and no new ones come."""
    c, waiting = with_the_only_slot(ONE_AT_A_TIME)
    for _ in range(8):
        c.after("2m")
        expect("the node that waits", (c.in_progress(), c.cordoned(waiting)), ([waiting], True))


@scenario
def a_node_that_waits_as_canary_gives_way_to_an_idle_canary():
    """The group's canary waits for its job, and another node of the group becomes idle: it becomes the canary."""
    c, waiting = with_the_only_slot({"maxUnavailable": 1})
    idle = [name for name in c.nodes() if name != waiting][0]
    c.end("job-" + idle)
    for _ in range(6):
        c.after("2m")
    expect("capacity of the idle node", c.capacity(idle), 16)


@scenario
def nodes_that_wait_hold_at_most_half_of_the_clusters_slots():
    """Two policies with wide budgets, two slots in the cluster: one busy node waits, and idle nodes use the other slot."""
    wide = {"maxUnavailable": "100%", "maxUnavailablePerGroup": "100%", "canary": {"nodesPerGroup": 0}}
    c = fleet(2, mps(4), rollout=wide, options=["--cluster-max-unavailable", "2"])
    c.add_nodes("b1", "b2", labels={"pool": "b"})
    c.policy("team", priority=5, selector={"pool": "b"}, rollout=wide)
    c.wait("10m")
    c.after("1m")
    all_busy(c)
    c.edit(any=mps(8))
    for _ in range(3):
        c.after("2m")
    expect("nodes that wait", len(c.in_progress()), 1)


@scenario
def a_label_that_was_written_is_not_left_alone_by_a_pause():
    """MPS ends by label, GFD has not reloaded yet, and the policy is paused: the node is finished and not given back."""
    c = fleet(2, mps(4), more={"slices": ts(4)})
    c.behave("unchanged", *c.nodes())
    c.policy(profile={"configMapKey": "slices"})
    c.after("20s")
    c.after("20s")
    name = one(c.in_progress())
    expect("the node's label", c.labels(name).get(CONFIG_LABEL), "slices")
    c.policy(rollout={"paused": True})
    c.after("20s")
    expect("(state, cordoned)", (c.state(name), c.cordoned(name)), ("Updating", True))


@scenario
def a_key_that_a_policy_drops_before_the_label_is_written_damns_nothing():
    """A node waits for its job, its plugin starts to crash, and the policy goes back to the former key: the node is given
    back with the reason, and does not fail."""
    c = fleet(2, ts(4), more={"slices": mps(4)}, version="v0.17.1")
    c.consumer("job1", "n01")
    c.consumer("job2", "n02")
    c.policy("team", priority=5, selector={"nvidia.com/gpu.present": "true"}, rollout={"maxUnavailable": 1},
             profile={"configMapKey": "slices"})
    c.after("20s")
    name = one(c.in_progress())
    c.behave("crash", name)
    c.restart(name)
    c.policy("team", profile={"configMapKey": "any"})
    back = c.after("2m")
    expect("reasons of the patch that gives the node back", [patch["reason"] for patch in back.patched(name)], ["Superseded"])
    expect("(state, cordoned)", (c.state(name), c.cordoned(name)), ("", False))


@scenario
def a_deferral_of_a_clock_that_was_ahead_does_not_last_a_year():
    """The operator's clock was a year ahead when a node was deferred: the node is changed within two idleTimeouts."""
    c = fleet(1, mps(4))
    c.consumer("job", "n01")
    c.edit(any=mps(8))
    c.after("2m")
    c.after("1m")
    c.cordon("n01", on=False)
    right = c.clock
    c.clock = right + datetime.timedelta(days=365)
    c.tick(held="1m")
    c.clock = right + datetime.timedelta(minutes=5)
    c.changed = c.last_tick = c.clock
    c.end("job")
    for _ in range(8):
        c.after("30m")
    expect("the capacity of the node", c.capacity("n01"), 16)


EVICT = {"workloads": "Evict", "canary": {"nodesPerGroup": 0}, "maxUnavailable": 1}


def first_started(c):
    tick = c.after("20s")
    while not tick.started():
        tick = c.after("20s")
    return one(tick.started())


@scenario
def nobody_is_evicted_from_a_node_that_is_not_ready():
    """Evict: the node that was cordoned becomes NotReady before its pods are evicted: none is evicted while it is, since nothing can
    be changed there."""
    c = fleet(2, mps(4), rollout=EVICT)
    for n in c.nodes():
        c.consumer("job-" + n, n)
    c.edit(any=mps(8))
    n = first_started(c)
    evicted = [e for t in c.ticks for e in t.evicted()]
    expect("evicted so far", evicted, [])
    c.set_ready(n, False)
    ticks = [c.after("20s") for _ in range(6)]
    expect("evicted while NotReady", [e for t in ticks for e in t.evicted()], [])


@scenario
def a_node_that_is_fewer_replicas_and_not_ready_evicts_nobody():
    """Time-slicing 8 -> 2 under Evict with 6 pods; the node is NotReady: nobody is evicted."""
    c = fleet(2, ts(8), rollout=EVICT)
    for n in c.nodes():
        for i in range(6):
            c.consumer("job%d-%s" % (i, n), n)
    c.edit(any=ts(2))
    n = first_started(c)
    c.set_ready(n, False)
    ticks = [c.after("20s") for _ in range(6)]
    expect("evicted", [e for t in ticks for e in t.evicted() if e.endswith(n)], [])


def cordons_in_five_minutes(idle_timeout):
    c = fleet(1, mps(4), rollout={"idleTimeout": idle_timeout})
    c.consumer("job-0", "n01")
    c.edit(any=mps(8))
    ticks = [c.after("1m")] + [c.after("20s") for _ in range(15)]
    return sum(action.get("unschedulable") is True for tick in ticks for action in tick.of("PatchNode"))


@scenario
def a_policy_without_patience_does_not_cordon_and_uncordon_its_node_all_the_time():
    """idleTimeout 0s (flags, or a server that does not check it) and a Job that stays: the node is left alone for a minute
    each time."""
    count = cordons_in_five_minutes("0s")
    expect_that(1 <= count <= 5, "a cordon each minute at most", count)


@scenario
def a_policy_with_patience_cordons_its_node_once():
    """The neighbour with one hour."""
    expect("cordons", cordons_in_five_minutes("1h"), 1)
