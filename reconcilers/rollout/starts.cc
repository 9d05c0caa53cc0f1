// Which nodes start now: a unit is one policy taking one profile key to its present revision; it starts nodes while
// every gate (gate.h) is open and a slot is free in fleet, group and cluster.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "reconcilers/model/labels.h"
#include "reconcilers/rollout/busy_nodes.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/kai_gate.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/rollout/settling.h"
#include "reconcilers/rollout/slots.h"
#include "reconcilers/rollout/stops.h"

namespace gso {
namespace {

// How long a node is left where it is when there were not enough slots for all nodes of its jobs.
constexpr Duration kGangWait = std::chrono::minutes(1);

class Starter {
 public:
  explicit Starter(Pass& pass) : pass_(pass) {
    find_deferred();
    keep_settled();
    keep_gang_peers();
  }

  void run() {
    collect_reloads();
    for (const auto& [key, unit] : pass_.index.units) start_unit(key, unit);
  }

 private:
  // Quiet inputs stay quiet while another gate is closed or nothing is left to start.
  void keep_settled() {
    std::set<std::size_t> sets;
    for (const auto& [key, unit] : pass_.index.units) sets.insert(unit.set);
    for (const std::size_t set : sets) (void)pass_.age(settled_timer(pass_, set));
  }

  // Nodes that gave up waiting for their workloads keep their place at the back of the queue.
  void find_deferred() {
    for (const std::string& name : pass_.index.nodes_in(Bucket::deferred)) {
      if (const auto deferral = deferral_of(*pass_.s.world.nodes.find(name))) deferred_.emplace(name, deferral->until);
    }
  }

  // Nodes that wait for slots for the others of their jobs: not listed again on every pass.
  void keep_gang_peers() {
    for (const SeenNode& seen : seen_nodes(pass_, Timer::gang_waits)) {
      const bool waits = seen.assessment.phase == Phase::pending;
      if (waits && pass_.s.now - seen.since < kGangWait) hold_back(seen.name, seen.assessment);
    }
  }

  void hold_back(const std::string& name, const NodeAssessment& a) {
    if (!held_back_.insert(name).second) return;
    const Duration age = pass_.age({Timer::gang_waits, name, std::string(a.target.view())});
    pass_.look_again_in(kGangWait - age);
    pass_.finding(
        Severity::info, node_ref(name), kJobSpansNodes,
        "its pods belong to jobs that run on other nodes of this rollout too, and leave together or not at all: the "
        "other nodes go first");
  }

  // Nodes whose own reload (or first start) did not bring the profile in, or lost it: restarted like an edited one.
  void collect_reloads() {
    for (const std::string& name : pass_.index.nodes_in(Bucket::self_loaded)) {
      const NodeAssessment* a = pass_.index.find(name);
      if (a == nullptr || a->is_held()) continue;
      const bool has_read = must_have_read(pass_, name, *a);
      if (a->matches() && has_read) continue;
      // It shows what its pods cannot have read: an edit that no label shows.
      const bool at_once = a->matches() && a->cause == ChangeCause::joined && !has_read;
      if (!at_once && !loading_expired(pass_, name, *a)) continue;
      if (a->verified.surplus && a->measured_gpus > 0) continue;  // Recorded, not restarted.
      reloads_[pass_.index.rollout_key_of(*a)].insert(name);
    }
    // Nodes that have stopped showing what they run, for longer than a start may take. A missing device is no such
    // case.
    for (const std::string& name : pass_.index.nodes_in(Bucket::drifting)) {
      const NodeAssessment* a = pass_.index.find(name);
      if (a == nullptr || !may_be_reloaded(pass_, name)) continue;
      const Duration patience = pass_.index.policy(pass_.s.world, a->policy.view()).rollout.verify_timeout;
      if (pass_.held_for({Timer::drifting, name, std::string(a->target.view())}, patience))
        reloads_[pass_.index.rollout_key_of(*a)].insert(name);
    }
  }

