"""Audit lines that no server has written: a fleet of four nodes and an operator that may be made to misbehave."""
import copy
import json
from datetime import datetime, timezone

OPERATOR = "system:serviceaccount:gpu-sharing-operator:gpu-sharing-operator"
GOOD = "version: v1\nsharing:\n  mps:\n    resources: [{name: nvidia.com/gpu, replicas: 4}]\n"
CONTAINERS = {"plugin": "nvidia-device-plugin", "gfd": "gpu-feature-discovery", "mps": "mps-control-daemon-ctr"}


class MadeUpLog:
    def __init__(self):
        self.now, self.revision, self.lines, self.objects = 1_780_000_000.0, 100, [], {}

    # --- What any user does.
    def write(self, user, verb, resource, namespace, name, request, response, code=200):
        resource, _, subresource = resource.partition("/")
        ref = {"resource": resource, "namespace": namespace, "name": name, "subresource": subresource}
        self.event(user, verb, ref, code, requestObject=request, responseObject=response)

    def event(self, user, verb, ref, code=200, stage="ResponseComplete", audit_id="", **bodies):
        self.now += 0.01
        self.lines.append(json.dumps({
            "level": "RequestResponse", "auditID": audit_id or str(len(self.lines)), "stage": stage, "verb": verb,
            "user": {"username": user}, "objectRef": {k: v for k, v in ref.items() if v}, "responseStatus": {"code": code},
            "requestReceivedTimestamp": self.time(self.now - 0.005), "stageTimestamp": self.time(self.now), **bodies}))

    @staticmethod
    def time(seconds):
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def put(self, resource, namespace, name, thing, user="admin", verb="patch", request=None):
        """The object is as `thing` from now on."""
        self.revision += 1
        thing = copy.deepcopy(thing)
        meta = thing.setdefault("metadata", {})
        meta.update(name=name, resourceVersion=str(self.revision))
        meta.setdefault("uid", "uid-" + name)
        meta.setdefault("creationTimestamp", self.time(self.now))
        if namespace:
            meta["namespace"] = namespace
        self.objects[(resource, namespace, name)] = thing
        self.write(user, verb, resource, namespace, name, request or {}, copy.deepcopy(thing))

    def get(self, resource, namespace, name):
        return copy.deepcopy(self.objects[(resource, namespace, name)])

    def remove(self, resource, namespace, name, user="admin", request=None):
        thing = self.objects.pop((resource, namespace, name))
        self.revision += 1
        thing["metadata"]["resourceVersion"] = str(self.revision)
        self.write(user, "delete", resource, namespace, name, request or {}, thing)

    def wait(self, seconds):
        self.now += seconds

    # --- The fleet.
    def install(self, **rollout):
        for component, container in CONTAINERS.items():
            template = {"metadata": {}, "spec": {"containers": [{"name": container}]}}
            self.put("daemonsets", "gpu-operator", component, {"spec": {"template": template}})
        self.put("configmaps", "gpu-operator", "mps-config", {"data": {"any": GOOD}})
        self.put("clusterpolicies", "", "cluster-policy", {"spec": {"devicePlugin": {"config": {"default": "any"}}}})
        flags = json.dumps({"cluster-max-unavailable": "1"})
        self.put("configmaps", "default", "operator-settings", {"data": {"flags": flags, "story": "made-up"}})
        for name in ("n1", "n2", "n3", "n4"):
            self.put("nodes", "", name, {
                "metadata": {"labels": {"nvidia.com/gpu.product": "T4", "zone": "a"}}, "spec": {},
                "status": {"conditions": [{"type": "Ready", "status": "True"}], "capacity": {"nvidia.com/gpu": "4"},
                           "allocatable": {"nvidia.com/gpu": "4"}}})
            for component in CONTAINERS:
                self.operand(name, component, "old")
        for resource in ("nodes", "pods", "daemonsets", "configmaps"):
            self.event(OPERATOR, "watch", {"resource": resource}, stage="ResponseStarted", audit_id="watch-" + resource)
        self.renew_lease()
        spec = {"priority": 0, "nodeSelector": {}, "mode": "Enforce", "rollout": {
            "maxUnavailable": 1, "maxUnavailablePerGroup": 1, "workloads": "WaitForIdle", **rollout}}
        self.put("sharingpolicies", "", "default", {"spec": spec, "metadata": {"generation": 1}})
        self.put("configmaps", "gpu-sharing-operator", "gpu-sharing-operator-state", {"data": {}}, user=OPERATOR)

    def renew_lease(self, holder="a"):
        self.put("leases", "gpu-sharing-operator", "gpu-sharing-operator", {"spec": {
            "holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": self.time(self.now)}}, user=OPERATOR)

    def operand(self, node, component, age, ready=True):
        self.put("pods", "gpu-operator", f"{component}-{node}-{age}", {
            "metadata": {"ownerReferences": [{"kind": "DaemonSet", "uid": "uid-" + component, "controller": True}]},
            "spec": {"nodeName": node, "containers": [{"name": CONTAINERS[component]}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]}})

    def client(self, node, name, namespace="team", **annotations):
        self.put("pods", namespace, name, {
            "metadata": {"annotations": annotations, "ownerReferences": [{"kind": "Job", "uid": "j", "controller": True}]},
            "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
            "status": {"phase": "Running"}})

    def edit(self, text=GOOD.replace("4", "8")):
        self.put("configmaps", "gpu-operator", "mps-config", {"data": {"any": text}})
        self.wait(3)

    def edit_policy(self, **rollout):
        policy = self.get("sharingpolicies", "", "default")
        policy["spec"]["rollout"].update(rollout)
        self.put("sharingpolicies", "", "default", policy)

    # --- The operator, as it should be.
    def patch_node(self, name, edit, request=None, user=OPERATOR, unanswered=0):
        """`unanswered`: it took effect, and its client did not hear of it; the code that is logged."""
        node = self.get("nodes", "", name)
        version = node["metadata"]["resourceVersion"]
        edit(node)
        request = request or {"metadata": {"resourceVersion": version}, "spec": node["spec"]}
        self.put("nodes", "", name, node, user=user, request=request)
        if unanswered:
            event = json.loads(self.lines[-1])
            del event["responseObject"]
            self.lines[-1] = json.dumps({**event, "responseStatus": {"code": unanswered}})

    def start(self, name, unanswered=0, **more):
        change = {"v": 1, "policy": "default", "configMap": "gpu-operator/mps-config", "key": "any", "product": "T4",
                  "from": "v1-a", "to": "v1-b", "kind": "change-mps", "cause": "edited",
                  "pods": {c: [f"uid-{c}-{name}-old"] for c in CONTAINERS}, **more}

        def edit(node):
            node["metadata"].setdefault("annotations", {})["gpusharing.dev/change"] = json.dumps(change)
            node["metadata"]["labels"]["gpusharing.dev/state"] = "Updating"
            node["spec"]["unschedulable"] = True
        self.renew_lease()
        self.patch_node(name, edit, unanswered=unanswered)

    def delete(self, name, component, request=None):
        pod = f"{component}-{name}-old"
        self.remove("pods", "gpu-operator", pod, OPERATOR,
                    {"preconditions": {"uid": "uid-" + pod}} if request is None else request)

    def replace_pods(self, name):
        for component in CONTAINERS:
            self.delete(name, component)
            self.operand(name, component, "new")

    def finish(self, name, **annotations):
        def edit(node):
            del node["metadata"]["annotations"]["gpusharing.dev/change"]
            del node["metadata"]["labels"]["gpusharing.dev/state"]
            node["metadata"]["annotations"].update({"gpusharing.dev/revision": "v1-b", **annotations})
            node["spec"].pop("unschedulable", None)
        self.patch_node(name, edit)

    def evict(self, name, request=None, code=201, namespace="team"):
        request = {"deleteOptions": {"preconditions": {"uid": "uid-" + name}}} if request is None else request
        self.write(OPERATOR, "create", "pods/eviction", namespace, name, request, {"kind": "Status"}, code)
