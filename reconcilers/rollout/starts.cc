#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_patch.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/node/node_step.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/managed_keys.h"
#include "reconcilers/rollout/recorded_timers.h"
#include "reconcilers/rollout/repairs.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/rollout/slots.h"

namespace gso {
namespace {

// --- What the start of a node's change writes, once its turn has come.

// Plans the patch that takes the node into its change. `live`: nobody on the node has to be waited for, so the
// deletions of its first pods follow in the same plan. Otherwise the users of its GPUs are listed first.
void start_node(Pass& pass, const Node& node, const NodeAssessment& a, const RolloutSpec& rollout, bool live) {
  const std::string& name = node.meta.name;
  const NodeView view = view_of(pass, node, a);
  NodeChange change = begin_change(view, {a.transition, a.cause});
  RolloutView& of = rollout_of(pass, pass.index.rollout_key_of(a));
  const std::string product(a.product.view());
  const bool passed = of.canary_passed(product);
  // A canary that was verified and then stopped serving still counts for or against its revision.
  const bool was_canary =
      a.loaded.revision == a.target && !of.is_verified_on(product) && (passed || is_recorded_canary(of, name));
  change.served = change.served || was_canary;
  change.had_turn = has_had_turn(pass, name);
  if (change.served && !passed) of.started_canaries.insert(name);
  const bool cordon = start_cordons(rollout.cordon, a.transition, live);
  pass.add(patch_into(view, change, {.cordon = cordon, .live = live}), "Update",
           fmt::format("{} -> {} ({}, {})", a.loaded.revision.empty() ? "unknown" : a.loaded.revision.view(),
                       a.target.view(), to_string(a.cause), to_string(a.transition)),
           true, name);
  pass.plan.timers.push_back(change_timer(Timer::unchanged, name, change));
  if (!live) {
    pass.plan.consumers_wanted.insert(name);
    pass.plan.timers.push_back(change_timer(Timer::draining, name, change));
    return;
  }
  const auto first = first_components(a, change.kind);
  for (PlannedAction& deletion : deletions(view, change, first, fmt::format("to {}", a.target.view())))
    pass.add(std::move(deletion.action), deletion.why.code, std::move(deletion.why.message), true, name);
  pass.plan.timers.push_back(change_timer(Timer::verifying, name, change));
}

// How long a node is skipped after the slots were not enough for all nodes of its jobs.
constexpr Duration kGangWait = std::chrono::minutes(1);

class Starter {
 public:
  Starter(Pass& pass, Slots& slots) : pass_(pass), slots_(slots) {}

  void run() {
    // Nodes whose workloads have had their turn.
    for (const std::string& name : pass_.index.nodes_in(Bucket::deferred))
      if (const auto until = deferred_until(pass_, name)) deferred_.emplace(name, *until);
    for (const std::string& name : pass_.s.failed_patches) deferred_.try_emplace(name, WallTime{});
    // Nodes that wait for slots for their gang peers are not listed again in every pass.
    for (const SeenNode& seen : seen_nodes(pass_, Timer::gang_waits)) {
      const bool waits = seen.assessment.phase == Phase::pending;
      if (waits && pass_.s.now - seen.since < kGangWait) wait_for_peers(seen.name, seen.assessment);
    }
    reloads_ = find_reloads(pass_);
    for (const auto& [key, profile_rollout] : pass_.index.profile_rollouts) look_at(key, profile_rollout);
    // Idle nodes start first, in every group of every rollout: a busy node would keep a slot that they could use. It
    // would have to give it back (slots.h), and its workloads have only one turn.
    for (Candidates& group : groups_) repair_unavailable(group);
    for (Candidates& group : groups_) start_idle(group);
    for (Candidates& group : groups_) start_deferred(group);
    for (const auto& [rollout, name] : busy_reloads_) start_reload(*rollout, name, true);
    for (Candidates& group : groups_) start_busy(group);
  }

