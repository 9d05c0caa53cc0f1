// The phase of a SharingRollout whose revision is the target of its nodes, with the reason.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/rollout/standstill.h"
#include "reconcilers/status/next_status.h"
#include "reconcilers/status/status.h"

namespace gso {

namespace {

// The revision can be the one that the nodes run already.
constexpr std::string_view kNewerTemplate =
    "nodes wait for pods of a newer template of their DaemonSets (updateStrategy OnDelete)";

// Nodes that were mid-change to another revision when this one arrived. Their pods read the new text with or without
// approval; stopping would keep the nodes out of service. A node none of whose pods is deleted yet leaves its change.
std::string on_their_way(const RolloutView& view) {
  std::vector<std::string> nodes;
  for (const std::string& name : view.changing())
    if (view.pass.index.find(name)->phase != Phase::draining) nodes.push_back(name);
  if (nodes.empty()) return {};
  return "; nodes already in progress finish with the current text: " + join_names(nodes);
}

// For a rollout that is complete although nodes failed: they served no GPU before their change.
std::string failed_before(const RolloutView& view) {
  const std::set<std::string>& failed = view.failed();
  if (failed.empty()) return {};
  return "; out of service before the change, and failed to verify: " + join_names(failed);
}

// Nodes that did not show their profile when the operator first read them: they are not changed, unless asked for. A
// record that is lost in the middle of a rollout is taken anew with such nodes.
std::vector<std::string> drifted_at_install(const RolloutView& view) {
  std::vector<std::string> out;
  if (view.profile_rollout.tally.unshown() == 0) return out;
  for (const std::string& name : view.pass.index.nodes_in(Bucket::drifted_at_install)) {
    const NodeAssessment& a = *view.pass.index.find(name);
    if (view.has(a) && drifts(a)) out.push_back(name);
  }
  return out;
}

// Nodes that ran this key and have no key now, because the plugin's default names one that does not exist, or cannot be
// read. They have left the rollout for no revision, and it is not complete without them.
std::vector<std::string> lost_their_key(const RolloutView& view) {
  const std::string loaded = view.key.config_map.substr(view.key.config_map.find('/') + 1) + "/" + view.key.key;
  std::vector<std::string> out;
  for (const auto& [key, other] : view.pass.index.profile_rollouts) {
    const auto invalid = other.blocked.find(std::string(kConfigInvalid));
    const bool alike = key.policy == view.key.policy && key.config_map == view.key.config_map;
    if (!alike || key.key == view.key.key || invalid == other.blocked.end()) continue;
    for (const std::string& name : invalid->second) {
      const NodeAssessment& a = *view.pass.index.find(name);
      const bool by_default = a.source == EffectiveKey::Source::error && !a.has_unknown_label();
      if (by_default && a.loaded.profile.view() == loaded) out.push_back(name);
    }
  }
  return out;
}

// Every node is blocked, and none has the revision: nothing is complete. Missing labels and lost keys have messages of
// their own.
std::optional<RolloutPhase> blocked_everywhere(const RolloutView& view) {
  const auto& by_reason = view.profile_rollout.blocked;
  if (by_reason.empty() || by_reason.contains(std::string(kLabelsMissing))) return std::nullopt;
  if (view.profile_rollout.tally.of(Phase::up_to_date) > 0 || !lost_their_key(view).empty()) return std::nullopt;
  const auto has_it = [&](const std::string& node) {
    return view.pass.index.find(node)->loaded.revision == std::string_view(view.target);
  };
  std::string why;
  for (const auto& [reason, nodes] : by_reason) {
    if (std::ranges::any_of(nodes, has_it)) return std::nullopt;
    why += fmt::format("{}{} ({})", why.empty() ? "" : "; ", join_names(nodes), reason);
  }
  return RolloutPhase{"Paused",
                      {by_reason.begin()->first, "no node has the revision, and none can be changed now: " + why}};
}

}  // namespace

RolloutPhase rollout_phase_of(const RolloutView& view, const SharingRollout& rollout) {
  const ProfileRollout& profile_rollout = view.profile_rollout;
  if (GateState aborted = closed_by_abort(view); !aborted.is_open())
    return {std::string(row_of(aborted.gate).phase), aborted.why()};
  const std::int64_t pending = profile_rollout.tally.of(Phase::pending);
  const std::int64_t moving = profile_rollout.tally.changing;
  const std::int64_t left = pending + moving + view.repairs_left();
  const std::int64_t other = profile_rollout.tally.loading + profile_rollout.tally.of(Phase::following_daemonset);
  const bool failed = view.present_failures() > 0 || is_doubtful(view);
  const bool completed = rollout.phase == "Completed";
  const bool none_moves = left == 0 && other == 0 && !failed && !completed;
  const auto blocked = none_moves ? blocked_everywhere(view) : std::nullopt;
  if (left == 0 && !failed && !blocked) {
    // A node that joins or drifts later does not reopen a completed rollout before its repair begins.
    const auto drifted = completed ? std::vector<std::string>() : drifted_at_install(view);
    if (!drifted.empty())
      return {"Paused", {kPreexistingDrift, preexisting_drift_text(join_names(drifted), rollout.policy)}};
    if (!view.assumed().empty())
      return {"Paused", {kUnproven, unproven_text(join_names(view.assumed()), rollout.policy)}};
    const auto unlabelled = profile_rollout.blocked.find(std::string(kLabelsMissing));
    if (!completed && unlabelled != profile_rollout.blocked.end()) {
      return {"Paused",
              {kLabelsMissing,
               fmt::format("waits for the labels of {}. Check the pods of GPU Feature Discovery and Node Feature "
                           "Discovery",
                           join_names(unlabelled->second))}};
    }
    const auto without_key = completed ? std::vector<std::string>() : lost_their_key(view);
    if (!without_key.empty()) {
      return {"Paused",
              {kConfigInvalid, fmt::format("waits for nodes that have lost this key: {}. {}", join_names(without_key),
                                           view.pass.index.find(without_key.front())->obstacle.message)}};
    }
    if (other == 0 || completed)
      return {"Completed", {"Completed", "every node that can be changed has the revision" + failed_before(view)}};
  }
  const GateState& gate = view.gate();
  const std::optional<Reason>& still = view.standstill();
  const std::string& why = still ? still->message : gate.message;
  if (const std::string phase(row_of(gate.gate).phase); !phase.empty())
    return {phase, {gate.reason(), gate.gate == Gate::approval ? why + on_their_way(view) : why}};
  if (blocked) return *blocked;
  if (left == 0 && failed) return {"Failed", {kVerificationFailed, failed_nodes_text(view)}};
  if (still) return {"Progressing", *still, true};
  if (!gate.is_open()) return {"Progressing", gate.why()};
  return {"Progressing",
          {kRollingOut, std::string(profile_rollout.tally.new_template > 0 ? kNewerTemplate : ""),
           pending > 0 ? view.waits().facts : Facts()},
          false,
          progress_text(view)};
}

// --- Deletes finished SharingRollouts beyond the limit of their policy, oldest first.

void trim_rollout_history(Pass& pass) {
  std::map<std::string_view, std::vector<const SharingRollout*>> finished;
  for (const auto& [key, rollout] : pass.s.world.rollouts.all())
    if (has_ended(rollout->phase) && !rollout->meta.deletion_timestamp)
      finished[rollout->policy].push_back(rollout.get());
  for (auto& [policy, rollouts] : finished) {
    const std::int64_t wanted =
        pass.index.policy(pass.s.world, policy).revision_history_limit.value_or(pass.s.settings.revision_history_limit);
    const auto limit = static_cast<std::size_t>(std::max<std::int64_t>(0, wanted));
    if (rollouts.size() <= limit) continue;
    std::ranges::sort(rollouts, [](const SharingRollout* a, const SharingRollout* b) {
      return std::tie(a->meta.creation_timestamp, a->meta.name) < std::tie(b->meta.creation_timestamp, b->meta.name);
    });
    std::size_t left = rollouts.size() - limit;
    for (const SharingRollout* rollout : rollouts) {
      if (left == 0) break;
      // It belongs to the present target, or it holds a stop: it is not history.
      if (holds_a_switch(pass, *rollout)) continue;
      pass.add(DeleteObject{rollout_ref(*rollout)}, "HistoryLimit", "more than " + counted(limit, "finished rollout"));
      --left;
    }
  }
}

}  // namespace gso
