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


def set_on(*path):
    """An edit of an object: the last of the path is put where the others lead."""
    *keys, last, value = path

    def edit(thing):
        for key in keys:
            thing = thing.setdefault(key, {})
        thing[last] = value
    return edit


class JudgeTest(unittest.TestCase):
    def setUp(self):
        self.log = MadeUpLog()

    def judge(self):
        with tempfile.NamedTemporaryFile("w", suffix=".log") as file:
            file.write("\n".join(self.log.lines) + "\n")
            file.flush()
            writes, watches = read(file.name, OPERATOR)
        rules = judge.all_rules(watches)
        judge.judge(writes, rules, OPERATOR)
        return {rule.number: rule for rule in rules}

    def holds(self, *judged):
        rules = self.judge()
        for rule in rules.values():
            self.assertEqual(rule.violations, [])
        for number in judged:
            self.assertGreater(rules[number].total, 0, number)

    def breaks(self, number, text):
        rules = self.judge()
        said = [violation for rule in rules.values() for violation in rule.violations]
        self.assertTrue(rules[number].violations, f"{number} was not broken; broken: {said}")
        self.assertIn(text, "\n".join(rules[number].violations))

    def begin(self, **rollout):
        self.log.install(**rollout)
        self.log.edit()
        return self.log

    def answer_with_metadata_alone(self):
        """As the API server answers the operator's merge patches of Nodes."""
        for i, line in enumerate(self.log.lines):
            event = json.loads(line)
            of_operator = event["user"]["username"] == OPERATOR and event["objectRef"].get("resource") == "nodes"
            if of_operator and event["verb"] == "patch":
                event["responseObject"] = {"kind": "PartialObjectMetadata",
                                           "metadata": event["responseObject"]["metadata"]}
                self.log.lines[i] = json.dumps(event)

    def test_every_rule_is_broken_by_a_test_of_its_own(self):
        with open(__file__, encoding="utf-8") as source:
            text = source.read()
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

    # --- S8
    def reserve(self, node, name, **status):
        self.log.put("pods", "kai-resource-reservation", name, {"spec": {"nodeName": node}, "status": status})
        self.log.wait(5)

    def request_binding(self, node, name, **status):
        self.log.put("bindrequests", "team", name, {"spec": {"selectedNode": node}, "status": status})
        self.log.wait(5)

    def test_a_start_under_kais_pods(self):
        log = self.begin()
        self.reserve("n2", "r")
        log.start("n1")
        self.holds("S8")
        self.reserve("n3", "q")
        log.start("n3")
        self.breaks("S8", "KAI's pod kai-resource-reservation/q is on node n3")

    def test_a_start_under_a_fraction_pod_that_was_bound_by_its_binding(self):
        log = self.begin()
        log.put("pods", "team", "fraction", {"metadata": {"annotations": {"gpu-fraction": "0.5"}}, "spec": {}})
        log.write("binder", "create", "pods/binding", "team", "fraction", {"target": {"name": "n1"}}, {"kind": "Status"}, 201)
        log.wait(5)
        log.start("n1")
        self.breaks("S8", "KAI's pod team/fraction is on node n1")

    def test_a_start_under_a_bind_request(self):
        log = self.begin()
        self.request_binding("n1", "b")
        log.start("n1")
        self.breaks("S8", "BindRequest team/b is for node n1")

    def test_a_first_deletion_under_kai(self):
        for come in (self.reserve, self.request_binding):
            self.log = MadeUpLog()
            log = self.begin()
            log.start("n1")
            come("n1", "late")
            log.delete("n1", "mps")
            self.breaks("S8", "late")

    def test_what_came_after_the_first_deletion_or_has_ended_is_no_fault(self):
        log = self.begin()
        self.reserve("n2", "elsewhere")
        self.reserve("n1", "done", phase="Succeeded")
        self.request_binding("n1", "failed", phase="Failed")
        self.reserve("n1", "gone")
        log.remove("pods", "kai-resource-reservation", "gone")
        log.start("n1")
        log.delete("n1", "mps")
        self.reserve("n1", "late")
        log.delete("n1", "plugin")
        self.holds("S8")

    def test_a_change_that_shares_by_no_replicas_under_kai(self):
        log = self.log
        log.install()
        log.edit("version: v1\n")
        self.reserve("n1", "r")
        log.start("n1")
        self.holds("S8")

    # --- S9
    def test_a_start_that_nobody_asked_for(self):
        log = self.log
        log.install()
        log.start("n1")
        self.breaks("S9", "nobody had changed anything")

    def test_a_start_before_the_baseline(self):
        log = self.begin()
        log.remove("configmaps", "gpu-sharing-operator", "gpu-sharing-operator-state")
        log.start("n1")
        self.breaks("S9", "before the operator had a record")

    def test_a_second_restart_into_what_runs(self):
        log = self.begin()
        log.start("n1")
        log.replace_pods("n1")
        log.finish("n1")
        log.start("n1", **{"from": "v1-b"})
        self.breaks("S9", "restarted into it again")

    # --- S10
    def test_starts_in_spite_of_stops(self):
        def hold(log):
            log.patch_node("n1", set_on("metadata", "annotations", {"gpusharing.dev/hold": "true"}), user="admin")

        def pause_config_map(log):
            config_map = log.get("configmaps", "gpu-operator", "mps-config")
            config_map["metadata"]["annotations"] = {"gpusharing.dev/paused": "true"}
            log.put("configmaps", "gpu-operator", "mps-config", config_map)

        def set_mode(mode):
            def stop(log):
                policy = log.get("sharingpolicies", "", "default")
                policy["spec"]["mode"] = mode
                log.put("sharingpolicies", "", "default", policy)
            return stop

        def switch(name):
            return lambda log: log.put("sharingrollouts", "", "r", {"spec": {
                "policy": "default", "configMap": "gpu-operator/mps-config", "key": "any", "toRevision": "v1-b", name: True}})

        def quarantine(log):
            log.patch_node("n1", set_on("spec", "taints", [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]),
                           user="karpenter")

        for stop, text in ((hold, "held"), (quarantine, "quarantined"), (pause_config_map, "configmap paused"), (set_mode("Observe"), "Observe"),
                           (set_mode("Approve"), "not approved"), (switch("paused"), "paused"),
                           (switch("aborted"), "aborted"), (lambda log: log.edit_policy(paused=True), "policy paused")):
            self.log = MadeUpLog()
            log = self.begin()
            stop(log)
            log.wait(5)
            log.start("n1")
            self.breaks("S10", text)

    def test_a_first_deletion_after_a_stop(self):
        log = self.begin()
        log.start("n1")
        log.edit_policy(paused=True)
        log.wait(5)
        log.delete("n1", "plugin")
        self.breaks("S10", "policy paused")

    def test_a_node_with_a_deleted_pod_is_finished(self):
        log = self.begin()
        log.start("n1")
        log.delete("n1", "mps")
        log.edit_policy(paused=True)
        log.wait(5)
        log.delete("n1", "plugin")
        self.holds("S10")

    def with_window(self, cron):
        """The log's first moment is a Thursday, 2026-05-28 20:26 UTC."""
        log = self.begin()
        log.edit_policy(maintenanceWindows=[{"cron": cron, "duration": "1h"}])
        log.wait(5)
        return log

    def test_a_start_outside_every_window(self):
        for cron in ("0 2 * * *", "0 20 * * SAT,SUN", "0 20 1-15 * *", "at night"):
            self.log = MadeUpLog()
            self.with_window(cron).start("n1")
            self.breaks("S10", "no maintenance window")

    def test_a_first_deletion_after_the_window_has_closed(self):
        log = self.with_window("0 20 * * *")
        log.start("n1")
        log.wait(2100)
        log.renew_lease()
        log.delete("n1", "plugin")
        self.breaks("S10", "no maintenance window")

    def test_a_start_in_a_window(self):
        for cron in ("0 20 * * *", "0 20 * * MON-FRI", "*/20 20 28 MAY *"):
            self.log = MadeUpLog()
            self.with_window(cron).start("n1")
            self.holds("S10")

    # --- S12
    def fail_node(self, log, name):
        change = json.loads(log.get("nodes", "", name)["metadata"]["annotations"]["gpusharing.dev/change"])
        text = json.dumps({**change, "failed": {"why": "no plugin"}})
        log.patch_node(name, set_on("metadata", "annotations", "gpusharing.dev/change", text))

    def stop(self, log):
        log.put("sharingrollouts", "", "r", {
            "spec": {"policy": "default", "configMap": "gpu-operator/mps-config", "key": "any", "toRevision": "v1-b"},
            "status": {"phase": "Paused", "conditions": [{"type": "Progressing", "status": "False", "reason": "MaxFailures"}]}},
            user=OPERATOR)

    def test_a_node_that_served_nothing_before_stops_the_rollout(self):
        log = self.begin()
        log.patch_node("n1", set_on("status", "allocatable", {"nvidia.com/gpu": "0"}), user="kubelet")
        log.wait(5)
        log.start("n1")
        self.fail_node(log, "n1")
        self.stop(log)
        self.breaks("S12", "n1 served no GPU before")

    def test_a_node_that_served_before_stops_the_rollout(self):
        log = self.begin()
        log.start("n1")
        self.fail_node(log, "n1")
        self.stop(log)
        self.holds("S12")

    def test_a_deletion_of_a_rollout_that_a_status_answers_is_no_stop(self):
        log = self.begin()
        log.start("n1")
        self.fail_node(log, "n1")
        self.stop(log)
        log.write(OPERATOR, "delete", "sharingrollouts", "", "r", {}, {"kind": "Status", "status": "Success"})
        self.holds("S12")

    # --- S11
    def test_done_with_an_old_pod(self):
        log = self.begin()
        log.start("n1")
        log.finish("n1")
        self.breaks("S11", "is still there")

    def test_done_without_a_plugin(self):
        log = self.begin()
        log.start("n1")
        for component in ("plugin", "gfd", "mps"):
            log.delete("n1", component)
        log.operand("n1", "plugin", "new", ready=False)
        log.finish("n1")
        self.breaks("S11", "without a Ready device plugin")

    def test_done_without_gpus(self):
        log = self.begin()
        log.start("n1")
        log.replace_pods("n1")
        log.patch_node("n1", set_on("status", "allocatable", {"nvidia.com/gpu": "0"}), user="kubelet")
        log.finish("n1")
        self.breaks("S11", "without GPUs")


if __name__ == "__main__":
    unittest.main()
