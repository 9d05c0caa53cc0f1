// The list of reconcilers: name, what each reads, what each writes, and its planner. A test compares it with the
// chart's RBAC; `plan --only NAME` and the metrics take their names from it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/object.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/plan.h"

namespace gso {

// Verbs on one resource: {"", "v1", "pods"} -> {"list", "delete"}. A subresource is part of the name ("pods/eviction").
struct Access {
  k8s::Gvr resource;
  std::vector<std::string> verbs;
};

// Its deletions need a last look at fresh lists (controller/kai/kai_reads.h).
inline constexpr std::string_view kReservationGc = "pod.reservation-gc";
inline constexpr std::string_view kKaiConfig = "kai.config";
// Why a status is written, by PatchStatus or into the state ConfigMap: not worth a log line each.
inline constexpr std::string_view kStatusChanged = "StatusChanged";

struct Reconciler {
  std::string_view name;          // "sharing.rollout"
  std::string_view purpose;       // One sentence.
  std::vector<k8s::Gvr> watches;  // Stores that its planner reads.
  std::vector<Access> writes;     // What its actions need, beyond get/list/watch of `watches`.
  Plan (*plan)(const Snapshot& snapshot, FleetIndex& index);  // After index.refresh().
};

// In the order in which their plans are joined.
[[nodiscard]] const std::vector<Reconciler>& reconcilers();

}  // namespace gso
