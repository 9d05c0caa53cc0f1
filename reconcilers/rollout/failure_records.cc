#include "reconcilers/rollout/failure_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/store_order.h"
#include "reconcilers/rollout/failures.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

namespace {

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
  // A failure that is in force stays, however many there are.
  void add_failure(FleetRecord& record, FleetRecord::Failure failure) const {
    std::vector<FleetRecord::Failure>& all = record.failures;
    all.push_back(std::move(failure));
    if (all.size() <= FleetRecord::kMostFailures) return;
    const auto oldest =
        std::find_if(all.begin(), all.end() - 1, [this](const auto& known) { return !is_in_force(pass_, known); });
    if (oldest != all.end() - 1) all.erase(oldest);
  }

  void find_failures() {
    for (const auto& [key, profile_rollout] : pass_.index.profile_rollouts) {
      const RolloutView& rollout = rollout_of(pass_, key);
      if (rollout.failed().empty() && counted_failures(rollout).empty()) continue;
      const std::string& target = rollout.target;
      const SharingPolicy& policy = rollout.policy;
      if (pass_.s.settings.mode_of(policy) == PolicyMode::observe ||
          remembered_failure(pass_, key, policy, target) != nullptr)
        continue;
      // Every node has shown that profile, so the cause is the pods' new template. Another profile would not help, and
      // the next template is a new attempt.
      if (profile_rollout.tally.new_template > 0 && !target.empty() &&
          pass_.index.record->last_verified(key.config_map, key.key) == target)
        continue;
      const std::string& why = rollout.too_many_failures();
      if (why.empty()) continue;
      const bool back = owns_key(policy, key) && policy.rollout.on_failure == OnFailure::rollback;
      FleetRecord& next = next_.change(back ? kRolledBack : kMaxFailures, fmt::format("{}: {}", target, why));
      std::erase_if(next.failures, [&](const FleetRecord::Failure& earlier) {  // With other templates.
        return !earlier.rolled_back && earlier.policy == key.policy && earlier.config_map == key.config_map &&
               earlier.key == key.key && earlier.revision == target && earlier.retry == retry_of(policy);
      });
      add_failure(next, {attempt_at(rollout), machines_of(rollout), back});
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
      if (known == nullptr || known->policy == key.policy) continue;
      if (pass_.s.settings.mode_of(policy) == PolicyMode::observe) continue;
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
      const std::string& name = rollout->meta.name;
      if (!is_undone(*rollout)) continue;
      const RolloutKey key{rollout->policy, rollout->config_map, rollout->key};
      const SharingPolicy& policy = pass_.index.policy(pass_.s.world, key.policy);
      if (!owns_key(policy, key) || pass_.s.settings.mode_of(policy) == PolicyMode::observe) continue;
      const std::string retry(retry_of(policy));
      const auto* known = remembered_failure(pass_, key, policy, rollout->to_revision);
      if (known != nullptr && known->rolled_back) continue;
      FleetRecord& next =
          next_.change(kUndone, fmt::format("{} of policy {} is rolled back", rollout->to_revision, key.policy));
      if (known != nullptr) std::erase(next.failures, *known);
      add_failure(next, {{key.policy, key.config_map, key.key, rollout->to_revision, retry, {}}, {}, true});
      pass_.event(rollout_ref(name), false, kUndone, "Rollback",
                  fmt::format("{} is rolled back: the nodes of policy {} return to the last verified profile",
                              rollout->to_revision, key.policy));
    }
  }

  void end_retried() {
    for (const FleetRecord::Failure& failure : retried_failures(pass_))
      std::erase(next_.change("Retried", fmt::format("{} is tried again", failure.revision)).failures, failure);
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
        return entry.policy == failure.policy && entry.config_map == failure.config_map && entry.key == failure.key &&
               entry.revision == failure.revision;
      });
    }
  }

  [[nodiscard]] bool has_recovered(const FleetRecord::Failure& failure) const {
    auto profile_rollout = pass_.index.profile_rollouts.find({failure.policy, failure.config_map, failure.key});
    if (profile_rollout == pass_.index.profile_rollouts.end() ||
        failures_of(pass_.index, profile_rollout->second, failure.revision) > 0)
      return false;
    if (complete_.contains(profile_rollout->first) && target_of(profile_rollout->second) == failure.revision)
      return true;
    return std::ranges::any_of(failure.nodes, [&](const auto& node) {
      return shows_revision(pass_, node.first, node.second, failure.revision);
    });
  }

  // What the failed nodes were, so that a new machine of the same name does not count as recovered.
  [[nodiscard]] std::map<std::string, MachineId> machines_of(const RolloutView& rollout) const {
    std::map<std::string, MachineId> out;
    for (const std::string& name : rollout.failed())
      out[name] = machine_id(pass_.s.world.nodes.find(name)->meta.uid.str());
    for (const auto& [machine, name] : counted_failures(rollout)) out.try_emplace(name, machine);
    return out;
  }

  // Each failure is written as soon as it is seen, because its node can leave the policy before there are too many.
  void note_failing() {
    const std::vector<RecordedFailures>& known = next_.present().failing;
    std::vector<RecordedFailures> failing = failing_machines(pass_, known, complete_);
    if (failing == known) return;
    next_.note("FailuresRecorded", "the machines that failed on a revision").failing = std::move(failing);
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
