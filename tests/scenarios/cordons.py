"""A cordon of the operator that a person took away, and a cordon that the person set later (S7)."""
from scenario import expect, expect_that, fleet, mps, one, scenario


def failed_canary():
    c = fleet(2, mps(4))
    c.behave("crash", *c.nodes())
    c.edit(any=mps(8))
    for _ in range(10):
        c.after("3m")
    name = [name for name in c.nodes() if c.state(name) == "Failed"][0]
    expect("whether the failed canary is cordoned", c.cordoned(name), True)
    c.cordon(name, False)  # A person looks at it with a test pod,
    c.after("5m")
    c.after("5m")
    c.cordon(name)         # and later takes it out of service.
    c.after("5m")
    return c, name


@scenario
def a_persons_cordon_of_a_failed_node_outlives_its_recovery():
    """The operator's cordon of a failed node was taken away by a person, who cordons it an hour later: when the node shows
    its profile after all, it stays cordoned."""
    c, name = failed_canary()
    c.behave("healthy", *c.nodes())
    c.restart(name)
    for _ in range(6):
        c.after("3m")
    expect("state", c.state(name), "")
    expect("whether the person's cordon is there", c.cordoned(name), True)


@scenario
def a_persons_cordon_of_a_failed_node_outlives_the_next_edit():
    """The same where the next edit changes the node."""
    c, name = failed_canary()
    c.behave("healthy", *c.nodes())
    c.edit(any=mps(6))
    for _ in range(12):
        c.after("3m")
    expect("capacity", c.capacity(name), 12)
    expect("whether the person's cordon is there", c.cordoned(name), True)


@scenario
def a_persons_cordon_of_a_node_half_way_outlives_its_change():
    """The same for a node that is half-way and waits for pods that do not get Ready."""
    c = fleet(1, mps(4))
    c.behave("starting", "n01")
    c.edit(any=mps(8))
    c.after("2m")
    c.after("30s")
    expect_that(c.in_progress() and c.cordoned("n01"), "a cordoned node half-way", c.state("n01"))
    c.cordon("n01", False)
    c.after("30s")
    c.after("30s")
    c.cordon("n01")
    c.after("30s")
    c.machines["n01"].behaviour = "healthy"
    c.restart("n01")
    for _ in range(6):
        c.after("2m")
    expect("state", c.state("n01"), "")
    expect("whether the person's cordon is there", c.cordoned("n01"), True)


@scenario
def a_busy_node_that_a_person_cordoned_is_not_started_and_given_back_again_and_again():
    """A person cordoned a node whose job runs on, then an MPS edit: giving its slot back would free nothing."""
    c = fleet(10, mps(4))
    c.consumer("j", "n02")
    c.cordon("n02")
    c.after("1m")
    c.edit(any=mps(8))
    ticks = [c.after("5m") for _ in range(36)]
    patches = [patch["reason"] for tick in ticks for patch in tick.patched("n02")]
    expect_that(len(patches) <= 6, "at most a few patches of n02 in 3 h", "%d: %s" % (len(patches), patches[:6]))


def with_a_deferred_node(**rollout):
    """One slot; the drain of the node that held it was given up, since its job went on."""
    c = fleet(6, mps(4), rollout=dict({"idleTimeout": "10m"}, **rollout))
    for name in c.nodes():
        c.consumer("j-" + name, name)
    c.edit(any=mps(8))
    c.after("2m")
    c.after("2m")
    name = one(c.in_progress())
    c.after("2m", held="12m")
    expect("nodes in progress", c.in_progress(), [])
    return c, name


@scenario
def a_deferred_node_that_is_drained_by_hand_is_changed():
    """On-call drains the deferred node, and all jobs end: it has the only slot, and no canary is asked for, so it is changed,
    and then the others. (It would be no canary while an uncordoned node of its group serves.)"""
    c, name = with_a_deferred_node(canary={"nodesPerGroup": 0})
    c.cordon(name)
    for node in c.nodes():
        c.end("j-" + node)
    ticks = [c.after("30m") for _ in range(24)]
    started = sum([tick.started() for tick in ticks], [])
    expect_that(name in started, name + " starts within 12 h", c.condition("default", "Progressing"))


@scenario
def a_deferred_node_that_is_still_in_use_is_left_alone_though_it_is_cordoned():
    """The same while its job runs on: it is not started again for the cordon alone."""
    c, name = with_a_deferred_node()
    c.cordon(name)
    ticks = [c.after("1m") for _ in range(5)]
    expect("starts", [n for tick in ticks for n in tick.started() if n == name], [])


def waits_for_its_job():
    """A node in a change, cordoned, with a job that it waits for."""
    c = fleet(3, mps(4))
    for name in c.nodes():
        c.consumer("job-" + name, name)
    c.edit(any=mps(8))
    c.after("2m")
    return c, one(c.in_progress())


@scenario
def a_change_whose_annotation_a_person_removes_leaves_no_state_behind():
    """A person removes the annotation of a change, as the operator asks where it cannot be read: the cordon is that
    person's from now on, and the label gpusharing.dev/state goes, because nothing is in progress there."""
    c, name = waits_for_its_job()
    c.policy(rollout={"paused": True})
    c.annotate("Node", name, "gpusharing.dev/change", None)
    c.after("1m")
    c.after("1m")
    expect("states", {name: c.state(name) for name in c.nodes()}, {name: "" for name in c.nodes()})
    expect("whether the node is cordoned", c.cordoned(name), True)


@scenario
def a_change_whose_state_a_person_removes_goes_on():
    """A person removes only the label gpusharing.dev/state: the change goes on, and ends."""
    c, name = waits_for_its_job()
    c.set_label(name, "gpusharing.dev/state", None)
    c.after("1m")
    c.end("job-" + name)
    for _ in range(6):
        c.after("2m")
    expect("the capacity of the node", c.capacity(name), 16)
    expect("whether the node is cordoned", c.cordoned(name), False)


def upgrade_failed_while_draining():
    """A node waits for its Job with the operator's cordon when a driver upgrade begins there, and fails."""
    c = fleet(2, mps(4), rollout={"maxUnavailable": 1})
    for name in c.nodes():
        c.consumer("job-" + name, name)
    c.edit(any=mps(8))
    for _ in range(2):
        c.after("2m")
    name = one(c.in_progress())
    for state in ("drain-required", "upgrade-failed"):
        c.set_label(name, "nvidia.com/gpu-driver-upgrade-state", state)
        c.after("1m")
    return c, name


@scenario
def a_node_whose_driver_upgrade_failed_keeps_its_cordon():
    """The upgrade controller keeps a node cordoned whose upgrade has failed: the operator neither uncordons nor changes it."""
    c, name = upgrade_failed_while_draining()
    c.end("job-" + name)
    ticks = [c.after("10m") for _ in range(12)]
    expect("whether it is cordoned", c.cordoned(name), True)
    expect_that(name not in sum([tick.restarted() for tick in ticks], []), "no pod of the node to be deleted", name)
    expect_that(name in c.blocked().get("DriverUpgrade", []), "the node among those of DriverUpgrade", c.blocked())


@scenario
def a_node_whose_driver_upgrade_succeeds_in_the_end_is_changed():
    """The neighbour: the upgrade is done after all; the node changes, and is uncordoned."""
    c, name = upgrade_failed_while_draining()
    c.end("job-" + name)
    c.after("10m")
    c.set_label(name, "nvidia.com/gpu-driver-upgrade-state", "upgrade-done")
    for _ in range(10):
        c.after("2m")
    expect("its capacity, and whether it is cordoned", (c.capacity(name), c.cordoned(name)), (16, False))