 private:
  void wait_for_peers(const std::string& name, const NodeAssessment& a) {
    if (!waiting_for_peers_.insert(name).second) return;
    pass_.renew({Timer::gang_waits, name, a.target}, kGangWait);
    pass_.finding(Severity::info, node_ref(name), kJobSpansNodes,
                  "its pods belong to jobs that also run on other nodes of this rollout, and pods of one job are "
                  "evicted together or not at all: the node waits, and the other nodes start first");
  }

  void look_at(const RolloutKey& key, const ProfileRollout& profile_rollout) {
    const auto reloads = reloads_.find(key);
    const bool pending =
        std::ranges::any_of(profile_rollout.groups, [](const auto& group) { return !group.second.pending.empty(); });
    if ((!pending && reloads == reloads_.end()) ||
        pass_.s.world.unsynced_namespaces.contains(
            pass_.index.discovery.installations[profile_rollout.installation].ns)) {
      return;
    }
    RolloutView& rollout = rollout_of(pass_, key);
    const Gate gate = rollout.gate().gate;
    // A rollout that waits for an approval needs the object to approve.
    if (gate == Gate::approval || (pending && switches_to_restore(pass_, key, rollout.target)))
      ensure_object(pass_, rollout, rollout.target);
    if (reloads != reloads_.end()) start_reloads(rollout, reloads->second);
    if (gate != Gate::open || !pending) return;
    if (restart_daemonsets(rollout)) by_daemonset_.insert(key);
    for (const auto& [product, group] : profile_rollout.groups)
      if (!group.pending.empty()) groups_.push_back({rollout, product, group});
  }

  void start_reloads(RolloutView& rollout, const std::set<std::string>& names) {
    const GateState& gate = rollout.gate();
    // The canary itself is restarted anyway.
    const bool open = gate.is_open() || gate.gate == Gate::canary_drifting;
    for (const std::string& name : names) {
      const bool drifts = pass_.index.nodes_in(Bucket::repairable).contains(name);
      if (open || (rollout.may_repair() && drifts)) {
        start_reload(rollout, name, false);
        continue;
      }
      // In mode Observe the condition Progressing reports what an edit would change; nothing else reports drift.
      const bool reported = row_of(gate.gate).needs_attention || (drifts && gate.gate == Gate::observe);
      if (reported) report_waiting_reload(pass_, name, gate.why());
    }
  }

  // `may_wait`: as for try_start. A busy one is tried again after the idle nodes.
  void start_reload(RolloutView& rollout, const std::string& name, bool may_wait) {
    const NodeAssessment& a = *pass_.index.find(name);
    if (const auto why = awaited_canary(rollout, a, started_[{rollout.key, std::string(a.product.view())}]))
      return report_waiting_reload(pass_, name, *why);
    const Outcome outcome = try_start(rollout, name, may_wait);
    if (outcome == Outcome::busy && has_had_turn(pass_, name)) {
      return report_waiting_reload(
          pass_, name, {kWaitingForWorkloads, "its workloads have had their turn: it is restarted once it is idle"});
    }
    if (outcome == Outcome::busy && !may_wait) busy_reloads_.emplace_back(&rollout, name);
    if (outcome != Outcome::no_slot && (outcome != Outcome::busy || !may_wait)) return;
    const std::string full = slots_.exhausted(rollout, a);
    report_waiting_reload(
        pass_, name, {kBudgetExhausted, full.empty() ? "as many nodes as allowed already wait for workloads" : full});
  }

  // The nodes of one group of a rollout, in this pass.
  struct Candidates {
    RolloutView& rollout;
    const std::string& product;
    const Group& group;
    std::vector<std::string> busy = {};
    bool ended = false;  // No further node of the group starts in this pass.
  };

  // Nodes that serve no GPU, or have failed before, need no further slot: they start beside the canary and prove
  // nothing for it (S12). They start first in their group.
  void repair_unavailable(const Candidates& candidates) {
    for (const auto& [available, name] : candidates.group.pending) {
      if (available || !pass_.takes_more()) return;
      if (!is_repair(*pass_.index.find(name)) || (deferred_.contains(name) && busy_.known(name))) continue;
      if (try_start(candidates.rollout, name, true) == Outcome::no_slot) return;
    }
  }

