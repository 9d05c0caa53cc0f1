// Which nodes start now: gates of a unit, canary, budgets. A unit is one policy taking one profile key to its present
// revision; it starts nodes while every gate is open and a slot is free in fleet, group and cluster.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "reconcilers/labels.h"
#include "reconcilers/maintenance_window.h"
#include "reconcilers/rollout/pass.h"

namespace gso {

std::string unit_target(const Unit& unit) {
  const auto most = std::ranges::max_element(unit.targets, {}, [](const auto& entry) { return entry.second; });
  return most == unit.targets.end() ? std::string() : most->first;
}

std::string rollout_name(const UnitKey& key, std::string_view revision) {
  constexpr std::size_t kMaxName = 63;
  auto sanitised = [](std::string_view text) {
    std::string out;
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      out += std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : '-';
    }
    return out;
  };
  // The set is part of the identity (two ConfigMaps may have equal keys), so it goes into the hash.
  const std::string hash = short_hash(fmt::format("{}|{}|{}|{}", key.policy, key.set, key.key, revision)).substr(0, 10);
  std::string head = fmt::format("{}-{}", sanitised(key.policy), sanitised(key.key.empty() ? "unshared" : key.key));
  head = head.substr(0, kMaxName - hash.size() - 1);
  while (head.ends_with('-')) head.pop_back();
  return fmt::format("{}-{}", head, hash);
}

ObjectRef rollout_ref(const std::string& name) {
  return {std::string(kApiVersion), "SharingRollout", "", name, ""};
}

std::int64_t failures_of(const Index& index, const Unit& unit, std::string_view target) {
  return std::ranges::count_if(unit.failed, [&](const std::string& name) {
    const NodeAssessment* a = index.find(name);
    return a != nullptr && a->situation == Situation::failed && a->flight && a->flight->target == target;
  });
}

namespace {

// The last verified revision of the key is known good: going (back) to it needs no canary.
bool is_verified(const Index& index, const UnitKey& key, std::string_view target) {
  if (!index.record) return false;
  auto it = index.record->verified.find(key.set + "/" + key.key);
  return it != index.record->verified.end() && it->second == target;
}

bool all_canaries_passed(Pass& pass, const UnitKey& key, const Unit& unit, const std::string& target) {
  return std::ranges::all_of(unit.groups, [&](const auto& group) {
    return group.second.pending.empty() || canary_passed(pass, key, unit, group.first, target);
  });
}

// What onFailure: Rollback can do for a profile that is not ours: say what was verified last.
std::string last_verified_text(const Index& index, const UnitKey& key, const SharingPolicy& policy) {
  constexpr std::size_t kMost = 2048;
  const bool owned = policy.inline_profile && inline_profile_key(policy.meta.name, *policy.inline_profile) == key.key;
  if (policy.rollout.on_failure != OnFailure::rollback || owned || !index.record) return {};
  auto verified = index.record->verified.find(key.set + "/" + key.key);
  if (verified == index.record->verified.end())
    return "; ConfigMap " + key.set + " is not ours to write, and nothing was verified before";
  const auto kept = index.record->texts.find(verified->second);
  const std::string text = kept == index.record->texts.end() ? index.book.text_of(verified->second) : kept->second;
  if (text.empty() || text.size() > kMost) {
    return fmt::format("; ConfigMap {} is not ours to write: put revision {} back there", key.set, verified->second);
  }
  return fmt::format("; ConfigMap {} is not ours to write: put the last verified text back there:\n{}", key.set, text);
}

// A restart of DaemonSets concerns every node of the set.
std::string restart_obstacle(const Pass& pass, const Unit& unit) {
  const OperandSet& set = pass.index.discovery.sets[unit.set];
  if (set.announcement_unknown) {
    return fmt::format(
        "ClusterPolicy {} may not be read, so it is not known whether the GPU Operator is changing these "
        "DaemonSets too: grant get, list and watch on clusterpolicies.nvidia.com, or use mechanism NodeByNode",
        set.owner);
  }
  for (const Operand& operand : set.operands) {
    if (operand.on_delete) {
      return fmt::format(
          "DaemonSet {} has updateStrategy OnDelete, where a restart of the DaemonSet replaces no pod: use "
          "mechanism NodeByNode",
          k8s::to_string(operand.key));
    }
  }
  for (const auto& [key, other] : pass.index.units) {
    if (other.set != unit.set) continue;
    const SharingPolicy& policy = pass.index.policy(pass.s.world, key.policy);
    if (policy.rollout.mechanism == Mechanism::daemonset_restart &&
        pass.s.settings.mode_of(policy) != PolicyMode::observe)
      continue;
    return fmt::format(
        "a restart of the DaemonSets in {} would restart nodes of policy {} too, whose changes go node by node", set.ns,
        key.policy);
  }
  return {};
}

// Some of the nodes that would go next need another label.
bool relabels(const Pass& pass, const Unit& unit) {
  return std::ranges::any_of(unit.groups, [&](const auto& entry) {
    const auto& pending = entry.second.pending;
    const NodeAssessment* a = pending.empty() ? nullptr : pass.index.find(pending.begin()->second);
    return a != nullptr && a->label && !a->label->empty();
  });
}

}  // namespace

