"""A cordon of the operator that a person took away, and a cordon that the person set later (S7)."""
from scenario import expect, expect_that, fleet, mps, scenario


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
