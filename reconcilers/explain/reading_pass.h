// A pass that only reads: what the operator would decide now, for people. What it plans is dropped.
#pragma once

#include <map>
#include <string>

#include "reconcilers/fleet/fleet.h"
#include "reconcilers/rollout/change_steps.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

class ReadingPass {
 public:
  // `index` is refreshed. All arguments must outlive this, and what they refer to.
  ReadingPass(const Snapshot& snapshot, FleetIndex& index);
  // For commands: no timer runs, so no deadline has passed, and no workloads are listed. The operator's own timers and
  // lists are seen in what it did, and in the statuses that it wrote.
  ReadingPass(const World& world, FleetIndex& index, const PlannerSettings& settings, WallTime now);
  ReadingPass(const ReadingPass&) = delete;
  ReadingPass& operator=(const ReadingPass&) = delete;

  [[nodiscard]] const World& world() const { return snapshot_.world; }
  [[nodiscard]] const Index& index() const { return pass_.index; }

  // The next step of a node in a change; null: nothing is decided about it now (ChangeSteps::is_undecided()).
  [[nodiscard]] const Step* step_of(const Node& node, const NodeAssessment& assessment);
  // Why the rollout of a node that needs a change starts no node, if a person, a calendar or failures stop it; null:
  // nothing does that.
  [[nodiscard]] const Stop* stop_of(const NodeAssessment& assessment);

 private:
  Timers no_timers_;
  std::map<std::string, NodeConsumers> not_listed_;
  Snapshot snapshot_;
  RolloutViews views_;
  Pass pass_;
  ChangeSteps steps_;
  std::map<std::string, Step> known_;
};

}  // namespace gso