bool canary_passed(Pass& pass, const UnitKey& key, const Unit& unit, const std::string& product,
                   const std::string& target) {
  const RolloutSpec& rollout = pass.index.policy(pass.s.world, key.policy).rollout;
  if (rollout.canary_nodes_per_group <= 0 || is_verified(pass.index, key, target)) return true;
  const Group& group = unit.groups.at(product);
  if (group.settled < std::min(rollout.canary_nodes_per_group, group.total)) return false;
  return pass.held_for(fmt::format("soaking/{}/{}", rollout_name(key, target), product), rollout.canary_soak);
}

std::string too_many_failures(Pass& pass, const UnitKey& key, const Unit& unit, const std::string& target) {
  const SharingPolicy& policy = pass.index.policy(pass.s.world, key.policy);
  const auto* known = remembered_failure(pass.index, key, policy, target);
  const std::int64_t failures = failures_of(pass.index, unit, target);
  if (failures == 0 && known == nullptr) return {};
  if (failures == 0) {
    return fmt::format("{} failed before and is not tried again until it changes; `rollout start` tries it again",
                       target);
  }
  // A failed node keeps its slot: when all slots are failed nodes, nothing can go on either.
  const std::int64_t slots =
      std::max<std::int64_t>(1, policy.rollout.max_unavailable.of(pass.index.policies.at(key.policy).total));
  const bool canary = !all_canaries_passed(pass, key, unit, target);
  const bool full = failures >= slots;
  if (!canary && !full && failures < policy.rollout.max_failures && known == nullptr) return {};
  return fmt::format("{} node{} failed{}", failures, failures == 1 ? "" : "s",
                     canary                                           ? " in the canary"
                     : full && failures < policy.rollout.max_failures ? ", which are all slots"
                                                                      : "");
}

const FleetRecord::Failure* remembered_failure(const Index& index, const UnitKey& key, const SharingPolicy& policy,
                                               std::string_view target) {
  if (!index.record) return nullptr;
  return index.record->failure(key.policy, key.set, key.key, target,
                               policy.meta.annotations.get(kRetryAnnotation).value_or(""));
}

namespace {
// The inputs of an operand set are as they were: what its pods would load, by signature.
std::string settled_condition(const Pass& pass, std::size_t set) {
  return fmt::format("settled/{}/{}", pass.index.discovery.sets[set].id(), pass.index.signatures[set]);
}
}  // namespace

