"""Canaries whose Node is deleted, and nodes that stop being Ready in their change."""
from scenario import expect, expect_that, fleet, mps, one, scenario


def canary_half_way(count=4, deleted_at=None):
    """The canary after its first pods have been deleted; `deleted_at`: its state does not matter, the Node goes at once."""
    c = fleet(count, mps(4))
    c.edit(any=mps(8))
    name = one(c.after("2m").started())
    for _ in range(6):
        if c.ticks[-1].deleted_pods():
            break
        c.after("20s")
    expect_that(c.ticks[-1].deleted_pods(), "pods that are deleted", c.ticks[-1].actions)
    return c, name


@scenario
def a_canary_that_goes_with_its_first_pods_counts():
    """The Node is deleted right after the look that deleted its first pods: no second canary is tried, the policy names it."""
    c, name = canary_half_way()
    c.delete_node(name)
    expect("nodes started after that", sum([c.after("4m").started() for _ in range(6)], []), [])
    expect("why", c.condition("default", "Progressing").get("reason"), "MaxFailures")
    expect_that(name in c.condition("default", "Progressing").get("message", ""), name, c.condition("default", "Progressing"))
    expect("Degraded", c.condition("default", "Degraded").get("status"), "True")


@scenario
def a_new_machine_of_that_name_is_not_the_canary():
    """A machine of the same name joins: the failure stays with the old one, and a retry lets the rollout go on."""
    c, name = canary_half_way()
    c.delete_node(name)
    c.after("2m")
    c.add_nodes(name)
    expect("nodes started", sum([c.after("4m").started() for _ in range(6)], []), [])
    expect("the state of the new machine", c.state(name), "")
    c.annotate("SharingPolicy", "default", "gpusharing.dev/retry", "2")
    c.converge()
    expect("capacity", {c.capacity(node) for node in c.nodes()}, {16})


@scenario
def a_vanished_canary_is_no_failure_of_the_next_text():
    """The same, and the key is edited: the next text starts with a canary of its own."""
    c, name = canary_half_way()
    c.delete_node(name)
    c.after("2m")
    c.edit(any=mps(6))
    c.converge()
    expect("capacity", {c.capacity(node) for node in c.nodes()}, {12})


@scenario
def a_canary_that_goes_while_it_drains_is_no_failure():
    """The canary only waits for its job when its machine is scaled away: nothing was changed there, and another node is tried."""
    c = fleet(3, mps(4))
    for name in c.nodes():
        c.consumer("job-" + name, name)
    c.edit(any=mps(8))
    name = one(c.after("2m").started())
    c.after("2m")
    c.delete_node(name)
    others = sum([c.after("2m").started() for _ in range(4)], [])
    expect_that(len(others) == 1, "another canary", others)


@scenario
def a_canary_that_goes_after_it_was_verified_is_no_failure():
    """It shows the text and soaks when its machine is scaled away: another canary is tried."""
    c = fleet(4, mps(4), rollout={"canary": {"nodesPerGroup": 1, "soak": "2h"}})
    c.edit(any=mps(8))
    name = one(sum([c.after("2m").started() for _ in range(8)], []))
    expect("capacity of the canary", c.capacity(name), 16)
    c.after("5m")
    c.delete_node(name)
    others = sum([c.after("5m").started() for _ in range(4)], [])
    expect_that(len(others) == 1, "another canary", others)


@scenario
def a_node_that_comes_back_has_all_of_its_time_again():
    """A canary is not Ready for 40 minutes and comes back with a plugin that needs eight minutes: it does not fail."""
    c, name = canary_half_way()
    c.set_ready(name, False)
    for _ in range(4):
        c.after("10m")
    c.behave("crash", *c.nodes())
    c.set_ready(name, True)
    c.restart(name)
    for _ in range(4):
        c.after("2m")
        expect("its state within verifyTimeout", c.state(name), "Updating")
    c.behave("healthy", *c.nodes())
    c.restart(name)
    c.converge()
    expect("capacity", {c.capacity(node) for node in c.nodes()}, {16})
