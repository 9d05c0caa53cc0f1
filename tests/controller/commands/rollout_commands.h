// `rollout …` as a person runs it, on the simulated API server with our CRDs.
#pragma once

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "controller/commands/rollout/rollout.h"
#include "reconcilers/cluster/record.h"
#include "tests/controller/our_cluster.h"

namespace gso {

// A policy of that spec, as the record keeps it after its object was deleted.
RecordedPolicy gone_policy(const std::string& name, const std::string& spec, k8s::WallTime since);

// What the operator remembers, as its ConfigMap.
std::string state_of(const FleetRecord& record);

class RolloutCommand : public OurCluster {
 protected:
  RolloutCommand();
  // An operator is at work for another hour.
  void renew_lease();
  static constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/namespaces/gpu-sharing-operator/leases";
  static std::string policy(const std::string& name, const std::string& spec);
  void rollout(const std::string& name, const std::string& phase, const std::string& revision,
               const std::string& key = "any", const std::string& text = "version: v1\n",
               const std::string& of = "default", const std::string& reason = "RollingOut");
  // The nodes have loaded a profile, which is edited after their pods' start: they need a change. What the operator has
  // recorded before.
  FleetRecord edit_behind_pods_of(const std::vector<std::string>& nodes);
  // The plugin's pod on gpu-1; its uid.
  std::string plugin_pod(const std::string& name = "plugin-1", const std::string& node = "gpu-1");
  // The plugin's pod on gpu-1 is Ready.
  void serve_gpu_1();
  // What the operator has recorded, as text of its record.
  void record(const std::string& text);
  // gpu-1 has loaded that revision, as the operator has recorded it.
  void record_gpu_1(const std::string& revision);
  FleetRecord record_with_gpu_1(const std::string& revision);
  // The change of the node to its target has failed. `served`: it served GPUs before.
  void fail(const std::string& node, bool served = true);
  std::string target();
  int run(RolloutOptions::Verb verb, const std::string& name = "");
  int run_with(RolloutOptions with, const std::string& input = "");
  nlohmann::json spec_of(const std::string& name);

  RolloutOptions options;
  std::ostringstream out;
  std::ostringstream err;
};

}  // namespace gso