  // The canary lets no further node of the group start.
  [[nodiscard]] bool canary_is_full(const Candidates& group) {
    return left_in_canary(group.rollout, group.product) <= started_[{group.rollout.key, group.product}];
  }

  // A node with missing devices shows less of a profile than a whole one: it is a canary only where no other node is.
  void start_idle(Candidates& candidates) {
    const RolloutKey& key = candidates.rollout.key;
    for (const bool with_missing_devices : {false, true}) {
      for (const auto& [available, name] : candidates.group.pending) {
        const NodeAssessment& a = *pass_.index.find(name);
        if (a.missing_of_loaded.empty() == with_missing_devices) continue;
        candidates.ended = canary_is_full(candidates) || !pass_.takes_more();
        if (candidates.ended) return;
        if (deferred_.contains(name) || is_repair(a) || is_behind_canary(candidates.rollout, a)) continue;
        const bool some_may_wait = one_more_may_wait(key);
        if (candidates.busy.size() >= (some_may_wait ? BusyNodes::kLookAhead : BusyNodes::kMostLookedAt)) break;
        const Outcome outcome = busy_.known(name) ? Outcome::busy : try_start(candidates.rollout, name, false);
        candidates.ended = outcome == Outcome::no_slot;
        if (candidates.ended) return;
        if (outcome == Outcome::busy) candidates.busy.push_back(name);
      }
    }
  }

  void start_busy(Candidates& candidates) {
    const RolloutKey& key = candidates.rollout.key;
    for (const std::string& name : candidates.busy) {
      if (candidates.ended || !one_more_may_wait(key)) return;
      candidates.ended = canary_is_full(candidates) || try_start(candidates.rollout, name, true) == Outcome::no_slot;
    }
  }

  // Busy nodes of some group wait for a slot, and are allowed to.
  [[nodiscard]] bool some_busy_start() const {
    return !busy_reloads_.empty() || std::ranges::any_of(groups_, [this](const Candidates& group) {
      return !group.ended && !group.busy.empty() && one_more_may_wait(group.rollout.key);
    });
  }

  // Their workloads have had their turn: they start as soon as they are idle. Each look is a request, so each pass
  // looks at a part of a long queue, and a busy node is skipped for a while.
  void start_deferred(Candidates& candidates) {
    // The usual case is asked first: the pending nodes of a large group are not visited in each pass.
    if (deferred_.empty()) return;
    std::vector<std::pair<bool, std::string>> names;  // With whether a free slot is needed.
    for (const auto& [available, name] : candidates.group.pending) {
      const auto deferred = deferred_.find(name);
      if (deferred == deferred_.end() || is_behind_canary(candidates.rollout, *pass_.index.find(name))) continue;
      // The API server refused its patch, or did not answer: it takes a slot that no other node needs.
      if (deferred->second == WallTime{} && some_busy_start()) continue;
      if (pass_.s.now < deferred->second)
        pass_.look_again_in(deferred->second - pass_.s.now);
      else
        names.emplace_back(available, name);
    }
    // A look keeps a slot for its node, and the busy nodes start with what is left.
    const std::size_t most = some_busy_start() ? BusyNodes::kLookAhead : BusyNodes::kMostLookedAt;
    if (names.size() > most) {
      const auto turn = static_cast<std::size_t>(pass_.s.now.time_since_epoch() / BusyNodes::kKnown);
      std::ranges::rotate(names, names.begin() + static_cast<std::ptrdiff_t>(turn * most % names.size()));
      names.resize(most);
    }
    bool slot = !candidates.ended;
    for (const auto& [available, name] : names) {
      if (canary_is_full(candidates) || !pass_.takes_more()) return;
      if (busy_.known(name) || (available && !slot)) continue;
      const bool full = try_start(candidates.rollout, name, false) == Outcome::no_slot;
      slot = slot && !(full && available);
    }
  }

