"""Labels of GPU Feature Discovery and Node Feature Discovery that are away for a while, and policies without nodes."""
from scenario import GFD_LABELS, Cluster, Run, expect, expect_that, fleet, mps, numbered, one, scenario, ts

PRODUCT = "NVIDIA-A100-SXM4-40GB"


def vanish(c, *names):
    """NFD is away: the labels of these nodes (by default of all) are gone; their pods run on."""
    saved = {}
    for name in names or c.nodes():
        labels = c.labels(name)
        saved[name] = {key: labels.pop(key) for key in list(labels) if key in GFD_LABELS}
        c.machines[name].frozen = True
        c.touch(c.node(name))
    return saved


def bring_back(c, saved):
    for name, labels in saved.items():
        c.labels(name).update(labels)
        c.machines[name].frozen = False
        c.touch(c.node(name))
    c.react()


def lose_labels_for_a_minute(c):
    saved = vanish(c)
    ticks = [c.after("20s"), c.after("40s")]
    bring_back(c, saved)
    return ticks


def by_product(count=6, **options):
    c = Cluster({"any": ts(4)})
    c.add_nodes(*numbered(count))
    c.policy("p", priority=5, selector={"nvidia.com/gpu.product": PRODUCT}, **options)
    c.install()
    return c


def starts(c, ticks=8):
    return Run([c.after("2m") for _ in range(ticks)]).started()


def stopped(switch):
    """A rollout of a policy by product, stopped in its middle by a switch of its SharingRollout."""
    c = by_product(rollout={"maxUnavailable": 1})
    c.edit(any=ts(8))
    c.after("2m")
    c.after("2m")
    c.switch(**{switch: True})
    for _ in range(4):
        c.after("2m")
    return c


@scenario
def an_abort_outlives_a_minute_without_labels():
    """The policy selects by product, and NFD is away for a minute: its aborted rollout stays aborted."""
    c = stopped("aborted")
    lose_labels_for_a_minute(c)
    expect("nodes that start by themselves", starts(c), [])


@scenario
def a_pause_outlives_a_minute_without_labels():
    """The policy selects by product, and NFD is away for a minute: its paused rollout stays paused."""
    c = stopped("paused")
    lose_labels_for_a_minute(c)
    expect("nodes that start by themselves", starts(c), [])


def mistype(c, between=lambda c: None):
    """The selector of policy p selects no node for two minutes."""
    c.policy(mode="Observe")
    c.policy("p", selector={"nvidia.com/gpu.product": "typo"})
    between(c)
    c.after("2m")
    c.policy("p", selector={"nvidia.com/gpu.product": PRODUCT})


@scenario
def an_abort_outlives_a_mistake_in_the_selector():
    """The selector of a policy is mistyped for two minutes: its aborted rollout stays aborted."""
    c = stopped("aborted")
    mistype(c)
    expect("nodes that start by themselves", starts(c), [])


@scenario
def an_abort_ends_when_the_text_changes_while_the_policy_has_no_node():
    """While the policy selects no node, its key gets another text: the abort of the former one does not stop it."""
    c = stopped("aborted")
    mistype(c, lambda c: c.edit(any=ts(2)))
    expect_that(starts(c), "nodes that start", [])


@scenario
def a_soak_outlives_a_minute_without_labels():
    """The canary soaks for an hour, and NFD is away for a minute: no second canary starts, and the others start when the
    hour is over."""
    c = by_product(rollout={"maxUnavailable": 1, "canary": {"nodesPerGroup": 1, "soak": "1h"}})
    c.edit(any=ts(8))
    for _ in range(5):
        c.after("2m")
    lose_labels_for_a_minute(c)
    expect("nodes that start within 20 minutes", starts(c, 10), [])
    expect_that(starts(c, 20), "nodes that start after the soak", [])


@scenario
def a_canary_that_loses_its_labels_is_not_replaced():
    """Only the canary loses its labels while it soaks: no other node of its group becomes the canary."""
    c = fleet(4, ts(4), rollout={"maxUnavailable": 2, "maxUnavailablePerGroup": 2,
                                 "canary": {"nodesPerGroup": 1, "soak": "30m"}})
    c.edit(any=ts(8))
    canary = one(c.after("2m").started())
    c.after("2m")
    c.after("2m")
    saved = vanish(c, canary)
    expect("nodes that start instead of it", starts(c, 6), [])
    bring_back(c, saved)
    expect_that(starts(c, 20), "nodes that start when the canary has soaked", [])


def cordoned_under(**options):
    """A stopped policy by product with an edit to do; n02 is cordoned and idle. All labels are away for a minute."""
    c = by_product(**options)
    c.cordon("n02")
    c.after("1m")
    c.edit(any=ts(8))
    for _ in range(3):
        c.after("2m")
    saved = vanish(c)
    ticks = [c.after("30s"), c.after("1m")]
    bring_back(c, saved)
    return sum([tick.deleted_pods() for tick in ticks], [])


@scenario
def a_cordoned_node_of_a_paused_policy_is_not_restarted_without_labels():
    """A policy by product is paused: its cordoned node is not changed by another policy while labels are away."""
    expect("pods that were deleted", cordoned_under(rollout={"paused": True}), [])


@scenario
def a_cordoned_node_of_an_observing_policy_is_not_restarted_without_labels():
    """The same in mode Observe."""
    expect("pods that were deleted", cordoned_under(mode="Observe"), [])


