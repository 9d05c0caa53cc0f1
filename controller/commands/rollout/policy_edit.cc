#include "controller/commands/rollout/policy_edit.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "k8sclient/value/time.h"
#include "reconcilers/model/policy_words.h"
#include "reconcilers/status/status.h"

namespace gso {

namespace {

constexpr std::string_view kUnset = "unset";

using Fields = std::vector<std::pair<std::string, std::string>>;

std::string text_of(bool value) {
  return value ? "true" : "false";
}

std::string text_of(const std::optional<bool>& value) {
  return value ? text_of(*value) : std::string(kUnset);
}

std::string windows_of(const RolloutSpec& rollout) {
  std::string out;
  for (const MaintenanceWindow& window : rollout.windows)
    out += fmt::format("{}{} ({}, {})", out.empty() ? "" : "; ", window.cron, k8s::format_go_duration(window.duration),
                       window.time_zone);
  return out.empty() ? "none" : out;
}

void add_inline_profile(const std::optional<InlineProfile>& profile, Fields& out) {
  const auto add = [&](std::string_view field, std::string value) {
    out.emplace_back(fmt::format("spec.profile.inline.{}", field), profile ? std::move(value) : std::string(kUnset));
  };
  const InlineProfile shown = profile.value_or(InlineProfile());
  add("strategy", shown.strategy);
  add("replicas", std::to_string(shown.replicas));
  add("renameByDefault", text_of(shown.rename_by_default));
  add("resource", shown.resource);
  add("failRequestsGreaterThanOne", text_of(shown.fail_requests_greater_than_one));
}

void add_rollout(const RolloutSpec& rollout, Fields& out) {
  const auto add = [&](std::string_view field, std::string value) {
    out.emplace_back(fmt::format("spec.rollout.{}", field), std::move(value));
  };
  add("mechanism", std::string(word_of(kMechanismWords, rollout.mechanism)));
  add("maxUnavailable", rollout.max_unavailable.to_string());
  add("maxUnavailablePerGroup", rollout.max_unavailable_per_group.to_string());
  add("canary.nodesPerGroup", std::to_string(rollout.canary_nodes_per_group));
  add("canary.soak", k8s::format_go_duration(rollout.canary_soak));
  add("workloads", std::string(word_of(kWorkloadModeWords, rollout.workloads)));
  add("cordon", text_of(rollout.cordon));
  add("evictBarePods", text_of(rollout.evict_bare_pods));
  add("idleTimeout", k8s::format_go_duration(rollout.idle_timeout));
  add("verifyTimeout", k8s::format_go_duration(rollout.verify_timeout));
  add("maxFailures", std::to_string(rollout.max_failures));
  add("onFailure", std::string(word_of(kOnFailureWords, rollout.on_failure)));
  add("maintenanceWindows", windows_of(rollout));
  add("paused", text_of(rollout.paused));
}

// The same fields in the same order for every policy.
Fields fields_of(const SharingPolicy& policy) {
  Fields out;
  out.emplace_back("spec.nodeSelector",
                   policy.node_selector.empty() ? std::string("all nodes") : policy.node_selector.to_string());
  out.emplace_back("spec.priority", std::to_string(policy.priority));
  out.emplace_back("spec.profile.configMapKey", policy.config_map_key.value_or(std::string(kUnset)));
  add_inline_profile(policy.inline_profile, out);
  out.emplace_back("spec.mode", std::string(word_of(kPolicyModeWords, policy.mode)));
  out.emplace_back("spec.takeover", text_of(policy.takeover));
  out.emplace_back("spec.deletionPolicy", std::string(word_of(kDeletionPolicyWords, policy.deletion_policy)));
  out.emplace_back("spec.revisionHistoryLimit", policy.revision_history_limit
                                                    ? std::to_string(*policy.revision_history_limit)
                                                    : std::string(kUnset));
  add_rollout(policy.rollout, out);
  const std::string retry(retry_of(policy));
  out.emplace_back("the annotation gpusharing.dev/retry", retry.empty() ? std::string(kUnset) : retry);
  return out;
}

}  // namespace

std::vector<PolicyFieldChange> policy_field_changes(const SharingPolicy& before, const SharingPolicy& after) {
  const Fields had = fields_of(before);
  const Fields has = fields_of(after);
  std::vector<PolicyFieldChange> out;
  for (std::size_t i = 0; i < had.size(); ++i) {
    if (had[i].second != has[i].second) out.push_back({had[i].first, had[i].second, has[i].second});
  }
  return out;
}

std::string added_stops(const SharingPolicy& before, const SharingPolicy& after, const PlannerSettings& settings) {
  std::string out;
  const PolicyMode mode = settings.mode_of(after);
  if (mode > settings.mode_of(before)) out = fmt::format("mode {}", word_of(kPolicyModeWords, mode));
  if (after.rollout.paused && !before.rollout.paused) out += out.empty() ? "paused" : ", paused";
  return out;
}

}  // namespace gso
