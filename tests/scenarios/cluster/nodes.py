"""Nodes with GPUs: the hardware below them, what they show, and what people do to them."""
from .names import GFD_LABELS, GPU, STATE_LABEL


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


class Nodes:
    """Part of a Cluster: its nodes, each with a Machine."""

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

    def behave(self, behaviour, *nodes):
        for name in nodes:
            self.machines[name].behaviour = behaviour
        self.react()