Gate gate_of(Pass& pass, const UnitKey& key, const Unit& unit) {
  const Snapshot& s = pass.s;
  const SharingPolicy& policy = pass.index.policy(s.world, key.policy);
  const OperandSet& set = pass.index.discovery.sets[unit.set];
  const std::string target = unit_target(unit);
  const PolicyMode mode = s.settings.mode_of(policy);
  if (mode == PolicyMode::observe) {
    const bool limit = policy.mode != mode;
    return {"Observe", limit ? "the operator runs with rollouts: Observe: nothing is changed"
                             : "the policy's mode is Observe: nothing is changed"};
  }
  if (policy.rollout.paused) return {"Paused", "spec.rollout.paused of the policy is set"};
  const ConfigMap* config_map = s.world.configmaps.find(set.config_map_key());
  if (config_map && config_map->meta.annotations.get(kPausedAnnotation) == "true") {
    return {"Paused", fmt::format("ConfigMap {} carries {}=true", set.id(), kPausedAnnotation)};
  }
  if (const SharingRollout* rollout = s.world.rollouts.find(rollout_name(key, target))) {
    if (rollout->aborted) return {"Aborted", "spec.aborted of the rollout is set"};
    if (rollout->meta.annotations.get(kUndoAnnotation) == "true") {
      return {std::string(kUndone), "taken back by a person; `rollout start` tries it again"};
    }
    if (rollout->paused) return {"Paused", "spec.paused of the rollout is set"};
    if (mode == PolicyMode::approve && !rollout->approved) return {"AwaitingApproval", "waits for spec.approved"};
  } else if (mode == PolicyMode::approve) {
    return {"AwaitingApproval", "waits for spec.approved of its SharingRollout"};
  }
  if (set.announced) {
    return {std::string(kGpuOperatorUpdating),
            fmt::format("ClusterPolicy {} announces config {} default {}, which its DaemonSets do not have yet",
                        set.owner, set.announced_config_map, set.announced_default)};
  }
  if (std::string why = too_many_failures(pass, key, unit, target); !why.empty()) {
    return {std::string(kMaxFailures), why + last_verified_text(pass.index, key, policy)};
  }
  if (policy.rollout.mechanism == Mechanism::daemonset_restart) {
    if (std::string why = restart_obstacle(pass, unit); !why.empty()) return {"MechanismUnusable", std::move(why)};
  }
  if (relabels(pass, unit) && !key_is_projected(pass, set, key.key)) {
    return {"KeyNotProjected",
            fmt::format("key {} is new in ConfigMap {}: kubelets have to project it first", key.key, set.id())};
  }
  const WindowState windows = windows_at(policy.rollout.windows, pass.s.now);
  if (windows.until) pass.look_again_in(*windows.until - pass.s.now);
  if (!windows.open) {
    return {std::string(kOutsideWindow),
            windows.until ? fmt::format("the next maintenance window opens at {}", k8s::format_time(*windows.until))
            : windows.problem.empty() ? "no maintenance window opens in the next five years"
                                      : "a maintenance window cannot be read: " + windows.problem};
  }
  if (!pass.held_for(settled_condition(pass, unit.set), s.settings.settle))
    return {"Settling", "the inputs changed a moment ago"};
  return {};
}

std::string exhausted_budget(const Pass& pass, const UnitKey& key, const Unit& unit, const std::string& product,
                             std::int64_t cluster_taken, std::int64_t policy_taken, std::int64_t group_taken) {
  const RolloutSpec& rollout = pass.index.policy(pass.s.world, key.policy).rollout;
  const Sums& policy = pass.index.policies.at(key.policy);
  const Group& group = unit.groups.at(product);
  auto full = [](std::string_view what, std::int64_t busy, std::int64_t budget) {
    return busy + 1 <= budget ? std::string()
                              : fmt::format("{}: {} of {} out of service or in flight", what, busy, budget);
  };
  std::string out = full("cluster", pass.index.cluster.busy + cluster_taken,
                         pass.s.settings.cluster_max_unavailable.of(pass.index.cluster.total));
  if (out.empty())
    out = full(fmt::format("policy {}", key.policy), policy.busy + policy_taken,
               rollout.max_unavailable.of(policy.total));
  if (out.empty()) {
    out = full(fmt::format("group {}", product.empty() ? "of unknown product" : product), group.busy + group_taken,
               rollout.max_unavailable_per_group.of(group.total));
  }
  return out;
}

namespace {

class Starter {
 public:
  explicit Starter(Pass& pass) : pass_(pass) {
    keep_deferred();
    keep_settled();
    for (const std::string& name : pass.index.in_flight) draining_ += is_waiting(name) ? 1 : 0;
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
    for (const std::size_t set : sets) (void)pass_.age(settled_condition(pass_, set));
  }

  // Nodes that gave up waiting for their workloads keep their place at the back of the queue.
  void keep_deferred() {
    constexpr std::string_view kPrefix = "deferred/";
    for (auto it = pass_.s.observed.lower_bound(std::string(kPrefix)); it != pass_.s.observed.end(); ++it) {
      if (!it->first.starts_with(kPrefix)) break;
      const std::string_view rest = std::string_view(it->first).substr(kPrefix.size());
      const std::string_view name = rest.substr(0, rest.find('/'));
      const NodeAssessment* a = pass_.index.find(name);
      if (a == nullptr || a->situation != Situation::change || !rest.ends_with(a->target.view())) continue;
      deferred_.emplace(name, pass_.age(it->first));
    }
  }

