// The list of reconcilers: the name, reads, writes and planner of each. A test compares it with the chart's RBAC; `plan
// --only NAME` and the metrics take their names from it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/object.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/partitioning/partitioning.h"

namespace gso {

// Verbs on one resource: {"", "v1", "pods"} -> {"list", "delete"}. A subresource is part of the name ("pods/eviction").
struct Access {
  k8s::Gvr resource;
  std::vector<std::string> verbs;
};

// Its deletions need a final check with fresh lists (controller/kai/kai_lookups.h).
inline constexpr std::string_view kReservationGc = "pod.reservation-gc";
inline constexpr std::string_view kKaiConfig = "kai.config";
// Without a record it plans nothing but the baseline.
inline constexpr std::string_view kSharingRollout = "sharing.rollout";

class RolloutViews;  // rollout/rollout_view.h

struct Reconciler {
  std::string_view name;          // "sharing.rollout"
  std::vector<k8s::Gvr> watches;  // Stores that its planner reads.
  std::vector<Access> writes;     // Permissions that its actions need, in addition to get/list/watch of `watches`.
  Plan (*plan)(const Snapshot& snapshot, FleetIndex& index, RolloutViews& rollouts);
  // Planned although a view that it reads is not current, for the nodes that are in a change, without what would begin
  // or delete something (World::stale_views). The others wait for their views.
  bool continues_changes = false;
};

// Sorted in the order in which their plans are joined.
[[nodiscard]] const std::vector<Reconciler>& reconcilers();

// Whether the World's store of this resource has synced; true for a resource without a store.
[[nodiscard]] bool store_synced(const World& world, const k8s::Gvr& resource);

// Which reconcilers plan_all() plans, and callbacks that observe it.
struct ReconcilerFilter {
  std::string_view only = {};  // Name of the only reconciler to plan; empty: all.
  // Whether the view of a resource is complete; empty: store_synced().
  std::function<bool(const k8s::Gvr& resource)> synced = {};
  // Called before and after each reconciler, for metrics; a null plan: the reconciler waits for a store.
  std::function<void()> begin = {};
  std::function<void(const Reconciler& reconciler, const Plan* plan)> planned = {};
  // No further than this; see effective_mode().
  PartitioningMode partitioning = PartitioningMode::enforce;
};
// For views that are complete by construction, such as those of tests and listings.
inline bool everything_synced(const k8s::Gvr&) {
  return true;
}

// Everything that the operator would do now. Only this function plans reconcilers. It updates the index first. A
// reconciler is planned only once every store that it reads has synced (S4), and no reconciler before the operator's
// own namespace has synced. From a view that is not current nothing new is started, and nothing is deleted. Nothing is
// planned for a node that is being written (World::nodes_being_written). On an
// up-to-date, quiet cluster the plan is empty except for timers and the time of the next look. Equal worlds give equal
// plans, in equal order; timers are sorted and named once.
[[nodiscard]] Plan plan_all(const Snapshot& snapshot, FleetIndex& index, const ReconcilerFilter& filter = {});

}  // namespace gso
