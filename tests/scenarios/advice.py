"""The command that `explain` and `audit` propose next: it must work in the cluster at hand."""
from cluster.program import ask
from scenario import Cluster, expect, expect_that, fleet, held_canary, mps, scenario, ts


def next_step(c, node):
    """The command behind `next:` of `explain NODE`."""
    said = ask(["explain", node, "-f", "-"], c.manifests()).stdout
    found = [line for line in said.splitlines() if line.startswith("next: ")]
    expect("lines with the next command", len(found), 1)
    return found[0][len("next: "):]


def drifting(text=ts(4), **options):
    """Two nodes, and n02 serves less than its pods have read, before any operator has looked."""
    c = Cluster({"any": text}, **options)
    c.add_nodes("n01", "n02")
    c.wait("15m")
    c.react()
    c.serve("n02", 6)
    c.wait("1h")
    return c


@scenario
def drift_from_before_the_installation_is_adopted_where_an_operator_has_recorded_it():
    """An operator is installed beside a node that drifts: the next command rolls the node out on request."""
    c = drifting()
    c.install()
    expect("next", next_step(c, "n02"), "gpu-sharing-operator rollout start default --adopt")


@scenario
def without_an_operator_the_next_command_is_the_way_to_get_one():
    """No operator has ever recorded the fleet: nothing would carry `rollout start` out, so the way to an operator comes first."""
    step = next_step(drifting(), "n02")
    expect_that(step.startswith("helm list --all-namespaces --filter gpu-sharing-operator  # no operator has recorded this fleet"),
                "a look for an operator", step)
    expect_that(step.endswith("once one runs: gpu-sharing-operator rollout start default --adopt"), "what follows", step)


@scenario
def what_keeps_pods_from_serving_is_named_before_their_restart():
    """The profile shares by MPS and the MPS daemon's DaemonSet is gone: a restart would cost the GPUs, so the DaemonSets come first."""
    c = drifting(mps(4))
    for pod in c.operand_pods("n01", "mps") + c.operand_pods("n02", "mps"):
        c.drop(pod)
    c.remove("DaemonSet", "nvidia-device-plugin-mps-control-daemon", c.namespace)
    c.serve("n02", 6)
    expect("next", next_step(c, "n02"), "kubectl get daemonsets --namespace gpu-operator -o wide")


@scenario
def a_config_map_that_does_not_exist_is_created():
    """The plugin's ConfigMap is deleted: `audit` reports that once, and both commands create it with the key that nodes use."""
    c = Cluster({"any": ts(4)})
    c.add_nodes("n01", "n02")
    c.install()
    c.delete_config_map()
    c.after("2m")
    create = "kubectl create configmap mps-config --namespace gpu-operator --from-file=any=any.yaml"
    about = [p for p in c.audited_problems() if "mps-config" in p["message"]]
    expect("problems", [(p["severity"], p["reason"]) for p in about], [("error", "ConfigMapMissing")])
    expect_that(about[0]["command"].startswith(create), create, about[0]["command"])
    step = next_step(c, "n01")
    expect_that(step.startswith(create), create, step)


@scenario
def a_node_that_is_not_ready_is_one_problem():
    """A NotReady node shows nothing that can be checked: `audit` reports that it is NotReady, and nothing else about it."""
    c = Cluster({"any": ts(4)})
    c.add_nodes("n01", "n02")
    c.wait("15m")
    c.react()
    c.serve("n02", 0)
    c.set_ready("n02", False)
    c.wait("1h")
    about = [p["reason"] for p in c.audited_problems() if any(o["name"] == "n02" for o in p["objects"]) and p["severity"] != "info"]
    expect("problems of the node", about, ["NodeNotReady"])


@scenario
def a_hold_in_the_middle_of_a_change_is_lifted_next_and_an_operator_comes_first():
    """A person holds a node in its change: `explain` names the command that lifts the hold; with a dead operator, the operator comes first and the exit status is 1."""
    c = held_canary(1)
    expect("next", next_step(c, "n01"), "kubectl annotate node n01 gpusharing.dev/hold-")
    leases = [{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"namespace": ns, "name": name},
               "spec": {"holderIdentity": "h", "leaseDurationSeconds": 15, "renewTime": renewed}}
              for ns, name, renewed in (("gpu-sharing-operator", "gpu-sharing-operator", "2026-01-01T00:00:00.000000Z"),
                                        ("kube-node-lease", "n01", "2026-01-01T02:00:00.000000Z"))]
    objects = c.manifests()
    objects["items"] += leases
    done = ask(["explain", "n01", "-f", "-"], objects)
    expect("exit status", done.returncode, 1)
    step = [line for line in done.stdout.splitlines() if line.startswith("next: ")][0]
    expect("next", step, "next: kubectl get deployments,pods --namespace gpu-sharing-operator  # no operator runs; once one does: "
                         "kubectl annotate node n01 gpusharing.dev/hold-")
    expect_that("no action needed: whoever" not in done.stdout, "no word that nothing is needed", done.stdout)
