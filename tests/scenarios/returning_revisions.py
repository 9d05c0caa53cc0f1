"""Revisions that failed or were stopped, and come back; machines that come while they are there."""
from scenario import CONFIG_LABEL, Cluster, expect, expect_that, fleet, mps, numbered, scenario, stamp, ts


def failed_canary(c):
    c.behave("crash", *c.nodes())
    c.edit(any=ts(8))
    for _ in range(9):
        c.after("2m")
    expect("failed nodes", [name for name in c.nodes() if c.state(name) == "Failed"], ["n01"])
    c.behave("healthy", *c.nodes())


@scenario
def a_revision_that_failed_is_not_tried_again_when_it_comes_back():
    """8 fails on its canary, 4 is put back and repairs it, 8 comes back: nobody starts until somebody asks for it."""
    c = fleet(4, ts(4))
    failed_canary(c)
    c.edit(any=ts(4))
    c.converge()
    expect("Ready on 4", c.condition("default", "Ready")["status"], "True")
    c.edit(any=ts(8))
    expect("starts", c.converge().started(), [])
    expect("reason", c.condition("default", "Progressing")["reason"], "MaxFailures")
    c.annotate("SharingPolicy", "default", "gpusharing.dev/retry", stamp(c.clock))
    c.converge()
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def a_node_that_joins_on_a_failed_revision_lifts_no_stop():
    """n05 joins and serves the text that failed on the canary: no other node starts."""
    c = fleet(4, ts(4))
    failed_canary(c)
    c.add_node("n05")
    expect("starts", c.converge().started(), [])
    expect("reason", c.condition("default", "Progressing")["reason"], "MaxFailures")
    expect("capacities", [c.capacity(name) for name in c.nodes()], [8, 8, 8, 8, 16])


@scenario
def an_aborted_edit_that_a_reboot_has_spread_is_taken_back_everywhere():
    """8 is aborted after n01, n03 reboots and loads it too; 4 is put back: both go back, and the others stay."""
    c = fleet(4, ts(4))
    c.edit(any=ts(8))
    c.after("2m")
    c.switch(aborted=True)
    for _ in range(3):
        c.after("2m")
    c.reboot("n03")
    c.after("2m")
    before = c.uids("n02") + c.uids("n04")
    c.edit(any=ts(4))
    c.converge()
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {8})
    expect("pods of the others", c.uids("n02") + c.uids("n04"), before)


@scenario
def a_draining_node_that_is_replaced_leaves_its_slot_and_its_canary():
    """The canary waits for its job and is replaced by a machine of its name: another node becomes the canary."""
    c = fleet(4, mps(4))
    c.consumer("job-0", "n01")
    for name in ("n02", "n03", "n04"):
        c.consumer("job-" + name, name)
    c.edit(any=mps(8))
    name = c.after("2m").started()[0]
    c.delete_node(name)
    c.add_node(name)
    for each in ("n01", "n02", "n03", "n04"):
        if each != name:
            c.end("job-0" if each == "n01" else "job-" + each)
    c.converge()
    expect("capacities", {c.capacity(each) for each in c.nodes()}, {16})
    expect("cordoned", [each for each in c.nodes() if c.cordoned(each)], [])


@scenario
def a_canary_that_is_deleted_while_it_soaks_is_followed_by_another_one():
    """A soak of one hour; the canary's node goes after four minutes: the next canary soaks its own hour."""
    c = fleet(4, ts(4), rollout={"canary": {"nodesPerGroup": 1, "soak": "1h"}})
    c.edit(any=ts(8))
    for _ in range(3):
        c.after("2m")
    c.delete_node("n01")
    begun = {}
    for _ in range(40):
        for name in c.after("3m").started():
            begun[name] = c.clock
    first, second = sorted(begun, key=begun.get)[:2]
    expect_that((begun[second] - begun[first]).total_seconds() > 3600, "an hour between the two", begun)
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})


def inline(replicas):
    return {"inline": {"strategy": "time-slicing", "replicas": replicas}}


def with_an_inline_profile():
    c = Cluster({"any": ts(4)}, options=["--cluster-max-unavailable", "100%"])
    c.add_nodes(*numbered(4))
    c.policy("p", priority=5, profile=inline(8),
             rollout={"maxUnavailable": 1, "canary": {"nodesPerGroup": 1, "soak": "1s"}, "onFailure": "Rollback"})
    c.install()
    c.converge()
    return c


def try_six(c, sick):
    c.behave("unchanged", sick)
    c.get("SharingPolicy", "p")["spec"]["profile"] = inline(6)
    c.policy("p")
    for _ in range(16):
        c.after("2m")


@scenario
def an_inline_profile_whose_canary_fails_is_rolled_back():
    """The canary does not show 6 replicas: it goes back to 8, no other node starts, and Degraded says so."""
    c = with_an_inline_profile()
    try_six(c, "n01")
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})
    expect("keys of the labels", len({c.labels(name)[CONFIG_LABEL] for name in c.nodes()}), 1)
    expect("Degraded", c.condition("p", "Degraded")["reason"], "RolledBack")
    expect("states", {c.state(name) for name in c.nodes()}, {""})


@scenario
def a_rollback_waits_for_the_end_of_a_pause():
    """The policy is paused while the canary fails: nothing goes back until the pause ends."""
    c = with_an_inline_profile()
    c.behave("unchanged", "n01")
    c.get("SharingPolicy", "p")["spec"]["profile"] = inline(6)
    c.policy("p")
    while "n01" not in c.in_progress():
        c.after("2m")
    c.policy("p", rollout={"paused": True})
    ticks = [c.after("2m") for _ in range(14)]
    expect("starts in the pause", [name for tick in ticks for name in tick.started()], [])
    c.policy("p", rollout={"paused": False})
    c.behave("healthy", "n01")
    for _ in range(16):
        c.after("2m")
    expect("capacities", len({c.capacity(name) for name in c.nodes()}), 1)


@scenario
def a_rolled_back_profile_is_tried_again_on_request():
    """After the rollback somebody mends the machine and asks for another try: all nodes get 6 replicas."""
    c = with_an_inline_profile()
    try_six(c, "n01")
    c.behave("healthy", "n01")
    c.restart("n01")
    c.annotate("SharingPolicy", "p", "gpusharing.dev/retry", stamp(c.clock))
    c.converge()
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {12})
