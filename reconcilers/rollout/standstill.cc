// See standstill.h.
#include "reconcilers/rollout/standstill.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/rollout/failures.h"
#include "reconcilers/rollout/node_states.h"
#include "reconcilers/rollout/recorded_timers.h"
#include "reconcilers/rollout/reloads.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {
namespace {

// Nodes that should have shown by now what they loaded by themselves: each waits for a restart, or for its Node to be
// Ready. By name.
std::vector<std::string> overdue_loaders(const RolloutView& rollout) {
  std::vector<std::string> out;
  if (rollout.profile_rollout.tally.loading == 0) return out;
  for (const std::string& name : rollout.pass.index.nodes_in(Bucket::self_loaded)) {
    const NodeAssessment& a = *rollout.pass.index.find(name);
    if (rollout.has(a) && loading_expired(rollout.pass, name, a)) out.push_back(name);
  }
  return out;
}

// A closed gate that explains the standstill.
bool is_gated(const RolloutView& rollout) {
  const GateState& gate = rollout.gate();
  if (gate.is_open()) return false;
  if (row_of(gate.gate).stops_all) return true;
  const auto reloads = std::ranges::count_if(overdue_loaders(rollout), [&](const std::string& name) {
    return rollout.pass.index.find(name)->ready;  // The others wait for that first.
  });
  const std::int64_t waiting = rollout.profile_rollout.tally.of(Phase::pending) + rollout.repairs_left() + reloads;
  return waiting > 0 && !rollout.waits_briefly();
}

// In mode Observe the message says what would be done; outside the windows, what waits for the next one.
Standstill behind_gate(const RolloutView& rollout) {
  const GateState& gate = rollout.gate();
  const Tally& nodes = rollout.profile_rollout.tally;
  const std::int64_t pending = nodes.of(Phase::pending);
  if (gate.gate == Gate::outside_window && pending > 0) {
    const std::string& key = rollout.key.key;
    return {gate.reason(), fmt::format("{}; {} of {} nodes wait to change{} to {}", gate.message, pending, nodes.total,
                                       key.empty() ? "" : " key " + key, rollout.target)};
  }
  if (gate.gate != Gate::observe || pending == 0) return {gate.reason(), gate.message};
  return {gate.reason(),
          fmt::format("{} of {} nodes would change to {}; {}", pending, nodes.total, rollout.target, gate.message)};
}

// A node that has loaded its profile by itself is only verified. If it does not come to show it in time, it must be
// restarted, and waits like the others.
bool some_load(const RolloutView& rollout, bool gated) {
  const Tally& nodes = rollout.profile_rollout.tally;
  if (nodes.loading == 0 || (gated && nodes.of(Phase::pending) > 0)) return false;
  const auto& names = rollout.pass.index.nodes_in(Bucket::self_loaded);
  return std::ranges::any_of(names, [&](const std::string& name) {
    const NodeAssessment& a = *rollout.pass.index.find(name);
    return rollout.has(a) && !loading_expired(rollout.pass, name, a);
  });
}

// What these nodes wait for, which is not their gate. nullopt: the next passes restart or record them.
std::optional<Standstill> behind_reloads(const RolloutView& rollout, const std::vector<std::string>& overdue) {
  std::vector<std::string> lost;
  std::optional<Standstill> out;
  for (const std::string& name : overdue) {
    const NodeAssessment& a = *rollout.pass.index.find(name);
    const std::string full = is_busy(a) ? std::string() : rollout.exhausted(std::string(a.product.view()));
    if (!a.ready) {
      lost.push_back(name);
    } else if (!a.labels_missing.empty()) {
      out = out.value_or(Standstill{std::string(kLabelsMissing), fmt::format("{}: {}", name, a.labels_missing.view())});
    } else if (!a.reload_obstacle.empty()) {
      out = out.value_or(Standstill{std::string(kReloadBlocked),
                                    fmt::format("{} must be restarted: {}", name, a.reload_obstacle.view())});
    } else if (!full.empty()) {
      out =
          out.value_or(Standstill{std::string(kBudgetExhausted), fmt::format("{} must be restarted: {}", name, full)});
    } else {
      return std::nullopt;
    }
  }
  if (out || lost.empty()) return out;
  return Standstill{std::string(kNodesNotReady),
                    "the remaining nodes are NotReady, and are verified once they are Ready: " + first_names(lost)};
}

// Nodes in a change that stand: held, or by their trouble.
std::int64_t standing_changes(const RolloutView& rollout) {
  const auto troubles = std::ranges::count_if(
      rollout.troubles(), [](const auto& entry) { return entry.second.kind == ChangeTrouble::Kind::stands; });
  return troubles + std::ssize(rollout.profile_rollout.nodes(RolloutBucket::stuck));
}

bool some_move(const RolloutView& rollout, bool gated) {
  const Tally& nodes = rollout.profile_rollout.tally;
  if (nodes.changing > standing_changes(rollout) || some_load(rollout, gated)) return true;
  return nodes.of(Phase::following_daemonset) > 0 && rollout.stalled().empty();
}

// The first node whose change stands. Where the operator lacks a permission, the next node would be refused as well.
std::optional<Standstill> behind_change(const RolloutView& rollout, bool some_start) {
  for (const auto& [name, trouble] : rollout.troubles()) {
    if (trouble.kind != ChangeTrouble::Kind::stands || (some_start && trouble.reason != kForbidden)) continue;
    const std::string_view state = trouble.reason == kLabelsMissing ? "serves" : "out of service";
    return Standstill{trouble.reason, fmt::format("{} is mid-change and {}: {}", name, state, trouble.message)};
  }
  return std::nullopt;
}

// Each node that failed counts for the gate, and is a node of now.
bool names_all_failed(const RolloutView& rollout) {
  const std::map<MachineId, std::string> counted = counted_failures(rollout);
  return rollout.present_failures() > 0 && std::ranges::all_of(rollout.failed(), [&](const std::string& name) {
           return std::ranges::any_of(counted, [&](const auto& entry) { return entry.second == name; });
         });
}

// Only nodes that failed remain: none is tried again before the profile changes or somebody asks for it.
std::optional<Standstill> behind_failures(const RolloutView& rollout) {
  if (rollout.present_failures() == 0 && !is_doubtful(rollout)) return std::nullopt;
  std::string failed = failed_nodes_text(rollout);
  if (!is_gated(rollout)) return Standstill{std::string(kVerificationFailed), std::move(failed)};
  Standstill out = behind_gate(rollout);
  if (rollout.gate().gate != Gate::max_failures) return out;
  // The gate names the nodes that count; a text that names them twice says nothing more.
  out.message = names_all_failed(rollout) ? fmt::format("{}. Retry: `gpu-sharing-operator rollout start {}`",
                                                        out.message, rollout.policy.meta.name)
                                          : failed + "; " + out.message;
  return out;
}

// "n01 (and 2 more): why"; `nodes` is not empty.
std::string first_of(const std::map<std::string, std::string>& nodes) {
  const auto& [name, why] = *nodes.begin();
  const std::size_t more = nodes.size() - 1;
  return fmt::format("{}{}: {}", name, more > 0 ? fmt::format(" (and {} more)", more) : "", why);
}

// What cordoned nodes wait for that could start otherwise; empty: no node is one.
std::string behind_canary_text(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  return fmt::format("; {} {} cordoned, and wait{} until {} canary that is not cordoned has shown the profile",
                     first_names(names), names.size() == 1 ? "is" : "are", names.size() == 1 ? "s" : "",
                     names.size() == 1 ? "its" : "their");
}

// What the Pending nodes wait for, if none of them can start.
std::optional<Standstill> behind_waits(const Waits& waits) {
  if (waits.some_start) return std::nullopt;
  if (!waits.exhausted.empty()) return Standstill{std::string(kBudgetExhausted), waits.exhausted};
  if (waits.has_slot) return std::nullopt;
  if (!waits.deferred.empty()) {
    std::map<std::string, std::string> why;
    for (const auto& [name, who] : waits.deferred) why.emplace(name, who.message);
    return Standstill{std::string(waits.deferred.begin()->second.reason), first_of(why)};
  }
  if (!waits.not_ready.empty()) {
    return Standstill{std::string(kNodesNotReady), "the remaining nodes are NotReady: " + first_names(waits.not_ready) +
                                                       behind_canary_text(waits.behind_canary)};
  }
  if (waits.held.empty()) return std::nullopt;
  return Standstill{std::string(kHeld), "the remaining nodes are held: " + first_names(waits.held) +
                                            behind_canary_text(waits.behind_canary)};
}

// Drifting nodes that have no slot for their repair, if none of them has one.
std::optional<Standstill> behind_repairs(const RolloutView& rollout) {
  std::string full;
  for (const std::string& name : rollout.pass.index.nodes_in(Bucket::repairable)) {
    const NodeAssessment& a = *rollout.pass.index.find(name);
    if (!rollout.has(a)) continue;
    const std::string why = is_busy(a) ? std::string() : rollout.exhausted(std::string(a.product.view()));
    if (why.empty()) return std::nullopt;
    if (full.empty()) full = why;
  }
  return Standstill{std::string(kBudgetExhausted), full};
}

}  // namespace

