#!/usr/bin/env python3
"""One cause of `explain pod` on a real cluster: the pod is made, the real scheduler refuses it, and the cause, its command and
every change of that command are compared.

  explain_cases.py --list [dead]              name and title of each case, with a tab between; dead: of those whose nodes
                                              must have no kubelet, which would set their status anew
  explain_cases.py NAME BINARY CLUSTER_DIR    exit status 0: as it should be; else the reason is printed
"""
import json
import os
import subprocess
import sys
import time

GPU = "nvidia.com/gpu"
SHARED = "nvidia.com/gpu.shared"
READS = ("kubectl get ", "kubectl describe ", "kubectl logs ", "gpu-sharing-operator explain ", "gpu-sharing-operator status",
         "gpu-sharing-operator rollout status")
NAMESPACE = "default"


class Case:
    """`pod`: a part of the pod's spec. `wants`: GPUs, or limits. `nodes`: kubectl arguments for all GPU nodes, and those that
    take it back. `scheduler`: what the scheduler says, or None where it has nothing to say. `shows`: what the pod's status has
    beside it. `changes`: path -> value after. `dead`: its nodes have no kubelet. `containers`: so many request GPUs."""

    def __init__(self, code, title, wants=1, pod=None, nodes=None, scheduler="", shows=None, changes=None, before=None, dead=False,
                 containers=1):
        self.code, self.title, self.pod, self.nodes = code, title, pod or {}, nodes
        self.shows, self.dead = shows or {}, dead
        self.limits = wants if isinstance(wants, dict) else {GPU: str(wants)}
        self.scheduler, self.changes, self.before, self.containers = scheduler, changes or {}, before, containers


