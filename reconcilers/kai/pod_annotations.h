// A Pod's KAI annotations: which ones KAI's admission refuses, which it accepts although they can never work, and which
// have no effect.
// Source: pkg/admission and pkg/binder/plugins/gpusharing of KAI-Scheduler (2026-03).
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/model/snapshot.h"
#include "reconcilers/profile/document_value.h"
#include "reconcilers/profile/profile.h"

namespace gso {

// Visits the containers of a Pod's spec, then its init containers: visit(container, "spec.containers[0]").
template <class Visit>
void each_container(const DocumentValue& spec, Visit visit) {
  for (const std::string_view list : {"containers", "initContainers"}) {
    const DocumentValue* containers = spec.find(list);
    for (std::size_t i = 0; containers != nullptr && i < containers->items.size(); ++i)
      visit(containers->items[i], fmt::format("spec.{}[{}]", list, i));
  }
}

// A label of nodes that the Pod's nodeSelector (as "In" one value) or required node affinity names.
struct SelectedLabel {
  std::string key;
  std::string path;  // "spec.nodeSelector[nvidia.mps/enabled]"
  Position at;
  std::string op;  // "In", "Exists": as it is written.
  std::vector<std::string> values;
};
[[nodiscard]] std::vector<SelectedLabel> selected_labels(const DocumentValue& spec);

// A hostPath volume whose path or name says that it is for MPS, and not its log or its shared memory.
[[nodiscard]] bool is_pipe_volume(const DocumentValue& volume);

// What a cluster makes of pods.
struct PodRules {
  std::optional<bool> kai_gpu_sharing = {};     // Whether KAI's GPU sharing is on. Absent: unknown, taken as on.
  std::string kai_scheduler = "kai-scheduler";  // What KAI's pods have as schedulerName; a kai-config can override it.
  std::int64_t mps_user = PartitioningSettings().mps_user;
};

// As the cluster's KAI and the operator are configured now.
[[nodiscard]] PodRules rules_of(const World& world, const PlannerSettings& settings);

// Adds what is wrong to `diagnostics`.
void check_pod(const DocumentValue& pod, const PodRules& rules, std::vector<Diagnostic>& diagnostics);

}  // namespace gso
