
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/stops.h"

namespace gso {

std::set<std::string> failed_on(const Index& index, const ProfileRollout& profile_rollout, std::string_view target) {
  std::set<std::string> out;
  for (const std::string& name : profile_rollout.nodes(RolloutBucket::failed)) {
    const NodeAssessment* a = index.find(name);
    if (a != nullptr && a->phase == Phase::failed && a->change && a->change->to == target) out.insert(name);
  }
  return out;
}

bool is_counted(const NodeChange& change) {
  return change.served || change.self_loaded;
}

bool is_doubtful(const RolloutView& rollout) {
  const std::int64_t failed = std::ssize(rollout.failed());
  return failed > 0 && !rollout.verified && rollout.profile_rollout.tally.settled <= failed;
}

namespace {

std::int64_t count_failures(const Index& index, const std::set<std::string>& failed) {
  return std::ranges::count_if(failed, [&](const std::string& name) { return is_counted(*index.find(name)->change); });
}

bool is_of_other_template(const Index& index, const RolloutKey& key, const std::string& templates) {
  const auto rollout = index.profile_rollouts.find(key);
  return rollout != index.profile_rollouts.end() &&
         has_other_templates(index.discovery.installations[rollout->second.installation], templates);
}

// The record's entry for the present attempt; null: there is none.
const RecordedFailures* recorded_failures(const RolloutView& rollout) {
  const Index& index = rollout.pass.index;
  if (!index.record) return nullptr;
  const auto found = std::ranges::find_if(index.record->failing, [&](const RecordedFailures& entry) {
    return entry.revision == rollout.target && rollout_key_of(entry) == rollout.key &&
           !asks_again(entry.retry, retry_of(rollout.policy)) && !rollout.has_other_templates(entry.templates);
  });
  return found == index.record->failing.end() ? nullptr : &*found;
}

// Served nodes that failed before the canary of their group has passed.
std::set<std::string> failed_canaries(const RolloutView& rollout) {
  std::set<std::string> out;
  for (const std::string& name : rollout.failed()) {
    const NodeAssessment& a = *rollout.pass.index.find(name);
    if (a.change->served && !rollout.canary_passed(std::string(a.product.view()))) out.insert(name);
  }
  return out;
}

std::string names_in(const std::set<std::string>& names) {
  return first_names({names.begin(), names.end()});
}

// Of a failure whose nodes show another revision by now, or are gone.
std::string failed_before_text(const RolloutView& rollout, const FleetRecord::Failure& failure) {
  std::set<std::string> names;
  for (const auto& [name, machine] : failure.nodes) names.insert(name);
  return fmt::format(
      "{} failed before{} and is not retried until the profile changes. Retry: `gpu-sharing-operator rollout start {}`",
      rollout.target, names.empty() ? "" : " on " + names_in(names), rollout.key.policy);
}

}  // namespace

std::string failures_that_stop(const RolloutView& rollout) {
  const auto* known = remembered_failure(rollout.pass, rollout.key, rollout.policy, rollout.target);
  std::set<std::string> names;
  const std::map<MachineId, std::string> machines = counted_failures(rollout);
  for (const auto& [machine, name] : machines) names.insert(name);
  const std::int64_t failures = std::ssize(machines);
  const std::int64_t present = rollout.present_failures();
  if (failures == 0 && known == nullptr) return {};
  if (present == 0 && known != nullptr) return failed_before_text(rollout, *known);
  // A failed node keeps its slot: when failed nodes hold all slots, no other node can start.
  const RolloutSpec& spec = rollout.policy.rollout;
  const std::int64_t slots =
      std::max<std::int64_t>(1, spec.max_unavailable.of(rollout.pass.index.policies.at(rollout.key.policy).total));
  const bool full = present >= slots;
  const std::set<std::string> canaries = failed_canaries(rollout);
  // Only groups count that have a node which could be a canary now.
  const bool some_left = std::ranges::any_of(rollout.profile_rollout.groups, [&](const auto& group) {
    return has_candidate(rollout, group.first, CanaryNodes::free) && !rollout.canary_passed(group.first);
  });
  const bool canary = !canaries.empty() || some_left;
  if (!canary && !full && failures < spec.max_failures && known == nullptr) return {};
  std::string where;
  if (!canaries.empty()) {
    const bool all = std::ranges::includes(canaries, names);
    where = all ? " in the canary" : fmt::format(", {} in the canary", names_in(canaries));
  } else if (canary) {
    where = " before every group's canary has passed";
  } else if (full && failures < spec.max_failures) {
    where = ", so no slot is free";
  }
  return fmt::format("{}{} failed{}", counted(failures, "node"),
                     names.empty() ? "" : fmt::format(" ({})", names_in(names)), where);
}

std::set<std::string> failed_on_target(const RolloutView& rollout) {
  return failed_on(rollout.pass.index, rollout.profile_rollout, rollout.target);
}

std::int64_t RolloutView::present_failures() const {
  return count_failures(pass.index, failed());
}

std::map<MachineId, std::string> counted_failures(const RolloutView& rollout) {
  const Pass& pass = rollout.pass;
  std::map<MachineId, std::string> out;
  for (const std::string& name : rollout.failed()) {
    const Node* node = pass.s.world.nodes.find(name);
    if (node != nullptr && is_counted(*pass.index.find(name)->change))
      out.emplace(machine_id(node->meta.uid.str()), name);
  }
  const auto* earlier = recorded_failures(rollout);
  if (earlier != nullptr) out.insert(earlier->machines.begin(), earlier->machines.end());
  out.merge(vanished_canaries(rollout));
  return out;
}

std::string failed_nodes_text(const RolloutView& rollout) {
  std::set<std::string> failed = rollout.failed();
  for (const auto& [machine, name] : counted_failures(rollout)) failed.insert(name);
  return fmt::format("nodes failed to verify: {} (retry: `gpu-sharing-operator rollout start {}`)", names_in(failed),
                     rollout.key.policy);
}

namespace {

// The attempts were at the same text, under whatever policy.
bool is_same_text(const RecordedAttempt& a, const RecordedAttempt& b) {
  return a.config_map == b.config_map && a.key == b.key && a.revision == b.revision;
}

// The failure under a policy that is deleted by now and governs nothing. It counts until this policy has a failure of
// its own for the revision, which inherit_failures() records from this one, or the revision was verified after all.
const FleetRecord::Failure* inherited_failure(const Pass& pass, const RolloutKey& key, std::string_view target) {
  const FleetRecord& record = *pass.index.record;
  if (record.last_verified(key.config_map, key.key) == target) return nullptr;
  const FleetRecord::Failure* inherited = nullptr;
  for (const FleetRecord::Failure& failure : record.failures) {
    const bool same = failure.config_map == key.config_map && failure.key == key.key && failure.revision == target;
    if (!same || failure.rolled_back) continue;
    if (failure.policy == key.policy) return nullptr;
    const bool of_deleted_policy = !is_known_policy(pass, failure.policy);
    if (of_deleted_policy && !is_of_other_template(pass.index, key, failure.templates)) inherited = &failure;
  }
  return inherited;
}

}  // namespace

const FleetRecord::Failure* remembered_failure(const Pass& pass, const RolloutKey& key, const SharingPolicy& policy,
                                               std::string_view target) {
  const Index& index = pass.index;
  if (!index.record) return nullptr;
  const auto* known = index.record->failure(key.policy, key.config_map, key.key, target, retry_of(policy));
  if (known == nullptr) return inherited_failure(pass, key, target);
  return !known->rolled_back && is_of_other_template(index, key, known->templates) ? nullptr : known;
}

namespace {

// The machine is that node, and shows the revision.
bool shows_revision(const Pass& pass, const std::string& name, MachineId machine, std::string_view revision) {
  const NodeAssessment* a = pass.index.find(name);
  return is_same_machine(pass, name, machine) && a != nullptr && a->phase == Phase::up_to_date && a->matches() &&
         a->loaded.revision == revision;
}

class FailureRecords {
 public:
  FailureRecords(Pass& pass, NextRecord& next, const std::set<RolloutKey>& complete)
      : pass_(pass), next_(next), complete_(complete) {}

