// What a planning pass adds to its plan.
#include "reconcilers/fleet/pass.h"

#include <fmt/format.h>

#include <cctype>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"

namespace gso {

const ProtectedNamespaces& Pass::protected_namespaces() const {
  if (!protected_) protected_.emplace(s.world, s.settings);
  return *protected_;
}

bool Pass::plannable(const NodeAssessment& assessment) const {
  return !s.world.unsynced_namespaces.contains(index.installation_of(assessment).ns);
}

std::vector<SeenNode> seen_nodes(const Pass& pass, Timer timer) {
  std::vector<SeenNode> out;
  for (auto it = pass.s.timers.lower_bound({timer, "", ""}); it != pass.s.timers.end(); ++it) {
    const TimerKey& key = it->first;
    if (key.timer != timer) break;
    const NodeAssessment* a = pass.index.find(key.subject.view());
    if (a == nullptr) continue;
    const bool changes = a->change != nullptr && a->change->to == key.scope.view();
    const bool waits = a->phase == Phase::pending && a->target == key.scope;
    if (changes || waits) out.push_back({key, std::string(key.subject.view()), *a, it->second});
  }
  return out;
}

NodeView view_of(const Pass& pass, const Node& node, const NodeAssessment& assessment) {
  const PluginInstallation& installation = pass.index.installation_of(assessment);
  return {pass.s, node, assessment, installation, sort_pods(installation, pass.index.pods_of(node.meta.name))};
}

std::string rollout_name(const RolloutKey& key, std::string_view revision) {
  constexpr std::size_t kMaxName = 63;
  auto sanitised = [](std::string_view text) {
    std::string out;
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      out += std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : '-';
    }
    return out;
  };
  // The ConfigMap is part of the identity (two ConfigMaps can have equal keys), so the hash includes it.
  const std::string hash =
      short_hash(fmt::format("{}|{}|{}|{}", key.policy, key.config_map, key.key, revision)).substr(0, 10);
  std::string_view subject = key.key.empty() ? "unshared" : std::string_view(key.key);
  if (const std::string_view daemonset = daemonset_of(key.config_map); !daemonset.empty())
    subject = daemonset.substr(daemonset.find('/') + 1);
  std::string head = fmt::format("{}-{}", sanitised(key.policy), sanitised(subject));
  head = head.substr(0, kMaxName - hash.size() - 1);
  while (head.ends_with('-')) head.pop_back();
  return fmt::format("{}-{}", head, hash);
}

ObjectRef rollout_ref(const std::string& name) {
  return {std::string(kApiVersion), "SharingRollout", "", name, ""};
}

ObjectRef rollout_ref(const SharingRollout& rollout) {
  return {std::string(kApiVersion), "SharingRollout", "", rollout.meta.name, rollout.meta.uid};
}

}  // namespace gso
