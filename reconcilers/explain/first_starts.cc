#include "reconcilers/explain/first_starts.h"

#include <chrono>
#include <memory>
#include <utility>
#include <variant>

#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/explain/what_if.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/registry.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/standstill.h"

namespace gso {
namespace {

// Waits that end by themselves within moments after an edit. Soaks and deadlines are no such waits.
bool ends_shortly(Timer timer) {
  return timer == Timer::settled || timer == Timer::key_text || timer == Timer::projecting;
}

// A change that has failed is over: the next one takes its place.
bool is_in_change(const Node& node) {
  if (!node.meta.annotations.get(kChangeAnnotation)) return false;
  const std::shared_ptr<const NodeChange> change = change_of(node);
  return change == nullptr || !change->failed;
}

// One plan after the other, each with the short waits over that the one before has named, until one starts nodes or
// nothing new shows.
class Rehearsal {
 public:
  Rehearsal(World& world, const PlannerSettings& settings, WallTime now,
            const std::map<std::string, NodeConsumers>& consumers)
      : world_(world), settings_(settings), now_(now), consumers_(consumers) {}

  std::set<std::string> run() {
    constexpr int kMostRounds = 8;
    std::set<std::string> started;
    for (int round = 0; round < kMostRounds && started.empty(); ++round) {
      FleetIndex index;
      const Snapshot snapshot{world_, now_, timers_, consumers_, settings_, nullptr, round == 0};
      const Plan plan = plan_all(snapshot, index, {.synced = everything_synced});
      started = apply(plan);
      if (!credit(plan) && !replaced_) break;
      replaced_ = false;
    }
    return started;
  }

  [[nodiscard]] const Timers& timers() const { return timers_; }

 private:
  // Nodes whose change begins. A SharingRollout of an earlier attempt goes before a node starts.
  std::set<std::string> apply(const Plan& plan) {
    std::set<std::string> started;
    for (const PlannedAction& planned : plan.actions) {
      if (const auto* removal = std::get_if<DeleteObject>(&planned.action)) {
        world_.rollouts.erase({"", removal->object.name});
        replaced_ = true;
      }
      // What the operator records before it starts nodes.
      if (const auto* write = std::get_if<WriteConfigMap>(&planned.action)) {
        assume_written(world_, *write);
        replaced_ = true;
      }
      const auto* patch = std::get_if<PatchNode>(&planned.action);
      const Node* node = patch == nullptr || !writes_change(*patch) ? nullptr : world_.nodes.find(patch->name);
      if (node == nullptr || is_in_change(*node)) continue;  // It has begun before.
      Node begun = patched(*node, *patch);
      if (!is_in_change(begun)) continue;
      world_.nodes.replace(std::move(begun));
      started.insert(patch->name);
    }
    return started;
  }

  // False: no timer is new.
  bool credit(const Plan& plan) {
    bool fresh = false;
    const auto add = [&](const TimerKey& timer, WallTime since) {
      if (ends_shortly(timer.timer)) since = now_ - std::chrono::hours(1);
      fresh = timers_.emplace(timer, since).second || fresh;
    };
    for (const auto& [timer, since] : plan.timer_starts) add(timer, since);
    for (const TimerKey& timer : plan.timers) {
      if (ends_shortly(timer.timer)) add(timer, now_);
    }
    return fresh;
  }

  World& world_;
  const PlannerSettings& settings_;
  WallTime now_;
  const std::map<std::string, NodeConsumers>& consumers_;
  Timers timers_;
  bool replaced_ = false;
};

// Of a rollout that starts no node yet, although nothing that lasts stops it.
std::string short_wait_of(ReadingPass& pass, const NodeAssessment& a, const std::string& settling) {
  if (!settling.empty()) return "settling: " + settling;
  const RolloutView* rollout = pass.rollout(pass.index().rollout_key_of(a));
  const Gate gate = rollout == nullptr ? Gate::open : rollout->gate().gate;
  if (gate == Gate::settling || gate == Gate::key_not_projected)
    return "settling: the profile has just changed, and nodes start once it stays the same and the kubelets have it";
  return "not yet decided";
}

// `settling`: when the nodes of its policy start at the earliest, where that is known.
std::string why_it_waits(ReadingPass& pass, const Node& node, const NodeAssessment& a,
                         const std::map<std::string, NodeConsumers>& consumers, const std::string& settling) {
  if (const auto why = node_out_of_reach(a, node)) return why->message;
  if (const Reason* stop = pass.stop_of(a)) return stop->code + ": " + stop->message;
  if (std::string group = pass.wait_of(a); !group.empty()) return group;
  const auto listed = consumers.find(node.meta.name);
  return listed != consumers.end() && !listed->second.pods.empty() ? "pods use its GPUs: idle nodes start first"
                                                                   : short_wait_of(pass, a, settling);
}

// Before the short waits count as over.
std::string settling_of(const World& world, const PlannerSettings& settings, WallTime now, std::string_view policy) {
  FleetIndex index;
  index.refresh(world, settings);
  const std::map<std::string, std::string> all = ReadingPass(world, index, settings, now).settling();
  const auto found = all.find(std::string(policy));
  return found == all.end() ? std::string() : found->second;
}

}  // namespace

FirstStarts first_starts(World& world, const PlannerSettings& settings, WallTime now,
                         const std::map<std::string, NodeConsumers>& consumers, std::string_view policy) {
  const std::string settling = settling_of(world, settings, now, policy);
  Rehearsal rehearsal(world, settings, now, consumers);
  const std::set<std::string> started = rehearsal.run();
  FleetIndex index;
  index.refresh(world, settings);
  // The short waits are over for this look as well.
  const Snapshot snapshot{world, now, rehearsal.timers(), consumers, settings};
  ReadingPass pass(snapshot, index);
  FirstStarts out;
  for (const std::string& name : index.node_names()) {
    const NodeAssessment& a = *index.assessment(name);
    if (a.policy != policy) continue;
    if (started.contains(name)) out.nodes.insert(name);
    if (a.phase == Phase::pending)
      out.waits.emplace(name, why_it_waits(pass, *world.nodes.find(name), a, consumers, settling));
  }
  return out;
}

}  // namespace gso
