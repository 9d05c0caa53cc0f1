#include "tests/reconcilers/fleet_model/same_plan_checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <ranges>
#include <set>
#include <string>
#include <vector>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/node/node_phase.h"
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

// Of nodes in these phases it is not expected, or not known, that they offer GPUs.
bool is_excused(Phase phase) {
  const Phase excused[] = {Phase::unmanaged,           Phase::draining, Phase::restarting, Phase::verifying,
                           Phase::following_daemonset, Phase::held};
  return std::ranges::find(excused, phase) != std::end(excused);
}

}  // namespace

void check_same_plan(FleetModel& fleet) {
  const Plan anew = fleet.plan_from_scratch(fleet.world);
  const Plan opposite = fleet.plan_from_scratch(reversed(fleet.world));
  const Plan followed = fleet.plan_again();
  {
    SCOPED_TRACE("the index that has followed the events, and a new one");
    check_same(followed, anew);
  }
  SCOPED_TRACE("stores in the opposite order");
  check_same(followed, opposite);
}

void check_shown_sums(const FleetModel& fleet) {
  ShownSums wanted;
  std::set<std::string> without_gpus;
  std::set<std::string> cordoned;
  const auto look_at_cordon = [&](const Node& node) {
    if (node.unschedulable && is_cordoned_by_operator(node)) cordoned.insert(node.meta.name);
  };
  for (const std::string& name : fleet.index.node_names()) {
    const NodeAssessment& a = *fleet.index.assessment(name);
    const Node& node = *fleet.world.nodes.find(name);
    const Phase phase = phase_of(a);
    const std::string state(state_name(a));
    ++wanted.states[state];
    ++wanted.profiles[std::string(a.profile_ref.view())][state];
    if (phase == Phase::blocked || phase == Phase::held) wanted.reasons[std::string(shown_reason(a))].insert(name);
    if (phase == Phase::failed) wanted.failed.insert(name);
    if (drifts(a) && a.at_install == AtInstall::shown) wanted.drifting.insert(name);
    if (node.ready && !serves_gpus(node) && !is_excused(phase)) without_gpus.insert(name);
    look_at_cordon(node);
  }
  const FleetIndex::Impl& index = fleet.index.impl();
  for (const auto& [name, busy] : index.abandoned) look_at_cordon(*fleet.world.nodes.find(name));

  EXPECT_EQ(index.shown.states, wanted.states);
  EXPECT_EQ(index.shown.profiles, wanted.profiles);
  EXPECT_EQ(index.shown.reasons, wanted.reasons);
  EXPECT_EQ(index.shown.failed, wanted.failed);
  EXPECT_EQ(index.shown.drifting, wanted.drifting);
  EXPECT_EQ(index.nodes_in(Bucket::without_gpus), without_gpus);
  EXPECT_EQ(index.nodes_in(Bucket::cordoned), cordoned);
}

}  // namespace gso::test
