#include "tests/controller/commands/rollout_commands.h"

#include <gtest/gtest.h>

#include <chrono>

#include "reconcilers/cluster/record_store.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/project.h"
#include "reconcilers/profile/profile.h"
#include "tests/change_words/change_words.h"

namespace gso {

RecordedPolicy gone_policy(const std::string& name, const std::string& spec, k8s::WallTime since) {
  const auto policy =
      project_sharing_policy(R"({"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":")" +
                             name + R"(","uid":"u-)" + name + R"("},"spec":)" + spec + "}");
  EXPECT_TRUE(policy.has_value());
  return {recorded_spec(policy.value_or(SharingPolicy())), since, {}};
}

std::string state_of(const FleetRecord& record) {
  const nlohmann::json state{{"apiVersion", "v1"},
                             {"kind", "ConfigMap"},
                             {"metadata", {{"name", PlannerSettings().state_config_map}}},
                             {"data", {{std::string(kRecordKey), print_head({record})}}}};
  return state.dump();
}

RolloutCommand::RolloutCommand() {
  post("/apis/gpusharing.dev/v1alpha1/sharingpolicies", policy("default", "{}"));
  renew_lease();
}

void RolloutCommand::renew_lease() {
  const nlohmann::json spec{{"holderIdentity", "pod-1"},
                            {"renewTime", k8s::format_micro_time(sim.clock.now())},
                            {"leaseDurationSeconds", 3600}};
  const nlohmann::json lease{{"apiVersion", "coordination.k8s.io/v1"},
                             {"kind", "Lease"},
                             {"metadata", {{"name", "gpu-sharing-operator"}}},
                             {"spec", spec}};
  post(kLeases, lease.dump());
}

std::string RolloutCommand::policy(const std::string& name, const std::string& spec) {
  return R"({"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":")" + name +
         R"("},"spec":)" + spec + "}";
}

void RolloutCommand::rollout(const std::string& name, const std::string& phase, const std::string& revision,
                             const std::string& key, const std::string& text, const std::string& of,
                             const std::string& reason) {
  const nlohmann::json spec{{"policy", of},
                            {"configMap", "gpu-operator/mps-config"},
                            {"key", key},
                            {"toRevision", revision},
                            {"profile", text}};
  const nlohmann::json object{{"apiVersion", "gpusharing.dev/v1alpha1"},
                              {"kind", "SharingRollout"},
                              {"metadata", {{"name", name}}},
                              {"spec", spec}};
  post("/apis/gpusharing.dev/v1alpha1/sharingrollouts", object.dump());
  sim.clock.run_for(std::chrono::seconds(1));
  if (phase.empty()) return;
  const nlohmann::json condition{{"type", "Ready"},
                                 {"status", "False"},
                                 {"reason", reason},
                                 {"message", "it is so"},
                                 {"lastTransitionTime", "2026-01-01T00:00:00Z"}};
  const nlohmann::json status{
      {"phase", phase},
      {"wave", 1},
      {"startedAt", "2026-01-01T00:00:00Z"},
      {"counts", {{"total", 4}, {"updated", 2}, {"inProgress", 1}, {"pending", 1}, {"blocked", 0}, {"failed", 0}}},
      {"conditions", nlohmann::json::array({condition})}};
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/" + name + "/status", nlohmann::json{{"status", status}}.dump());
}

FleetRecord RolloutCommand::edit_behind_pods_of(const std::vector<std::string>& nodes) {
  FleetRecord kept;
  kept.texts[target()] = get("/api/v1/namespaces/gpu-operator/configmaps/mps-config")["data"]["any"];
  for (const std::string& node : nodes) {
    MachineRecord machine;
    machine.config_map = k8s::Interned("gpu-operator/mps-config");
    machine.key = k8s::Interned("any");
    machine.revision = k8s::Interned(target());
    const std::string uid = get("/api/v1/nodes/" + node)["metadata"]["uid"];
    kept.machines.set(machine_id(uid), machine);
    (void)plugin_pod("plugin-of-" + node, node);
    merge("/api/v1/namespaces/gpu-operator/pods/plugin-of-" + node + "/status",
          R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[
                {"name":"nvidia-device-plugin","ready":true,"restartCount":0,"image":"i","imageID":"i","state":{"running":
                {"startedAt":")" +
              k8s::format_time(sim.clock.now()) + R"("}}}]}})");
  }
  sim.clock.run_for(std::chrono::seconds(2));
  const std::string edited =
      "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 3}\n";
  merge("/api/v1/namespaces/gpu-operator/configmaps/mps-config", nlohmann::json{{"data", {{"any", edited}}}}.dump());
  sim.clock.run_for(std::chrono::seconds(1));
  return kept;
}

