// Which nodes a DaemonSet selects, and the hash of its template.
#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/sim/fleet/daemonset_controller.h"

namespace gso::sim {

using nlohmann::json;

namespace {

json field(const json& object, std::string_view path) {
  const json* at = &object;
  while (!path.empty()) {
    const auto dot = path.find('.');
    auto it = at->find(std::string(path.substr(0, dot)));
    if (it == at->end() || it->is_null()) return json();
    at = &*it;
    path = dot == std::string_view::npos ? "" : path.substr(dot + 1);
  }
  return *at;
}

bool expression_holds(const json& expression, const json& labels) {
  const std::string key = expression.value("key", "");
  const std::string op = expression.value("operator", "");
  const bool has = labels.contains(key);
  if (op == "Exists") return has;
  if (op == "DoesNotExist") return !has;
  const json values = expression.value("values", json::array());
  const json value = labels.value(key, "");
  const bool in = has && std::ranges::any_of(values, [&value](const json& one) { return one == value; });
  return op == "In" ? in : op == "NotIn" ? !in : false;
}

bool affinity_holds(const json& pod_spec, const json& labels) {
  const json terms =
      field(pod_spec, "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms");
  if (!terms.is_array() || terms.empty()) return true;
  return std::ranges::any_of(terms, [&labels](const json& term) {
    const json expressions = term.value("matchExpressions", json::array());
    return std::ranges::all_of(expressions, [&labels](const json& e) { return expression_holds(e, labels); });
  });
}

// The controller lets its pods tolerate what kubelet and the node lifecycle controller put on a node.
bool always_tolerated(const std::string& key) {
  static constexpr std::array<std::string_view, 7> kKeys{
      "node.kubernetes.io/not-ready",       "node.kubernetes.io/unreachable",  "node.kubernetes.io/disk-pressure",
      "node.kubernetes.io/memory-pressure", "node.kubernetes.io/pid-pressure", "node.kubernetes.io/unschedulable",
      "node.kubernetes.io/network-unavailable"};
  return std::ranges::find(kKeys, key) != kKeys.end();
}

bool tolerates(const json& toleration, const json& taint) {
  const std::string effect = toleration.value("effect", "");
  if (!effect.empty() && effect != taint.value("effect", "")) return false;
  const std::string key = toleration.value("key", "");
  const bool exists = toleration.value("operator", "Equal") == "Exists";
  if (key.empty()) return exists;
  if (key != taint.value("key", "")) return false;
  return exists || toleration.value("value", "") == taint.value("value", "");
}

}  // namespace

bool daemonset_selects(const json& daemonset, const json& node) {
  const json pod_spec = field(daemonset, "spec.template.spec");
  const json labels = node["metadata"].value("labels", json::object());
  const json selector = pod_spec.value("nodeSelector", json::object());
  for (const auto& [key, value] : selector.items()) {
    if (labels.value(key, std::string("\n")) != value) return false;
  }
  if (!affinity_holds(pod_spec, labels)) return false;
  const json taints = field(node, "spec.taints");
  const json tolerations = pod_spec.value("tolerations", json::array());
  for (const json& taint : taints.is_array() ? taints : json::array()) {
    if (taint.value("effect", "") == "PreferNoSchedule" || always_tolerated(taint.value("key", ""))) continue;
    if (std::ranges::none_of(tolerations, [&taint](const json& t) { return tolerates(t, taint); })) return false;
  }
  return true;
}

std::string template_hash(const json& daemonset) {
  std::uint32_t hash = 2166136261U;  // FNV-1a.
  for (const char c : field(daemonset, "spec.template").dump()) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  }
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%08x", hash);
  return text.data();
}

}  // namespace gso::sim
