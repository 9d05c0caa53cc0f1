#!/usr/bin/env python3
"""Clusters of nodes that nos partitions, drawn by chance, and what must hold of every plan for their pods that wait.

    GSO_BIN=path/to/gpu-sharing-operator tests/scenarios/slice_worlds.py 1 200     # the worlds of these seeds

The model knows the GPU of each slice that a pod has. It wants to see, whatever the world:
- no GPU with more memory in slices than it has, less what is kept for the driver;
- every slice that a pod has, or might have, on its GPU; free slices given up only where their room is needed;
- nothing written about a node whose slices need not change, and no label moved twice;
- the same plan for the same objects in another order;
- one Event about each pod that waits, and slices where the Event says that they are planned;
- no pod left out for which there would have been room beside those that are served;
- silence in the end.
"""
import datetime
import itertools
import json
import random
import sys

from cluster.program import ask
from cluster.slices import CONFIG_MAP, NAMESPACE, STATUS, SliceCluster, geometry_of, profile
from cluster.times import moment, stamp
from scenario import CONFIG_LABEL, Failure

NOW = "2026-03-02T08:00:00Z"
RESERVED = 512
PASSES = 9


class Pod:
    def __init__(self, name, sizes, **more):
        self.name, self.sizes = name, sizes
        self.priority, self.tolerates, self.zone, self.cpu = 0, False, None, 0
        self.node, self.gpus, self.age, self.reported = None, None, None, True
        self.nominated = None  # The node on which the scheduler ends others for it.
        self.__dict__.update(more)

    def manifest(self, at):
        containers = [{"name": "c%d" % i, "image": "app:1", "resources": {"limits": {"nvidia.com/gpu-%dgb" % size: "1"}}}
                      for i, size in enumerate(self.sizes)] or [{"name": "c0", "image": "app:1", "resources": {}}]
        if self.cpu:
            containers[0]["resources"]["requests"] = {"cpu": str(self.cpu)}
        spec = {"priority": self.priority, "containers": containers}
        if self.tolerates:
            spec["tolerations"] = [{"key": "team", "operator": "Exists"}]
        if self.zone:
            spec["nodeSelector"] = {"zone": self.zone}
        status = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
        if self.nominated:
            status["nominatedNodeName"] = self.nominated
        if self.node:
            spec["nodeName"] = self.node
            since = stamp(at - datetime.timedelta(seconds=self.age))
            status = {"phase": "Running" if self.reported else "Pending",
                      "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": since}]}
        return {"apiVersion": "v1", "kind": "Pod", "spec": spec, "status": status,
                "metadata": {"name": self.name, "namespace": "team", "uid": "uid-" + self.name,
                             "creationTimestamp": stamp(at - datetime.timedelta(hours=2))}}


class Node:
    def __init__(self, rng, name):
        self.name = name
        self.gpus = rng.choice([1, 1, 2, 2, 4])
        self.mib = rng.choice([16384, 24564, 40960, 46068, 81559])
        self.taint = rng.random() < 0.2
        self.zone = rng.choice("ab")
        self.ready, self.cordoned = rng.random() > 0.08, rng.random() < 0.08
        self.cpu = rng.choice([0, 0, 8, 16])
        self.broken = rng.random() < 0.06
        self.loaded = {}           # {gpu: {size: count}}: what the plugin offers.
        self.used = {}             # {gpu: {size: count}}: what containers have.
        self.shown = {}            # What the agent reports as used.
        self.key = None
        sizes = rng.sample([1, 2, 4, 5, 8, 10, 12, 16, 20, 24, 30, 39, 40], 4)
        for gpu in range(self.gpus):
            room = (self.mib - RESERVED) // 1024
            for _ in range(rng.randrange(5)):
                size = rng.choice(sizes)
                if size <= room:
                    room -= size
                    add(self.loaded, gpu, size)
        if self.loaded:
            self.key = name + "-1700000000"

    def capacity(self):
        return (self.mib - RESERVED) // 1024

    def served(self):
        return self.ready and not self.cordoned and not self.broken

    def manifest(self):
        labels = {"nos.nebuly.com/gpu-partitioning": "mps", "nvidia.com/gpu.count": str(self.gpus),
                  "nvidia.com/gpu.memory": str(self.mib), "zone": self.zone}
        if self.broken:
            del labels["nvidia.com/gpu.memory"]
        if self.key:
            labels[CONFIG_LABEL] = self.key
        notes, shown = {}, {}
        for gpu, sizes in self.loaded.items():
            for size, count in sizes.items():
                busy = self.shown.get(gpu, {}).get(size, 0)
                for what, number in (("used", busy), ("free", count - busy)):
                    if number:
                        notes["%s%d-%dgb-%s" % (STATUS, gpu, size, what)] = str(number)
                resource = "nvidia.com/gpu-%dgb" % size
                shown[resource] = str(int(shown.get(resource, 0)) + count)
        if self.cpu:
            shown["cpu"] = str(self.cpu)
        spec = {"unschedulable": True} if self.cordoned else {}
        if self.taint:
            spec["taints"] = [{"key": "team", "effect": "NoSchedule"}]
        return {"apiVersion": "v1", "kind": "Node", "spec": spec,
                "metadata": {"name": self.name, "uid": "uid-" + self.name, "labels": labels, "annotations": notes},
                "status": {"capacity": shown, "allocatable": dict(shown),
                           "conditions": [{"type": "Ready", "status": "True" if self.ready else "False"}]}}