  // If gang peers are the only nodes of a group that can start, they are its canary together. A node that is held,
  // NotReady or used by KAI, possibly for long, does not delay others.
  [[nodiscard]] bool only_peers_are_left(const RolloutView& rollout, const std::string& product,
                                         const GangPeers& peers) const {
    const ProfileRollout& nodes = rollout.profile_rollout;
    const auto is_out_of_reach = [&](const std::string& name) {
      const NodeAssessment* a = pass_.index.find(name);
      if (a == nullptr || nodes.nodes(RolloutBucket::set_aside).contains(name)) return true;
      const auto hindrance = kai_hindrance(pass_, name, *a);
      return hindrance && hindrance->certain;  // The result of a pending lookup is known shortly.
    };
    return std::ranges::all_of(nodes.groups.at(product).pending, [&](const auto& entry) {
      const std::string& name = entry.second;
      return peers.nodes.contains(name) || waiting_for_peers_.contains(name) || is_out_of_reach(name);
    });
  }

  [[nodiscard]] bool one_more_may_wait(const RolloutKey& key) const {
    return !slots_.without_waiting_room(key, busy_.waiting(key.policy), busy_.waiting());
  }

  enum class Outcome { started, no_slot, busy, skipped };

  // A Node gets one patch at a time: an earlier one is not answered yet, or the marks of an earlier obstacle are
  // removed from it in this pass.
  [[nodiscard]] bool gets_another_patch(const std::string& name) const {
    return pass_.s.world.nodes_being_written.contains(name) ||
           pass_.index.nodes_in(Bucket::stale_marks).contains(name) ||
           pass_.index.nodes_in(Bucket::releases).contains(name);
  }

  // The node takes its slot, and its place in the canary: a repair has none there.
  void take(const RolloutKey& key, const NodeAssessment& a) {
    slots_.take(key, a);
    if (!is_repair(a)) ++started_[{key, std::string(a.product.view())}];
  }

  // `may_wait`: also start a node that must wait for its workloads.
  Outcome try_start(RolloutView& view, const std::string& name, bool may_wait) {
    const RolloutKey& key = view.key;
    const Node* node = pass_.s.world.nodes.find(name);
    const NodeAssessment* a = pass_.index.find(name);
    if (node == nullptr || a == nullptr || !is_free_to_begin(*a)) return Outcome::skipped;
    if (gets_another_patch(name)) return Outcome::skipped;
    if (by_daemonset_.contains(key) && !a->label) return Outcome::skipped;
    if (started_with_peers_.contains(name) || waiting_for_peers_.contains(name)) return Outcome::skipped;
    if (report_kai_hindrance(pass_, name, *a)) return Outcome::skipped;  // Of reloads as well.
    if (a->label && !a->label->empty() && !key_is_projected(pass_, pass_.index.installation_of(*a), key.key))
      return Outcome::no_slot;
    if (!slots_.has_room(view, *a)) return Outcome::no_slot;
    const RolloutSpec& rollout = view.policy.rollout;
    const Drain drain = drain_for(*a, a->transition, rollout.workloads);
    bool idle = drain == Drain::nothing;
    // A node that serves nothing has no workloads to wait for, as a rule: its change waits for those that are left.
    const bool had_turn = has_had_turn(pass_, name);
    const bool waits_first = !is_out_of_service(*a) || had_turn;
    const bool asks_first = waits_first || drain == Drain::fits || rollout.workloads == WorkloadMode::evict;
    if (!idle && asks_first) {
      const NodeUse use = use_of(pass_.s, name);
      if (!use.listed) pass_.plan.consumers_wanted.insert(name);
      if (!use.fresh) {
        // The slot is kept for the node, so that no more nodes are listed than could start.
        take(key, *a);
        return Outcome::started;
      }
      idle = drained(drain, use, *a);
    }
    if (!idle && waits_first) {
      busy_.note(name, *a);
      if (!may_wait || had_turn) return Outcome::busy;
    }
    if (!idle && rollout.workloads == WorkloadMode::evict) {
      if (const auto outcome = start_together(view, name, *a)) return *outcome;
    }
    if (!idle && waits_first && !one_more_may_wait(key)) return Outcome::busy;
    if (!idle) busy_.start(key.policy);
    const bool live = starts_live(drain, idle);
    take(key, *a);
    ensure_object(pass_, view, std::string(a->target.view()));
    start_node(pass_, *node, *a, rollout, live);
    return Outcome::started;
  }