  // Nodes whose own reload (or first start) did not bring the profile in, or lost it: restarted like an edited one.
  void collect_reloads() {
    for (const std::string& name : pass_.index.to_record) {
      const NodeAssessment* a = pass_.index.find(name);
      if (a == nullptr || a->matches || a->held || !loading_expired(pass_, name, *a)) continue;
      if (a->verified.surplus && a->measured_gpus > 0) continue;  // Recorded, not restarted.
      reloads_[unit_of(*a)].insert(name);
    }
    // Nodes that have stopped showing what they run, for longer than a start may take. A missing device is no such
    // case.
    for (const std::string& name : pass_.index.drifting) {
      const NodeAssessment* a = pass_.index.find(name);
      if (a == nullptr || a->verified.shortfall) continue;
      const Duration patience = pass_.index.policy(pass_.s.world, a->policy.view()).rollout.verify_timeout;
      if (pass_.held_for(fmt::format("drifting/{}/{}", name, a->target.view()), patience))
        reloads_[unit_of(*a)].insert(name);
    }
  }

  [[nodiscard]] UnitKey unit_of(const NodeAssessment& a) const {
    return {std::string(a.policy.view()), pass_.index.set_of(a).id(), std::string(a.key.view())};
  }

  [[nodiscard]] bool is_waiting(const std::string& name) const {
    const NodeAssessment* a = pass_.index.find(name);
    return a && a->flight && a->flight->cordoned &&
           pass_.s.observed.contains(fmt::format("draining/{}/{}", name, a->flight->target));
  }

  void start_unit(const UnitKey& key, const Unit& unit) {
    const auto reloads = reloads_.find(key);
    const bool pending =
        std::ranges::any_of(unit.groups, [](const auto& group) { return !group.second.pending.empty(); });
    if ((!pending && reloads == reloads_.end()) ||
        pass_.s.world.unsynced_namespaces.contains(pass_.index.discovery.sets[unit.set].ns)) {
      return;
    }
    const std::string target = unit_target(unit);
    const Gate gate = gate_of(pass_, key, unit);
    if (gate.reason == "AwaitingApproval" && pending) ensure_rollout(key, unit, target);
    if (!gate.open()) return;
    if (reloads != reloads_.end()) {
      for (const std::string& name : reloads->second) {
        if (try_start(key, unit, name) != Outcome::no_slot) continue;
        const std::string product(pass_.index.find(name)->product.view());
        pass_.finding(Severity::warning, node_ref(name), kBudgetExhausted,
                      "does not show its profile and has no slot: " + exhausted_budget(pass_, key, unit, product));
      }
    }
    if (restart_daemonsets(key, unit, target)) return;
    for (const auto& [product, group] : unit.groups) start_group(key, unit, product, group, target);
  }

  // Mechanism DaemonSetRestart, for what only new pods load; a label is moved node by node all the same. The template
  // names what it was restarted for, so that it is done once.
  bool restart_daemonsets(const UnitKey& key, const Unit& unit, const std::string& target) {
    if (pass_.index.policy(pass_.s.world, key.policy).rollout.mechanism != Mechanism::daemonset_restart) return false;
    std::set<Component> components;
    for (const auto& [product, group] : unit.groups) {
      for (const auto& [available, name] : group.pending) {
        const NodeAssessment& a = *pass_.index.find(name);
        if (a.label || a.flight) continue;
        components.insert(Component::plugin);
        for (Component component : {Component::gfd, Component::mps}) {
          if (steps_for(a.transition).replaces(component)) components.insert(component);
        }
      }
    }
    if (components.empty()) return false;
    std::string all;
    for (const auto& [other, state] : pass_.index.units) {
      if (state.set == unit.set) all += rollout_name(other, unit_target(state)) + "|";
    }
    const std::string restarted_for = short_hash(all);
    ensure_rollout(key, unit, target);
    for (const Operand& operand : pass_.index.discovery.sets[unit.set].operands) {
      const DaemonSet* daemonset = pass_.s.world.daemonsets.find(operand.key);
      if (daemonset == nullptr || !components.contains(operand.component) || daemonset->restarted_for == restarted_for)
        continue;
      if (!restarted_.insert(operand.key).second) continue;
      pass_.add(RestartDaemonSet{operand.key, daemonset->meta.resource_version, restarted_for}, "Restart",
                fmt::format("{} to {}, by its DaemonSet", key.key, target), true);
    }
    return true;
  }

