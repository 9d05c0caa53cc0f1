from scenario import CONFIG_LABEL, Cluster, expect, expect_that, fleet, mps, numbered, one, scenario, stamp, ts
RETRY = "gpusharing.dev/retry"
RETRIED = "gpusharing.dev/retried-rollouts"


def started(ticks):
    return [n for t in ticks for n in t.started()]


def failed_twice():
    c = fleet(4, ts(4), rollout={"canary": {"nodesPerGroup": 1, "soak": "1h"}, "maxUnavailable": 2}, options=["--cluster-max-unavailable", "3"])
    c.behave("crash", *c.nodes())
    c.edit(any=ts(8))
    for _ in range(12):
        c.after("2m")
    c.annotate("SharingPolicy", "default", RETRY, stamp(c.clock))
    for _ in range(12):
        c.after("2m")
    return c


@scenario
def a_retry_annotation_that_gitops_drops_is_no_request():
    """The canary fails, `rollout start`, it fails again; `kubectl replace -f` from Git drops the annotation gpusharing.dev/retry: nobody is
    restarted for that (nobody has asked)."""
    c = failed_twice()
    expect("failed", len([n for n in c.nodes() if c.state(n) == "Failed"]), 1)
    quiet = [c.after("5m") for _ in range(3)]
    expect("started before", started(quiet), [])
    c.annotate("SharingPolicy", "default", RETRY, None)
    ticks = [c.after("5m") for _ in range(6)]
    expect("restarted", sorted({n for t in ticks for n in t.restarted()}), [])


@scenario
def a_deferral_outlives_a_retry_annotation_that_gitops_drops():
    """After a `rollout start` a person uncordoned the node; Git drops the annotation: the node is not cordoned again at once."""
    c = fleet(1, mps(4), rollout={"idleTimeout": "5h"})
    c.annotate("SharingPolicy", "default", RETRY, stamp(c.clock))
    c.consumer("job", "n01")
    c.after("1m")
    c.edit(any=mps(8))
    for _ in range(4):
        c.after("30s")
    expect("cordoned", c.cordoned("n01"), True)
    c.cordon("n01", on=False)
    c.after("30s")
    c.annotate("SharingPolicy", "default", RETRY, None)
    ticks = [c.after("2m") for _ in range(6)]
    expect("started", started(ticks), [])


@scenario
def an_abort_outlives_a_retry_annotation_that_gitops_drops():
    """The same for an abort whose SharingRollout is deleted as well."""
    c = fleet(4, ts(4), rollout={"canary": {"nodesPerGroup": 1, "soak": "1h"}})
    c.annotate("SharingPolicy", "default", RETRY, stamp(c.clock))
    c.after("1m")
    c.edit(any=ts(8))
    for _ in range(6):
        c.after("1m")
    c.switch(aborted=True)
    for _ in range(3):
        c.after("10m")
    c.annotate("SharingPolicy", "default", RETRY, None)
    ticks = [c.after("10m") for _ in range(3)]
    for r in c.all("SharingRollout"):
        c.remove("SharingRollout", r["metadata"]["name"])
    ticks += [c.after("10m") for _ in range(12)]
    expect("started", started(ticks), [])


def stopped_and_started(passes, **switches):
    """A person stops a rollout and, after that many passes of the operator, types `rollout start`; its uid before that."""
    c = fleet(4, ts(4), rollout={"canary": {"nodesPerGroup": 1, "soak": "1h"}})
    c.edit(any=ts(8))
    for _ in range(6):
        c.after("1m")
    c.switch(**switches)
    for _ in range(passes):
        c.after("1m")
    before = one(c.all("SharingRollout"))["metadata"]["uid"]
    c.annotate("SharingPolicy", "default", RETRY, stamp(c.clock))
    c.annotate("SharingPolicy", "default", RETRIED, "another-uid,%s" % before)
    return c, before


