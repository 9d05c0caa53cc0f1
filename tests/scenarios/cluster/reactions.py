"""How the fleet reacts: what DaemonSet controller, sidecars, plugin, GFD and kubelet do when something has changed."""
import datetime
import json

from .names import COMPONENTS, GFD_LABELS, GPU
from .profile_texts import Meaning
from .times import stamp


class Reactions:
    """Part of a Cluster: `react` lets the fleet follow what its objects say."""

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
        # Sidecars follow the node's label; the MPS daemon does not. A label that names the file which the pod has anyway
        # reloads nothing ("Already configured").
        for component in ("plugin", "gfd"):
            pod = self.pod_of(component, name)
            uid = pod["metadata"]["uid"] if pod is not None else None
            label = self.labels(name).get(self.config_label, "")
            if pod is None or self.followed[uid][0] == label:
                continue
            default = self.followed[uid][1]
            self.followed[uid] = (label, default)
            key = self.resolve(name, self.projected(), default)
            if self.selected[uid] != key:
                self.selected[uid] = key
                text = self.text_for(name, self.projected(), default)
                if text is not None:
                    self.loaded[uid] = text
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

    def roll_daemonsets(self):
        """The DaemonSets' controller replaces every pod at once; for simplicity those of the other components as well."""
        self.restarts += self.restarts_wanted
        self.restarts_wanted = []
        self.template("restart-%d" % len(self.restarts))
        for pod in self.operand_pods():
            self.drop(pod)

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
        self.selected[pod["metadata"]["uid"]] = self.resolve(name, self.data())
        self.followed[pod["metadata"]["uid"]] = (self.labels(name).get(self.config_label, ""), self.default)
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
