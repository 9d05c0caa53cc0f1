"""What is in the cluster of the bench: Nodes as large as those of production, one plugin pod each, and the objects that
make them share their GPUs. Nothing emulates them: kubelet and plugin have done their work."""
import os
import time

from api_server import PROJECT

NAMESPACE = "gpu-operator"
OPERATOR_NAMESPACE = "gpu-sharing-operator"
PEER_NAMESPACE = "peer"
CONFIG_MAP = "plugin-config"
DAEMONSET = "nvidia-device-plugin"
IMAGE = "nvcr.io/nvidia/k8s-device-plugin:v0.17.1"
KEYS = ("a", "b")  # Two keys with one text: moving a node between them needs its label, and no restart.
PROFILE = "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 4\n"
POLICY = "/apis/gpusharing.dev/v1alpha1/sharingpolicies/default"
CONDITIONS = (("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False"), ("Ready", "True"))
GFD_LABELS = {"nvidia.com/gpu.count": "8", "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing",
              "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-SHARED", "nvidia.com/gpu.memory": "81920",
              "nvidia.com/gpu.compute.major": "8", "nvidia.com/gpu.compute.minor": "0", "nvidia.com/mps.capable": "false"}


def stamp(ago=0):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago))


def node_name(number):
    return "gpu-%05d" % number


def conditions():
    """A Node's conditions as a kubelet reports them now."""
    return [{"type": kind, "status": status, "reason": "Kubelet" + kind, "message": "kubelet has reported %s" % kind,
             "lastHeartbeatTime": stamp(), "lastTransitionTime": "2026-01-01T00:00:00Z"} for kind, status in CONDITIONS]


def node(number):
    """27 KB as the API server returns it: 60 labels of NFD, those of GFD, 80 images."""
    name = node_name(number)
    labels = {"feature.node.kubernetes.io/cpu-cpuid.FEATURE%02d" % k: "true" for k in range(60)}
    labels.update(GFD_LABELS)
    labels.update({"kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "nvidia.com/gpu.present": "true",
                   "node.kubernetes.io/instance-type": "a2-ultragpu-8g", "topology.kubernetes.io/zone": "zone-a"})
    resources = {"cpu": "96", "memory": "1360Gi", "pods": "110", "ephemeral-storage": "1Ti", "nvidia.com/gpu": "32"}
    images = [{"names": ["registry.example.com/team-%02d/image@sha256:%064x" % (k, k * 7919),
                         "registry.example.com/team-%02d/image:v1.%d.0" % (k, k)], "sizeBytes": 10 ** 8 + k}
              for k in range(80)]
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": labels,
                         "annotations": {"nfd.node.kubernetes.io/feature-labels": ",".join(sorted(labels)),
                                         "csi.volume.kubernetes.io/nodeid": '{"disk.csi.example.com":"%s"}' % name}},
            "spec": {"providerID": "example:///zone-a/" + name},
            "status": {"capacity": resources, "allocatable": resources, "conditions": conditions(), "images": images,
                       "addresses": [{"type": "Hostname", "address": name}],
                       "nodeInfo": {"machineID": "%032x" % number, "systemUUID": "%032x" % number, "bootID": "b",
                                    "kernelVersion": "6.8.0", "osImage": "Debian GNU/Linux 12", "architecture": "amd64",
                                    "operatingSystem": "linux", "containerRuntimeVersion": "containerd://2.1.0",
                                    "kubeletVersion": "v1.36.3", "kubeProxyVersion": ""}}}


def sidecar(name):
    environment = {"NODE_LABEL": "nvidia.com/device-plugin.config", "CONFIG_FILE_SRCDIR": "/available-configs",
                   "CONFIG_FILE_DST": "/config/config.yaml", "DEFAULT_CONFIG": KEYS[0], "FALLBACK_STRATEGIES": "empty",
                   "PROCESS_TO_SIGNAL": "nvidia-device-plugin"}
    return {"name": name, "image": IMAGE, "env": [{"name": key, "value": value} for key, value in environment.items()],
            "volumeMounts": [{"name": "available-configs", "mountPath": "/available-configs"},
                             {"name": "config", "mountPath": "/config"}]}


def pod_spec():
    return {"initContainers": [sidecar("config-manager-init")],
            "containers": [{"name": "nvidia-device-plugin", "image": IMAGE,
                            "env": [{"name": "CONFIG_FILE", "value": "/config/config.yaml"}],
                            "volumeMounts": [{"name": "config", "mountPath": "/config"}]}, sidecar("config-manager")],
            "volumes": [{"name": "available-configs", "configMap": {"name": CONFIG_MAP}},
                        {"name": "config", "emptyDir": {}}]}


