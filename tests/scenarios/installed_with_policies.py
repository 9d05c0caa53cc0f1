"""A SharingPolicy with a key of its own is applied before the operator, as GitOps does: its nodes do not run that key yet.

The baseline is what the nodes run when the operator first sees them (docs/concepts.md), not what the policy wants of them.
"""
from scenario import CONFIG_LABEL, Cluster, expect, expect_that, mps, numbered, scenario, ts

EVERY_NODE = {"nvidia.com/gpu.present": "true"}


def installed_beside(profiles, key, gpus_used=0, policy_first=True, count=3, **options):
    """Nodes that run key `any`, each with a pod that uses so many GPUs, and a policy that wants `key` there."""
    c = Cluster(profiles, **options)
    c.add_nodes(*numbered(count))
    if gpus_used:
        for name in c.nodes():
            c.consumer("job-" + name, name, gpus=gpus_used)
    if not policy_first:
        c.install()
    c.policy("p", priority=5, selector=EVERY_NODE, profile={"configMapKey": key})
    if policy_first:
        c.install()
    c.after("2m")
    return c


def expect_no_node_below_use(c, use):
    for _ in range(5):
        c.after("2m")
    expect("nodes that serve less than their pods use", [name for name in c.nodes() if c.capacity(name) < use], [])
    expect_that(any(tick.findings("ReplicasBelowUse") for tick in c.ticks), "ReplicasBelowUse to name the nodes",
                c.ticks[-1].all_findings)


@scenario
def a_policy_that_was_there_first_waits_for_the_pods_of_its_nodes():
    """Each node serves 8 replicas, 6 are in use, and the policy wants 4: no node changes while its pod runs."""
    expect_no_node_below_use(installed_beside({"any": ts(4), "k": ts(2)}, "k", gpus_used=6), 6)


@scenario
def a_policy_that_comes_later_waits_for_the_pods_of_its_nodes():
    """The neighbour: the same policy after the installation."""
    expect_no_node_below_use(installed_beside({"any": ts(4), "k": ts(2)}, "k", gpus_used=6, policy_first=False), 6)


@scenario
def a_policy_that_was_there_first_takes_sharing_away_after_the_pods():
    """Each node serves 8 replicas, 6 are in use, and the policy wants no sharing: no node changes while its pod runs."""
    expect_no_node_below_use(installed_beside({"any": ts(4), "k": "version: v1\n"}, "k", gpus_used=6), 6)


@scenario
def a_chart_that_observed_first_waits_for_the_pods():
    """As the README has it: observe first, with the policy there, and enforce a day later. No node changes below its pod."""
    c = installed_beside({"any": ts(4), "k": ts(2)}, "k", gpus_used=6, options=["--max-mode", "Observe"])
    c.wait("24h")
    c.options = []
    expect_no_node_below_use(c, 6)


@scenario
def a_takeover_waits_for_the_pods_of_nodes_that_a_person_had_labelled():
    """A person's label selects 4 replicas, and the policy that was there first wants 2: with `takeover` set a week later, no
    node changes while its pod uses 6 of 8."""
    c = Cluster({"any": ts(2), "z": ts(4), "k": ts(2)})
    c.add_nodes("n01", "n02")
    for name in c.nodes():
        c.set_label(name, CONFIG_LABEL, "z")
        c.consumer("job-" + name, name, gpus=6)
    c.policy("p", priority=5, selector=EVERY_NODE, profile={"configMapKey": "k"})
    c.install()
    c.wait("168h")
    c.policy("p", takeover=True)
    c.after("1m")
    expect_no_node_below_use(c, 6)


@scenario
def a_record_that_is_lost_in_a_drain_makes_no_node_serve_less_than_is_used():
    """A node drains for its policy's key, and the record is deleted, as its runbook allows: no node changes meanwhile."""
    c = installed_beside({"any": ts(4), "k": ts(2)}, "k", gpus_used=6, policy_first=False)
    c.forget_own_state()
    for _ in range(6):
        c.after("1m")
    expect("nodes that serve less than their pods use", [name for name in c.nodes() if c.capacity(name) < 6], [])


def missing_devices(policy_first):
    """Two GPUs in each node, 4 replicas each; the policy wants 2 each. Nothing uses them."""
    c = installed_beside({"any": ts(4), "k": ts(2)}, "k", policy_first=policy_first)
    for _ in range(12):
        c.after("10m")
    expect("capacity of each node", {c.capacity(name) for name in c.nodes()}, {4})
    return c.ticks[-1].found_on("UnhealthyDevices"), c.condition("p", "Degraded")["status"]


@scenario
def a_policy_that_was_there_first_loses_no_device_of_its_nodes():
    """All GPUs are served with the policy's replicas: no finding and no condition says that devices are missing."""
    expect("(nodes with missing devices, Degraded)", missing_devices(True), ([], "False"))


@scenario
def a_policy_that_comes_later_loses_no_device_of_its_nodes():
    """The neighbour: the same policy after the installation."""
    expect("(nodes with missing devices, Degraded)", missing_devices(False), ([], "False"))


def expect_no_restart(policy_first):
    """Two nodes get the policy's replicas; label and sidecars are all that it takes."""
    c = installed_beside({"any": ts(4), "k": ts(2)}, "k", policy_first=policy_first, count=2)
    for _ in range(20):
        c.after("2m")
    expect("nodes whose pods were deleted", sorted({name for tick in c.ticks for name in tick.restarted()}), [])
    expect("nodes that are up to date", c.counts("p").get("upToDate"), 2)


@scenario
def nodes_of_a_policy_that_was_there_first_change_by_label_alone():
    """Sidecars reload time-slicing when the label moves: no pod is deleted."""
    expect_no_restart(True)


@scenario
def nodes_of_a_policy_that_comes_later_change_by_label_alone():
    """The neighbour: the same policy after the installation."""
    expect_no_restart(False)


def taken_back(policy_first, change):
    """MPS pods run everywhere, and n01 drains for the policy's key: then its author takes that back."""
    c = installed_beside({"any": mps(2), "k": mps(4)}, "k", gpus_used=1, policy_first=policy_first, count=2,
                         version="v0.17.1")
    expect("nodes that drain", c.in_progress(), ["n01"])
    change(c)
    for _ in range(8):
        c.after("1m")
    expect("(nodes in progress, cordoned)", (c.in_progress(), [name for name in c.nodes() if c.cordoned(name)]), ([], []))


@scenario
def a_key_that_is_taken_back_drains_no_node_that_never_left_it():
    """The policy names the nodes' present key: they run it, so nothing drains or restarts."""
    taken_back(True, lambda c: c.policy("p", profile={"configMapKey": "any"}))


@scenario
def a_policy_that_is_deleted_drains_no_node_that_it_has_not_changed():
    """The policy is deleted before a pod of its nodes was restarted: they run their default, so nothing drains."""
    taken_back(True, lambda c: c.delete_policy("p"))


@scenario
def a_key_of_a_later_policy_that_is_taken_back_drains_no_node():
    """The neighbour: the same policy after the installation."""
    taken_back(False, lambda c: c.policy("p", profile={"configMapKey": "any"}))
