"""Labels that select MPS profiles where the plugin's release serves one for a whole installation."""
import json

from cluster.expectations import expect_texts
from cluster.program import ask
from scenario import CONFIG_LABEL, Cluster, expect, expect_that, mps, one, scenario, ts

PATCH = "kubectl patch clusterpolicies.nvidia.com/cluster-policy --type merge"


def two_keys(version="v0.20.1", default=""):
    c = Cluster({"mps-two": mps(2), "mps-four": mps(4), "plain": ts(2)}, default=default, version=version)
    c.add_nodes("n01", "n02")
    c.set_label("n01", CONFIG_LABEL, "mps-two")
    c.set_label("n02", CONFIG_LABEL, "mps-four")
    c.install()
    c.after("2m")
    return c


def explained(c, name):
    return json.loads(ask(["explain", name, "-f", "-", "-o", "json"], c.manifests()).stdout)


@scenario
def two_labels_with_mps_keys_are_one_finding_that_asks_for_a_choice():
    """Two nodes select two MPS keys: one error for the fleet names both, and each choice with what to type."""
    c = two_keys()
    found = one(c.ticks[-1].findings("MPSByLabelUnsupported"))
    expect("about", (found["severity"], found["object"]["kind"]), ("error", "DaemonSet"))
    expect_texts(found["message"], "selects MPS keys mps-four (n02), mps-two (n01)", "one MPS profile per installation",
                 "the default key (none)", PATCH, "time-slicing", "kubectl edit configmap mps-config --namespace gpu-operator",
                 "n01, n02 lose their GPUs at the next restart")
    errors = [p for p in c.audited_problems() if p["severity"] == "error"]
    expect("errors of the audit", [p["reason"] for p in errors], ["MPSByLabelUnsupported"])
    expect_that(len(found["message"]) <= 1024, "a message that fits into an Event", len(found["message"]))


@scenario
def a_release_is_told_only_what_it_can_do():
    """The advice for v0.20.1 names fixes.mpsSignal; that for v0.19.3, with which the signal does not help, names the upgrade alone."""
    for version, present, absent in (("v0.20.1", "--set fixes.mpsSignal=true", "upgrade the plugin"),
                                     ("v0.19.3", PATCH + ' -p \'{"spec":{"devicePlugin":{"version":"v0.20.0"}}}\'', "mpsSignal")):
        c = two_keys(version)
        reported = [p["reason"] + p["message"] for p in c.audited_problems()]
        reported += [f["reason"] + f["message"] for f in explained(c, "n01")["findings"]]
        for text in [text for text in reported if "MPSByLabelUnsupported" in text]:
            expect_texts(text, present)
            expect_that(absent not in text, "no advice for %s that names %s" % (version, absent), text)


@scenario
def a_node_that_will_lose_its_gpus_is_not_called_up_to_date():
    """`explain` of such a node: the headline says that it would break, and each error is printed once."""
    reported = explained(two_keys(), "n01")
    expect("state", reported["state"], "NodesWouldBreak")
    expect("next", reported["next"], "kubectl get node n01 --label-columns " + CONFIG_LABEL)
    expect_texts(reported["message"], "MPS key mps-two", "without a default key")
    expect("errors", [f["reason"] for f in reported["findings"] if f["severity"] == "error"], ["MPSByLabelUnsupported"])
    expect_texts(reported["findings"][[f["reason"] for f in reported["findings"]].index("MPSByLabelUnsupported")]["message"],
                 "selects MPS key mps-two")


@scenario
def a_default_with_mps_serves_its_own_nodes():
    """One of the two keys is the default: only the node with the other one is named, and its neighbour is up to date."""
    c = two_keys(default="mps-two")
    found = one(c.ticks[-1].findings("MPSByLabelUnsupported"))
    expect_texts(found["message"], "selects MPS key mps-four (n02).", "the default key mps-two", '"default":"mps-four"')
    expect("state of n01", explained(c, "n01")["state"], "UpToDate")


@scenario
def the_advice_for_the_plugins_own_chart_has_no_hole():
    """Without a ClusterPolicy the advice names the DaemonSet to edit, in one sentence without a hole; the audit calls it an error."""
    c = Cluster({"mps-two": mps(2), "mps-four": mps(4)}, default="mps-two", layout="standalone", version="v0.20.1")
    c.add_nodes("n01")
    c.install()
    c.set_label("n01", CONFIG_LABEL, "mps-four")
    found = one(c.after("2m").findings("MPSByLabelUnsupported"))
    expect("severity", found["severity"], "error")
    expect_texts(found["message"], "kubectl edit daemonset", "# set DEFAULT_CONFIG to mps-four")


@scenario
def a_blocked_node_is_told_the_choices_once():
    """A policy selects an MPS key for n01: `explain n01` is Blocked with the choices, and no finding repeats them."""
    c = Cluster({"mps-two": mps(2), "plain": ts(2)}, default="plain", version="v0.19.3")
    c.add_nodes("n01")
    c.install()
    c.policy("team", priority=5, selector={"kubernetes.io/hostname": "n01"}, profile={"configMapKey": "mps-two"})
    c.after("2m")
    said = ask(["explain", "n01", "-f", "-"], c.manifests()).stdout
    expect_texts(said, "node n01: Blocked(MPSByLabelUnsupported)", "to do (MPSByLabelUnsupported)", PATCH)
    expect("times that the choices are printed", said.count("one MPS profile per installation"), 1)


def linted(keys, default="", **plugin):
    """What lint says of a ConfigMap with these keys and a ClusterPolicy that names it: [(kind, severity, message)]."""
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mps-config", "namespace": "gpu-operator"}, "data": keys}
    config = {"name": "mps-config", "default": default} if default else {"name": "mps-config"}
    policy = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"},
              "spec": {"devicePlugin": dict(plugin, enabled=True, config=config)}}
    done = ask(["lint", "-o", "json", "-"], {"apiVersion": "v1", "kind": "List", "items": [config_map, policy]})
    return [(document["kind"], d["severity"], d["message"]) for document in json.loads(done.stdout)["documents"]
            for d in document["diagnostics"] if d["code"] == "MPSByLabelUnsupported"]


@scenario
def lint_warns_of_mps_keys_that_no_label_can_select():
    """NVIDIA's second procedure: several MPS keys, chosen by the label of each node. From plugin v0.18.2 on none of them is ever
    loaded but the default, and without one none at all."""
    keys = {"mps-two": mps(2), "mps-four": mps(4)}
    kind, severity, message = one(linted(keys))
    expect("about", (kind, severity), ("ClusterPolicy", "warning"))
    expect_texts(message, "alone can select MPS keys mps-four, mps-two", "v0.18.2 or later", "the default key (none)", PATCH)
    expect_texts(one(linted(keys, default="mps-two"))[2], "alone can select MPS key mps-four", "the default key mps-two", '"default":"mps-four"')
    expect_texts(one(linted(keys, version="v0.19.3"))[2], "Device plugin v0.19.3")


@scenario
def lint_says_nothing_of_keys_that_are_loaded():
    """The neighbour: a release that loads labelled keys, one MPS key that is the default, time-slicing by label."""
    keys = {"mps-two": mps(2), "mps-four": mps(4)}
    expect("v0.18.1", linted(keys, version="v0.18.1"), [])
    expect("the default alone", linted({"mps-two": mps(2), "slices": ts(4)}, default="mps-two"), [])
    expect("time-slicing", linted({"a": ts(2), "b": ts(4)}), [])