def daemonset():
    labels = {"app": DAEMONSET}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": DAEMONSET, "labels": labels},
            "spec": {"selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels},
                                  "spec": {"nodeSelector": {"nvidia.com/gpu.present": "true"}, **pod_spec()}}}}


def owner(uid):
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": DAEMONSET, "uid": uid, "controller": True,
            "blockOwnerDeletion": True}


def controller_revision(uid):
    return {"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1,
            "metadata": {"name": DAEMONSET + "-h1", "labels": {"app": DAEMONSET, "controller-revision-hash": "h1"},
                         "ownerReferences": [owner(uid)]},
            "data": {"spec": {"template": daemonset()["spec"]["template"]}}}


def pod(number, uid):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "%s-%05d" % (DAEMONSET, number), "ownerReferences": [owner(uid)],
                         "labels": {"app": DAEMONSET, "controller-revision-hash": "h1", "pod-template-generation": "1"}},
            "spec": {"nodeName": node_name(number), **pod_spec()}}


def pod_status():
    born = stamp()
    running = [{"name": name, "ready": True, "started": True, "restartCount": 0, "image": IMAGE, "imageID": IMAGE,
                "containerID": "containerd://" + name, "state": {"running": {"startedAt": born}}}
               for name in ("nvidia-device-plugin", "config-manager")]
    return {"status": {"phase": "Running", "startTime": born, "containerStatuses": running,
                       "conditions": [{"type": kind, "status": "True", "lastTransitionTime": born}
                                      for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")]}}


class Fleet:
    """The objects in the cluster; `grow` adds Nodes with their pods."""

    def __init__(self, api):
        self.api = api
        self.size = 0
        self.uid = None       # Of the DaemonSet.
        self.node_bytes = 0   # Of one Node, as the API server returns it.

    def install(self):
        """Everything but Nodes and pods."""
        for name in (NAMESPACE, OPERATOR_NAMESPACE, PEER_NAMESPACE):
            self.api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self.api.kubectl("apply", "-f", os.path.join(PROJECT, "crds"))
        self.api.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd/sharingpolicies.gpusharing.dev")
        self.api.create("/api/v1/namespaces/%s/configmaps" % NAMESPACE,
                        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG_MAP},
                         "data": {key: PROFILE for key in KEYS}})
        self.api.create("/api/v1/namespaces/%s/configmaps" % PEER_NAMESPACE,
                        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "labels"}, "data": {}})
        made = self.api.create("/apis/apps/v1/namespaces/%s/daemonsets" % NAMESPACE, daemonset())
        self.uid = made["metadata"]["uid"]
        self.api.create("/apis/apps/v1/namespaces/%s/controllerrevisions" % NAMESPACE, controller_revision(self.uid))
        self.create_policy()

    def create_policy(self):
        """The policy whose profile key the bench moves."""
        policy = {"apiVersion": "gpusharing.dev/v1alpha1", "kind": "SharingPolicy", "metadata": {"name": "default"},
                  "spec": {"profile": {"configMapKey": KEYS[0]},
                           "rollout": {"maxUnavailable": "100%", "maxUnavailablePerGroup": "100%",
                                       "canary": {"nodesPerGroup": 0}, "workloads": "Interrupt"}}}
        self.api.create(os.path.dirname(POLICY), policy)

    def grow(self, size):
        numbers = range(self.size, size)
        self.api.each(lambda number: self.api.create("/api/v1/nodes", node(number)), numbers)
        self.api.each(self.start_pod, numbers)
        self.size = size
        self.node_bytes = len(self.api.request("GET", "/api/v1/nodes/" + node_name(size - 1)))

    def start_pod(self, number):
        pods = "/api/v1/namespaces/%s/pods" % NAMESPACE
        name = self.api.create(pods, pod(number, self.uid))["metadata"]["name"]
        self.api.merge_patch("%s/%s/status" % (pods, name), pod_status())

    def names(self):
        return [node_name(number) for number in range(self.size)]

    def set_policy_key(self, key):
        self.api.merge_patch(POLICY, {"spec": {"profile": {"configMapKey": key}}})

    def policy_counts(self):
        """Nodes by phase, as the operator reports them."""
        return self.api.get(POLICY).get("status", {}).get("nodes", {})

    def set_peer_labels(self, data):
        self.api.merge_patch("/api/v1/namespaces/%s/configmaps/labels" % PEER_NAMESPACE, {"data": data})
