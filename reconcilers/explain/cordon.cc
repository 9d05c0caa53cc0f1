#include "reconcilers/explain/cordon.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "reconcilers/model/object_refs.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_change.h"

namespace gso {

bool is_cordon_of_failure(const Node& node) {
  if (!node.unschedulable || !is_cordoned_by_operator(node)) return false;
  const std::shared_ptr<const NodeChange> change = change_of(node);
  return change != nullptr && change->failed;
}

std::string cordon_text(const Node& node, const NodeAssessment* a) {
  if (!node.unschedulable) return {};
  if (!is_cordoned_by_operator(node)) return "cordoned by somebody else than the operator";
  if (is_cordon_of_failure(node)) return "cordoned by the operator, for the failed change";
  const bool managed = a != nullptr && a->phase != Phase::unmanaged;
  return managed ? "" : "cordoned by the operator, for a change that did not finish";
}

std::optional<Finding> cordon_finding(const Node& node, const NodeAssessment* a, std::string_view name) {
  std::string text = cordon_text(node, a);
  if (text.empty()) return std::nullopt;
  text += ": no new pod gets its GPUs";
  if (!is_cordoned_by_operator(node))
    text += fmt::format(". Whoever cordoned it can return it to service: `kubectl uncordon {}`", name);
  return Finding{Severity::warning, node_ref(node.meta.name), std::string(kCordoned), std::move(text)};
}

std::string cordon_slot(const Node& node, const NodeAssessment* a) {
  const bool counted = node.unschedulable && a != nullptr && a->phase != Phase::unmanaged;
  return counted ? "holds 1 slot of the budget (maxUnavailable)" : "";
}

}  // namespace gso
