// `rollout …` as a person runs it, on the simulated API server with our CRDs.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "controller/commands/rollout/rollout.h"
#include "reconcilers/cluster/record.h"
#include "reconcilers/cluster/record_text.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/profile/revision.h"
#include "tests/change_words/change_words.h"
#include "tests/controller/our_cluster.h"

namespace gso {

class RolloutCommand : public OurCluster {
 protected:
  RolloutCommand() {
    post("/apis/gpusharing.dev/v1alpha1/sharingpolicies", policy("default", "{}"));
    renew_lease();
  }
  // An operator is at work for another hour.
  void renew_lease() {
    const nlohmann::json spec{{"holderIdentity", "pod-1"},
                              {"renewTime", k8s::format_micro_time(sim.clock.now())},
                              {"leaseDurationSeconds", 3600}};
    const nlohmann::json lease{{"apiVersion", "coordination.k8s.io/v1"},
                               {"kind", "Lease"},
                               {"metadata", {{"name", "gpu-sharing-operator"}}},
                               {"spec", spec}};
    post(kLeases, lease.dump());
  }
  static constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/namespaces/gpu-sharing-operator/leases";
  static std::string policy(const std::string& name, const std::string& spec) {
    return R"({"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy","metadata":{"name":")" + name +
           R"("},"spec":)" + spec + "}";
  }
  void rollout(const std::string& name, const std::string& phase, const std::string& revision,
               const std::string& key = "any", const std::string& text = "version: v1\n",
               const std::string& of = "default", const std::string& reason = "RollingOut") {
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
    merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/" + name + "/status",
          nlohmann::json{{"status", status}}.dump());
  }
  // The plugin's pod on gpu-1; its uid.
  std::string plugin_pod() {
    const std::string of_daemonset =
        get("/apis/apps/v1/namespaces/gpu-operator/daemonsets/nvidia-device-plugin-daemonset")["metadata"]["uid"];
    post("/api/v1/namespaces/gpu-operator/pods",
         R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"plugin-1","labels":{"app":"plugin"},"ownerReferences":[
             {"apiVersion":"apps/v1","kind":"DaemonSet","name":"nvidia-device-plugin-daemonset","controller":true,"uid":")" +
             of_daemonset +
             R"("}]},"spec":{"nodeName":"gpu-1","containers":[{"name":"nvidia-device-plugin","image":"i"}]}})");
    return get("/api/v1/namespaces/gpu-operator/pods/plugin-1")["metadata"]["uid"];
  }
  // What the operator has recorded, as text of its record.
  void record(const std::string& text) {
    const nlohmann::json state{{"apiVersion", "v1"},
                               {"kind", "ConfigMap"},
                               {"metadata", {{"name", PlannerSettings().state_config_map}}},
                               {"data", {{std::string(kRecordKey), text}}}};
    post("/api/v1/namespaces/" + PlannerSettings().operator_namespace + "/configmaps", state.dump());
  }
  // gpu-1 has loaded that revision, as the operator has recorded it.
  void record_gpu_1(const std::string& revision) {
    const std::string uid = get("/api/v1/nodes/gpu-1")["metadata"]["uid"];
    FleetRecord record;
    MachineRecord gpu_1;
    gpu_1.config_map = k8s::Interned("gpu-operator/mps-config");
    gpu_1.key = k8s::Interned("any");
    gpu_1.revision = k8s::Interned(revision);
    record.machines.set(machine_id(uid), gpu_1);
    this->record(print_head({record}));
  }
  // The change of the node to its target has failed.
  void fail(const std::string& node) {
    test::ChangeWords change;
    change.to = target();
    change.failed = true;
    const nlohmann::json meta{{"labels", {{"gpusharing.dev/state", "Failed"}}},
                              {"annotations", test::write_change(change)}};
    merge("/api/v1/nodes/" + node, nlohmann::json{{"metadata", meta}}.dump());
  }
  std::string target() {
    const std::string text = get("/api/v1/namespaces/gpu-operator/configmaps/mps-config")["data"]["any"];
    const auto parsed = parse_profile(text);
    return revision_of(parsed.profile);
  }
  int run(RolloutOptions::Verb verb, const std::string& name = "") {
    options.verb = verb;
    options.name = name;
    return run_with(options);
  }
  int run_with(RolloutOptions with, const std::string& input = "") {
    out.str("");
    err.str("");
    return sim.run(rollout_command(&client, &sim.clock, with, PlannerSettings(), input, &out, &err));
  }
  nlohmann::json spec_of(const std::string& name) {
    return get("/apis/gpusharing.dev/v1alpha1/sharingrollouts/" + name)["spec"];
  }

  RolloutOptions options;
  std::ostringstream out;
  std::ostringstream err;
};

}  // namespace gso
