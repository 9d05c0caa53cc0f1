"""Repairs that are put off, and repairs of nodes whose baseline is doubtful."""
from scenario import Cluster, expect, expect_that, fleet, mps, numbered, scenario, ts


def cordons(ticks, name):
    return [t.now[11:19] for t in ticks for a in t.patched(name) if a.get("unschedulable") is True]


def drifting(c, name="n01", job=True):
    """An MPS node shows half of its replicas, and a job runs on it."""
    if job:
        c.consumer("job", name)
    c.serve(name, 4)
    c.labels(name)["nvidia.com/gpu.replicas"] = "2"


@scenario
def a_person_who_uncordons_a_node_that_drains_for_a_repair_is_heard():
    """A node drains for the repair of a drift, and a person uncordons it: it is not cordoned again in the next 20 minutes."""
    c = fleet(3, mps(4))
    drifting(c)
    for _ in range(6):
        c.after("3m")
    expect("node that drains", (c.in_progress(), c.cordoned("n01")), (["n01"], True))
    c.cordon("n01", on=False)
    ticks = [c.after("20s") for _ in range(60)]
    expect("cordons in the next 20 minutes", cordons(ticks, "n01"), [])


@scenario
def a_repair_that_is_given_up_after_idle_timeout_is_deferred():
    """idleTimeout ends for a node that drains for a repair: it is not cordoned again at once."""
    c = fleet(3, mps(4), rollout={"idleTimeout": "20m"})
    drifting(c)
    ticks = [c.after("1m") for _ in range(40)]
    at = [t.now[11:19] for t in ticks for a in t.patched("n01") if a.get("unschedulable") is False]
    expect_that(at, "uncordoned once after idleTimeout", at)
    later = [c.after("20s") for _ in range(25)]
    expect("cordons", len(cordons(ticks + later, "n01")), 1)


@scenario
def a_node_whose_baseline_is_unproven_is_repaired_when_it_dies_later():
    """Another key was edited before the installation, so that the pods are older than the ConfigMap's last edit; n01 shows its
    profile for days, and then serves nothing: it is repaired, or a finding or condition names it."""
    c = Cluster({"any": ts(4), "other": ts(2)})
    c.add_nodes(*numbered(3))
    c.wait("1h")
    c.edit(other=ts(3))
    c.install()
    for _ in range(3):
        c.after("1h")
    c.serve("n01", 0)
    for _ in range(10):
        t = c.after("3m")
    named = "n01" in str(t.all_findings) + str(c.condition("default", "Ready")) + str(c.blocked())
    expect_that(c.capacity("n01") == 8 or named, "repaired or named", (c.capacity("n01"), c.condition("default", "Ready")))
    expect("capacity", c.capacity("n01"), 8)
