"""`lint` and pods that are meant to be clients of an MPS daemon that is not the device plugin's, as KAI's guide has them."""
import json

from cluster.program import ask
from scenario import expect, expect_that, scenario

KAI = {"apiVersion": "kai.scheduler/v1", "kind": "Config", "metadata": {"name": "kai-config"}}


def client(host, inside=None, kind=None, name="mps", env=(), annotations=None, **spec):
    """The pod of KAI's guide, docs/gpu-sharing/mps: a fraction, and the daemon's directory of the host."""
    volume = {"path": host} if kind is None else {"path": host, "type": kind}
    container = {"name": "gpu-workload", "image": "registry.example/cuda:1",
                 "env": [{"name": key, "value": value} for key, value in env],
                 "volumeMounts": [{"name": name, "mountPath": inside or host}]}
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "gpu-sharing-with-mps", "labels": {"kai.scheduler/queue": "default-queue"},
                         "annotations": dict({"gpu-fraction": "0.5"} if annotations is None else annotations)},
            "spec": dict({"schedulerName": "kai-scheduler", "containers": [container],
                          "volumes": [{"name": name, "hostPath": volume}]}, **spec)}


def found(*objects):
    """What lint says of the objects: {code: "severity message"}."""
    done = ask(["lint", "-o", "json", "-"], {"apiVersion": "v1", "kind": "List", "items": list(objects)})
    return {each["code"]: "%s %s" % (each["severity"], each["message"])
            for document in json.loads(done.stdout)["documents"] for each in document["diagnostics"]}


SELECTOR = {"nvidia.mps/enabled": "true"}
VARIABLE = "CUDA_MPS_PIPE_DIRECTORY"


