#include "reconcilers/status/contested_labels.h"

#include <optional>

#include "reconcilers/rollout/directory_label.h"
#include "reconcilers/rollout/label_contest.h"
#include "reconcilers/rollout/unserved_nodes.h"

namespace gso {
namespace {

using Sums = std::map<std::string, PolicySum>;

void note(const LabelChange& change, const std::string& node, const std::string& policy, Sums& sums) {
  const auto sum = sums.find(policy);
  if (sum == sums.end()) return;
  for (const auto& [label, until] : change.contested) sum->second.contested[label].insert(node);
}

void note_sharing_labels(const Pass& pass, Sums& sums) {
  for (const std::string& name : pass.index.nodes_in(Bucket::label_work)) {
    const Node* node = pass.s.world.nodes.find(name);
    const NodeAssessment* a = pass.index.find(name);
    if (node == nullptr || a == nullptr || !might_be_contested(pass, *node)) continue;
    note(settled_label_change(pass, *node, *a), name, std::string(a->policy.view()), sums);
  }
}

// No plugin needs to serve these nodes.
void note_directories(const Pass& pass, Sums& sums) {
  std::optional<NodePolicies> policies;
  for (const std::string& name : pass.index.nodes_in(Bucket::mps_directory)) {
    const Node* node = pass.s.world.nodes.find(name);
    if (node == nullptr || !might_be_contested(pass, *node)) continue;
    const LabelChange change = directory_label(pass, *node).change;
    if (change.contested.empty()) continue;
    if (!policies) policies.emplace(pass.index, pass.s.world);
    note(change, name, policies->of(*node).meta.name, sums);
  }
}

}  // namespace

void note_contested_labels(const Pass& pass, Sums& sums) {
  note_sharing_labels(pass, sums);
  note_directories(pass, sums);
}

}  // namespace gso
