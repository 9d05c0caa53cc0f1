"""A label is moved seconds after an edit of its key that no label shows: recorded with a text that was not read."""
from scenario import CONFIG_LABEL, Cluster, expect, numbered, scenario, ts


def moved_after_an_edit(looks, layout="gpu-operator"):
    c = Cluster({"any": ts(4), "slices": ts(8)}, layout=layout)
    c.add_nodes(*numbered(3))
    c.install()
    c.wait("10m")
    c.tick()
    c.edit(slices=ts(8, fail=True))
    c.wait("5s")
    c.set_label("n01", CONFIG_LABEL, "slices")
    for each in looks:
        c.after(each)
    c.converge()
    expect("what the plugin of n01 has loaded", c.loaded[c.plugin("n01")], ts(8, fail=True))


@scenario
def looked_at_half_a_minute_later():
    """First look after 30 s."""
    moved_after_an_edit(["30s"])


@scenario
def looked_at_every_minute():
    """A look every minute."""
    moved_after_an_edit(["1m"] * 6)


@scenario
def looked_at_five_minutes_later():
    """First look after five minutes, beyond projection and grace."""
    moved_after_an_edit(["5m"])


@scenario
def with_the_plugin_chart():
    """The same with the plugin's chart."""
    moved_after_an_edit(["90s"], layout="standalone")