  void start_unit(const RolloutKey& key, const Unit& unit) {
    const auto reloads = reloads_.find(key);
    const bool pending =
        std::ranges::any_of(unit.groups, [](const auto& group) { return !group.second.pending.empty(); });
    if ((!pending && reloads == reloads_.end()) ||
        pass_.s.world.unsynced_namespaces.contains(pass_.index.discovery.sets[unit.set].ns)) {
      return;
    }
    RolloutView& rollout = rollout_of(pass_, key);
    const std::string& target = rollout.target;
    const Gate gate = rollout.gate().gate;
    if (pending && (gate == Gate::approval || switches_to_restore(pass_, key, target)))
      ensure_rollout(key, unit, target);
    // The canary itself is restarted all the same.
    // Repair to the revision that is recorded already needs no approval.
    const bool approval_missing = gate == Gate::approval && reloads != reloads_.end() && rollout.may_repair();
    if (gate != Gate::open && gate != Gate::canary_unwell && !approval_missing) return;
    if (reloads != reloads_.end()) {
      for (const std::string& name : reloads->second) {
        if (approval_missing && !pass_.index.nodes_in(Bucket::drifting).contains(name)) continue;
        const Outcome outcome = try_start(key, unit, name, true);
        if (outcome != Outcome::no_slot && outcome != Outcome::busy) continue;
        const std::string full = slots_.exhausted(key, unit, *pass_.index.find(name));
        pass_.finding(Severity::warning, node_ref(name), kBudgetExhausted,
                      fmt::format("must be restarted to show its profile; {}",
                                  full.empty() ? "it waits for its workloads, as many nodes of its policy do as may"
                                               : "no slot is free: " + full));
      }
    }
    if (gate != Gate::open || restart_daemonsets(key, unit, target)) return;
    for (const auto& [product, group] : unit.groups) start_group(rollout, product, group);
  }

  // Mechanism DaemonSetRestart, for what only new pods load; a label is moved node by node all the same. The template
  // names what it was restarted for, so that it is done once.
  bool restart_daemonsets(const RolloutKey& key, const Unit& unit, const std::string& target) {
    if (pass_.index.policy(pass_.s.world, key.policy).rollout.mechanism != Mechanism::daemonset_restart) return false;
    std::map<std::size_t, std::set<Component>> components;  // By operand set: several may mount the unit's ConfigMap.
    for (const auto& [product, group] : unit.groups) {
      for (const auto& [available, name] : group.pending) {
        const NodeAssessment& a = *pass_.index.find(name);
        if (a.label || a.change) continue;
        components[a.set].insert(Component::plugin);
        for (Component component : {Component::gfd, Component::mps}) {
          if (steps_for(a.transition).replaces(component)) components[a.set].insert(component);
        }
      }
    }
    if (components.empty()) return false;
    std::string all;
    for (const auto& [other, state] : pass_.index.units) {
      if (other.set == key.set) all += rollout_name(other, target_of(state)) + "|";
    }
    const std::string restarted_for = short_hash(all);
    ensure_rollout(key, unit, target);
    for (const auto& [set, wanted] : components) {
      for (const Operand& operand : pass_.index.discovery.sets[set].operands) {
        const DaemonSet* daemonset = pass_.s.world.daemonsets.find(operand.key);
        if (daemonset == nullptr || !wanted.contains(operand.component) || daemonset->restarted_for == restarted_for)
          continue;
        if (!restarted_.insert(operand.key).second) continue;
        pass_.add(RestartDaemonSet{operand.key, daemonset->meta.resource_version, restarted_for}, "Restart",
                  fmt::format("{} to {}, by its DaemonSet", key.key, target), true);
      }
    }
    return true;
  }

  // Out of service, and by no change of ours.
  [[nodiscard]] bool is_out_of_service(const std::string& name) const {
    const NodeAssessment& a = *pass_.index.find(name);
    return a.unavailable && !a.change;
  }

  // Nodes that serve nobody cost nobody anything: they need no slot and go beside the canary, of which they prove
  // nothing (S12). They come first in the group.
  void repair_unavailable(const RolloutKey& key, const Unit& unit, const Group& group) {
    for (const auto& [available, name] : group.pending) {
      if (available || !pass_.takes_more()) return;
      if (!deferred_.contains(name) && is_out_of_service(name)) (void)try_start(key, unit, name, true);
    }
  }

