// ClusterPolicy, SharingPolicy and SharingRollout: JSON -> projected value.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/json_fields.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/project.h"

namespace gso {
namespace {

using json::Fields;
using json::Value;

// Their values are switches and times, which are copied to nodes and into the record: there is no room for more there.
// Only the list of retried rollouts is longer.
void shorten_annotations(k8s::ObjectMeta& meta) {
  const k8s::StringMap all = meta.annotations;
  for (const auto& [key, value] : all) {
    const std::size_t most = key.view() == kRetriedRolloutsAnnotation ? kMostRetriedBytes : 256;
    if (value.view().size() > most) meta.annotations.set(key.view(), first_bytes(value.view(), most));
  }
}

// Keys sorted, no blanks: equal statuses give equal text, independent of the server's order.
bool canonical(Fields& fields, Value value, std::string_view field, std::string& out) {
  nlohmann::json parsed;
  if (!json::read_json(fields, value, field, parsed)) return false;
  if (parsed.is_discarded()) return fields.fail(field, "valid JSON");
  out = dump(parsed);
  return true;
}

// --- The kinds of fields of a SharingPolicy, each with how it is read and shown.

using Type = PolicyField::Type;

template <class T>
std::string shown_text(const T& value) {
  if constexpr (std::is_same_v<T, bool>)
    return value ? "true" : "false";
  else if constexpr (std::is_integral_v<T>)
    return std::to_string(value);
  else if constexpr (std::is_same_v<T, std::string>)
    return value;
  else if constexpr (std::is_same_v<T, k8s::Duration>)
    return k8s::format_go_duration(value);
  else if constexpr (std::is_same_v<T, IntOrPercent>)
    return value.to_string();
  else if constexpr (requires { value.has_value(); })
    return value ? shown_text(*value) : "unset";
  else
    return {};  // Shown with its parent.
}

// Of a member of a member.
template <auto kMember, auto... kRest>
std::string shown_in(const auto& object) {
  const auto& member = object.*kMember;
  if constexpr (sizeof...(kRest) == 0)
    return shown_text(member);
  else if constexpr (requires { member.has_value(); })
    return member ? shown_in<kRest...>(*member) : "unset";
  else if constexpr (std::ranges::range<decltype(member)>)
    return {};
  else
    return shown_in<kRest...>(member);
}

template <auto... kMembers>
std::string shown_member(const SharingPolicy& policy) {
  return shown_in<kMembers...>(policy);
}

template <const auto& kWords>
constexpr auto kTexts = texts_of(kWords);

constexpr std::array<std::string_view, 3> kStrategies{"none", "mps", "time-slicing"};
constexpr std::array<std::string_view, 4> kOperators{"In", "NotIn", "Exists", "DoesNotExist"};

PolicyField mapping_field(std::string_view path, void (*begin)(SharingPolicy&) = nullptr) {
  return {.path = path, .type = Type::mapping, .begin = begin};
}

template <auto... kMembers>
PolicyField list_field(std::string_view path) {
  return {.path = path, .type = Type::list, .begin = json::list<kMembers...>(path).begin};
}

// Mappings and lists with keys or items of their own, and what is in the items, are shown with their parent.
template <auto kRead, auto... kMembers>
PolicyField field_by(std::string_view path, Type type, std::int64_t least = 0, std::int64_t most = 0,
                     std::string_view bounds = {}) {
  const bool with_parent = path.contains("[]") || type == Type::mapping || type == Type::list;
  return {.path = path,
          .type = type,
          .least = least,
          .most = most,
          .bounds = bounds,
          .read = json::row_by<kRead, kMembers...>(path).read,
          .shown = with_parent ? nullptr : shown_member<kMembers...>};
}

constexpr auto kByType = [](Fields& fields, Value value, std::string_view path, auto& out) {
  return json::read_value(fields, value, path, out);
};
template <auto... kMembers>
PolicyField typed_field(std::string_view path, Type type, std::int64_t least = 0, std::int64_t most = 0) {
  return field_by<kByType, kMembers...>(path, type, least, most);
}

PolicyField one_of(PolicyField field, std::span<const std::string_view> words) {
  field.words = words;
  return field;
}

PolicyField shown_by(PolicyField field, std::string (*shown)(const SharingPolicy&)) {
  field.shown = shown;
  return field;
}

// One of a closed list of words; the message lists them.
template <const auto& kWords, auto... kMembers>
PolicyField word_field(std::string_view path) {
  const auto read = [](Fields& fields, Value value, std::string_view field, SharingPolicy& out) {
    std::string_view text;
    if (!fields.view(value, field, text)) return false;
    if (text.empty()) return true;
    const auto known = std::ranges::find(kWords, text, [](const auto& each) { return each.text; });
    if (known == std::end(kWords)) return fields.fail(field, fmt::format("one of {}", fmt::join(kTexts<kWords>, ", ")));
    json::member_of<kMembers...>(out) = known->value;
    return true;
  };
  const auto shown = [](const SharingPolicy& policy) {
    return std::string(word_of(kWords, json::member_of<kMembers...>(policy)));
  };
  return {.path = path, .type = Type::word, .words = kTexts<kWords>, .read = read, .shown = shown};
}

bool read_duration(Fields& fields, Value value, std::string_view field, k8s::Duration& out) {
  std::string_view text;
  if (!fields.view(value, field, text)) return false;
  if (text.empty()) return true;
  const auto parsed = k8s::parse_go_duration(text);
  if (!parsed || *parsed < k8s::Duration::zero()) return fields.fail(field, "a duration such as 90s or 1h30m");
  out = *parsed;
  return true;
}

// The CRD refuses a negative number, which is also refused where no API server has seen the policy. 0 starts no node.
bool read_count(Fields& fields, Value value, std::string_view field, std::string_view expected, std::int64_t& out) {
  if (!fields.number(value, field, out)) return false;
  return out >= 0 || fields.fail(field, expected);
}

template <std::int64_t kLeast, std::int64_t kMost, auto... kMembers>
PolicyField count_field(std::string_view path) {
  const auto read = [](Fields& fields, Value value, std::string_view field, SharingPolicy& out) {
    if (Fields::is_null(value)) return true;
    auto& member = json::member_of<kMembers...>(out);
    const std::string expected = fmt::format("a whole number from {} to {}", kLeast, kMost);
    if constexpr (requires { member.emplace(); })
      return read_count(fields, value, field, expected, member.emplace());
    else
      return read_count(fields, value, field, expected, member);
  };
  return {.path = path,
          .type = Type::integer,
          .least = kLeast,
          .most = kMost,
          .read = read,
          .shown = shown_member<kMembers...>};
}

bool read_int_or_percent(Fields& fields, Value value, std::string_view field, IntOrPercent& out) {
  constexpr std::string_view kExpected = "a count of at least 1, or a percentage from 1% to 100%";
  simdjson::ondemand::json_type type{};
  if (auto code = value.type().get(type); code != simdjson::SUCCESS) return fields.invalid_json(field, code);
  if (type == simdjson::ondemand::json_type::number) {
    out = {0, false};
    return read_count(fields, value, field, kExpected, out.value);
  }
  std::string_view text;
  if (!fields.view(value, field, text)) return false;
  if (text.empty()) return true;
  const auto parsed = IntOrPercent::parse(text);
  if (!parsed) return fields.fail(field, kExpected);
  out = *parsed;
  return true;
}

bool read_operator(Fields& fields, Value value, std::string_view path, k8s::LabelOperator& out) {
  std::string_view text;
  if (!fields.view(value, path, text)) return false;
  const auto op = k8s::parse_label_operator(text);
  if (!op) return fields.fail(path, fmt::format("one of {}", fmt::join(kOperators, ", ")));
  out = *op;
  return true;
}

bool read_strategy(Fields& fields, Value value, std::string_view path, std::string& out) {
  if (!fields.text(value, path, out)) return false;
  return std::ranges::find(kStrategies, out) != kStrategies.end() ||
         fields.fail(path, fmt::format("one of {}", fmt::join(kStrategies, ", ")));
}

std::string shown_selector(const SharingPolicy& policy) {
  return policy.node_selector.empty() ? "all nodes" : policy.node_selector.to_string();
}

std::string shown_windows(const SharingPolicy& policy) {
  std::vector<std::string> out;
  for (const MaintenanceWindow& window : policy.rollout.windows)
    out.push_back(fmt::format("{} ({}, {})", window.cron, k8s::format_go_duration(window.duration), window.time_zone));
  return out.empty() ? "none" : fmt::format("{}", fmt::join(out, "; "));
}

}  // namespace

std::span<const PolicyField> policy_fields() {
  using P = SharingPolicy;
  using R = RolloutSpec;
  using I = InlineProfile;
  using W = MaintenanceWindow;
  using S = k8s::LabelSelector;
  using Q = k8s::LabelRequirement;
  using enum PolicyField::Type;
  constexpr std::int64_t kHour = 3600;
  static const auto kFields = std::to_array<PolicyField>({
      shown_by(mapping_field("spec.nodeSelector"), shown_selector),
      typed_field<&P::node_selector, &S::match_labels>("spec.nodeSelector.matchLabels", Type::mapping),
      list_field<&P::node_selector, &S::match_expressions>("spec.nodeSelector.matchExpressions"),
      typed_field<&P::node_selector, &S::match_expressions, &Q::key>("spec.nodeSelector.matchExpressions[].key", text),
      one_of(field_by<read_operator, &P::node_selector, &S::match_expressions, &Q::op>(
                 "spec.nodeSelector.matchExpressions[].operator", word),
             kOperators),
      typed_field<&P::node_selector, &S::match_expressions, &Q::values>("spec.nodeSelector.matchExpressions[].values",
                                                                        list),
      typed_field<&P::priority>("spec.priority", integer, INT32_MIN, INT32_MAX),
      mapping_field("spec.profile"),
      typed_field<&P::config_map_key>("spec.profile.configMapKey", elsewhere),
      mapping_field("spec.profile.inline", [](P& out) { out.inline_profile.emplace(); }),
      one_of(field_by<read_strategy, &P::inline_profile, &I::strategy>("spec.profile.inline.strategy", word),
             kStrategies),
      typed_field<&P::inline_profile, &I::replicas>("spec.profile.inline.replicas", elsewhere),
      typed_field<&P::inline_profile, &I::rename_by_default>("spec.profile.inline.renameByDefault", boolean),
      typed_field<&P::inline_profile, &I::resource>("spec.profile.inline.resource", elsewhere),
      typed_field<&P::inline_profile, &I::fail_requests_greater_than_one>(
          "spec.profile.inline.failRequestsGreaterThanOne", boolean),
      word_field<kPolicyModeWords, &P::mode>("spec.mode"),
      typed_field<&P::takeover>("spec.takeover", boolean),
      word_field<kDeletionPolicyWords, &P::deletion_policy>("spec.deletionPolicy"),
      count_field<0, 1000, &P::revision_history_limit>("spec.revisionHistoryLimit"),
      mapping_field("spec.rollout"),
      word_field<kMechanismWords, &P::rollout, &R::mechanism>("spec.rollout.mechanism"),
      field_by<read_int_or_percent, &P::rollout, &R::max_unavailable>("spec.rollout.maxUnavailable", count_or_percent),
      field_by<read_int_or_percent, &P::rollout, &R::max_unavailable_per_group>("spec.rollout.maxUnavailablePerGroup",
                                                                                count_or_percent),
      mapping_field("spec.rollout.canary"),
      count_field<0, 1000, &P::rollout, &R::canary_nodes_per_group>("spec.rollout.canary.nodesPerGroup"),
      field_by<read_duration, &P::rollout, &R::canary_soak>("spec.rollout.canary.soak", Type::duration),
      word_field<kWorkloadModeWords, &P::rollout, &R::workloads>("spec.rollout.workloads"),
      typed_field<&P::rollout, &R::cordon>("spec.rollout.cordon", boolean),
      typed_field<&P::rollout, &R::evict_bare_pods>("spec.rollout.evictBarePods", boolean),
      field_by<read_duration, &P::rollout, &R::idle_timeout>("spec.rollout.idleTimeout", Type::duration, 1, 720 * kHour,
                                                             "from 1s to 720h"),
      field_by<read_duration, &P::rollout, &R::verify_timeout>("spec.rollout.verifyTimeout", Type::duration, 1,
                                                               24 * kHour, "from 1s to 24h"),
      count_field<1, 10000, &P::rollout, &R::max_failures>("spec.rollout.maxFailures"),
      word_field<kOnFailureWords, &P::rollout, &R::on_failure>("spec.rollout.onFailure"),
      shown_by(list_field<&P::rollout, &R::windows>("spec.rollout.maintenanceWindows"), shown_windows),
      typed_field<&P::rollout, &R::windows, &W::cron>("spec.rollout.maintenanceWindows[].cron", elsewhere),
      field_by<read_duration, &P::rollout, &R::windows, &W::duration>("spec.rollout.maintenanceWindows[].duration",
                                                                      elsewhere),
      typed_field<&P::rollout, &R::windows, &W::time_zone>("spec.rollout.maintenanceWindows[].timeZone", elsewhere),
      typed_field<&P::rollout, &R::paused>("spec.rollout.paused", boolean),
  });
  return kFields;
}

namespace {

constexpr json::Row<ClusterPolicy> kClusterPolicy[] = {
    json::row<&ClusterPolicy::device_plugin_enabled>("spec.devicePlugin.enabled"),
    json::row<&ClusterPolicy::config_name>("spec.devicePlugin.config.name"),
    json::row<&ClusterPolicy::config_default>("spec.devicePlugin.config.default"),
    json::row<&ClusterPolicy::plugin_version>("spec.devicePlugin.version"),
    json::row<&ClusterPolicy::mig_strategy>("spec.mig.strategy"),
    json::row_by<json::read_on_delete, &ClusterPolicy::on_delete>("spec.daemonsets.updateStrategy"),
    json::row<&ClusterPolicy::state>("status.state"),
};

constexpr json::Row<DeviceClass> kDeviceClass[] = {
    json::row<&DeviceClass::extended_resource>("spec.extendedResourceName")};
constexpr json::Row<ResourceSlice> kResourceSlice[] = {
    json::row<&ResourceSlice::driver>("spec.driver"), json::row<&ResourceSlice::node>("spec.nodeName"),
    json::row<&ResourceSlice::all_nodes>("spec.allNodes"),
    json::row_by<json::read_has_items, &ResourceSlice::offers>("spec.devices")};

bool read_daemonset_subject(Fields& fields, Value value, std::string_view path, std::string& out) {
  std::string daemonset;
  if (!fields.text(value, path, daemonset)) return false;
  out = daemonset_subject(daemonset);
  return true;
}

constexpr json::Row<SharingRollout> kSharingRollout[] = {
    json::row<&SharingRollout::policy>("spec.policy"),
    json::row<&SharingRollout::config_map>("spec.configMap"),
    json::row_by<read_daemonset_subject, &SharingRollout::config_map>("spec.daemonSet"),
    json::row<&SharingRollout::key>("spec.key"),
    json::row<&SharingRollout::to_revision>("spec.toRevision"),
    json::row<&SharingRollout::profile>("spec.profile"),
    json::row<&SharingRollout::paused>("spec.paused"),
    json::row<&SharingRollout::approved>("spec.approved"),
    json::row<&SharingRollout::aborted>("spec.aborted"),
    json::row_by<canonical, &SharingRollout::status_json>("status"),
};

// With what a person or an earlier release has written beside the spec.
std::vector<PolicyField> fields_of_object() {
  std::vector<PolicyField> out(policy_fields().begin(), policy_fields().end());
  out.push_back({.path = "metadata.finalizers", .read = json::row<&SharingPolicy::finalizers>("").read});
  out.push_back({.path = "status", .read = json::row_by<canonical, &SharingPolicy::status_json>("").read});
  return out;
}

const json::MetaFilter kOwnAnnotations{true, json::keeps_own_annotation};

}  // namespace

k8s::Result<ClusterPolicy> project_clusterpolicy(std::string_view text) {
  return json::project<ClusterPolicy>("ClusterPolicy", text, {}, kClusterPolicy);
}

k8s::Result<GpuCluster> project_gpu_cluster(std::string_view text) {
  return json::project<GpuCluster>("GPUCluster", text, {}, std::span<const json::Row<GpuCluster>>());
}

k8s::Result<DeviceClass> project_device_class(std::string_view text) {
  return json::project<DeviceClass>("DeviceClass", text, {.labels = false}, kDeviceClass);
}

k8s::Result<ResourceSlice> project_resource_slice(std::string_view text) {
  return json::project<ResourceSlice>("ResourceSlice", text, {.labels = false}, kResourceSlice);
}

k8s::Result<SharingPolicy> project_sharing_policy(std::string_view text) {
  static const std::vector<PolicyField> kFields = fields_of_object();
  auto out = json::project<SharingPolicy>("SharingPolicy", text, kOwnAnnotations, kFields);
  if (!out) return out;
  shorten_annotations(out->meta);
  // Read again as a whole, because the record also keeps fields that this release does not know.
  const auto whole = nlohmann::json::parse(text, nullptr, false);
  if (const auto* spec = member_at(whole, "spec"); spec != nullptr && spec->is_object()) out->spec_json = dump(*spec);
  return out;
}

k8s::Result<SharingRollout> project_sharing_rollout(std::string_view text) {
  auto out = json::project<SharingRollout>("SharingRollout", text, kOwnAnnotations, kSharingRollout);
  if (out) out->phase = text_at(nlohmann::json::parse(out->status_json, nullptr, false), "phase");
  return out;
}

}  // namespace gso
