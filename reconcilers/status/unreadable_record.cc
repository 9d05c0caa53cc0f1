// If the record cannot be read, no rollout starts; the finding, the Event and every policy's status report it.
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
  return pass.index.record_problem + ". No rollout starts until the record is readable or removed";
}

void report(Pass& pass) {
  pass.event(state_ref(pass), true, kRecordUnreadable, "Refuse", what_is_wrong(pass));
}

}  // namespace

void report_unreadable_record(Pass& pass) {
  if (pass.index.record_problem.empty()) return;
  pass.finding(Severity::error, state_ref(pass), kRecordUnreadable, what_is_wrong(pass));
  // If policies are served, the Event is sent once, with the status that reports the problem.
  if (!pass.s.world.policies_served) report(pass);
}

// The counts and the other conditions keep their last values, because what the fleet runs is not known.
void plan_unreadable_statuses(Pass& pass) {
  // The status is kept in the same ConfigMap as the record; write nothing there until a person has repaired it.
  if (!pass.s.world.policies_served) return;
  const std::string reason(kRecordUnreadable);
  const std::string message =
      fmt::format("ConfigMap {}: {}", k8s::to_string(pass.index.stored.problem_in()), what_is_wrong(pass));
  bool reported = false;
  for (const SharingPolicy* policy : in_order(pass.s.world.policies)) {
    Json status = parse_status(policy->status_json);
    std::vector<StatusCondition> conditions{{"Ready", false, reason, message}, {"Progressing", false, reason, message}};
    for (const Json& known : list_at(status, "conditions")) {
      const std::string type = text_at(known, "type");
      if (type.empty() || type == "Ready" || type == "Progressing") continue;
      conditions.push_back(
          {type, text_at(known, "status") == "True", text_at(known, "reason"), text_at(known, "message")});
    }
    status["conditions"] = condition_list(conditions, status, policy->meta.generation, pass.s.now);
    std::string after = status.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (after == policy->status_json) continue;
    if (!std::exchange(reported, true)) report(pass);
    pass.add(PatchStatus{policy_ref(*policy), std::move(after)}, std::string(kStatusChanged), "");
  }
}

}  // namespace gso
