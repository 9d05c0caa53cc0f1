#include "reconcilers/rollout/gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/maintenance_window.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/rollout/stops.h"
#include "reconcilers/status/status.h"

namespace gso {

std::string unit_target(const Unit& unit) {
  const auto most = std::ranges::max_element(unit.targets, {}, [](const auto& entry) { return entry.second; });
  return most == unit.targets.end() ? std::string() : most->first;
}

std::set<std::string> failed_on(const Index& index, const Unit& unit, std::string_view target) {
  std::set<std::string> out;
  std::ranges::copy_if(unit.nodes(UnitBucket::failed), std::inserter(out, out.end()), [&](const std::string& name) {
    const NodeAssessment* a = index.find(name);
    return a != nullptr && a->situation == Situation::failed && a->change && a->change->to == target;
  });
  return out;
}

std::int64_t failures_of(const Index& index, const Unit& unit, std::string_view target) {
  return std::ranges::count_if(failed_on(index, unit, target),
                               [&](const std::string& name) { return index.find(name)->change->served; });
}

// The last verified revision of the key is known good: going (back) to it needs no canary. What else a new template
// brings (another image) is not.
bool is_verified(const Index& index, const UnitKey& key, const Unit& unit, std::string_view target) {
  if (!index.record || unit.tally.new_template > 0) return false;
  auto it = index.record->verified.find(key.set + "/" + key.key);
  return it != index.record->verified.end() && it->second == target;
}

namespace {

bool all_canaries_passed(Pass& pass, const UnitKey& key, const Unit& unit, const std::string& target) {
  return std::ranges::all_of(unit.groups, [&](const auto& group) {
    return group.second.pending.empty() || canary_passed(pass, key, unit, group.first, target);
  });
}

// The policy's own profile was taken back, and this is what its nodes go back to. Whoever asks for approval has
// approved the change; nobody wants its failure for longer than the way back takes.
bool goes_back(const Index& index, const UnitKey& key, const SharingPolicy& policy) {
  return taken_back(index, policy, key.set) != nullptr &&
         inline_profile_key(policy.meta.name, *policy.inline_profile) != key.key;
}

// A canary that was verified and has stopped showing its profile: another one in its place would take as many nodes
// down as there are. It gets well by itself, is restarted after verifyTimeout, or fails then.
std::string canary_unwell(const Pass& pass, const UnitKey& key, const Unit& unit, const std::string& target) {
  const RolloutSpec& rollout = pass.index.policy(pass.s.world, key.policy).rollout;
  if (is_verified(pass.index, key, unit, target)) return {};
  for (const auto& [product, group] : unit.groups) {
    if (group.tally.unwell == 0 || group.pending.empty() || group.tally.settled >= rollout.canary_nodes_per_group)
      continue;
    for (const std::string& name : pass.index.nodes_in(Bucket::drifting)) {
      const NodeAssessment& a = *pass.index.find(name);
      if (a.policy != key.policy || a.key != key.key || a.product != product || pass.index.set_of(a).id() != key.set)
        continue;
      return fmt::format(
          "{} was verified and does not show its profile any more: {}; it is restarted when that lasts {}", name,
          shown_difference(a), k8s::format_go_duration(rollout.verify_timeout));
    }
  }
  return {};
}

// What onFailure: Rollback can do for a profile that is not ours: say what was verified last.
std::string last_verified_text(const Index& index, const UnitKey& key, const SharingPolicy& policy) {
  constexpr std::size_t kMost = 512;  // The whole message must fit into a condition (message_text.h).
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

// For people: why a label may not select the key yet.
std::string not_projected(const OperandSet& set, const std::string& key, Duration projection) {
  return fmt::format(
      "key {} of ConfigMap {} is new, or was edited, or has not been watched for {} yet: kubelets have "
      "to project its text first",
      key, set.id(), k8s::format_go_duration(projection));
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
  if (rollout.canary_nodes_per_group <= 0 || is_verified(pass.index, key, unit, target)) return true;
  const Group& group = unit.groups.at(product);
  if (group.tally.settled < std::min(rollout.canary_nodes_per_group, group.tally.total)) return false;
  return pass.held_for(soaking_timer(key, target, product), rollout.canary_soak);
}

TimerKey soaking_timer(const UnitKey& key, const std::string& target, const std::string& product) {
  return {Timer::soaking, rollout_name(key, target), product};
}

namespace {

std::pair<std::string_view, std::string_view> who_has(const Pass& pass, const std::string& name,
                                                      const NodeAssessment& a) {
  const Node* node = pass.s.world.nodes.find(name);
  if (a.held) return {kHeld, "carries gpusharing.dev/hold=true: it is left as it is until that is removed"};
  const auto holder = node == nullptr ? std::string_view() : foreign_holder(*node, pass.index.set_of(a));
  if (holder == kDriverUpgrade) return {holder, "a driver upgrade is under way on the node"};
  if (!holder.empty()) return {holder, "the MIG manager is changing the node"};
  if (!a.ready && !a.change) return {kNotReady, "is left alone until it is Ready, and counts against the budgets"};
  return {};
}

}  // namespace

OutOfReach out_of_reach(const Pass& pass, const UnitKey& key, const Unit& unit) {
  OutOfReach out;
  std::map<std::string, std::int64_t> stuck, waiting;  // By product: in flight, and not.
  bool moves = (unit.tally.of(Situation::following) > 0);
  const auto note = [&](const std::string& name, std::map<std::string, std::int64_t>& count) {
    const NodeAssessment& a = *pass.index.find(name);
    const auto [reason, why] = who_has(pass, name, a);
    if (reason.empty()) return false;
    out.nodes[std::string(reason)].emplace(name, why);
    ++count[std::string(a.product.view())];
    return true;
  };
  for (const std::string& name : unit.nodes(UnitBucket::set_aside)) {
    if (pass.index.find(name)->situation == Situation::change) (void)note(name, waiting);
  }
  for (const std::string& name : unit.nodes(UnitBucket::stuck)) (void)note(name, stuck);
  moves = moves || unit.tally.of(Situation::in_flight) > std::ssize(unit.nodes(UnitBucket::stuck));
  const std::int64_t quota = pass.index.policy(pass.s.world, key.policy).rollout.canary_nodes_per_group;
  const bool known_good = is_verified(pass.index, key, unit, unit_target(unit));
  out.stops_all = !moves && !out.nodes.empty() && std::ranges::all_of(unit.groups, [&](const auto& entry) {
    const auto& [product, group] = entry;
    if (static_cast<std::int64_t>(group.pending.size()) <= waiting[product]) return true;
    return !known_good && group.tally.settled < quota && group.tally.settled + stuck[product] >= quota;
  });
  return out;
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
  const auto failed = failed_on(pass.index, unit, target);
  const bool of_canary = std::ranges::any_of(failed, [&](const std::string& name) {
    const std::string product(pass.index.find(name)->product.view());
    return !canary_passed(pass, key, unit, product, target);
  });
  return fmt::format("{} node{} failed{}", failures, failures == 1 ? "" : "s",
                     canary && of_canary                              ? " in the canary"
                     : canary                                         ? " before every group's canary has passed"
                     : full && failures < policy.rollout.max_failures ? ", which are all slots"
                                                                      : "");
}

const FleetRecord::Failure* remembered_failure(const Index& index, const UnitKey& key, const SharingPolicy& policy,
                                               std::string_view target) {
  if (!index.record) return nullptr;
  return index.record->failure(key.policy, key.set, key.key, target,
                               policy.meta.annotations.get(kRetryAnnotation).value_or(""));
}

const FleetRecord::Failure* taken_back(const Index& index, const SharingPolicy& policy, std::string_view set) {
  if (!policy.inline_profile || !index.record) return nullptr;
  const std::string own = inline_profile_key(policy.meta.name, *policy.inline_profile);
  const auto retry = policy.meta.annotations.get(kRetryAnnotation).value_or("");
  const FleetRecord::Failure* last = nullptr;
  for (const FleetRecord::Failure& failure : index.record->failures) {
    const bool of_set = set.empty() || failure.set == set;
    if (failure.rolled_back && failure.policy == policy.meta.name && of_set && failure.key == own &&
        failure.retry == retry)
      last = &failure;
  }
  return last;
}

bool says_left(const SharingRollout& rollout) {
  return !text_at(condition_in(nlohmann::json::parse(rollout.status_json, nullptr, false), kCurrentCondition), "status")
              .empty();
}

bool was_left(const Index& index, const SharingRollout& rollout) {
  const RecordedSwitches* entry =
      index.record ? index.record->rollout(rollout.policy, rollout.config_map, rollout.key, rollout.to_revision)
                   : nullptr;
  return entry != nullptr ? entry->left : says_left(rollout);
}

namespace {

// When it ended, by its status; nullopt where it has not, or where that is not told.
std::optional<WallTime> ended_at(const SharingRollout& rollout) {
  const auto status = nlohmann::json::parse(rollout.status_json, nullptr, false);
  if (!status.is_object()) return std::nullopt;
  if (rollout.phase == "Completed") return k8s::parse_rfc3339(text_at(status, "completedAt"));
  if (rollout.phase != "Failed") return std::nullopt;
  const std::string since = since_when(status, rollout.aborted ? kAbortedCondition : "Progressing");
  return k8s::parse_rfc3339(since);
}

// It has ended, and nodes wait for pods of a template that came later (updateStrategy OnDelete). A template that nodes
// still wait for when it ends (aborted), or that nodes come late to, is its own.
bool ended_before_template(const Index& index, const Unit& unit, const SharingRollout& rollout) {
  if (unit.tally.new_template == 0) return false;
  const std::optional<WallTime> ended = ended_at(rollout);
  if (!ended) return false;
  // Creation times are whole seconds. An abort in the same second is meant for that template, too.
  const WallTime oldest = rollout.aborted ? *ended + std::chrono::seconds(1) : *ended;
  const bool later = std::ranges::any_of(index.discovery.sets[unit.set].operands, [&](const Operand& operand) {
    return operand.on_delete && operand.newest_since >= oldest;
  });
  // A template that comes back has the time of its first day; but then no node is where all of them were.
  const bool nobody_settled =
      std::ranges::all_of(unit.groups, [](const auto& group) { return group.second.tally.settled == 0; });
  return later || (rollout.phase == "Completed" && nobody_settled);
}

}  // namespace

bool begins_anew(const Index& index, const Unit& unit, const SharingRollout& rollout) {
  return (unit.tally.of(Situation::change) > 0) && rollout.meta.annotations.get(kUndoAnnotation) != "true" &&
         (was_left(index, rollout) || ended_before_template(index, unit, rollout));
}

TimerKey settled_timer(const Pass& pass, std::size_t set) {
  return {Timer::settled, pass.index.discovery.sets[set].id(), pass.index.signatures[set]};
}

TimerKey differing_timer(const OperandSet& set) {
  std::string state =
      fmt::format("{}|{}|{}", set.clusterpolicy_generation, set.announced_config_map, set.announced_default);
  for (const Operand& operand : set.operands) state += fmt::format("|{}:{}", operand.uid, operand.generation);
  return {Timer::differing, set.id(), short_hash(state)};
}

std::string lasting_difference(const Pass& pass, const OperandSet& set) {
  if (!set.announced || pass.s.now - pass.since(differing_timer(set)) < kDifferencePatience) return {};
  const auto named = [&](const Operand& operand) {
    return fmt::format("DaemonSet {} has config {} default {}", k8s::to_string(operand.key),
                       operand.config_map.empty() ? "(none)" : operand.config_map,
                       operand.default_key.empty() ? "(none)" : operand.default_key);
  };
  std::vector<std::string> different;
  for (const Operand& operand : set.operands) {
    if (operand.config_map != set.announced_config_map || operand.default_key != set.announced_default)
      different.push_back(named(operand));
  }
  return fmt::format(
      "{}, while ClusterPolicy {} says config {} default {}, for longer than {}: somebody has changed the DaemonSets "
      "by hand, or the GPU Operator does not run. It overwrites changes by hand only when it has something new to "
      "write. Nothing starts until both say the same: set spec.devicePlugin.config of the ClusterPolicy to what is "
      "wanted",
      first_names(different), set.owner, set.announced_config_map.empty() ? "(none)" : set.announced_config_map,
      set.announced_default.empty() ? "(none)" : set.announced_default, k8s::format_go_duration(kDifferencePatience));
}

namespace {

// What gates of one rollout are about.
struct Gated {
  Pass& pass;
  const UnitKey& key;
  const Unit& unit;
  const SharingPolicy& policy;
  const OperandSet& set;
  std::string target;
  const SharingRollout* rollout;  // Null: there is no record of it.
  bool anew;                      // The record is of an earlier attempt.
  bool repair = false;            // Of nodes that are to show the revision that they have loaded.
};

Gated gated(Pass& pass, const UnitKey& key, const Unit& unit) {
  Gated out{pass,
            key,
            unit,
            pass.index.policy(pass.s.world, key.policy),
            pass.index.discovery.sets[unit.set],
            unit_target(unit),
            nullptr,
            false,
            false};
  out.rollout = pass.s.world.rollouts.find(rollout_name(key, out.target));
  out.anew = out.rollout != nullptr && begins_anew(pass.index, unit, *out.rollout);
  return out;
}

// Switches that people have turned.
Gate closed_by_people(const Gated& g) {
  const PolicyMode mode = g.pass.s.settings.mode_of(g.policy);
  if (mode == PolicyMode::observe) {
    return {std::string(kObserve), g.policy.mode != mode
                                       ? "the operator runs with rollouts: Observe: nothing is changed"
                                       : "the policy's mode is Observe: nothing is changed"};
  }
  if (g.policy.rollout.paused) return {"Paused", "spec.rollout.paused of the policy is set"};
  const ConfigMap* config_map = g.pass.s.world.configmaps.find(g.set.config_map_key());
  if (config_map && config_map->meta.annotations.get(kPausedAnnotation) == "true") {
    return {"Paused", fmt::format("ConfigMap {} carries {}=true", g.set.id(), kPausedAnnotation)};
  }
  const bool asks = mode == PolicyMode::approve && !g.repair && !goes_back(g.pass.index, g.key, g.policy);
  const Switches on = g.anew ? Switches() : switches_of(g.pass, g.key, g.target, g.rollout);
  if (on.aborted) return {"Aborted", "spec.aborted of the rollout is set"};
  if (on.undone) return {std::string(kUndone), "taken back by a person; `rollout start` tries it again"};
  if (on.paused) return {"Paused", "spec.paused of the rollout is set"};
  if (!asks || on.approved) return {};
  const bool has_object = g.rollout != nullptr && !g.anew;
  return {"AwaitingApproval", has_object ? "waits for spec.approved" : "waits for spec.approved of its SharingRollout"};
}

Gate closed_by_failures(const Gated& g) {
  std::string why = too_many_failures(g.pass, g.key, g.unit, g.target);
  if (why.empty()) return {};
  return {std::string(kMaxFailures), why + last_verified_text(g.pass.index, g.key, g.policy)};
}

Gate closed_by_window(const Gated& g) {
  const WindowState windows = windows_at(g.policy.rollout.windows, g.pass.s.now);
  if (windows.until) g.pass.look_again_in(*windows.until - g.pass.s.now);
  if (windows.open) return {};
  return {std::string(kOutsideWindow),
          windows.until ? fmt::format("the next maintenance window opens at {}", k8s::format_time(*windows.until))
          : windows.problem.empty() ? "no maintenance window opens in the next five years"
                                    : "a maintenance window cannot be read: " + windows.problem};
}

Gate closed_by_announcement(const Gated& g) {
  if (!g.set.announced) return {};
  if (std::string stays = lasting_difference(g.pass, g.set); !stays.empty())
    return {std::string(kGpuOperatorUpdating), std::move(stays)};
  return {std::string(kGpuOperatorUpdating),
          fmt::format("ClusterPolicy {} announces config {} default {}, which its DaemonSets do not have yet",
                      g.set.owner, g.set.announced_config_map, g.set.announced_default)};
}

Gate closed_by_inputs(const Gated& g) {
  if (std::string why = canary_unwell(g.pass, g.key, g.unit, g.target); !why.empty())
    return {std::string(kCanaryUnwell), std::move(why)};
  if (g.policy.rollout.mechanism == Mechanism::daemonset_restart) {
    if (std::string why = restart_obstacle(g.pass, g.unit); !why.empty()) return {"MechanismUnusable", std::move(why)};
  }
  if (relabels(g.pass, g.unit) && !key_is_projected(g.pass, g.set, g.key.key)) {
    return {"KeyNotProjected", not_projected(g.set, g.key.key, g.pass.s.settings.projection)};
  }
  return {};
}

Gate closed_until_settled(const Gated& g) {
  const Duration settle = g.pass.s.settings.settle;
  if (!g.pass.held_for(settled_timer(g.pass, g.unit.set), settle)) {
    return {std::string(kSettling), fmt::format("ConfigMap {} or its DaemonSets changed less than {} ago", g.set.id(),
                                                k8s::format_go_duration(settle))};
  }
  if (g.anew) return {std::string(kNewAttempt), "the SharingRollout of an earlier attempt is replaced first"};
  return {};
}

}  // namespace

namespace {

// In the order in which they are reported: the first one that is closed.
Gate first_closed(const Gated& g) {
  constexpr Gate (*kGates[])(const Gated&) = {closed_by_people, closed_by_announcement, closed_by_failures,
                                              closed_by_inputs, closed_by_window,       closed_until_settled};
  for (const auto gate : kGates) {
    if (Gate closed = gate(g); !closed.open()) return closed;
  }
  return {};
}

}  // namespace

Gate gate_of(Pass& pass, const UnitKey& key, const Unit& unit) {
  return first_closed(gated(pass, key, unit));
}

Gate repair_gate_of(Pass& pass, const UnitKey& key, const Unit& unit) {
  Gated g = gated(pass, key, unit);
  g.repair = true;
  return first_closed(g);
}

std::optional<Stop> stop_of(Pass& pass, const UnitKey& key, const Unit& unit) {
  const Gated g = gated(pass, key, unit);
  constexpr Gate (*kStops[])(const Gated&) = {closed_by_people, closed_by_failures, closed_by_window};
  for (const auto gate : kStops) {
    if (Gate closed = gate(g); !closed.open()) return Stop{std::move(closed.reason), std::move(closed.message)};
  }
  return std::nullopt;
}

namespace {

// Who holds the slots of a budget: nodes that are out of service or in a change, of those that `counts`.
template <class Counts>
std::string holders(const Index& index, Counts counts) {
  std::set<std::string> names;
  for (const Bucket bucket : {Bucket::unavailable, Bucket::changing, Bucket::failed}) {
    for (const std::string& name : index.nodes_in(bucket)) {
      const NodeAssessment* a = index.find(name);
      if (counts(a)) names.insert(name);
    }
  }
  return first_names({names.begin(), names.end()});
}

std::string full_budget(std::string_view what, std::int64_t busy, std::int64_t taken, std::int64_t budget,
                        const std::string& names) {
  if (busy + taken + 1 <= budget) return {};
  std::string out = fmt::format("{}: {} of {} out of service or in flight", what, busy + taken, budget);
  if (!names.empty()) out += fmt::format(" ({}{})", names, taken > 0 ? fmt::format("; {} start now", taken) : "");
  return out;
}

}  // namespace

std::string exhausted_budget(const Pass& pass, const UnitKey& key, const Unit& unit, const std::string& product,
                             std::int64_t cluster_taken, std::int64_t policy_taken, std::int64_t group_taken) {
  const Index& index = pass.index;
  const RolloutSpec& rollout = index.policy(pass.s.world, key.policy).rollout;
  const Tally& policy = index.policies.at(key.policy);
  const Group& group = unit.groups.at(product);
  const std::int64_t cluster_budget = pass.s.settings.cluster_max_unavailable.of(index.cluster.total);
  if (index.cluster.busy + cluster_taken + 1 > cluster_budget) {
    return full_budget("cluster", index.cluster.busy, cluster_taken, cluster_budget,
                       holders(index, [](const NodeAssessment*) { return true; }));
  }
  const std::int64_t policy_budget = rollout.max_unavailable.of(policy.total);
  const auto of_policy = [&](const NodeAssessment* a) { return a != nullptr && a->policy == key.policy; };
  if (policy.busy + policy_taken + 1 > policy_budget) {
    return full_budget(fmt::format("policy {}", key.policy), policy.busy, policy_taken, policy_budget,
                       holders(index, of_policy));
  }
  const std::int64_t group_budget = rollout.max_unavailable_per_group.of(group.tally.total);
  const auto of_group = [&](const NodeAssessment* a) {
    return of_policy(a) && a->key == key.key && a->product == product && index.set_of(*a).id() == key.set;
  };
  if (group.tally.busy + group_taken + 1 <= group_budget) return {};
  return full_budget(fmt::format("group {}", product.empty() ? "of unknown product" : product), group.tally.busy,
                     group_taken, group_budget, holders(index, of_group));
}

}  // namespace gso
