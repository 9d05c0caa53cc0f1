// The KAI reconcilers' planners, as the registry calls them, in files of their own, and what they share
// (index.cc, waiting.cc).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "reconcilers/kai/index.h"
#include "reconcilers/kai/judgement.h"
#include "reconcilers/model/plan_draft.h"

namespace gso {

// The input of these planners: the snapshot, KAI's objects by group and node, and the plan that they add to.
class KaiPass : public PlanDraft {
 public:
  // All outlive this.
  KaiPass(const Snapshot& snapshot, const KaiIndex& index, std::string_view reconciler)
      : PlanDraft(snapshot, reconciler), kai(index) {}

  const KaiIndex& kai;
};

// kai.config: which sharing mode is in force, and what is wrong with it.
void plan_kai_config(KaiPass& pass);
// pod.reservation-gc: deletes reservations without consumers.
void plan_reservation_gc(KaiPass& pass);
// Part of pod.reservation-gc: reservations against what consumers use, and KAI on nodes that serve replicas.
void plan_reservation_audit(KaiPass& pass);

// Part of pod.reservation-gc: fraction pods that wait (LookupResults::waiting), each with its cause, and reservations
// without a toleration that their consumers have.
void plan_kai_stuck(KaiPass& pass);

// Live pods on a node that BindRequests alone show: bound to groups that have no reservation there
// (KaiIndex::unreserved).
struct UnreservedConsumers {
  std::set<std::string> pods;  // "team/p"
  bool known = true;           // Every one of them has been looked up lately.
};
// Adds lookups to `wanted` for pods that are unknown or were not looked up lately: at most `asks`, which is decreased.
[[nodiscard]] UnreservedConsumers unreserved_consumers(const Snapshot& snapshot, const KaiIndex& index,
                                                       const std::string& node, std::int64_t& asks, KaiWants& wanted);

// A group as the stores and the lookups show it. The pointers live as long as the World does not change.
[[nodiscard]] GroupFacts group_facts(const KaiWorld& kai, const KaiIndex& index, const std::string& group);
// Reservations of other groups that claim the same GPU on the same node.
[[nodiscard]] DeviceClaims device_claims(const KaiIndex& index);
// The same without an index; walks all pods.
[[nodiscard]] DeviceClaims device_claims(const KaiWorld& kai, const KaiView& view);
// Why planners must not conclude anything about KAI from this view; empty: it is complete. Also "hold" if only one of
// KAI's two APIs is served.
[[nodiscard]] std::string kai_hold(const World& world);

}  // namespace gso
