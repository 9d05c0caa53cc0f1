#!/usr/bin/env python3
"""What `lint` says of manifests, and what a real API server says of the same: an error for what it refuses, and none for
what it admits. Misspelt fields are not compared: only kubectl's own validation refuses them, and lint warns.

  linted_objects_test.py CLUSTER_DIR BUILD_DIR     a running control plane, a built tree

Prints one line for each manifest that is judged differently and closes with "N passed, N failed".
"""
import json
import os
import subprocess
import sys

LONG = "a" * 64
CONTAINER = {"name": "c", "image": "registry.example/app:1"}


def pod(metadata=None, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata or {"name": "p"},
            "spec": {"containers": [CONTAINER], **spec}}


def container(**fields):
    return pod(containers=[{**CONTAINER, **fields}])


def config_map(metadata=None, **fields):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata or {"name": "c"},
            "data": {"any": "version: v1\n"}, **fields}


def workload(kind, version="apps/v1", labels=None, name="w", selector=None, pods=None, **spec):
    """With a selector that fits, but for Jobs, where the API server makes one."""
    template = {"metadata": {"labels": {"app": "w"} if labels is None else labels},
                "spec": {"containers": [CONTAINER], **(pods or {})}}
    chosen = {"matchLabels": {"app": "w"}} if selector is None else selector
    selects = {} if kind in ("Job", "ReplicationController") else {"selector": chosen}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": {**selects, "template": template, **spec}}


def cron_job(name="w", **pods):
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": {
        "schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": {"containers": [CONTAINER], **pods}}}}}}


def without(manifest, *path):
    out = json.loads(json.dumps(manifest))
    at = out
    for step in path[:-1]:
        at = at[step]
    del at[path[-1]]
    return out


METADATA = [
    {"name": "p"}, {"name": "p.q-2"}, {"name": "1"}, {"generateName": "p-"}, {"name": "a" * 253},
    {"name": "p", "labels": {"a": "", "example.com/b": "x_Y.z-1"}}, {"name": "p", "annotations": {"Example.com/B": "any text"}},
    {"name": "p", "labels": None, "annotations": None}, {"name": "p", "labels": {"a": None}, "annotations": {"a": None}},
    {}, {"name": ""}, {"name": "P"}, {"name": "a_b"}, {"name": "-a"}, {"name": "a..b"}, {"name": "a" * 254}, {"name": 7},
    {"generateName": "P_"}, {"generateName": "p."}, {"name": "p", "labels": ["a"]}, {"name": "p", "labels": {"a": "x y"}},
    {"name": "p", "labels": {"a": LONG}}, {"name": "p", "labels": {"a b": "x"}}, {"name": "p", "labels": {"a/b/c": "x"}},
    {"name": "p", "labels": {"Example.com/a": "x"}}, {"name": "p", "labels": {"a": 1}}, {"name": "p", "annotations": {"a b": "x"}},
    {"name": "p", "annotations": {"a": True}}, {"name": "p", "annotations": {"a": "x" * 262144}},
]

