// The KAI reconcilers' planners, as the registry calls them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "reconcilers/fleet/fleet.h"
#include "reconcilers/fleet/pass.h"
#include "reconcilers/kai/judgement.h"
#include "reconcilers/model/plan.h"

namespace gso {

// kai.config: which sharing mode is in force, and what is wrong with it.
void plan_kai_config(Pass& pass);
// pod.reservation-gc: collects reservations that hold a GPU for nobody.
void plan_reservation_gc(Pass& pass);
// Part of pod.reservation-gc: reservations against what consumers use, and KAI on nodes that serve replicas.
void plan_kai_truth(Pass& pass);

// Part of pod.reservation-gc: fraction pods that wait (KaiLookups::waiting), each with its cause, and reservations
// without a toleration that their consumers have.
void plan_kai_stuck(Pass& pass);

// Live pods on a node that BindRequests alone show: bound to groups that have no reservation there
// (KaiIndex::unreserved).
struct UnreservedConsumers {
  std::set<std::string> pods;  // "team/p"
  bool known = true;           // Every one of them has been looked up lately.
};
// Asks in `pass` for what is not known, or not lately; no more than `asks` pods, which it lowers.
[[nodiscard]] UnreservedConsumers unreserved_consumers(Pass& pass, const std::string& node, std::int64_t& asks);

// A group as the stores and the lookups show it. The pointers live as long as the World does not change.
[[nodiscard]] GroupFacts group_facts(const KaiWorld& kai, const KaiIndex& index, const std::string& group);
// Reservations of other groups that claim the same GPU on the same node.
[[nodiscard]] DeviceClaims device_claims(const KaiIndex& index);
// The same without an index; walks all pods.
[[nodiscard]] DeviceClaims device_claims(const KaiWorld& kai, const KaiView& view);
[[nodiscard]] ObjectRef pod_ref(const ObjectMeta& meta);
// Why nothing about KAI may be concluded from this view; empty: it is complete. Also "hold" where one of KAI's two APIs
// is served without the other.
[[nodiscard]] std::string kai_hold(const World& world);

}  // namespace gso
