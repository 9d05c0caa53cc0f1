#include "reconcilers/explain/reading_pass.h"

namespace gso {

namespace {
constexpr std::string_view kExplain = "explain";
}  // namespace

ReadingPass::ReadingPass(const Snapshot& snapshot, FleetIndex& index)
    : snapshot_(snapshot),
      views_(snapshot_, index.impl()),
      pass_(snapshot_, index.impl(), kExplain, &views_),
      steps_(pass_) {}

ReadingPass::ReadingPass(const World& world, FleetIndex& index, const PlannerSettings& settings, WallTime now)
    : snapshot_{world, now, no_timers_, not_listed_, settings},
      views_(snapshot_, index.impl()),
      pass_(snapshot_, index.impl(), kExplain, &views_),
      steps_(pass_) {}

const Step* ReadingPass::step_of(const Node& node, const NodeAssessment& a) {
  const std::string& name = node.meta.name;
  if (const auto known = known_.find(name); known != known_.end()) return &known->second;
  if (steps_.is_undecided(name, a)) return nullptr;
  return &known_.emplace(name, steps_.of(node, a)).first->second;
}

const Stop* ReadingPass::stop_of(const NodeAssessment& a) {
  if (!pass_.index.record) return nullptr;
  const RolloutView* rollout = views_.find(pass_.index.rollout_key_of(a));
  return rollout != nullptr && rollout->stop() ? &*rollout->stop() : nullptr;
}

}  // namespace gso