  void start_group(RolloutView& rollout, const std::string& product, const Group& group) {
    if (group.pending.empty()) return;
    const RolloutKey& key = rollout.key;
    const Unit& unit = rollout.unit;
    repair_unavailable(key, unit, group);
    const std::int64_t& started = started_[{key, product}];  // Of a map: its address stays.
    const std::int64_t may_start = started + left_in_canary(rollout, product);
    std::vector<std::string> busy;
    bool somebody = false;  // Those who waited in vain come again only when nobody else is left.
    for (const auto& [available, name] : group.pending) {
      if (started >= may_start || !pass_.takes_more()) return;
      if (deferred_.contains(name) || is_out_of_service(name)) continue;
      const bool some_may_wait = busy_.waiting(key.policy) < slots_.most_draining(key);
      if (busy.size() >= (some_may_wait ? BusyNodes::kLookAhead : BusyNodes::kMostLookedAt)) break;
      const Outcome outcome = busy_.known(name) ? Outcome::busy : try_start(key, unit, name, false);
      if (outcome == Outcome::no_slot) return;
      if (outcome == Outcome::busy) busy.push_back(name);
      somebody = somebody || outcome != Outcome::skipped;
    }
    for (const std::string& name : busy) {
      if (busy_.waiting(key.policy) >= slots_.most_draining(key)) break;
      if (started >= may_start || try_start(key, unit, name, true) == Outcome::no_slot) return;
    }
    if (!somebody) start_deferred(key, unit, group, may_start);
  }

  void start_deferred(const RolloutKey& key, const Unit& unit, const Group& group, std::int64_t may_start) {
    for (const auto& [available, name] : group.pending) {
      const auto deferred = deferred_.find(name);
      if (deferred == deferred_.end()) continue;
      if (pass_.s.now < deferred->second) {
        pass_.look_again_in(deferred->second - pass_.s.now);
        continue;
      }
      const std::string product(pass_.index.find(name)->product.view());
      if (started_[{key, product}] >= may_start || try_start(key, unit, name, true) == Outcome::no_slot) return;
    }
  }

  // Nodes that the canary lets start in a group now; all of them once it has passed.
  [[nodiscard]] std::int64_t left_in_canary(RolloutView& rollout, const std::string& product) {
    const Group& group = rollout.unit.groups.at(product);
    if (rollout.canary_passed(product)) return group.tally.total;
    const std::int64_t quota = rollout.policy.rollout.canary_nodes_per_group;
    return quota - rollout.canary(product).proven - canaries_in_flight(rollout, product) -
           started_[{rollout.key, product}];
  }

  // Nobody may touch the node now, or KAI uses it: it is waited for by nobody, as it may be so for long.
  [[nodiscard]] bool is_out_of_reach(const Unit& unit, const std::string& name) const {
    const NodeAssessment* a = pass_.index.find(name);
    if (a == nullptr || unit.nodes(RolloutBucket::set_aside).contains(name)) return true;
    const auto hindrance = kai_hindrance(pass_, name, *a);
    return hindrance && hindrance->certain;  // What is being looked up is known in a moment.
  }

  // A job that is all that can go of a group is its canary as a whole.
  [[nodiscard]] bool only_they_are_left(const Unit& unit, const std::string& product, const GangPeers& mates) const {
    return std::ranges::all_of(unit.groups.at(product).pending, [&](const auto& entry) {
      const std::string& name = entry.second;
      return mates.nodes.contains(name) || held_back_.contains(name) || is_out_of_reach(unit, name);
    });
  }

  enum class Outcome { started, no_slot, busy, skipped };

  // Also for reloads, which are no change of the profile.
  bool kai_allows(const std::string& name, const NodeAssessment& a) { return !report_kai_hindrance(pass_, name, a); }

