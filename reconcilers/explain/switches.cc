// Annotations compared with what planners read of them.
#include "reconcilers/explain/switches.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>

#include "reconcilers/model/labels.h"

namespace gso {
namespace {

std::optional<Finding> ignored(const ObjectRef& object, const k8s::StringMap& annotations, std::string_view key,
                               std::string_view reason, std::string_view effect) {
  const auto value = annotations.get(key);
  if (!value || *value == "true" || *value == "false") return std::nullopt;
  const std::string command =
      fmt::format("kubectl annotate {} {}{} {}=true --overwrite", object.kind == "Node" ? "node" : "configmap",
                  object.name, object.ns.empty() ? "" : " --namespace " + object.ns, key);
  return Finding{
      Severity::warning, object, std::string(reason),
      fmt::format("annotation {}={} does not {}: only the value true does; {}", key, *value, effect, command)};
}

}  // namespace

std::optional<Finding> ignored_hold(const Node& node) {
  return ignored({"v1", "Node", "", node.meta.name, ""}, node.meta.annotations, kHoldAnnotation, "HoldIgnored",
                 "hold the node");
}

std::vector<Finding> ignored_switches(const World& world) {
  std::vector<Finding> out;
  for (const auto& [key, node] : world.nodes.all()) {
    if (auto finding = ignored_hold(*node)) out.push_back(*std::move(finding));
  }
  for (const auto& [key, config_map] : world.configmaps.all()) {
    auto finding = ignored({"v1", "ConfigMap", key.ns, key.name, ""}, config_map->meta.annotations, kPausedAnnotation,
                           "PausedIgnored", "pause rollouts of it");
    if (finding) out.push_back(*std::move(finding));
  }
  std::ranges::sort(out, [](const Finding& a, const Finding& b) {
    return std::tie(a.object.kind, a.object.ns, a.object.name) < std::tie(b.object.kind, b.object.ns, b.object.name);
  });
  return out;
}

}  // namespace gso
