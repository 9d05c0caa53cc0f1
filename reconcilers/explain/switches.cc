// Looks for switches whose value is empty, and for pauses that stop nothing yet.
#include "reconcilers/explain/switches.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/object_refs.h"

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

std::vector<Finding> idle_pauses(const World& world, const FleetIndex::Impl& index) {
  std::vector<Finding> out;
  for (const auto& [key, policy] : world.policies.all()) {
    const auto nodes = index.policies.find(policy->meta.name);
    const bool some_wait = nodes != index.policies.end() && nodes->second.of(Phase::pending) > 0;
    if (!policy->rollout.paused || some_wait) continue;
    out.push_back({Severity::info, policy_ref(*policy), "PolicyPaused",
                   fmt::format("the policy {}. To resume: `gpu-sharing-operator rollout resume policy/{}`", kIsPaused,
                               policy->meta.name)});
  }
  std::ranges::sort(out, {}, [](const Finding& finding) { return finding.object.name; });
  return out;
}

}  // namespace gso
