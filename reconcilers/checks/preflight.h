// Preflight: what the setup of a node and of its operands gets wrong for the profile that the node should run, found
// before anything is touched. Pure functions of the objects; each finding has a stable code (docs/diagnostics.md).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "reconcilers/checks/setup.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/profile/profile.h"

namespace gso {

// Every check of the chain that fails and is listed about nodes: errors (a component would exit, or never serve a GPU),
// warnings (something would be ignored, or labels would be wrong), infos (defects of the plugin's release that the
// operator works around). In the chain's order.
[[nodiscard]] std::vector<Diagnostic> run_preflight(const Setup& setup);

// The same answers for nodes that are alike, kept and shared for as long as a node holds them.
class PreflightCache {
 public:
  using Answer = std::shared_ptr<const std::vector<Diagnostic>>;
  // Never null. Equal setups get the same object.
  Answer check(const Setup& setup);
  // Operands are about to move in memory.
  void clear() { answers_.clear(); }
  // Answers that are kept, those that nobody holds any more among them until they are swept.
  [[nodiscard]] std::size_t size() const { return answers_.size(); }

 private:
  std::unordered_map<std::string, std::weak_ptr<const std::vector<Diagnostic>>> answers_;
  std::size_t sweep_at_ = 0;
};

// What is wrong with ConfigMaps, DaemonSets and ClusterPolicies themselves, whatever node they serve: a ConfigMap that
// is not where the pods look for it, a name that cannot become a volume, keys that no label can name.
[[nodiscard]] std::vector<Finding> check_operand_setup(const World& world, const Discovery& discovery);

// ConfigMaps with profiles, by "namespace/name": those that a plugin mounts or a ClusterPolicy names; where neither is
// known, all that hold a profile. Empty ones are left out.
[[nodiscard]] std::map<std::string, const ConfigMap*> profile_maps(const World& world, const Discovery& discovery);

}  // namespace gso