  void run() {
    find_failures();
    inherit_failures();
    find_undone();
    forget_failures();
    end_retried();
    note_failing();
  }

 private:
  [[nodiscard]] const SharingPolicy& policy_of(const RecordedAttempt& attempt) const {
    return pass_.index.policy(pass_.s.world, attempt.policy);
  }
  [[nodiscard]] bool observes(const SharingPolicy& policy) const {
    return pass_.s.settings.mode_of(policy) == PolicyMode::observe;
  }
  [[nodiscard]] MachineId machine_of(const std::string& node) const {
    return machine_id(pass_.s.world.nodes.find(node)->meta.uid.str());
  }
  // A person has asked for another one.
  [[nodiscard]] bool is_retried(const RecordedAttempt& attempt) const {
    return is_known_policy(pass_, attempt.policy) && asks_again(attempt.retry, retry_of(policy_of(attempt)));
  }
  [[nodiscard]] static RecordedAttempt attempt_at(const RolloutView& rollout) {
    const RolloutKey& key = rollout.key;
    return {key.policy,       key.config_map, key.key, rollout.target, std::string(retry_of(rollout.policy)),
            rollout.templates};
  }

  // The failure keeps a revision from being tried that a policy wants, or that nodes have to run.
  [[nodiscard]] bool is_in_force(const FleetRecord::Failure& failure) const {
    const bool known = is_known_policy(pass_, failure.policy);
    if (is_retried(failure)) return false;
    if (known && owns_key(policy_of(failure), rollout_key_of(failure))) return true;
    return std::ranges::any_of(pass_.index.profile_rollouts, [&](const auto& entry) {
      const auto& [key, rollout] = entry;
      return (!known || key.policy == failure.policy) && key.config_map == failure.config_map &&
             key.key == failure.key && rollout.targets.contains(failure.revision);
    });
  }