def add(geometry, gpu, size, count=1):
    sizes = geometry.setdefault(gpu, {})
    sizes[size] = sizes.get(size, 0) + count


def flat(geometry):
    return {(gpu, size): count for gpu, sizes in geometry.items() for size, count in sizes.items() if count}


class World:
    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.now = moment(NOW)
        self.nodes = {name: Node(rng, name) for name in ["n%d" % i for i in range(1, rng.randrange(2, 6))]}
        self.pods, self.moved, self.said, self.marks, self.revision = {}, {}, {}, {}, 100
        for node in self.nodes.values():
            self.bind_some(node)
        sizes = rng.sample([1, 2, 4, 5, 8, 10, 12, 16, 20, 24, 30, 39, 40, 60], 4)
        for i in range(rng.randrange(1, rng.choice([4, 9, 16]))):
            self.pods["w%02d" % i] = Pod(
                "w%02d" % i, sorted(rng.choices(sizes, k=rng.choice([1, 1, 1, 2, 3]))), priority=rng.choice([0, 0, 5, 9]),
                tolerates=rng.random() < 0.3, zone=rng.choice([None, None, None, "a", "b"]), cpu=rng.choice([0, 0, 0, 1, 4]))
        for node in self.nodes.values():
            self.nominate_one(node)
        scaffold = SliceCluster()
        self.fork = scaffold.get("DaemonSet", "nvidia-device-plugin", NAMESPACE)
        self.keys = {node.key: profile(node.loaded) for node in self.nodes.values() if node.key}
        self.first_free = {name: free_of(node, node.shown) for name, node in self.nodes.items()}
        self.before = {name: json.dumps(node.loaded, sort_keys=True) for name, node in self.nodes.items()}

    def bind_some(self, node):
        for (gpu, size), count in flat(node.loaded).items():
            for i in range(count):
                kind = self.rng.choice(["free", "free", "used", "used", "late", "new"])
                if kind == "free":
                    continue
                name = "b-%s-%d-%d-%d" % (node.name, gpu, size, i)
                late = kind == "late" or (kind == "new" and self.rng.random() < 0.5)
                self.pods[name] = Pod(name, [size], node=node.name, gpus=[gpu], reported=not late,
                                      age=self.rng.randrange(0, 25) if kind == "new" else 3600, cpu=self.rng.choice([0, 0, 1]),
                                      priority=self.rng.choice([0, 5]))
                add(node.used, gpu, size)
                if not late:
                    add(node.shown, gpu, size)

    def nominate_one(self, node):
        free = sorted(slot for slot, count in free_of(node, node.used).items() if count)
        if free and self.rng.random() < 0.25:
            name = "m-" + node.name
            self.pods[name] = Pod(name, [self.rng.choice(free)[1]], nominated=node.name, priority=9, cpu=self.rng.choice([0, 2]))

    def manifests(self, shuffled=False):
        out = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE, "uid": "cm"},
                "data": self.keys}, self.fork]
        for name, node in self.nodes.items():
            made = node.manifest()
            made["metadata"]["resourceVersion"] = str(self.revision)
            if name in self.marks:
                made["metadata"]["annotations"].update(self.marks[name])
            out.append(made)
        out += [pod.manifest(self.now if pod.node is None else moment(NOW)) for pod in self.pods.values()]
        if shuffled:
            self.rng.shuffle(out)
        return {"apiVersion": "v1", "kind": "List", "items": out}

    def plan(self, shuffled=False):
        done = ask(["plan", "-", "-o", "json", "--now", stamp(self.now), "--assume-observed-for", "10m", "--only",
                    "node.partitioning"], self.manifests(shuffled))
        if done.returncode not in (0, 1):
            raise Failure("plan ended with %d: %s" % (done.returncode, done.stderr))
        return json.loads(done.stdout)

    def admits(self, pod, node):
        if not node.served() or (node.taint and not pod.tolerates) or (pod.zone and pod.zone != node.zone):
            return False
        taken = sum(p.cpu for p in self.pods.values() if node.name in (p.node, p.nominated) and p.priority >= pod.priority)
        return not node.cpu or not pod.cpu or taken + pod.cpu <= node.cpu

    def waiting(self):
        return [pod for pod in self.pods.values() if pod.node is None and pod.nominated is None]

    def want(self, holds, text, *more):
        if not holds:
            raise Failure("%s%s" % (text, "".join(" %s" % (m,) for m in more)))

    def apply(self, action):
        kind = action["action"]
        if kind == "RecordEvent":
            return
        name = action["target"]["name"]
        if kind == "PatchConfigMap":
            named = {node.key for node in self.nodes.values()}
            for key, text in action.get("set", {}).items():
                self.want(key not in named, "a key that a label names is written", key)
                self.want(key.startswith("gso-") and len(key) <= 63, "a bad key", key)
                self.keys[key] = text
            for key in action.get("remove", []):
                self.want(key not in named and key.startswith("gso-"), "a key is removed", key)
                del self.keys[key]
            return
        self.want(kind == "PatchNode", "an unknown action", action)
        key = action["set"][CONFIG_LABEL]
        self.want(key in self.keys, "the label of %s names a key that is not there" % name, key)
        self.want(name not in self.moved, "%s is moved twice" % name)
        self.moved[name] = key
        self.marks[name] = action.get("annotations", {}).get("set", {})
        self.take_effect(self.nodes[name], key)

    def take_effect(self, node, key):
        wanted = geometry_of(self.keys[key])
        self.want(flat(wanted) != flat(node.loaded), "%s moves to the slices that it has" % node.name, wanted)
        self.want(node.served(), "%s moves although it is not served" % node.name)
        for (gpu, size), count in flat(node.used).items():
            self.want(wanted.get(gpu, {}).get(size, 0) >= count, "%s GPU %d loses a used slice of %d" % (node.name, gpu, size),
                      node.used, wanted)
        for gpu, sizes in wanted.items():
            self.want(gpu < node.gpus, "%s has no GPU %d" % (node.name, gpu))
            self.want(sum(s * n for s, n in sizes.items()) <= node.capacity(), "%s GPU %d is overcommitted" % (node.name, gpu), sizes)
        self.check_given_up(node, wanted)
        node.loaded, node.key = wanted, key

    def check_given_up(self, node, wanted):
        """No slice that was given up would fit into the room that remains."""
        for gpu in range(node.gpus):
            room = node.capacity() - sum(s * n for s, n in wanted.get(gpu, {}).items())
            for size, count in node.loaded.get(gpu, {}).items():
                if wanted.get(gpu, {}).get(size, 0) < count:
                    self.want(size > room, "%s GPU %d gives up a slice of %d although %d GiB remain" % (node.name, gpu, size, room),
                              node.loaded, wanted)

    def run(self):
        for at in range(PASSES + 1):
            first, again = self.plan(), self.plan(shuffled=True) if at < 2 else None
            if again is not None:
                self.want(canonical(first) == canonical(again), "another plan for the same objects in another order",
                          json.dumps(first)[:1500], json.dumps(again)[:1500])
            self.hear(first)
            writes = [a for a in first["actions"] if a["action"] != "RecordEvent"]
            # The operator looks again once the slices of pods that were bound a moment ago are reported.
            awaits = at == 0 and any(pod.age is not None and pod.age < 30 for pod in self.pods.values())
            if not writes and not awaits:
                self.check_end()
                return
            for action in writes:
                self.apply(action)
            self.revision += 1
            self.now += datetime.timedelta(minutes=5)
            for node in self.nodes.values():
                node.shown = {gpu: dict(sizes) for gpu, sizes in node.used.items()}
        raise Failure("not silent after %d passes" % PASSES)

    def hear(self, plan):
        self.said = {}
        for action in plan["actions"]:
            if action["action"] == "RecordEvent" and action["target"]["kind"] == "Pod":
                name = action["target"]["name"]
                self.want(name not in self.said, "two Events about %s" % name)
                self.said[name] = (action["event"]["reason"], action["event"]["note"])
        for pod in self.waiting():
            self.want(pod.name in self.said, "no Event about %s" % pod.name, json.dumps(plan)[:3000])

    def check_end(self):
        free = {name: free_of(node, node.used) for name, node in self.nodes.items()}
        rooms = {name: [node.capacity() - sum(s * n for s, n in node.loaded.get(gpu, {}).items()) for gpu in range(node.gpus)]
                 for name, node in self.nodes.items()}
        demand = {name: {} for name in self.nodes}
        for pod in self.pods.values():
            if pod.nominated:
                demand[pod.nominated][pod.sizes[0]] = 1
        for pod in self.waiting():
            reason, note = self.said[pod.name]
            if reason != "SlicePlanned":
                continue
            node = self.nodes[note.split("planned on node ")[1].split(";")[0]]
            self.want(self.admits(pod, node), "%s is planned on a node that does not admit it" % pod.name, note)
            for size in pod.sizes:
                demand[node.name][size] = demand[node.name].get(size, 0) + 1
        for name, sizes in demand.items():
            for size, count in sizes.items():
                have = sum(n for (gpu, s), n in free[name].items() if s == size)
                self.want(have >= count, "%s: %d slices of %d for %d that are planned" % (name, have, size, count), free[name])
        for pod in self.waiting():
            if self.said[pod.name][0] == "SlicePlanned":
                continue
            for name, node in self.nodes.items():
                if self.admits(pod, node) and fits(pod.sizes, rooms[name], spare_of(free[name], demand[name], node.gpus)):
                    raise Failure("%s (%s) would fit on %s: rooms %s, free %s, demand %s; %s" % (
                        pod.name, pod.sizes, name, rooms[name], free[name], demand[name], self.said[pod.name]))
        for name, node in self.nodes.items():
            if name not in self.moved:
                continue
            self.want(any(self.said[p.name][0] == "SlicePlanned" for p in self.waiting()), "%s moved for nobody" % name)


