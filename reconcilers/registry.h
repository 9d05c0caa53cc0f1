// The list of reconcilers: name, what each reads, what each writes, and its planner. A test compares it with the
// chart's RBAC; `plan --only NAME` and the metrics take their names from it.
#pragma once

#include <functional>
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

class RolloutViews;  // rollout/rollout_view.h

struct Reconciler {
  std::string_view name;          // "sharing.rollout"
  std::string_view purpose;       // One sentence.
  std::vector<k8s::Gvr> watches;  // Stores that its planner reads.
  std::vector<Access> writes;     // What its actions need, beyond get/list/watch of `watches`.
  Plan (*plan)(const Snapshot& snapshot, FleetIndex& index, RolloutViews& rollouts);
};

// In the order in which their plans are joined.
[[nodiscard]] const std::vector<Reconciler>& reconcilers();

// Whether the store of World behind this resource shows the cluster; true for a resource that has none there.
[[nodiscard]] bool store_synced(const World& world, const k8s::Gvr& resource);

// What plan_all() plans, and who watches it.
struct ReconcilerFilter {
  std::string_view only = {};  // Name of the one reconciler that is planned; empty: all of them.
  // Whether what is known of a resource is complete; empty: store_synced().
  std::function<bool(const k8s::Gvr& resource)> synced = {};
  // Called before and after each reconciler, for metrics; a null plan: it waits for a store.
  std::function<void()> begin = {};
  std::function<void(const Reconciler& reconciler, const Plan* plan)> planned = {};
};
// For views that are complete by construction, as a test's or a listing's.
inline bool everything_synced(const k8s::Gvr&) {
  return true;
}

// Everything that the operator would do now: the only place where reconcilers are planned. Brings the index up to date
// first. A reconciler is planned only once every store that it reads has synced (S4), and none before the operator's
// own namespace has. Empty on an up-to-date, quiet cluster, but for timers and the time to look again. Equal worlds
// give equal plans, in equal order; timers are sorted and named once.
[[nodiscard]] Plan plan_all(const Snapshot& snapshot, FleetIndex& index, const ReconcilerFilter& filter = {});

}  // namespace gso
