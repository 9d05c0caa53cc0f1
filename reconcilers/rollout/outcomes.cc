#include "reconcilers/rollout/outcomes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "reconcilers/cluster/paused_config_maps.h"
#include "reconcilers/cluster/recorded_policies.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/store_order.h"
#include "reconcilers/rollout/baseline.h"
#include "reconcilers/rollout/failures.h"
#include "reconcilers/rollout/recorded_texts.h"
#include "reconcilers/rollout/recorded_timers.h"
#include "reconcilers/rollout/remediation.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/rollout/stops.h"

namespace gso {

namespace {

// The next record, copied at the first change, because it can hold thousands of nodes.
class Outcomes {
 public:
  explicit Outcomes(Pass& pass) : pass_(pass), loaded_(pass) {}

  void run() {
    find_verified();
    find_failures();
    inherit_failures();
    find_undone();
    forget_failures();
    end_retried();
    note_failing();
    note_canaries();
    note_stops();
    note_forgetting();
    note_devices();
    note_remediations();
    note_timers();
    note_texts();
    if (!next_) return;
    update_machines();
    write_record(pass_, *next_, reason_, message_);
  }

 private:
  FleetRecord& change(std::string_view reason, std::string message) {
    if (!next_) next_ = *pass_.index.record;
    reason_ = reason;
    message_ += (message_.empty() ? "" : "; ") + message;
    return *next_;
  }

  // The same for entries that are not outcomes: they are added to a write that is due anyway and use its reason.
  FleetRecord& note(std::string_view reason, std::string message) {
    const std::string_view due = reason_;
    FleetRecord& next = change(reason, std::move(message));
    if (!due.empty()) reason_ = due;
    return next;
  }

  // All nodes of the rollout have the same target, and every reachable node shows it. Blocked nodes and nodes that are
  // held or NotReady (a large fleet always has some) delay this only while they could be their group's canary.
  [[nodiscard]] static bool is_complete(const RolloutView& rollout) {
    const ProfileRollout& profile_rollout = rollout.profile_rollout;
    const std::string& target = rollout.target;
    const std::int64_t settled = profile_rollout.tally.settled;
    if (profile_rollout.targets.size() != 1 || settled == 0 || target.empty() || target == kInvalidRevision)
      return false;
    if (rollout.present_failures() > 0 || is_doubtful(rollout) || profile_rollout.tally.changing > 0) return false;
    // The labels of these nodes return shortly, and then the nodes could be canaries.
    if (profile_rollout.blocked.contains(std::string(kLabelsMissing))) return false;
    const auto set_aside = static_cast<std::int64_t>(profile_rollout.nodes(RolloutBucket::set_aside).size());
    // Nodes that were out of service before and failed again do not prevent the rollout from being complete (S12).
    const auto excused = std::ssize(rollout.failed());  // These nodes did not serve GPUs before their change.
    if (settled + profile_rollout.tally.blocked() + set_aside + excused != profile_rollout.tally.total) return false;
    return std::ranges::all_of(profile_rollout.groups, [&](const auto& entry) {
      // A group without a possible canary cannot show more.
      return !has_candidate(rollout, entry.first, Candidates::any) || rollout.canary_passed(entry.first);
    });
  }

  // A product has shown the revision of its rollout: in its own canary, or on every node. Nodes that joined with it or
  // loaded it by themselves prove nothing for the other nodes of their group (S12).
  [[nodiscard]] static bool has_shown(const RolloutView& rollout, const std::string& product, const Group& group) {
    if (group.tally.settled == 0 || group.tally.unproven > 0) return false;
    return group.tally.settled == group.tally.total || rollout.canary_passed(product);
  }

  static void add_products(const RolloutView& rollout, ShownKey& shown) {
    if (rollout.profile_rollout.targets.size() != 1 || rollout.target != shown.revision) return;
    for (const auto& [product, group] : rollout.profile_rollout.groups) {
      if (has_shown(rollout, product, group)) shown.products.insert(product);
    }
  }

