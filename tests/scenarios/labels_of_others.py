"""Labels that the operator must leave alone, whatever stands in its own annotations or happens to them."""
import json

from scenario import Cluster, expect, expect_that, scenario, ts

OWNED = "gpusharing.dev/owned"
ZONE = "topology.kubernetes.io/zone"


def without_gfd():
    """Two nodes of the standalone chart: no GFD, so the operator writes the sharing labels."""
    c = Cluster({"any": ts(4)}, layout="chart", gfd=False)
    for name in ("n01", "n02"):
        c.add_node(name, labels={ZONE: "a"})
    c.install()
    c.converge()
    expect("the label that the operator writes", c.labels("n01").get("nvidia.com/gpu.replicas"), "4")
    return c


def claim(c, label):
    c.annotate("Node", "n01", OWNED, json.dumps({"v": 1, "labels": {label: {"before": None, "value": c.labels("n01")[label]}}}))
    for _ in range(4):
        c.after("2m")


@scenario
def a_label_that_the_operator_never_writes_is_not_removed():
    """The annotation `owned` names the node's zone, by mistake or malice: no such label is the operator's, so it stays."""
    c = without_gfd()
    claim(c, ZONE)
    expect("the zone", c.labels("n01").get(ZONE), "a")


@scenario
def the_label_that_the_plugin_selects_by_is_not_removed():
    """The same with nvidia.com/gpu.present, by which the plugin's DaemonSet selects: without it the node loses its plugin."""
    c = without_gfd()
    claim(c, "nvidia.com/gpu.present")
    expect("the label", c.labels("n01").get("nvidia.com/gpu.present"), "true")


@scenario
def a_client_that_strips_a_label_ends_the_writing():
    """Another client takes away the label every ten minutes for a day: three writes, then a word."""
    c = without_gfd()
    writes = 0
    for _ in range(100):
        c.labels("n01").pop("nvidia.com/gpu.replicas", None)
        c.touch(c.node("n01"))
        writes += len(c.after("10m").patched("n01"))
    expect_that(writes <= 4, "at most three writes and one of the annotation", writes)
    expect_that("n01" in c.ticks[-1].found_on("LabelContested"), "the finding LabelContested", c.ticks[-1].all_findings)
