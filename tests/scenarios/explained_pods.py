"""What `explain NAMESPACE/POD` prints about pods that have a cause in their own status, and about many nodes."""
import json

from cluster.program import ask
from hostile_texts import FORGED
from scenario import GPU, expect, expect_that, fleet, mps, scenario, ts


def explained(c, *what):
    return ask(["explain", *what, "-f", "-"], c.manifests())


def pod_with(c, status, **fields):
    """A user's pod on n01 whose container is in that state."""
    pod = c.consumer("train", "n01")
    pod["metadata"].update(fields)
    pod["status"] = status
    c.touch(pod)
    return c


@scenario
def a_pod_without_an_image_is_not_asked_for_its_previous_log():
    """Its container never started: the kubelet's message is shown, and `describe`, not `logs --previous`."""
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x"'}}
    c = pod_with(fleet(1, ts(4)), {"phase": "Pending", "containerStatuses": [{"name": "main", "restartCount": 0, "state": waiting}]})
    told = explained(c, "team/train")
    expect("exit status", told.returncode, 1)
    expect_that('ImagePullBackOff: Back-off pulling image "x"' in told.stdout, "the kubelet's message", told.stdout)
    expect_that("--previous" not in told.stdout and "kubectl describe pod train" in told.stdout, "a command that works", told.stdout)


@scenario
def a_pod_that_a_finalizer_holds_is_not_called_fine():
    """It was deleted long ago and is still there: exit status 1, and the finalizer is named."""
    c = pod_with(fleet(1, ts(4)), {"phase": "Running"}, finalizers=["example.com/hold"], deletionTimestamp="2020-01-01T00:00:30Z",
                 deletionGracePeriodSeconds=30)
    told = explained(c, "team/train")
    expect("exit status", told.returncode, 1)
    expect_that("Terminating since 2020-01-01T00:00:00Z" in told.stdout and "example.com/hold" in told.stdout, "the finalizer", told.stdout)


@scenario
def what_a_users_pod_says_forges_no_line():
    """Reasons and messages of a pod's status are texts of three lines: each stays in the line that quotes it, and is cut."""
    ended = {"terminated": {"exitCode": 1, "reason": FORGED, "message": FORGED}}
    waiting = {"waiting": {"reason": FORGED, "message": FORGED}}
    for status in ({"phase": "Pending", "containerStatuses": [{"name": "main", "state": waiting, "lastState": ended}]},
                   {"phase": "Running", "containerStatuses": [{"name": "main", "state": ended}]},
                   {"phase": "Failed", "reason": FORGED, "message": FORGED}):
        held = {"finalizers": [FORGED], "deletionTimestamp": "2020-01-01T00:00:00Z"} if status["phase"] == "Failed" else {}
        c = pod_with(fleet(1, ts(4)), status, **held)
        told = explained(c, "team/train").stdout
        expect("forged lines", [line[:80] for line in told.splitlines() if line.startswith("error FORGED")], [])
        expect("whole texts", [line[:80] for line in told.splitlines() if "A" * 300 in line], [])


def waiting(c, gpus=1, resource=GPU, **spec):
    """A user's pod that no node has been chosen for."""
    pod = c.consumer("train", "n01", gpus=gpus)
    del pod["spec"]["nodeName"]
    pod["spec"].update(spec)
    amounts = pod["spec"]["containers"][0]["resources"]
    for side in amounts.values():
        side[resource] = side.pop(GPU)
    pod["status"] = {"phase": "Pending"}
    c.touch(pod)
    return c


@scenario
def what_holds_for_many_nodes_is_said_once():
    """25 nodes refuse the same request: one row with their number, and JSON has all of them."""
    c = waiting(fleet(25, ts(4)), gpus=1000)
    told = explained(c, "team/train").stdout
    expect("rows", [line for line in told.splitlines() if "and 20 more" in line and "has 8 of nvidia.com/gpu" in line],
           ["n01, n02, n03, n04, n05 and 20 more   has 8 of nvidia.com/gpu"])
    listed = json.loads(explained(c, "team/train", "-o", "json").stdout)["nodes"]
    expect("nodes in JSON", len(listed), 25)


