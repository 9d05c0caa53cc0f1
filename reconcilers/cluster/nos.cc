// See nos.h.
#include "reconcilers/cluster/nos.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "reconcilers/model/labels.h"

namespace gso {
namespace {

// nos also has `mig`: it then creates MIG devices, which any plugin serves.
constexpr std::string_view kMps = "mps";

std::optional<std::string_view> partitioning_label(const Node& node) {
  for (const std::string_view label : {kNosPartitioning, kNosPartitioningBefore}) {
    if (const auto value = node.meta.labels.get(label)) return *value == kMps ? std::optional(label) : std::nullopt;
  }
  return std::nullopt;
}

bool demands(const Operand& operand, std::string_view label) {
  const auto selected = operand.node_selector.find(std::string(label));
  if (selected != operand.node_selector.end() && selected->second == kMps) return true;
  const auto asks = [&](const NodeSelectorRequirement& r) {
    return r.key == label && r.op == "In" && r.values.size() == 1 && r.values.front() == kMps;
  };
  return !operand.affinity_terms.empty() &&
         std::ranges::all_of(operand.affinity_terms, [&](const auto& term) { return std::ranges::any_of(term, asks); });
}

}  // namespace

bool is_partitioned_by_nos(const Node& node) {
  return partitioning_label(node).has_value();
}

std::vector<std::string> partitioned_nodes(const World& world) {
  std::vector<std::string> out;
  for (const auto& [key, node] : world.nodes.all()) {
    if (is_partitioned_by_nos(*node)) out.push_back(key.name);
  }
  std::ranges::sort(out);
  return out;
}

std::string nos_label(const Node& node) {
  const auto label = partitioning_label(node);
  return label ? fmt::format("{}={}", *label, kMps) : std::string();
}

std::string nos_in_charge(const Node& node) {
  // Only node.partitioning writes it. Whether that is switched on is a setting of the operator, and no object shows it.
  if (node.meta.annotations.contains(kPartitioningAnnotation)) {
    return fmt::format(
        "the operator cuts the GPUs of this node into slices for the pods that wait (label {}), and no SharingPolicy "
        "applies",
        nos_label(node));
  }
  return fmt::format(
      "the GPUs of this node are cut into slices (label {}): by the operator where partitioning is switched on (chart "
      "value modes.partitioning), otherwise by nos. No SharingPolicy applies while the node has the label",
      nos_label(node));
}

bool is_plugin_of_nos(const Operand& plugin) {
  return demands(plugin, kNosPartitioning) || demands(plugin, kNosPartitioningBefore);
}

std::set<std::string> keys_of_nos(const World& world) {
  std::set<std::string> keys;
  std::set<std::string> of_others;
  for (const auto& [key, node] : world.nodes.all()) {
    const auto named = node->meta.labels.get(kConfigLabel);
    if (named) (is_partitioned_by_nos(*node) ? keys : of_others).emplace(*named);
  }
  std::erase_if(keys, [&](const std::string& key) { return of_others.contains(key); });
  return keys;
}

}  // namespace gso
