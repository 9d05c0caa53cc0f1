"""S1, S3, S6, S7 and S9 to S11: what the operator writes on Nodes."""
from audit_log import metadata
from cluster import (CHANGE, CONFIG_LABEL, amounts, annotations, change_of, component_of, is_cordoned, is_terminating,
                     is_true, labels, listed_uids, serves_gpus)
from rules import LAG, Rule
from windows import all_closed

GUARDS = ("cluster-autoscaler.kubernetes.io/scale-down-disabled", "karpenter.sh/do-not-disrupt")
# Annotations under our prefix that people write.
PEOPLES = ("gpusharing.dev/hold", "gpusharing.dev/devices", "gpusharing.dev/mps-host")


def is_node_write(write):
    return write.kind == "nodes" and write.verb in ("patch", "update")


def before_and_after(write, cluster):
    """(node, node) of a write to a Node that is known."""
    before = cluster.node(write.name)
    return (before, write.response) if before else (None, None)


def differing(before, after):
    return [key for key in sorted(set(before) | set(after)) if before.get(key) != after.get(key)]


def starts_change(before, after):
    """A change begins: its annotation comes, or another one stands where one had failed."""
    was, now = change_of(before), change_of(after)
    return bool(now) and not now.get("failed") and (not was or bool(was.get("failed")))


def touches_by_label(before, after):
    """The label of a change is written: its sidecars reload, with the same list of pods."""
    was, now = change_of(before), change_of(after)
    return bool(was) and not was.get("touched") and bool(now.get("touched")) and was.get("listed") == now.get("listed")


def begins(write, cluster):
    """The change that begins with this write, or whose first pod goes with it, and its node."""
    if is_node_write(write):
        before, after = before_and_after(write, cluster)
        started = before is not None and (starts_change(before, after) or touches_by_label(before, after))
        return (change_of(after), write.name) if started else ({}, "")
    pod = cluster.all("pods").get(write.key)
    if write.kind != "pods" or write.verb != "delete" or pod is None:
        return {}, ""
    name = (pod.get("spec") or {}).get("nodeName", "")
    change = change_of(cluster.node(name) or {})
    if metadata(pod).get("uid") not in listed_uids(change) or change.get("touched"):
        return {}, ""
    pods = [cluster.pod_with(uid) for uid in listed_uids(change)]
    untouched = all(p is not None and not is_terminating(p) for p in pods)
    return (change, name) if untouched else ({}, "")


