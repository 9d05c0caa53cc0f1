// What a planning pass adds to its plan.
#include "reconcilers/fleet/pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "reconcilers/model/labels.h"

namespace gso {

bool Pass::takes_more() {
  if (plan.actions.size() < kMostActions) return true;
  look_again_in(Duration::zero());
  return false;
}

namespace {

// Writes that nobody has the rights for where rollouts are only observed. Sharing labels have a switch of their own.
bool only_observed(const Action& action, std::string_view reconciler) {
  return (std::holds_alternative<PatchNode>(action) && reconciler != "node.labels") ||
         std::holds_alternative<DeletePod>(action) || std::holds_alternative<EvictPod>(action) ||
         std::holds_alternative<DeleteObject>(action);
}

}  // namespace

void Pass::add(Action action, std::string_view reason, std::string message, bool disruptive, std::string node) {
  if (s.settings.rollouts == PolicyMode::observe && only_observed(action, reconciler_)) return;
  plan.actions.push_back({std::string(reconciler_), std::move(action), std::string(reason), std::move(message),
                          disruptive, std::move(node)});
}

void Pass::event(ObjectRef regarding, bool warning, std::string_view reason, std::string_view action,
                 std::string note) {
  RecordEvent event{std::move(regarding), warning, std::string(reason), std::string(action), std::move(note)};
  plan.actions.push_back({std::string(reconciler_), std::move(event), std::string(reason), {}, false, {}});
}

void Pass::finding(Severity severity, ObjectRef object, std::string_view reason, std::string message) {
  plan.findings.push_back({severity, std::move(object), std::string(reason), std::move(message)});
}

void Pass::take(Step step, const std::string& node) {
  for (PlannedAction& planned : step.plan.actions) {
    add(std::move(planned.action), planned.reason, std::move(planned.message), planned.disruptive,
        std::holds_alternative<RecordEvent>(planned.action) ? std::string() : node);
  }
  step.plan.actions.clear();
  plan.append(std::move(step.plan));
}

bool Pass::plannable(const NodeAssessment& assessment) const {
  return !s.world.unsynced_namespaces.contains(index.set_of(assessment).ns);
}

std::vector<SeenNode> seen_nodes(const Pass& pass, Timer timer) {
  std::vector<SeenNode> out;
  for (auto it = pass.s.timers.lower_bound({timer, "", ""}); it != pass.s.timers.end(); ++it) {
    const TimerKey& key = it->first;
    if (key.timer != timer) break;
    const NodeAssessment* a = pass.index.find(key.subject);
    if (a == nullptr) continue;
    const bool changes = a->change != nullptr && a->change->to == key.scope;
    const bool waits = a->phase == Phase::pending && a->target == key.scope;
    if (changes || waits) out.push_back({key, key.subject, *a, it->second});
  }
  return out;
}

NodeView view_of(const Pass& pass, const Node& node, const NodeAssessment& assessment) {
  const OperandSet& set = pass.index.set_of(assessment);
  return {pass.s, node, assessment, set, sort_pods(set, pass.index.pods_of(node.meta.name))};
}

WriteConfigMap write_state(const Snapshot& snapshot, std::map<std::string, std::string> keys) {
  return {{snapshot.settings.operator_namespace, snapshot.settings.state_config_map}, std::move(keys), {}};
}

std::string rollout_name(const UnitKey& key, std::string_view revision) {
  constexpr std::size_t kMaxName = 63;
  auto sanitised = [](std::string_view text) {
    std::string out;
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      out += std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : '-';
    }
    return out;
  };
  // The set is part of the identity (two ConfigMaps may have equal keys), so it goes into the hash.
  const std::string hash = short_hash(fmt::format("{}|{}|{}|{}", key.policy, key.set, key.key, revision)).substr(0, 10);
  std::string head = fmt::format("{}-{}", sanitised(key.policy), sanitised(key.key.empty() ? "unshared" : key.key));
  head = head.substr(0, kMaxName - hash.size() - 1);
  while (head.ends_with('-')) head.pop_back();
  return fmt::format("{}-{}", head, hash);
}

ObjectRef rollout_ref(const std::string& name) {
  return {std::string(kApiVersion), "SharingRollout", "", name, ""};
}

}  // namespace gso
