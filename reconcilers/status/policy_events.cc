// The Events for changes of a policy's status: each is sent once, with the condition.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "reconcilers/cluster/record_store.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/status/policy_sum.h"
#include "reconcilers/status/status.h"

namespace gso {

using Json = nlohmann::json;

namespace {

// The present condition if it is False and its text has changed; empty otherwise.
std::string newly_false(const Json& before, const Json& after, std::string_view type) {
  std::string now = false_condition(after, type);
  return now == false_condition(before, type) ? std::string() : now;
}

std::string message_of(const std::string& condition) {
  return condition.substr(condition.find(": ") + 2);
}

ObjectRef state_ref(const Pass& pass) {
  return config_map_ref({pass.s.settings.operator_namespace, pass.s.settings.state_config_map});
}

void report_unstaged(Pass& pass, const PolicySum& sum, const std::string& unstaged) {
  const bool unread = unstaged.starts_with(kClusterPolicyForbidden);
  const bool breaks = unstaged.starts_with(kNodesWouldBreak);
  const std::string_view reason = unread ? kClusterPolicyForbidden : breaks ? kNodesWouldBreak : kUnstagedClusterPolicy;
  const std::string& owner_name = unread ? sum.unread_owner : sum.unstaged_owner;
  ObjectRef about =
      owner_name.empty() ? state_ref(pass) : ObjectRef{"nvidia.com/v1", "ClusterPolicy", "", owner_name, ""};
  if (const ClusterPolicy* owner = pass.s.world.clusterpolicies.find(owner_name)) about.uid = owner->meta.uid;
  pass.event(std::move(about), breaks || unread, reason, unread ? "Watch" : "Verify", message_of(unstaged));
}

}  // namespace

void report_changes(Pass& pass, const PolicySum& sum, const Json& before, const Json& after) {
  if (!newly_false(before, after, "ConfigValid").empty()) {
    for (std::size_t i = 0; i < sum.invalid.size(); ++i) {
      pass.event(sum.invalid_objects[i], true, kConfigInvalid, "Refuse",
                 sum.invalid[i] + ". The operator restarts no pod with it");
    }
  }
  if (const std::string waits = newly_false(before, after, "Progressing"); waits.starts_with(kObserve)) {
    pass.event(pass.s.world.policies_served ? policy_ref(*sum.policy) : state_ref(pass), false, kWouldRoll, "Roll",
               message_of(waits));
  }
  const auto contested = [](const Json& status) {
    return text_at(condition_in(status, kLabelsContestedCondition), "status") == "True";
  };
  if (contested(after) && !contested(before)) {
    pass.event(pass.s.world.policies_served ? policy_ref(*sum.policy) : state_ref(pass), true, kLabelContested, "Label",
               text_at(condition_in(after, kLabelsContestedCondition), "message"));
  }
  if (const std::string unstaged = newly_false(before, after, "Staged"); !unstaged.empty())
    report_unstaged(pass, sum, unstaged);
}

// --- The operator's options in its state ConfigMap, so that the commands of people judge nodes by the same limits.

void plan_options_text(Pass& pass) {
  const std::optional<std::string>& wanted = pass.s.settings.options_text;
  const ConfigMap* state = pass.s.world.configmaps.find(state_key(pass.s.settings));
  if (!wanted || state == nullptr) return;
  const auto present = state->data.find(std::string(kOptionsKey));
  const bool none = present == state->data.end() || !present->second;
  if (none ? wanted->empty() : *present->second == *wanted) return;
  pass.add(write_state(pass.s.settings, {{std::string(kOptionsKey), *wanted}}), "OptionsChanged",
           "commands judge by the options of the operator");
}

}  // namespace gso
