// What the tests of sharing labels have in common.
#pragma once

#include <string>

#include "k8sclient/value/time.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/node_labels.h"

namespace gso::test {

inline const PlannerSettings kSettings;
inline const WallTime kNoon = *k8s::parse_rfc3339("2026-01-02T12:00:00Z");
inline const std::string kReplicas(kGpuReplicas), kStrategy(kSharingStrategy);

// The node with the labels that a change leaves on it.
inline Node after(Node node, const LabelChange& change) {
  for (const auto& [key, value] : change.set) node.meta.labels.set(key, value);
  for (const std::string& key : change.remove) node.meta.labels.erase(key);
  if (change.owned) node.meta.annotations.set(kOwnedAnnotation, print_owned(*change.owned));
  return node;
}

}  // namespace gso::test
