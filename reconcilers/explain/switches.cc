// See switches.h.
#include "reconcilers/explain/switches.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/status/status.h"

namespace gso {
namespace {

// `where`: "annotation" or "label", according to `values`.
std::optional<Finding> ignored(const ObjectRef& object, std::string_view where, const k8s::StringMap& values,
                               std::string_view key, std::string_view reason, std::string_view effect) {
  const auto value = values.get(key);
  if (!value || !value->empty()) return std::nullopt;
  const std::string command = fmt::format("kubectl {} {} {}{} {}", where == "label" ? "label" : "annotate",
                                          object.kind == "Node" ? "node" : "configmap", object.name,
                                          object.ns.empty() ? "" : " --namespace " + object.ns, key);
  // Somebody might have wanted to remove it.
  return Finding{Severity::warning, object, std::string(reason),
                 fmt::format("{} {} has no value, so it does not {}. To {}: `{}=true --overwrite`. To remove it: `{}-`",
                             where, key, effect, effect, command, command)};
}

}  // namespace

std::optional<Finding> ignored_hold(const Node& node) {
  if (is_held(node)) return std::nullopt;
  const ObjectRef object{"v1", "Node", "", node.meta.name, ""};
  auto out = ignored(object, "annotation", node.meta.annotations, kHoldAnnotation, "HoldIgnored", "hold the node");
  return out ? out : ignored(object, "label", node.meta.labels, kHoldAnnotation, "HoldIgnored", "hold the node");
}

std::vector<Finding> ignored_switches(const World& world) {
  std::vector<Finding> out;
  for (const auto& [key, node] : world.nodes.all()) {
    if (auto finding = ignored_hold(*node)) out.push_back(*std::move(finding));
  }
  for (const auto& [key, config_map] : world.configmaps.all()) {
    auto finding = ignored({"v1", "ConfigMap", key.ns, key.name, ""}, "annotation", config_map->meta.annotations,
                           kPausedAnnotation, "PausedIgnored", "pause rollouts of this ConfigMap");
    if (finding) out.push_back(*std::move(finding));
  }
  std::ranges::sort(out, [](const Finding& a, const Finding& b) {
    return std::tie(a.object.kind, a.object.ns, a.object.name) < std::tie(b.object.kind, b.object.ns, b.object.name);
  });
  return out;
}

namespace {

std::tuple<std::string_view, std::string_view, std::string_view> place_of(const ObjectRef& object) {
  return {object.kind, object.ns, object.name};
}

IdlePause pause_of_policy(const World& world, const FleetIndex::Impl& index, const SharingPolicy& policy) {
  IdlePause out{policy_ref(policy), "is paused (spec.rollout.paused): edits are not rolled out",
                fmt::format("gpu-sharing-operator rollout resume policy/{}", policy.meta.name)};
  const auto nodes = index.policies.find(policy.meta.name);
  if (nodes != index.policies.end() && nodes->second.total > 0) return out;
  // The policies that govern its nodes roll edits out.
  const std::string overlap = overlap_text(world, index, policy);
  out.text =
      fmt::format("is paused (spec.rollout.paused), and governs no node now{}{}", overlap.empty() ? "" : ": ", overlap);
  return out;
}

// Of the ConfigMaps that plugins mount.
std::vector<IdlePause> idle_config_map_pauses(const World& world, const FleetIndex::Impl& index) {
  std::set<ObjectKey> mounted;
  for (const PluginInstallation& installation : index.discovery.installations) {
    const bool some_wait = std::ranges::any_of(index.profile_rollouts, [&](const auto& entry) {
      return installation.has_id(entry.first.config_map) && entry.second.tally.of(Phase::pending) > 0;
    });
    if (!installation.config_map.empty() && !some_wait) mounted.insert(installation.config_map_key());
  }
  std::vector<IdlePause> out;
  for (const ObjectKey& key : mounted) {
    const ConfigMapPause pause = pause_of(world, index.record_or_null(), key);
    if (pause == ConfigMapPause::none) continue;
    out.push_back({{"v1", "ConfigMap", key.ns, key.name, ""},
                   fmt::format("is paused (annotation {}{}): edits are not rolled out", kPausedAnnotation,
                               pause == ConfigMapPause::record ? " of a deleted one of this name" : ""),
                   world.policies_served ? "gpu-sharing-operator rollout resume" : end_pause_command(key)});
  }
  return out;
}

}  // namespace

std::vector<IdlePause> idle_pauses(const World& world, const FleetIndex::Impl& index) {
  std::vector<IdlePause> out = idle_config_map_pauses(world, index);
  for (const auto& [key, policy] : world.policies.all()) {
    const auto nodes = index.policies.find(policy->meta.name);
    const bool some_wait = nodes != index.policies.end() && nodes->second.of(Phase::pending) > 0;
    if (policy->rollout.paused && !some_wait) out.push_back(pause_of_policy(world, index, *policy));
  }
  std::ranges::sort(out, {}, [](const IdlePause& pause) { return place_of(pause.object); });
  return out;
}

std::vector<Finding> idle_pause_findings(const World& world, const FleetIndex::Impl& index) {
  std::vector<Finding> out;
  for (IdlePause& pause : idle_pauses(world, index)) {
    const bool is_policy = pause.object.kind == "SharingPolicy";
    std::string message =
        fmt::format("the {} {}. To resume: `{}`", is_policy ? "policy" : "ConfigMap", pause.text, pause.resume);
    out.push_back(
        {Severity::info, std::move(pause.object), is_policy ? "PolicyPaused" : "ConfigMapPaused", std::move(message)});
  }
  return out;
}

std::vector<Finding> undecided_overlaps(const World& world, const FleetIndex::Impl& index) {
  std::vector<Finding> out;
  for (const auto& [key, policy] : world.policies.all()) {
    const std::string& name = policy->meta.name;
    bool undecided = false;
    for (auto it = index.overlaps.lower_bound({name, ""}); it != index.overlaps.end() && it->first.first == name; ++it)
      undecided = undecided || index.policy(world, it->first.second).priority == policy->priority;
    if (!undecided) continue;
    out.push_back({Severity::info, policy_ref(*policy), std::string(kPolicyOverlap),
                   fmt::format("another policy has the same spec.priority ({}) and selects the same nodes; {}. To "
                               "decide which one governs, give them different priorities",
                               policy->priority, overlap_text(world, index, *policy))});
  }
  std::ranges::sort(out, {}, [](const Finding& finding) { return finding.object.name; });
  return out;
}

}  // namespace gso
