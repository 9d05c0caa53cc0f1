"""The DaemonSets' updateStrategy is switched while a rollout is half-way."""
from scenario import expect, fleet, one, scenario, ts


def soaking(on_delete):
    """Four nodes after an edit: the canary shows it, and soaks for an hour."""
    c = fleet(4, ts(4), on_delete=on_delete, rollout={"canary": {"soak": "1h"}})
    c.wait("1h")
    c.tick()
    c.edit(any=ts(8))
    started = sum([c.after("2m").started() for _ in range(5)], [])
    expect("the first nodes", len(started), 1)
    return c, one(started)


def soaks_on(c):
    """Nobody starts during the rest of the hour, and everybody soon after it."""
    expect("nodes started while the canary soaks", sum([c.after("2m").started() for _ in range(20)], []), [])
    c.wait("10m")
    for _ in range(15):
        c.after("2m")
    expect("capacity", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def a_canary_soaks_on_when_on_delete_is_switched_to_rolling_update():
    """No template has changed: the canary is still one, and its soak ends when it would have ended."""
    c, _ = soaking(on_delete=True)
    c.update_strategy(on_delete=False)
    soaks_on(c)


@scenario
def a_canary_soaks_on_when_rolling_update_is_switched_to_on_delete():
    """The same the other way round."""
    c, _ = soaking(on_delete=False)
    c.update_strategy(on_delete=True)
    soaks_on(c)


@scenario
def a_canary_soaks_on_when_the_strategy_is_switched_to_and_fro():
    """The same to RollingUpdate and back."""
    c, _ = soaking(on_delete=True)
    for on_delete in (False, True):
        c.update_strategy(on_delete=on_delete)
        c.after("1m")
    soaks_on(c)


@scenario
def an_image_that_comes_with_on_delete_has_a_canary_of_its_own():
    """The neighbour: the strategy is switched to OnDelete together with another image, which no node has shown."""
    c, _ = soaking(on_delete=False)
    c.update_strategy(on_delete=True)
    c.template("h2")
    ticks = [c.after("2m") for _ in range(20)]
    expect("nodes started while the image soaks", len(sum([tick.started() for tick in ticks], [])), 1)


def failed_and_gone(on_delete):
    """The canary of an edit has failed, and its machine is taken away."""
    c = fleet(4, ts(4), on_delete=on_delete)
    c.wait("1h")
    c.tick()
    c.behave("crash", *c.nodes())
    c.edit(any=ts(8))
    canary = one(sum([c.after("11m").started() for _ in range(4)], []))
    expect("the state of the canary", c.state(canary), "Failed")
    c.delete_node(canary)
    c.after("2m")
    return c


@scenario
def a_failed_revision_is_not_tried_again_because_on_delete_became_rolling_update():
    """The revision is the same, and so are the templates: no other node starts."""
    c = failed_and_gone(on_delete=True)
    c.update_strategy(on_delete=False)
    expect("nodes started", sum([c.after("11m").started() for _ in range(4)], []), [])


@scenario
def a_failed_revision_is_not_tried_again_because_rolling_update_became_on_delete():
    """The same the other way round."""
    c = failed_and_gone(on_delete=False)
    c.update_strategy(on_delete=True)
    expect("nodes started", sum([c.after("11m").started() for _ in range(4)], []), [])


@scenario
def an_approval_under_rolling_update_does_not_cover_an_image_under_on_delete():
    """Mode Approve: an edit is approved and half-way rolled when the strategy becomes OnDelete and an image comes."""
    c = fleet(5, ts(4), rollout={"maxUnavailable": 1})
    c.policy(mode="Approve")
    c.wait("1h")
    c.after("1m")
    c.edit(any=ts(8))
    c.after("2m")
    c.after("2m")
    c.switch(approved=True)
    while not [name for name in c.nodes() if c.capacity(name) == 16]:
        c.after("1m")
    c.update_strategy(on_delete=True)
    c.template("h2")
    c.after("1m")
    busy = c.in_progress()
    ticks = [c.after("2m") for _ in range(8)]
    expect("nodes started", [name for tick in ticks for name in tick.started() if name not in busy], [])
    expect("rollouts that wait", [r["status"]["phase"] for r in c.rollouts()], ["AwaitingApproval"])
