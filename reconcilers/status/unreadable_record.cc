// A record that cannot be read: nothing is rolled by it, and everybody is told so where they look.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/model/labels.h"
#include "reconcilers/registry.h"
#include "reconcilers/status/status.h"

namespace gso {

using Json = nlohmann::json;

namespace {

ObjectRef state_ref(const Pass& pass) {
  return config_map_ref({pass.s.settings.operator_namespace, pass.s.settings.state_config_map});
}

std::string what_is_wrong(const Pass& pass) {
  return pass.index.record_problem + ". Nothing is rolled until it is readable or removed";
}

void tell(Pass& pass) {
  pass.event(state_ref(pass), true, kRecordUnreadable, "Refuse", what_is_wrong(pass));
}

}  // namespace

void tell_unreadable_record(Pass& pass) {
  if (pass.index.record_problem.empty()) return;
  pass.finding(Severity::error, state_ref(pass), kRecordUnreadable, what_is_wrong(pass));
  // Else it goes with the status that says it, once.
  if (!pass.s.world.policies_served) tell(pass);
}

// The counts and the other conditions stay as they were said last: what the fleet runs is not known.
void plan_unreadable_statuses(Pass& pass) {
  if (!pass.s.world.policies_served) return;  // The status stands beside the record: who mends it shall find it alone.
  const std::string reason(kRecordUnreadable);
  const std::string message = fmt::format("ConfigMap {}/{}: {}", pass.s.settings.operator_namespace,
                                          pass.s.settings.state_config_map, what_is_wrong(pass));
  bool told = false;
  for (const auto& [key, policy] : pass.s.world.policies.all()) {
    Json status = Json::parse(policy->status_json, nullptr, false);
    if (!status.is_object()) status = Json::object();
    std::vector<StatusCondition> conditions{{"Ready", false, reason, message}, {"Progressing", false, reason, message}};
    for (const Json& known : status.value("conditions", Json::array())) {
      const std::string type = known.value("type", "");
      if (type == "Ready" || type == "Progressing") continue;
      conditions.push_back(
          {type, known.value("status", "") == "True", known.value("reason", ""), known.value("message", "")});
    }
    status["conditions"] = condition_list(conditions, policy->status_json, policy->meta.generation, pass.s.now);
    std::string after = status.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (after == policy->status_json) continue;
    if (!std::exchange(told, true)) tell(pass);
    pass.add(PatchStatus{policy_ref(*policy), std::move(after)}, std::string(kStatusChanged), "");
  }
}

}  // namespace gso
