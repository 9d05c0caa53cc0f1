// What the parts of explain_pod share: the pod, read once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reconcilers/discovery.h"
#include "reconcilers/explain/pod.h"

namespace gso {

struct AskedPod {
  Pod pod;
  nlohmann::json object;
  std::vector<Toleration> tolerations;
  // Its node selector and affinity, as if a DaemonSet had them.
  Operand placement;
  bool fraction = false;  // Asks KAI for a share.
  // "deployment NAME" for `kubectl set resources`; empty: nobody owns the pod that could be changed.
  [[nodiscard]] std::string owner() const;
  [[nodiscard]] std::string in_namespace() const { return "--namespace " + std::string(pod.meta.ns.view()); }
};

// `kubectl` that makes the pod ask for `count` of `resource`; `instead_of` is dropped where it is another one.
[[nodiscard]] std::string ask_for(const AskedPod& asked, const std::string& resource, std::int64_t count,
                                  const std::string& instead_of);

// Why no node has it, by what the GPU nodes offer.
void explain_placement(const Snapshot& snapshot, const FleetIndex& index, const AskedPod& asked, PodExplanation& out);

// The scheduler's message about a pod that it has not placed; empty: none.
[[nodiscard]] std::string scheduler_says(const AskedPod& asked);

// True where the node's plugin refuses more than one replica of that resource to one container.
[[nodiscard]] bool refuses_several(const FleetIndex& index, const Node& node, std::string_view resource);

}  // namespace gso
