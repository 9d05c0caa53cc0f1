// A cluster of one GPU node as manifests, and what explain reports about it.
#pragma once

#include <map>
#include <string>

#include "reconcilers/explain/node.h"
#include "reconcilers/explain/pod.h"

namespace gso {

// One GPU node under the plugin's default profile; more documents are appended.
std::string cluster(const std::string& profile, const std::string& node_labels, const std::string& allocatable,
                    const std::string& node_spec = "{}");

constexpr const char* kSliced = R"(    sharing:
      timeSlicing:
        resources:
        - {name: nvidia.com/gpu, replicas: 4})";
constexpr const char* kRefusing = R"(    sharing:
      timeSlicing:
        failRequestsGreaterThanOne: true
        resources:
        - {name: nvidia.com/gpu, replicas: 4})";

struct Explained {
  World world;
  std::map<std::string, NodeConsumers> consumers;
  FleetIndex index;
  PlannerSettings settings;
  WallTime now = *k8s::parse_rfc3339("2026-01-03T00:00:00Z");
  Timers timers;

  explicit Explained(const std::string& manifests);
  Snapshot snapshot() { return {world, now, timers, consumers, settings}; }
  NodeExplanation node(const std::string& name);
  PodExplanation pod(const std::string& json);
};

}  // namespace gso
