"""`plan --only node.partitioning`, applied and asked again until the plan is empty."""
import calendar
import copy
import re
import tempfile
import time

from judges.planning import key_of, named_in_findings, plan, target_of
from judges.program import as_dict, as_list, short
from judges.slices import SLICE, STATUS, Wrong, admits, geometry_of_profile, reported, requests_of, total

CONFIG_LABEL = "nvidia.com/device-plugin.config"
CONFIG_MAP = "nos-device-plugin-configs"
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
MOST_PASSES = 8
PASS_SECONDS = 300


class Cluster:
    """The objects of a case, and what the plugin, its agent and the kubelet make of a plan."""

    def __init__(self, manifests):
        self.objects = {key_of(obj): copy.deepcopy(obj) for obj in manifests}
        self.touched, self.relabelled, self.revision = set(), set(), 50000

    def of(self, kind):
        return [obj for key, obj in sorted(self.objects.items()) if key[0] == kind]

    def bump(self, obj):
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)

    def apply(self, action):
        key = target_of(action)
        obj = self.objects.get(key)
        if key[0] == "Node":
            self.touched.add(key[2])
        if action["action"] == "PatchConfigMap":
            self.patch_config_map(obj, action)
        elif action["action"] == "PatchNode":
            self.patch_node(obj, action)
        elif key[0] == "Pod" and obj is not None and "plugin" not in obj["metadata"]["name"]:
            raise Wrong("acts on the pod of a workload: %s" % short(action))

    def patch_config_map(self, obj, action):
        if obj is None or obj["metadata"]["name"] != CONFIG_MAP:
            raise Wrong("want the ConfigMap that the plugin mounts, got %s" % short(action.get("target")))
        data = obj.setdefault("data", {})
        in_use = {as_dict(node["metadata"].get("labels")).get(CONFIG_LABEL) for node in self.of("Node")}
        changes = dict(as_dict(action.get("set")), **dict.fromkeys(as_list(action.get("remove"))))
        for name, text in changes.items():
            if name in in_use and text != data.get(name):
                raise Wrong("%s key %s, which the label of a node names" % ("removes" if text is None else "rewrites", name))
            if text is None:
                data.pop(name, None)
            else:
                geometry_of_profile(text)
                data[name] = text
        self.bump(obj)

    def patch_node(self, node, action):
        if node is None:
            raise Wrong("patches a node that does not exist: %s" % short(action.get("target")))
        changes = as_dict(action.get("set"))
        if CONFIG_LABEL not in changes:
            return
        name, key = node["metadata"]["name"], changes[CONFIG_LABEL]
        if not isinstance(key, str) or not LABEL_VALUE.fullmatch(key):
            raise Wrong("%s is no label value: %s" % (CONFIG_LABEL, short(key)))
        texts = [config_map["data"][key] for config_map in self.of("ConfigMap") if key in as_dict(config_map.get("data"))]
        if not texts:
            raise Wrong("the label of %s would name %s, which no ConfigMap has yet" % (name, key))
        if node["metadata"]["labels"].get(CONFIG_LABEL) == key:
            return
        if name in self.relabelled:
            raise Wrong("%s is repartitioned twice" % name)
        self.relabelled.add(name)
        node["metadata"]["labels"][CONFIG_LABEL] = key
        self.take_effect(node, geometry_of_profile(texts[0]))

    @staticmethod
    def refuse_impossible(node, geometry):
        name, labels = node["metadata"]["name"], node["metadata"]["labels"]
        for gpu, sizes in sorted(reported(node, "used").items()):
            for gb, count in sizes.items():
                if geometry.get(gpu, {}).get(gb, 0) < count:
                    raise Wrong("%s GPU %d: %d slices of %d GB are used, the new profile has %d" %
                                (name, gpu, count, gb, geometry.get(gpu, {}).get(gb, 0)))
        for gpu, sizes in sorted(geometry.items()):
            if gpu >= int(labels["nvidia.com/gpu.count"]):
                raise Wrong("%s has no GPU %d" % (name, gpu))
            if sum(gb * count for gb, count in sizes.items()) * 1024 > int(labels["nvidia.com/gpu.memory"]):
                raise Wrong("%s GPU %d: slices %s are more than its %s MiB" % (
                    name, gpu, short({str(gb): count for gb, count in sizes.items()}), labels["nvidia.com/gpu.memory"]))

    def take_effect(self, node, geometry):
        self.refuse_impossible(node, geometry)
        used = reported(node, "used")
        notes = {key: value for key, value in as_dict(node["metadata"].get("annotations")).items() if not STATUS.match(key)}
        for gpu, sizes in geometry.items():
            for gb, count in sizes.items():
                busy = used.get(gpu, {}).get(gb, 0)
                for what, number in (("used", busy), ("free", count - busy)):
                    if number:
                        notes["nos.nebuly.com/status-gpu-%d-%dgb-%s" % (gpu, gb, what)] = str(number)
        node["metadata"]["annotations"] = notes
        for field in ("allocatable", "capacity"):
            kept = {name: count for name, count in node["status"][field].items() if not SLICE.match(name)}
            kept.update({"nvidia.com/gpu-%dgb" % gb: str(count) for gb, count in total(geometry).items()})
            node["status"][field] = kept
        self.bump(node)

    def free(self):
        """{node: {GB: count}} that the scheduler can assign: without what bound pods take that is not reported yet."""
        out = {}
        for node in self.of("Node"):
            bound = {}
            for pod in self.of("Pod"):
                if pod["spec"].get("nodeName") == node["metadata"]["name"] and pod["status"]["phase"] in ("Pending", "Running"):
                    for gb, count in requests_of(pod).items():
                        bound[gb] = bound.get(gb, 0) + count
            used = total(reported(node, "used"))
            out[node["metadata"]["name"]] = {gb: count - max(0, bound.get(gb, 0) - used.get(gb, 0))
                                             for gb, count in total(reported(node, "free")).items()}
        return out

    def serves(self, names):
        """Whether these pods can all be placed at once."""
        nodes, free = {node["metadata"]["name"]: node for node in self.of("Node")}, self.free()
        pods = [pod for pod in self.of("Pod") if pod["metadata"]["name"] in names]

        def place(number):
            if number == len(pods):
                return True
            need, tried = requests_of(pods[number]), set()
            for name, node in nodes.items():
                state = tuple(sorted(free[name].items()))
                if (not admits(node, pods[number]) or (name, state) in tried or
                        any(free[name].get(gb, 0) < count for gb, count in need.items())):
                    continue
                tried.add((name, state))
                for gb, count in need.items():
                    free[name][gb] -= count
                if place(number + 1):
                    return True
                for gb, count in need.items():
                    free[name][gb] += count
            return False
        return place(0)