@scenario
def a_start_ends_the_aborts_that_it_names():
    """`rollout start` names the aborted rollout: whether an operator has seen the abort before or not, a new one takes its place and
    reaches all nodes. An abort of the new one is not ended by it."""
    for passes in (0, 3):
        c, before = stopped_and_started(passes, aborted=True)
        for _ in range(90):
            c.after("1m")
            if [r for r in c.all("SharingRollout") if r["metadata"]["uid"] != before]:
                break
        c.switch(aborted=True)
        ticks = [c.after("10m") for _ in range(12)]
        expect("started after the second abort", started(ticks), [])
        c, before = stopped_and_started(passes, aborted=True)
        for _ in range(20):
            c.after("10m")
        expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def a_start_ends_an_abort_and_no_pause():
    """The rollout that `rollout start` names is paused as well: the new one is, too, and starts nothing until `resume`."""
    for passes in (0, 3):
        c, before = stopped_and_started(passes, aborted=True, paused=True)
        ticks = [c.after("10m") for _ in range(12)]
        rollout = one(c.all("SharingRollout"))
        expect_that(rollout["metadata"]["uid"] != before, "another object", rollout)
        expect("aborted", rollout["spec"].get("aborted", False), False)
        expect("paused", rollout["spec"].get("paused"), True)
        expect("started", started(ticks), [])
        c.switch(paused=False)
        for _ in range(20):
            c.after("10m")
        expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def a_start_ends_the_undo_that_it_names():
    """An inline profile is rolled out and undone; one `rollout start` names that rollout, whether an operator has seen the undo before
    or not: the nodes get the profile again."""
    for passes in (0, 10):
        c = Cluster({"any": ts(4)}, options=["--cluster-max-unavailable", "100%"])
        c.add_nodes(*numbered(3))
        c.install()
        everything = {"maxUnavailable": "100%", "maxUnavailablePerGroup": "100%"}
        for replicas in (6, 8):
            c.policy("p", profile={"inline": {"strategy": "time-slicing", "replicas": replicas}}, priority=5, rollout=everything)
            c.converge()
        rollout = [r for r in c.all("SharingRollout") if r["status"]["phase"] == "Completed"][-1]["metadata"]
        expect("capacities before the undo", {c.capacity(name) for name in c.nodes()}, {16})
        c.annotate("SharingRollout", rollout["name"], "gpusharing.dev/undo", "true")
        for _ in range(passes):
            c.after("2m")
        c.annotate("SharingPolicy", "p", RETRY, stamp(c.clock))
        c.annotate("SharingPolicy", "p", RETRIED, rollout["uid"])
        for _ in range(20):
            c.after("2m")
        expect("capacities after the start", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def a_failure_outlives_a_retry_annotation_that_gitops_drops():
    """The policy has a retry annotation of last month; the canary fails; Git drops the annotation: nobody is restarted for that."""
    c = fleet(4, ts(4), rollout={"canary": {"nodesPerGroup": 1, "soak": "1h"}, "maxUnavailable": 2}, options=["--cluster-max-unavailable", "3"])
    c.annotate("SharingPolicy", "default", RETRY, stamp(c.clock))
    c.after("1m")
    c.behave("crash", *c.nodes())
    c.edit(any=ts(8))
    for _ in range(12):
        c.after("2m")
    quiet = [c.after("5m") for _ in range(3)]
    expect("started before", started(quiet), [])
    c.annotate("SharingPolicy", "default", RETRY, None)
    ticks = [c.after("5m") for _ in range(6)]
    expect("restarted", sorted({n for t in ticks for n in t.restarted()}), [])


def rolled_back_and_retried():
    """An inline profile fails, is rolled back, and succeeds after `rollout start`."""
    c = Cluster({"any": ts(4)}, options=["--cluster-max-unavailable", "100%"])
    c.add_nodes(*numbered(3))
    share = {"profile": {"inline": {"strategy": "time-slicing", "replicas": 8}}, "priority": 5,
             "rollout": {"onFailure": "Rollback", "maxUnavailable": "100%", "maxUnavailablePerGroup": "100%"}}
    c.install()
    c.policy("p", **dict(share, profile={"inline": {"strategy": "time-slicing", "replicas": 6}}))
    c.converge()
    expect("capacities at first", {c.capacity(name) for name in c.nodes()}, {12})
    c.behave("unchanged", *c.nodes())
    c.policy("p", **share)
    for _ in range(15):
        c.after("2m")
    c.behave("healthy", *c.nodes())
    c.converge()
    expect("capacities after the rollback", {c.capacity(name) for name in c.nodes()}, {12})
    c.annotate("SharingPolicy", "p", RETRY, stamp(c.clock))
    return c


@scenario
def a_retried_profile_stays_when_gitops_drops_the_annotation():
    """An inline profile was rolled back, `rollout start` tried it again, and all nodes show it. Git drops the annotation
    that asked for that: the profile is not rolled back for the old failure."""
    c = rolled_back_and_retried()
    c.converge()
    expect("capacities after the retry", {c.capacity(name) for name in c.nodes()}, {16})
    c.annotate("SharingPolicy", "p", RETRY, None)
    run = c.converge()
    expect("started", run.started(), [])
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})
    expect("Degraded", c.condition("p", "Degraded").get("status"), "False")


@scenario
def a_retry_goes_on_when_gitops_drops_the_annotation():
    """The same while the retry has only begun: it is completed."""
    c = rolled_back_and_retried()
    c.after("2m")
    c.annotate("SharingPolicy", "p", RETRY, None)
    c.converge()
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def a_rolled_back_profile_stays_rolled_back_without_a_retry():
    """The neighbour: nobody asks, and an annotation that goes is no request."""
    c = rolled_back_and_retried()
    c.annotate("SharingPolicy", "p", RETRY, None)
    run = c.converge()
    expect("started", run.started(), [])
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {12})


@scenario
def a_retry_annotation_of_200_kilobytes_is_not_copied_to_nodes_and_record():
    """Somebody sets a retry annotation of 200 kB, and the canary fails: what the operator stores for that stays small, and
    another value is still another attempt."""
    c = fleet(4, ts(4), rollout={"maxUnavailable": 2}, options=["--cluster-max-unavailable", "3"])
    c.annotate("SharingPolicy", "default", RETRY, "\u00e4" * 100000)
    c.behave("crash", *c.nodes())
    c.edit(any=ts(8))
    for _ in range(12):
        c.after("2m")
    failed = one([n for n in c.nodes() if c.state(n) == "Failed"])
    size = sum(len(text.encode()) for text in c.annotations(failed).values())
    stored = max(len(text.encode()) for found in c.own_config_maps() for text in found["data"].values())
    expect_that(size < 20000 and stored < 50000, "small annotations and a small record", (size, stored))
    expect("started", started([c.after("5m") for _ in range(3)]), [])
    c.annotate("SharingPolicy", "default", RETRY, stamp(c.clock))
    expect("started after another value", started([c.after("2m") for _ in range(3)]), [failed])


@scenario
def the_status_shows_the_retry_that_the_operator_has_acted_on():
    """`rollout start` after failures, and again: who waits for the operator to see the request reads it in the policy's status."""
    c = failed_twice()
    for _ in range(2):
        asked = stamp(c.clock)
        c.annotate("SharingPolicy", "default", RETRY, asked)
        c.after("5s")
        expect("observed", c.get("SharingPolicy", "default")["status"]["observedRetry"], asked)
