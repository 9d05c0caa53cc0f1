"""A cluster whose nodes nos partitions: Nebuly's device plugin, nos's gpu-agent, the scheduler, and pods with slices."""
import datetime
import json
import re

from .cluster import Cluster
from .expectations import Failure, expect_that
from .names import CONFIG_LABEL
from .times import stamp

NOS, NOS_BEFORE = "nos.nebuly.com/gpu-partitioning", "nos.nebuly.ai/gpu-partitioning"
NAMESPACE, CONFIG_MAP = "nebuly-nvidia", "nos-device-plugin-configs"
FORK, AGENT, AGENT_NAMESPACE = "nvidia-device-plugin", "nos-gpu-agent", "nebuly-nos"
MARK = "gpusharing.dev/partitioning"
STATUS = "nos.nebuly.com/status-gpu-"
SLICE = re.compile(r"nvidia\.com/gpu-(\d+)gb$")


def profile(geometry):
    """The document for {gpu: {size: count}}, as nos writes it."""
    entries = "".join(
        "    - name: nvidia.com/gpu\n      rename: gpu-%dgb\n      memoryGB: %d\n      replicas: %d\n      devices: [\"%d\"]\n"
        % (size, size, count, gpu) for gpu, sizes in sorted(geometry.items()) for size, count in sorted(sizes.items()))
    return ("version: v1\nflags:\n  migStrategy: \"none\"\nsharing:\n  mps:\n    failRequestsGreaterThanOne: true\n    resources:" +
            ("\n" + entries if entries else " []\n"))


def geometry_of(text):
    """{gpu: {size: count}} of a document, in the form of nos or of the operator."""
    out = {}
    fields = re.findall(r"memoryGB: (\d+),?\s+replicas: (\d+),?\s+devices: \[\"(\d+)\"\]", text)
    for size, count, gpu in fields:
        sizes = out.setdefault(int(gpu), {})
        sizes[int(size)] = sizes.get(int(size), 0) + int(count)
    return out


