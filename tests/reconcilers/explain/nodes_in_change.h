// A fleet of one node, a01, and its change of MPS, for tests of what is reported about it.
#pragma once

#include <string>

#include "reconcilers/explain/node.h"
#include "reconcilers/explain/reading_pass.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test {

inline FleetSpec one_node(const std::string& profile) {
  FleetSpec spec;
  spec.profiles = {{"any", profile}};
  spec.nodes = alike_nodes(1, "NVIDIA-A100-SXM4-40GB", "a");
  return spec;
}

// As a command shows it, which has read the cluster once.
inline ShownState shown_to_people(FleetModel& fleet, const std::string& node = "a01") {
  fleet.index.refresh(fleet.world, fleet.settings);
  ReadingPass pass(fleet.world, fleet.index, fleet.settings, fleet.now);
  return shown_state(pass, fleet.node(node));
}

// a01 of one_node("mps-4") is cordoned for its change, which stays: its new pods do not start.
inline void take_into_change(FleetModel& fleet) {
  fleet.settings.settle = Duration::zero();
  fleet.settle();
  fleet.hold_pods("a01", true);
  fleet.edit("any", "mps-8");
  for (int i = 0; i < 15; ++i) (void)fleet.tick();
}

}  // namespace gso::test