  void find_verified() {
    std::map<std::string, ShownKey> keys;
    for (const auto& [key, profile_rollout] : pass_.index.profile_rollouts) {
      const RolloutView& rollout = rollout_of(pass_, key);
      const std::string& target = rollout.target;
      const bool complete = is_complete(rollout);
      if (complete) complete_.insert(key);
      const bool proven = profile_rollout.tally.unproven == 0;
      ShownKey& shown = keys.try_emplace(key.config_map + "/" + key.key, target).first->second;
      shown.by_all = shown.by_all && complete && shown.revision == target;
      shown.proven = shown.proven && proven;
      add_products(rollout, shown);
      if (complete && proven) note_good(key, target);
    }
    for (const auto& [id, key] : keys) note_shown(id, key);
  }

  void note_shown(const std::string& id, const ShownKey& key) {
    const FleetRecord& record = *pass_.index.record;
    if (is_at(record.verified, id, key.revision)) return note_products(id, key);
    if (!key.by_all) return;
    if (key.proven) {
      newly_verified_.insert({id, key.revision});
      change("Verified", "every node of a key shows its revision").note(id, key, text_of_key(pass_, id, key.revision));
    } else if (!record.verified.contains(id) && !is_at(record.previous, id, key.revision)) {
      change("Shown", "every node of a key shows its revision, with pods that may be older than its text")
          .note(id, key, text_of_key(pass_, id, key.revision));
    }
  }

  // Further products show a revision that is verified on others.
  void note_products(const std::string& id, const ShownKey& key) {
    const auto& verified_on = pass_.index.record->verified_on;
    const auto known = verified_on.find(id);
    const bool all_known =
        known == verified_on.end() ? key.products.empty() : std::ranges::includes(known->second, key.products);
    if (all_known) return;
    note("Verified", "nodes of another product show a verified revision")
        .verified_on[id]
        .insert(key.products.begin(), key.products.end());
  }

  [[nodiscard]] static bool is_at(const std::map<std::string, std::string>& revisions, const std::string& id,
                                  const std::string& revision) {
    const auto known = revisions.find(id);
    return known != revisions.end() && known->second == revision;
  }

  // The profile to which an inline profile can be rolled back.
  void note_good(const RolloutKey& key, const std::string& target) {
    const SharingPolicy& policy = pass_.index.policy(pass_.s.world, key.policy);
    if (!owns_key(policy, key)) return;
    FleetRecord::Good good{key.key, target, {}};
    auto known = pass_.index.record->good.find({key.policy, key.config_map});
    if (known != pass_.index.record->good.end()) {
      good.before = known->second.key == key.key ? known->second.before : known->second.key;
      if (known->second == good) return;
    }
    change("Verified", fmt::format("policy {} is at {}", key.policy, target)).good[{key.policy, key.config_map}] = good;
  }

  static void add_failure(FleetRecord& record, FleetRecord::Failure failure) {
    record.failures.push_back(std::move(failure));
    if (record.failures.size() > FleetRecord::kMostFailures) record.failures.erase(record.failures.begin());
  }

