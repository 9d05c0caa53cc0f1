#include "reconcilers/rollout/standstill.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/change_steps.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/recorded_timers.h"
#include "reconcilers/rollout/repairs.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/rollout/slots.h"

namespace gso {

std::optional<Reason> node_out_of_reach(const NodeAssessment& a, const Node& node) {
  const std::string_view reason = excuse_of(a);
  if (reason.empty() || (reason == kNodesNotReady && a.change)) return std::nullopt;
  return Reason{reason, reason == kNodesNotReady ? std::string(kNotReadyText) : describe_holder(reason, node)};
}

OutOfReach out_of_reach_of(const RolloutView& rollout) {
  OutOfReach out;
  const ProfileRollout& profile_rollout = rollout.profile_rollout;
  std::map<std::string, std::int64_t> stuck, waiting;  // By product: in a change, and pending.
  bool moves = (profile_rollout.tally.of(Phase::following_daemonset) > 0);
  const auto note = [&](const std::string& name, std::map<std::string, std::int64_t>& count) {
    const NodeAssessment& a = *rollout.pass.index.find(name);
    const Node* node = rollout.pass.s.world.nodes.find(name);
    if (node == nullptr) return false;
    const auto why = node_out_of_reach(a, *node);
    if (!why) return false;
    out.nodes[why->code].emplace(name, why->message);
    ++count[std::string(a.product.view())];
    return true;
  };
  for (const std::string& name : profile_rollout.nodes(RolloutBucket::set_aside))
    if (rollout.pass.index.find(name)->phase == Phase::pending) (void)note(name, waiting);
  for (const std::string& name : profile_rollout.nodes(RolloutBucket::stuck)) {
    const NodeAssessment& a = *rollout.pass.index.find(name);
    // One that did not serve before does not prevent a canary from starting.
    if (note(name, stuck) && !a.change->served) --stuck[std::string(a.product.view())];
  }
  moves = moves || profile_rollout.tally.changing > std::ssize(profile_rollout.nodes(RolloutBucket::stuck));
  const std::int64_t quota = rollout.policy.rollout.canary_nodes_per_group;
  out.stops_all = !moves && !out.nodes.empty() && std::ranges::all_of(profile_rollout.groups, [&](const auto& entry) {
    const auto& [product, group] = entry;
    if (static_cast<std::int64_t>(group.pending.size()) <= waiting[product]) return true;
    const Canary& canary = rollout.canary(product);
    return !canary.verified && std::ssize(canary.proven) + stuck[product] >= quota;
  });
  return out;
}

namespace {

// Nodes that should have shown by now what they loaded by themselves: each waits for a restart, or for its Node to be
// Ready. By name.
std::vector<std::string> overdue_loaders(const RolloutView& rollout) {
  std::vector<std::string> out;
  if (rollout.profile_rollout.tally.loading == 0) return out;
  for (const auto& [name, a] : rollout.nodes_in(Bucket::self_loaded))
    if (loading_expired(rollout.pass, name, a)) out.push_back(name);
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
Reason behind_gate(const RolloutView& rollout) {
  const GateState& gate = rollout.gate();
  const Tally& nodes = rollout.profile_rollout.tally;
  const std::int64_t pending = nodes.of(Phase::pending);
  if (gate.gate == Gate::outside_window && pending > 0) {
    const std::string& key = rollout.key.key;
    return {gate.reason(), fmt::format("{}; {} of {} nodes wait to change{} to {}", gate.message, pending, nodes.total,
                                       key.empty() ? "" : " key " + key, rollout.target)};
  }
  if (gate.gate != Gate::observe || pending == 0) return gate.why();
  return {gate.reason(),
          fmt::format("{} of {} nodes would change to {}; {}", pending, nodes.total, rollout.target, gate.message)};
}

// What these nodes wait for, which is not their gate. nullopt: the next passes restart or record them.
std::optional<Reason> behind_reloads(const RolloutView& rollout, const std::vector<std::string>& overdue) {
  std::vector<std::string> lost;
  std::optional<Reason> out;
  for (const std::string& name : overdue) {
    const NodeAssessment& a = *rollout.pass.index.find(name);
    const Exhausted full = is_busy(a) ? Exhausted() : rollout.exhausted(std::string(a.product.view()));
    if (!a.ready) {
      lost.push_back(name);
    } else if (auto why = reload_obstacle_of(a)) {
      why->message =
          fmt::format("{}{}: {}", name, why->code == kLabelsMissing ? "" : " must be restarted", why->message);
      out = out.value_or(*std::move(why));
    } else if (full.is_any()) {
      out = out.value_or(Reason{full.code, fmt::format("{} must be restarted: {}", name, full.message), full.facts()});
    } else {
      return std::nullopt;
    }
  }
  if (out || lost.empty()) return out;
  return Reason{kNodesNotReady,
                "the remaining nodes are NotReady, and are verified once they are Ready: " + first_names(lost),
                about_nodes(lost)};
}

bool some_move(const RolloutView& rollout, bool gated) {
  const Tally& nodes = rollout.profile_rollout.tally;
  // Those in a change that stand: by their trouble, or held.
  const auto troubles = std::ranges::count_if(
      rollout.troubles(), [](const auto& entry) { return entry.second.kind == ChangeTrouble::Kind::stands; });
  if (nodes.changing > troubles + std::ssize(rollout.profile_rollout.nodes(RolloutBucket::stuck))) return true;
  // A node that has loaded its profile by itself is only verified. If it does not come to show it in time, it must be
  // restarted, and waits like the others.
  const bool only_verified = nodes.loading > 0 && (!gated || nodes.of(Phase::pending) == 0);
  const bool some_load =
      only_verified && std::ranges::any_of(rollout.nodes_in(Bucket::self_loaded), [&](const auto& loader) {
        return !loading_expired(rollout.pass, loader.first, loader.second);
      });
  return some_load || (nodes.of(Phase::following_daemonset) > 0 && !rollout.stalled());
}

// The first node whose change stands. Where the operator lacks a permission, the next node would be refused as well.
std::optional<Reason> behind_change(const RolloutView& rollout, bool some_start) {
  for (const auto& [name, trouble] : rollout.troubles()) {
    if (trouble.kind != ChangeTrouble::Kind::stands || (some_start && trouble.code != kForbidden)) continue;
    const std::string_view state = trouble.code == kLabelsMissing ? "serves" : "out of service";
    return Reason{trouble.code, fmt::format("{} is mid-change and {}: {}", name, state, trouble.message),
                  about_nodes({name})};
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
std::optional<Reason> behind_failures(const RolloutView& rollout) {
  if (rollout.present_failures() == 0 && !is_doubtful(rollout)) return std::nullopt;
  std::string failed = failed_nodes_text(rollout);
  if (!is_gated(rollout)) return Reason{kVerificationFailed, std::move(failed)};
  Reason out = behind_gate(rollout);
  if (rollout.gate().gate != Gate::max_failures) return out;
  // The gate names the nodes that count; a text that names them twice says nothing more.
  out.message = names_all_failed(rollout) ? fmt::format("{}. Retry: `gpu-sharing-operator rollout start {}`",
                                                        out.message, rollout.policy.meta.name)
                                          : failed + "; " + out.message;
  return out;
}

// "n01 (and 2 more): why"; `nodes` is not empty. `about`: what else it is about.
Reason first_of(std::string_view code, const std::map<std::string, std::string>& nodes, Facts about = {}) {
  const auto& [name, why] = *nodes.begin();
  const std::size_t more = nodes.size() - 1;
  about.add(about_nodes({std::views::keys(nodes).begin(), std::views::keys(nodes).end()}));
  return {code, fmt::format("{}{}: {}", name, more > 0 ? fmt::format(" (and {} more)", more) : "", why),
          std::move(about)};
}

// What cordoned nodes wait for that could start otherwise; empty: no node is one.
std::string behind_canary_text(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  return fmt::format("; {} {} cordoned, and wait{} until {} canary that is not cordoned has shown the profile",
                     first_names(names), names.size() == 1 ? "is" : "are", names.size() == 1 ? "s" : "",
                     names.size() == 1 ? "its" : "their");
}

// What the Pending nodes wait for, if none of them can start.
std::optional<Reason> behind_waits(const Waits& waits) {
  if (waits.some_start) return std::nullopt;
  if (waits.exhausted) return waits.exhausted;
  if (waits.has_slot) return std::nullopt;
  if (!waits.deferred.empty()) {
    std::map<std::string, std::string> why;
    for (const auto& [name, who] : waits.deferred) why.emplace(name, who.message);
    const Reason& first = waits.deferred.begin()->second;
    return first_of(first.code, why, first.facts());
  }
  const bool not_ready = !waits.not_ready.empty();
  const std::vector<std::string>& names = not_ready ? waits.not_ready : waits.held;
  if (names.empty()) return std::nullopt;
  return Reason{not_ready ? kNodesNotReady : kHeld,
                fmt::format("the remaining nodes are {}: {}{}", not_ready ? "NotReady" : "held", first_names(names),
                            behind_canary_text(waits.behind_canary)),
                about_nodes(names)};
}

// Drifting nodes that have no slot for their repair, if none of them has one.
std::optional<Reason> behind_repairs(const RolloutView& rollout) {
  Exhausted full;
  for (const auto& [name, a] : rollout.nodes_in(Bucket::repairable)) {
    if (is_busy(a)) return std::nullopt;
    const Exhausted& why = rollout.exhausted(std::string(a.product.view()));
    if (!why.is_any()) return std::nullopt;
    if (!full.is_any()) full = why;
  }
  return full;
}

}  // namespace

std::optional<Reason> stalled_daemonsets(const RolloutView& rollout) {
  const std::int64_t following = rollout.profile_rollout.tally.of(Phase::following_daemonset);
  if (following == 0) return std::nullopt;
  const Duration patience = rollout.policy.rollout.verify_timeout;
  if (!has_run_recorded(rollout.pass, stalls_timer(rollout.key, following), patience)) return std::nullopt;
  const std::string& ns = rollout.installation.ns;
  return Reason{
      kRollingUpdateStalled,
      fmt::format(
          "{} wait{} for the DaemonSets in namespace {} to replace the pods with the newest template, but no pod "
          "was replaced for {}: check `kubectl -n {} rollout status daemonset` and pods that do not become Ready",
          counted(following, "node"), following == 1 ? "s" : "", ns, k8s::format_go_duration(patience), ns)};
}

std::optional<Reason> standstill_of(const RolloutView& rollout) {
  const Tally& nodes = rollout.profile_rollout.tally;
  const std::int64_t pending = nodes.of(Phase::pending);
  if (pending + nodes.moving() + rollout.repairs_left() == 0) return behind_failures(rollout);
  const bool gated = is_gated(rollout);
  if (some_move(rollout, gated)) return std::nullopt;
  if (gated) return behind_gate(rollout);
  const bool open = pending > 0 && rollout.gate().is_open();
  if (auto change = behind_change(rollout, open && rollout.waits().some_start)) return change;
  if (const OutOfReach& out = rollout.out_of_reach(); out.stops_all) {
    const auto& [code, stuck] = *out.nodes.begin();
    return first_of(code, stuck);
  }
  if (pending == 0 && rollout.stalled()) return rollout.stalled();
  if (open) return behind_waits(rollout.waits());
  if (rollout.repairs_left() > 0) return behind_repairs(rollout);
  return behind_reloads(rollout, overdue_loaders(rollout));
}

namespace {

using Kind = ChangeTrouble::Kind;

// How long a node usually needs to show a new profile. It is not reported earlier, because each report costs two
// writes.
constexpr Duration kUsual = std::chrono::minutes(2);
constexpr std::ptrdiff_t kMostSelfLoading = 200;  // Of the nodes that load a profile by themselves.

// The pods that stay: those that the change has not listed for replacement.
NodePods staying(const NodeAssessment& a, const NodePods& pods) {
  NodePods out = pods;
  if (!a.change) return out;
  for (const auto& [component, uids] : a.change->pods)
    std::erase_if(out.of(component), [&](const Pod* pod) { return uids.contains(pod->meta.uid); });
  return out;
}

// Why a container of these pods cannot start, in the words of the kubelet. A container that is being created is on its
// way.
std::string failing_container(const NodePods& pods) {
  for (const Component component : {Component::plugin, Component::gfd, Component::mps}) {
    for (const Pod* pod : pods.of(component)) {
      if (pod->meta.deletion_timestamp) continue;
      for (const ContainerStatus* container : pod->all_containers()) {
        const std::string_view why = container->waiting_reason.view();
        if (!why.empty() && waiting_for(why) != Waiting::starts) return std::string(why);
      }
    }
  }
  return {};
}

// The node has been expected to show its profile for at least so long, as an earlier pass has seen it.
bool has_waited(Pass& pass, const std::string& name, const NodeAssessment& a, Duration least) {
  const TimerKey timer = a.change ? change_timer(Timer::verifying, name, *a.change) : loading_timer(name, a);
  return pass.s.timers.contains(timer) && pass.ages.has_run_for(timer, least);
}

// Of a node in a change, or of one that loads a profile by itself; nullopt: it makes progress, only waits for
// workloads, or is held.
std::optional<ChangeTrouble> trouble_of(Pass& pass, const std::string& name, const NodeAssessment& a) {
  if (!a.holder.empty() || (!a.in_change() && !a.loads_by_itself())) return std::nullopt;
  if (a.in_change()) {
    if (const std::string* right = refused_write(pass, name)) return ChangeTrouble{{kForbidden, *right}, Kind::stands};
  }
  const Node* node = pass.s.world.nodes.find(name);
  if (node == nullptr) return std::nullopt;
  if (a.in_change()) {
    if (auto obstacle = obstacle_half_way(pass, *node, a)) return ChangeTrouble{*std::move(obstacle), Kind::stands};
    if (!a.ready) {
      // Nothing ends the change until the node is Ready again.
      const Duration patience = pass.index.policy(pass.s.world, a.policy.view()).rollout.verify_timeout;
      const bool stands = has_run_recorded(pass, change_timer(Timer::not_ready, name, *a.change), patience);
      std::string message(kNotReadyInChangeText);
      if (stands) message += ". Make it Ready, or delete the Node (a canary that is deleted counts as one failure)";
      return ChangeTrouble{{kNodesNotReady, std::move(message)}, stands ? Kind::stands : Kind::not_ready};
    }
  }
  if (a.phase == Phase::draining || a.matches() || !a.ready) return std::nullopt;
  const NodePods now = staying(a, sort_pods(pass.index.installation_of(a), pass.index.pods_of(name)));
  if (std::string why = failing_container(now); !why.empty())
    return ChangeTrouble{{why, fmt::format("{}; {}", shown_difference(a), first_problem(now))}, Kind::container};
  if (!has_waited(pass, name, a, kUsual)) return std::nullopt;
  if (!a.labels_missing.empty()) {
    // C11: without labels the change neither ends nor fails.
    const Duration patience = pass.index.policy(pass.s.world, a.policy.view()).rollout.verify_timeout;
    const bool stands = a.in_change() && has_waited(pass, name, a, patience);
    return ChangeTrouble{{kLabelsMissing, std::string(a.labels_missing.view())}, stands ? Kind::stands : Kind::late};
  }
  return ChangeTrouble{{to_string(a.phase), shown_difference(a)}, Kind::late};
}

}  // namespace

std::map<std::string, ChangeTrouble> troubles_of(const RolloutView& rollout) {
  std::map<std::string, ChangeTrouble> out;
  const auto look = [&](const auto& node) {
    const auto& [name, a] = node;
    if (auto trouble = trouble_of(rollout.pass, name, a)) out.emplace(name, *std::move(trouble));
  };
  std::ranges::for_each(rollout.nodes_in(Bucket::changing), look);
  // A restart by somebody else can concern the whole fleet, and the status names only the first nodes.
  std::ranges::for_each(rollout.nodes_in(Bucket::self_loaded) | std::views::take(kMostSelfLoading), look);
  return out;
}

}  // namespace gso