std::string stalled_daemonsets(const RolloutView& rollout) {
  const std::int64_t following = rollout.profile_rollout.tally.of(Phase::following_daemonset);
  if (following == 0) return {};
  const Duration patience = rollout.policy.rollout.verify_timeout;
  const TimerKey stalls = stalls_timer(rollout.key, following);
  if (!rollout.pass.ages.has_run_for(stalls, patience, recorded_since(rollout.pass, stalls))) return {};
  const std::string& ns = rollout.installation.ns;
  return fmt::format(
      "{} wait{} for the DaemonSets in namespace {} to replace the pods with the newest template, but no pod "
      "was replaced for {}: check `kubectl -n {} rollout status daemonset` and pods that do not become Ready",
      counted(following, "node"), following == 1 ? "s" : "", ns, k8s::format_go_duration(patience), ns);
}

std::optional<Standstill> standstill_of(const RolloutView& rollout) {
  const Tally& nodes = rollout.profile_rollout.tally;
  const std::int64_t pending = nodes.of(Phase::pending);
  if (pending + nodes.moving() + rollout.repairs_left() == 0) return behind_failures(rollout);
  const bool gated = is_gated(rollout);
  if (some_move(rollout, gated)) return std::nullopt;
  if (gated) return behind_gate(rollout);
  const bool open = pending > 0 && rollout.gate().is_open();
  if (auto change = behind_change(rollout, open && rollout.waits().some_start)) return change;
  if (const OutOfReach& out = rollout.out_of_reach(); out.stops_all) {
    const auto& [reason, held] = *out.nodes.begin();
    return Standstill{reason, first_of(held), held.size() == 1 ? held.begin()->first : std::string()};
  }
  if (pending == 0 && !rollout.stalled().empty())
    return Standstill{std::string(kRollingUpdateStalled), rollout.stalled()};
  if (open) return behind_waits(rollout.waits());
  if (rollout.repairs_left() > 0) return behind_repairs(rollout);
  return behind_reloads(rollout, overdue_loaders(rollout));
}

}  // namespace gso
