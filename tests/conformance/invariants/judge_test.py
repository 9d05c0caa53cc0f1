#!/usr/bin/env python3
"""Each rule of the judge can fail, and none fails on an operator that does as it should: on made-up audit lines."""
import json
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True

import judge
from audit_log import read
from made_up_log import OPERATOR, MadeUpLog

UNAVAILABLE = {"nvidia.com/gpu": "0"}
UNFIT = "version: v1\\nsharing: {mps: {resources: [{name: a, replicas: 1}]}}"

# What happens, how the policy's `rollout` is, the rules that are judged, and what one of them says. A step is a function of
# Story below with its arguments, by default of node n1; the operator's are those of MadeUpLog.
HOLDS = [
    ("a change of a node", {}, "start; replace_pods; finish; start n2", "S1 S2 S2c S3 S4 S4b S5 S6 S6b S7 S9 S10 S11"),
    ("an eviction as the policy wants it", {"workloads": "Evict"}, "client; start; evict train; gone; replace_pods", "S2b S2c"),
    ("answers with the metadata alone", {}, "start; replace_pods; finish; start n2; answered_with_metadata", "S1 S2 S3 S6"),
    ("writes are ordered by revision and not by when they ended", {}, "start; replace_pods; finish; start n2; finish_logged_last", "S1"),
    ("an unavailable node needs no slot", {}, "unavailable; wait 5; start", ""),
    ("an outage that nobody can know of yet", {}, "not_ready n2; start", ""),
    ("one node of a group", {"maxUnavailable": "100%", "maxUnavailablePerGroup": "25%"}, "no_flags; start", "S1"),
    ("an autoscaler's annotation of a change that says so", {}, "start n1 guards=karpenter; guard", "S3"),
    ("a write that frees an object of its last finalizer", {}, "last_finalizer", ""),
    ("a write within the grace of a deleted policy", {}, "team_deleted; settled; wait 31; renew_lease; annotate gpusharing.dev/message a", ""),
    ("a patch that changed nothing and was answered first is not the one that cordoned", {},
     "start; answered_before_the_start; replace_pods; finish", "S7"),
    ("the operator's cordon, whose answer is missing", {}, "start n1 unanswered=504; tainted; replace_pods; finish", "S7"),
    ("the operator's cordon, of whose answer nothing came", {}, "start n1 unanswered=200; tainted; replace_pods; finish", "S7"),
    ("a start beside KAI's pods", {}, "reserved n2 r; start", "S8"),
    ("a start under a pod that only has KAI's marks", {}, "reserved n2 r; marked_by_a_stranger; start", "S8"),
    ("what came after the first deletion or has ended", {},
     "reserved n2 elsewhere; reserved n1 done Succeeded; binding n1 failed Failed; reserved n1 off; gone kai-resource-reservation off; start; "
     "delete n1 mps; reserved n1 late; delete n1 plugin", "S8"),
    ("a change that shares by no replicas under KAI", {}, "edit version:_v1; reserved n1 r; start", "S8"),
    ("a node with a deleted pod is finished", {}, "start; delete n1 mps; paused; wait 5; delete n1 plugin", "S10"),
    *[("a start in the window " + cron, {}, "window %s; start" % cron.replace(" ", "_"), "S10")
      for cron in ("0 20 * * *", "0 20 * * MON-FRI", "*/20 20 28 MAY *")],
    ("a node that served before stops the rollout", {}, "start; failed; stopped", "S12"),
    ("a deletion of a rollout that a status answers is no stop", {}, "start; failed; stopped; rollout_deleted", "S12"),
    ("done with pods whose predecessors went in lines that a killed server lost", {},
     "start; operand n1 plugin new; operand n1 gfd new; operand n1 mps new; finish", "S11"),
]
EVICT = {"workloads": "Evict"}
BREAKS = [
    ("an answer with the metadata alone hides nothing", {}, "start; start n2; answered_with_metadata", "S1", "n2"),
    ("a second node beyond the budget", {}, "start; start n2", "S1", "2 nodes of policy default are out of service or in a change, 1 may be: n1, n2"),
    ("a node beside one that is out of service", {}, "not_ready n2; wait 5; start", "S1", "n1, n2"),
    ("the group's budget", {"maxUnavailable": "100%", "maxUnavailablePerGroup": "25%"}, "no_flags; start; start n2", "S1", "2 nodes of group T4 any"),
    ("a deletion without a uid", {}, "start; delete n1 plugin without_uid", "S2", "without a uid precondition"),
    ("a pod that the change does not list", {}, "start; delete n2 plugin", "S2", "that its change does not list"),
    ("a pod of nobody's DaemonSet", {}, "client; start; delete_client", "S2", "belongs to no DaemonSet"),
    ("a pod of a DaemonSet that is gone", {}, "start; daemonset_gone; delete n1 plugin", "S2", "belongs to no DaemonSet"),
    ("a stuck pod of a node that serves", {}, "operand n1 plugin old stuck; delete n1 plugin", "S2", "serves GPUs, and lost a pod"),
    ("an eviction that no policy allows", {}, "client; start; evict train", "S2b", "workloads: WaitForIdle"),
    ("an eviction without a uid", EVICT, "client; start; evict train without_uid", "S2b", "without a uid"),
    *[("an eviction of a pod with %s=%s" % mark, EVICT, "client n1 train team %s=%s; start; evict train" % mark, "S2b", "%s=%s" % mark)
      for mark in (("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"), ("cluster-autoscaler.kubernetes.io/safe-to-evict", "False"),
                   ("karpenter.sh/do-not-disrupt", "true"), ("gpusharing.dev/do-not-disrupt", "yes"))],
    *[("an eviction from namespace " + ns, EVICT, "client n1 train %s; start; evict train %s" % (ns, ns), "S2b", "namespace %s is the cluster's" % ns)
      for ns in ("kube-system", "gpu-operator", "gpu-sharing-operator", "kai-resource-reservation")],
    ("an eviction from a node that is in no change", EVICT, "client; evict train", "S2b", "node n1 is in no change"),
    ("an eviction from a node that a person has uncordoned", EVICT, "client; start; uncordoned; wait 5; evict train", "S2b",
     "node n1 is not being drained"),
    ("an eviction of a pod that uses no GPU", EVICT, "web; start; evict web", "S2b", "the pod uses no GPU"),
    ("a running client under a change through MPS", {}, "client; wait 5; start; delete n1 mps", "S2c", "client team/train runs on node n1"),
    ("a label that another has written", {}, "label nvidia.com/gpu.product A100", "S3", "nvidia.com/gpu.product=T4 was written by admin"),
    ("a label that is none of the operator's", {}, "label team a", "S3", "label team is none"),
    ("a label of NFD", {}, "annotate nfd.node.kubernetes.io/feature-labels nvidia.com/x nfd; label nvidia.com/x 1", "S3", "belongs to NFD"),
    ("an autoscaler's annotation of a change that does not say so", {}, "start; guard", "S3",
     "annotation karpenter.sh/do-not-disrupt is not the operator's"),
    ("an annotation that is for people", {}, "annotate gpusharing.dev/hold true", "S3", "is for people"),
    ("a DaemonSet's image", {}, "image", "S3", "more of a DaemonSet"),
    ("a key of a person's ConfigMap", {}, "config_map_emptied operator", "S3", "key any of a ConfigMap"),
    ("a write without the Lease", {}, "lease_given_back; label gpusharing.dev/state Blocked", "S4", "nobody holds the Lease"),
    ("a write after the Lease ran out", {}, "wait 60; label gpusharing.dev/state Blocked", "S4", "ran out"),
    ("a disruption without a watch", {}, "watch_ended; start", "S4b", "no open watch of pods"),
    ("a restart into version v2", {}, "edit version:_v2; start", "S5", "version is v2"),
    ("a restart into no YAML", {}, "edit a:_[; start", "S5", "no YAML"),
    ("a restart into one replica", {}, "edit %s; start" % UNFIT.replace(" ", "_"), "S5", "1 replicas"),
    ("a restart into a key that is gone", {}, "start; config_map_emptied admin; wait 5; delete n1 plugin", "S5", "its key is missing"),
    ("a write that changes nothing", {}, "written_again", "S6", "changed nothing"),
    ("an eviction of a pod that ends already", EVICT, "client; start; evict train; evict train", "S6", "ending already"),
    ("a write into a quiet cluster", {}, "settled; wait 20; renew_lease; annotate gpusharing.dev/message a", "S6", "nothing had changed for 20 s"),
    ("a write after the grace of a deleted policy", {}, "team_deleted; settled; wait 50; renew_lease; annotate gpusharing.dev/message a", "S6",
     "nothing had changed for 20 s"),
    ("too many patches in one change", {}, "start; annotate gpusharing.dev/message 0; annotate gpusharing.dev/message 1; "
     "annotate gpusharing.dev/message 2", "S6b", "PATCH 4 of node n1"),
    *[("somebody else's cordon, answered with %d" % code, {}, "cordoned %d; tainted; start; replace_pods; finish" % code, "S7",
       "was cordoned by admin") for code in (0, 504, 200)],
    ("a cordon without a resourceVersion", {}, "cordoned_blindly", "S7", "without a resourceVersion"),
    ("an uncordoning of a held node", {}, "start; annotate gpusharing.dev/hold true admin; finish", "S7", "gpusharing.dev/hold is set"),
    ("an uncordoning of a quarantined node", {}, "start; label dgxc.nvidia.com/nvsentinel-state draining nvsentinel; wait 5; finish", "S7",
     "while it is quarantined"),
    ("a taint", {}, "taint", "S7", "spec.taints"),
    ("a start under KAI's pod", {}, "reserved n2 r; reserved n3 q; start n3", "S8", "KAI's pod kai-resource-reservation/q is on node n3"),
    ("a start under a fraction pod that was bound by its binding", {}, "fraction_bound; start", "S8", "KAI's pod team/fraction is on node n1"),
    ("a start under a BindRequest", {}, "binding n1 b; start", "S8", "BindRequest team/b is for node n1"),
    ("a first deletion under KAI's pod", {}, "start; reserved n1 late; delete n1 mps", "S8", "late"),
    ("a first deletion under a BindRequest", {}, "start; binding n1 late; delete n1 mps", "S8", "late"),
    ("a start before the record", {}, "record_gone; start", "S9", "before the operator had a record"),
    ("a second restart into what runs", {}, "start; replace_pods; finish; start n1 from=v1-b", "S9", "restarted into it again"),
    *[("a start in spite of " + stop, {}, stop + "; wait 5; start", "S10", text) for stop, text in (
        ("annotate gpusharing.dev/hold true admin", "held"), ("disrupted", "quarantined"), ("config_map_paused", "configmap paused"),
        ("mode Observe", "Observe"), ("mode Approve", "not approved"), ("switched paused", "paused"), ("switched aborted", "aborted"),
        ("paused", "policy paused"))],
    ("a first deletion after a stop", {}, "start; paused; wait 5; delete n1 plugin", "S10", "policy paused"),
    *[("a start outside the window " + cron, {}, "window %s; start" % cron.replace(" ", "_"), "S10", "no maintenance window")
      for cron in ("0 2 * * *", "0 20 * * SAT,SUN", "0 20 1-15 * *", "at night")],
    ("a first deletion after the window has closed", {}, "window 0_20_*_*_*; start; wait 2100; renew_lease; delete n1 plugin", "S10",
     "no maintenance window"),
    ("a node that served nothing before stops the rollout", {}, "unavailable; wait 5; start; failed; stopped", "S12", "n1 served no GPU before"),
    ("done with an old pod", {}, "start; finish", "S11", "is still there"),
    ("done without a plugin", {}, "start; delete n1 plugin; delete n1 gfd; delete n1 mps; operand n1 plugin new stuck; finish", "S11",
     "without a Ready device plugin"),
    ("done without GPUs", {}, "start; replace_pods; unavailable; finish", "S11", "without GPUs"),
]


