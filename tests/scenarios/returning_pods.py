"""Pods that come back to the node that is being drained."""
from scenario import expect, expect_that, fleet, mps, scenario


def evictions_with(comes_back, looks=10):
    """Evict, MPS: how often pods of one ReplicaSet are evicted within twenty minutes, if each has a successor on the
    same node (it tolerates every taint) as long as `comes_back`."""
    c = fleet(1, mps(4), rollout={"workloads": "Evict"})
    anything = [{"operator": "Exists"}]
    c.consumer("job-0", "n01", tolerations=anything)
    c.edit(any=mps(8))
    evicted = []
    for _ in range(looks):
        tick = c.after("2m")
        if tick.evicted():
            evicted += tick.evicted()
            if len(evicted) <= comes_back:
                c.consumer("job-%d" % len(evicted), "n01", tolerations=anything)
    return c, evicted


@scenario
def a_workload_that_tolerates_the_cordon_is_not_evicted_again_and_again():
    """Each evicted pod has a successor on the cordoned node at once: a few evictions show that, and a reason says it."""
    c, evicted = evictions_with(comes_back=100)
    expect_that(len(evicted) <= 3, "at most three evictions", evicted)
    messages = str(c.ticks[-1].all_findings) + str(c.get("SharingPolicy", "default")["status"].get("blocked"))
    expect_that("job-%d" % len(evicted) in messages, "the pod that stays in a message", messages)


@scenario
def a_successor_that_was_on_its_way_is_evicted_as_well():
    """The neighbour: one successor was bound to the node before it was cordoned: it is evicted, and the node changed."""
    c, evicted = evictions_with(comes_back=1)
    expect("evicted", evicted, ["job-0", "job-1"])
    c.converge()
    expect("capacity", c.capacity("n01"), 16)