CONTAINER = "spec.template.spec.containers[0]"
CASES = {
    "TooFew": Case("TooFew", "more than the node has, in several containers", pod={"nodeSelector": {"kubernetes.io/hostname": "t4-01"}}, containers=5,
                   scheduler="Insufficient nvidia.com/gpu"),
    "Refused": Case("RequestRefused", "more than any node has, where the plugin refuses more than one", 999, scheduler="Insufficient nvidia.com/gpu",
                    changes={f"{CONTAINER}.resources.limits": {GPU: "1"}}),
    "NotServed": Case("NotServed", "a resource that nobody serves", {"nvidia.com/mig-7g.80gb": "1"},
                      scheduler="Insufficient nvidia.com/mig-7g.80gb"),
    "Renamed": Case("Renamed", "the name with .shared, which renameByDefault would have made", {SHARED: "1"},
                    scheduler="Insufficient nvidia.com/gpu.shared",
                    changes={f"{CONTAINER}.resources.limits": {GPU: "1"}}),
    "OtherZone": Case("NotSelected", "a zone that no node has", pod={"nodeSelector": {"topology.kubernetes.io/zone": "z9"}},
                      scheduler="didn't match Pod's node affinity/selector"),
    "GoneNode": Case("NotSelected", "a node that does not exist", pod={"nodeSelector": {"kubernetes.io/hostname": "gone"}},
                     scheduler="didn't match Pod's node affinity/selector"),
    "Taint": Case("NotTolerated", "a taint that somebody has set", nodes=(["taint", "gpu=only:NoSchedule"], ["taint", "gpu-"]),
                  scheduler="untolerated taint",
                  changes={"spec.template.spec.tolerations": [{"effect": "NoSchedule", "key": "gpu", "operator": "Equal", "value": "only"}]}),
    "Cordon": Case("Cordoned", "nodes that a person has cordoned", nodes=(["cordon"], ["uncordon"]), scheduler="unschedulable"),
    "Full": Case("AllInUse", "nodes whose GPUs are all in use", 1, pod={"nodeSelector": {"kubernetes.io/hostname": "t4-01"}},
                 scheduler="Insufficient nvidia.com/gpu", before="fill"),
    "Gate": Case("SchedulingGated", "a gate of Kueue", pod={"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}, scheduler=None),
    "CPU": Case("NotEnoughCPU", "more CPUs than nodes have", pod={"cpu": "9999"}, scheduler="Insufficient cpu"),
    "Scheduler": Case("NoScheduler", "a scheduler that nobody runs", pod={"schedulerName": "volcano"}, scheduler=None,
                      changes={"spec.template.spec.schedulerName": "default-scheduler"}),
    "Memory": Case("NotEnoughMemory", "more memory than nodes have", pod={"memory": "900Ti"}, scheduler="Insufficient memory"),
    "Storage": Case("NotEnoughStorage", "more local storage than nodes have", pod={"ephemeral-storage": "900Ti"},
                    scheduler="Insufficient ephemeral-storage"),
    "Quota": Case("QuotaRefuses", "a quota of its namespace that allows no GPU", scheduler=None, before="quota"),
    "InChange": Case("NodeInChange", "a node whose profile the operator is changing",
                     pod={"nodeSelector": {"kubernetes.io/hostname": "t4-02"}}, nodes=(["inchange", "t4-02"], ["settled", "t4-02"]),
                     scheduler="unschedulable"),
    "NoneAllocatable": Case("NoneAllocatable", "nodes that offer none of the devices that they have", nodes=(["allocatable", "0"], ["allocatable", "4"]),
                            scheduler="Insufficient nvidia.com/gpu", dead=True),
    "Preempting": Case("Preempting", "a pod of higher priority on a full node, until the others have ended",
                       pod={"nodeSelector": {"kubernetes.io/hostname": "t4-01"}, "priorityClassName": "explain-high"},
                       scheduler="Insufficient nvidia.com/gpu", shows={"nominatedNodeName": "t4-01"}, before="fill", dead=True),
    "Condition": Case("NodeCondition", "nodes whose disks are full", nodes=(["condition", "DiskPressure", "True"], ["condition", "DiskPressure", "False"]),
                      scheduler="untolerated taint", dead=True),
    "NotReady": Case("NotReady", "its kubelet does not report", nodes=(["condition", "Ready", "False"], None), scheduler="untolerated taint",
                     dead=True),
}


# As the operator writes it at the start of a change.
CHANGE = json.dumps({"v": 1, "policy": "default", "configMap": "gpu-operator/mps-config", "key": "any", "product": "", "from": "v1-1", "to": "v1-2",
                     "kind": "reshare", "cause": "edited", "begun": "2026-01-01T00:00:00Z", "listed": "2026-01-01T00:00:00Z", "pods": {},
                     "served": True, "cordoned": True})
RESOURCES = ("cpu", "memory", "ephemeral-storage")


class Cluster:
    def __init__(self, folder):
        self.folder = folder
        self.kubeconfig = os.path.join(folder, "admin.kubeconfig")

    def kubectl(self, *arguments, text=None):
        done = subprocess.run([os.path.join(self.folder, "bin/kubectl"), "--kubeconfig", self.kubeconfig, *arguments],
                              input=text, capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise SystemExit(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def get(self, *arguments):
        return json.loads(self.kubectl("get", *arguments, "--output", "json"))

    def gpu_nodes(self):
        return [n["metadata"]["name"] for n in self.get("nodes", "--selector", "nvidia.com/gpu.present=true")["items"]]

    def act_on_nodes(self, what):
        verb, *rest = what
        if verb == "condition":
            now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            condition = {"type": rest[0], "status": rest[1], "reason": "Told", "message": "told", "lastHeartbeatTime": now,
                         "lastTransitionTime": now}
            for node in self.gpu_nodes():
                self.kubectl("patch", "node", node, "--subresource=status", "--patch", json.dumps({"status": {"conditions": [condition]}}))
        elif verb == "allocatable":
            for node in self.gpu_nodes():
                self.kubectl("patch", "node", node, "--subresource=status", "--patch", json.dumps({"status": {"allocatable": {GPU: rest[0]}}}))
        elif verb == "inchange":
            self.kubectl("annotate", "node", rest[0], "gpusharing.dev/change=" + CHANGE)
            self.kubectl("label", "node", rest[0], "gpusharing.dev/state=Updating")
            self.kubectl("cordon", rest[0])
        elif verb == "settled":
            self.kubectl("annotate", "node", rest[0], "gpusharing.dev/change-")
            self.kubectl("label", "node", rest[0], "gpusharing.dev/state-")
            self.kubectl("uncordon", rest[0])
        elif verb == "taint":
            self.kubectl("taint", "nodes", *self.gpu_nodes(), *rest, "--overwrite" if not rest[0].endswith("-") else "--")
        else:
            self.kubectl(verb, *self.gpu_nodes())


def deployment(name, case, replicas=1):
    spec = {key: value for key, value in case.pod.items() if key not in RESOURCES}
    limits = dict(case.limits, **{key: case.pod[key] for key in RESOURCES if key in case.pod})
    names = ["cuda", *(f"cuda-{i}" for i in range(2, case.containers + 1))]
    spec["containers"] = [{"name": cuda, "image": "example/cuda:1", "resources": {"limits": limits}} for cuda in names]
    spec["containers"].append({"name": "proxy", "image": "example/envoy:1"})
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name}}, "spec": spec}}}


def wait_for(what, look, seconds=60):
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise SystemExit(f"not seen within {seconds} s: {what}")
        time.sleep(0.5)


def pods_of(cluster, name):
    return cluster.get("pods", "--namespace", NAMESPACE, "--selector", f"app={name}")["items"]


def unscheduled(cluster, name, message, shows):
    """Its pod, once the scheduler has said that, and its status has what it should show."""
    for pod in pods_of(cluster, name):
        status = pod.get("status", {})
        if any(status.get(key) != value for key, value in shows.items()):
            continue
        if message is None:
            return pod
        for condition in pod.get("status", {}).get("conditions", []):
            if condition["type"] == "PodScheduled" and condition["status"] == "False" and message in condition.get("message", ""):
                return pod
    return None


