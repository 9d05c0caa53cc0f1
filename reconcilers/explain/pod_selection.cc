// Which nodes the pod selects, and by how much another one differs from what it requires.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/explain/placement_rows.h"
#include "reconcilers/model/message_text.h"

namespace gso {
namespace {

constexpr std::string_view kName = "metadata.name";

// How near a node's label is to a required one.
constexpr std::int64_t kMissing = 0;
constexpr std::int64_t kOtherValue = 1;
constexpr std::int64_t kSharedApart = 2;  // The same but for what sharing appends.

bool is_shared_of(std::string_view shared, std::string_view plain) {
  return shared.size() == plain.size() + kSharedProduct.size() && shared.starts_with(plain) &&
         shared.ends_with(kSharedProduct);
}

std::int64_t nearness(std::optional<std::string_view> actual, std::string_view required) {
  if (!actual) return kMissing;
  return is_shared_of(*actual, required) || is_shared_of(required, *actual) ? kSharedApart : kOtherValue;
}

std::string shown_label(std::string_view key, std::optional<std::string_view> actual) {
  return fmt::format("label {} is {}", shown_value(key), actual ? shown_value(*actual) : "missing");
}

std::string names(const std::vector<Interned>& values) {
  std::vector<std::string> out;
  for (const Interned& value : values) out.push_back(shown_value(value.view()));
  return first_names(out);
}

// What follows "the pod's node affinity requires ".
std::string required_by(const NodeSelectorRequirement& requirement) {
  const std::string_view op = requirement.op.view();
  const std::string values = names(requirement.values);
  if (op == "In") return requirement.values.size() == 1 ? values : "one of " + values;
  if (op == "NotIn") return (requirement.values.size() == 1 ? "another one than " : "none of ") + values;
  if (op == "Gt") return "more than " + values;
  if (op == "Lt") return "less than " + values;
  if (op == "Exists") return "any value";
  if (op == "DoesNotExist") return "no such label";
  return fmt::format("{} {}", shown_value(op), values);
}

Verdict unmet(const NodeSelectorRequirement& requirement, const Node& node, std::size_t other_terms) {
  const std::string key(requirement.key.view());
  const bool by_name = key == kName;
  const std::optional<std::string_view> actual =
      by_name ? std::optional<std::string_view>(node.meta.name) : node.meta.labels.get(key);
  std::int64_t near = actual ? kOtherValue : kMissing;
  for (const Interned& value : requirement.values) near = std::max(near, nearness(actual, value.view()));
  const std::string others =
      other_terms == 0 ? std::string() : fmt::format(" (or {})", counted(other_terms, "other term"));
  return {Obstacle::not_selected,
          fmt::format("{}, the pod's node affinity requires {}{}",
                      by_name ? "the name is " + shown_value(node.meta.name) : shown_label(key, actual),
                      required_by(requirement), others),
          by_name ? std::string() : key, near};
}

// One of the terms must hold: what the node lacks for the term that it comes nearest to.
std::optional<Verdict> unmet_affinity(const std::vector<std::vector<NodeSelectorRequirement>>& terms,
                                      const Node& node) {
  if (matches_terms(terms, node)) return std::nullopt;
  std::optional<Verdict> nearest;
  std::size_t fewest = 0;
  for (const std::vector<NodeSelectorRequirement>& term : terms) {
    std::optional<Verdict> here;
    std::size_t count = 0;
    for (const NodeSelectorRequirement& requirement : term) {
      if (matches_terms({{requirement}}, node)) continue;
      ++count;
      Verdict verdict = unmet(requirement, node, terms.size() - 1);
      if (!here || verdict.most > here->most) here = std::move(verdict);
    }
    if (!here || (nearest && count >= fewest)) continue;
    nearest = std::move(here);
    fewest = count;
  }
  if (nearest) return nearest;
  return Verdict{Obstacle::not_selected, "the pod's node affinity selects no node: it has no requirement", "", 0};
}

}  // namespace

std::optional<Verdict> not_selected_by(const AskedPod& asked, const Node& node) {
  for (const auto& [key, value] : asked.placement.node_selector) {
    const auto actual = node.meta.labels.get(key);
    if (actual == value) continue;
    return Verdict{Obstacle::not_selected,
                   fmt::format("{}, the pod requires {}", shown_label(key, actual), shown_value(value)), key,
                   nearness(actual, value)};
  }
  return unmet_affinity(asked.placement.affinity_terms, node);
}

}  // namespace gso