  void start_group(const UnitKey& key, const Unit& unit, const std::string& product, const Group& group,
                   const std::string& target) {
    if (group.pending.empty()) return;
    const RolloutSpec& rollout = pass_.index.policy(pass_.s.world, key.policy).rollout;
    std::int64_t may_start = group.total;
    if (!canary_passed(pass_, key, unit, product, target)) {
      may_start = rollout.canary_nodes_per_group - group.settled - in_flight_to(key, product, target);
    }
    for (const bool back_of_queue : {false, true}) {
      for (const auto& [available, name] : group.pending) {
        if (may_start <= 0) return;
        const auto deferred = deferred_.find(name);
        if (back_of_queue != (deferred != deferred_.end())) continue;
        if (back_of_queue && deferred->second < rollout.idle_timeout) {
          pass_.look_again_in(rollout.idle_timeout - deferred->second);
          continue;
        }
        const Outcome outcome = try_start(key, unit, name);
        if (outcome == Outcome::no_slot) return;
        if (outcome == Outcome::started) --may_start;
      }
      // Those who waited in vain come again only when nobody else is left.
      if (!back_of_queue &&
          std::ranges::any_of(group.pending, [&](const auto& entry) { return !deferred_.contains(entry.second); })) {
        break;
      }
    }
  }

  [[nodiscard]] std::int64_t in_flight_to(const UnitKey& key, const std::string& product,
                                          const std::string& target) const {
    return std::ranges::count_if(pass_.index.in_flight, [&](const std::string& name) {
      const NodeAssessment* a = pass_.index.find(name);
      return a && a->flight && a->flight->target == target && a->product == product && a->policy == key.policy &&
             a->key == key.key;
    });
  }

  enum class Outcome { started, no_slot, skipped };

  // S8, also for reloads, which are no change of the profile: no roll to replicas where KAI shares GPUs, nor before it
  // is known whether it does.
  bool kai_allows(const std::string& name, const NodeAssessment& a) {
    const bool replicas = a.profile && a.profile->valid && a.profile->profile().strategy() != Strategy::none;
    if (!replicas) return true;
    if (!pass_.s.world.kai.use_known) {
      pass_.look_again_in(std::chrono::seconds(1));
      return false;
    }
    const std::string use = pass_.index.kai.use_of(name);
    if (use.empty()) return true;
    pass_.finding(Severity::warning, node_ref(name), kKaiReservations,
                  fmt::format("not restarted into replicas of its GPUs: KAI shares them ({})", use));
    return false;
  }

  Outcome try_start(const UnitKey& key, const Unit& unit, const std::string& name) {
    const Node* node = pass_.s.world.nodes.find(name);
    const NodeAssessment* a = pass_.index.find(name);
    if (node == nullptr || a == nullptr || a->held || !node->ready) return Outcome::skipped;
    if (!kai_allows(name, *a)) return Outcome::skipped;
    if (a->label && !a->label->empty() && !key_is_projected(pass_, pass_.index.set_of(*a), key.key))
      return Outcome::no_slot;
    if (!is_busy(*a) && !slot_is_free(key, unit, *a)) return Outcome::no_slot;
    const RolloutSpec& rollout = pass_.index.policy(pass_.s.world, key.policy).rollout;
    const Drain drain = drain_for(*a, a->transition, rollout.workloads);
    bool live = drain == Drain::nothing;
    if (drain == Drain::fits) {
      const NodeUse use = use_of(pass_.s, name, WallTime::min());
      if (!use.fresh) {
        // The slot is kept for it, so that no more nodes are listed than could start.
        pass_.plan.consumers_wanted.insert(name);
        take_slot(key, *a);
        return Outcome::started;
      }
      live = drained(drain, use, *a);
    }
    if (!live && !is_busy(*a) && draining_ >= most_draining(key)) return Outcome::no_slot;
    if (!live) ++draining_;
    take_slot(key, *a);
    ensure_rollout(key, unit, std::string(a->target.view()));
    start(*node, *a, rollout, live);
    return Outcome::started;
  }

