"""No GPU Feature Discovery runs, as with the device plugin's own chart, and nothing proves how many GPUs a node has: it joins,
or its pods are older than the ConfigMap. A pod uses six of the eight replicas that the node serves, and what the node must run
next serves four. Under WaitForIdle it waits for the pod: in doubt the operator holds."""
from scenario import COMPONENTS, CONFIG_LABEL, REVISION, Cluster, expect, expect_that, fleet, none, scenario, ts

PLUGIN_CHART = {"layout": "chart"}
WITHOUT_GFD = {"gfd": False}


def joins_under_a_policy(wanted, **options):
    """The policy of the new node's pool wants key `k`, and the node comes up with the default, 4 replicas of 2 GPUs."""
    c = Cluster({"any": ts(4), "k": wanted}, **options)
    c.add_nodes("n01")
    c.install()
    c.policy("p", priority=5, selector={"pool": "new"}, profile={"configMapKey": "k"})
    c.after("10m")
    c.add_node("n02", labels={"pool": "new"})
    c.consumer("job-0", "n02", gpus=6)
    return c


def expect_patience(c, name="n02"):
    for _ in range(10):
        c.after("1m")
    expect_that(c.capacity(name) >= 6, "%s to serve what its pod uses" % name, c.capacity(name))
    expect_that(any(tick.findings("ReplicasBelowUse") + tick.findings("WaitingForWorkloads") for tick in c.ticks),
                "a finding to say what %s waits for" % name, c.ticks[-1].all_findings)


@scenario
def a_node_of_the_plugins_chart_waits_for_the_pod_that_uses_more():
    """The device plugin's own chart, as it is shipped: without GFD."""
    expect_patience(joins_under_a_policy(ts(2), **PLUGIN_CHART))


@scenario
def a_node_of_the_plugins_chart_does_not_lose_sharing_below_its_pod():
    """The same, and the policy wants no sharing."""
    expect_patience(joins_under_a_policy(none(), **PLUGIN_CHART))


@scenario
def a_node_of_the_gpu_operator_without_gfd_waits_for_the_pod_that_uses_more():
    """The GPU Operator with GFD switched off."""
    expect_patience(joins_under_a_policy(ts(2), **WITHOUT_GFD))


@scenario
def a_node_with_gfd_waits_for_the_pod_that_uses_more():
    """The neighbour: GFD counts the GPUs."""
    expect_patience(joins_under_a_policy(ts(2)))


def edited_at_once(**options):
    """The node has joined, and half a minute later its key is edited from 4 replicas to 2: its pods are older."""
    c = Cluster({"any": ts(4)}, **options)
    c.add_nodes("n01")
    c.install()
    c.add_node("n02")
    c.consumer("job-0", "n02", gpus=6)
    c.wait("30s")
    c.edit(any=ts(2))
    expect_patience(c)


@scenario
def an_edit_after_a_node_of_the_plugins_chart_has_joined_waits_for_its_pod():
    """n02 is restarted for the edit once its pod has ended, like n01."""
    edited_at_once(**PLUGIN_CHART)


@scenario
def an_edit_after_a_node_with_gfd_has_joined_waits_for_its_pod():
    """The neighbour: GFD counts the GPUs."""
    edited_at_once()


@scenario
def a_node_of_the_plugins_chart_that_is_idle_changes():
    """The neighbour: without a pod the node gets the policy's replicas."""
    c = joins_under_a_policy(ts(2), **PLUGIN_CHART)
    c.end("job-0")
    for _ in range(6):
        c.after("2m")
    expect("capacity", c.capacity("n02"), 4)


def installed_unproven(**options):
    """Another key was edited after the pods had come: what they have read is not proven when the operator comes."""
    c = Cluster({"any": ts(4), "other": ts(2)}, **options)
    c.add_nodes("n01")
    c.wait("1h")
    c.edit(other=ts(3))
    c.install()
    c.consumer("job-0", "n01", gpus=6)
    return c


@scenario
def the_first_edit_after_an_installation_on_the_plugins_chart_waits_for_pods():
    """The first edit after the installation takes the node from 4 replicas to 2."""
    c = installed_unproven(**PLUGIN_CHART)
    c.edit(any=ts(2))
    expect_patience(c, "n01")