def without_its_pool_for_15_seconds(stop):
    """A policy by pool label is paused with an edit to do; the label of n02 is away for 15 s. `stop`: a stop that does not
    depend on the policy."""
    c = Cluster({"any": ts(4)})
    c.add_nodes(*numbered(6))
    for name in c.nodes():
        c.labels(name)["pool"] = "training"
        c.touch(c.node(name))
    c.policy("p", priority=5, selector={"pool": "training"}, rollout={"paused": True})
    c.install()
    c.after("1m")
    stop(c)
    c.edit(any=ts(8))
    for _ in range(3):
        c.after("2m")
    pool = c.labels("n02").pop("pool")
    c.touch(c.node("n02"))
    ticks = [c.after("1s", held="1s"), c.after("5s", held="6s"), c.after("9s", held="15s")]
    c.labels("n02")["pool"] = pool
    c.touch(c.node("n02"))
    ticks += [c.after("2m") for _ in range(3)]
    return sum([tick.deleted_pods() for tick in ticks], [])


@scenario
def a_hold_outlives_15_seconds_without_the_label_of_a_pool():
    """A node of a paused policy is held and loses the label that the policy selects: no other policy restarts it."""
    held = without_its_pool_for_15_seconds(lambda c: c.annotate("Node", "n02", "gpusharing.dev/hold", "true"))
    expect("pods that were deleted", held, [])


@scenario
def a_pause_of_the_config_map_outlives_15_seconds_without_the_label_of_a_pool():
    """The same with the ConfigMap paused instead of the node held."""
    paused = without_its_pool_for_15_seconds(
        lambda c: c.annotate("ConfigMap", c.config_map, "gpusharing.dev/paused", "true", c.namespace))
    expect("pods that were deleted", paused, [])


@scenario
def a_broken_node_is_repaired_without_labels():
    """No policy selects by labels of GFD: a node that serves nothing is repaired although its labels are missing."""
    c = fleet(4, ts(4))
    vanish(c, "n01")
    c.serve("n01", 0)
    expect("nodes that are restarted", Run([c.after("12m") for _ in range(3)]).restarted(), ["n01"])


@scenario
def missing_labels_alone_restart_no_node():
    """NFD is away for 25 minutes while every GPU is served: nothing is restarted or cordoned, and findings say why."""
    c = fleet(4, mps(4), rollout={"workloads": "Interrupt"})
    vanish(c)
    ticks = [c.after("12m") for _ in range(2)]
    expect("disruptions", [(tick.started(), tick.deleted_pods()) for tick in ticks if tick.disrupts()], [])
    expect("nodes without labels", ticks[-1].found_on("LabelsMissing"), c.nodes())
    expect("nodes that drift", ticks[-1].found_on("Drift"), [])
    expect("why the policy is not Ready", c.condition("default", "Ready")["reason"], "LabelsMissing")


@scenario
def a_policy_whose_nodes_have_lost_their_labels_is_not_ready():
    """Labels are away: a policy by product governs no node, and its condition Ready says why."""
    c = by_product(2)
    vanish(c)
    c.after("1m")
    found = c.condition("p", "Ready")
    expect("Ready", (found["status"], found["reason"]), ("False", "LabelsMissing"))


@scenario
def a_label_of_the_operator_stays_its_own_without_other_labels():
    """NFD is away for five minutes; then the policy by product names another key: its nodes are rolled out."""
    c = Cluster({"any": ts(4), "big": ts(8), "huge": ts(16)})
    c.add_nodes(*numbered(3))
    c.policy("p", priority=5, selector={"nvidia.com/gpu.product": PRODUCT}, profile={"configMapKey": "big"})
    c.install()
    c.converge()
    saved = vanish(c)
    c.after("20s")
    c.after("5m")
    bring_back(c, saved)
    c.converge()
    c.policy("p", profile={"configMapKey": "huge"})
    c.converge()
    expect("blocked nodes", c.blocked("p"), {})
    expect("capacity", {c.capacity(name) for name in c.nodes()}, {32})


@scenario
def missing_labels_strand_no_pods():
    """A node drains while its labels are away: no finding says that its pods request a resource that will be gone."""
    c = fleet(1, mps(4), rollout={"workloads": "Evict"})
    c.consumer("job-0", "n01")
    c.refuses_eviction.add("job-0")
    c.edit(any=mps(8))
    c.after("2m")
    vanish(c)
    ticks = [c.after("20s"), c.after("20s")]
    expect("nodes with stranded pods", sum([tick.found_on("RenameStrandsPods") for tick in ticks], []), [])


def take_labels_away(c, *names):
    for name in names:
        for key in GFD_LABELS:
            c.labels(name).pop(key, None)
        c.machines[name].frozen = True
        c.touch(c.node(name))


@scenario
def labels_that_are_away_do_not_fail_a_canary_that_serves():
    """The labels of a canary are away for 12 minutes while it is verified: it waits for them, and does not fail."""
    c = fleet(6, ts(4))
    c.edit(any=ts(8))
    c.after("2m")
    name = one(c.in_progress())
    take_labels_away(c, name)
    ticks = [c.after("2m") for _ in range(6)]
    expect_that(c.state(name) != "Failed", "a canary that is not Failed", c.annotations(name).get("gpusharing.dev/message"))
    expect_that(any(tick.findings("LabelsMissing") for tick in ticks), "LabelsMissing", ticks[-1].all_findings)


@scenario
def a_repair_beside_nodes_without_labels_completes_no_rollout():
    """Labels are away, and an edit waits; the one node that serves nothing is repaired: the rollout is not Completed."""
    c = fleet(6, ts(4))
    take_labels_away(c, *c.nodes())
    c.after("1m")
    c.serve("n02", 0)
    c.edit(any=ts(8))
    for _ in range(6):
        c.after("1m")
    expect("rollouts that are Completed with 5 of 6 nodes unchanged", len(c.rollouts("Completed")), 0)
