"""A node that is half-way in its change and would wait for a Job, while idle nodes could use its slot."""
from scenario import CONFIG_LABEL, expect, expect_that, fleet, mps, one, scenario, ts

ONE_AT_A_TIME = {"maxUnavailable": 1, "canary": {"nodesPerGroup": 0}}


def sharing(c):
    return {name: (c.labels(name)["nvidia.com/gpu.sharing-strategy"], c.capacity(name)) for name in c.nodes()}


def edited_to_mps_beside_a_job():
    """More time slices need no idle node: one node is restarted beside its Job. Before its new pods are Ready, the text
    becomes MPS, for which nodes must be idle. The other nodes are."""
    c = fleet(4, ts(4), rollout=dict(ONE_AT_A_TIME), options=["--cluster-max-unavailable", "1"])
    for name in c.nodes():
        c.consumer("job-" + name, name)
    c.behave("starting", *c.nodes())
    c.edit(any=ts(6))
    busy = one(c.after("2m").started())
    idle = [name for name in c.nodes() if name != busy]
    c.end(*["job-" + name for name in idle])
    c.edit(any=mps(8))
    for _ in range(3):
        c.after("10s")
    c.behave("healthy", *idle)
    return c, busy, idle


def expect_idle_nodes_change(c, idle):
    """Within half an hour, although another node waits beside its Job."""
    for _ in range(15):
        c.after("2m")
    expect("what the idle nodes show", {name: sharing(c)[name] for name in idle}, dict.fromkeys(idle, ("mps", 16)))


@scenario
def a_node_whose_pods_come_up_beside_its_job_gives_the_slot_to_idle_nodes():
    """Its new pods show what they have read: it serves that beside its Job, is queued again, and the idle nodes go first."""
    c, busy, idle = edited_to_mps_beside_a_job()
    c.get_ready(busy)
    expect_idle_nodes_change(c, idle)
    expect("what the busy node shows", sharing(c)[busy], ("time-slicing", 12))
    expect("the Job of the busy node", c.get("Pod", "job-" + busy, "team")["status"]["phase"], "Running")
    c.end("job-" + busy)
    for _ in range(10):
        c.after("2m")
    expect("what the busy node shows in the end", sharing(c)[busy], ("mps", 16))


@scenario
def a_node_that_becomes_idle_half_way_changes_to_the_edit_at_once():
    """The neighbour: its Job ends before its pods are Ready, and it is restarted into the edit without a detour."""
    c, busy, _ = edited_to_mps_beside_a_job()
    c.end("job-" + busy)
    deleted = sum([c.after("10s").restarted() for _ in range(3)], [])
    expect_that(busy in deleted, "new pods of the node within half a minute", deleted)


@scenario
def a_node_whose_pods_never_come_up_beside_its_job_still_gets_the_edit():
    """The neighbour: its pods do not get Ready, and the Job ends later: the edit might mend it."""
    c, busy, _ = edited_to_mps_beside_a_job()
    for _ in range(10):
        c.after("2m")
    c.behave("healthy", busy)
    c.end("job-" + busy)
    for _ in range(15):
        c.after("2m")
    expect("what the node shows", sharing(c)[busy], ("mps", 16))


@scenario
def a_node_whose_pods_come_up_late_beside_its_job_gives_the_slot_to_idle_nodes():
    """Its pods get Ready only after verifyTimeout, as with a large image: it serves what they have read, and idle nodes go
    first."""
    c, busy, idle = edited_to_mps_beside_a_job()
    for _ in range(10):
        c.after("2m")
    c.get_ready(busy)
    expect_idle_nodes_change(c, idle)
    expect("what the busy node shows", sharing(c)[busy], ("time-slicing", 12))
    c.end("job-" + busy)
    for _ in range(10):
        c.after("2m")
    expect("what the busy node shows in the end", sharing(c)[busy], ("mps", 16))


