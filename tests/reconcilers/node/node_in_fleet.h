// A node of a fleet in virtual time, for the tests of rows of node_step.h that the assessment decides.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/node/node_phase.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test {

inline constexpr const char* kName = "n01";

// Two nodes that run `ts-4`, one of them `kName`.
class NodeInFleet : public testing::Test {
 protected:
  FleetModel& fleet(FleetSpec spec = {}, bool settled = true) {
    spec.profiles = {{"any", "ts-4"}, {"other", "ts-2"}};
    spec.nodes = alike_nodes(2);
    fleet_ = std::make_unique<FleetModel>(spec);
    fleet_->settings.cluster_max_unavailable = fleet_->settings.rollout.max_unavailable = {100, true};
    if (settled) {
      EXPECT_TRUE(fleet_->settle());
    }
    return *fleet_;
  }

  Phase phase(const std::string& node = kName) {
    (void)fleet_->plan();
    const NodeAssessment* a = fleet_->index.assessment(node);
    return a == nullptr ? Phase::unmanaged : phase_of(*a);
  }
  std::string_view reason() { return fleet_->index.assessment(kName)->obstacle.code; }
  ChangeCause cause() { return fleet_->index.assessment(kName)->cause; }

  // What one pass does with the node: the reasons of its patches, and "delete" for each of its pods.
  std::vector<std::string> actions(const std::string& node = kName) {
    std::vector<std::string> out;
    Plan plan = fleet_->plan();
    // The listings that it asks for arrive in the same second.
    for (int more = 0; more < 5 && !plan.consumers_wanted.empty(); ++more) plan = fleet_->plan();
    for (const PlannedAction& planned : plan.actions) {
      if (planned.node != node) continue;
      out.push_back(std::holds_alternative<DeletePod>(planned.action) ? "delete" : planned.why.code);
    }
    return out;
  }
  using Actions = std::vector<std::string>;
  // The first pass of a change that drains nothing and replaces plugin and GFD.
  const Actions kRestarted = {"Update", "delete", "delete"};

  std::set<std::string> findings() {
    std::set<std::string> out;
    for (const Finding& finding : fleet_->plan().findings) {
      if (finding.object.name == kName) out.insert(finding.why.code);
    }
    return out;
  }

  // Seconds until the pass that does something with the node, at most `limit`; -1: none.
  int until_action(int limit, const std::string& node = kName) {
    return until(limit, [&] { return !actions(node).empty(); });
  }
  // That pass comes after so many seconds, or up to five later.
  void expect_action_after(int seconds, const std::string& node = kName) {
    const int waited = until_action(seconds + 300, node);
    EXPECT_TRUE(waited >= seconds && waited <= seconds + 5) << waited;
  }
  // Seconds until it holds.
  int until(int limit, const std::function<bool()>& holds) {
    for (int second = 0; second < limit; ++second) {
      if (holds()) return second;
      fleet_->tick();
    }
    return -1;
  }

  std::unique_ptr<FleetModel> fleet_;
};

}  // namespace gso::test
