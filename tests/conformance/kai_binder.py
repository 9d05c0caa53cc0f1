#!/usr/bin/env python3
"""KAI's scheduler and binder, the kubelets and the people of a small cluster, racing with an operator on a real API server.

usage: kai_binder.py CLUSTER_DIR [--seed N] [--busy SECONDS] [--patience SECONDS]

What it plays is that of tests/sim/kai/kai_actor.h: a scheduler with a snapshot that lags; a binder that creates reservations,
labels late, times out, rolls back half-way, crashes and comes back, gives a group a second reservation where its cache lags,
and syncs as upstream does: a reservation without consumers is deleted, running consumers without a reservation are deleted.
Pods come for --busy seconds. Then it waits until every reservation that nobody needs is gone, --patience seconds at most.

The choices follow from the seed; when they meet the operator does not, so that each run is another race. Prints what it did.
The exit code is 1 where the binder had to delete a live consumer, because its last reservation was gone, or where an orphan
stayed. Which of the operator's deletions were wrong, invariants/kai_judge.py says. Standard library only.
"""
import argparse
import datetime
import pathlib
import random
import sys
import time

sys.dont_write_bytecode = True  # The project's folder stays as it is.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "invariants"))

from audit_log import metadata
from kai_reservations import (GPU, GROUP, PREFIX, RESERVATIONS, TEAM, annotations, carries, groups_of, in_namespace, is_alive,
                              is_in_progress, is_terminating, name_of, needed, phase, spec)
from played import Api, Loop

NODES = ("n1", "n2", "n3")
PODS = "/api/v1/namespaces/{}/pods"
REQUESTS = f"/apis/scheduling.run.ai/v1alpha2/namespaces/{TEAM}/bindrequests"
CONFIG_MAPS = f"/api/v1/namespaces/{TEAM}/configmaps"
BINDER = "/apis/apps/v1/namespaces/kai-scheduler/deployments/binder"
MERGE = "application/merge-patch+json"


