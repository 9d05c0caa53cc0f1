#include "reconcilers/node/hand_over.h"

#include <string>
#include <utility>

#include "reconcilers/cluster/label_owners.h"

namespace gso {

LabelChange hand_over_label(const Node& node, std::string_view key, std::string_view policy) {
  LabelChange change;
  OwnedLabels owned = owned_labels(node);
  const auto label = owned.find(std::string(key));
  if (label == owned.end() || label->second.policy == policy) return change;
  label->second.policy = policy;
  change.owned = std::move(owned);
  return change;
}

}  // namespace gso
