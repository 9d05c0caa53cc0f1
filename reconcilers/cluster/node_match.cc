#include "reconcilers/cluster/node_match.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "reconcilers/model/labels.h"

namespace gso {
namespace {

std::optional<std::int64_t> as_integer(std::string_view text) {
  std::int64_t value = 0;
  auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::string_view> field_or_label(const Node& node, std::string_view key) {
  if (key == "metadata.name") return node.meta.name;
  return node.meta.labels.get(key);
}

bool matches(const NodeSelectorRequirement& requirement, const Node& node) {
  const auto value = field_or_label(node, requirement.key.view());
  auto listed = [&] {
    return value && std::ranges::any_of(requirement.values, [&](const Interned& v) { return v == *value; });
  };
  auto compared = [&](auto compare) {
    if (!value || requirement.values.size() != 1) return false;
    const auto left = as_integer(*value);
    const auto right = as_integer(requirement.values.front().view());
    return left && right && compare(*left, *right);
  };
  const std::string_view op = requirement.op.view();
  if (op == "In") return listed();
  if (op == "NotIn") return !listed();
  if (op == "Exists") return value.has_value();
  if (op == "DoesNotExist") return !value.has_value();
  if (op == "Gt") return compared([](auto a, auto b) { return a > b; });
  if (op == "Lt") return compared([](auto a, auto b) { return a < b; });
  return false;
}

// Taints that every DaemonSet pod tolerates.
constexpr std::string_view kDaemonTaints[] = {
    "node.kubernetes.io/not-ready",           "node.kubernetes.io/unreachable",  "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",     "node.kubernetes.io/pid-pressure", "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/network-unavailable",
};

bool tolerated(const Taint& taint, const Operand& operand) {
  if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") return true;
  if (std::ranges::find(kDaemonTaints, taint.key.view()) != std::end(kDaemonTaints)) return true;
  return tolerates(operand.tolerations, taint);
}

}  // namespace

bool matches_terms(const std::vector<std::vector<NodeSelectorRequirement>>& affinity_terms, const Node& node) {
  if (affinity_terms.empty()) return true;
  return std::ranges::any_of(affinity_terms, [&](const auto& term) {
    // A term without requirements matches nothing.
    return !term.empty() && std::ranges::all_of(term, [&](const auto& r) { return matches(r, node); });
  });
}

bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
  return std::ranges::any_of(tolerations, [&](const Toleration& toleration) {
    if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
    const bool exists = toleration.op == "Exists";
    if (toleration.key.empty()) return exists;
    return toleration.key == taint.key && (exists || toleration.value == taint.value);
  });
}

Operand placement_of(const DaemonSet& daemonset) {
  Operand out;
  out.key = daemonset.meta.key();
  out.node_selector = daemonset.node_selector;
  out.affinity_terms = daemonset.affinity_terms;
  out.tolerations = daemonset.tolerations;
  return out;
}

Selects selects(const Operand& operand, const Node& node, bool ignore_mps_capable) {
  Selects result = Selects::yes;
  for (const auto& [key, value] : operand.node_selector) {
    if (ignore_mps_capable && key == kMpsCapable) continue;
    const auto actual = node.meta.labels.get(key);
    if (actual == value) continue;
    if (!actual || !key.starts_with(kDeployPrefix) || !actual->starts_with("paused-for-")) return Selects::no;
    result = Selects::paused;
  }
  if (!matches_terms(operand.affinity_terms, node)) return Selects::no;
  return untolerated(operand, node) != nullptr ? Selects::tainted : result;
}

const Taint* untolerated(const Operand& operand, const Node& node) {
  const auto found = std::ranges::find_if(node.taints, [&](const Taint& taint) { return !tolerated(taint, operand); });
  return found == node.taints.end() ? nullptr : &*found;
}

std::string to_string(const Taint& taint) {
  std::string out(taint.key.view());
  if (!taint.value.empty()) out.append("=").append(taint.value.view());
  return out.append(":").append(taint.effect.view());
}

}  // namespace gso
