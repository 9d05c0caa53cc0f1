#!/usr/bin/env python3
"""Where `lint` speaks of what the API server refuses, a real one says the same: requests of GPUs, labels and selectors
without quotes, keys of ConfigMaps. Each row below is refused by both or admitted by both.

  linted_objects_test.py CLUSTER_DIR BUILD_DIR     a running control plane, a built tree

Prints one line for each manifest that is judged differently and closes with "N passed, N failed".
"""
import json
import os
import subprocess
import sys

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


PODS = [
    pod(), pod({"name": "p", "labels": None, "annotations": None}), pod({"name": "p", "labels": {"a": None}, "annotations": {"a": None}}),
    pod({"name": "p", "labels": {"a": 1}}), pod({"name": "p", "annotations": {"a": True}}), pod(nodeSelector={"a": "", "b": "c"}),
    container(resources={"limits": {"nvidia.com/gpu": 1}}), container(resources={"limits": {"nvidia.com/gpu": "1000m"}}),
    container(resources={"limits": {"nvidia.com/gpu": 1}, "requests": {"nvidia.com/gpu": "1"}}),
    container(resources={"limits": {"nvidia.com/gpu": "500m"}}), container(resources={"limits": {"nvidia.com/gpu": -1}}),
    container(resources={"requests": {"nvidia.com/gpu": 1}}),
]

WORKLOADS = [
    *[workload(kind) for kind in ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet")],
    workload("Deployment", selector={"matchLabels": {"app": 1}}), workload("Deployment", labels={"app": "w", "b": True}),
    workload("Job", "batch/v1", pods={"restartPolicy": "Never"}),
    workload("Job", "batch/v1", pods={"restartPolicy": "Never", "nodeSelector": {"nvidia.com/mps.capable": True}}),
]

CONFIG_MAPS = [
    config_map(), config_map({"name": "c", "labels": {"a": 1}}), config_map(data=["a"]),
    config_map(data={"a/b": "version: v1\n"}), config_map(data={"..a": "version: v1\n"}),
    config_map(binaryData={"b": "dmVyc2lvbjogdjEK"}), config_map(binaryData={"b": "%"}),
    config_map(binaryData={"any": "dmVyc2lvbjogdjEK"}),
    config_map(data={key: "version: v1\n#" + "x" * 600_000 for key in ("a", "b")}),
    {key: value for key, value in config_map().items() if key != "kind"},
]

# As people write them, each with one slip.
OF_USERS = [
    # A share of a GPU as an amount.
    container(resources={"limits": {"nvidia.com/gpu": 0.5}}),
    # The label that chooses MPS nodes, as a boolean.
    pod(nodeSelector={"nvidia.com/mps.capable": True}),
    # More requested than allowed.
    container(resources={"limits": {"nvidia.com/gpu": 1}, "requests": {"nvidia.com/gpu": 2}}),
    # A profile as a mapping and not as text.
    config_map(data={"any": {"version": "v1"}}),
]

TABLE = PODS + WORKLOADS + CONFIG_MAPS + OF_USERS


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
