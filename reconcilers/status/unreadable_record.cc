// If the record cannot be read, no rollout starts; the finding, the Event and every policy's status report it.
#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/store_order.h"
#include "reconcilers/status/status.h"

namespace gso {

using Json = nlohmann::json;

namespace {

ObjectRef unreadable_ref(const Pass& pass) {
  return config_map_ref(pass.index.stored.problem_in());
}

std::string what_is_wrong(const Pass& pass) {
  return pass.index.record_problem + ". No rollout starts until the record is readable or removed";
}

void report(Pass& pass) {
  pass.event(unreadable_ref(pass), true, kRecordUnreadable, "Refuse", what_is_wrong(pass));
}

}  // namespace

void report_unreadable_record(Pass& pass) {
  if (pass.index.record_problem.empty()) return;
  pass.finding(Severity::error, unreadable_ref(pass), kRecordUnreadable, what_is_wrong(pass));
  // If policies are served, the Event is sent once, with the status that reports the problem.
  if (!pass.s.world.policies_served) report(pass);
}

namespace {

// Nodes that were in a change when the record was lost, of one policy: nothing is done on them either.
std::string left_mid_change(const Pass& pass, std::string_view policy) {
  std::vector<std::string> nodes;
  for (const std::string& name : pass.index.nodes_in(Bucket::unrecorded)) {  // Without a record each node is.
    const NodeAssessment& a = *pass.index.find(name);
    if (a.change && a.policy.view() == policy) nodes.push_back(name);
  }
  return nodes.empty() ? std::string() : ". Mid-change, and not continued: " + first_names(nodes);
}

// Ready and Progressing are False for that reason; the counts and the other conditions keep their last values, because
// what the fleet runs is not known. Empty: nothing must be written.
std::string status_without_record(const Pass& pass, std::string_view before, std::int64_t generation,
                                  const std::string& message) {
  Json status = parse_status(before);
  const std::string reason(kRecordUnreadable);
  std::vector<StatusCondition> conditions{{"Ready", false, reason, message}, {"Progressing", false, reason, message}};
  for (const Json& known : list_at(status, "conditions")) {
    const std::string type = text_at(known, "type");
    if (type.empty() || type == "Ready" || type == "Progressing") continue;
    conditions.push_back(
        {type, text_at(known, "status") == "True", text_at(known, "reason"), text_at(known, "message")});
  }
  status["conditions"] = condition_list(conditions, status, generation, pass.s.now);
  std::string after = dump(status);
  return after == before ? std::string() : after;
}

}  // namespace

void plan_unreadable_statuses(Pass& pass) {
  // The status is kept in the same ConfigMap as the record; write nothing there until a person has repaired it.
  if (!pass.s.world.policies_served) return;
  const std::string message =
      fmt::format("ConfigMap {}: {}", k8s::to_string(pass.index.stored.problem_in()), what_is_wrong(pass));
  bool reported = false;
  for (const SharingPolicy* policy : in_order(pass.s.world.policies)) {
    std::string after = status_without_record(pass, policy->status_json, policy->meta.generation,
                                              message + left_mid_change(pass, policy->meta.name));
    if (after.empty()) continue;
    if (!std::exchange(reported, true)) report(pass);
    pass.add(PatchStatus{policy_ref(*policy), std::move(after)}, std::string(kStatusChanged), "");
  }
  for (const SharingRollout* rollout : in_order(pass.s.world.rollouts)) {
    if (rollout->phase.empty() || has_ended(rollout->phase)) continue;
    std::string after = status_without_record(pass, rollout->status_json, rollout->meta.generation,
                                              message + left_mid_change(pass, rollout->policy));
    if (after.empty()) continue;
    ObjectRef ref = rollout_ref(rollout->meta.name);
    ref.uid = rollout->meta.uid;
    pass.add(PatchStatus{std::move(ref), std::move(after)}, std::string(kStatusChanged), "");
  }
}

}  // namespace gso