@scenario
def kai_s_own_manifest_lacks_three_things():
    """The manifest of KAI's guide lacks hostIPC and a selector, and the kubelet would make an empty folder. lint says
    nothing about one that has them."""
    said = found(client("/tmp/nvidia-mps", kind="DirectoryOrCreate"))
    expect("codes", sorted(said), ["NoDaemonSelector", "NoHostIPC", "PipeDirectoryCreated", "PipeDirectoryNotMounted"])
    expect("severities", sorted(text.split()[0] for text in said.values()), ["info", "info", "info", "warning"])
    expect_that(said["PipeDirectoryCreated"].startswith("warning"), "the empty folder to be the warning", said)
    expect_that("/run/nvidia-mps" in said["PipeDirectoryNotMounted"], "the other default directory to be named", said)
    whole = dict(kind="Directory", env=[(VARIABLE, "/tmp/nvidia-mps")], hostIPC=True)
    expect("a whole client", found(client("/tmp/nvidia-mps", nodeSelector=SELECTOR, **whole)), {})
    term = {"matchExpressions": [{"key": "gpusharing.dev/mps-pipe-directory", "operator": "Exists"}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    expect("one with an affinity", found(client("/tmp/nvidia-mps", affinity=affinity, **whole)), {})
    expect("one that podMutation completes", found(client("/tmp/nvidia-mps", env=[(VARIABLE, "/tmp/nvidia-mps")], annotations={
        "gpu-fraction": "0.5", "gpusharing.dev/mps-client": "true"})), {})
    expect("no client of MPS", found(client("/var/log/nvidia-mps", kind="DirectoryOrCreate", name="logs")), {})


@scenario
def a_directory_that_the_pod_contradicts_is_a_warning():
    """The daemon's directory of KAI's guide is another one, and the variable is missing or names yet another: a warning
    that names both. One that the drivers decide is an info."""
    for text, expected, pod in (
            ("no variable", "warning", client("/other/path", nodeSelector=SELECTOR, hostIPC=True)),
            ("another variable", "warning", client("/other/path", env=[(VARIABLE, "/tmp/nvidia-mps")])),
            ("mounted elsewhere", "warning", client("/tmp/nvidia-mps", "/pipe")),
            ("since r615", "info", client("/run/nvidia-mps")), ("before r615", "info", client("/tmp/nvidia-mps")),
            ("as it is mounted", None, client("/other/path", env=[(VARIABLE, "/other/path")])),
            ("above it", None, client("/other", name="mps-pipe", env=[(VARIABLE, "/other/path")])),
            ("of another kind", None, client("/other/path", name="data")),
            ("only by three letters", None, client("/data/timestamps", name="temps"))):
        said = found(pod).get("PipeDirectoryNotMounted")
        expect(text, said and said.split()[0], expected)
        mounted = pod["spec"]["containers"][0]["volumeMounts"][0]["mountPath"]
        expect_that(said is None or (mounted in said and VARIABLE in said), "both to be named for " + text, said)


@scenario
def a_misspelt_label_of_daemons_is_found_on_nodes_and_in_pods():
    """nvidia.mps/enable is the label of no daemon: on a Node, in a selector and in an affinity."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n01", "labels": {"nvidia.mps/enable": "true"}}}
    term = {"matchExpressions": [{"key": "nvidia.mps/enable", "operator": "In", "values": ["true"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    for obj in (node, client("/tmp/nvidia-mps", nodeSelector={"nvidia.mps/enable": "true"}),
                client("/tmp/nvidia-mps", affinity=affinity)):
        said = found(obj).get("LabelMisspelt", "")
        expect_that(said.startswith("warning") and '"nvidia.mps/enabled"' in said, "the right label to be named", said)
    right = dict(node, metadata={"name": "n01", "labels": {"nvidia.mps/enabled": "true"}})
    expect("the right label", "LabelMisspelt" in found(right), False)


@scenario
def sharing_is_on_in_the_mode_of_annotations_for_containers():
    """KAI's mode NvFractions reads gpu-fraction for older manifests, and has another annotation: lint and the finding
    about kai-config name it, and neither says that sharing is off."""
    config = dict(KAI, spec={"global": {"gpuSharingMode": "NvFractions"}})
    wanted = "nvidia.com/container.<container>.gpu-memory.request"
    said = found(client("/tmp/nvidia-mps"), config).get("FractionOfOlderMode", "")
    done = ask(["plan", "-o", "json", "--only", "kai.config", "-"], config)
    texts = [each["message"] for each in json.loads(done.stdout)["findings"] if each["reason"] == "KAISharingMode"]
    for text in [said] + texts:
        expect_that(wanted in text and "is on" in text and "is off" not in text, "the annotation of that mode", text)
    expect("findings about the mode", len(texts), 1)
    for mode in ("Disabled", "NonMemoryEnforced"):
        said = found(client("/tmp/nvidia-mps"), dict(KAI, spec={"global": {"gpuSharingMode": mode}}))
        expect(mode, "is off" in said.get("KAISharingDisabled", ""), mode == "Disabled")


def using(resource, volume=None, annotations=None, env=(), **spec):
    """A pod outside KAI that asks for the resource, or for none, and mounts the (name, path) of its node."""
    name, path = volume or ("", "")
    pod = client(path, env=env, name=name, annotations=annotations or {}, **spec)
    pod["spec"].pop("schedulerName")
    if resource:
        pod["spec"]["containers"][0]["resources"] = {"limits": {resource: "1"}}
    if volume is None:
        del pod["spec"]["volumes"], pod["spec"]["containers"][0]["volumeMounts"]
    return pod


@scenario
def data_that_has_mps_in_its_name_is_no_directory_of_a_daemon():
    """Without a fraction of KAI only what is meant for a daemon counts, and only in a pod that asks for a GPU."""
    gpu = "nvidia.com/gpu"
    for text, expected, pod in (
            ("no GPU", None, using(None, ("mps", "/srv/mps"))), ("results", None, using(gpu, ("mps-out", "/data/mps"))),
            ("models", None, using(gpu, ("mps-models", "/data/mps/models"))), ("data", None, using(gpu, ("data", "/data/mps"))),
            ("by its volume", "warning", using(gpu, ("mps", "/other/path"))),
            ("by its directory", "warning", using(gpu, ("pipe", "/data/nvidia-mps"))),
            ("by its variable", "warning", using(gpu, ("data", "/other/path"), env=[(VARIABLE, "/tmp/nvidia-mps")])),
            ("a default", "info", using(gpu, ("pipe", "/run/nvidia-mps")))):
        said = found(pod).get("PipeDirectoryNotMounted")
        expect(text, said and said.split()[0], expected)


@scenario
def a_slice_pod_that_pod_mutation_completes_lacks_nothing():
    """hostIPC and the user are added when the pod is created; a pod that exists without them was not completed."""
    asks = dict(annotations={"gpusharing.dev/mps-client": "true"})
    expect("to be completed", found(using("nvidia.com/gpu-10gb", **asks)), {})
    exists = using("nvidia.com/gpu-10gb", **asks)
    exists["metadata"]["uid"] = "u1"
    for text, pod in (("without the annotation", using("nvidia.com/gpu-10gb")), ("created without it", exists)):
        expect(text, sorted(found(pod)), ["SliceOfAnotherUser", "SliceWithoutHostIPC"])


@scenario
def slices_of_two_sizes_in_one_container_are_both_named():
    """One container asks for slices of 10 and of 5 GiB: the warning names both."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
        "hostIPC": True, "securityContext": {"runAsUser": 1000}, "containers": [
            {"name": "c", "image": "registry.example/app:1", "resources": {"limits": {"nvidia.com/gpu-10gb": 1, "nvidia.com/gpu-5gb": 1}}}]}}
    expect_that("(nvidia.com/gpu-10gb and nvidia.com/gpu-5gb)" in found(pod).get("SeveralSlices", ""), "both sizes", found(pod))