std::string RolloutCommand::plugin_pod(const std::string& name, const std::string& node) {
  const std::string of_daemonset =
      get("/apis/apps/v1/namespaces/gpu-operator/daemonsets/nvidia-device-plugin-daemonset")["metadata"]["uid"];
  post("/api/v1/namespaces/gpu-operator/pods", R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
                                                   R"(","labels":{"app":"plugin"},"ownerReferences":[
             {"apiVersion":"apps/v1","kind":"DaemonSet","name":"nvidia-device-plugin-daemonset","controller":true,"uid":")" +
                                                   of_daemonset + R"("}]},"spec":{"nodeName":")" + node +
                                                   R"(","containers":[{"name":"nvidia-device-plugin","image":"i"}]}})");
  return get("/api/v1/namespaces/gpu-operator/pods/" + name)["metadata"]["uid"];
}

void RolloutCommand::serve_gpu_1() {
  (void)plugin_pod();
  merge("/api/v1/namespaces/gpu-operator/pods/plugin-1/status",
        R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[
              {"name":"nvidia-device-plugin","ready":true,"restartCount":0,"image":"i","imageID":"i","state":{"running":
              {"startedAt":")" +
            k8s::format_time(sim.clock.now()) + R"("}}}]}})");
  sim.clock.run_for(std::chrono::seconds(2));
}

void RolloutCommand::record(const std::string& text) {
  const nlohmann::json state{{"apiVersion", "v1"},
                             {"kind", "ConfigMap"},
                             {"metadata", {{"name", PlannerSettings().state_config_map}}},
                             {"data", {{std::string(kRecordKey), text}}}};
  post("/api/v1/namespaces/" + PlannerSettings().operator_namespace + "/configmaps", state.dump());
}

void RolloutCommand::record_gpu_1(const std::string& revision) {
  record(print_head({record_with_gpu_1(revision)}));
}

FleetRecord RolloutCommand::record_with_gpu_1(const std::string& revision) {
  const std::string uid = get("/api/v1/nodes/gpu-1")["metadata"]["uid"];
  FleetRecord record;
  MachineRecord gpu_1;
  gpu_1.config_map = k8s::Interned("gpu-operator/mps-config");
  gpu_1.key = k8s::Interned("any");
  gpu_1.revision = k8s::Interned(revision);
  record.machines.set(machine_id(uid), gpu_1);
  return record;
}

void RolloutCommand::fail(const std::string& node, bool served) {
  test::ChangeWords change;
  change.served = served;
  change.to = target();
  change.failed = true;
  const nlohmann::json meta{{"labels", {{"gpusharing.dev/state", "Failed"}}},
                            {"annotations", test::write_change(change)}};
  merge("/api/v1/nodes/" + node, nlohmann::json{{"metadata", meta}}.dump());
}

std::string RolloutCommand::target() {
  const std::string text = get("/api/v1/namespaces/gpu-operator/configmaps/mps-config")["data"]["any"];
  const auto parsed = parse_profile(text);
  return revision_of(parsed.profile);
}

int RolloutCommand::run(RolloutOptions::Verb verb, const std::string& name) {
  options.verb = verb;
  options.name = name;
  return run_with(options);
}

int RolloutCommand::run_with(RolloutOptions with, const std::string& input) {
  out.str("");
  err.str("");
  return sim.run(rollout_command(&client, &sim.clock, with, PlannerSettings(), input, &out, &err));
}

nlohmann::json RolloutCommand::spec_of(const std::string& name) {
  return get("/apis/gpusharing.dev/v1alpha1/sharingrollouts/" + name)["spec"];
}

}  // namespace gso
