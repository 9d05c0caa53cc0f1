#!/usr/bin/env python3
"""Each rule of the judge can fail, and none fails on an operator that does as it should: on made-up audit lines. Pods,
evictions, labels, leases and cordons; judge_rollouts_test.py has the rest."""
import json
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True

import judge
from judged_log import JudgedLog, set_on
from made_up_log import OPERATOR, MadeUpLog


class JudgeTest(JudgedLog):
    def test_every_rule_is_broken_by_a_test_of_its_own(self):
        here = pathlib.Path(__file__).parent
        text = "".join(path.read_text(encoding="utf-8") for path in here.glob("judge*_test.py"))
        for rule in judge.all_rules():
            self.assertIn(f'self.breaks("{rule.number}", ', text)

    # --- As it should be.
    def test_answers_with_the_metadata_alone_leave_the_rest_of_the_object(self):
        log = self.begin()
        log.start("n1")
        log.replace_pods("n1")
        log.finish("n1")
        log.start("n2")
        self.answer_with_metadata_alone()
        self.holds("S1", "S2", "S3", "S6")

    def test_an_answer_with_the_metadata_alone_hides_no_violation(self):
        log = self.begin()
        log.start("n1")
        log.start("n2")
        self.answer_with_metadata_alone()
        self.breaks("S1", "n2")

    def test_a_change_of_a_node_violates_nothing(self):
        log = self.begin()
        log.start("n1")
        log.replace_pods("n1")
        log.finish("n1")
        log.start("n2")
        self.holds("S1", "S2", "S2c", "S3", "S4", "S4b", "S5", "S6", "S6b", "S7", "S9", "S10", "S11")

    def test_an_eviction_as_the_policy_wants_it_violates_nothing(self):
        log = self.begin(workloads="Evict")
        log.client("n1", "train")
        log.start("n1")
        log.evict("train")
        log.remove("pods", "team", "train")
        log.replace_pods("n1")
        self.holds("S2b", "S2c")

    def test_an_eviction_that_a_budget_refuses_is_no_write(self):
        log = self.begin()
        log.client("n1", "train")
        log.evict("train", code=429)
        self.assertEqual(self.judge()["S2b"].total, 0)

    def test_a_rule_that_has_judged_nothing_says_so(self):
        self.begin()
        self.assertEqual(self.judge()["S8"].total, 0)

    def test_writes_are_ordered_by_revision_and_not_by_when_they_ended(self):
        log = self.begin()
        log.start("n1")
        log.replace_pods("n1")
        log.finish("n1")
        log.start("n2")
        ended = next(i for i, line in enumerate(log.lines) if "v1-b" in line and '"name": "n1"' in line and "Updating" not in line)
        log.lines.append(log.lines.pop(ended))
        self.holds("S1")

    def test_an_unavailable_node_needs_no_slot(self):
        log = self.begin()
        log.patch_node("n1", set_on("status", "allocatable", {"nvidia.com/gpu": "0"}), user="kubelet")
        log.wait(5)
        log.start("n1")
        self.holds()

    def test_an_outage_that_nobody_can_know_of_yet_is_no_fault(self):
        log = self.begin()
        log.patch_node("n2", set_on("status", "conditions", []), user="kubelet")
        log.start("n1")
        self.holds()

    # --- S1
    def test_a_second_node_beyond_the_budget(self):
        log = self.begin()
        log.start("n1")
        log.start("n2")
        self.breaks("S1", "2 nodes of policy default are out of service or in a change, 1 may be: n1, n2")

    def test_a_node_beside_one_that_is_out_of_service(self):
        log = self.begin()
        log.patch_node("n2", set_on("status", "conditions", []), user="kubelet")
        log.wait(5)
        log.start("n1")
        self.breaks("S1", "n1, n2")

    def test_the_groups_budget(self):
        log = self.begin(maxUnavailable="100%", maxUnavailablePerGroup="25%")
        log.objects[("configmaps", "default", "operator-settings")]["data"] = {}
        log.put("configmaps", "default", "operator-settings", {"data": {}})
        log.start("n1")
        self.holds("S1")
        log.start("n2")
        self.breaks("S1", "2 nodes of group T4 any")

    # --- S2
    def test_a_deletion_without_a_uid(self):
        log = self.begin()
        log.start("n1")
        log.delete("n1", "plugin", request={})
        self.breaks("S2", "without a uid precondition")

    def test_a_pod_that_the_change_does_not_list(self):
        log = self.begin()
        log.start("n1")
        log.delete("n2", "plugin")
        self.breaks("S2", "that its change does not list")

    def test_a_pod_of_nobodys_daemonset(self):
        log = self.begin()
        log.client("n1", "train")
        log.start("n1")
        log.remove("pods", "team", "train", OPERATOR, {"preconditions": {"uid": "uid-train"}})
        self.breaks("S2", "belongs to no DaemonSet")

    def test_a_pod_of_a_daemonset_that_is_gone(self):
        log = self.begin()
        log.start("n1")
        log.remove("daemonsets", "gpu-operator", "plugin")
        log.delete("n1", "plugin")
        self.breaks("S2", "belongs to no DaemonSet")

    def test_a_stuck_pod_of_a_node_that_serves(self):
        log = self.begin()
        log.operand("n1", "plugin", "old", ready=False)
        log.delete("n1", "plugin")
        self.breaks("S2", "serves GPUs, and lost a pod")

    def test_an_eviction_that_no_policy_allows(self):
        log = self.begin()
        log.client("n1", "train")
        log.start("n1")
        log.evict("train")
        self.breaks("S2b", "workloads: WaitForIdle")

    def test_an_eviction_without_a_uid(self):
        log = self.begin(workloads="Evict")
        log.client("n1", "train")
        log.start("n1")
        log.evict("train", request={})
        self.breaks("S2b", "without a uid")

    def test_an_eviction_of_a_pod_that_says_no(self):
        for key, value in (("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
                           ("cluster-autoscaler.kubernetes.io/safe-to-evict", "False"),
                           ("karpenter.sh/do-not-disrupt", "true"), ("gpusharing.dev/do-not-disrupt", "yes")):
            self.log = MadeUpLog()
            log = self.begin(workloads="Evict")
            log.client("n1", "train", **{key: value})
            log.start("n1")
            log.evict("train")
            self.breaks("S2b", f"{key}={value}")

    def test_an_eviction_from_a_namespace_of_the_system(self):
        for namespace in ("kube-system", "gpu-operator", "gpu-sharing-operator", "kai-resource-reservation"):
            self.log = MadeUpLog()
            log = self.begin(workloads="Evict")
            log.client("n1", "train", namespace)
            log.start("n1")
            log.evict("train", namespace=namespace)
            self.breaks("S2b", f"namespace {namespace} is the cluster's")

    def test_an_eviction_from_a_node_that_is_in_no_change(self):
        log = self.begin(workloads="Evict")
        log.client("n1", "train")
        log.evict("train")
        self.breaks("S2b", "node n1 is in no change")

    def test_an_eviction_from_a_node_that_a_person_has_uncordoned(self):
        log = self.begin(workloads="Evict")
        log.client("n1", "train")
        log.start("n1")
        log.patch_node("n1", set_on("spec", "unschedulable", False), user="admin")
        log.wait(5)
        log.evict("train")
        self.breaks("S2b", "node n1 is not being drained")

    def test_an_eviction_of_a_pod_that_uses_no_gpu(self):
        log = self.begin(workloads="Evict")
        log.put("pods", "team", "web", {"spec": {"nodeName": "n1", "containers": [{"name": "c"}]}, "status": {"phase": "Running"}})
        log.start("n1")
        log.evict("web")
        self.breaks("S2b", "the pod uses no GPU")

    def test_a_running_client_under_a_change_through_mps(self):
        log = self.begin()
        log.client("n1", "train")
        log.wait(5)
        log.start("n1")
        log.delete("n1", "mps")
        self.breaks("S2c", "client team/train runs on node n1")

    # --- S3
    def test_a_label_that_another_has_written(self):
        log = self.begin()
        log.patch_node("n1", set_on("metadata", "labels", "nvidia.com/gpu.product", "A100"))
        self.breaks("S3", "nvidia.com/gpu.product=T4 was written by admin")

    def test_a_label_that_is_none_of_the_operators(self):
        log = self.begin()
        log.patch_node("n1", set_on("metadata", "labels", "team", "a"))
        self.breaks("S3", "label team is none")

    def test_a_label_of_nfd(self):
        log = self.begin()
        log.patch_node("n1", set_on("metadata", "annotations", {"nfd.node.kubernetes.io/feature-labels": "nvidia.com/x"}), user="nfd")
        log.patch_node("n1", set_on("metadata", "labels", "nvidia.com/x", "1"))
        self.breaks("S3", "belongs to NFD")

    def test_an_autoscalers_annotation(self):
        def guard(node):
            node["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] = "true"

        log = self.begin(maxUnavailable=2, maxUnavailablePerGroup=2)
        log.start("n1", guards=["karpenter"])
        log.patch_node("n1", guard)
        self.holds("S3")
        log.start("n2")
        log.patch_node("n2", guard)
        self.breaks("S3", "annotation karpenter.sh/do-not-disrupt is not the operator's")

    def test_an_annotation_that_is_for_people(self):
        log = self.begin()
        log.patch_node("n1", set_on("metadata", "annotations", {"gpusharing.dev/hold": "true"}))
        self.breaks("S3", "is for people")

    def test_a_daemonsets_image(self):
        log = self.begin()
        log.put("daemonsets", "gpu-operator", "plugin", {"spec": {"template": {"image": "x"}}}, user=OPERATOR)
        self.breaks("S3", "more of a DaemonSet")

    def test_a_key_of_a_persons_configmap(self):
        log = self.begin()
        log.put("configmaps", "gpu-operator", "mps-config", {"data": {}}, user=OPERATOR)
        self.breaks("S3", "key any of a ConfigMap")

    # --- S4
    def test_a_write_without_the_lease(self):
        log = self.begin()
        log.renew_lease(holder="")
        log.patch_node("n1", set_on("metadata", "labels", "gpusharing.dev/state", "Blocked"))
        self.breaks("S4", "nobody holds the Lease")

    def test_a_write_after_the_lease_ran_out(self):
        log = self.begin()
        log.wait(60)
        log.patch_node("n1", set_on("metadata", "labels", "gpusharing.dev/state", "Blocked"))
        self.breaks("S4", "ran out")

    def test_a_disruption_without_a_watch(self):
        log = self.begin()
        log.event(OPERATOR, "watch", {"resource": "pods"}, audit_id="watch-pods")
        log.start("n1")
        self.breaks("S4b", "no open watch of pods")

    # --- S5
    def test_a_restart_into_a_profile_with_an_error(self):
        for text, error in (("version: v2\n", "version is v2"), ("a: [", "no YAML"),
                            ("version: v1\nsharing: {mps: {resources: [{name: a, replicas: 1}]}}", "1 replicas")):
            self.log = MadeUpLog()
            log = self.begin()
            log.edit(text)
            log.start("n1")
            self.breaks("S5", error)

    def test_a_restart_into_a_key_that_is_gone(self):
        log = self.begin()
        log.start("n1")
        log.put("configmaps", "gpu-operator", "mps-config", {"data": {}})
        log.wait(5)
        log.delete("n1", "plugin")
        self.breaks("S5", "its key is missing")

    # --- S6
    def test_a_write_that_changes_nothing(self):
        log = self.begin()
        node = log.get("nodes", "", "n1")
        log.write(OPERATOR, "patch", "nodes", "", "n1", {}, node)
        self.breaks("S6", "changed nothing")

    def test_an_eviction_of_a_pod_that_ends_already(self):
        log = self.begin(workloads="Evict")
        log.client("n1", "train")
        log.start("n1")
        log.evict("train")
        log.evict("train")
        self.breaks("S6", "ending already")

    def test_a_write_that_frees_an_object_of_its_last_finalizer_changes_something(self):
        log = self.begin()
        policy = log.get("sharingpolicies", "", "default")
        policy["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["gpusharing.dev/revert"])
        log.put("sharingpolicies", "", "default", policy)
        policy = log.get("sharingpolicies", "", "default")
        policy["metadata"]["finalizers"] = []
        log.write(OPERATOR, "patch", "sharingpolicies", "", "default", {}, policy)
        self.holds()

    def test_a_write_into_a_quiet_cluster(self):
        log = self.begin()
        policy = log.get("sharingpolicies", "", "default")
        policy["status"] = {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]}
        log.put("sharingpolicies", "", "default", policy)
        log.wait(20)
        log.renew_lease()
        log.patch_node("n1", set_on("metadata", "annotations", {"gpusharing.dev/message": "a"}))
        self.breaks("S6", "nothing had changed for 20 s")

    def in_a_quiet_cluster_after_a_deletion(self, seconds):
        log = self.begin()
        log.put("sharingpolicies", "", "team", {"spec": {}})
        log.remove("sharingpolicies", "", "team")
        policy = log.get("sharingpolicies", "", "default")
        policy["status"] = {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]}
        log.put("sharingpolicies", "", "default", policy)
        log.wait(seconds)
        log.renew_lease()
        log.patch_node("n1", set_on("metadata", "annotations", {"gpusharing.dev/message": "a"}))

    def test_a_write_within_the_grace_of_a_deleted_policy(self):
        self.in_a_quiet_cluster_after_a_deletion(31)
        self.holds()

    def test_a_write_after_the_grace_of_a_deleted_policy(self):
        self.in_a_quiet_cluster_after_a_deletion(50)
        self.breaks("S6", "nothing had changed for 20 s")

    def test_too_many_patches_in_one_change(self):
        log = self.begin()
        log.start("n1")
        for i in range(3):
            log.patch_node("n1", set_on("metadata", "annotations", "gpusharing.dev/message", str(i)))
        self.breaks("S6b", "PATCH 4 of node n1")

    # --- S7
    def test_somebody_elses_cordon(self):
        log = self.begin()
        log.patch_node("n1", set_on("spec", "unschedulable", True), user="admin")
        log.start("n1")
        log.replace_pods("n1")
        log.finish("n1")
        self.breaks("S7", "was cordoned by admin")

    def test_a_cordon_is_whose_request_it_was_though_the_answer_is_missing(self):
        for code in (504, 200):
            for asker in (OPERATOR, "admin"):
                with self.subTest(code=code, asker=asker):
                    self.log = MadeUpLog()
                    log = self.begin()
                    if asker == OPERATOR:
                        log.start("n1", unanswered=code)
                    else:
                        log.patch_node("n1", set_on("spec", "unschedulable", True), user=asker, unanswered=code)
                    log.patch_node("n1", set_on("spec", "taints", [{"key": "unschedulable"}]), user="node-controller",
                                   request={"spec": {"taints": [{"key": "unschedulable"}]}})
                    if asker != OPERATOR:
                        log.start("n1")
                    log.replace_pods("n1")
                    log.finish("n1")
                    if asker == OPERATOR:
                        self.holds("S7")
                    else:
                        self.breaks("S7", "was cordoned by admin")

    def test_a_patch_that_changed_nothing_and_was_answered_first_is_not_the_one_that_cordoned(self):
        log = self.begin()
        log.start("n1")
        started = json.loads(log.lines[-1])
        log.event("node-controller", "patch", started["objectRef"], requestObject={"spec": {"taints": []}},
                  responseObject=started["responseObject"])
        log.lines[-2:] = [log.lines[-1], json.dumps({**started, "stageTimestamp": log.time(log.now + 0.005)})]
        log.replace_pods("n1")
        log.finish("n1")
        self.holds("S7")

    def test_a_cordon_without_a_resource_version(self):
        log = self.begin()
        log.patch_node("n1", set_on("spec", "unschedulable", True), request={"spec": {"unschedulable": True}})
        self.breaks("S7", "without a resourceVersion")

    def test_an_uncordoning_of_a_held_node(self):
        log = self.begin()
        log.start("n1")
        log.patch_node("n1", set_on("metadata", "annotations", "gpusharing.dev/hold", "true"), user="admin")
        log.finish("n1")
        self.breaks("S7", "gpusharing.dev/hold is set")

    def test_an_uncordoning_of_a_quarantined_node(self):
        log = self.begin()
        log.start("n1")
        log.patch_node("n1", set_on("metadata", "labels", "dgxc.nvidia.com/nvsentinel-state", "draining"), user="nvsentinel")
        log.wait(5)
        log.finish("n1")
        self.breaks("S7", "while it is quarantined")

    def test_a_taint(self):
        log = self.begin()
        log.patch_node("n1", set_on("spec", "taints", [{"key": "a"}]))
        self.breaks("S7", "spec.taints")


if __name__ == "__main__":
    unittest.main()