  // `may_wait`: also a node that has to wait for its workloads.
  Outcome try_start(const RolloutKey& key, const Unit& unit, const std::string& name, bool may_wait) {
    const Node* node = pass_.s.world.nodes.find(name);
    const NodeAssessment* a = pass_.index.find(name);
    if (node == nullptr || a == nullptr || a->is_held() || !node->ready) return Outcome::skipped;
    if (begun_.contains(name) || held_back_.contains(name) || !kai_allows(name, *a)) return Outcome::skipped;
    if (a->label && !a->label->empty() && !key_is_projected(pass_, pass_.index.installation_of(*a), key.key))
      return Outcome::no_slot;
    if (!Slots::is_busy(*a) && !slots_.free(key, unit, *a)) return Outcome::no_slot;
    const RolloutSpec& rollout = pass_.index.policy(pass_.s.world, key.policy).rollout;
    const Drain drain = drain_for(*a, a->transition, rollout.workloads);
    bool idle = drain == Drain::nothing;
    const bool asks_first = !Slots::is_busy(*a) || drain == Drain::fits || rollout.workloads == WorkloadMode::evict;
    if (!idle && asks_first) {
      const NodeUse use = use_of(pass_.s, name, WallTime::min());
      if (!use.fresh) {
        // The slot is kept for it, so that no more nodes are listed than could start.
        pass_.plan.consumers_wanted.insert(name);
        slots_.take(key, *a);
        if (!is_out_of_service(name)) ++started_[{key, std::string(a->product.view())}];
        return Outcome::started;
      }
      idle = drained(drain, use, *a);
    }
    const std::string policy(a->policy.view());
    if (!idle && !Slots::is_busy(*a)) {
      busy_.note(name, *a);
      if (!may_wait) return Outcome::busy;
    }
    if (!idle && rollout.workloads == WorkloadMode::evict) {
      if (const auto outcome = start_together(key, unit, name, *a)) return *outcome;
    }
    if (!idle && !Slots::is_busy(*a) && busy_.waiting(policy) >= slots_.most_draining(key)) return Outcome::busy;
    if (!idle) busy_.start(policy);
    // A node that is to be idle is cordoned first and looked at once more: pods may have come since.
    const bool live = idle && drain != Drain::idle;
    slots_.take(key, *a);
    if (!is_out_of_service(name)) ++started_[{key, std::string(a->product.view())}];
    ensure_rollout(key, unit, std::string(a->target.view()));
    start(*node, *a, rollout, live);
    return Outcome::started;
  }

  // --- Members of one job leave in one wave, or not at all (workloads: Evict).

  // nullopt: no job ties the node to others, or they can never go together and nobody else is left: it starts alone,
  // and evicts nobody.
  std::optional<Outcome> start_together(const RolloutKey& key, const Unit& unit, const std::string& name,
                                        const NodeAssessment& a) {
    constexpr std::size_t kMostHeldBack = 32;  // Each of them was listed.
    const GangPeers mates = gang_peers_of(pass_, name);
    if (!mates.unlisted.empty()) {
      pass_.plan.consumers_wanted.insert(mates.unlisted.begin(), mates.unlisted.end());
      slots_.take(key, a);
      ++started_[{key, std::string(a.product.view())}];
      return Outcome::started;
    }
    if (mates.pending.size() <= 1) return std::nullopt;
    const bool hopeless = !slots_.fit_ever(key, unit, mates);
    if (hopeless && only_they_are_left(unit, std::string(a.product.view()), mates)) return std::nullopt;
    if (hopeless || !take_slots(key, unit, mates)) {
      if (held_back_.size() >= kMostHeldBack) return Outcome::no_slot;
      hold_back(name, a);
      return Outcome::skipped;
    }
    const RolloutSpec& rollout = pass_.index.policy(pass_.s.world, key.policy).rollout;
    for (const std::string& mate : mates.pending) {
      const NodeAssessment& other = *pass_.index.find(mate);
      begun_.insert(mate);
      ++started_[{key, std::string(other.product.view())}];
      busy_.start(key.policy);
      ensure_rollout(key, unit, std::string(other.target.view()));
      start(*pass_.s.world.nodes.find(mate), other, rollout, false);
    }
    return Outcome::started;
  }

  // Takes a slot for each that needs one; none where they do not all get one.
  bool take_slots(const RolloutKey& key, const Unit& unit, const GangPeers& mates) {
    const Slots before = slots_;
    RolloutView& rollout = rollout_of(pass_, key);
    std::map<std::string, std::int64_t> needs;
    const auto waiting = static_cast<std::int64_t>(mates.pending.size());
    const std::int64_t before_them = busy_.waiting(key.policy);
    bool all = before_them == 0 || before_them + waiting <= slots_.most_draining(key);
    for (const std::string& mate : mates.pending) {
      const NodeAssessment& a = *pass_.index.find(mate);
      const std::string product(a.product.view());
      const bool canary = ++needs[product] <= left_in_canary(rollout, product) ||
                          (canaries_in_flight(rollout, product) == 0 && only_they_are_left(unit, product, mates));
      all = all && canary && !begun_.contains(mate) && kai_allows(mate, a) &&
            (Slots::is_busy(a) || slots_.free(key, unit, a));
      if (!all) break;
      slots_.take(key, a);
    }
    if (!all) slots_ = before;
    return all;
  }

