// Look-ups that KAI planners request before they decide.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "k8sclient/value/object.h"

namespace gso {

// Answered in KaiWorld::lookups within the same or the next pass.
struct KaiWants {
  std::set<std::string> groups;          // Pods labelled runai-gpu-group/<group>, in all namespaces.
  std::set<k8s::ObjectKey> pods;         // Pods, to learn whether they are alive.
  std::set<k8s::ObjectKey> config_maps;  // Consumers' ConfigMaps: to learn which GPU they see.
  bool waiting_pods = false;             // Fraction pods without a node, and scaling pods.
  bool binder_lease = false;             // To learn since when the binder's replicas have had their leader.
  [[nodiscard]] bool empty() const {
    return groups.empty() && pods.empty() && config_maps.empty() && !waiting_pods && !binder_lease;
  }
  void merge(KaiWants other) {
    groups.merge(other.groups);
    pods.merge(other.pods);
    config_maps.merge(other.config_maps);
    waiting_pods = waiting_pods || other.waiting_pods;
    binder_lease = binder_lease || other.binder_lease;
  }
};

}  // namespace gso