  // A failure that is in force stays, however many there are.
  void add_failure(FleetRecord& record, FleetRecord::Failure failure) const {
    std::vector<FleetRecord::Failure>& all = record.failures;
    all.push_back(std::move(failure));
    if (all.size() <= FleetRecord::kMostFailures) return;
    const auto oldest =
        std::find_if(all.begin(), all.end() - 1, [this](const auto& known) { return !is_in_force(known); });
    if (oldest != all.end() - 1) all.erase(oldest);
  }

  void find_failures() {
    for (const auto& [key, profile_rollout] : pass_.index.profile_rollouts) {
      const RolloutView& rollout = rollout_of(pass_, key);
      if (rollout.failed().empty() && counted_failures(rollout).empty()) continue;
      const std::string& target = rollout.target;
      const SharingPolicy& policy = rollout.policy;
      if (observes(policy) || remembered_failure(pass_, key, policy, target) != nullptr) continue;
      // Every node has shown that profile, so the cause is the pods' new template. Another profile would not help, and
      // the next template is a new attempt.
      if (profile_rollout.tally.new_template > 0 && !target.empty() &&
          pass_.index.record->last_verified(key.config_map, key.key) == target)
        continue;
      const std::string& why = rollout.too_many_failures();
      if (why.empty()) continue;
      const bool back = owns_key(policy, key) && policy.rollout.on_failure == OnFailure::rollback;
      FleetRecord& next = next_.change(back ? kRolledBack : kMaxFailures, fmt::format("{}: {}", target, why));
      const RecordedAttempt attempt = attempt_at(rollout);
      std::erase_if(next.failures, [&](const FleetRecord::Failure& earlier) {  // With other templates.
        return !earlier.rolled_back && earlier.policy == key.policy && is_same_text(earlier, attempt) &&
               earlier.retry == attempt.retry;
      });
      // What the failed nodes were, so that a new machine of the same name does not count as recovered.
      std::map<std::string, MachineId> machines;
      for (const std::string& name : rollout.failed()) machines[name] = machine_of(name);
      for (const auto& [machine, name] : counted_failures(rollout)) machines.try_emplace(name, machine);
      add_failure(next, {attempt, std::move(machines), back});
      if (!back) continue;
      const std::string note =
          fmt::format("{} of policy {}: {}; its nodes return to the last verified profile", target, key.policy, why);
      pass_.event(rollout_ref(rollout_name(key, target)), true, kRolledBack, "Rollback", note);
    }
  }