@scenario
def the_first_edit_after_an_installation_beside_gfd_waits_for_pods():
    """The neighbour: GFD counts the GPUs."""
    c = installed_unproven()
    c.edit(any=ts(2))
    expect_patience(c, "n01")


@scenario
def drift_that_is_adopted_on_the_plugins_chart_waits_for_pods():
    """The key itself was edited before the installation, and a person rolls the drift out with `rollout start --adopt`."""
    c = Cluster({"any": ts(4)}, **PLUGIN_CHART)
    c.add_nodes("n01")
    c.wait("1h")
    c.edit(any=ts(2))
    c.consumer("job-0", "n01", gpus=6)
    c.install()
    c.annotate("SharingPolicy", "default", "gpusharing.dev/adopt-drift", "true")
    expect_patience(c, "n01")


def another_default(c, key):
    """A new template of the DaemonSet names another default key."""
    c.default = key
    for component in c.components():
        spec = c.get("DaemonSet", COMPONENTS[component][0], c.namespace)["spec"]["template"]["spec"]
        for container in spec["containers"] + spec["initContainers"]:
            for entry in container.get("env", []):
                if entry["name"] == "DEFAULT_CONFIG":
                    entry["value"] = key
    c.template("h2")


@scenario
def a_node_whose_pod_has_the_former_template_is_not_recorded_with_its_default():
    """OnDelete: a node joins with default `any`, 4 replicas, and seconds later the template names `b`, 2 replicas. Its pod has
    the old template and serves 8: nothing says that the node has loaded `b`, and it waits for the pod that uses 6."""
    c = Cluster({"any": ts(4), "b": ts(2)}, on_delete=True, **PLUGIN_CHART)
    c.add_nodes("n01")
    c.install()
    c.add_node("n02")
    c.consumer("job-0", "n02", gpus=6)
    c.wait("20s")
    another_default(c, "b")
    c.after("30s")
    expect("(replicas by label, profile that is recorded)",
           (c.labels("n02").get("nvidia.com/gpu.replicas") == "2", REVISION in c.annotations("n02")), (False, False))
    expect_patience(c)


def relabelled_without_effect(edited_before):
    """A policy moves n01 from 4 replicas to 2, and the plugin goes on to serve 8: its sidecar did not reload it."""
    c = Cluster({"any": ts(4), "k": ts(2), "other": ts(3)}, **PLUGIN_CHART)
    c.add_nodes("n01")
    c.wait("1h")
    if edited_before:
        c.edit(other=ts(5))
    c.install()
    c.behave("unchanged", "n01")
    c.policy("p", priority=5, selector={"nvidia.com/gpu.present": "true"}, profile={"configMapKey": "k"})
    for _ in range(5):
        c.after("1m")
    expect("(capacity, policy has nodes that are up to date)", (c.capacity("n01"), c.counts("p").get("upToDate")), (8, 0))


@scenario
def a_label_without_effect_does_not_verify_an_unproven_node():
    """Another key was edited before the installation. 8 devices fit both keys, so they prove neither: n01 is not up to date."""
    relabelled_without_effect(True)


@scenario
def a_label_without_effect_does_not_verify_a_proven_node():
    """The neighbour: the pods are newer than every edit, so the number of GPUs is known."""
    relabelled_without_effect(False)


@scenario
def a_record_that_is_lost_while_a_node_of_the_plugins_chart_reloads_costs_no_restart():
    """The operator writes the label of n01, and its record is lost before the plugin has reloaded: the node says itself how
    many GPUs it has, and what it serves proves the new key."""
    for loses in (False, True):
        c = fleet(2, ts(4), more={"k": ts(6)}, **PLUGIN_CHART)
        c.policy("p", priority=5, selector={"kubernetes.io/hostname": "n01"}, profile={"configMapKey": "k"})
        before = c.plugin("n01")
        c.after("2m")
        expect("the label of n01", c.labels("n01").get(CONFIG_LABEL), "k")
        if loses:
            c.forget_own_state()
        c.converge()
        expect("(label, capacity)", (c.labels("n01").get(CONFIG_LABEL), c.capacity("n01")), ("k", 12))
        expect("the plugin of n01", c.plugin("n01"), before)