def at(thing, path):
    for key in path.replace("[", ".[").split("."):
        if key.startswith("["):
            thing = thing[int(key[1:-1])]
        else:
            thing = (thing or {}).get(key)
    return thing


def without_times(thing):
    metadata = {k: v for k, v in thing["metadata"].items() if k not in ("managedFields", "resourceVersion", "generation")}
    return {"metadata": metadata, "spec": thing["spec"]}


def put(thing, path, value):
    *way, last = path.replace("[", ".[").split(".")
    for key in way:
        thing = thing[int(key[1:-1])] if key.startswith("[") else thing.setdefault(key, {})
    thing[last] = value


def compare_changes(cluster, command, case, name):
    if command.startswith(READS):
        assert not case.changes, f"no change is proposed: {command}"
        return
    arguments = [a for a in split(command) if a != "kubectl"]
    assert arguments[:2] == ["patch", "deployment"], command
    wanted = without_times(cluster.get("deployment", name, "--namespace", NAMESPACE))
    for path, value in case.changes.items():
        put(wanted, path, value)
    answer = without_times(json.loads(cluster.kubectl(*arguments, "--dry-run=server", "--output", "json")))
    assert answer == wanted, f"{command}\nmakes {json.dumps(answer)}\nnot   {json.dumps(wanted)}"


def split(command):
    import shlex
    return shlex.split(command)


def fill(cluster, case):
    """As many pods as the node has replicas."""
    node = case.pod["nodeSelector"]["kubernetes.io/hostname"]
    count = int(cluster.get("node", node)["status"]["allocatable"][GPU])
    others = deployment("others", case, count)
    if "priorityClassName" in case.pod:
        priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": case.pod["priorityClassName"]}, "value": 1000}
        cluster.kubectl("create", "--filename", "-", text=json.dumps(priority))
        del others["spec"]["template"]["spec"]["priorityClassName"]
    cluster.kubectl("create", "--filename", "-", text=json.dumps(others))
    wait_for(f"{count} pods on {node}", lambda: sum(1 for p in pods_of(cluster, "others") if p["spec"].get("nodeName")) == count)


def allow_no_gpu(cluster):
    """As soon as the quota has a status, the API server refuses what exceeds it."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "explain-gpus"}, "spec": {"hard": {f"requests.{GPU}": "0"}}}
    cluster.kubectl("create", "--namespace", NAMESPACE, "--filename", "-", text=json.dumps(quota))
    wait_for("the quota's status", lambda: cluster.get("resourcequota", "explain-gpus", "--namespace", NAMESPACE).get("status", {}).get("hard"))


def is_refused(cluster, name):
    """Its Deployment says that no pod could be created."""
    conditions = cluster.get("deployment", name, "--namespace", NAMESPACE).get("status", {}).get("conditions", [])
    return any(c["type"] == "ReplicaFailure" and c["status"] == "True" for c in conditions)


def what_to_explain(cluster, name, case):
    if case.before == "quota":
        wait_for("the Deployment's condition ReplicaFailure", lambda: is_refused(cluster, name))
        return name
    pod = wait_for(f"the scheduler to say: {case.scheduler}", lambda: unscheduled(cluster, name, case.scheduler, case.shows))
    return pod["metadata"]["name"]


def run(name, binary, folder):
    case, cluster = CASES[name], Cluster(folder)
    pod_name = name.lower()
    if case.before == "fill":
        fill(cluster, case)
    if case.before == "quota":
        allow_no_gpu(cluster)
    if case.nodes:
        cluster.act_on_nodes(case.nodes[0])
    try:
        cluster.kubectl("create", "--filename", "-", text=json.dumps(deployment(pod_name, case)))
        explained = what_to_explain(cluster, pod_name, case)
        done = subprocess.run([binary, "explain", f"{NAMESPACE}/{explained}", "--output", "json", "--kubeconfig", cluster.kubeconfig],
                              capture_output=True, text=True, timeout=60)
        print(done.stdout, done.stderr)
        document = json.loads(done.stdout)
        causes = document["causes"]
        assert causes and causes[0]["code"] == case.code, f"the cause is {[c['code'] for c in causes]}, not {case.code}"
        compare_changes(cluster, causes[0]["command"], case, pod_name)
        for cause in causes[1:]:
            assert cause["command"].startswith(READS) or not cause["command"], cause["command"]
    finally:
        cluster.kubectl("delete", "deployments", "--all", "--namespace", NAMESPACE)
        cluster.kubectl("delete", "pods", "--all", "--namespace", NAMESPACE, "--force", "--grace-period=0")
        if case.before == "quota":
            cluster.kubectl("delete", "resourcequotas", "--all", "--namespace", NAMESPACE)
        if case.nodes and case.nodes[1]:
            cluster.act_on_nodes(case.nodes[1])


def main(arguments):
    if arguments[:1] == ["--list"]:
        for name, case in CASES.items():
            if case.dead == (arguments[1:] == ["dead"]):
                print(f"{name}\t{case.code}: {case.title}")
        return
    try:
        run(*arguments)
    except AssertionError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main(sys.argv[1:])
