"""The GPU software of a cluster: its DaemonSets, and the templates that they have had."""
from .names import COMPONENTS, CONFIG_LABEL
from .times import stamp


class PluginInstallation:
    """Part of a Cluster: the DaemonSets of the plugin, GFD and the MPS daemon."""
    config_label = CONFIG_LABEL  # The value of their variable NODE_LABEL.

    def install_gpu_software(self):
        """The first template of every DaemonSet, and with the GPU Operator its ClusterPolicy."""
        if self.layout == "gpu-operator":
            self.put({"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy",
                      "metadata": {"name": "cluster-policy", "generation": 1},
                      "spec": {"devicePlugin": {"enabled": True,
                                                "config": {"name": self.config_map, "default": self.default}}}})
        self.template("h1")
        for component in self.components():
            self.daemonset(component)

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

    def rename_node_label(self, label, template="h2"):
        """The variable NODE_LABEL of every container that has it gets another value: that makes a new template."""
        self.config_label = label
        for component in self.components():
            spec = self.get("DaemonSet", COMPONENTS[component][0], self.namespace)["spec"]["template"]["spec"]
            for variable in [one for container in spec["initContainers"] + spec["containers"] for one in container["env"]]:
                if variable["name"] == "NODE_LABEL":
                    variable["value"] = label
        self.template(template)

    def image(self, template):
        return "registry.example/k8s-device-plugin:" + self.version + ("" if template == "h1" else "-" + template)

    def sidecar(self, name, process):
        env = {"NODE_LABEL": self.config_label, "CONFIG_FILE_SRCDIR": "/available-configs",
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

    def stranger(self, namespace, name="plugin", container="nvidia-device-plugin", owner=None, text=None, selector=None,
                 going=False):
        """The DaemonSet of somebody who may write in that namespace only, without pods: its container has the name of a part
        of the GPU software, and `owner` is its controller. `text`: of the ConfigMap that it mounts; `going`: it is being
        deleted, and a finalizer holds it."""
        meta = {"name": name, "namespace": namespace, "generation": 1, "labels": {"app": name}}
        if owner:
            meta["ownerReferences"] = [dict({"controller": True}, **owner)]
        if going:
            meta.update(deletionTimestamp=stamp(self.clock), finalizers=["example.com/keep"])
        sidecar = self.sidecar("config-manager", container)
        sidecar["volumeMounts"] = [{"name": "configs", "mountPath": "/available-configs"}]
        if text is not None:
            self.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name + "-config", "namespace": namespace},
                      "data": {self.default or "any": text}})
        return self.put({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta,
            "spec": {"selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name}}, "spec": {
                         "nodeSelector": selector or {}, "tolerations": [{"operator": "Exists"}],
                         "containers": [{"name": container, "image": self.image("h1")}, sidecar],
                         "volumes": [{"name": "configs", "configMap": {"name": name + "-config"}}]}}},
            "status": {}})

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

    def update_strategy(self, on_delete):
        """Somebody switches all DaemonSets to OnDelete, or to RollingUpdate; that makes no new template."""
        self.on_delete = on_delete
        for component in self.components():
            daemonset = self.get("DaemonSet", COMPONENTS[component][0], self.namespace)
            daemonset["metadata"]["generation"] += 1
            daemonset["spec"]["updateStrategy"]["type"] = "OnDelete" if on_delete else "RollingUpdate"
            self.touch(daemonset)

    def recreate_daemonsets(self):
        """As `helm uninstall` and `helm install` do: new uids, new pods."""
        for component in self.components():
            self.remove("DaemonSet", COMPONENTS[component][0], self.namespace)
        for pod in self.operand_pods():
            self.drop(pod)
        for component in self.components():
            self.daemonset(component)
        self.react()