  void start(const Node& node, const NodeAssessment& a, const RolloutSpec& rollout, bool live) {
    const std::string& name = node.meta.name;
    // Clients of MPS break whether or not somebody waits for them: no new ones meanwhile.
    const bool cordon = rollout.cordon.value_or(!live || steps_for(a.transition).disruptive);
    pass_.add(patch_into(pass_, node, a, cordon, live), "Update",
              fmt::format("{} -> {} ({}, {})", a.loaded.revision.empty() ? "unknown" : a.loaded.revision.view(),
                          a.target.view(), to_string(a.way), to_string(a.transition)),
              true, name);
    if (!live) {
      pass_.plan.consumers_wanted.insert(name);
      pass_.plan.conditions.push_back(fmt::format("draining/{}/{}", name, a.target.view()));
      return;
    }
    const NodePods pods = sort_pods(pass_.index.set_of(a), pass_.index.pods_of(name));
    delete_pods(pass_, name, pods, first_components(a, a.transition), pods_to_replace(pass_, node, a),
                fmt::format("to {}", a.target.view()));
    pass_.plan.conditions.push_back(
        verifying_condition(name, a.target.view(), print_replace(pods_to_replace(pass_, node, a))));
  }

  // --- Budgets (S1): what is busy, whoever caused it, plus this one.

  struct Taken {
    std::map<std::string, std::int64_t> policies;
    std::map<std::pair<UnitKey, std::string>, std::int64_t> groups;
    std::int64_t cluster = 0;
  };

  // Out of service, or failed half-way: one of those that the budgets count already.
  static bool is_busy(const NodeAssessment& a) { return a.unavailable || a.flight.has_value(); }

  [[nodiscard]] std::int64_t policy_budget(const UnitKey& key) const {
    const Sums& sums = pass_.index.policies.at(key.policy);
    return pass_.index.policy(pass_.s.world, key.policy).rollout.max_unavailable.of(sums.total);
  }

  bool slot_is_free(const UnitKey& key, const Unit& unit, const NodeAssessment& a) {
    const std::string product(a.product.view());
    return exhausted_budget(pass_, key, unit, product, taken_.cluster, taken_.policies[key.policy],
                            taken_.groups[{key, product}])
        .empty();
  }

  void take_slot(const UnitKey& key, const NodeAssessment& a) {
    if (is_busy(a)) return;  // It is counted already.
    ++taken_.cluster;
    ++taken_.policies[key.policy];
    ++taken_.groups[{key, std::string(a.product.view())}];
  }

  // At most half of the slots wait for workloads, so that a few busy nodes do not stop the rest.
  [[nodiscard]] std::int64_t most_draining(const UnitKey& key) const {
    return std::max<std::int64_t>(1, (policy_budget(key) + 1) / 2);
  }

  void ensure_rollout(const UnitKey& key, const Unit& unit, const std::string& target) {
    const std::string name = rollout_name(key, target);
    if (!pass_.s.world.policies_served || pass_.s.world.rollouts.find(name) != nullptr || !made_.insert(name).second)
      return;
    constexpr std::size_t kMaxText = 64 << 10;
    nlohmann::ordered_json spec = {
        {"policy", key.policy}, {"configMap", key.set}, {"key", key.key}, {"toRevision", target}};
    const OperandSet& set = pass_.index.discovery.sets[unit.set];
    if (const ConfigMap* config_map = pass_.s.world.configmaps.find(set.config_map_key())) {
      auto text = config_map->data.find(key.key);
      if (text != config_map->data.end() && text->second && text->second->size() <= kMaxText)
        spec["profile"] = *text->second;
    }
    const nlohmann::ordered_json object = {{"apiVersion", kApiVersion},
                                           {"kind", "SharingRollout"},
                                           {"metadata", {{"name", name}}},
                                           {"spec", std::move(spec)}};
    pass_.add(
        CreateObject{rollout_ref(name), object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)},
        "RolloutStarted", fmt::format("policy {} takes {} key {} to {}", key.policy, key.set, key.key, target));
  }

  Pass& pass_;
  Taken taken_;
  std::map<std::string, Duration, std::less<>> deferred_;
  std::map<UnitKey, std::set<std::string>> reloads_;
  std::set<std::string> made_;
  std::set<ObjectKey> restarted_;
  std::int64_t draining_ = 0;
};

}  // namespace

void plan_starts(Pass& pass) {
  Starter(pass).run();
}

}  // namespace gso