  // The policy that governs the nodes of a deleted policy takes over its failures, so that its own retry ends them.
  void inherit_failures() {
    for (const auto& [key, profile_rollout] : pass_.index.profile_rollouts) {
      const std::string target = target_of(profile_rollout);
      const SharingPolicy& policy = pass_.index.policy(pass_.s.world, key.policy);
      const auto* known = target.empty() ? nullptr : remembered_failure(pass_, key, policy, target);
      if (known == nullptr || known->policy == key.policy || observes(policy)) continue;
      FleetRecord& next = next_.change(
          kMaxFailures, fmt::format("{} failed under policy {}, which is deleted", known->revision, known->policy));
      FleetRecord::Failure inherited = *known;
      inherited.policy = key.policy;
      inherited.retry = retry_of(policy);
      add_failure(next, std::move(inherited));
    }
  }

  // Inline profiles that a person rolled back: recorded like those that failed, with no node.
  void find_undone() {
    for (const SharingRollout* rollout : in_order(pass_.s.world.rollouts)) {
      if (!is_undone(*rollout)) continue;
      const RolloutKey key = rollout_key_of(*rollout);
      const SharingPolicy& policy = pass_.index.policy(pass_.s.world, key.policy);
      if (!owns_key(policy, key) || observes(policy) || gso::is_retried(*rollout, policy)) continue;
      const auto* known = remembered_failure(pass_, key, policy, rollout->to_revision);
      if (known != nullptr && known->rolled_back) continue;
      FleetRecord& next =
          next_.change(kUndone, fmt::format("{} of policy {} is rolled back", rollout->to_revision, key.policy));
      if (known != nullptr) std::erase(next.failures, *known);
      const std::string retry(retry_of(policy));
      add_failure(next, {{key.policy, key.config_map, key.key, rollout->to_revision, retry, {}}, {}, true});
      pass_.event(rollout_ref(rollout->meta.name), false, kUndone, "Rollback",
                  fmt::format("{} is rolled back: the nodes of policy {} return to the last verified profile",
                              rollout->to_revision, key.policy));
    }
  }

  // A failure ends when a machine that failed shows the revision after all, or when every node of its key does: the
  // machines that failed are gone. It is kept when its policy is deleted: if the policy is created again, it does not
  // try the revision again by itself. Nodes that failed on another revision do not delay this one.
  void forget_failures() {
    for (const FleetRecord::Failure& failure : pass_.index.record->failures) {
      if (failure.rolled_back || !has_recovered(failure)) continue;
      FleetRecord& next = next_.change("Recovered", fmt::format("{} no longer counts as failed", failure.revision));
      std::erase(next.failures, failure);
      std::erase_if(next.failing, [&](const RecordedFailures& entry) {
        return entry.policy == failure.policy && is_same_text(entry, failure);
      });
    }
  }

  [[nodiscard]] bool has_recovered(const FleetRecord::Failure& failure) const {
    const RolloutKey key = rollout_key_of(failure);
    const auto nodes = pass_.index.profile_rollouts.find(key);
    if (nodes == pass_.index.profile_rollouts.end()) return false;
    if (count_failures(pass_.index, failed_on(pass_.index, nodes->second, failure.revision)) > 0) return false;
    if (complete_.contains(key) && target_of(nodes->second) == failure.revision) return true;
    return std::ranges::any_of(failure.nodes, [&](const auto& node) {
      return shows_revision(pass_, node.first, node.second, failure.revision);
    });
  }