  // --- Members of one job leave in one wave, or none of them leaves (workloads: Evict).

  // nullopt: the node has no gang peers, or the budgets never allow all of them and no other node is left; then it
  // starts alone and evicts no pod.
  std::optional<Outcome> start_together(RolloutView& view, const std::string& name, const NodeAssessment& a) {
    const RolloutKey& key = view.key;
    constexpr std::size_t kMostWaitingForPeers = 32;  // Each of them was listed.
    const GangPeers peers = gang_peers_of(pass_, name);
    if (!peers.unlisted.empty()) {
      pass_.plan.consumers_wanted.insert(peers.unlisted.begin(), peers.unlisted.end());
      slots_.take(key, a);
      ++started_[{key, std::string(a.product.view())}];
      return Outcome::started;
    }
    // It waits alone until they can be listed, or for idleTimeout, and evicts no pod meanwhile.
    pass_.plan.consumers_wanted.insert(peers.unlistable.begin(), peers.unlistable.end());
    if (!peers.unlistable.empty() || peers.pending.size() <= 1) return std::nullopt;
    const bool hopeless = !slots_.fit_ever(view, peers);
    if (hopeless && only_peers_are_left(view, std::string(a.product.view()), peers)) return std::nullopt;
    if (hopeless || !take_slots(view, peers)) {
      if (waiting_for_peers_.size() >= kMostWaitingForPeers) return Outcome::no_slot;
      wait_for_peers(name, a);
      return Outcome::skipped;
    }
    for (const std::string& peer : peers.pending) {
      const NodeAssessment& other = *pass_.index.find(peer);
      started_with_peers_.insert(peer);
      ++started_[{key, std::string(other.product.view())}];
      busy_.start(key.policy);
      ensure_object(pass_, view, std::string(other.target.view()));
      start_node(pass_, *pass_.s.world.nodes.find(peer), other, view.policy.rollout, false);
    }
    return Outcome::started;
  }

  // Takes a slot for each peer that needs one, or no slot if one of them gets none.
  bool take_slots(const RolloutView& rollout, const GangPeers& peers) {
    const RolloutKey& key = rollout.key;
    const Slots before = slots_;
    std::map<std::string, std::int64_t> needs;
    const auto waiting = static_cast<std::int64_t>(peers.pending.size());
    const std::int64_t before_them = busy_.waiting(key.policy);
    bool all = before_them == 0 || before_them + waiting <= slots_.most_draining(Budget::policy, key);
    for (const std::string& peer : peers.pending) {
      const NodeAssessment& a = *pass_.index.find(peer);
      const std::string product(a.product.view());
      const bool canary =
          ++needs[product] <= left_in_canary(rollout, product) ||
          (canaries_in_progress(rollout, product).empty() && only_peers_are_left(rollout, product, peers));
      all = all && canary && !started_with_peers_.contains(peer) && !gets_another_patch(peer) &&
            !report_kai_hindrance(pass_, peer, a) && slots_.has_room(rollout, a) && !is_behind_canary(rollout, a);
      if (!all) break;
      slots_.take(key, a);
    }
    if (!all) slots_ = before;
    return all;
  }

  Pass& pass_;
  Slots& slots_;
  BusyNodes busy_{pass_};
  std::map<std::string, WallTime, std::less<>> deferred_;  // Until when.
  Reloads reloads_;
  std::vector<std::pair<RolloutView*, std::string>> busy_reloads_;
  std::map<std::pair<RolloutKey, std::string>, std::int64_t> started_;  // In this pass, by group.
  std::set<std::string> started_with_peers_;  // Started in this pass together with another one.
  std::set<std::string> waiting_for_peers_;   // They wait for slots for all nodes of their jobs.
  std::vector<Candidates> groups_;            // Groups of the rollouts whose gate is open.
  std::set<RolloutKey> by_daemonset_;         // Rollouts whose nodes wait for their DaemonSets.
};

}  // namespace

void plan_starts(Pass& pass, Slots& slots) {
  Starter(pass, slots).run();
}

}  // namespace gso
