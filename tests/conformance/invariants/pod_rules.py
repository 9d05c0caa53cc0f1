"""S2, S5 and S8: which pods the operator removes, and when."""
from audit_log import metadata
from cluster import (RESERVATIONS, annotations, change_of, component_of, controller_of, is_switched_on, is_true, listed_uids,
                     profile_error, says_no, serves_gpus, shares_by_replicas, uses_gpu)
from node_rules import before_and_after, begins, is_node_write, starts_change
from rules import LAG, Rule

OPERATOR = "gpu-sharing-operator"
KEEPERS = {"cluster-autoscaler.kubernetes.io/safe-to-evict": says_no, "karpenter.sh/do-not-disrupt": is_switched_on,
           "gpusharing.dev/do-not-disrupt": is_switched_on}
THROUGH_MPS = ("enter-mps", "change-mps", "leave-mps")


def is_deletion(write):
    return write.kind == "pods" and write.verb in ("delete", "deletecollection")


def node_of(pod):
    return (pod.get("spec") or {}).get("nodeName", "")


def is_operand(pod, cluster):
    """Of a DaemonSet that is there, by its uid."""
    owner = controller_of(pod)
    known = {metadata(d).get("uid") for d in cluster.all("daemonsets").values()}
    return component_of(pod) is not None and owner.get("kind") == "DaemonSet" and owner.get("uid") in known


class Deletions(Rule):
    number, title = "S2", "only operand pods and reservation pods are deleted, by uid, and as the node's change lists them"

    def judge(self, write, cluster):
        if write.resource == "pods" and write.verb in ("create", "patch", "update") and not write.subresource:
            self.judged(cluster)
            self.violated(write, "the operator wrote a pod")
        if not is_deletion(write):
            return
        self.judged(cluster)
        pod = cluster.all("pods").get(write.key)
        if pod is None:
            return self.violated(write, "a pod was deleted that the log does not know")
        uid = (write.request.get("preconditions") or {}).get("uid")
        if not uid:
            self.violated(write, "a pod was deleted without a uid precondition")
        if write.namespace == RESERVATIONS:
            return
        if not is_operand(pod, cluster):
            return self.violated(write, "the pod belongs to no DaemonSet of the device plugin, GFD or MPS")
        node = cluster.node(node_of(pod)) or {}
        change = change_of(node)
        if metadata(pod).get("uid") in listed_uids(change):
            return
        # What is left is the remediation of a stuck pod, which costs nobody anything.
        component = component_of(pod)
        if is_true(pod, "Ready"):
            self.violated(write, f"a Ready pod of node {node_of(pod)} was deleted that its change does not list")
        elif component != "gfd" and serves_gpus(node) and component not in (change.get("pods") or {}):
            self.violated(write, f"node {node_of(pod)} serves GPUs, and lost a pod that no change lists")


def protected_namespaces(cluster):
    operands = {namespace for (namespace, _), daemonset in cluster.all("daemonsets").items()
                if component_of((daemonset.get("spec") or {}).get("template") or {}) is not None}
    return operands | {"kube-system", "kai-scheduler", RESERVATIONS, OPERATOR}


class Evictions(Rule):
    number, title = "S2b", "only consumers of a node being drained are evicted: where a policy says Evict, by uid, and none that must stay"

    def judge(self, write, cluster):
        if write.kind != "pods/eviction":
            return
        self.judged(cluster)
        pod = cluster.all("pods").get(write.key)
        if pod is None:
            return self.violated(write, "a pod was evicted that the log does not know")
        options = write.request.get("deleteOptions") or {}
        if not (options.get("preconditions") or {}).get("uid"):
            self.violated(write, "a pod was evicted without a uid precondition")
        if not uses_gpu(pod):
            self.violated(write, "the pod uses no GPU")
        if controller_of(pod).get("kind") == "DaemonSet":
            self.violated(write, "the pod is a DaemonSet's")
        if write.namespace in protected_namespaces(cluster):
            self.violated(write, f"namespace {write.namespace} is the cluster's, the device plugin's, KAI's or the operator's")
        change = change_of(cluster.node(node_of(pod)) or {})
        if cluster.holds_since(("takes pods", node_of(pod)), write.received - LAG):
            self.violated(write, f"node {node_of(pod)} is not being drained: it takes new pods")
        policy = change.get("policy", "")
        rollout = (cluster.last_specs.get(policy) or {}).get("rollout") or {}
        if not change:
            self.violated(write, f"node {node_of(pod)} is in no change")
        elif rollout.get("workloads") != "Evict":
            self.violated(write, f"policy {policy} says workloads: {rollout.get('workloads')}")
        elif not controller_of(pod) and not rollout.get("evictBarePods"):
            self.violated(write, "the pod has no controller, and the policy does not say evictBarePods")
        for key, keeps in KEEPERS.items():
            value = annotations(pod).get(key, "")
            if keeps(value):
                self.violated(write, f"the pod carries {key}={value}")


class RunningClients(Rule):
    number, title = "S2c", "no pod of a change through MPS goes under running clients, but where a policy says Interrupt"

    def judge(self, write, cluster):
        pod = cluster.all("pods").get(write.key)
        if not is_deletion(write) or pod is None:
            return
        change = change_of(cluster.node(node_of(pod)) or {})
        policy = change.get("policy", "")
        rollout = (cluster.last_specs.get(policy) or {}).get("rollout") or {}
        if change.get("kind") not in THROUGH_MPS or metadata(pod).get("uid") not in listed_uids(change):
            return
        if rollout.get("workloads") == "Interrupt":
            return
        self.judged(cluster)
        for client in cluster.pods_on(node_of(pod)):
            key = (metadata(client).get("namespace", ""), metadata(client)["name"])
            of_daemonset = controller_of(client).get("kind") == "DaemonSet"
            if not of_daemonset and cluster.holds_since(("uses", key), write.received - LAG):
                self.violated(write, f"client {'/'.join(key)} runs on node {node_of(pod)}")


class ValidTargets(Rule):
    number, title = "S5", "no node is restarted into a profile that is missing or plainly invalid"

    def judge(self, write, cluster):
        change = {}
        if is_node_write(write):
            before, after = before_and_after(write, cluster)
            change = change_of(after) if before is not None and starts_change(before, after) else {}
        elif is_deletion(write):
            pod = cluster.all("pods").get(write.key) or {}
            change = change_of(cluster.node(node_of(pod)) or {})
        if not change.get("key"):
            return  # A node that goes back to no sharing at all, or a remedy.
        self.judged(cluster)
        edited = cluster.since.get(("text", change.get("configMap"), change["key"]), 0)
        error = profile_error(cluster.profile_text(change))
        if error and edited <= write.received - LAG:
            self.violated(write, f"{change.get('configMap')} key {change['key']}: {error}")


class KaiNodes(Rule):
    number, title = "S8", "no roll to replica sharing begins or takes its first pod on a node whose GPUs KAI shares"

    def judge(self, write, cluster):
        if not cluster.kai_on(None):
            return
        change, node = begins(write, cluster)
        if not change:
            return
        self.judged(cluster)
        if not shares_by_replicas(cluster.profile_text(change)):
            return
        for what in cluster.kai_on(node, since=write.received - LAG):
            self.violated(write, f"{what} node {node}")
