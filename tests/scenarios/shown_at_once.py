"""Nodes that show what they loaded by themselves: an obstacle to a restart is no obstacle to recording them."""
from scenario import CONFIG_LABEL, expect, expect_that, fleet, one, scenario, ts


def offers_by_dra(c, node, classes=(("gpu.nvidia.com", "2026-01-05T00:00:00Z"),)):
    """A DRA driver offers the GPUs of the node as well, under the plugin's resource name."""
    for name, created in classes:
        c.put({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
               "metadata": {"name": name, "creationTimestamp": created},
               "spec": {"extendedResourceName": "nvidia.com/gpu"}})
    c.put({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node + "-gpu"},
           "spec": {"driver": "gpu.nvidia.com", "nodeName": node, "devices": [{"name": "gpu-0"}],
                    "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}})


@scenario
def a_node_that_joins_with_a_dra_double_offer_and_shows_its_text_is_recorded():
    """A node joins and shows its profile, and DRA offers its GPUs as well: it is up to date, with a warning."""
    c = fleet(3, ts(4))
    c.add_node("n99")
    offers_by_dra(c, "n99")
    ticks = [c.after("3m") for _ in range(4)]
    expect("upToDate", c.counts().get("upToDate"), 4)
    expect_that(ticks[-1].findings("DRADoubleOffer"), "a finding DRADoubleOffer", ticks[-1].all_findings)


@scenario
def a_label_that_a_person_moves_on_a_node_with_a_dra_double_offer_is_recorded():
    """A person moves a node to another key, and it reloads by itself: it is up to date, although DRA offers its GPUs."""
    c = fleet(3, ts(4), more={"slices": ts(8)})
    offers_by_dra(c, "n01")
    c.wait("10m")
    c.set_label("n01", CONFIG_LABEL, "slices")
    for _ in range(4):
        c.after("3m")
    expect("the capacity of the node", c.capacity("n01"), 16)
    expect("upToDate", c.counts().get("upToDate"), 3)


@scenario
def a_node_with_a_dra_double_offer_that_does_not_reload_is_not_restarted():
    """The same node does not reload: it is not restarted, and the reason is named."""
    c = fleet(3, ts(4), more={"slices": ts(8)})
    offers_by_dra(c, "n01")
    c.wait("10m")
    c.behave("unchanged", "n01")
    c.set_label("n01", CONFIG_LABEL, "slices")
    ticks = [c.after("3m") for _ in range(6)]
    expect("restarted", sorted({name for tick in ticks for name in tick.restarted()}), [])
    expect("blocked", c.blocked(), {"DRADoubleOffer": ["n01"]})


@scenario
def a_node_whose_pods_come_back_one_after_the_other_is_not_started():
    """The MIG manager has taken the pods of n01 away, and the text was edited meanwhile. It lets the node go, and the operator looks
    when its first new pod is there and the next is not: both read the edit by themselves."""
    for first, later in (("plugin", "gfd"), ("gfd", "plugin")):
        c = fleet(3, ts(4), rollout={"maxUnavailable": 3, "maxUnavailablePerGroup": 3}, options=["--cluster-max-unavailable", "3"])
        c.set_label("n01", "nvidia.com/mig.config.state", "pending")
        c.behave("absent", "n01")
        for pod in c.operand_pods("n01"):
            c.drop(pod)
        c.edit(any=ts(8))
        for _ in range(14):
            c.after("1m")
        expect("capacities of the others", [c.capacity(name) for name in ("n02", "n03")], [16, 16])
        c.set_label("n01", "nvidia.com/mig.config.state", "success")
        c.behave("starting", "n01")
        for pod in c.operand_pods("n01"):
            c.drop(pod)
        c.start_pod(first, "n01")
        expect("nodes started while %s's pod is missing" % later, c.plan(held="1m").started(), [])
        c.behave("healthy", "n01")
        c.start_pod(later, "n01")
        c.get_ready("n01")
        ticks = [c.after("1m") for _ in range(8)]
        expect("nodes started", sum([tick.started() for tick in ticks], []), [])
        expect("the capacity of n01", c.capacity("n01"), 16)


@scenario
def gpus_that_dra_gives_away_at_any_time_are_an_error():
    """The profile renames the resource, so nvidia.com/gpu is 0 and the scheduler takes the DRA path at any time: the
    finding is an error, also while the node is blocked by it, and names the DeviceClass that was created last."""
    c = fleet(2, ts(4, rename=True))
    offers_by_dra(c, "n02", classes=[("old", "2025-01-05T00:00:00Z"), ("newest", "2026-02-05T00:00:00Z"),
                                     ("newer", "2026-02-04T00:00:00Z")])
    for text in (ts(4, rename=True), ts(8, rename=True)):
        c.edit(any=text)
        for _ in range(4):
            tick = c.after("2m")
        found = one(tick.findings("DRADoubleOffer"))
        expect("finding", (found["severity"], found["object"]["name"]), ("error", "n02"))
        expect_that("DeviceClass newest " in found["message"], "the class that was created last", found["message"])
        expect_that("nvidia.com/gpu is 0" in found["message"], "why it is so at any time", found["message"])
    expect("node", c.state("n02"), "Blocked")


@scenario
def gpus_that_dra_gives_away_in_restarts_are_a_warning():
    """Nothing is renamed: the same GPU is given away twice only while the plugin restarts, which is a warning."""
    c = fleet(2, ts(4))
    offers_by_dra(c, "n02")
    expect("severity", one(c.after("2m").findings("DRADoubleOffer"))["severity"], "warning")