  void start(const Node& node, const NodeAssessment& a, const RolloutSpec& rollout, bool live) {
    const std::string& name = node.meta.name;
    const NodeView view = view_of(pass_, node, a);
    NodeChange change = begin_change(view, {a.transition, a.cause});
    // A canary that was verified and then stopped serving judges its revision all the same.
    const RolloutKey unit = pass_.index.rollout_key_of(a);
    RolloutView& rollout_view = rollout_of(pass_, unit);
    const bool was_canary =
        a.loaded.revision == a.target && !rollout_view.verified &&
        (is_recorded_canary(rollout_view, name) || rollout_view.canary_passed(std::string(a.product.view())));
    change.served = change.served || was_canary;
    // Clients of MPS break whether or not somebody waits for them: no new ones meanwhile.
    const bool cordon = rollout.cordon.value_or(!live || steps_for(a.transition).disruptive);
    pass_.add(patch_into(view, change, {.cordon = cordon, .with_label = live}), "Update",
              fmt::format("{} -> {} ({}, {})", a.loaded.revision.empty() ? "unknown" : a.loaded.revision.view(),
                          a.target.view(), to_string(a.cause), to_string(a.transition)),
              true, name);
    pass_.plan.timers.push_back(unchanged_timer(name, a.target.view()));
    if (!live) {
      pass_.plan.consumers_wanted.insert(name);
      pass_.plan.timers.push_back(draining_timer(name, change));
      return;
    }
    const auto first = first_components(a, change.kind);
    for (PlannedAction& deletion : deletions(view, change, first, fmt::format("to {}", a.target.view()))) {
      pass_.add(std::move(deletion.action), deletion.reason, std::move(deletion.message), true, name);
    }
    pass_.plan.timers.push_back(verifying_timer(name, change));
  }

  void ensure_rollout(const RolloutKey& key, const Unit& unit, const std::string& target) {
    const std::string name = rollout_name(key, target);
    if (!pass_.s.world.policies_served || pass_.s.world.rollouts.find(name) != nullptr || !made_.insert(name).second)
      return;
    constexpr std::size_t kMaxText = 64 << 10;
    nlohmann::ordered_json spec = {
        {"policy", key.policy}, {"configMap", key.set}, {"key", key.key}, {"toRevision", target}};
    const PluginInstallation& set = pass_.index.discovery.sets[unit.set];
    if (const ConfigMap* config_map = pass_.s.world.configmaps.find(set.config_map_key())) {
      auto text = config_map->data.find(key.key);
      if (text != config_map->data.end() && text->second && text->second->size() <= kMaxText)
        spec["profile"] = *text->second;
    }
    nlohmann::ordered_json object = {
        {"apiVersion", kApiVersion}, {"kind", "SharingRollout"}, {"metadata", {{"name", name}}}};
    const auto kept = switches_to_restore(pass_, key, target);
    if (kept) {
      if (kept->paused) spec["paused"] = true;
      if (kept->aborted) spec["aborted"] = true;
      if (kept->undone) object["metadata"]["annotations"][std::string(kUndoAnnotation)] = "true";
    }
    object["spec"] = std::move(spec);
    pass_.add(
        CreateObject{rollout_ref(name), object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)},
        kept ? "RolloutRestored" : "RolloutStarted",
        fmt::format("policy {} takes {} key {} to {}", key.policy, key.set, key.key, target));
  }

  Pass& pass_;
  Slots slots_{pass_};
  BusyNodes busy_{pass_};
  std::map<std::string, WallTime, std::less<>> deferred_;  // Until when.
  std::map<RolloutKey, std::set<std::string>> reloads_;
  std::map<std::pair<RolloutKey, std::string>, std::int64_t> started_;  // In this pass, by group.
  std::set<std::string> begun_;      // Started in this pass together with another one.
  std::set<std::string> held_back_;  // Wait for slots for all nodes of their jobs.
  std::set<std::string> made_;
  std::set<ObjectKey> restarted_;
};

}  // namespace

void plan_starts(Pass& pass) {
  Starter(pass).run();
}

}  // namespace gso