def number_of(limit, total):
    """A count, or a percentage, which is rounded up."""
    if isinstance(limit, str) and limit.endswith("%"):
        return -(-total * int(limit[:-1]) // 100)
    return int(limit)


class NodeRule(Rule):
    """A rule about writes to Nodes that are known: judge_node() gets the node before and after each."""

    def judge(self, write, cluster):
        before, after = before_and_after(write, cluster) if is_node_write(write) else (None, None)
        if before is not None:
            self.judge_node(write, before, after, cluster)

    def judge_node(self, write, before, after, cluster):
        raise NotImplementedError


class Budgets(NodeRule):
    number, title = "S1", "no node is taken out of service beyond a budget (cluster, policy, group)"

    def judge_node(self, write, before, after, cluster):
        if self.is_out(write.name, before, cluster, write):
            return
        if not change_of(after) and not (is_cordoned(after) and not is_cordoned(before)):
            return
        self.judged(cluster)
        change = change_of(after)
        fleet = [name for (_, name) in cluster.all("nodes") if ("has GPUs", name) in cluster.since]
        self.check(write, cluster, "the cluster", fleet, cluster.settings.get("cluster-max-unavailable"))
        policy = change.get("policy", "")
        rollout = (cluster.last_specs.get(policy) or {}).get("rollout") or {}
        own = [name for name in fleet if self.policy_of(name, cluster) == policy or name == write.name]
        self.check(write, cluster, f"policy {policy}", own, rollout.get("maxUnavailable"))
        product, key = change.get("product", ""), change.get("key", "")
        group = [n for n in own if n == write.name or self.group_of(n, cluster) == (product, key)]
        self.check(write, cluster, f"group {product} {key}", group, rollout.get("maxUnavailablePerGroup"))

    def check(self, write, cluster, what, names, limit):
        if limit is None:
            return
        most = number_of(limit, len(names))
        out = sorted(n for n in names if n == write.name or self.is_out(n, cluster.node(n), cluster, write))
        if len(out) > most:
            self.violated(write, f"{len(out)} nodes of {what} are out of service or in a change, {most} may be: "
                                 f"{', '.join(out)}")

    @staticmethod
    def is_out(name, node, cluster, write):
        """The operator's own changes count at once, other outages when it can know of them."""
        if change_of(node):
            return True
        if name == write.name:  # It needs no slot when it is out by now, known or not.
            return not is_true(node, "Ready") or is_cordoned(node) or not serves_gpus(node)
        return cluster.is_known_unavailable(name, write.received - LAG)

    @staticmethod
    def selects(spec, node):
        selector = spec.get("nodeSelector") or {}
        own = dict(labels(node))
        own["nvidia.com/gpu.product"] = own.get("nvidia.com/gpu.product", "").removesuffix("-SHARED")
        if any(own.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
            return False
        for term in selector.get("matchExpressions") or []:
            key, operator, values = term["key"], term["operator"], term.get("values") or []
            fits = {"In": own.get(key) in values, "NotIn": own.get(key) not in values, "Exists": key in own,
                    "DoesNotExist": key not in own}[operator]
            if not fits:
                return False
        return True

    def policy_of(self, name, cluster):
        node = cluster.node(name)
        if change_of(node).get("policy"):
            return change_of(node)["policy"]
        fitting = [p for p in cluster.all("sharingpolicies").values() if self.selects(p.get("spec") or {}, node)]
        order = sorted(fitting, key=lambda p: (-(p["spec"].get("priority") or 0), metadata(p)["creationTimestamp"],
                                               metadata(p)["name"]))
        return metadata(order[0])["name"] if order else ""

    def group_of(self, name, cluster):
        node = cluster.node(name)
        change = change_of(node)
        if change:
            return change.get("product", ""), change.get("key", "")
        product = labels(node).get("nvidia.com/gpu.product", "").removesuffix("-SHARED")
        key = labels(node).get(CONFIG_LABEL) or cluster.default_key()
        profile = (cluster.last_specs.get(self.policy_of(name, cluster)) or {}).get("profile") or {}
        return product, profile.get("configMapKey") or key


class ForeignMarks(Rule):
    number, title = "S3", "labels, annotations and keys that others wrote stay as they are"

    def judge(self, write, cluster):
        if is_node_write(write):
            before, after = before_and_after(write, cluster)
            if before is None:
                return
            self.judged(cluster)
            self.check_labels(write, cluster, before, after)
            self.check_annotations(write, before, after)
        elif write.kind == "configmaps" and write.namespace != "gpu-sharing-operator":
            self.judged(cluster)
            before = cluster.all("configmaps").get(write.key) or {}
            for key in differing(before.get("data") or {}, write.response.get("data") or {}):
                if not key.startswith("gso-"):
                    self.violated(write, f"key {key} of a ConfigMap is not the operator's")
        elif write.kind == "daemonsets":
            self.judged(cluster)
            self.check_daemonset(write, cluster)

    def check_labels(self, write, cluster, before, after):
        nfd = (annotations(before).get("nfd.node.kubernetes.io/feature-labels") or "").split(",")
        for key in differing(labels(before), labels(after)):
            if key.startswith("gpusharing.dev/") and key != "gpusharing.dev/hold":
                continue
            writer = cluster.label_writer.get((write.name, key))
            takes_over = key == CONFIG_LABEL and any(
                (p.get("spec") or {}).get("takeover") for p in cluster.all("sharingpolicies").values())
            if key in nfd or key.startswith("nvidia.com/gpu.deploy."):
                self.violated(write, f"label {key} belongs to NFD or the GPU Operator")
            elif not key.startswith("nvidia.com/") and key != "nvidia.mps/enabled":
                self.violated(write, f"label {key} is none that the operator writes")
            elif key in labels(before) and writer != cluster.account and not takes_over:
                self.violated(write, f"label {key}={labels(before)[key]} was written by {writer}")

    def check_annotations(self, write, before, after):
        for key in differing(annotations(before), annotations(after)):
            if key in PEOPLES:
                self.violated(write, f"annotation {key} is for people to write")
            if key.startswith("gpusharing.dev/"):
                continue
            guards = (change_of(before).get("guards") or []) + (change_of(after).get("guards") or [])
            name = key.split("/")[0].split(".")[0]
            if key not in GUARDS or name not in guards:
                self.violated(write, f"annotation {key} is not the operator's")
            elif key in annotations(before) and name not in (change_of(before).get("guards") or []):
                self.violated(write, f"annotation {key} was there before the operator's change")

    def check_daemonset(self, write, cluster):
        before = cluster.all("daemonsets").get(write.key) or {}

        def without_mark(daemonset):
            spec = dict(daemonset.get("spec") or {})
            template = dict(spec.get("template") or {})
            meta = dict(template.get("metadata") or {})
            meta["annotations"] = {k: v for k, v in (meta.get("annotations") or {}).items()
                                   if k != "gpusharing.dev/restarted-for"}
            return {**spec, "template": {**template, "metadata": meta}}

        if write.verb != "patch" or without_mark(before) != without_mark(write.response):
            self.violated(write, "more of a DaemonSet was changed than gpusharing.dev/restarted-for")


class Cordons(NodeRule):
    number, title = "S7", "only the operator's own cordon is lifted, no taint is set, and no holder is overridden"

    def judge_node(self, write, before, after, cluster):
        self.judged(cluster)
        body = write.request
        if is_cordoned(before) != is_cordoned(after) and "resourceVersion" not in metadata(body):
            self.violated(write, "spec.unschedulable was changed without a resourceVersion")
        if is_cordoned(before) and not is_cordoned(after):
            if cluster.cordoned_by.get(write.name) != cluster.account:
                self.violated(write, f"node {write.name} was cordoned by {cluster.cordoned_by.get(write.name)}")
            if ("held", write.name) in cluster.since:
                self.violated(write, f"node {write.name} was uncordoned while gpusharing.dev/hold is set")
            if cluster.holds_since(("quarantined", write.name), write.received - LAG):
                self.violated(write, f"node {write.name} was uncordoned while it is quarantined")
        for field in differing(before.get("spec") or {}, after.get("spec") or {}):
            if field != "unschedulable":
                self.violated(write, f"spec.{field} of node {write.name} was changed")


class Baseline(NodeRule):
    number, title = "S9", "nothing starts that no change since the operator's baseline can have asked for"

    def judge_node(self, write, before, after, cluster):
        if not starts_change(before, after):
            return
        self.judged(cluster)
        change = change_of(after)
        if cluster.baseline is None:
            self.violated(write, "a change began before the operator had a record")
        elif cluster.input_changed <= cluster.baseline:
            self.violated(write, "a change began, and nobody had changed anything since the record was made")
        loaded = annotations(before).get("gpusharing.dev/revision")
        whole = not cluster.is_known_unavailable(write.name, write.received)
        if whole and change.get("cause") == "edited" and loaded and loaded == change.get("to") == change.get("from"):
            self.violated(write, f"node {write.name} serves {loaded} and is restarted into it again")


class Stops(Rule):
    number, title = "S10", "nothing starts while it is paused, aborted, held, not approved, outside its windows, or in mode Observe"

    def judge(self, write, cluster):
        change, node = begins(write, cluster)
        if not change:
            return
        self.judged(cluster)
        moment = write.received - LAG
        policy, key = change.get("policy"), change.get("key")
        which = (policy, change.get("configMap"), key, change.get("to"))
        stops = [("held", node), ("quarantined", node), ("policy paused", policy), ("Observe", policy),
                 ("paused", which), ("aborted", which), ("configmap paused", change.get("configMap"))]
        for stop in stops:
            if cluster.holds_since(stop, moment):
                self.violated(write, f"node {node} was disrupted: {stop[0]}")
        # What only brings a node back to the revision that is recorded needs no approval.
        repaired = change.get("from") == change.get("to")
        if cluster.holds_since(("Approve", policy), moment) and not repaired and ("approved", which) not in cluster.since:
            self.violated(write, f"node {node} was disrupted: mode Approve, and not approved")
        windows = ((cluster.last_specs.get(policy) or {}).get("rollout") or {}).get("maintenanceWindows")
        if cluster.holds_since(("spec", policy), moment) and all_closed(windows, moment) and all_closed(windows, write.received):
            self.violated(write, f"node {node} was disrupted: no maintenance window of policy {policy} is open")
        if cluster.settings.get("max-mode") == "Observe":
            self.violated(write, f"node {node} was disrupted: the operator's own limit is Observe")


class Verified(NodeRule):
    number, title = "S11", "a change that is recorded as done has new, Ready pods on a Ready node with GPUs"

    def judge_node(self, write, before, after, cluster):
        if not change_of(before) or change_of(after):
            return
        change = change_of(before)
        recorded = annotations(after).get("gpusharing.dev/revision")
        if recorded == annotations(before).get("gpusharing.dev/revision") or recorded != change.get("to"):
            return
        self.judged(cluster)
        if "unreadable" in change:
            return self.violated(write, f"node {write.name} is done with a change that cannot be read")
        for uid in listed_uids(change):
            pod = cluster.pod_with(uid)
            if pod is not None:
                self.violated(write, f"node {write.name} is done, and pod {metadata(pod)['name']} is still there")
        pods = [p for p in cluster.pods_on(write.name) if not is_terminating(p)]
        if change.get("pods") and not any(component_of(p) == "plugin" and is_true(p, "Ready") for p in pods):
            self.violated(write, f"node {write.name} is done without a Ready device plugin")
        if not is_true(before, "Ready") or not serves_gpus(before):
            self.violated(write, f"node {write.name} is done: not Ready, or without GPUs {amounts(before, 'allocatable')}")


class FewPatches(NodeRule):
    number, title = "S6b", "a change takes two PATCHes of its Node, one for a label, and one for each new list"

    def __init__(self):
        super().__init__()
        self.patches = {}  # Node -> PATCHes of the change under way, and lists.

    def judge_node(self, write, before, after, cluster):
        if not (change_of(before) or change_of(after)):
            return
        self.judged(cluster)
        if starts_change(before, after):
            self.patches[write.name] = [0, 0]
        count = self.patches.setdefault(write.name, [0, 0])
        count[0] += 1
        if CHANGE in differing(annotations(before), annotations(after)) and change_of(before) and change_of(after):
            count[1] += 1
        if count[0] > 3 + count[1]:
            self.violated(write, f"PATCH {count[0]} of node {write.name} in one change")
