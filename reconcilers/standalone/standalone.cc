#include "reconcilers/standalone/standalone.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <tuple>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/label_contest.h"
#include "reconcilers/rollout/recorded_timers.h"

namespace gso {
namespace {

constexpr Duration kListAgain = std::chrono::seconds(10);
// Nodes whose GPU clients are listed in one pass, to find idle ones.
constexpr std::size_t kMostListed = 16;

// What the pods of one DaemonSet show of its newest template.
struct Progress {
  std::int64_t canaries = 0;  // Nodes in a change, or with such a pod: also while that does not serve for a moment.
  std::int64_t failed = 0;
  std::int64_t not_ready = 0;              // Of pods that only watch the host's daemon.
  std::vector<const DaemonNode*> serving;  // Their pods serve with it.
  std::vector<WallTime> soaking_since;     // Since when the first of these have served without a gap, as many as are
                                           // canaries; later ones follow a canary that has passed.
  std::vector<std::string> waiting;        // Nodes that a closed gate holds.
  std::string gate;                        // Why.
};

// Timers that must not start again because a node is not looked at in one pass. `node`: empty for all nodes.
void keep_timers(Pass& pass, std::string_view node) {
  for (const auto& [timer, since] : pass.s.timers) {
    const bool of_daemon =
        timer.timer == Timer::mps_draining || timer.timer == Timer::mps_starting || is_daemon_soaking(timer);
    if (of_daemon && (node.empty() || timer.subject == node)) pass.keep(timer);
  }
}

// --- What is written to a node while its daemon is replaced. When each of these is due: standalone.h.

// Reasons of actions and Events.
constexpr std::string_view kBegun = "StandaloneMPSDraining";
constexpr std::string_view kReplaced = "StandaloneMPSReplaced";
constexpr std::string_view kBackedOut = "StandaloneMPSBackedOut";
constexpr std::string_view kDeleted = "StandaloneMPSRestart";

// Writes the mark of the node as it is next, or takes it off, and with it the operator's cordon.
void write_mark(Pass& pass, const DaemonNode& node, const std::optional<MpsDaemonChange>& next, std::string_view reason,
                std::string message, bool disruptive = false) {
  const std::string annotation(kMpsDaemonChangeAnnotation);
  const bool was_cordoned = node.in_change() && node.mark.change->cordoned;
  const bool cordons = next && next->cordoned;
  PatchNode patch{.name = node.name()};
  if (cordons != was_cordoned && cordons != node.node->unschedulable) patch.unschedulable = cordons;
  if (patch.unschedulable || (next && !next->deferred_until)) patch.resource_version = node.node->meta.resource_version;
  if (next)
    patch.set_annotations[annotation] = print_mps_daemon_change(*next);
  else
    patch.remove_annotations.insert(annotation);
  pass.add(std::move(patch), reason, std::move(message), disruptive, node.name());
}

// The node is marked and, unless it is cordoned already or the policy says otherwise, cordoned. It has a DaemonSet.
void begin_change(Pass& pass, const DaemonNode& node) {
  MpsDaemonChange change;
  change.daemonset = k8s::to_string(node.daemonset->key);
  change.to = node.daemonset->newest_hash;
  change.begun = pass.s.now;
  change.cordoned = !node.node->unschedulable && node.policy->rollout.cordon.value_or(true);
  write_mark(pass, node, change, kBegun,
             fmt::format("DaemonSet {} has a new template: the node is drained of GPU clients", change.daemonset),
             true);
}

// The mark is taken off, and the operator's cordon.
void leave_change(Pass& pass, const DaemonNode& node, std::string_view why) {
  write_mark(pass, node, std::nullopt, kReplaced, std::string(why));
}

// The operator's cordon is taken off, and the mark says until when the node does not begin again.
void defer_change(Pass& pass, const DaemonNode& node, std::string_view why) {
  MpsDaemonChange change = *node.mark.change;
  change.cordoned = false;
  change.failed = false;
  change.deferred_until =
      pass.s.now + std::chrono::ceil<WallTime::duration>(deferral_length(node.policy->rollout.idle_timeout));
  change.retry = retry_of(*node.policy);
  write_mark(pass, node, change, kBackedOut,
             fmt::format("{}; the daemon is not replaced before {}", why, k8s::format_time(*change.deferred_until)));
}

// The mark says that the daemon of the newest template has failed.
void mark_failed(Pass& pass, const DaemonNode& node) {
  MpsDaemonChange change = *node.mark.change;
  change.to = node.daemonset->newest_hash;
  change.failed = true;
  change.retry = retry_of(*node.policy);
  write_mark(pass, node, change, kStandaloneMpsFailed, "its new daemon is not Ready in time");
}

// The DaemonSet's controller creates a pod of the newest template instead. The node has a pod.
void delete_old_pod(Pass& pass, const DaemonNode& node) {
  pass.add(
      DeletePod{node.pod->meta.key(), std::string(node.pod->meta.uid), std::nullopt, std::nullopt}, kDeleted,
      fmt::format("node {} gets the new template of DaemonSet {}", node.name(), k8s::to_string(node.daemonset->key)),
      true, node.name());
}

// `rollout start`: the pod, if the node has one, is created anew, and its time to get Ready begins again.
void try_again(Pass& pass, const DaemonNode& node) {
  MpsDaemonChange change = *node.mark.change;
  change.begun = pass.s.now;
  change.failed = false;
  change.retry = retry_of(*node.policy);
  write_mark(pass, node, change, kBegun, "a person has asked for another attempt (rollout start)");
  if (node.pod != nullptr && !node.pod->meta.deletion_timestamp) delete_old_pod(pass, node);
}

// --- What becomes of each node.

class Standalone {
 public:
  Standalone(Pass& pass, Slots& slots)
      : pass_(pass),
        slots_(slots),
        nodes_(read_daemon_nodes(pass.s.world, pass.index)),
        rollouts_(count_daemons(nodes_)) {}