def moved_twice_beside_a_job():
    """A policy moves its nodes, each with a Job, to more time slices, which a label brings beside a Job. Seconds after the
    first label is written, it names a key with MPS instead, for which nodes must be idle."""
    c = fleet(4, ts(4), more={"six": ts(6), "shared": mps(8)}, rollout=dict(ONE_AT_A_TIME), version="v0.18.0",
              options=["--cluster-max-unavailable", "1"])
    for name in c.nodes():
        c.consumer("job-" + name, name)
    c.policy(profile={"configMapKey": "six"})
    moved = []
    for _ in range(4):
        c.after("1m" if not moved else "1s")
        moved = [name for name in c.nodes() if c.labels(name).get(CONFIG_LABEL) == "six"]
        if moved:
            break
    c.policy(profile={"configMapKey": "shared"})
    for _ in range(3):
        c.after("5s")
    return c, one(moved)


@scenario
def a_node_whose_key_moves_twice_beside_its_job_gives_the_slot_to_idle_nodes():
    """It serves the first key beside its Job and is queued again; the other nodes, which become idle, go first."""
    c, busy = moved_twice_beside_a_job()
    idle = [name for name in c.nodes() if name != busy]
    c.end(*["job-" + name for name in idle])
    expect_idle_nodes_change(c, idle)
    expect("what the busy node shows", sharing(c)[busy], ("time-slicing", 12))
    c.end("job-" + busy)
    for _ in range(10):
        c.after("2m")
    expect("what the busy node shows in the end", sharing(c)[busy], ("mps", 16))


@scenario
def a_node_whose_key_moves_twice_while_it_is_idle_changes_to_the_second_at_once():
    """The neighbour: its Job ends in between, and it is not queued again."""
    c, busy = moved_twice_beside_a_job()
    c.end("job-" + busy)
    for _ in range(6):
        c.after("1m")
    expect("what it shows", sharing(c)[busy], ("mps", 16))


def waits_for_the_label_of_its_policy():
    """A policy moves its busy nodes to another MPS key. One is cordoned and waits, and its GPU pods are restarted by somebody
    else, the MPS daemon as well."""
    c = fleet(3, mps(4), more={"shared": mps(8)}, rollout=dict(ONE_AT_A_TIME), version="v0.18.0",
              options=["--cluster-max-unavailable", "1"])
    for name in c.nodes():
        c.consumer("job-" + name, name)
    c.policy(profile={"configMapKey": "shared"})
    for _ in range(2):
        c.after("2m")
    waiting = one(c.in_progress())
    c.restart(waiting)
    c.after("1m")
    return c, waiting


@scenario
def a_node_whose_pods_were_restarted_before_its_label_moved_gives_way_to_an_idle_one():
    """The new pods have read the key that the node still has: it leaves its change for a node that became idle."""
    c, waiting = waits_for_the_label_of_its_policy()
    idle = [name for name in c.nodes() if name != waiting]
    c.end(*["job-" + name for name in idle])
    expect_idle_nodes_change(c, idle)
    expect("what the busy node shows", sharing(c)[waiting], ("mps", 8))


@scenario
def a_node_whose_pods_were_restarted_before_its_label_moved_obeys_a_pause():
    """Its policy is paused: the node is uncordoned, because no part of its change was done."""
    c, waiting = waits_for_the_label_of_its_policy()
    c.policy(rollout=dict(ONE_AT_A_TIME, paused=True))
    c.after("2m")
    expect("whether it is cordoned, and its state", (c.cordoned(waiting), c.state(waiting)), (False, ""))


@scenario
def a_node_whose_pods_were_restarted_before_its_label_moved_is_finished_when_it_is_idle():
    """The neighbour: its Job ends, and it changes."""
    c, waiting = waits_for_the_label_of_its_policy()
    c.end("job-" + waiting)
    for _ in range(8):
        c.after("2m")
    expect("what it shows", sharing(c)[waiting], ("mps", 16))
