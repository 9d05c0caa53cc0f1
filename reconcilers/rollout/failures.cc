#include "reconcilers/rollout/failures.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/rollout/attempts.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

std::set<std::string> failed_on(const Index& index, const ProfileRollout& profile_rollout, std::string_view target) {
  std::set<std::string> out;
  std::ranges::copy_if(profile_rollout.nodes(RolloutBucket::failed), std::inserter(out, out.end()),
                       [&](const std::string& name) {
                         const NodeAssessment* a = index.find(name);
                         return a != nullptr && a->phase == Phase::failed && a->change && a->change->to == target;
                       });
  return out;
}

std::int64_t count_failures(const Index& index, const std::set<std::string>& failed) {
  return std::ranges::count_if(failed, [&](const std::string& name) {
    const NodeChange& change = *index.find(name)->change;
    return change.served || change.self_loaded;
  });
}

std::int64_t failures_of(const Index& index, const ProfileRollout& profile_rollout, std::string_view target) {
  return count_failures(index, failed_on(index, profile_rollout, target));
}

bool is_doubtful(const RolloutView& rollout) {
  const std::int64_t failed = std::ssize(rollout.failed());
  return failed > 0 && !rollout.verified && rollout.profile_rollout.tally.settled <= failed;
}

std::string failures_that_stop(const RolloutView& rollout) {
  const Index& index = rollout.pass.index;
  const auto* known = remembered_failure(index, rollout.key, rollout.policy, rollout.target);
  const std::int64_t failures = rollout.failures();
  if (failures == 0 && known == nullptr) return {};
  if (failures == 0) {
    return fmt::format("{} failed before and is not retried until the profile changes. Retry: `rollout start`",
                       rollout.target);
  }
  // A failed node keeps its slot: when failed nodes hold all slots, no other node can start.
  const RolloutSpec& spec = rollout.policy.rollout;
  const std::int64_t slots =
      std::max<std::int64_t>(1, spec.max_unavailable.of(index.policies.at(rollout.key.policy).total));
  const bool full = failures >= slots;
  const bool of_canary = std::ranges::any_of(rollout.failed(), [&](const std::string& name) {
    const NodeAssessment& a = *index.find(name);
    return a.change->served && !rollout.canary_passed(std::string(a.product.view()));
  });
  const bool canary = of_canary || !rollout.all_canaries_passed();
  if (!canary && !full && failures < spec.max_failures && known == nullptr) return {};
  return fmt::format("{} node{} failed{}", failures, failures == 1 ? "" : "s",
                     of_canary                              ? " in the canary"
                     : canary                               ? " before every group's canary has passed"
                     : full && failures < spec.max_failures ? ", so no slot is free"
                                                            : "");
}

std::string failed_nodes_text(const RolloutView& rollout) {
  const std::set<std::string>& failed = rollout.failed();
  return fmt::format("nodes failed to verify: {} (retry: `rollout start {}`)",
                     first_names({failed.begin(), failed.end()}), rollout.key.policy);
}

const FleetRecord::Failure* remembered_failure(const Index& index, const RolloutKey& key, const SharingPolicy& policy,
                                               std::string_view target) {
  if (!index.record) return nullptr;
  const auto* known = index.record->failure(key.policy, key.config_map, key.key, target, retry_of(policy));
  if (known == nullptr || known->rolled_back || known->templates.empty()) return known;
  const auto rollout = index.profile_rollouts.find(key);
  if (rollout == index.profile_rollouts.end()) return known;
  const bool same = templates_hash(index.discovery.installations[rollout->second.installation]) == known->templates;
  return same ? known : nullptr;
}

const FleetRecord::Failure* taken_back(const Index& index, const SharingPolicy& policy, std::string_view config_map) {
  if (!policy.inline_profile || !index.record) return nullptr;
  const std::string own = inline_profile_key(policy.meta.name, *policy.inline_profile);
  const std::string_view retry = retry_of(policy);
  const FleetRecord::Failure* last = nullptr;
  for (const FleetRecord::Failure& failure : index.record->failures) {
    const bool of_set = config_map.empty() || failure.config_map == config_map;
    if (failure.rolled_back && failure.policy == policy.meta.name && of_set && failure.key == own &&
        failure.retry == retry)
      last = &failure;
  }
  return last;
}

bool owns_key(const SharingPolicy& policy, const RolloutKey& key) {
  return policy.meta.name == key.policy && policy.inline_profile &&
         inline_profile_key(policy.meta.name, *policy.inline_profile) == key.key;
}

}  // namespace gso