  DaemonRollouts run() {
    for (const DaemonNode& node : nodes_) {
      BudgetCount& group = groups_[node.group()];
      ++group.total;
      group.busy += node.busy ? 1 : 0;
      report(node);
      if (node.mark.deferred) (void)deferred_until(node);  // Its timer runs on while the node waits for anything else.
      // A node of a template that is unknown has no rollout, and does not start.
      if (const auto at = rollouts_.find(node.rollout()); at != rollouts_.end() && !gated_.contains(at->first)) {
        gated_.emplace(at->first, &node);
        at->second.gate = daemon_gate(pass_, node);
      }
    }
    for (const DaemonNode& node : nodes_) {
      if (pass_.s.world.nodes_being_written.contains(node.name())) {
        keep_timers(pass_, node.name());
        if (node.in_change()) ++in_change_[node.policy->meta.name];
      } else {
        look_at(node);
      }
    }
    soak();
    start_candidates();
    report_waiting();
    for (const auto& [key, node] : gated_) finish(rollouts_.at(key), *node);
    return std::move(rollouts_);
  }

 private:
  // Null: the newest template is unknown.
  DaemonRollout* rollout_of(const DaemonNode& node) {
    const auto at = rollouts_.find(node.rollout());
    return at == rollouts_.end() ? nullptr : &at->second;
  }

  // `node`: any of its nodes.
  void finish(DaemonRollout& rollout, const DaemonNode& node) {
    const RolloutKey key = node.rollout();
    const RolloutSpec& spec = node.policy->rollout;
    if (has_passed_canary(node))
      rollout.wave = 1 + rollout.updated / std::max<std::int64_t>(1, spec.max_unavailable.of(rollout.total));
    // A rollout that waits for an approval needs the object to approve.
    const bool awaits = rollout.gate.gate == Gate::approval || switches_to_restore(pass_, key, rollout.target);
    if (rollout.pending > 0 && awaits) ensure_object(pass_, key, rollout.target);
    if (rollout.gate.is_open() && rollout.pending > 0 && is_stopped_by_failures(node))
      rollout.gate = {Gate::max_failures, why_failed(rollout)};
  }

  Progress& progress_of(const DaemonNode& node) { return progress_[node.daemonset]; }

  // What is wrong on the node, whatever the rollout does.
  void report(const DaemonNode& node) {
    if (!node.mark.problem.empty())
      pass_.finding(Severity::warning, node_ref(node.name()), kChangeUnreadable, describe(node.mark));
    if (node.pins_driver()) report_pinned_driver(pass_, node);
    if (node.pod == nullptr || node.pod->meta.deletion_timestamp) return;
    const bool beside =
        node.assessment != nullptr &&
        !sort_pods(pass_.index.installation_of(*node.assessment), pass_.index.pods_of(node.name())).mps.empty();
    if (beside) {
      pass_.finding(Severity::error, node_ref(node.name()), kStandaloneMpsConflict,
                    fmt::format("pod {} and the device plugin's MPS daemon run on the node, and two daemons must not "
                                "serve one GPU: take the node out of the node selector of DaemonSet {}",
                                k8s::to_string(node.pod->meta.key()), k8s::to_string(node.daemonset->key)));
    }
    const auto said = [&] {
      return std::ranges::any_of(node.pod->init_containers, [](const auto& check) { return !check.ready; }) ||
             has_failing_container(*node.pod);
    };
    if (!is_serving(*node.pod) && said() && !node.in_change()) {
      pass_.finding(Severity::warning, node_ref(node.name()), kStandaloneMpsRefused,
                    fmt::format("no standalone MPS daemon runs: {}", why_not_ready(node)));
    }
  }

