"""Scenarios for the operator's offline dry run: a cluster in manifests, and a fleet that answers what is planned.

A `Cluster` holds manifests. `Cluster.tick` runs `plan -o json` over them and applies every action as an API server and
a GPU fleet would: pods that were deleted come up again with the text that the ConfigMap holds by then, and the node
shows what that text produces. Every tick is a new process, so every tick is a restart of the operator as well.

Only names that users see are used here. What the operator remembers, it writes by itself in the first ticks.
"""
import copy
import datetime
import glob
import json
import os
import re
import subprocess
import sys
import time

STATE_LABEL = "gpusharing.dev/state"
REVISION = "gpusharing.dev/revision"
CONFIG_LABEL = "nvidia.com/device-plugin.config"
GPU = "nvidia.com/gpu"
OWN_PREFIX = "gpusharing.dev/"
FIELD_MANAGER = "gpu-sharing-operator"
OPERATOR_NAMESPACE = "gpu-sharing-operator"
PROJECTION_LAG = 60  # Seconds until a running pod sees an edit of its ConfigMap.


class Failure(Exception):
    """What was expected, and what was seen instead."""


def expect(what, got, want):
    """Fails unless `got` equals `want`."""
    if got != want:
        raise Failure("expected %s: %s, got %s" % (what, show(want), show(got)))


def expect_that(holds, wanted, got=""):
    """Fails unless `holds`; `wanted` and `got` are for people."""
    if not holds:
        raise Failure("expected %s, got %s" % (wanted, show(got)))


def show(value):
    text = value if isinstance(value, str) else json.dumps(value, default=str, sort_keys=True)
    text = text.replace("\n", "\\n")
    return text if len(text) <= 400 else text[:400] + " ..."


def one(names):
    """The only name in a list: which node goes first is the operator's choice."""
    expect_that(len(names) == 1, "exactly one node", names)
    return names[0]


# --- Time.

def seconds(duration):
    """A Go duration such as 1h30m in seconds."""
    if isinstance(duration, (int, float)):
        return duration
    parts = re.findall(r"([0-9.]+)(ms|h|m|s)", duration)
    return sum(float(count) * {"h": 3600, "m": 60, "s": 1, "ms": 0.001}[unit] for count, unit in parts)


