// A record that cannot be read: nothing is rolled by it, and everybody is told so where they look.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/store_order.h"
#include "reconcilers/status/status.h"

namespace gso {

using Json = nlohmann::json;

namespace {

ObjectRef state_ref(const Pass& pass) {
  return config_map_ref(pass.index.stored.problem_in());
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
  const std::string message =
      fmt::format("ConfigMap {}: {}", k8s::to_string(pass.index.stored.problem_in()), what_is_wrong(pass));
  bool told = false;
  for (const SharingPolicy* policy : in_order(pass.s.world.policies)) {
    Json status = Json::parse(policy->status_json, nullptr, false);
    if (!status.is_object()) status = Json::object();
    std::vector<StatusCondition> conditions{{"Ready", false, reason, message}, {"Progressing", false, reason, message}};
    for (const Json& known : list_at(status, "conditions")) {
      const std::string type = text_at(known, "type");
      if (type.empty() || type == "Ready" || type == "Progressing") continue;
      conditions.push_back(
          {type, text_at(known, "status") == "True", text_at(known, "reason"), text_at(known, "message")});
    }
    status["conditions"] = condition_list(conditions, policy->status_json, policy->meta.generation, pass.s.now);
    std::string after = status.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (after == policy->status_json) continue;
    if (!std::exchange(told, true)) tell(pass);
    pass.add(PatchStatus{policy_ref(*policy), std::move(after)}, std::string(kStatusChanged), "");
  }
}

}  // namespace gso