  void look_at(const DaemonNode& node) {
    if (node.in_change()) return go_on(node);
    if (!node.holder.empty()) return;
    if (node.daemonset == nullptr) {
      if (node.mark.deferred) leave_change(pass_, node, "its DaemonSet is gone");
      return;
    }
    if (!node.is_outdated()) {
      if (node.pod == nullptr) return;
      if (is_serving(*node.pod))
        progress_of(node).serving.push_back(&node);
      else if (node.daemonset->watches_host)
        ++progress_of(node).not_ready;
      if (node.mark.deferred) leave_change(pass_, node, "its daemon runs the newest template");
      return;
    }
    consider(node);
  }

  // --- A node in the change.

  void go_on(const DaemonNode& node) {
    const MpsDaemonChange& change = *node.mark.change;
    std::int64_t& of_policy = in_change_[node.policy->meta.name];
    if (!node.holder.empty()) {
      ++of_policy;
      return;
    }
    // The plugin's own daemon serves a node with that label, and the template leaves such nodes out.
    const bool selected = node.daemonset != nullptr && node.node->meta.labels.get(kMpsCapable) != "true" &&
                          selects(*node.daemonset, *node.node, true) != Selects::no;
    if (node.pod == nullptr && !selected) return leave_change(pass_, node, "its DaemonSet is no longer for the node");
    ++of_policy;
    if (!node.node->ready) return wait_for_node(node);
    if (node.pod == nullptr || node.pod->meta.deletion_timestamp) return await_start(node);
    if (!node.is_outdated()) {
      if (!is_serving(*node.pod)) return await_start(node);
      progress_of(node).serving.push_back(&node);
      return leave_change(pass_, node, "its new daemon is Ready");
    }
    const GateState& gate = rollout_of(node)->gate;
    if (is_serving(*node.pod) && row_of(gate.gate).backs_out) return leave_change(pass_, node, gate.message);
    if (change.cordoned && !node.node->unschedulable) return defer_change(pass_, node, "a person uncordoned the node");
    drain(node);
  }

  // It keeps its slot, proves nothing, and no timer of it runs: its deadlines begin anew when it is Ready again.
  void wait_for_node(const DaemonNode& node) {
    if (node.has_failed()) return report_failed(node);
    const std::string waits =
        "the node is NotReady: its standalone MPS daemon is neither replaced nor judged until the node is Ready again";
    if (DaemonRollout* rollout = rollout_of(node)) rollout->note_waiting(node.name(), {kNodesNotReady, waits});
    pass_.finding(Severity::warning, node_ref(node.name()), kStandaloneMpsWaits, waits);
  }

  void drain(const DaemonNode& node) {
    const MpsDaemonChange& change = *node.mark.change;
    const RolloutSpec& rollout = node.policy->rollout;
    if (rollout.workloads == WorkloadMode::interrupt) return delete_old_pod(pass_, node);
    const TimerKey draining{Timer::mps_draining, node.name(), change.to};
    const NodeUse use = use_of(pass_.s, node.name(), pass_.s.now - pass_.ages.since(draining, change.begun));
    const bool patient = !pass_.ages.held_for(draining, rollout.idle_timeout, change.begun);
    if (use.fresh && use.is_idle()) return delete_old_pod(pass_, node);
    pass_.plan.consumers_wanted.insert(node.name());
    pass_.look_again_in(kListAgain);
    if (!use.fresh) return;
    if (!patient) return defer_change(pass_, node, fmt::format("{} did not end within idleTimeout", use.names()));
    const std::string why = use.unknown.empty() ? why_clients_stay(pass_, node, use) : fmt::format(". {}", use.unknown);
    const std::string waits = fmt::format(
        "the standalone MPS daemon is replaced once {} {} ended: {} would break with the daemon{}", use.names(),
        use.waiting.size() == 1 ? "has" : "have", use.waiting.size() == 1 ? "it" : "they", why);
    rollout_of(node)->note_waiting(node.name(), {kWaitingForWorkloads, waits});
    pass_.finding(why.empty() ? Severity::info : Severity::warning, node_ref(node.name()), kStandaloneMpsWaits, waits);
    if (rollout.workloads == WorkloadMode::evict) evict_clients(pass_, node, nodes_, use);
  }

