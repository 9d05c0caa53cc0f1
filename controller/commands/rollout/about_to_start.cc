#include "controller/commands/rollout/about_to_start.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/explain/stop_command.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/conditions.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/status/status.h"

namespace gso {
namespace {

// Its own SharingRollout is what a pause sets.
bool has_switches(const RolloutView& rollout) {
  return rollout.object != nullptr && !rollout.anew && !facts_of(*rollout.object).finished();
}

// Those that are not paused, else all.
std::set<std::string> open_else_paused(std::set<std::string> open, std::set<std::string> paused) {
  return open.empty() ? std::move(paused) : std::move(open);
}

// The same as policies_about_to_start(), by what the operator wrote last.
std::set<std::string> policies_that_wait(const World& world) {
  std::set<std::string> open;
  std::set<std::string> paused;
  for (const auto& [key, policy] : world.policies.all()) {
    const nlohmann::json status = parse_status(policy->status_json);
    // The status follows the abort when an operator writes it.
    const SharingRollout* current = world.rollouts.find(text_at(status, "currentRollout"));
    if (current != nullptr && current->aborted) continue;
    const nlohmann::json progressing = condition_in(status, "Progressing");
    const std::string reason = text_at(progressing, "reason");
    const bool waits = text_at(progressing, "status") == "False" && reason != kNothingToDo;
    if (waits && reason != reason_of(Gate::aborted) && reason != reason_of(Gate::undone))
      (policy->rollout.paused ? paused : open).insert(policy->meta.name);
  }
  return open_else_paused(std::move(open), std::move(paused));
}

// `index` is that of the call's world.
std::vector<AboutToStart> about_to_start_in(const RolloutCall& call, FleetIndex& index,
                                            const std::function<bool(const RolloutKey&)>& is_meant) {
  std::vector<AboutToStart> out;
  ReadingPass pass(call.world, index, call.settings, call.clock->now());
  std::map<std::string, std::string> settling = pass.settling();
  for (const auto& [key, profile_rollout] : index.impl().profile_rollouts) {
    if (profile_rollout.tally.of(Phase::pending) == 0 || !is_meant(key)) continue;
    const SharingPolicy* policy = call.world.policies.find(key.policy);
    const RolloutView* rollout = pass.rollout(key);
    if (policy == nullptr || rollout == nullptr || has_switches(*rollout) || !ended_by(*rollout).is_open()) continue;
    if (std::ranges::find(out, key.policy, &AboutToStart::policy) == out.end())
      out.push_back({key.policy, policy->rollout.paused, settling[key.policy]});
  }
  return out;
}

}  // namespace

std::vector<AboutToStart> about_to_start(const RolloutCall& call,
                                         const std::function<bool(const RolloutKey&)>& is_meant) {
  FleetIndex index;
  index.refresh(call.world, call.settings);
  return about_to_start_in(call, index, is_meant);
}

std::vector<AboutToStart> about_to_replace(const RolloutCall& call, const std::vector<RolloutFacts>& rollouts) {
  FleetIndex index;
  index.refresh(call.world, call.settings);
  std::vector<AboutToStart> out = about_to_start_in(call, index, [&](const RolloutKey& key) {
    return std::ranges::any_of(rollouts, [&](const RolloutFacts& facts) {
      return key == rollout_key_of(*facts.rollout) && present_rollout(*facts.rollout, index.impl()) == nullptr;
    });
  });
  std::erase_if(out, [](const AboutToStart& one) { return one.paused; });
  return out;
}

std::set<std::string> policies_about_to_start(const RolloutCall& call) {
  FleetIndex index;
  index.refresh(call.world, call.settings);
  // The record can be in another namespace than the one that was given.
  if (!index.impl().record) return policies_that_wait(call.world);
  std::set<std::string> open;
  std::set<std::string> paused;
  for (const AboutToStart& one : about_to_start_in(call, index, [](const RolloutKey&) { return true; }))
    (one.paused ? paused : open).insert(one.policy);
  return open_else_paused(std::move(open), std::move(paused));
}

}  // namespace gso
