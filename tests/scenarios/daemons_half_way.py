"""MPS daemons of nodes that are half-way to a text which keeps the daemon, and whose text is edited again."""
from scenario import COMPONENTS, expect, fleet, mps, one, scenario

A = mps(4, mig="none")
B = mps(4, mig="none", fail=False)  # Only the plugin reads the difference.
OTHER_DAEMON = mps(4, mig="single", fail=False)  # No label and no capacity shows this one.


def half_way_to_b(behaviour):
    """A node whose new plugin has read B, and does not become Ready."""
    c = fleet(2, A, rollout={"canary": {"nodesPerGroup": 0}})
    c.behave(behaviour, *c.nodes())
    c.edit(any=B)
    name = one(c.after("2m").restarted())
    c.wait("10s")
    return c, name


def daemons(c):
    return {name: c.pod_of("mps", name)["metadata"]["uid"] for name in c.nodes()}


def get_ready(c):
    for name in c.nodes():
        c.get_ready(name)
    c.converge()


def expect_on_every_node(c, text, components=tuple(COMPONENTS)):
    runs = {c.loaded[c.pod_of(component, name)["metadata"]["uid"]] for name in c.nodes() for component in components}
    expect("what the pods of the nodes run", runs, {text})


@scenario
def a_node_half_way_to_a_text_that_keeps_its_daemon_goes_on_to_one_that_does_not():
    """A node is half-way from A to B, and C differs from both in migStrategy: its daemon is replaced as well."""
    c, _ = half_way_to_b("starting")
    c.edit(any=OTHER_DAEMON)
    for _ in range(3):
        c.after("10s")
    get_ready(c)
    expect_on_every_node(c, OTHER_DAEMON)


@scenario
def a_node_half_way_to_a_text_that_keeps_its_daemon_goes_on_to_another_that_does():
    """The same, but C is A again: no client of a daemon loses it."""
    c, _ = half_way_to_b("starting")
    before = daemons(c)
    c.edit(any=A)
    for _ in range(3):
        c.after("10s")
    get_ready(c)
    expect_on_every_node(c, A, ("plugin", "gfd"))
    expect("the daemons", daemons(c), before)


@scenario
def a_node_that_failed_with_a_text_that_keeps_its_daemon_gets_another_daemon_for_the_next_text():
    """A node failed on its way from A to B, and C differs from both in migStrategy: its daemon is replaced as well."""
    c, name = half_way_to_b("crash")
    for _ in range(12):
        c.after("1m")
    expect("the state of the node", c.state(name), "Failed")
    c.behave("healthy", *c.nodes())
    c.edit(any=OTHER_DAEMON)
    c.wait("1m")
    get_ready(c)
    expect_on_every_node(c, OTHER_DAEMON)


@scenario
def a_node_that_failed_with_a_text_that_keeps_its_daemon_keeps_it_for_the_next_text_that_does():
    """The same, but C is A again: no client of a daemon loses it."""
    c, name = half_way_to_b("crash")
    before = daemons(c)
    for _ in range(12):
        c.after("1m")
    expect("the state of the node", c.state(name), "Failed")
    c.behave("healthy", *c.nodes())
    c.edit(any=A)
    c.wait("1m")
    get_ready(c)
    expect_on_every_node(c, A, ("plugin", "gfd"))
    expect("the daemons", daemons(c), before)
