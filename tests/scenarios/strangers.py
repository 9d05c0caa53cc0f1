"""People who may write in a namespace of their own: their DaemonSets and the marks on their pods steer nothing."""
from scenario import Cluster, expect, expect_that, fleet, mps, none, numbered, one, scenario, ts

FORGED = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "name": "cluster-policy",
          "uid": "00000000-0000-0000-0000-000000000000"}


def reasons_about(c, namespace):
    return {(finding["reason"], finding["severity"]) for finding in c.ticks[-1].findings()
            if finding["object"].get("namespace") == namespace or namespace in finding["message"]}


@scenario
def a_daemonset_with_a_forged_owner_is_reported_and_rolls_nothing():
    """A tenant's plugin names the ClusterPolicy with another uid, and its own readable text: edits of the real ConfigMap
    are rolled, and the one finding about its namespace is a warning."""
    c = fleet(3, ts(4))
    c.stranger("a-team", owner=FORGED, text=ts(16))
    c.after("2m")
    c.edit(any=ts(8))
    c.converge()
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})
    expect("findings", reasons_about(c, "a-team"), {("ForeignDevicePlugin", "warning")})


@scenario
def a_forged_daemonset_that_is_being_deleted_holds_no_node_in_its_change():
    """It appears while nodes wait for their jobs: when these end, every node reaches the text, uncordoned."""
    c = fleet(3, mps(4))
    for name in c.nodes():
        c.consumer("job-" + name, name)
    c.edit(any=mps(8))
    c.after("2m")
    one(c.in_progress())
    c.stranger("a-team", owner=FORGED, going=True)
    c.end(*["job-" + name for name in c.nodes()])
    c.converge()
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})
    expect("cordoned", [name for name in c.nodes() if c.cordoned(name)], [])


@scenario
def a_second_plugin_beside_a_chart_s_starts_nothing():
    """Without a ClusterPolicy the recorded installation stays: a tenant's plugin in a namespace that comes first in the
    alphabet, with a readable text, starts no node."""
    c = fleet(3, ts(4), layout="standalone")
    c.stranger("a-team", text=ts(16), selector={"nvidia.com/gpu.present": "true"})
    started = sum([c.after("2m").started() for _ in range(3)], [])
    expect("started for the tenant's text", started, [])
    c.edit(any=ts(8))
    c.converge()
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def two_plugins_at_the_first_start_hold_their_nodes():
    """Nothing says which of two namespaces is right when the operator first looks: the nodes are Blocked with both names,
    and stay so, and once the setting names one, that one's edits are rolled."""
    c = Cluster({"any": ts(4)}, layout="standalone")
    c.add_nodes(*numbered(3))
    c.stranger("a-team", text=ts(16), selector={"nvidia.com/gpu.present": "true"})
    c.install()
    c.edit(any=ts(8))
    started = sum([c.after("2m").started() for _ in range(4)], [])
    expect("started", started, [])
    expect("blocked", c.blocked(), {"DevicePluginConflict": c.nodes()})
    both = [finding["message"] for finding in c.ticks[-1].findings("DevicePluginConflict")]
    expect_that(all("a-team/plugin" in text and "nvidia-device-plugin/" in text for text in both), "both names", both)
    c.options += ["--operand-namespaces", "nvidia-device-plugin"]
    c.after("2m")
    c.edit(any=ts(2))
    c.converge()
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {4})


@scenario
def a_stranger_s_gfd_and_daemon_protect_and_block_nothing():
    """DaemonSets with the containers of GFD and of the chart's standalone daemon in a tenant's namespace: its pods are
    evicted, and nodes reach an MPS text."""
    c = fleet(2, mps(4), rollout={"workloads": "Evict"})
    c.consumer("job-0", "n01", namespace="a-team")
    c.stranger("a-team", name="gfd", container="gpu-feature-discovery")
    c.stranger("a-team", name="mps", container="standalone-mps")
    c.after("2m")
    c.edit(any=mps(8))
    run = c.converge()
    expect("evicted", run.evicted(), ["job-0"])
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def a_namespace_that_the_setting_names_governs_its_nodes():
    """The GPU Operator serves pool a. A chart's plugin serves pool b in a namespace that only the setting names: an edit
    there is rolled to pool b."""
    c = Cluster({"any": ts(4)}, options=["--operand-namespaces", "team-plugins"])
    c.add_nodes(*numbered(2, "a"))
    other = Cluster({"any": ts(4)}, layout="standalone", namespace="team-plugins", crds=False)
    spec = other.get("DaemonSet", "nvidia-device-plugin-daemonset", "team-plugins")["spec"]["template"]["spec"]
    spec["nodeSelector"] = {"pool": "b"}
    other.add_nodes(*numbered(2, "b"), labels={"pool": "b"})
    for name in other.nodes():
        other.labels(name).pop("nvidia.com/gpu.deploy.device-plugin")
    c.adopt(other)
    c.install()
    other.clock = c.clock
    other.edit(any=ts(8))
    started = sum([c.after("2m").started() for _ in range(3)], [])
    expect("pools that start", {name[0] for name in started}, {"b"})


@scenario
def marks_of_kai_without_kai_keep_no_node_waiting():
    """KAI is not installed. Pause pods with its annotation and its group label are on every node: an MPS edit reaches
    them, and none is cordoned again and again."""
    c = fleet(2, none())
    for name in c.nodes():
        c.consumer("squat-" + name, name, gpus=0, namespace="a-team", owner=None, annotations={"gpu-fraction": "0.1"},
                   labels={"runai-gpu-group": "g"})
    c.after("2m")
    c.edit(any=mps(4))
    c.converge()
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {8})


@scenario
def marks_of_kai_on_a_pod_that_kai_has_not_placed_keep_no_node_waiting():
    """The same where KAI is installed, and another scheduler has placed the pods."""
    c = fleet(2, none())
    c.put({"apiVersion": "kai.scheduler/v1", "kind": "Config", "metadata": {"name": "kai-config"},
           "spec": {"namespace": "kai-scheduler", "admission": {"gpuSharing": True}}})
    for name in c.nodes():
        c.consumer("squat-" + name, name, gpus=0, namespace="a-team", owner=None, annotations={"gpu-fraction": "0.1"},
                   labels={"runai-gpu-group": "g"}, schedulerName="default-scheduler")
    c.after("2m")
    c.edit(any=mps(4))
    c.converge()
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {8})