def later(now, seconds):
    form = "%Y-%m-%dT%H:%M:%SZ"
    return time.strftime(form, time.gmtime(calendar.timegm(time.strptime(now, form)) + seconds))


def follow(case, cluster, program, folder):
    """Applies plans until one is empty; returns the names of the objects that findings were about."""
    named = set()
    for number in range(MOST_PASSES + 1):
        answer, wrong = plan(program, (folder, "%s-%d.json" % (case["id"], number)), list(cluster.objects.values()),
                             later(case["now"], number * PASS_SECONDS), case["assume_observed_for"], "node.partitioning")
        if answer is None:
            raise Wrong(wrong)
        named |= named_in_findings(answer)
        if not answer["actions"]:
            return named
        if case["expect"].get("no_actions"):
            raise Wrong("want no action, got %s" % short(answer["actions"][0]))
        for action in answer["actions"]:
            cluster.apply(action)
    raise Wrong("not silent after %d passes: %s" % (MOST_PASSES, short(answer["actions"][0])))


def wrong_with_end(expect, cluster, named):
    """What is wrong once the plan is empty; "" if nothing is."""
    touched, free = sorted(cluster.touched), cluster.free()
    too_many = sorted(cluster.touched - set(expect.get("may_touch", touched)))
    if too_many:
        return "acts on %s, which needs no change" % ", ".join(too_many)
    if len(touched) > expect.get("max_touched", len(touched)):
        return "acts on %s, %d nodes are enough" % (", ".join(touched), expect["max_touched"])
    for node, sizes in expect.get("keep_free", {}).items():
        reports = total(reported(cluster.objects[("Node", "", node)], "free"))
        for gb, count in sizes.items():
            if reports.get(int(gb), 0) < count:
                return "%s: %d free slices of %s GB could stay, %d do" % (node, count, gb, reports.get(int(gb), 0))
    choices = expect.get("served_any_of", [])
    if choices and not any(cluster.serves(set(names)) for names in choices):
        return "want these pods to fit at once: %s; free slices are %s" % (
            " or ".join("{%s}" % ", ".join(names) for names in choices),
            short({node: {"%dgb" % gb: count for gb, count in sizes.items()} for node, sizes in free.items()}))
    missing = sorted(set(expect.get("findings_about", [])) - named)
    return "want a finding about %s" % ", ".join(missing) if missing else ""


def judge_case(case, program, folder):
    cluster = Cluster(case["manifests"])
    try:
        named = follow(case, cluster, program, folder)
    except Wrong as wrong:
        return str(wrong)
    return wrong_with_end(case["expect"], cluster, named)


def judge_nos_planner(cases, program):
    with tempfile.TemporaryDirectory() as folder:
        return program.map(lambda case: (case["id"], judge_case(case, program, folder)), cases)