  // The old pod is gone, and the new one is not Ready.
  void await_start(const DaemonNode& node) {
    if (node.has_failed()) {
      const DaemonRollout* rollout = rollout_of(node);
      const bool again = node.is_asked_again() && rollout != nullptr && rollout->gate.is_open();
      return again ? try_again(pass_, node) : report_failed(node);
    }
    const Duration limit = node.policy->rollout.verify_timeout;
    const std::string hash = node.daemonset == nullptr ? "" : node.daemonset->newest_hash;
    if (!pass_.held_for({Timer::mps_starting, node.name(), hash}, limit)) return;
    report_failed(node);
    if (hash.empty()) return;
    mark_failed(pass_, node);
  }

  void report_failed(const DaemonNode& node) {
    const std::string retry =
        pass_.s.world.policies_served
            ? fmt::format(" and then: gpu-sharing-operator rollout start {}", node.policy->meta.name)
            : std::string();
    const std::string what = fmt::format(
        "the standalone MPS daemon is not Ready {} after its replacement: {}. The node keeps its cordon. "
        "Correct the chart's standaloneMps values, or the node{}",
        k8s::format_go_duration(node.policy->rollout.verify_timeout), why_not_ready(node), retry);
    pass_.finding(Severity::error, node_ref(node.name()), kStandaloneMpsFailed, what);
    if (node.daemonset == nullptr) return;
    ++progress_of(node).failed;
    if (DaemonRollout* rollout = rollout_of(node)) rollout->note_failed(node.name(), {kStandaloneMpsFailed, what});
  }

  // --- Which node begins.

  // Of a node with a deferred change, by the wall clock as it goes now.
  WallTime deferred_until(const DaemonNode& node) {
    const StoredWait wait = stored_wait(node.name(), "daemon deferral", *node.mark.deferred->deferred_until,
                                        deferral_length(node.policy->rollout.idle_timeout));
    return pass_.ages.stored(wait.timer, wait.begun) + wait.length;
  }

  // A node with an old pod.
  void consider(const DaemonNode& node) {
    const bool elsewhere = node.assessment != nullptr && (node.assessment->change || node.assessment->is_unreadable());
    const bool ends = node.pod->meta.deletion_timestamp.has_value();
    if (!node.daemonset->on_delete || !node.mark.problem.empty() || !node.holder.empty() || elsewhere || ends) return;
    if (!node.node->ready) return;
    const bool deferred = node.mark.deferred && !node.is_asked_again();
    if (deferred && pass_.s.now < deferred_until(node)) return pass_.look_again_in(deferred_until(node) - pass_.s.now);
    const GateState& gate = rollout_of(node)->gate;
    if (gate.is_open()) return candidates_.push_back(&node);
    // It opens by itself within moments: nothing is reported.
    if (gate.gate == Gate::settling || gate.gate == Gate::new_attempt) return;
    Progress& progress = progress_of(node);
    progress.waiting.push_back(node.name());
    if (progress.gate.empty()) progress.gate = gate.message;
  }

  void start_candidates() {
    std::vector<const DaemonNode*> idle;
    std::vector<const DaemonNode*> busy;
    std::size_t unknown = 0;
    for (const DaemonNode* node : candidates_) {
      if (node->daemonset->watches_host) {
        if (progress_of(*node).not_ready++ > 0) continue;
        ensure_object(pass_, node->rollout(), node->daemonset->newest_hash);
        delete_old_pod(pass_, *node);
        continue;
      }
      const NodeUse use = use_of(pass_.s, node->name());
      if (use.fresh) {
        (use.is_idle() ? idle : busy).push_back(node);
        if (!use.listed) pass_.plan.consumers_wanted.insert(node->name());
      } else if (may_start(*node) && ++unknown <= kMostListed) {
        pass_.plan.consumers_wanted.insert(node->name());
      }
    }
    for (const DaemonNode* node : idle) start(*node);
    // A busy node would keep a slot that an idle one could use.
    if (unknown > 0) return;
    for (const DaemonNode* node : busy) start(*node);
    if (!busy.empty()) pass_.look_again_in(kListAgain);
  }

  void start(const DaemonNode& node) {
    if (!may_start(node)) return;
    if (!node.busy) slots_.take(node.rollout(), node.product);
    ++in_change_[node.policy->meta.name];
    ++progress_of(node).canaries;
    ensure_object(pass_, node.rollout(), node.daemonset->newest_hash);
    begin_change(pass_, node);
  }

