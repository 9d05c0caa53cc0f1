#!/usr/bin/env python3
"""Each rule of the judge can fail, and none fails on an operator that does as it should: on made-up audit lines. KAI's pods,
starts, stops, windows and verification; judge_test.py has the rest."""
import json
import sys
import unittest

sys.dont_write_bytecode = True

from judged_log import JudgedLog, set_on
from made_up_log import OPERATOR, MadeUpLog


class JudgeRolloutsTest(JudgedLog):
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
        log.put("pods", "team", "fraction", {"metadata": {"annotations": {"gpu-fraction": "0.5"}}, "spec": {"schedulerName": "kai-scheduler"}})
        log.write("binder", "create", "pods/binding", "team", "fraction", {"target": {"name": "n1"}}, {"kind": "Status"}, 201)
        log.wait(5)
        log.start("n1")
        self.breaks("S8", "KAI's pod team/fraction is on node n1")

    def test_a_start_under_a_pod_that_only_has_kais_marks(self):
        log = self.begin()
        self.reserve("n2", "r")
        log.put("pods", "team", "pause", {"metadata": {"annotations": {"gpu-fraction": "0.5"}}, "spec": {"nodeName": "n1"}})
        log.wait(5)
        log.start("n1")
        self.holds("S8")

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

    def test_done_with_pods_whose_predecessors_went_in_lines_that_a_killed_server_lost(self):
        log = self.begin()
        log.start("n1")
        for component in ("plugin", "gfd", "mps"):
            log.operand("n1", component, "new")
        log.finish("n1")
        self.holds("S11")

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