def free_of(node, used):
    out = {}
    for (gpu, size), count in flat(node.loaded).items():
        out[(gpu, size)] = count - used.get(gpu, {}).get(size, 0)
    return out


def spare_of(free, demand, gpus):
    """By GPU the most GiB of free slices that no planned pod needs, each way of choosing them: [{gpu: sizes}] (one way suffices
    as a lower bound: the planned pods take those of the last GPUs)."""
    left = dict(demand)
    spare = {gpu: [] for gpu in range(gpus)}
    for (gpu, size), count in sorted(free.items(), reverse=True):
        taken = min(count, left.get(size, 0))
        left[size] = left.get(size, 0) - taken
        spare[gpu] += [size] * (count - taken)
    return spare


def fits(sizes, rooms, spare):
    """A placement of all sizes: spare slices as they are, or room made of them."""
    rooms = list(rooms)
    sizes = sorted(sizes, reverse=True)

    def place(i, rooms, spare):
        if i == len(sizes):
            return True
        for gpu in range(len(rooms)):
            if sizes[i] in spare[gpu]:
                rest = {g: list(s) for g, s in spare.items()}
                rest[gpu].remove(sizes[i])
                if place(i + 1, rooms, rest):
                    return True
            total = rooms[gpu] + sum(spare[gpu])
            if total < sizes[i]:
                continue
            for k in range(len(spare[gpu]) + 1):
                done = False
                for given in itertools.combinations(range(len(spare[gpu])), k):
                    left = rooms[gpu] + sum(spare[gpu][j] for j in given) - sizes[i]
                    if left < 0:
                        continue
                    more = list(rooms)
                    more[gpu] = left
                    rest = {g: list(s) for g, s in spare.items()}
                    rest[gpu] = [s for j, s in enumerate(spare[gpu]) if j not in given]
                    if place(i + 1, more, rest):
                        return True
                    done = True
                    break
                if done:
                    break
        return False
    return place(0, rooms, spare)


def canonical(plan):
    return sorted(json.dumps(entry, sort_keys=True) for entry in plan["actions"] + plan["findings"])


def main():
    first, last = int(sys.argv[1]), int(sys.argv[2])
    failed = 0
    for seed in range(first, last + 1):
        try:
            World(seed).run()
        except Failure as why:
            failed += 1
            print("seed %d: %s" % (seed, str(why)[:1500]), flush=True)
    print("%d worlds, %d failed" % (last - first + 1, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