def set_on(*path):
    """An edit of an object: the last of the path is put where the others lead."""
    *keys, last, value = path

    def edit(thing):
        for key in keys:
            thing = thing.setdefault(key, {})
        thing[last] = value
    return edit


class Story(MadeUpLog):
    """The words of the tables."""

    def __init__(self, steps="", edited=True, **rollout):
        super().__init__()
        self.install(**rollout)
        if edited:
            self.edit()
        for step in filter(None, steps.split("; ")):
            verb, *words = step.split(" ")
            more = dict(word.split("=", 1) for word in words if "=" in word and verb not in ("edit", "window"))
            plain = [word for word in words if "=" not in word or verb in ("edit", "window")]
            getattr(self, verb)(*plain, **more)

    # --- Those of MadeUpLog, with numbers and lists for words.
    def start(self, name="n1", guards="", unanswered=0, **more):
        super().start(name, unanswered=int(unanswered), **({"guards": [guards]} if guards else {}), **more)

    def replace_pods(self, name="n1"):
        super().replace_pods(name)

    def finish(self, name="n1"):
        super().finish(name)

    def client(self, node="n1", name="train", namespace="team", **annotations):
        super().client(node, name, namespace, **annotations)

    def wait(self, seconds):
        super().wait(float(seconds))

    def delete(self, name, component, how=""):
        super().delete(name, component, {} if how else None)

    def operand(self, node, component, age, ready=True):
        super().operand(node, component, age, ready is True)

    def evict(self, name, namespace="team"):
        super().evict(name, {} if namespace == "without_uid" else None, namespace="team" if namespace == "without_uid" else namespace)

    def edit(self, text=None):
        super().edit(*([text.replace("_", " ").replace("\\n", "\n")] if text else []))

    # --- People and programs beside the operator; `user`: who does it.
    def patch_policy(self, edit):
        policy = self.get("sharingpolicies", "", "default")
        edit(policy)
        self.put("sharingpolicies", "", "default", policy)

    def label(self, key, value, user=OPERATOR):
        self.patch_node("n1", set_on("metadata", "labels", key, value), user=user)

    def annotate(self, key, value, user=OPERATOR):
        self.patch_node("n1", set_on("metadata", "annotations", key, value), user=user)

    def guard(self):
        self.patch_node("n1", set_on("metadata", "annotations", "karpenter.sh/do-not-disrupt", "true"))

    def unavailable(self):
        self.patch_node("n1", set_on("status", "allocatable", UNAVAILABLE), user="kubelet")

    def not_ready(self, name):
        self.patch_node(name, set_on("status", "conditions", []), user="kubelet")

    def taint(self):
        self.patch_node("n1", set_on("spec", "taints", [{"key": "a"}]))

    def disrupted(self):
        self.patch_node("n1", set_on("spec", "taints", [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]), user="karpenter")

    def tainted(self):
        taints = {"taints": [{"key": "unschedulable"}]}
        self.patch_node("n1", set_on("spec", "taints", taints["taints"]), user="node-controller", request={"spec": taints})

    def cordoned(self, code):
        self.patch_node("n1", set_on("spec", "unschedulable", True), user="admin", unanswered=int(code))

    def cordoned_blindly(self):
        self.patch_node("n1", set_on("spec", "unschedulable", True), request={"spec": {"unschedulable": True}})

    def uncordoned(self):
        self.patch_node("n1", set_on("spec", "unschedulable", False), user="admin")

    def gone(self, namespace="team", name="train"):
        self.remove("pods", namespace, name)

    def delete_client(self):
        self.remove("pods", "team", "train", OPERATOR, {"preconditions": {"uid": "uid-train"}})

    def daemonset_gone(self):
        self.remove("daemonsets", "gpu-operator", "plugin")

    def record_gone(self):
        self.remove("configmaps", "gpu-sharing-operator", "gpu-sharing-operator-state")

    def web(self):
        self.put("pods", "team", "web", {"spec": {"nodeName": "n1", "containers": [{"name": "c"}]}, "status": {"phase": "Running"}})

    def image(self):
        self.put("daemonsets", "gpu-operator", "plugin", {"spec": {"template": {"image": "x"}}}, user=OPERATOR)

    def config_map_emptied(self, user):
        self.put("configmaps", "gpu-operator", "mps-config", {"data": {}}, user=OPERATOR if user == "operator" else user)

    def config_map_paused(self):
        config_map = self.get("configmaps", "gpu-operator", "mps-config")
        config_map["metadata"]["annotations"] = {"gpusharing.dev/paused": "true"}
        self.put("configmaps", "gpu-operator", "mps-config", config_map)

    def no_flags(self):
        self.put("configmaps", "default", "operator-settings", {"data": {}})

    def lease_given_back(self):
        self.renew_lease(holder="")

    def watch_ended(self):
        self.event(OPERATOR, "watch", {"resource": "pods"}, audit_id="watch-pods")

    def mode(self, mode):
        self.patch_policy(set_on("spec", "mode", mode))

    def paused(self):
        self.edit_policy(paused=True)

    def window(self, cron):
        """The log's first moment is a Thursday, 2026-05-28 20:26 UTC."""
        self.edit_policy(maintenanceWindows=[{"cron": cron.replace("_", " "), "duration": "1h"}])
        self.wait(5)

    def settled(self):
        self.patch_policy(set_on("status", {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]}))

    def team_deleted(self):
        self.put("sharingpolicies", "", "team", {"spec": {}})
        self.remove("sharingpolicies", "", "team")

    def last_finalizer(self):
        self.patch_policy(lambda policy: policy["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["gpusharing.dev/revert"]))
        policy = self.get("sharingpolicies", "", "default")
        policy["metadata"]["finalizers"] = []
        self.write(OPERATOR, "patch", "sharingpolicies", "", "default", {}, policy)

    def written_again(self):
        self.write(OPERATOR, "patch", "nodes", "", "n1", {}, self.get("nodes", "", "n1"))

    # --- KAI.
    def reserved(self, node, name, phase=""):
        self.put("pods", "kai-resource-reservation", name, {"spec": {"nodeName": node}, "status": {"phase": phase} if phase else {}})
        self.wait(5)

    def binding(self, node, name, phase=""):
        self.put("bindrequests", "team", name, {"spec": {"selectedNode": node}, "status": {"phase": phase} if phase else {}})
        self.wait(5)

    def marked_by_a_stranger(self):
        self.put("pods", "team", "pause", {"metadata": {"annotations": {"gpu-fraction": "0.5"}}, "spec": {"nodeName": "n1"}})
        self.wait(5)

    def fraction_bound(self):
        self.put("pods", "team", "fraction", {"metadata": {"annotations": {"gpu-fraction": "0.5"}}, "spec": {"schedulerName": "kai-scheduler"}})
        self.write("binder", "create", "pods/binding", "team", "fraction", {"target": {"name": "n1"}}, {"kind": "Status"}, 201)
        self.wait(5)

    # --- SharingRollouts.
    def rollout(self, user="admin", **parts):
        spec = {"policy": "default", "configMap": "gpu-operator/mps-config", "key": "any", "toRevision": "v1-b", **parts.pop("spec", {})}
        self.put("sharingrollouts", "", "r", {"spec": spec, **parts}, user=user)

    def switched(self, name):
        self.rollout(spec={name: True})

    def failed(self):
        change = json.loads(self.get("nodes", "", "n1")["metadata"]["annotations"]["gpusharing.dev/change"])
        self.annotate("gpusharing.dev/change", json.dumps({**change, "failed": {"why": "no plugin"}}))

    def stopped(self):
        condition = {"type": "Progressing", "status": "False", "reason": "MaxFailures"}
        self.rollout(OPERATOR, status={"phase": "Paused", "conditions": [condition]})

    def rollout_deleted(self):
        self.write(OPERATOR, "delete", "sharingrollouts", "", "r", {}, {"kind": "Status", "status": "Success"})

    # --- The log itself.
    def answered_with_metadata(self):
        """As the API server answers the operator's merge patches of Nodes."""
        for i, line in enumerate(self.lines):
            event = json.loads(line)
            of_operator = event["user"]["username"] == OPERATOR and event["objectRef"].get("resource") == "nodes"
            if of_operator and event["verb"] == "patch":
                event["responseObject"] = {"kind": "PartialObjectMetadata", "metadata": event["responseObject"]["metadata"]}
                self.lines[i] = json.dumps(event)

    def finish_logged_last(self):
        ended = next(i for i, line in enumerate(self.lines) if "v1-b" in line and '"name": "n1"' in line and "Updating" not in line)
        self.lines.append(self.lines.pop(ended))

    def answered_before_the_start(self):
        started = json.loads(self.lines[-1])
        self.event("node-controller", "patch", started["objectRef"], requestObject={"spec": {"taints": []}},
                   responseObject=started["responseObject"])
        self.lines[-2:] = [self.lines[-1], json.dumps({**started, "stageTimestamp": self.time(self.now + 0.005)})]


def judged(log):
    with tempfile.NamedTemporaryFile("w", suffix=".log") as file:
        file.write("\n".join(log.lines) + "\n")
        file.flush()
        writes, watches = read(file.name, OPERATOR)
    rules = judge.all_rules(watches)
    judge.judge(writes, rules, OPERATOR)
    return {rule.number: rule for rule in rules}


class JudgeTest(unittest.TestCase):
    def breaks(self, log, number, text):
        rules = judged(log)
        said = [violation for rule in rules.values() for violation in rule.violations]
        self.assertTrue(rules[number].violations, f"{number} was not broken; broken: {said}")
        self.assertIn(text, "\n".join(rules[number].violations))

    def test_none_fails_on_an_operator_that_does_as_it_should(self):
        for name, rollout, steps, numbers in HOLDS:
            with self.subTest(name):
                rules = judged(Story(steps, **rollout))
                self.assertEqual([violation for rule in rules.values() for violation in rule.violations], [])
                for number in numbers.split():
                    self.assertGreater(rules[number].total, 0, number)

    def test_each_rule_can_fail(self):
        for name, rollout, steps, number, text in BREAKS:
            with self.subTest(name):
                self.breaks(Story(steps, **rollout), number, text)
        self.breaks(Story("start", edited=False), "S9", "nobody had changed anything")
        self.assertEqual({rule.number for rule in judge.all_rules()} - {row[3] for row in BREAKS}, set())

    def test_a_rule_that_has_judged_nothing_says_so(self):
        self.assertEqual(judged(Story())["S8"].total, 0)

    def test_an_eviction_that_a_budget_refuses_is_no_write(self):
        log = Story("client", workloads="Evict")
        MadeUpLog.evict(log, "train", code=429)
        self.assertEqual(judged(log)["S2b"].total, 0)


if __name__ == "__main__":
    unittest.main()