  void find_failures() {
    for (const auto& [key, profile_rollout] : pass_.index.profile_rollouts) {
      if (profile_rollout.nodes(RolloutBucket::failed).empty()) continue;
      const RolloutView& rollout = rollout_of(pass_, key);
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
      FleetRecord& next = change(back ? kRolledBack : kMaxFailures, fmt::format("{}: {}", target, why));
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
      FleetRecord& next = change(
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
          change(kUndone, fmt::format("{} of policy {} is rolled back", rollout->to_revision, key.policy));
      if (known != nullptr) std::erase(next.failures, *known);
      add_failure(next, {{key.policy, key.config_map, key.key, rollout->to_revision, retry, {}}, {}, true});
      pass_.event(rollout_ref(name), false, kUndone, "Rollback",
                  fmt::format("{} is rolled back: the nodes of policy {} return to the last verified profile",
                              rollout->to_revision, key.policy));
    }
  }

  void end_retried() {
    for (const FleetRecord::Failure& failure : retried_failures(pass_))
      std::erase(change("Retried", fmt::format("{} is tried again", failure.revision)).failures, failure);
  }

  // A failure ends when a machine that failed shows the revision after all, or when every node of its key does: the
  // machines that failed are gone. It is kept when its policy is deleted: if the policy is created again, it does not
  // try the revision again by itself. Nodes that failed on another revision do not delay this one.
  void forget_failures() {
    for (const FleetRecord::Failure& failure : pass_.index.record->failures) {
      if (failure.rolled_back || !has_recovered(failure)) continue;
      FleetRecord& next = change("Recovered", fmt::format("{} no longer counts as failed", failure.revision));
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
    const std::vector<RecordedFailures>& known = next_ ? next_->failing : pass_.index.record->failing;
    std::vector<RecordedFailures> failing = failing_machines(pass_, known, complete_);
    if (failing == known) return;
    note("FailuresRecorded", "the machines that failed on a revision").failing = std::move(failing);
  }

  void note_canaries() {
    std::vector<RecordedCanary> canaries = update_canaries(pass_);
    // The canaries of revisions that this pass has verified on their product are dropped by the same write.
    std::erase_if(canaries, [&](const RecordedCanary& canary) {
      return next_ && next_->has_shown(canary.config_map, canary.key, canary.revision, canary.product);
    });
    if (canaries == pass_.index.record->canaries) return;
    note("CanaryRecorded", "the canaries of rollouts and their progress").canaries = std::move(canaries);
  }

  // Specs of policies, and switches of rollouts, so that a stop stays in effect when its object is deleted.
  void note_stops() {
    const FleetRecord& record = *pass_.index.record;
    const PolicyUpdate update =
        update_policies(record, pass_.s.world, pass_.s.now, pass_.index.stored.forget_until(),
                        [&](const std::string& policy) { return pass_.index.policies.contains(policy); });
    if (update.policies != record.policies || update.crds_gone_since != record.crds_gone_since) {
      FleetRecord& next = note("PoliciesRecorded", update.forgotten ? "the stops of deleted policies are forgotten"
                                                                    : "the specs of policies changed");
      next.policies = update.policies;
      next.crds_gone_since = update.crds_gone_since;
    }
    if (update.grace_left) pass_.ages.look_again_in(*update.grace_left);
    for (const std::string& name : update.gone) report_gone_policy(pass_, name);
    if (update.crds_gone) report_gone_crds(pass_);
    std::vector<RecordedSwitches> rollouts = update_switches(pass_, update);
    if (rollouts != record.rollouts) {
      note("SwitchesRecorded", "the switches of rollouts changed").rollouts = std::move(rollouts);
    }
    auto paused = update_paused_config_maps(record, pass_.s.world, pass_.index.discovery.installations);
    if (paused != record.paused_config_maps)
      note("PausesRecorded", "the pauses of ConfigMaps changed").paused_config_maps = std::move(paused);
  }

  // When the annotation was first seen: it forgets no stop that comes later, even if its time lies in the future.
  void note_forgetting() {
    const std::string& text = pass_.index.stored.forget_text();
    const auto& known = pass_.index.record->forgetting;
    if (text.empty() ? !known : known && known->value == text) return;
    FleetRecord& next = note("ForgetPolicies", "up to when the stops of deleted policies are forgotten");
    next.forgetting.reset();
    if (text.empty()) return;
    next.forgetting = FleetRecord::Forgetting{text, std::chrono::floor<std::chrono::seconds>(pass_.s.now)};
  }

  // The number of GPUs of machines that joined or that have more GPUs than before: several machines in one write, once
  // for each.
  void note_devices() {
    constexpr std::size_t kEnough = 32;
    const std::set<std::string>& uncounted = pass_.index.nodes_in(Bucket::uncounted);
    if (uncounted.empty() ||
        (!pass_.index.nodes_in(Bucket::self_loaded).empty() && uncounted.size() < kEnough && !next_))
      return;
    FleetRecord& next = note("DevicesRecorded", fmt::format("counted the GPUs of {} node{}", uncounted.size(),
                                                            uncounted.size() == 1 ? "" : "s"));
    for (const std::string& name : uncounted) {
      const Node* node = pass_.s.world.nodes.find(name);
      if (node == nullptr) continue;
      const MachineId machine = machine_id(node->meta.uid.str());
      const MachineRecord* known = next.machines.find(machine);
      MachineRecord entry = known == nullptr ? MachineRecord() : *known;
      entry.devices = pass_.index.find(name)->counted_devices;
      next.machines.set(machine, entry);
    }
  }

  void note_remediations() {
    const std::vector<RecordedRemediation> due = due_remediations(pass_);
    if (due.empty()) return;
    FleetRecord next = next_ ? *next_ : *pass_.index.record;  // Its machines are shared, not copied.
    const auto added = std::ranges::count_if(due, [&](const auto& attempt) { return next.note_remediation(attempt); });
    if (added == 0) return;
    note("RemediationRecorded", fmt::format("{} stuck pod{} will be replaced", added, added == 1 ? "" : "s"))
        .remediations = std::move(next.remediations);
  }

  void note_timers() {
    auto timers = update_timers(pass_);
    if (timers)
      note("TimersRecorded", "how long nodes have drifted, or waited for DaemonSets").timers = *std::move(timers);
  }

  void note_texts() {
    if (!next_ && !waits_with_new_text(pass_)) return;
    auto history = present_history(pass_);
    if (history == pass_.index.record->history) return;
    note("TextsRecorded", "the texts that pods have read").history = std::move(history);
  }

  // Removes machines that no longer exist, and notes what the annotations of the others show as loaded. An older entry
  // does no harm while its annotation exists, so both happen only in the parts of the record that are written anyway,
  // and in all parts once a revision is verified.
  void update_machines() {
    std::set<std::size_t> written;
    for (std::size_t i = 0; i < MachineRecords::kShards; ++i) {
      const bool is_due = !newly_verified_.empty() || next_->machines.size() <= kMostInlined;
      if (is_due || !next_->machines.shares(i, pass_.index.record->machines)) written.insert(i);
    }
    if (written.empty()) return;
    std::vector<MachineId> present;
    present.reserve(pass_.s.world.nodes.size());
    for (const auto& [key, node] : pass_.s.world.nodes.all()) {
      const MachineId machine = machine_id(node->meta.uid.str());
      present.push_back(machine);
      if (written.contains(MachineRecords::shard_of(machine))) note_loaded(machine, node->meta.name);
    }
    std::ranges::sort(present);
    for (const std::size_t shard : written) forget_in(shard, present);
  }

  void note_loaded(MachineId machine, const std::string& name) {
    const NodeAssessment* a = pass_.index.find(name);
    if (a == nullptr) return;
    const MachineRecord* known = next_->machines.find(machine);
    MachineRecord entry = known == nullptr ? MachineRecord() : *known;
    loaded_.enter(*a, entry);
    next_->machines.set(machine, entry);
  }

  void forget_in(std::size_t shard, const std::vector<MachineId>& present) {
    std::vector<MachineId> gone;
    for (const auto& [machine, entry] : next_->machines.shard(shard)) {
      if (!std::ranges::binary_search(present, machine)) gone.push_back(machine);
    }
    for (const MachineId machine : gone) next_->machines.erase(machine);
  }

  Pass& pass_;
  LoadedEntries loaded_;
  std::optional<FleetRecord> next_;
  std::set<RolloutKey> complete_;                                 // Rollouts whose nodes all show the revision.
  std::set<std::pair<std::string, std::string>> newly_verified_;  // "namespace/configmap/key" and revision.
  std::string_view reason_;
  std::string message_;
};

}  // namespace

void plan_outcomes(Pass& pass) {
  if (!pass.index.record) return;
  // plan_baseline() writes the same record in this pass.
  const bool completes_baseline =
      !std::ranges::includes(pass.s.world.unsynced_namespaces, pass.index.record->without_baseline);
  if (!completes_baseline) Outcomes(pass).run();
}

}  // namespace gso
