// Which nodes a DaemonSet selects, and the hash of its template.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "tests/sim/fleet/daemonset_controller.h"
#include "tests/sim/fleet/json_view.h"

namespace gso::sim {

using nlohmann::json;

namespace {

bool expression_holds(const json& expression, const json& labels) {
  const std::string& key = text(expression, "key");
  const std::string& op = text(expression, "operator");
  const bool has = labels.contains(key);
  if (op == "Exists") return has;
  if (op == "DoesNotExist") return !has;
  const std::string& value = text(labels, key);
  const bool in =
      has && std::ranges::any_of(items(expression, "values"), [&value](const json& one) { return one == value; });
  return op == "In" ? in : op == "NotIn" ? !in : false;
}

bool affinity_holds(const json& pod_spec, const json& labels) {
  const json& affinity = member(member(pod_spec, "affinity"), "nodeAffinity");
  const json& terms = items(member(affinity, "requiredDuringSchedulingIgnoredDuringExecution"), "nodeSelectorTerms");
  if (terms.empty()) return true;
  return std::ranges::any_of(terms, [&labels](const json& term) {
    return std::ranges::all_of(items(term, "matchExpressions"),
                               [&labels](const json& e) { return expression_holds(e, labels); });
  });
}

// The controller lets its pods tolerate what kubelet and the node lifecycle controller put on a node.
bool always_tolerated(const std::string& key) {
  static constexpr std::array<std::string_view, 7> kKeys{
      "node.kubernetes.io/not-ready",          "node.kubernetes.io/unreachable",  "node.kubernetes.io/disk-pressure",
      "node.kubernetes.io/memory-pressure",    "node.kubernetes.io/pid-pressure", "node.kubernetes.io/unschedulable",
      "node.kubernetes.io/network-unavailable"};
  return std::ranges::find(kKeys, key) != kKeys.end();
}

bool tolerates(const json& toleration, const json& taint) {
  const std::string& effect = text(toleration, "effect");
  if (!effect.empty() && effect != text(taint, "effect")) return false;
  const std::string& key = text(toleration, "key");
  const bool exists = text(toleration, "operator") == "Exists";
  if (key.empty()) return exists;
  if (key != text(taint, "key")) return false;
  return exists || text(toleration, "value") == text(taint, "value");
}

bool fits(const json& daemonset, const json& node, bool runs_there) {
  const json& pod_spec = member(member(member(daemonset, "spec"), "template"), "spec");
  const json& has = labels(node);
  for (const auto& [key, value] : member(pod_spec, "nodeSelector").items()) {
    auto it = has.find(key);
    if (it == has.end() || *it != value) return false;
  }
  if (!affinity_holds(pod_spec, has)) return false;
  const json& tolerations = items(pod_spec, "tolerations");
  for (const json& taint : items(member(node, "spec"), "taints")) {
    const std::string& effect = text(taint, "effect");
    if (effect == "PreferNoSchedule" || always_tolerated(text(taint, "key"))) continue;
    if (runs_there && effect == "NoSchedule") continue;
    if (std::ranges::none_of(tolerations, [&taint](const json& t) { return tolerates(t, taint); })) return false;
  }
  return true;
}

}  // namespace

bool daemonset_selects(const json& daemonset, const json& node) {
  return fits(daemonset, node, false);
}

bool daemonset_keeps(const json& daemonset, const json& node) {
  return fits(daemonset, node, true);
}

std::string template_hash(const json& daemonset) {
  return fingerprint(member(member(daemonset, "spec"), "template"));
}

}  // namespace gso::sim