CONTAINERS = [
    container(command=["a", "1"], args=[], env=[{"name": "A", "value": "1"}, {"name": "B"}]),
    container(imagePullPolicy="", ports=[{"containerPort": 80}]),
    container(resources={"limits": {"cpu": "500m", "memory": "4Gi", "ephemeral-storage": "1G"}}),
    container(resources={"limits": {"cpu": 2}, "requests": {"cpu": "2000m"}}),
    container(resources={"limits": {"nvidia.com/gpu": 1}}), container(resources={"limits": {"nvidia.com/gpu": "1000m"}}),
    container(securityContext={"runAsUser": 1000}),
    pod(initContainers=[{"name": "d", "image": "i", "restartPolicy": "Always"}]),
    pod(volumes=[{"name": "v"}], containers=[{**CONTAINER, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]),
    pod(restartPolicy="", dnsPolicy="Default", hostIPC=True, nodeSelector={"a": "", "b": "c"}),
    pod(tolerations=[{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoSchedule"}]),
    pod(containers=[]), pod(containers=None), pod(containers=[None]), pod(containers={"name": "c"}), pod(containers=["c"]),
    without(pod(), "spec", "containers"), without(pod(), "spec"),
    container(name=""), container(name="C"), container(name="a.b"), container(name=LONG), container(name=1),
    pod(containers=[CONTAINER, CONTAINER]), pod(initContainers=[CONTAINER]), container(image=""),
    container(imagePullPolicy="always"), container(command="sleep"), container(args=["--replicas", 4]),
    container(env=[{"name": "A", "value": 1}]), container(env=[{"value": "a"}]), container(env={"A": "a"}),
    container(ports=[{"containerPort": 70000}]), container(ports=[{"hostPort": 80}]),
    container(volumeMounts=[{"name": "v", "mountPath": "/v"}]), container(securityContext={"runAsUser": "1000"}),
    pod(volumes=[{"name": "v"}, {"name": "v"}]), pod(volumes=[{"hostPath": {"path": "/x"}}]),
    pod(volumes=[{"name": "v"}, {"name": "w"}],
        containers=[{**CONTAINER, "volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/v"}]}]),
    pod(hostIPC="true"), pod(nodeSelector={"a b": "c"}), pod(nodeSelector={"a": "b c"}), pod(nodeSelector={"a": True}),
    pod(tolerations=[{"key": "a", "value": True}]), pod(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
    pod(tolerations=[{"value": "b"}]), pod(tolerations=[{"key": "a", "value": "b c"}]),
    pod(tolerations=[{"key": "a", "effect": "NoScheduled"}]),
    pod(tolerations=[{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 5}]),
    pod(restartPolicy="never"), pod(dnsPolicy="Host"), pod(runtimeClassName="Nvidia_1"), pod(serviceAccountName="A b"),
    container(resources={"limits": {"memory": "4GB"}}), container(resources={"limits": {"cpu": "two"}}),
    container(resources={"limits": {"cpu": -1}}), container(resources={"limits": {"gpu": 1}}),
    container(resources={"limits": {"cpu": 1}, "requests": {"cpu": 2}}), container(resources={"limits": {"nvidia.com/gpu": "500m"}}),
    container(resources={"requests": {"nvidia.com/gpu": 1}}),
]

WORKLOADS = [
    *[workload(kind) for kind in ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet")],
    *[workload(kind, selector={}) for kind in ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet")],
    *[workload(kind, labels={"app": "x"}) for kind in ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet")],
    *[workload(kind, pods={"restartPolicy": "Never"}) for kind in ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet")],
    *[workload(kind, pods={"containers": []}) for kind in ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet")],
    *[without(workload(kind), "spec", "selector") for kind in ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet")],
    *[without(workload(kind), "spec", "template") for kind in ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet")],
    workload("ReplicationController", "v1"), workload("ReplicationController", "v1", pods={"restartPolicy": "Never"}),
    workload("Deployment", labels={"app": "w", "b": "c d"}), workload("Deployment", selector={"matchLabels": {"app": 1}}),
    workload("StatefulSet", name="a.b"), workload("StatefulSet", name=LONG), workload("Deployment", name="a.b"),
    workload("StatefulSet", pods={"containers": [{**CONTAINER, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}),
    workload("StatefulSet", pods={"containers": [{**CONTAINER, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]},
             volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": {
                 "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]),
    *[workload("Job", "batch/v1", pods={"restartPolicy": policy}) for policy in ("Never", "OnFailure", "Always", "", "Nie")],
    *[cron_job(restartPolicy=policy) for policy in ("Never", "OnFailure", "Always", "Nie")], cron_job(),
    cron_job("a" * 52, restartPolicy="Never"), cron_job("a" * 53, restartPolicy="Never"),
    {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "t"}, "template": {"spec": {"containers": []}}},
    {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "t"}, "template": {"spec": {"containers": [CONTAINER]}}},
]

CONFIG_MAPS = [
    config_map(immutable=True), config_map(immutable=None), config_map(immutable="true"), config_map(immutable=1),
    config_map(data={"a/b": "version: v1\n"}), config_map(data={"..a": "version: v1\n"}), config_map(data=["a"]),
    config_map(binaryData={"any": "dmVyc2lvbjogdjEK"}), config_map(binaryData={"b": "%"}), config_map(binaryData={"b": "dmVyc2lvbjogdjEK"}),
    config_map(data={key: "version: v1\n#" + "x" * 600_000 for key in ("a", "b")}),
    config_map(kind="Configmap"), config_map(kind="configmaps"), config_map(apiVersion="apps/v1"), config_map(apiVersion=""),
    without(config_map(), "apiVersion"), without(config_map(), "kind"), without(config_map(), "metadata"),
]

# As people write them, each with one slip.
OF_USERS = [
    # A share of a GPU as an amount.
    container(resources={"limits": {"nvidia.com/gpu": 0.5}}),
    # The label that chooses MPS nodes, as a boolean.
    pod(nodeSelector={"nvidia.com/mps.capable": True}),
    # MPS wants the IPC namespace of the host: quoted like a label.
    pod(hostIPC="yes"),
    # A Job copied from a Deployment.
    workload("Job", "batch/v1", pods={"restartPolicy": "Always"}),
    # A Deployment copied from a Pod that ends.
    workload("Deployment", pods={"restartPolicy": "OnFailure"}),
    # The volume was renamed, the mount was not.
    workload("Deployment", pods={"volumes": [{"name": "mps", "hostPath": {"path": "/run/nvidia/mps"}}],
                                 "containers": [{**CONTAINER, "volumeMounts": [{"name": "nvidia-mps", "mountPath": "/tmp/nvidia-mps"}]}]}),
    # The active thread percentage as a number.
    container(env=[{"name": "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "value": 50}]),
    # Labels of the template and of the selector were changed in one place only.
    workload("DaemonSet", labels={"app": "mps-client"}, selector={"matchLabels": {"app": "client"}}),
    # The name of a model, with its version.
    pod({"name": "Llama_3.1-8B"}),
    # A label with a path.
    pod({"name": "p", "labels": {"model": "meta-llama/Llama-3.1-8B"}}),
    # Memory as people say it.
    container(resources={"limits": {"memory": "16GB", "nvidia.com/gpu": 1}}),
    # A sidecar copied with its name.
    pod(containers=[CONTAINER, {"name": "c", "image": "registry.example/sidecar:1"}]),
    # The toleration of GPU nodes, with a boolean.
    pod(tolerations=[{"key": "nvidia.com/gpu", "operator": "Equal", "value": True, "effect": "NoSchedule"}]),
    # More requested than allowed.
    container(resources={"limits": {"nvidia.com/gpu": 1}, "requests": {"nvidia.com/gpu": 2}}),
    # A profile as a mapping and not as text.
    config_map(data={"any": {"version": "v1"}}),
]

TABLE = [pod(m) for m in METADATA] + [config_map(m) for m in METADATA] + CONTAINERS + WORKLOADS + CONFIG_MAPS + OF_USERS


def main():
    cluster, build = sys.argv[1:3]
    kubectl = [os.path.join(cluster, "bin", "kubectl"), "--kubeconfig", os.path.join(cluster, "admin.kubeconfig")]
    program = os.path.join(build, "controller", "gpu-sharing-operator")
    passed = failed = 0
    for manifest in TABLE:
        text = json.dumps(manifest)
        linted = subprocess.run([program, "lint", "-"], input=text, capture_output=True, text=True, timeout=60, check=False)
        answer = subprocess.run(kubectl + ["create", "--dry-run=server", "--validate=ignore", "-f", "-"], input=text,
                                capture_output=True, text=True, timeout=60, check=False)
        if (linted.returncode != 0) == (answer.returncode != 0):
            passed += 1
            continue
        failed += 1
        shown = text if len(text) < 600 else text[:600] + "..."
        print("FAILED   %s\n    lint (%d): %s\n    API server (%d): %s" % (
            shown, linted.returncode, linted.stdout[:600].strip(), answer.returncode, (answer.stderr or answer.stdout)[:600].strip()))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
