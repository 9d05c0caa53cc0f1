#include "tests/reconcilers/fleet_model/same_plan_checks.h"

#include <gtest/gtest.h>

#include <ranges>
#include <vector>

#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/store_order.h"
#include "reconcilers/registry.h"
#include "tests/reconcilers/fleet_model/invariant_checks.h"

namespace gso::test {

namespace {

template <class T>
k8s::Store<T> reversed(const k8s::Store<T>& store) {
  k8s::Store<T> out;
  const std::vector<const T*> objects = in_order(store);
  for (const T* object : objects | std::views::reverse) out.apply(*object);
  if (store.synced()) out.mark_synced();
  return out;
}

}  // namespace

World reversed(const World& world) {
  World out = world;
  out.nodes = reversed(world.nodes);
  out.daemonsets = reversed(world.daemonsets);
  out.configmaps = reversed(world.configmaps);
  out.operand_pods = reversed(world.operand_pods);
  out.revisions = reversed(world.revisions);
  out.clusterpolicies = reversed(world.clusterpolicies);
  out.policies = reversed(world.policies);
  out.rollouts = reversed(world.rollouts);
  return out;
}

void check_same_plan(FleetModel& fleet) {
  const auto plan_of = [&](const World& world, FleetIndex& index) {
    return plan_all(
        Snapshot{world, fleet.now, fleet.timers, fleet.consumers, fleet.settings, &fleet.refused_writes, false}, index);
  };
  const Plan followed = plan_of(fleet.world, fleet.index);
  FleetIndex anew;
  anew.impl().profiles = fleet.index.impl().profiles;  // As in FleetModel::plan_from_scratch().
  {
    SCOPED_TRACE("the index that has followed the events, and a new one");
    check_same(followed, plan_of(fleet.world, anew));
  }
  const World other = reversed(fleet.world);
  FleetIndex over_other;
  over_other.impl().profiles = fleet.index.impl().profiles;
  SCOPED_TRACE("stores in the opposite order");
  check_same(followed, plan_of(other, over_other));
}

}  // namespace gso::test