  // Those that end because a person asked for another attempt, and those of deleted policies for the same text. They
  // end for good: a tool that applies the policy from files can remove the annotation that asked.
  void end_retried() {
    const std::vector<FleetRecord::Failure>& all = pass_.index.record->failures;
    for (const FleetRecord::Failure& failure : all) {
      const bool ends = is_known_policy(pass_, failure.policy)
                            ? is_retried(failure)
                            : std::ranges::any_of(all, [&](const FleetRecord::Failure& other) {
                                return is_same_text(other, failure) && is_retried(other);
                              });
      if (ends)
        std::erase(next_.change("Retried", fmt::format("{} is tried again", failure.revision)).failures, failure);
    }
  }

  // Each failure is written as soon as it is seen, because its node can leave the policy before there are too many. An
  // entry loses machines that show the revision after all, and goes with its attempt.
  void note_failing() {
    const std::vector<RecordedFailures>& known = next_.present().failing;
    std::vector<RecordedFailures> failing;
    std::size_t room = FleetRecord::kMostFailing;
    for (RecordedFailures entry : known) {
      if (has_ended(entry)) continue;
      std::erase_if(entry.machines, [&](const auto& failed) {
        return shows_revision(pass_, failed.second, failed.first, entry.revision);
      });
      room -= std::min(room, entry.machines.size());
      if (!entry.machines.empty()) failing.push_back(std::move(entry));
    }
    for (const auto& [key, nodes] : pass_.index.profile_rollouts) {
      const RolloutView& rollout = rollout_of(pass_, key);
      if (!nodes.nodes(RolloutBucket::failed).empty() || !vanished_canaries(rollout).empty())
        add_failing(rollout, room, failing);
    }
    // Those of rollouts that have no node now are forgotten first, and no others.
    while (failing.size() > FleetRecord::kMostFailures) {
      const auto without_nodes = std::ranges::find_if(failing, [&](const RecordedFailures& entry) {
        return !pass_.index.profile_rollouts.contains(rollout_key_of(entry));
      });
      if (without_nodes == failing.end()) break;
      failing.erase(without_nodes);
    }
    if (failing == known) return;
    next_.note("FailuresRecorded", "the machines that failed on a revision").failing = std::move(failing);
  }

  // Another revision or a retry has replaced the attempt, or every node shows the revision.
  [[nodiscard]] bool has_ended(const RecordedFailures& entry) const {
    if (is_retried(entry)) return true;
    const RolloutView* rollout = find_rollout(pass_, rollout_key_of(entry));
    if (rollout == nullptr) return false;  // Its nodes might return.
    const bool replaced = !rollout->target.empty() && rollout->target != entry.revision;
    return replaced || rollout->has_other_templates(entry.templates) || complete_.contains(rollout->key);
  }

  // Adds the nodes that began their change under this policy. One that has come from another policy is counted there.
  void add_failing(const RolloutView& rollout, std::size_t& room, std::vector<RecordedFailures>& failing) const {
    if (observes(rollout.policy)) return;
    const auto known = std::ranges::find_if(
        failing, [&](const RecordedFailures& entry) { return rollout_key_of(entry) == rollout.key; });
    RecordedFailures added{attempt_at(rollout), {}};
    RecordedFailures& entry = known == failing.end() ? added : *known;
    const auto add = [&](MachineId machine, const std::string& name) {
      if (room > 0 && entry.machines.try_emplace(machine, name).second) --room;
    };
    for (const std::string& name : rollout.failed()) {
      const NodeChange& change = *pass_.index.find(name)->change;
      if (change.policy == rollout.key.policy && is_counted(change)) add(machine_of(name), name);
    }
    for (const auto& [machine, name] : vanished_canaries(rollout)) add(machine, name);
    if (known == failing.end() && !added.machines.empty()) failing.push_back(std::move(added));
  }

  Pass& pass_;
  NextRecord& next_;
  const std::set<RolloutKey>& complete_;
};

}  // namespace

void record_failures(Pass& pass, NextRecord& next, const std::set<RolloutKey>& complete) {
  FailureRecords(pass, next, complete).run();
}

}  // namespace gso