def moment(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")


def stamp(when):
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


# --- Profiles, as texts of the device plugin's configuration.

def none():
    return "version: v1\n"


def _shared(section, replicas, rename, fail, resource):
    text = "version: v1\nsharing:\n  %s:\n" % section
    if rename:
        text += "    renameByDefault: true\n"
    if fail is not None:
        text += "    failRequestsGreaterThanOne: %s\n" % str(bool(fail)).lower()
    return text + "    resources:\n    - name: %s\n      replicas: %d\n" % (resource, replicas)


def mps(replicas, rename=False, fail=None, resource=GPU):
    return _shared("mps", replicas, rename, fail, resource)


def ts(replicas, rename=False, fail=None, resource=GPU):
    return _shared("timeSlicing", replicas, rename, fail, resource)


INVALID = "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 1\n"


class Meaning:
    """What a text makes of a node, as far as the fleet needs it."""

    def __init__(self, text):
        replicas = re.search(r"\breplicas\"?: *\"?(-?[0-9]+)", text or "")
        self.replicas = int(replicas.group(1)) if replicas else 1
        self.strategy = "none"
        if re.search(r"\bmps\"?:", text or ""):
            self.strategy = "mps"
        elif re.search(r"\btimeSlicing\"?:", text or ""):
            self.strategy = "time-slicing"
        self.valid = text is not None and not (self.strategy != "none" and self.replicas < 2)
        self.renamed = bool(re.search(r"renameByDefault\"?: *true", text or ""))


# --- DaemonSets.

COMPONENTS = {
    "plugin": ("nvidia-device-plugin-daemonset", "nvidia-device-plugin"),
    "gfd": ("gpu-feature-discovery", "gpu-feature-discovery"),
    "mps": ("nvidia-device-plugin-mps-control-daemon", "mps-control-daemon-ctr"),
}
GFD_LABELS = ["nvidia.com/gpu.count", "nvidia.com/gpu.replicas", "nvidia.com/gpu.sharing-strategy",
              "nvidia.com/gpu.product", "nvidia.com/mps.capable", "nvidia.com/gpu.compute.major",
              "nvidia.com/gpu.compute.minor"]


def numbered(count, prefix="n"):
    return ["%s%02d" % (prefix, number) for number in range(1, count + 1)]


def fleet(count, text, gpus=2, product="NVIDIA-A100-SXM4-40GB", more=None, rollout=None, **options):
    """A cluster of equal nodes n01, n02, ... on one default profile `any`, with the operator installed on it."""
    cluster = Cluster(dict({"any": text}, **(more or {})), **options)
    cluster.add_nodes(*numbered(count), gpus=gpus, product=product)
    if rollout:
        cluster.policy(rollout=rollout)
    cluster.install()
    return cluster


class Machine:
    """The hardware below one Node, and how it behaves when its pods are restarted.

    behaviour: healthy; crash (new plugin pods never get Ready); absent (no new pod comes); starting (new pods come and
    are not Ready yet, GFD's labels are gone meanwhile where GFD writes a file); unchanged (new pods come, and the node
    goes on to show what it showed).
    """

    def __init__(self, gpus, product, gfd):
        self.gpus, self.product, self.gfd = gpus, product, gfd
        self.counted = gpus          # GPUs that GFD counts.
        self.behaviour = "healthy"
        self.frozen = False          # The test has set labels and capacity by hand.


class Cluster:
    """Manifests of one cluster, with the fleet behind them."""

    def __init__(self, profiles, default="any", layout="gpu-operator", version="v0.20.0", on_delete=False, crds=True,
                 gfd=True, start="2026-03-02T08:00:00Z", namespace=None, config_map="mps-config", fallbacks="empty",
                 options=()):
        self.objects = {}
        self.gone = set()       # What was removed since the last look.
        self.pods_by_node = None
        self.machines = {}
        self.loaded = {}        # Pod uid: the text that its main container has loaded.
        self.selected = {}      # Pod uid: the node's profile label when it loaded that.
        self.history = []       # (moment, data) of the plugin's ConfigMap.
        self.bad_templates = set()
        self.refuses_eviction = set()
        self.restarts_wanted, self.restarts = [], []  # Of DaemonSets: (name, what for).
        self.served_crds = crds
        self.gfd = gfd and layout == "gpu-operator"
        self.layout, self.version, self.on_delete = layout, version, on_delete
        self.namespace = namespace or ("gpu-operator" if layout == "gpu-operator" else "nvidia-device-plugin")
        self.config_map, self.default, self.fallbacks = config_map, default, fallbacks
        self.options = list(options)
        self.clock = moment(start)
        self.last_tick = None
        self.changed = self.clock
        self.counter = 0
        self.ticks = []
        self.file_mode = False  # GFD writes a file: its labels are gone while it restarts.
        if layout == "gpu-operator":
            self.put({"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy",
                      "metadata": {"name": "cluster-policy", "generation": 1},
                      "spec": {"devicePlugin": {"enabled": True, "config": {"name": config_map, "default": default}}}})
        self.revisions = []
        self.template("h1")
        for component in self.components():
            self.daemonset(component)
        self.configure(profiles)
        if crds:
            for plural, kind in (("sharingpolicies", "SharingPolicy"), ("sharingrollouts", "SharingRollout")):
                self.put({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                          "metadata": {"name": plural + ".gpusharing.dev"},
                          "spec": {"group": "gpusharing.dev", "scope": "Cluster",
                                   "names": {"plural": plural, "kind": kind},
                                   "versions": [{"name": "v1alpha1", "served": True, "storage": True}]}})
            self.policy("default", priority=-1000)

    # --- Objects.

    @staticmethod
    def key(kind, name, namespace=""):
        return (kind, namespace or "", name)

    def put(self, obj):
        """Creates or replaces an object, and fills in what an API server does."""
        meta = obj["metadata"]
        self.counter += 1
        meta.setdefault("uid", "%s-%d" % (self.namespace, self.counter))
        meta.setdefault("creationTimestamp", stamp(self.clock))
        meta["resourceVersion"] = str(1000 + self.counter)
        self.changed = self.clock
        if obj["kind"] == "Pod":
            self.pods_by_node = None
        self.objects[self.key(obj["kind"], meta["name"], meta.get("namespace"))] = obj
        return obj

    def get(self, kind, name, namespace=""):
        return self.objects.get(self.key(kind, name, namespace))

    def all(self, kind):
        return [obj for (of, _, _), obj in sorted(self.objects.items()) if of == kind]

    def touch(self, obj):
        self.counter += 1
        obj["metadata"]["resourceVersion"] = str(1000 + self.counter)
        self.changed = self.clock

    def remove(self, kind, name, namespace=""):
        self.gone.add(self.key(kind, name, namespace))
        self.changed = self.clock
        if kind == "Pod":
            self.pods_by_node = None
        return self.objects.pop(self.key(kind, name, namespace), None)

    def node(self, name):
        return self.get("Node", name)

    def nodes(self):
        return [node["metadata"]["name"] for node in self.all("Node")]

    def labels(self, name):
        return self.node(name)["metadata"]["labels"]

    def annotations(self, name):
        return self.node(name)["metadata"]["annotations"]

    def state(self, name):
        """The public state of a node: Updating, Blocked, Failed or nothing."""
        return self.labels(name).get(STATE_LABEL, "")

    def cordoned(self, name):
        return bool(self.node(name)["spec"].get("unschedulable"))

    def capacity(self, name, resource=GPU):
        return int(self.node(name)["status"]["capacity"].get(resource, 0))

    def in_progress(self):
        return [name for name in self.nodes() if self.state(name) == "Updating"]

    def out_of_service(self):
        return [name for name in self.nodes()
                if self.cordoned(name) or self.state(name) == "Updating" or not self.is_ready(name) or
                not any(int(count) for count in self.node(name)["status"]["allocatable"].values())]

    # --- The GPU software.

    def components(self):
        return ["plugin", "gfd", "mps"] if self.layout == "gpu-operator" and self.gfd else ["plugin"]

    def template(self, name, created=None):
        """Makes this the newest template of all DaemonSets. One that comes back keeps its first creation time."""
        known = [revision for revision in self.revisions if revision["hash"] == name]
        number = 1 + max([revision["number"] for revision in self.revisions] or [0])
        if known:
            known[0]["number"] = number
        else:
            self.revisions.append({"hash": name, "number": number, "created": created or stamp(self.clock)})
        self.newest = name
        for component in self.components():
            daemonset = self.get("DaemonSet", COMPONENTS[component][0], self.namespace)
            if daemonset:
                daemonset["metadata"]["generation"] += 1
                daemonset["spec"]["template"]["spec"]["containers"][0]["image"] = self.image(name)
                self.touch(daemonset)
                self.put_revisions(component)

    def image(self, template):
        return "registry.example/k8s-device-plugin:" + self.version + ("" if template == "h1" else "-" + template)

    def sidecar(self, name, process):
        env = {"NODE_LABEL": CONFIG_LABEL, "CONFIG_FILE_SRCDIR": "/available-configs",
               "CONFIG_FILE_DST": "/config/config.yaml", "DEFAULT_CONFIG": self.default,
               "FALLBACK_STRATEGIES": self.fallbacks, "PROCESS_TO_SIGNAL": process}
        return {"name": name, "image": self.image("h1"),
                "env": [{"name": key, "value": value} for key, value in env.items()],
                "volumeMounts": [{"name": self.config_map, "mountPath": "/available-configs"},
                                 {"name": "config", "mountPath": "/config"}]}

    def daemonset(self, component, uid=None):
        name, container = COMPONENTS[component]
        selector = {"nvidia.com/gpu.deploy.device-plugin": "true"}
        if component == "gfd":
            selector = {"nvidia.com/gpu.deploy.gpu-feature-discovery": "true"}
        if component == "mps":
            selector["nvidia.com/mps.capable"] = "true"
        if self.layout != "gpu-operator":
            selector = {"nvidia.com/gpu.present": "true"}
        meta = {"name": name, "namespace": self.namespace, "generation": 1, "labels": {"app": name}}
        if uid:
            meta["uid"] = uid
        if self.layout == "gpu-operator":
            meta["ownerReferences"] = [{"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy",
                                        "name": "cluster-policy", "controller": True,
                                        "uid": self.get("ClusterPolicy", "cluster-policy")["metadata"]["uid"]}]
        made = self.put({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta,
            "spec": {"selector": {"matchLabels": {"app": name}},
                     "updateStrategy": {"type": "OnDelete" if self.on_delete else "RollingUpdate"},
                     "template": {"metadata": {"labels": {"app": name}}, "spec": {
                         "nodeSelector": selector,
                         "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
                         "initContainers": [self.sidecar("config-manager-init", container)],
                         "containers": [{"name": container, "image": self.image("h1"),
                                         "env": [{"name": "MPS_ROOT", "value": "/run/nvidia/mps"},
                                                 {"name": "CONFIG_FILE", "value": "/config/config.yaml"}]},
                                        self.sidecar("config-manager", container)],
                         "volumes": [{"name": self.config_map, "configMap": {"name": self.config_map}},
                                     {"name": "config", "emptyDir": {}}]}}},
            "status": {}})
        self.put_revisions(component)
        return made

    def put_revisions(self, component):
        name = COMPONENTS[component][0]
        owner = self.get("DaemonSet", name, self.namespace)["metadata"]["uid"]
        for revision in self.revisions:
            self.put({"apiVersion": "apps/v1", "kind": "ControllerRevision",
                      "metadata": {"name": name + "-" + revision["hash"], "namespace": self.namespace,
                                   "uid": owner + "-" + revision["hash"],
                                   "creationTimestamp": revision["created"],
                                   "labels": {"app": name, "controller-revision-hash": revision["hash"]},
                                   "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name,
                                                        "uid": owner, "controller": True}]},
                      "revision": revision["number"]})

    def recreate_daemonsets(self):
        """As `helm uninstall` and `helm install` do: new uids, new pods."""
        for component in self.components():
            self.remove("DaemonSet", COMPONENTS[component][0], self.namespace)
        for pod in self.operand_pods():
            self.drop(pod)
        for component in self.components():
            self.daemonset(component)
        self.react()

    # --- The ConfigMap.

    def data(self):
        found = self.get("ConfigMap", self.config_map, self.namespace)
        return found["data"] if found else {}

    def configure(self, data, manager="kubectl-edit"):
        """Writes the whole ConfigMap of profiles."""
        found = self.get("ConfigMap", self.config_map, self.namespace)
        if found is None:
            found = self.put({"apiVersion": "v1", "kind": "ConfigMap",
                              "metadata": {"name": self.config_map, "namespace": self.namespace, "managedFields": []},
                              "data": {}})
        found["data"] = dict(data)
        self.touch(found)
        fields = {"f:data": {"f:" + key: {} for key in data}}
        managed = found["metadata"]["managedFields"]
        managed[:] = [entry for entry in managed if entry["manager"] != manager]
        managed.append({"manager": manager, "operation": "Update", "apiVersion": "v1", "time": stamp(self.clock),
                        "fieldsType": "FieldsV1", "fieldsV1": fields})
        self.history.append((self.clock, dict(data)))

    def edit(self, **profiles):
        """Edits keys in place; None deletes one."""
        data = dict(self.data())
        for key, text in profiles.items():
            name = key.replace("_", "-")
            if text is None:
                data.pop(name, None)
            else:
                data[name] = text
        self.configure(data)

    def delete_config_map(self):
        self.remove("ConfigMap", self.config_map, self.namespace)
        self.history.append((self.clock, {}))

    def projected(self):
        """What a running pod sees of the ConfigMap now."""
        old = [data for when, data in self.history if (self.clock - when).total_seconds() >= PROJECTION_LAG]
        return old[-1] if old else self.history[0][1]

    def resolve(self, name, data):
        """The key that a node gets."""
        label = self.labels(name).get(CONFIG_LABEL, "")
        if label:
            return label
        if self.default:
            return self.default
        if "named" in self.fallbacks and "default" in data:
            return "default"
        if "single" in self.fallbacks and len(data) == 1:
            return list(data)[0]
        return ""

    def text_for(self, name, data):
        key = self.resolve(name, data)
        return none() if key == "" else data.get(key)

    # --- Nodes and pods.

    def add_node(self, name, gpus=2, product="NVIDIA-A100-SXM4-40GB", labels=None, taints=None, come_up=True):
        """A node with GPUs joins, and its pods start."""
        machine = self.machines[name] = Machine(gpus, product, self.gfd)
        own = {"kubernetes.io/hostname": name, "nvidia.com/gpu.present": "true",
               "nvidia.com/gpu.deploy.device-plugin": "true"}
        if self.gfd:
            own["nvidia.com/gpu.deploy.gpu-feature-discovery"] = "true"
        own.update(labels or {})
        annotations = {}
        if self.gfd:
            annotations["nfd.node.kubernetes.io/feature-labels"] = ",".join(GFD_LABELS)
        node = self.put({"apiVersion": "v1", "kind": "Node",
                         "metadata": {"name": name, "labels": own, "annotations": annotations},
                         "spec": {}, "status": {"capacity": {GPU: "0"}, "allocatable": {GPU: "0"},
                                                "conditions": [{"type": "Ready", "status": "True"}]}})
        if taints:
            node["spec"]["taints"] = taints
        if come_up:
            self.react()
        return machine

    def add_nodes(self, *names, **options):
        """Several equal nodes join at once."""
        for name in names:
            self.add_node(name, come_up=False, **options)
        self.react()

    def delete_node(self, name):
        """The node goes, with all its pods."""
        for pod in self.all("Pod"):
            if pod["spec"].get("nodeName") == name:
                self.drop(pod)
        self.remove("Node", name)
        self.machines.pop(name)

    def is_ready(self, name):
        return self.node(name)["status"]["conditions"][0]["status"] == "True"

    def set_ready(self, name, ready):
        self.node(name)["status"]["conditions"] = [{"type": "Ready", "status": "True" if ready else "Unknown"}]
        self.touch(self.node(name))

    def set_label(self, name, key, value):
        """A person or a controller sets a label, or takes it away (None); the sidecars reload."""
        labels = self.labels(name)
        if value is None:
            labels.pop(key, None)
        else:
            labels[key] = value
        self.touch(self.node(name))
        self.react()

    def annotate(self, kind, name, key, value, namespace=""):
        meta = self.get(kind, name, namespace)["metadata"]
        annotations = meta.setdefault("annotations", {})
        if value is None:
            annotations.pop(key, None)
        else:
            annotations[key] = value
        self.touch(self.get(kind, name, namespace))

    def cordon(self, name, on=True):
        """A person cordons or uncordons a node."""
        spec = self.node(name)["spec"]
        if on:
            spec["unschedulable"] = True
        else:
            spec.pop("unschedulable", None)
        self.touch(self.node(name))

    def serve(self, name, count, resource=GPU, allocatable=None):
        """Sets by hand what the kubelet shows of a node; the fleet leaves it so until its pods are new."""
        status = self.node(name)["status"]
        status["capacity"][resource] = str(count)
        status["allocatable"][resource] = str(count if allocatable is None else allocatable)
        self.machines[name].frozen = True
        self.touch(self.node(name))

    def show_half(self, name):
        """Capacity and labels of a node with two GPUs are by hand those of two replicas, whatever its profile says."""
        self.serve(name, 4)
        self.labels(name)["nvidia.com/gpu.replicas"] = "2"

    def enable_mig(self, name, slices=14):
        """MIG is switched on, and the MIG manager is done; the fleet leaves the node so."""
        machine = self.machines[name]
        self.labels(name).update({
            "nvidia.com/mig.capable": "true", "nvidia.com/mig.strategy": "single",
            "nvidia.com/mig.config": "all-1g.5gb", "nvidia.com/mig.config.state": "success",
            "nvidia.com/gpu.count": str(slices), "nvidia.com/gpu.product": machine.product + "-MIG-1g.5gb-SHARED"})
        replicas = int(self.labels(name).get("nvidia.com/gpu.replicas", "1"))
        self.serve(name, slices * replicas)

    def operand_pods(self, node=None, component=None):
        """Pods of the plugin, GFD and MPS, of all nodes or of one."""
        if self.pods_by_node is None:
            self.pods_by_node = {}
            for pod in self.all("Pod"):
                of = (pod["metadata"].get("labels") or {}).get("app")
                part = [part for part, (name, _) in COMPONENTS.items() if name == of]
                if part:
                    self.pods_by_node.setdefault(pod["spec"]["nodeName"], []).append((part[0], pod))
        nodes = [node] if node else sorted(self.pods_by_node)
        return [pod for name in nodes for part, pod in self.pods_by_node.get(name, []) if component in (None, part)]

    def uids(self, node):
        """The uids of the plugin, GFD and MPS pods of a node."""
        return sorted(pod["metadata"]["uid"] for pod in self.operand_pods(node))

    def plugin(self, node):
        """The uid of the plugin's pod of a node: every edit replaces that one, whatever else it replaces."""
        pod = self.pod_of("plugin", node)
        return pod and pod["metadata"]["uid"]

    def drop(self, pod):
        self.remove("Pod", pod["metadata"]["name"], pod["metadata"]["namespace"])

    def restart(self, *nodes):
        """Somebody deletes the plugin, GFD and MPS pods of these nodes (or of all); new ones come up."""
        for name in nodes or self.nodes():
            self.machines[name].frozen = False
            for pod in self.operand_pods(name):
                self.drop(pod)
        self.react()

    def restart_gfd(self, name):
        """Only GFD's pod of the node is deleted."""
        self.drop(self.pod_of("gfd", name))
        self.react()

    def reboot(self, name, gpus=None):
        """All pods of the node start anew; fewer GPUs may be found then."""
        if gpus is not None:
            self.machines[name].gpus = self.machines[name].counted = gpus
        self.restart(name)

    def behave(self, behaviour, *nodes):
        for name in nodes:
            self.machines[name].behaviour = behaviour
        self.react()

    def consumer(self, name, node, gpus=1, resource=GPU, namespace="team", owner="ReplicaSet", annotations=None,
                 labels=None, **spec):
        """A running pod of a user."""
        containers = [{"name": "main"}]
        if gpus:
            containers[0]["resources"] = {"limits": {resource: str(gpus)}, "requests": {resource: str(gpus)}}
        meta = {"name": name, "namespace": namespace, "annotations": annotations or {}, "labels": labels or {}}
        if owner:
            meta["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": owner, "name": name.rsplit("-", 1)[0],
                                        "uid": "owner-" + name, "controller": True}]
        return self.put({"apiVersion": "v1", "kind": "Pod", "metadata": meta,
                         "spec": dict({"nodeName": node, "containers": containers}, **spec),
                         "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})

    def end(self, *names, namespace="team"):
        for name in names:
            self.remove("Pod", name, namespace)

    # --- Policies and rollouts.

    def policy(self, name="default", priority=0, selector=None, **spec):
        """Applies a SharingPolicy, or changes fields of its spec."""
        found = self.get("SharingPolicy", name)
        if found is None:
            found = {"apiVersion": "gpusharing.dev/v1alpha1", "kind": "SharingPolicy",
                     "metadata": {"name": name, "generation": 0}, "spec": {"nodeSelector": {}, "priority": priority}}
        if selector is not None:
            found["spec"]["nodeSelector"] = {"matchLabels": selector}
        for key, value in spec.items():
            if isinstance(value, dict) and isinstance(found["spec"].get(key), dict):
                found["spec"][key].update(value)
            else:
                found["spec"][key] = value
        found["metadata"]["generation"] += 1
        return self.put(found)

    def delete_policy(self, name):
        """As `kubectl delete` does: with a finalizer it stays, marked."""
        found = self.get("SharingPolicy", name)
        if found["metadata"].get("finalizers"):
            found["metadata"]["deletionTimestamp"] = stamp(self.clock)
            self.touch(found)
        else:
            self.remove("SharingPolicy", name)

    def remove_crds(self):
        """The CRDs go, and every object of theirs."""
        self.served_crds = False
        for kind in ("SharingPolicy", "SharingRollout", "CustomResourceDefinition"):
            for obj in self.all(kind):
                self.remove(kind, obj["metadata"]["name"])

    def rollouts(self, phase=None):
        return [rollout for rollout in self.all("SharingRollout")
                if phase is None or rollout.get("status", {}).get("phase") == phase]

    def switch(self, rollout=None, **switches):
        """Turns paused, approved or aborted of a SharingRollout (by default of all that have not ended)."""
        ended = ("Completed", "Failed", "Superseded", "RolledBack")
        turned = 0
        for found in self.all("SharingRollout"):
            open_ = found.get("status", {}).get("phase") not in ended
            if (rollout is None and open_) or found["metadata"]["name"] == rollout:
                found["spec"].update(switches)
                found["metadata"]["generation"] = found["metadata"].get("generation", 1) + 1
                self.touch(found)
                turned += 1
        expect_that(turned > 0, "a SharingRollout to switch", "none")

    def condition(self, policy, kind):
        """A condition of a SharingPolicy as {status, reason, message}, or {} where there is none."""
        found = self.get("SharingPolicy", policy) or {}
        for condition in found.get("status", {}).get("conditions", []):
            if condition["type"] == kind:
                return condition
        return {}

    def counts(self, policy="default"):
        return self.get("SharingPolicy", policy).get("status", {}).get("nodes", {})

    def blocked(self, policy="default"):
        """{reason: nodes} of a SharingPolicy's status."""
        entries = (self.get("SharingPolicy", policy) or {}).get("status", {}).get("blocked", [])
        return {entry["reason"]: entry.get("nodes", []) for entry in entries}

    # --- What the operator keeps, changed without knowing its form.

    def own_annotations(self, name):
        return sorted(key for key in self.annotations(name) if key.startswith(OWN_PREFIX))

    def forget_own_state(self):
        """Every ConfigMap in the operator's namespace is lost."""
        for found in self.all("ConfigMap"):
            if found["metadata"]["namespace"] == OPERATOR_NAMESPACE:
                self.remove("ConfigMap", found["metadata"]["name"], OPERATOR_NAMESPACE)

    def own_config_maps(self):
        return [found for found in self.all("ConfigMap") if found["metadata"]["namespace"] == OPERATOR_NAMESPACE]

    def copy(self):
        return copy.deepcopy(self)

    def adopt(self, other):
        """Puts the objects of another cluster beside these, as a second installation; only this fleet goes on."""
        for key, obj in other.objects.items():
            if obj["kind"] not in ("ClusterPolicy", "CustomResourceDefinition", "SharingPolicy"):
                self.objects[key] = obj
        self.pods_by_node = None

    # --- The fleet.

    def selects(self, component, name):
        labels = self.labels(name)
        taints = [taint for taint in self.node(name)["spec"].get("taints", [])
                  if taint["effect"] == "NoExecute" and taint["key"] != "nvidia.com/gpu"]
        if taints or self.get("DaemonSet", COMPONENTS[component][0], self.namespace) is None:
            return False
        if component == "mps" and labels.get("nvidia.com/mps.capable") != "true":
            return False
        if self.layout != "gpu-operator":
            return labels.get("nvidia.com/gpu.present") == "true"
        deploy = "device-plugin" if component in ("plugin", "mps") else "gpu-feature-discovery"
        return labels.get("nvidia.com/gpu.deploy." + deploy) == "true"

    def may_start(self, component, name):
        spec = self.node(name)["spec"]
        foreign = [taint for taint in spec.get("taints", []) if taint["key"] != "nvidia.com/gpu"]
        return not foreign and self.machines[name].behaviour != "absent" and self.is_ready(name)

    def start_pod(self, component, name):
        base, container = COMPONENTS[component]
        self.counter += 1
        daemonset = self.get("DaemonSet", base, self.namespace)
        born = stamp(self.clock + datetime.timedelta(seconds=2))
        text = self.text_for(name, self.data())
        machine = self.machines[name]
        broken = not Meaning(text).valid or self.newest in self.bad_templates
        waiting = machine.behaviour == "starting" or (machine.behaviour == "crash" and component == "plugin")
        ready = not broken and not waiting
        main = {"name": container, "ready": ready, "restartCount": 0, "state": {"running": {"startedAt": born}}}
        if broken or (machine.behaviour == "crash" and component == "plugin"):
            main.update(restartCount=6, state={"waiting": {"reason": "CrashLoopBackOff"}})
        pod = self.put({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "%s-%05d" % (base, self.counter), "namespace": self.namespace,
                         "creationTimestamp": born,
                         "labels": {"app": base, "controller-revision-hash": self.newest},
                         "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": base,
                                              "uid": daemonset["metadata"]["uid"], "controller": True}]},
            "spec": {"nodeName": name, "containers": [{"name": container}, {"name": "config-manager"}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
                       "containerStatuses": [main, {"name": "config-manager", "ready": ready, "restartCount": 0,
                                                    "state": {"running": {"startedAt": born}}}]}})
        self.loaded[pod["metadata"]["uid"]] = text
        self.selected[pod["metadata"]["uid"]] = self.labels(name).get(CONFIG_LABEL, "")
        machine.frozen = False
        return pod

    def try_again(self, pod, component, name):
        text = self.text_for(name, self.projected())
        if not Meaning(text).valid or self.machines[name].behaviour != "healthy" or self.newest in self.bad_templates:
            return
        self.loaded[pod["metadata"]["uid"]] = text
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        for status in pod["status"]["containerStatuses"]:
            status.update(ready=True, state={"running": {"startedAt": stamp(self.clock)}})
        self.touch(pod)

    def pod_of(self, component, name):
        found = self.operand_pods(name, component)
        return found[-1] if found else None

    @staticmethod
    def pod_ready(pod):
        return pod is not None and pod["status"]["conditions"][0]["status"] == "True"

    def react(self):
        """What DaemonSet controller, sidecars, plugin, GFD and kubelet do until nothing changes any more. New pods take
        a few seconds, so that whatever happens next is later than they are."""
        pods = set(self.loaded)
        for name in sorted(self.machines):
            for _ in range(4):
                before = json.dumps([self.node(name), self.uids(name)], sort_keys=True)
                self.react_on(name)
                if before == json.dumps([self.node(name), self.uids(name)], sort_keys=True):
                    break
        if set(self.loaded) - pods:
            self.clock += datetime.timedelta(seconds=5)
            self.changed = self.clock

    def react_on(self, name):
        machine, node = self.machines[name], self.node(name)
        for component in self.components():
            pods = self.operand_pods(name, component)
            if not self.selects(component, name):
                for pod in pods:
                    self.drop(pod)
            elif not pods and self.may_start(component, name):
                self.start_pod(component, name)
        for component in ("plugin", "gfd"):  # Sidecars follow the node's label; the MPS daemon does not.
            pod = self.pod_of(component, name)
            label = self.labels(name).get(CONFIG_LABEL, "")
            if pod is not None and self.selected[pod["metadata"]["uid"]] != label:
                self.selected[pod["metadata"]["uid"]] = label
                text = self.text_for(name, self.projected())
                if text is not None:
                    self.loaded[pod["metadata"]["uid"]] = text
                    machine.frozen = False
        for component in ("plugin", "gfd", "mps"):  # A container that exits on its text reads it again.
            pod = self.pod_of(component, name)
            if pod is not None and not Meaning(self.loaded[pod["metadata"]["uid"]]).valid:
                self.try_again(pod, component, name)
        if machine.frozen or machine.behaviour == "unchanged":
            return
        before = json.dumps(node, sort_keys=True)
        self.show_labels(name, machine)
        self.show_capacity(name, machine)
        if before != json.dumps(node, sort_keys=True):
            self.touch(node)

    def show_labels(self, name, machine):
        labels, pod = self.labels(name), self.pod_of("gfd", name)
        if not machine.gfd:
            return
        if not self.pod_ready(pod):
            if self.file_mode or pod is None and not any(key in labels for key in GFD_LABELS):
                for key in GFD_LABELS:
                    labels.pop(key, None)
            return
        meaning = Meaning(self.loaded[pod["metadata"]["uid"]])
        shared = meaning.strategy != "none"
        labels.update({
            "nvidia.com/gpu.count": str(machine.counted), "nvidia.com/gpu.replicas": str(meaning.replicas),
            "nvidia.com/gpu.sharing-strategy": meaning.strategy if shared else "none",
            "nvidia.com/gpu.product": machine.product + ("-SHARED" if shared and not meaning.renamed else ""),
            "nvidia.com/mps.capable": "true" if meaning.strategy == "mps" else "false",
            "nvidia.com/gpu.compute.major": "8", "nvidia.com/gpu.compute.minor": "0"})

    def show_capacity(self, name, machine):
        status, pod = self.node(name)["status"], self.pod_of("plugin", name)
        if not self.is_ready(name):
            return
        text = self.loaded.get(pod["metadata"]["uid"]) if pod else None
        meaning = Meaning(text)
        serves = self.pod_ready(pod) and meaning.valid
        if serves and meaning.strategy == "mps":
            serves = "mps" not in self.components() or self.pod_ready(self.pod_of("mps", name))
        count = machine.gpus * meaning.replicas if serves else 0
        if not serves:
            for resource in status["allocatable"]:
                status["allocatable"][resource] = "0"
            return
        both = {GPU: "0", GPU + ".shared": str(count)} if meaning.renamed else {GPU: str(count)}
        if not meaning.renamed and GPU + ".shared" in status["capacity"]:
            both[GPU + ".shared"] = "0"
        status["capacity"], status["allocatable"] = dict(both), dict(both)

    # --- One look of the operator.

    def manifests(self):
        return {"apiVersion": "v1", "kind": "List", "items": [self.objects[key] for key in sorted(self.objects)]}

    def run_plan(self, now=None, held="0s", form="json", options=()):
        command = [binary(), "plan", "-", "-o", form, "--now", now or stamp(self.clock), "--assume-observed-for", held]
        command += self.options + list(options)
        done = subprocess.run(command, input=json.dumps(self.manifests()), capture_output=True, text=True, timeout=30,
                              env={"PATH": os.environ.get("PATH", "")})
        if done.returncode not in (0, 1, 2):
            raise Failure("expected a plan, got exit status %d: %s" % (done.returncode, show(done.stderr)))
        return done

    def audit(self):
        """What `audit` prints about the cluster: its exit status and its findings."""
        done = subprocess.run([binary(), "audit", "-f", "-", "-o", "json"], input=json.dumps(self.manifests()),
                              capture_output=True, text=True, timeout=30, env={"PATH": os.environ.get("PATH", "")})
        try:
            return done.returncode, json.loads(done.stdout)["findings"]
        except ValueError:
            raise Failure("expected an audit in JSON, got exit status %d: %s" %
                          (done.returncode, show(done.stderr or done.stdout)))

    def plan(self, held="0s", options=()):
        """A plan that is not applied."""
        done = self.run_plan(held=held, options=options)
        try:
            printed = json.loads(done.stdout)
        except ValueError:
            raise Failure("expected a plan in JSON, got exit status %d: %s" %
                          (done.returncode, show(done.stderr or done.stdout)))
        return Tick(self, printed, done.returncode)

    def tick(self, now=None, held=None, options=(), killed_after=None):
        """Plans at `now` (by default the cluster's clock) and applies it all. Conditions count as held for `held`: by
        default since the tick before or since the cluster was last changed, whichever is later. With `killed_after`
        the operator ends after so many writes."""
        if now is not None:
            self.clock = moment(now)
        if held is None:
            since = max(self.last_tick or self.clock, self.changed)
            held = "%ds" % (self.clock - since).total_seconds()
        result = self.plan(held, options)
        self.gone = set()
        for action in result.actions[:killed_after]:
            if "target" in action and self.key(*self.named(action)) in self.gone:
                continue  # 404: an earlier action of this look has taken it away.
            self.apply(action)
        if self.restarts_wanted:
            self.roll_daemonsets()
        self.react()
        self.last_tick = self.clock
        self.ticks.append(result)
        return result

    def after(self, duration, held=None):
        """Lets time pass, then looks."""
        self.clock += datetime.timedelta(seconds=seconds(duration))
        return self.tick(held=held)

    def wait(self, duration):
        """Lets time pass without a look."""
        self.clock += datetime.timedelta(seconds=seconds(duration))

    def install(self):
        """The operator comes and records what it finds: pods that are a quarter of an hour old."""
        self.wait("15m")
        self.tick()
        self.after("1m")
        return self.after("30m")

    def converge(self, most=60, each="2m"):
        """Ticks until nothing but status is written; returns a summary."""
        return Run([self.after(each) for _ in iter_until_quiet(self, most)])

    # --- Actions.

    def apply(self, action):
        handler = getattr(self, "apply_" + str(action.get("action")), None)
        if handler is None:
            raise Failure("expected an action that this library knows, got %s" % show(action))
        handler(action)

    @staticmethod
    def named(action):
        target = action["target"]
        return target["kind"], target["name"], target.get("namespace", "")

    def found(self, action):
        kind, name, namespace = self.named(action)
        obj = self.get(kind, name, namespace)
        if obj is None:
            raise Failure("expected an action on an object that exists, got %s" % show(action))
        wanted = action.get("preconditions", {})
        for field in ("uid", "resourceVersion"):
            if field in wanted and wanted[field] != obj["metadata"][field]:
                raise Failure("expected a precondition that holds, got %s" % show(action))
        return obj

    def apply_PatchNode(self, action):
        node = self.found(action)
        meta = node["metadata"]
        for field, change in (("labels", action), ("annotations", action.get("annotations", {}))):
            meta[field].update(change.get("set", {}))
            for key in change.get("remove", []):
                meta[field].pop(key, None)
        if action.get("unschedulable") is True:
            node["spec"]["unschedulable"] = True
        elif action.get("unschedulable") is False:
            node["spec"].pop("unschedulable", None)
        self.touch(node)

    def apply_WriteConfigMap(self, action):
        _, name, namespace = self.named(action)
        found = self.get("ConfigMap", name, namespace)
        if found is None:
            found = self.put({"apiVersion": "v1", "kind": "ConfigMap",
                              "metadata": {"name": name, "namespace": namespace, "managedFields": []}, "data": {}})
        if found.get("immutable"):
            raise Failure("expected no write into an immutable ConfigMap, got %s" % show(action))
        data = found["data"]
        data.update(action.get("set", {}))
        for key in action.get("remove", []):
            data.pop(key, None)
        size = sum(len(key) + len(text) for key, text in data.items())
        if size > 1 << 20:
            raise Failure("expected ConfigMaps below 1048576 bytes, got %s with %d" % (name, size))
        managed = found["metadata"].setdefault("managedFields", [])
        mine = [entry for entry in managed if entry["manager"] == FIELD_MANAGER]
        keys = set(mine[0]["fieldsV1"]["f:data"]) if mine else set()
        keys |= {"f:" + key for key in action.get("set", {})}
        keys -= {"f:" + key for key in action.get("remove", [])}
        managed[:] = [entry for entry in managed if entry["manager"] != FIELD_MANAGER]
        managed.append({"manager": FIELD_MANAGER, "operation": "Apply", "apiVersion": "v1", "time": stamp(self.clock),
                        "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {key: {} for key in sorted(keys)}}})
        self.touch(found)
        if (name, namespace) == (self.config_map, self.namespace):
            self.history.append((self.clock, dict(data)))

    apply_ApplyConfigMap = apply_WriteConfigMap

    def apply_CreateObject(self, action):
        obj = copy.deepcopy(action["object"])
        if obj["kind"] in ("SharingPolicy", "SharingRollout") and not self.served_crds:
            raise Failure("expected no object of a kind that is not served, got %s" % show(action))
        if self.get(obj["kind"], obj["metadata"]["name"], obj["metadata"].get("namespace")) is None:
            obj["metadata"].setdefault("generation", 1)
            self.put(obj)

    def apply_PatchStatus(self, action):
        obj = self.found(action)
        too_long = [text for text in long_texts(action["status"]) if len(text) > 32768]
        if too_long:
            raise Failure("expected messages of at most 32768 characters, got %d in the status of %s" %
                          (len(too_long[0]), action["target"]["name"]))
        obj["status"] = copy.deepcopy(action["status"])  # It is planned as a whole.
        self.touch(obj)

    def apply_DeleteObject(self, action):
        self.found(action)
        self.remove(*self.named(action))

    def apply_PatchFinalizers(self, action):
        obj = self.found(action)
        obj["metadata"]["finalizers"] = list(action["finalizers"])
        self.touch(obj)
        if obj["metadata"].get("deletionTimestamp") and not action["finalizers"]:
            self.remove(*self.named(action))

    def apply_RecordEvent(self, action):
        pass

    def apply_RestartDaemonSet(self, action):
        daemonset = self.found(action)
        meta = daemonset["spec"]["template"]["metadata"]
        meta.setdefault("annotations", {})["gpusharing.dev/restarted-for"] = action["restartedFor"]
        self.touch(daemonset)
        self.restarts_wanted.append((daemonset["metadata"]["name"], action["restartedFor"]))

    def roll_daemonsets(self):
        """The DaemonSets' controller replaces every pod at once; for simplicity those of the other components as well."""
        self.restarts += self.restarts_wanted
        self.restarts_wanted = []
        self.template("restart-%d" % len(self.restarts))
        for pod in self.operand_pods():
            self.drop(pod)

    def apply_DeletePod(self, action):
        pod = self.found(action)
        expect_that("uid" in action.get("preconditions", {}), "a uid precondition on every deletion", action)
        owners = {owner["uid"] for owner in pod["metadata"].get("ownerReferences", [])}
        ours = {daemonset["metadata"]["uid"] for daemonset in self.all("DaemonSet")}
        expect_that(owners & ours, "only pods of the plugin's DaemonSets to be deleted", action["target"])
        self.drop(pod)

    def apply_EvictPod(self, action):
        pod = self.found(action)
        if pod["metadata"]["name"] not in self.refuses_eviction:
            self.drop(pod)


def iter_until_quiet(cluster, most):
    """Yields as long as the last tick has changed anything but status."""
    quiet = 0
    for count in range(most):
        if count and cluster.ticks[-1].is_quiet():
            quiet += 1
            if quiet == 2:
                return
        else:
            quiet = 0
        yield count


def long_texts(value):
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for item in inner for text in long_texts(item)]


class Tick:
    """What one look has planned."""

    def __init__(self, cluster, printed, status):
        self.actions, self.all_findings, self.status = printed["actions"], printed["findings"], status
        self.now = stamp(cluster.clock)
        self.updating_before = set(cluster.in_progress())
        self.node_of = {(pod["metadata"]["namespace"], pod["metadata"]["name"]): pod["spec"].get("nodeName")
                        for pod in cluster.all("Pod")}

    def moment(self):
        return moment(self.now)

    def of(self, kind):
        return [action for action in self.actions if action["action"] == kind]

    def started(self):
        """Nodes on which a disruption begins."""
        return [action["target"]["name"] for action in self.of("PatchNode")
                if action["target"]["name"] not in self.updating_before and
                (action.get("unschedulable") is True or action["set"].get(STATE_LABEL) == "Updating")]

    def patched(self, node):
        return [action for action in self.of("PatchNode") if action["target"]["name"] == node]

    def deleted_pods(self):
        return [action["target"]["name"] for action in self.of("DeletePod")]

    def restarted(self):
        """Nodes of which a pod is deleted."""
        return sorted({self.node_of[(action["target"].get("namespace"), action["target"]["name"])]
                       for action in self.of("DeletePod")})

    def evicted(self):
        return [action["target"]["name"] for action in self.of("EvictPod")]

    def findings(self, reason=None):
        return [finding for finding in self.all_findings if reason is None or finding["reason"] == reason]

    def found_on(self, reason):
        """Names of the objects of findings with this reason."""
        return sorted(finding["object"]["name"] for finding in self.findings(reason))

    def events(self, reason=None):
        return [action for action in self.of("RecordEvent") if reason is None or action["event"]["reason"] == reason]

    def condition(self, policy, kind):
        """A condition as this tick has written it, or {}."""
        for action in self.of("PatchStatus"):
            if action["target"]["kind"] == "SharingPolicy" and action["target"]["name"] == policy:
                for condition in action["status"].get("conditions", []):
                    if condition["type"] == kind:
                        return condition
        return {}

    def disrupts(self):
        """Whether anything is taken out of service or ended."""
        return bool(self.started() or self.of("DeletePod") or self.of("EvictPod") or self.of("RestartDaemonSet"))

    def is_quiet(self):
        return not [action for action in self.actions if action["action"] not in ("PatchStatus", "RecordEvent")]


class Run:
    """Several looks, one after another."""

    def __init__(self, ticks):
        self.ticks = ticks

    def started(self):
        return [name for tick in self.ticks for name in tick.started()]

    def waves(self):
        return [tick.started() for tick in self.ticks if tick.started()]

    def restarted(self):
        return sorted({name for tick in self.ticks for name in tick.restarted()})

    def evicted(self):
        return [name for tick in self.ticks for name in tick.evicted()]


# --- Running scenarios.

def binary():
    given = os.environ.get("GSO_BIN")
    if given:
        return given
    found = [path for path in glob.glob("build*/**/gpu-sharing-operator", recursive=True)
             if os.path.isfile(path) and os.access(path, os.X_OK)]
    if not found:
        sys.exit("no binary: set GSO_BIN, or build one below build*/")
    return os.path.abspath(max(found, key=os.path.getmtime))


SCENARIOS = []


def scenario(function):
    """Registers a function; its docstring says in one sentence what a user must see."""
    if not (function.__doc__ or "").strip():
        raise TypeError("a scenario needs a sentence: " + function.__name__)
    SCENARIOS.append(("%s.%s" % (function.__module__, function.__name__), function))
    return function