@scenario
def a_node_that_is_gone_is_not_compared_with_another_one():
    """The pod names a node that does not exist: one row for all nodes, and no word about the name of one of them."""
    c = waiting(fleet(3, ts(4)), nodeSelector={"kubernetes.io/hostname": "gone"})
    for name in c.nodes():
        c.set_label(name, "kubernetes.io/hostname", name)
    told = explained(c, "team/train").stdout
    expect_that("label kubernetes.io/hostname differs, the pod requires gone" in told, "the selector", told)
    expect("names of other nodes", [line for line in told.splitlines() if "hostname is n0" in line], [])


@scenario
def a_shared_product_is_not_selected_beside_a_renamed_resource():
    """nvidia.com/gpu.shared and a product that ends with -SHARED: lint and `explain` say that no node has both."""
    spec = {"nodeSelector": {"nvidia.com/gpu.product": "Tesla-T4-SHARED"}}
    affinity = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "nvidia.com/gpu.product", "operator": "In", "values": ["Tesla-T4-SHARED"]}]}]}}}}
    why = "with renameByDefault, which gives nvidia.com/gpu.shared its name, the label has no suffix -SHARED. Select Tesla-T4, or request nvidia.com/gpu where"
    for wrong, place in ((spec, "spec.nodeSelector[nvidia.com/gpu.product]"), (affinity, "matchExpressions[0].key")):
        c = waiting(fleet(1, mps(4)), resource=GPU + ".shared", **wrong)
        said = explained(c, "team/train").stdout
        linted = ask(["lint", "-"], c.get("Pod", "train", "team")).stdout
        for text in (said, linted):
            expect_that("SharedProductSelected" in text and why in " ".join(text.split()), why, text)
            expect_that(place in text, place, text)
    right = waiting(fleet(1, mps(4)), **spec)
    for text in (explained(right, "team/train").stdout, ask(["lint", "-"], right.get("Pod", "train", "team")).stdout):
        expect_that("SharedProductSelected" not in text, "nothing about the product of nvidia.com/gpu", text)


@scenario
def a_pod_that_looks_for_the_daemon_elsewhere_is_not_called_fine():
    """The guide's /tmp/nvidia-smp, running on a node under MPS: `explain` warns with the words of lint."""
    c = fleet(1, mps(4))
    pod = c.consumer("train", "n01")
    pod["spec"]["volumes"] = [{"name": "mps", "hostPath": {"path": "/tmp/nvidia-smp"}}]
    pod["spec"]["containers"][0].update(volumeMounts=[{"name": "mps", "mountPath": "/tmp/nvidia-smp"}],
                                        env=[{"name": "CUDA_MPS_PIPE_DIRECTORY", "value": "/tmp/other"}])
    c.touch(pod)
    told = explained(c, "team/train")
    expect("exit status", told.returncode, 0)
    linted = ask(["lint", "-o", "json", "-"], c.get("Pod", "train", "team")).stdout
    warnings = [d for d in json.loads(linted)["documents"][0]["diagnostics"] if d["severity"] == "warning"]
    expect("codes of lint", sorted(d["code"] for d in warnings), ["PipeDirectoryMisspelt", "PipeDirectoryNotMounted"])
    for diagnostic in warnings:
        expect_that(diagnostic["message"] in " ".join(told.stdout.split()), diagnostic["message"], told.stdout)


@scenario
def a_client_of_the_plugins_mps_needs_no_mount_of_its_own():
    """The guide's /tmp/nvidia-smp beside a replica under MPS: the plugin names its own directory to the pod, so `explain` calls the mount superfluous and the pod a client."""
    c = fleet(1, mps(4))
    pod = c.consumer("smp", "n01", volumes=[{"name": "mps", "hostPath": {"path": "/tmp/nvidia-smp"}}])
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "mps", "mountPath": "/tmp/nvidia-smp"}]
    c.touch(pod)
    told = explained(c, "team/smp")
    expect("exit status", told.returncode, 0)
    for words, wanted in (("MPS client", True), ("info MountSuperfluous", True), ("runs without MPS", False)):
        expect(words, words in " ".join(told.stdout.split()), wanted)
