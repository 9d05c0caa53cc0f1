"""The plugin's installation changes below a rollout: namespace, ConfigMap, default key, DaemonSets that go and come."""
from scenario import COMPONENTS, CONFIG_LABEL, INVALID, expect, expect_that, fleet, mps, scenario, ts


def remove_daemonsets(c):
    for component in c.components():
        c.remove("DaemonSet", COMPONENTS[component][0], c.namespace)
    for pod in c.operand_pods():
        c.drop(pod)


def bring_daemonsets(c):
    for component in c.components():
        c.daemonset(component)
    c.react()


def announce(c, default):
    policy = c.get("ClusterPolicy", "cluster-policy")
    policy["spec"]["devicePlugin"]["config"]["default"] = default
    c.touch(policy)


def default_of_templates(c, default, name):
    """The GPU Operator writes the default key into its DaemonSets: a new template."""
    c.default = default
    for daemonset in c.all("DaemonSet"):
        spec = daemonset["spec"]["template"]["spec"]
        for container in spec["initContainers"] + spec["containers"]:
            for variable in container["env"]:
                if variable["name"] == "DEFAULT_CONFIG":
                    variable["value"] = default
        c.touch(daemonset)
    c.template(name)


@scenario
def an_installation_that_moves_to_another_namespace_half_way_ends_well():
    """helm uninstall and install in another namespace while a node verifies: every node is recorded, none is restarted."""
    c = fleet(4, ts(4), rollout={"maxUnavailable": 1})
    c.edit(any=ts(8))
    for _ in range(3):
        c.after("2m")
    data = c.data()
    remove_daemonsets(c)
    c.remove("ConfigMap", c.config_map, c.namespace)
    c.namespace = "nvidia"
    c.configure(data)
    c.wait("5s")
    bring_daemonsets(c)
    run = c.converge()
    expect("nodes restarted", run.restarted(), [])
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})
    expect("states and cordons", {(c.state(name), c.cordoned(name)) for name in c.nodes()}, {("", False)})
    expect("Ready", c.condition("default", "Ready")["status"], "True")


@scenario
def daemonsets_that_are_away_while_a_node_drains_leave_no_cordon():
    """The GPU Operator is removed while a node waits for its job: within ten minutes the node is uncordoned."""
    c = fleet(2, mps(4))
    c.consumer("job-0", "n01")
    c.consumer("job-1", "n02")
    c.edit(any=mps(8))
    c.after("2m")
    expect("nodes in progress", len(c.in_progress()), 1)
    remove_daemonsets(c)
    c.react()
    for _ in range(5):
        c.after("2m")
    expect("states and cordons", {(c.state(name), c.cordoned(name)) for name in c.nodes()}, {("", False)})
    bring_daemonsets(c)
    c.end("job-0", "job-1")
    c.converge()
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def under_on_delete_another_default_key_is_rolled_in_waves():
    """ClusterPolicy and DaemonSets name another default key: a canary first, and then one node after the other."""
    c = fleet(3, ts(4), more={"k": ts(8)}, on_delete=True)
    announce(c, "k")
    expect("starts before the DaemonSets have it", c.after("2m").started(), [])
    default_of_templates(c, "k", "h2")
    run = c.converge()
    expect("waves", [len(wave) for wave in run.waves()], [1, 1, 1])
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def under_on_delete_a_default_key_with_an_invalid_text_restarts_nothing():
    """The new default key has a text that no plugin takes: no pod is deleted, and ConfigValid names the key."""
    c = fleet(3, ts(4), more={"k": INVALID}, on_delete=True)
    announce(c, "k")
    default_of_templates(c, "k", "h2")
    run = c.converge()
    expect("nodes restarted", run.restarted(), [])
    valid = c.condition("default", "ConfigValid")
    expect_that(valid["status"] == "False" and "key k" in valid["message"], "key k to be named", valid)


@scenario
def under_on_delete_a_default_key_that_is_taken_back_brings_the_canary_back():
    """The new default is MPS, and is taken back while the canary is on its way: it goes back, and no other node starts."""
    c = fleet(3, ts(4), more={"k": mps(4)}, on_delete=True)
    announce(c, "k")
    default_of_templates(c, "k", "h2")
    c.after("2m")
    c.after("2m")
    expect("in progress", c.in_progress(), ["n01"])
    announce(c, "any")
    default_of_templates(c, "any", "h1")
    run = c.converge()
    expect("started besides n01", sorted(set(run.started()) - {"n01"}), [])
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {8})
    expect("strategies", {c.labels(name)["nvidia.com/gpu.sharing-strategy"] for name in c.nodes()}, {"time-slicing"})
    expect("cordoned", [name for name in c.nodes() if c.cordoned(name)], [])


@scenario
def a_comment_in_the_text_restarts_nothing():
    """Somebody adds a comment to the profile: no node starts."""
    c = fleet(3, ts(4))
    c.edit(any="# reviewed by the platform team\n" + ts(4))
    expect("starts", c.converge().started(), [])


@scenario
def a_driver_upgrade_in_the_middle_of_a_change_is_waited_for():
    """The driver of a node is upgraded between its first and its last pod: it is held, and finished afterwards."""
    c = fleet(3, mps(4))
    c.edit(any=mps(8))
    while not c.ticks[-1].restarted():
        c.after("2m")
    name = c.in_progress()[0]
    c.set_label(name, "nvidia.com/gpu-driver-upgrade-state", "pod-restart-required")
    ticks = [c.after("2m") for _ in range(8)]
    expect("pods deleted under the upgrade", [each for tick in ticks for each in tick.deleted_pods()], [])
    c.set_label(name, "nvidia.com/gpu-driver-upgrade-state", "upgrade-done")
    c.converge()
    expect("capacities", {c.capacity(each) for each in c.nodes()}, {16})
    expect("cordoned", [each for each in c.nodes() if c.cordoned(each)], [])


@scenario
def a_rollout_whose_nodes_lose_their_key_is_not_complete():
    """Half-way through an edit the DaemonSets get a default key that does not exist: the nodes that are left have no key,
    and the rollout waits for them and names them, until the default is right again."""
    c = fleet(4, ts(4), rollout={"maxUnavailable": 1, "canary": {"nodesPerGroup": 1, "soak": "1m"}},
              options=["--cluster-max-unavailable", "1"])
    # One node has the key by its label, so that the rollout itself goes on.
    c.set_label("n01", CONFIG_LABEL, "any")
    for _ in range(4):
        c.after("5m")
    c.edit(any=ts(8))
    while c.capacity("n01") != 16:
        c.after("1m")
    waiting = [name for name in c.nodes() if c.capacity(name) == 8]
    expect_that(waiting, "nodes that still wait", [c.capacity(name) for name in c.nodes()])
    announce(c, "nokey")
    default_of_templates(c, "nokey", "h2")
    for _ in range(6):
        c.after("5m")
    expect("complete", c.rollouts("Completed"), [])
    states = [(rollout["status"]["phase"], str(rollout["status"])) for rollout in c.rollouts()]
    for phase, status in states:
        expect("phase", phase, "Paused")
        expect_that("ConfigInvalid" in status and waiting[0] in status, "the reason and the nodes that are left", status)
    announce(c, "any")
    default_of_templates(c, "any", "h1")
    c.converge(most=60)
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})
