#!/usr/bin/env python3
"""What `lint`, `plan` and `audit` cost on large and dirty input: CPU and peak memory of one run of the binary each. Fails
above the bar, or where the input is not as dirty as it must be.

    input_bench.py OPERATOR [FILTER] [--memory-only]     --memory-only: CPU has no bar
"""
import os
import sys
import tempfile

NODES = 5000


def profile(replicas, more=""):
    return f"version: v1\nsharing:\n  mps:\n{more}    resources:\n    - name: nvidia.com/gpu\n      replicas: {replicas}\n"


def indented(text, blanks):
    return "".join(" " * blanks + line + "\n" for line in text.splitlines())


def config_map(keys):
    out = ["apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mps-config, namespace: gpu-operator}\ndata:\n"]
    out += [f"  {key}: |\n{indented(text, 4)}" for key, text in keys]
    return "".join(out)


def node(i):
    labels = "".join(f"      feature.node.kubernetes.io/cpu-cpuid.FEATURE{k}: \"true\"\n" for k in range(60))
    images = "".join(f"    - names:\n      - registry.example.com/team/image-{k}@sha256:{k:064x}\n"
                     f"      - registry.example.com/team/image-{k}:v1.{k}\n      sizeBytes: {10 ** 8 + k}\n" for k in range(41))
    conditions = "".join(f"    - lastHeartbeatTime: \"2026-01-01T00:00:00Z\"\n      message: kubelet has sufficient {c}\n"
                         f"      reason: Kubelet{c}\n      status: \"False\"\n      type: {c}\n"
                         for c in ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"))
    return (f"- apiVersion: v1\n  kind: Node\n  metadata:\n    name: gpu-{i:05}\n    uid: node-{i}\n    resourceVersion: \"{i}\"\n"
            f"    labels:\n{labels}      nvidia.com/gpu.present: \"true\"\n      nvidia.com/gpu.count: \"8\"\n"
            f"      nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB-SHARED\n      nvidia.com/gpu.replicas: \"4\"\n"
            f"      nvidia.com/gpu.sharing-strategy: mps\n      nvidia.com/gpu.compute.major: \"8\"\n"
            f"      nvidia.com/gpu.compute.minor: \"0\"\n      kubernetes.io/hostname: gpu-{i:05}\n"
            f"  spec:\n    providerID: cloud:///zone-a/gpu-{i:05}\n  status:\n    allocatable:\n      nvidia.com/gpu: \"32\"\n"
            f"    capacity:\n      nvidia.com/gpu: \"32\"\n    conditions:\n{conditions}    - status: \"True\"\n      type: Ready\n"
            f"    images:\n{images}")


def pod(of, i):
    return (f"- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: {of}-{i}\n    namespace: gpu-operator\n    uid: {of}-{i}\n"
            f"    resourceVersion: \"{i}\"\n    creationTimestamp: \"2026-01-01T00:10:00Z\"\n    labels:\n      app: {of}\n"
            f"    ownerReferences:\n    - apiVersion: apps/v1\n      kind: DaemonSet\n      name: {of}\n      uid: uid-{of}\n"
            f"      controller: true\n  spec:\n    nodeName: gpu-{i:05}\n    containers:\n    - name: main\n      image: p:v0.17.1\n"
            f"      env:\n" + "".join(f"      - name: VARIABLE_{k}\n        value: value-{k}\n" for k in range(20)) +
            f"  status:\n    phase: Running\n    conditions:\n    - type: Ready\n      status: \"True\"\n")


def daemonset(name, container, selector):
    return (f"- apiVersion: apps/v1\n  kind: DaemonSet\n  metadata:\n    name: {name}\n    namespace: gpu-operator\n"
            f"    uid: uid-{name}\n  spec:\n    selector:\n      matchLabels:\n        app: {name}\n    template:\n      metadata:\n"
            f"        labels:\n          app: {name}\n      spec:\n        nodeSelector:\n          {selector}: \"true\"\n"
            f"        containers:\n        - name: {container}\n          image: nvcr.io/nvidia/k8s-device-plugin:v0.17.1\n"
            f"        - name: config-manager\n          image: nvcr.io/nvidia/k8s-device-plugin:v0.17.1\n          env:\n"
            f"          - name: CONFIG_FILE_SRCDIR\n            value: /c\n          - name: DEFAULT_CONFIG\n            value: any\n"
            f"          volumeMounts:\n          - name: v\n            mountPath: /c\n        volumes:\n        - name: v\n"
            f"          configMap:\n            name: mps-config\n")


def cluster():
    """As `kubectl get nodes,daemonsets,configmaps,pods -A -o yaml` prints it."""
    yield "apiVersion: v1\nitems:\n"
    text = indented(profile(4), 6)
    yield f"- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: mps-config\n    namespace: gpu-operator\n  data:\n    any: |\n{text}"
    yield daemonset("plugin", "nvidia-device-plugin", "nvidia.com/gpu.present")
    yield daemonset("gfd", "gpu-feature-discovery", "nvidia.com/gpu.present")
    for i in range(NODES):
        yield node(i)
        yield pod("plugin", i)
        yield pod("gfd", i)
    yield "kind: List\nmetadata:\n  resourceVersion: \"\"\n"


def dirty_profiles():
    more = "    renameByDefaults: true\n    RenameByDefault: 1\n    fail: true\n    extra: 1\n"
    return [(f"key-{i:04}", profile(2 + i % 40, more)) for i in range(1000)]


INPUTS = {
    # name: (what the text is, commands with the exit status that shows the dirt, seconds of CPU, MB)
    "cluster": (cluster, [("lint", 1), ("plan", 1), ("audit", "-f", 1)], 8, 400),
    "keys": (lambda: [config_map([(f"k{i}", "a: 1") for i in range(80000)])], [("lint", 0), ("plan", 0), ("audit", "-f", 0)], 1, 400),
    "warnings": (lambda: [config_map(dirty_profiles())], [("lint", 0), ("lint", "-o", "json", 0)], 0.5, 400),
    "broken": (lambda: ["a: [\n---\n" * 20000], [("lint", 1)], 1, 400),
}


def measure(arguments):
    """CPU seconds, peak resident MB, and the exit status."""
    child = os.fork()
    if child == 0:
        sink = os.open("/dev/null", os.O_WRONLY)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        os.execv(arguments[0], arguments)
    _, status, usage = os.wait4(child, 0)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status)


def main():
    operator, *rest = [argument for argument in sys.argv[1:] if argument != "--memory-only"]
    wanted, judges_cpu, failed = "".join(rest[:1]), "--memory-only" not in sys.argv, 0
    for name, (make, commands, most_cpu, most_memory) in INPUTS.items():
        if wanted not in name:
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.writelines(make())
            file.flush()
            size = os.path.getsize(file.name) / 1e6
            for *command, expected in commands:
                cpu, memory, status = measure([operator, *command, file.name])
                wrong = status != expected or (judges_cpu and cpu > most_cpu) or memory > most_memory
                failed += wrong
                print(f"{'FAILED' if wrong else 'ok':6} {' '.join(command):12} of {name:9} ({size:5.1f} MB): {cpu:5.2f} s of CPU "
                      f"(at most {most_cpu}), {memory:4.0f} MB (at most {most_memory}), exit status {status}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
