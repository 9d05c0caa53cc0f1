// A pass that only reads: what the operator would decide now, for people, and what a node in a change waits for. What
// it plans is dropped.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/fleet/fleet.h"
#include "reconcilers/reasons/command.h"
#include "reconcilers/rollout/change_steps.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

class ReadingPass {
 public:
  // `index` is refreshed. All arguments must outlive this, and what they refer to.
  ReadingPass(const Snapshot& snapshot, FleetIndex& index);
  // For commands: no workloads are listed, and of the operator's timers only those are known whose start the record or
  // the ConfigMap shows (soaks, the time since the last edit), so no other deadline has passed. What else the operator
  // has seen shows in what it did, and in the statuses that it wrote.
  ReadingPass(const World& world, FleetIndex& index, const PlannerSettings& settings, WallTime now);
  ReadingPass(const ReadingPass&) = delete;
  ReadingPass& operator=(const ReadingPass&) = delete;

  [[nodiscard]] const World& world() const { return snapshot_.world; }
  [[nodiscard]] WallTime now() const { return snapshot_.now; }
  [[nodiscard]] const Index& index() const { return pass_.index; }
  [[nodiscard]] const PlannerSettings& settings() const { return snapshot_.settings; }
  // For the functions of rollout/ that the operator decides with.
  [[nodiscard]] const Pass& pass() const { return pass_; }
  // Null: no node belongs to such a rollout.
  [[nodiscard]] const RolloutView* rollout(const RolloutKey& key) { return views_.find(key); }
  // The rollout of a node; null: it is of none, or the fleet has no record.
  [[nodiscard]] const RolloutView* rollout_of(const NodeAssessment& assessment) {
    return pass_.index.record ? views_.find(pass_.index.rollout_key_of(assessment)) : nullptr;
  }
  // The rollouts whose nodes wait to start: of the policy, or of all. None without a record of the fleet.
  [[nodiscard]] std::vector<const RolloutView*> waiting_rollouts(std::optional<std::string_view> policy = {});

  // The next step of a node in a change; null: nothing is decided about it now (ChangeSteps::is_undecided()).
  [[nodiscard]] const Step* step_of(const Node& node, const NodeAssessment& assessment);
  // Why the rollout of a node that needs a change starts no node, if a person, a calendar or failures stop it; null:
  // nothing does that.
  [[nodiscard]] const Reason* stop_of(const NodeAssessment& assessment);
  // stop_command() of each rollout of the policy whose nodes need a change, if all of them are stopped by a person, a
  // calendar or failures; empty: nodes start, or will by themselves.
  [[nodiscard]] std::vector<Command> stop_commands_of(std::string_view policy);
  // What a node that needs a change waits for with the other nodes of its group, as far as that can be known without
  // the operator's lists of workloads; without a code: it is not, or the node can start.
  [[nodiscard]] Reason wait_of(const NodeAssessment& assessment);
  // The pods of the node are known; the operator's statuses say what else is.
  [[nodiscard]] bool has_listed(const std::string& node) const { return snapshot_.consumers.contains(node); }
  // By policy: when nodes start whose rollout waits for its inputs to settle, for people.
  [[nodiscard]] std::map<std::string, std::string> settling();

 private:
  Timers timers_;
  Snapshot snapshot_;
  RolloutViews views_;
  Pass pass_;
  ChangeSteps steps_;
  std::map<std::string, Step> known_;
};

// --- What a node in a change waits for at present, as text.

// "the node is not Ready", "waits for pod plugin-x to end", "pod mps-x container mps: CrashLoopBackOff …", "verifying:
// …". One sentence for each row of docs/node-steps.md (step() says which row applies), with the stops and the
// settings of the pass; also the workloads that it waits for, and deadline_text(). Never empty for a node with a change
// (`assessment.change`).
[[nodiscard]] std::string change_step(ReadingPass& pass, const Node& node, const NodeAssessment& assessment);

// The node has not shown its new profile for long, and fails if that lasts: "; if this lasts, the change fails at … at
// the latest (verifyTimeout 10m0s)". Empty: nothing is late yet, or the change does not fail for what it waits for.
[[nodiscard]] std::string deadline_text(ReadingPass& pass, const Node& node, const NodeAssessment& assessment);

// Its pods that must still be replaced, by name: "gfd gfd-x", "plugin plugin-x". `ending`: those alone that are being
// deleted.
[[nodiscard]] std::vector<std::string> pods_to_go(const FleetIndex::Impl& index, const Node& node,
                                                  const NodeAssessment& assessment, bool ending = false);

// A node in a change and its step.
struct NodeStep {
  std::string node;
  Phase phase = Phase::unmanaged;
  std::string step;
  bool ready = true;
};
// The steps of the nodes in a change to a revision of a key, by name; at most `most` of them. `id`:
// "namespace/configmap/key"; empty: of all keys.
[[nodiscard]] std::vector<NodeStep> steps_to(ReadingPass& pass, std::string_view policy, std::string_view id,
                                             std::size_t most);

}  // namespace gso