class Kai(Loop):
    def __init__(self, api, seed, busy):
        super().__init__()
        self.api = api
        self.seed = seed
        self.random = random.Random(seed)
        self.end = time.monotonic() + busy
        self.quiet = False
        self.binder_up = True
        self.incarnation = 1
        self.up_since = 0.0
        self.binding = set()   # Pods that a bind works on.
        self.finds = {}        # Group -> pods whose bind has found its reservation.
        self.ends = {}         # When the kubelet ends a running pod.
        self.numbers = {"pod": 0, "group": 0}
        self.done = {"binds": 0, "duplicates": 0, "crashes": 0}
        self.killed = []

    def chance(self, probability):
        return self.random.random() < probability

    def between(self, least, most):
        return self.random.uniform(least, most)

    def number(self, of):
        self.numbers[of] += 1
        return self.numbers[of]

    # --- The server.
    def pods(self, namespace):
        return list(self.api.all(PODS.format(namespace)).values())

    def requests(self):
        return list(self.api.all(REQUESTS).values())

    def patch_pod(self, namespace, name, patch, sub=""):
        return self.api.send("PATCH", f"{PODS.format(namespace)}/{name}{sub}", patch, MERGE)[0]

    def end_pod(self, namespace, name, grace):
        self.api.send("DELETE", f"{PODS.format(namespace)}/{name}", {"gracePeriodSeconds": grace})

    def set_request(self, pod, phase_of_it):
        status = {"phase": phase_of_it, "failedAttempts": 1 if phase_of_it == "Failed" else 0}
        self.api.send("PATCH", f"{REQUESTS}/{pod}/status", {"status": status}, MERGE)

    def set_binder(self, available):
        self.binder_up = available
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        generation = metadata(self.api.get(BINDER) or {}).get("generation", 1)
        count = 1 if available else 0
        self.api.send("PATCH", BINDER + "/status", {"status": {
            "observedGeneration": generation, "replicas": 1, "updatedReplicas": 1, "readyReplicas": count,
            "availableReplicas": count, "conditions": [{
                "type": "Available", "status": str(available), "reason": "Told", "message": "", "lastUpdateTime": now,
                "lastTransitionTime": now}]}}, MERGE)

    # --- Who creates pods, and takes them away.
    def users(self):
        while time.monotonic() < self.end:
            name = f"p-{self.seed}-{self.number('pod')}"
            notes = {"gpu-fraction": "0.5", "runai/shared-gpu-configmap": name}
            if self.chance(0.3):
                notes["gpu-fraction-num-devices"] = "2"
            scheduler = "my-kai" if self.chance(0.2) else "kai-scheduler"
            self.api.send("POST", PODS.format(TEAM), {
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": notes},
                "spec": {"schedulerName": scheduler, "tolerations": [{"operator": "Exists"}],
                         "containers": [{"name": "main", "image": "train"}]}})
            yield self.between(0.5, 5)
            there = self.pods(TEAM)
            if there and self.chance(0.3):
                self.end_pod(TEAM, name_of(self.random.choice(there)), self.random.randrange(8))
        yield 20
        self.quiet = True

    # --- Chooses a node and groups from a snapshot that may be some seconds old; a group is used again only if a consumer of
    # it was alive in that snapshot.
    def scheduler(self):
        snapshot = {}
        while True:
            before = snapshot
            snapshot = {group: spec(pod, "nodeName") for pod in self.pods(TEAM) if is_alive(pod) and spec(pod, "nodeName")
                        for group in groups_of(pod)}
            yield self.between(0.2, 2)
            used = before if self.chance(0.5) else snapshot
            requested = set()
            for request in self.requests():
                requested.add(name_of(request))
                if phase(request) == "Failed":
                    self.api.send("DELETE", f"{REQUESTS}/{name_of(request)}")
            for pod in self.pods(TEAM):
                free = not spec(pod, "nodeName") and not is_terminating(pod) and is_alive(pod)
                if free and name_of(pod) not in requested and name_of(pod) not in self.binding:
                    self.request(pod, used)

    def request(self, pod, used):
        devices = 2 if "gpu-fraction-num-devices" in annotations(pod) else 1
        node, groups = self.random.choice(NODES), []
        if devices == 1 and used and self.chance(0.6):
            group, node = self.random.choice(sorted(used.items()))
            groups = [group]
        while len(groups) < devices:
            groups.append(f"g-{self.seed}-{self.number('group')}")
        fields = {"podName": name_of(pod), "selectedNode": node, "selectedGPUGroups": groups}
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name_of(pod), "uid": metadata(pod)["uid"], "controller": True}
        self.api.send("POST", REQUESTS, {
            "apiVersion": "scheduling.run.ai/v1alpha2", "kind": "BindRequest",
            "metadata": {"name": name_of(pod), "ownerReferences": [owner]}, "spec": fields})

    # --- The binder.
    def binder(self):
        while True:
            yield self.between(0.1, 1.5)
            if not self.binder_up:
                continue
            for request in self.requests():
                pod = spec(request, "podName")
                if not is_in_progress(request) or is_terminating(request) or pod in self.binding:
                    continue
                self.binding.add(pod)
                self.begin(self.bind(pod, self.incarnation))
            # Triggers: a consumer of KAI's own scheduler with the plain label has ended.
            if not self.chance(0.2):
                continue
            for pod in self.pods(TEAM):
                group = (metadata(pod).get("labels") or {}).get(GROUP)
                if not is_alive(pod) and spec(pod, "schedulerName") == "kai-scheduler" and group and self.chance(0.3):
                    self.sync_group(group)

    def up(self, incarnation):
        return self.binder_up and incarnation == self.incarnation

    def bind(self, pod, incarnation):
        yield self.between(0.01, 3)
        request = self.api.get(f"{REQUESTS}/{pod}")
        if self.up(incarnation) and request:
            self.set_request(pod, "Pending")
            groups = groups_of(request)
            self.sync_node(spec(request, "selectedNode"))
            bound = yield from self.steps(pod, groups, spec(request, "selectedNode"), incarnation)
            if bound:
                self.done["binds"] += 1
            elif self.up(incarnation):
                self.roll_back(pod, groups)
                self.set_request(pod, "Failed")
            for group in groups:
                self.finds.get(group, set()).discard(pod)
        self.binding.discard(pod)

    # Reservation, label, binding; anything may end half-way by a crash.
    def steps(self, pod, groups, node, incarnation):
        gpus = []
        for group in groups:
            gpu = yield from self.reserve(pod, group, node, incarnation)
            if not gpu or not self.up(incarnation):
                return False
            gpus.append(gpu)
            yield self.between(0.01, 4)  # The label comes late.
            if not self.up(incarnation):
                return False
            self.patch_pod(TEAM, pod, {"metadata": {"labels": {GROUP if len(groups) == 1 else PREFIX + group: group}}})
        yield self.between(0.01, 2)
        now = self.api.get(f"{PODS.format(TEAM)}/{pod}")
        if not self.up(incarnation) or self.chance(0.1) or not now or is_terminating(now):
            return False
        self.show_gpus(now, gpus)
        yield self.between(0.01, 0.5)
        if not self.up(incarnation):
            return False
        status, _ = self.api.send("POST", f"{PODS.format(TEAM)}/{pod}/binding", {
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node}})
        if status not in (200, 201):
            return False
        yield self.between(0.01, 0.5)
        if self.up(incarnation):
            self.set_request(pod, "Succeeded")
        return True

    def reserve(self, pod, group, node, incarnation):
        """The GPU of the group's reservation, which is made where the binder sees none; None: it timed out."""
        name = None
        for reservation in self.pods(RESERVATIONS):
            if carries(reservation, group) and not is_terminating(reservation) and is_alive(reservation):
                name = name_of(reservation)
        # A cache that lags, most of all after a restart, does not show it: the group gets another one.
        young = time.monotonic() - self.up_since < 20
        if name and self.chance(0.5 if young else 0.1):
            name = None
            self.done["duplicates"] += 1
        if name is None:
            name = f"gpu-reservation-{node}-{self.seed}-{self.number('group')}"
            gpu = {"nvidia.com/gpu": "1"}
            self.api.send("POST", PODS.format(RESERVATIONS), {
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "labels": {"app": RESERVATIONS, GROUP: group}},
                "spec": {"nodeName": node, "tolerations": [{"operator": "Exists"}], "containers": [
                    {"name": "reservation", "image": "kai/reservation", "resources": {"limits": gpu, "requests": gpu}}]}})
        self.finds.setdefault(group, set()).add(pod)
        until = time.monotonic() + 5
        while time.monotonic() < until and self.up(incarnation):
            reservation = self.api.get(f"{PODS.format(RESERVATIONS)}/{name}")
            if not reservation or is_terminating(reservation):
                return None
            if annotations(reservation).get(GPU):
                return annotations(reservation)[GPU]
            yield self.between(0.1, 0.6)
        return None

    # What the consumer's container will see.
    def show_gpus(self, pod, gpus):
        name = name_of(pod) + "-0"
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name_of(pod), "uid": metadata(pod)["uid"]}
        self.api.send("DELETE", f"{CONFIG_MAPS}/{name}")
        self.api.send("POST", CONFIG_MAPS, {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [owner]},
            "data": {"NVIDIA_VISIBLE_DEVICES": ",".join(gpus)}})

    def roll_back(self, pod, groups):
        self.api.send("DELETE", f"{CONFIG_MAPS}/{pod}-0")
        self.patch_pod(TEAM, pod, {"metadata": {"labels": {key: None for key in [GROUP] + [PREFIX + group for group in groups]}}})
        # The clean-up that follows may fail, too: an origin of stale reservations.
        if self.chance(0.5):
            return
        for group in groups:
            self.finds.get(group, set()).discard(pod)
            self.sync_group(group)

    def sync_group(self, group):
        in_progress = any(is_in_progress(request) and group in groups_of(request) for request in self.requests())
        consumers = [pod for pod in self.pods(TEAM) if is_alive(pod) and carries(pod, group)]
        reservations = [pod for pod in self.pods(RESERVATIONS) if carries(pod, group)]
        if not consumers and not in_progress and not self.finds.get(group) and reservations:
            self.end_pod(RESERVATIONS, name_of(reservations[0]), 0)  # Of duplicates one at a time.
        if reservations:
            return
        for pod in consumers:
            if phase(pod) == "Running" and not is_terminating(pod):
                self.killed.append(f"{TEAM}/{name_of(pod)} (group {group})")
                self.end_pod(TEAM, name_of(pod), 0)

    # A bind on the node does not always come: without that, nothing would ever be left over.
    def sync_node(self, node, always=False):
        groups = {group for namespace in (RESERVATIONS, TEAM) for pod in self.pods(namespace) if spec(pod, "nodeName") == node
                  for group in groups_of(pod)}
        for group in sorted(groups):
            if always or self.chance(0.1):
                self.sync_group(group)

    def crashes(self):
        while True:
            yield self.between(15, 60)
            if time.monotonic() > self.end - 10:
                return
            self.done["crashes"] += 1
            self.incarnation += 1
            self.set_binder(False)
            yield self.between(1, 8)
            self.set_binder(True)
            self.up_since = time.monotonic()
            for node in NODES:
                self.sync_node(node)

    # --- The kubelets: pods that have a node start, say their GPU, end, and go when they are deleted. And the garbage
    # collector: what belongs to a pod that is gone goes.
    def kubelet(self):
        while True:
            yield self.between(0.1, 0.8)
            for namespace in (RESERVATIONS, TEAM):
                for pod in self.pods(namespace):
                    self.serve(namespace, pod)
            pods = {metadata(pod)["uid"] for pod in self.pods(TEAM)}
            for path in (REQUESTS, CONFIG_MAPS):
                for thing in self.api.all(path).values():
                    owners = metadata(thing).get("ownerReferences") or []
                    if owners and not any(owner["uid"] in pods for owner in owners):
                        self.api.send("DELETE", f"{path}/{name_of(thing)}")

    def serve(self, namespace, pod):
        name, reserves = name_of(pod), namespace == RESERVATIONS
        mine = bool(spec(pod, "nodeName"))
        if is_terminating(pod):
            if self.chance(0.2 if mine else 1.0):
                self.end_pod(namespace, name, 0)
        elif not mine:
            return
        elif phase(pod) in ("", "Pending"):
            self.ends[name] = time.monotonic() + self.between(3, 60)
            if self.chance(0.6):
                self.patch_pod(namespace, name, {"status": {"phase": "Running"}}, "/status")
        elif reserves and GPU not in annotations(pod):
            if self.chance(0.5):
                self.patch_pod(namespace, name, {"metadata": {"annotations": {GPU: "GPU-" + name}}})
        elif not reserves and phase(pod) == "Running" and time.monotonic() > self.ends.get(name, 0) and not self.quiet:
            ended = "Succeeded" if self.chance(0.8) else "Failed"
            self.patch_pod(namespace, name, {"status": {"phase": ended}}, "/status")
        elif not reserves and phase(pod) == "Running" and self.chance(0.003):
            self.patch_pod(namespace, name, {"status": {"phase": "Unknown"}}, "/status")  # Nobody hears of its node for a while.

    # --- The truth, read from the server now.
    def orphans(self):
        pods = {**self.api.all(PODS.format(RESERVATIONS)), **self.api.all(PODS.format(TEAM))}
        requests, config_maps = self.api.all(REQUESTS), self.api.all(CONFIG_MAPS)
        return {name_of(pod) for pod in in_namespace(pods, RESERVATIONS)
                if not is_terminating(pod) and not needed(pod, pods, requests, config_maps)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cluster", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--busy", type=float, default=150)
    parser.add_argument("--patience", type=float, default=240)
    options = parser.parse_args()
    kai = Kai(Api(options.cluster), options.seed, options.busy)
    kai.set_binder(True)
    for task in (kai.users(), kai.scheduler(), kai.binder(), kai.crashes(), kai.kubelet()):
        kai.begin(task)
    if not kai.run_until(lambda: kai.quiet and not kai.binding, options.busy + 120):
        print("the binds did not come to an end")
        return 1
    left = kai.orphans()
    checked = [time.monotonic()]

    def are_gone():
        if time.monotonic() - checked[0] > 2:
            checked[0] = time.monotonic()
            return not (left & kai.orphans())
        return not left

    gone = kai.run_until(are_gone, options.patience)
    print(f"seed {kai.seed}: {kai.numbers['pod']} pods, {kai.done['binds']} binds, {kai.done['crashes']} crashes of the binder, "
          f"{kai.done['duplicates']} reservations made for a group that had one; {len(left)} orphans when it went quiet")
    for name in sorted(left & kai.orphans()) if not gone else []:
        print(f"{name} is an orphan, and still there after {options.patience:.0f} s")
    for name in kai.killed:
        print(f"KAI deleted the live consumer {name}: its last reservation was gone")
    return 1 if kai.killed or not gone else 0


if __name__ == "__main__":
    sys.exit(main())
