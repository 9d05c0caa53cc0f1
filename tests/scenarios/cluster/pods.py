"""Pods: those of the GPU software, and those of users, which consume GPUs."""
from .names import COMPONENTS, GPU
from .times import stamp


class Pods:
    """Part of a Cluster: which pods a node has, and what people do to them."""

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

    def pod_of(self, component, name):
        found = self.operand_pods(name, component)
        return found[-1] if found else None

    @staticmethod
    def pod_ready(pod):
        return pod is not None and pod["status"]["conditions"][0]["status"] == "True"

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

    def restart_container(self, name):
        """The plugin's container of the node exits and starts again in its pod: it reads what the pod sees by then."""
        pod = self.pod_of("plugin", name)
        self.loaded[pod["metadata"]["uid"]] = self.text_for(name, self.projected())
        pod["status"].setdefault("startTime", pod["metadata"]["creationTimestamp"])
        main = pod["status"]["containerStatuses"][0]
        main.update(restartCount=main["restartCount"] + 1, state={"running": {"startedAt": stamp(self.clock)}})
        self.touch(pod)
        self.react()

    def get_ready(self, name):
        """New pods of the node that were still starting are Ready."""
        self.machines[name].behaviour = "healthy"
        for pod in self.operand_pods(name):
            pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
            for container in pod["status"]["containerStatuses"]:
                container["ready"] = True
            self.touch(pod)
        self.react()

    def created_at(self, name, when):
        """The pods of the node bear this time: that of the clock of the API server that has created them."""
        for pod in self.operand_pods(name):
            pod["metadata"]["creationTimestamp"] = stamp(when)
            for status in pod["status"]["containerStatuses"]:
                status["state"] = {"running": {"startedAt": stamp(when)}}
            self.touch(pod)

    def reboot(self, name, gpus=None):
        """All pods of the node start anew; fewer GPUs may be found then."""
        if gpus is not None:
            self.machines[name].gpus = self.machines[name].counted = gpus
        self.restart(name)

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