class SliceCluster(Cluster):
    """Nodes of the fork. `assigned`: pod -> (node, [(gpu, size)]), the slices that its containers really have. With
    `profiles` the official plugin serves further nodes, and is kept away from those of the fork."""

    def __init__(self, profiles=None, **options):
        self.slice_nodes, self.assigned, self.running = {}, {}, {}
        super().__init__(profiles or {"any": "version: v1\n"}, gfd=False, layout="standalone" if profiles else "none",
                         **options)
        self.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE},
                  "data": {}})
        self.fork()

    def fork(self, name=FORK, namespace=NAMESPACE, config_map=CONFIG_MAP, selector=None,
             image="ghcr.io/nebuly-ai/k8s-device-plugin:0.13.0"):
        env = {"NODE_LABEL": CONFIG_LABEL, "CONFIG_FILE_SRCDIR": "/available-configs",
               "CONFIG_FILE_DST": "/config/config.yaml", "DEFAULT_CONFIG": "", "FALLBACK_STRATEGIES": "empty"}
        return self.put({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name, "namespace": namespace},
            "spec": {"selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name}}, "spec": {
                         "nodeSelector": selector or {NOS: "mps"},
                         "containers": [
                             {"name": "nvidia-device-plugin-sidecar", "image": image, "command": ["config-manager"],
                              "env": [{"name": key, "value": value} for key, value in env.items()],
                              "volumeMounts": [{"name": "available-configs", "mountPath": "/available-configs"}]},
                             {"name": "nvidia-device-plugin-ctr", "image": image,
                              "env": [{"name": "CONFIG_FILE", "value": "/config/config.yaml"}]}],
                         "volumes": [{"name": "available-configs", "configMap": {"name": config_map}}]}}},
            "status": {}})

    def keys(self):
        return self.get("ConfigMap", CONFIG_MAP, NAMESPACE)["data"]

    def slice_node(self, name, gpus=1, mib=40960, labels=None, spelling=NOS, taints=None, cut=None):
        """`mib`: of each GPU, or a list by GPU: GFD labels the last one's. `cut`: {gpu: {size: count}}, as nos left it."""
        own = {"kubernetes.io/hostname": name, "nvidia.com/gpu.count": str(gpus),
               "nvidia.com/gpu.memory": str(mib[-1] if isinstance(mib, list) else mib), "nvidia.com/gpu.product": "NVIDIA-A100"}
        if cut:
            own[CONFIG_LABEL] = name + "-1700000000"
            self.keys()[own[CONFIG_LABEL]] = profile(cut)
        if spelling:
            own[spelling] = "mps"
        own.update(labels or {})
        node = self.put({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": own, "annotations": {}},
                         "spec": {"taints": taints} if taints else {}, "status": {
                             "capacity": {}, "allocatable": {}, "conditions": [{"type": "Ready", "status": "True"}]}})
        self.slice_nodes[name] = {"gpus": gpus, "mib": mib, "agent": True, "plugin": True, "loaded": {}, "key": None,
                                  "crashes": False}  # crashes: the plugin does not start with another key.
        self.react()
        return node

    def daemon_pod(self, name, daemon, namespace, uid, container, image):
        return self.put({
            "apiVersion": "v1", "kind": "Pod", "metadata": {
                "name": "%s-%s" % (daemon, name), "namespace": namespace, "labels": {"app.kubernetes.io/name": daemon},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": daemon, "uid": uid, "controller": True}]},
            "spec": {"nodeName": name, "containers": [{"name": container, "image": image}]}, "status": {}})

    def plugin_pod(self, name):
        """The pod of the fork on the node, which the other stories do without."""
        pod = self.daemon_pod(name, FORK, NAMESPACE, self.get("DaemonSet", FORK, NAMESPACE)["metadata"]["uid"],
                              "nvidia-device-plugin-ctr", "ghcr.io/nebuly-ai/k8s-device-plugin:0.13.0")
        pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}

    def agent_pod(self, name):
        """The pod of nos's gpu-agent on the node, which has run for an hour."""
        self.daemon_pod(name, AGENT, AGENT_NAMESPACE, "uid-of-agents", "nos-gpu-agent", "ghcr.io/nebuly-ai/nos-gpu-agent:0.1.2")
        self.show_agent(name, True, self.clock - datetime.timedelta(hours=1))

    def show_agent(self, name, ready, since):
        pod = self.get("Pod", "%s-%s" % (AGENT, name), AGENT_NAMESPACE)
        state = {"running": {"startedAt": stamp(since)}} if ready else {"waiting": {"reason": "CrashLoopBackOff"}}
        pod["status"] = {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": stamp(since)}],
            "containerStatuses": [{"name": "nos-gpu-agent", "ready": ready, "state": state}]}
        self.touch(pod)

    def stop_agent(self, name):
        """The agent crashes, and what it has reported stays."""
        self.slice_nodes[name]["agent"] = False
        self.show_agent(name, False, self.clock)

    def start_agent(self, name, reports=True):
        """The agent runs again. Without `reports` it has not looked yet."""
        self.slice_nodes[name]["agent"] = reports
        self.show_agent(name, True, self.clock)
        self.react()

    def lose_gpu(self, name):
        """The last GPU falls off the bus: GFD counts one less, and the plugin offers the slices of those that are left."""
        state = self.slice_nodes[name]
        state["gpus"] -= 1
        state["lost_with"] = self.label(name)
        self.set_label(name, "nvidia.com/gpu.count", str(state["gpus"]))

    def person_labels(self, name, key):
        """A person lets the node's label name that key, or none, whatever its pods use: the plugin follows."""
        self.slice_nodes[name]["lost_by_person"] = True  # Until the slices are back.
        self.set_label(name, CONFIG_LABEL, key)

    def lose_node(self, name):
        for pod in [pod for pod in self.all("Pod") if pod["spec"].get("nodeName") == name]:
            if pod["metadata"]["namespace"] == "team":
                self.end_pod(pod["metadata"]["name"])
            else:
                self.remove("Pod", pod["metadata"]["name"], pod["metadata"]["namespace"])
        self.remove("Node", name)
        del self.slice_nodes[name]

    def wait_for_slice(self, name, *sizes, priority=0, one_container=False, **spec):
        def container(index, wanted):
            asked = {}
            for size in wanted:
                asked["nvidia.com/gpu-%dgb" % size] = str(int(asked.get("nvidia.com/gpu-%dgb" % size, 0)) + 1)
            return {"name": "c%d" % index, "resources": {"limits": asked, "requests": dict(asked)}}
        groups = [sizes] if one_container else [(size,) for size in sizes]
        return self.put({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "team"},
                         "spec": dict({"priority": priority, "hostIPC": True,
                                       "containers": [container(i, group) for i, group in enumerate(groups)]}, **spec),
                         "status": {"phase": "Pending", "conditions": [
                             {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}})

    def end_pod(self, name):
        self.remove("Pod", name, "team")
        self.assigned.pop(name, None)

    @staticmethod
    def sizes_of(pod):
        out = []
        for container in pod["spec"]["containers"]:
            for resource, count in container["resources"]["limits"].items():
                found = SLICE.match(resource)
                out += [int(found.group(1))] * int(count) if found else []
        return out

    def used(self, name):
        """{gpu: {size: count}} that containers really have on the node."""
        out = {}
        for node, slices in self.assigned.values():
            for gpu, size in slices if node == name else []:
                sizes = out.setdefault(gpu, {})
                sizes[size] = sizes.get(size, 0) + 1
        return out

    def bind(self, pod_name, node_name, gpus=None):
        """The scheduler binds a pod, and the kubelet takes slices for it (of these GPUs, if they are named)."""
        pod, state = self.get("Pod", pod_name, "team"), self.slice_nodes[node_name]
        used, taken = self.used(node_name), []
        for at, size in enumerate(self.sizes_of(pod)):
            for gpu in [gpus[at]] if gpus else sorted(state["loaded"]):
                mine = sum(1 for one in taken if one == (gpu, size)) + used.get(gpu, {}).get(size, 0)
                if state["loaded"].get(gpu, {}).get(size, 0) > mine:
                    taken.append((gpu, size))
                    break
            else:
                return False
        pod["spec"]["nodeName"] = node_name
        pod["status"] = {"phase": "Running", "startTime": stamp(self.clock), "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(self.clock)}]}
        self.touch(pod)
        self.assigned[pod_name] = (node_name, taken)
        return True

    def admits(self, pod, name):
        node = self.get("Node", name)
        labels = node["metadata"]["labels"]
        if node["spec"].get("unschedulable") or node["status"]["conditions"][0]["status"] != "True":
            return False
        if any(labels.get(k) != v for k, v in pod["spec"].get("nodeSelector", {}).items()):
            return False
        tolerated = {t.get("key") for t in pod["spec"].get("tolerations", [])}
        return all(t["key"] in tolerated for t in node["spec"].get("taints", []) if t["effect"] != "PreferNoSchedule")

    def schedule(self):
        pods = [p for p in self.all("Pod") if not p["spec"].get("nodeName") and p["status"]["phase"] == "Pending"]
        for pod in sorted(pods, key=lambda p: -p["spec"].get("priority", 0)):
            for name in sorted(self.slice_nodes):
                state = self.slice_nodes[name]
                if state["plugin"] and self.admits(pod, name) and self.bind(pod["metadata"]["name"], name):
                    break

    def react(self):
        super().react()
        for name, state in sorted(getattr(self, "slice_nodes", {}).items()):
            self.react_slices(name, state)

    def react_slices(self, name, state):
        node = self.get("Node", name)
        before = json.dumps(node, sort_keys=True)
        labels = node["metadata"]["labels"]
        key = labels.get(CONFIG_LABEL)
        crashes = state["crashes"] and key != state["key"]
        served = labels.get(NOS) == "mps" and not crashes
        if state["plugin"] and served:
            state["key"] = key
            if key is None:
                state["loaded"] = {}
            elif key in self.keys():
                state["loaded"] = geometry_of(self.keys()[key])
                if key == state.get("lost_with"):
                    state["loaded"] = {gpu: sizes for gpu, sizes in state["loaded"].items() if gpu < state["gpus"]}
            self.check(name, state)
        for where in ("capacity", "allocatable"):
            shown = {key: value for key, value in node["status"][where].items() if not SLICE.match(key)}
            for sizes in state["loaded"].values():
                for size, count in sizes.items():
                    resource = "nvidia.com/gpu-%dgb" % size
                    shown[resource] = str(int(shown.get(resource, 0)) + count)
            if where == "allocatable" and not (state["plugin"] and served):
                shown = {key: "0" if SLICE.match(key) else value for key, value in shown.items()}
            node["status"][where] = shown
        if state["agent"] and served:
            self.report(name, state)
        if before != json.dumps(node, sort_keys=True):
            self.touch(node)

    def check(self, name, state):
        """No slice that a pod has leaves, and no GPU promises more memory than it has."""
        lost = [(gpu, size, count) for gpu, sizes in self.used(name).items() for size, count in sizes.items()
                if state["loaded"].get(gpu, {}).get(size, 0) < count]
        state["lost_by_person"] = state.get("lost_by_person", False) and bool(lost)
        for gpu, size, count in [] if state["lost_by_person"] else lost:
            raise Failure("expected node %s to keep %d used slices of %d GiB on GPU %d, got %s" %
                          (name, count, size, gpu, state["loaded"]))
        of_nos = re.fullmatch(re.escape(name) + "-[0-9]+", state["key"] or "")  # It counts in thousands, rounded up.
        for gpu, sizes in state["loaded"].items():
            expect_that(gpu < state["gpus"], "no profile for GPU %d of node %s, which has %d" % (gpu, name, state["gpus"]))
            mib = state["mib"][gpu] if isinstance(state["mib"], list) else state["mib"]
            wanted = sum(size * count for size, count in sizes.items())
            fits = wanted <= -(-mib // 1000) if of_nos else wanted * 1024 <= mib
            expect_that(fits or sizes == self.used(name).get(gpu), "slices of at most %d MiB on GPU %d of node %s" %
                        (mib, gpu, name), sizes)

    def report(self, name, state):
        notes = self.get("Node", name)["metadata"]["annotations"]
        for key in [key for key in notes if key.startswith(STATUS)]:
            del notes[key]
        used = self.used(name)
        for gpu, sizes in state["loaded"].items():
            for size, count in sizes.items():
                busy = min(count, used.get(gpu, {}).get(size, 0))
                for what, number in (("used", busy), ("free", count - busy)):
                    if number:
                        notes["%s%d-%dgb-%s" % (STATUS, gpu, size, what)] = str(number)

    def partition(self, most=12, each="2m"):
        """Looks until two looks in succession have written nothing."""
        quiet = 0
        for _ in range(most):
            tick = self.after(each)
            quiet = quiet + 1 if tick.is_quiet() else 0
            if quiet == 2:
                return tick
        raise Failure("expected silence after %d looks, got %s" % (most, json.dumps(tick.actions)[:400]))

    def slices(self, name):
        return self.slice_nodes[name]["loaded"]

    def label(self, name, key=CONFIG_LABEL):
        return self.get("Node", name)["metadata"]["labels"].get(key)
