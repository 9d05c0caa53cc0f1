// Preflight: what the setup of a node and of its operands gets wrong for the profile that the node should run, found
// before anything is touched. Pure functions of the objects; each finding has a stable code (docs/diagnostics.md).
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/profile/profile.h"

namespace gso {

// One node, what serves it, and the profile that it should run.
struct NodeSetup {
  const Node& node;
  const OperandSet& set;
  const std::vector<Operand>& strays;  // Discovery::strays
  const Operand& plugin;
  const Operand* gfd = nullptr;  // Null: none selects the node.
  const Operand* mps = nullptr;
  const ConfigMap* config_map = nullptr;  // Null: not there, which is said once for all nodes.
  const EffectiveKey& key;
  ProfilePtr profile;  // Null where no key resolves.
  // What the pods load first, where that is not `key`: the default of a node that a label chooses for, from v0.18.2 on.
  const EffectiveKey* start = nullptr;
  ProfilePtr start_profile;  // Null where no default resolves.
  const GpuFacts& facts;
  PlannerSettings::LabelMode label_mode = PlannerSettings::LabelMode::automatic;
};

// Everything that is wrong: errors (a component would exit, or never serve a GPU), warnings (something would be
// ignored, or labels would be wrong), infos (defects of the plugin's release that the operator works around). Paths are
// those of the profile's field, where one is to blame.
[[nodiscard]] std::vector<Diagnostic> check_node_setup(const NodeSetup& setup);

// Why the device plugin's release cannot run an MPS profile on a node that a label chose it for; empty when it can: up
// to v0.18.1, and where the label names the default.
[[nodiscard]] std::string mps_by_label_refusal(const Operand& plugin, const EffectiveKey& key);

// The same answers for nodes that are alike, kept and shared.
class SetupBook {
 public:
  using Answer = std::shared_ptr<const std::vector<Diagnostic>>;
  Answer check(const NodeSetup& setup);
  void clear() { answers_.clear(); }

 private:
  std::unordered_map<std::string, Answer> answers_;
};

// What is wrong with ConfigMaps, DaemonSets and ClusterPolicies themselves, whatever node they serve: a ConfigMap that
// is not where the pods look for it, a name that cannot become a volume, keys that no label can name.
[[nodiscard]] std::vector<Finding> check_operand_setup(const World& world, const Discovery& discovery);

// Every finding of a whole cluster: `lint` of manifests. Nodes by name.
[[nodiscard]] std::vector<Finding> check_cluster(const World& world, const PlannerSettings& settings);

}  // namespace gso
