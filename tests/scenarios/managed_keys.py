"""Keys that the operator writes for inline profiles: they stay as long as a label or a policy names them."""
from scenario import COMPONENTS, CONFIG_LABEL, Cluster, expect, expect_that, numbered, scenario, ts

WIDE = {"maxUnavailable": "100%", "maxUnavailablePerGroup": "100%"}
EIGHT = {"inline": {"strategy": "time-slicing", "replicas": 8}}
DEPLOY = ("nvidia.com/gpu.deploy.device-plugin", "nvidia.com/gpu.deploy.gpu-feature-discovery")


def with_an_inline_profile(**spec):
    """Two nodes of a policy with an inline profile; returns its key as well."""
    c = Cluster({"any": ts(4)}, options=["--cluster-max-unavailable", "100%"])
    c.add_nodes(*numbered(2))
    c.policy("p", priority=5, profile=EIGHT, rollout=dict(WIDE), **spec)
    c.install()
    c.converge()
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})
    return c, c.labels("n01")[CONFIG_LABEL]


def key_in_every_look(c, key):
    """Looks of an operator that has watched for hours."""
    return all([c.after("90m") and key in c.data() for _ in range(3)])


def switch_the_plugin(c, value):
    """Sets the labels of the GPU Operator that deploy the plugin's pods on all nodes to "true" or "false"."""
    for name in c.nodes():
        for label in DEPLOY:
            c.set_label(name, label, value)


@scenario
def the_key_of_a_policy_stays_while_the_plugin_is_switched_off():
    """A person switches the plugin off on all nodes for hours: the key that their labels name is there afterwards."""
    c, key = with_an_inline_profile()
    switch_the_plugin(c, "false")
    expect("whether the key stays", key_in_every_look(c, key), True)


@scenario
def the_key_of_a_deleted_policy_stays_while_the_plugin_is_switched_off():
    """The policy is deleted (Retain), and its nodes keep their label: so does the key, also while no plugin runs."""
    c, key = with_an_inline_profile()
    c.delete_policy("p")
    c.converge()
    switch_the_plugin(c, "false")
    expect("whether the key stays", key_in_every_look(c, key), True)


@scenario
def a_key_stays_while_a_label_of_another_name_names_it():
    """The same, where the sidecars read another label (NODE_LABEL): no DaemonSet that serves the nodes says so now."""
    c, key = with_an_inline_profile()
    c.delete_policy("p")
    c.converge()
    switch_the_plugin(c, "false")
    for name in c.nodes():
        c.set_label(name, CONFIG_LABEL, None)
        c.set_label(name, "example.com/gpu-profile", key)
    expect("whether the key stays", key_in_every_look(c, key), True)


@scenario
def a_key_that_the_operator_removed_itself_is_not_blamed_on_another_client():
    """The plugin comes back after hours, and whatever happened to the key: nobody else has written the ConfigMap."""
    c, _ = with_an_inline_profile()
    switch_the_plugin(c, "false")
    for _ in range(3):
        c.after("90m")
    switch_the_plugin(c, "true")
    ticks = [c.after("2m") for _ in range(6)]
    expect("findings ConfigMapReplacedByGitOps",
           [finding["message"] for tick in ticks for finding in tick.findings("ConfigMapReplacedByGitOps")], [])
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {16})


@scenario
def the_key_of_a_policy_stays_while_the_daemonsets_are_away():
    """The neighbour: without DaemonSets there is no installation whose ConfigMap could be cleared up: the key stays."""
    c, key = with_an_inline_profile()
    for component in c.components():
        c.remove("DaemonSet", COMPONENTS[component][0], c.namespace)
    for pod in c.operand_pods():
        c.drop(pod)
    c.react()
    expect("whether the key stays", key_in_every_look(c, key), True)


@scenario
def the_key_of_a_reverted_policy_goes():
    """The neighbour: the policy reverts, no label names its key any more, and the key goes within a day."""
    c, key = with_an_inline_profile(deletionPolicy="Revert")
    c.delete_policy("p")
    for _ in range(20):
        c.after("3m")
    for _ in range(8):
        c.after("3h")
    expect("capacities", {c.capacity(name) for name in c.nodes()}, {8})
    expect_that(key not in c.data(), "no key of the policy", sorted(c.data()))