  [[nodiscard]] bool may_start(const DaemonNode& node) {
    const RolloutSpec& rollout = node.policy->rollout;
    const Progress& progress = progress_of(node);
    const bool proven = has_passed_canary(node);
    if (is_stopped_by_failures(node)) return false;
    if (!proven && (progress.canaries >= rollout.canary_nodes_per_group || is_behind_canary(node))) return false;
    const BudgetCount& group = groups_.at(node.group());
    if (!node.busy) return slots_.free(node.rollout(), node.product, group);
    // In the slot that it holds, and never more of them at once than each budget has slots.
    return slots_.has_room_beside(node.rollout(), group, in_change_[node.policy->meta.name]);
  }

  // Somebody has cordoned it, and an uncordoned node of its group can be the canary.
  [[nodiscard]] bool is_behind_canary(const DaemonNode& node) const {
    return node.node->unschedulable && std::ranges::any_of(candidates_, [&](const DaemonNode* other) {
             return !other->node->unschedulable && other->group() == node.group();
           });
  }

  [[nodiscard]] bool is_stopped_by_failures(const DaemonNode& node) {
    const std::int64_t most =
        has_passed_canary(node) ? std::max<std::int64_t>(1, node.policy->rollout.max_failures) : 1;
    return progress_of(node).failed >= most;
  }

  // Canaries soak while they serve: the first pods that do, of each DaemonSet that is not through. A pod that is
  // replaced begins anew, whatever the timer says.
  void soak() {
    std::map<const Operand*, std::int64_t> canaries;
    for (const DaemonNode& node : nodes_) {
      const bool is_new = node.pod != nullptr && !node.is_outdated();
      if (node.daemonset != nullptr && (node.in_change() || is_new)) ++progress_of(node).canaries;
      if (!node.is_outdated()) continue;
      std::int64_t& most = canaries[node.daemonset];
      most = std::max(most, node.policy->rollout.canary_nodes_per_group);
    }
    for (const auto& [daemonset, most] : canaries) {
      std::vector<std::tuple<WallTime, std::string, TimerKey>> order;
      for (const DaemonNode* node : progress_[daemonset].serving) {
        TimerKey timer = daemon_soaking_timer(node->name(), *daemonset);
        const WallTime since = pass_.ages.since(timer, recorded_since(pass_, timer));
        const WallTime created = node->pod->meta.creation_timestamp;
        const TimerKey exists = stored_time(node->pod->meta.uid.str(), "creation", created);
        order.emplace_back(std::max(since, pass_.ages.stored(exists, created)), node->name(), std::move(timer));
      }
      std::ranges::sort(order);
      for (const auto& [since, name, timer] : order | std::views::take(most)) {
        run_recorded(pass_, timer);
        progress_[daemonset].soaking_since.push_back(since);
      }
    }
  }

  // As many nodes as the canary has serve with the new template, for as long as it must soak.
  [[nodiscard]] bool has_passed_canary(const DaemonNode& node) {
    const RolloutSpec& rollout = node.policy->rollout;
    std::int64_t proven = 0;
    for (const WallTime since : progress_of(node).soaking_since) {
      const WallTime until = since + std::chrono::ceil<WallTime::duration>(rollout.canary_soak);
      if (until <= pass_.s.now)
        ++proven;
      else
        pass_.look_again_in(until - pass_.s.now);
    }
    return proven >= rollout.canary_nodes_per_group;
  }

  void report_waiting() {
    for (const auto& [daemonset, progress] : progress_) {
      if (progress.waiting.empty()) continue;
      pass_.finding(
          Severity::info, daemonset_ref(daemonset->key), kStandaloneMpsWaits,
          fmt::format("{} still {} the former template of the standalone MPS daemon: {}", first_names(progress.waiting),
                      progress.waiting.size() == 1 ? "runs" : "run", progress.gate));
    }
  }

  Pass& pass_;
  Slots& slots_;
  std::vector<DaemonNode> nodes_;
  std::map<std::pair<RolloutKey, std::string>, BudgetCount> groups_;
  std::map<const Operand*, Progress> progress_;
  std::map<std::string, std::int64_t> in_change_;  // Nodes whose daemon is replaced, by policy.
  std::vector<const DaemonNode*> candidates_;
  DaemonRollouts rollouts_;
  std::map<RolloutKey, const DaemonNode*> gated_;  // One node of each rollout.
};

}  // namespace

DaemonRollouts plan_standalone_mps(Pass& pass, Slots& slots) {
  const bool knows = knows_all_daemons(pass);
  if (knows && !pass.index.nodes_in(Bucket::mps_directory).empty()) report_lost_daemons(pass);
  if (pass.index.nodes_in(Bucket::standalone_mps).empty()) return {};
  if (knows) return Standalone(pass, slots).run();
  keep_timers(pass, {});
  return {};
}

}  // namespace gso
