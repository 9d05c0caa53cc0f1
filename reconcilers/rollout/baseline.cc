// The record: a baseline at first sight, and the last verified revision of each key afterwards.
#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/fleet/pass.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/rollout/gates.h"

namespace gso {

namespace {

void add_node(FleetRecord& record, const Pass& pass, const std::string& name, const NodeAssessment& a) {
  // What the node itself remembers counts more, and is newer.
  if (a.loaded.proof == Proof::annotation) return;
  const bool valid = a.profile && a.profile->valid;
  record.nodes[name] = {k8s::Interned(pass.index.set_of(a).id()), a.key,
                        valid ? a.target : k8s::Interned(kInvalidRevision)};
  const Node* node = pass.s.world.nodes.find(name);
  const std::int64_t gpus = node ? gpus_to_remember(*node, a) : 0;
  if (gpus > 0) record.gpus[name] = gpus;
  if (!a.matches && !(a.verified.surplus && gpus > 0)) record.preexisting_drift.insert(name);
  if (!a.fresh_pods) record.unproven.insert(name);
}

// The text behind "namespace/configmap/key", where it still has that revision; empty otherwise.
std::string text_of(Pass& pass, std::string_view id, std::string_view revision) {
  const std::size_t slash = id.rfind('/');
  const std::string_view map = id.substr(0, slash);
  const std::string key(id.substr(slash + 1));
  const ConfigMap* config_map = pass.s.world.configmaps.find(
      ObjectKey{std::string(map.substr(0, map.find('/'))), std::string(map.substr(map.find('/') + 1))});
  if (config_map == nullptr) return {};
  const auto text = config_map->data.find(key);
  const bool same =
      text != config_map->data.end() && text->second && pass.index.book.compile(*text->second)->revision == revision;
  // Or it has that revision only where the DaemonSets override what is wrong in it.
  const bool known =
      text != config_map->data.end() && text->second && pass.index.book.text_of(revision) == *text->second;
  return same || known ? *text->second : std::string();
}

std::string describe(const FleetRecord& record) {
  return fmt::format("{} nodes as they are, {} of them with drift, {} unproven", record.nodes.size(),
                     record.preexisting_drift.size(), record.unproven.size());
}

}  // namespace

void plan_baseline(Pass& pass) {
  if (pass.index.record || !pass.index.record_problem.empty() || pass.index.nodes_in(Bucket::unrecorded).empty())
    return;
  if (!pass.s.world.unsynced_namespaces.empty()) return;
  FleetRecord record;
  record.recorded_at = pass.s.now;
  // A key counts as verified when every node of it shows it.
  std::map<std::string, std::pair<std::string, bool>> keys;
  for (const std::string& name : pass.index.nodes_in(Bucket::unrecorded)) {
    const NodeAssessment& a = *pass.index.find(name);
    add_node(record, pass, name, a);
    const std::string id = fmt::format("{}/{}", pass.index.set_of(a).id(), a.key.view());
    auto [slot, added] = keys.try_emplace(id, std::string(a.target.view()), true);
    slot->second.second = slot->second.second && a.matches;
  }
  for (const auto& [id, state] : keys) {
    if (state.second) record.note_verified(id, state.first, text_of(pass, id, state.first));
  }
  const std::string message = describe(record);
  pass.add(write_state(pass.s, {{std::string(kRecordKey), print_record(record)}}), "Baseline",
           fmt::format("first sight: {}", message));
}

namespace {

// The next record, copied at the first change: it may hold thousands of nodes.
class Outcomes {
 public:
  explicit Outcomes(Pass& pass) : pass_(pass) {}

  void run() {
    find_verified();
    find_failures();
    find_undone();
    forget_failures();
    if (!next_) return;
    std::vector<std::string> gone;
    for (const auto& [name, entry] : next_->nodes) {
      if (pass_.s.world.nodes.find(name) == nullptr) gone.push_back(name);
    }
    for (const std::string& name : gone) next_->forget(name);
    pass_.add(write_state(pass_.s, {{std::string(kRecordKey), print_record(*next_)}}), reason_, message_);
  }

 private:
  FleetRecord& change(std::string_view reason, std::string message) {
    if (!next_) next_ = *pass_.index.record;
    reason_ = reason;
    message_ += (message_.empty() ? "" : "; ") + message;
    return *next_;
  }

  // Every node that can be is at the unit's one target and shows it. Blocked nodes, and those that nobody can have now
  // (in a large fleet there always are some), are waited for no longer than their group's canary.
  [[nodiscard]] bool is_complete(const UnitKey& key, const Unit& unit, const std::string& target) {
    const std::int64_t settled = unit.tally.settled;
    if (unit.targets.size() != 1 || settled == 0 || target.empty() || target == kInvalidRevision) return false;
    if (failures_of(pass_.index, unit, target) > 0 || unit.tally.of(Situation::in_flight) > 0) return false;
    const auto set_aside = static_cast<std::int64_t>(unit.nodes(UnitBucket::set_aside).size());
    // Nodes that were out of service before and failed again do not keep the others from being complete (S12).
    const auto excused = std::ssize(failed_on(pass_.index, unit, target)) - failures_of(pass_.index, unit, target);
    if (settled + unit.tally.blocked() + set_aside + excused != unit.tally.total) return false;
    const std::int64_t quota = pass_.index.policy(pass_.s.world, key.policy).rollout.canary_nodes_per_group;
    return std::ranges::all_of(unit.groups, [&](const auto& entry) {
      const auto& [product, group] = entry;
      // A group that has too few nodes left for a canary has shown all that it can.
      const bool whole = group.pending.empty() || group.tally.settled < std::min(quota, group.tally.total);
      return whole || canary_passed(pass_, key, unit, product, target);
    });
  }

  void find_verified() {
    std::map<std::string, std::pair<std::string, bool>> keys;
    for (const auto& [key, unit] : pass_.index.units) {
      const std::string target = unit_target(unit);
      const bool complete = is_complete(key, unit, target);
      auto [slot, added] = keys.try_emplace(key.set + "/" + key.key, target, complete);
      slot->second.second = slot->second.second && complete && slot->second.first == target;
      if (complete) note_good(key, target);
    }
    for (const auto& [id, state] : keys) {
      if (!state.second) continue;
      auto known = pass_.index.record->verified.find(id);
      if (known != pass_.index.record->verified.end() && known->second == state.first) continue;
      change("Verified", "every node of a key shows its revision")
          .note_verified(id, state.first, text_of(pass_, id, state.first));
    }
  }

  // What an inline profile can go back to.
  void note_good(const UnitKey& key, const std::string& target) {
    const SharingPolicy& policy = pass_.index.policy(pass_.s.world, key.policy);
    if (!policy.inline_profile || inline_profile_key(policy.meta.name, *policy.inline_profile) != key.key) return;
    FleetRecord::Good good{key.key, target, {}};
    auto known = pass_.index.record->good.find({key.policy, key.set});
    if (known != pass_.index.record->good.end()) {
      good.before = known->second.key == key.key ? known->second.before : known->second.key;
      if (known->second == good) return;
    }
    change("Verified", fmt::format("policy {} is at {}", key.policy, target)).good[{key.policy, key.set}] = good;
  }

  void find_failures() {
    for (const auto& [key, unit] : pass_.index.units) {
      if (unit.nodes(UnitBucket::failed).empty()) continue;
      const std::string target = unit_target(unit);
      const SharingPolicy& policy = pass_.index.policy(pass_.s.world, key.policy);
      if (pass_.s.settings.mode_of(policy) == PolicyMode::observe ||
          remembered_failure(pass_.index, key, policy, target) != nullptr)
        continue;
      // Every node has shown that profile: it is the pods' new template that fails. Another profile would help nobody,
      // and the next template is another try.
      const auto verified = pass_.index.record->verified.find(key.set + "/" + key.key);
      if (unit.tally.new_template > 0 && verified != pass_.index.record->verified.end() && verified->second == target)
        continue;
      const std::string why = too_many_failures(pass_, key, unit, target);
      if (why.empty()) continue;
      const bool owned =
          policy.inline_profile && inline_profile_key(policy.meta.name, *policy.inline_profile) == key.key;
      const bool back = owned && policy.rollout.on_failure == OnFailure::rollback;
      FleetRecord& next = change(back ? kRolledBack : kMaxFailures, fmt::format("{}: {}", target, why));
      next.failures.push_back({key.policy, key.set, key.key, target,
                               std::string(policy.meta.annotations.get(kRetryAnnotation).value_or("")),
                               failed_on(pass_.index, unit, target), back});
      if (next.failures.size() > FleetRecord::kMostFailures) next.failures.erase(next.failures.begin());
      if (!back) continue;
      const std::string note =
          fmt::format("{} of policy {}: {}; its nodes go back to what was verified before", target, key.policy, why);
      pass_.event(rollout_ref(rollout_name(key, target)), true, kRolledBack, "Rollback", note);
    }
  }

  // Inline profiles that a person took back: remembered like those that failed, on no node.
  void find_undone() {
    for (const auto& [name, rollout] : pass_.s.world.rollouts.all()) {
      if (rollout->meta.annotations.get(kUndoAnnotation) != "true") continue;
      const UnitKey key{rollout->policy, rollout->config_map, rollout->key};
      const SharingPolicy& policy = pass_.index.policy(pass_.s.world, key.policy);
      const bool owned = policy.meta.name == key.policy && policy.inline_profile &&
                         inline_profile_key(policy.meta.name, *policy.inline_profile) == key.key;
      if (!owned || pass_.s.settings.mode_of(policy) == PolicyMode::observe) continue;
      const std::string retry(policy.meta.annotations.get(kRetryAnnotation).value_or(""));
      const auto* known = remembered_failure(pass_.index, key, policy, rollout->to_revision);
      if (known != nullptr && known->rolled_back) continue;
      FleetRecord& next =
          change(kUndone, fmt::format("{} of policy {} is taken back", rollout->to_revision, key.policy));
      if (known != nullptr) std::erase(next.failures, *known);
      next.failures.push_back({key.policy, key.set, key.key, rollout->to_revision, retry, {}, true});
      if (next.failures.size() > FleetRecord::kMostFailures) next.failures.erase(next.failures.begin());
      pass_.event(rollout_ref(name.name), false, kUndone, "Rollback",
                  fmt::format("{} is taken back: the nodes of policy {} go to what was verified before",
                              rollout->to_revision, key.policy));
    }
  }

  // A failure is over when the nodes that failed show the revision after all, and void when its policy has gone. Who
  // failed on another revision waits for this one, and keeps nobody from it.
  void forget_failures() {
    for (const FleetRecord::Failure& failure : pass_.index.record->failures) {
      const bool orphaned = pass_.s.world.policies_served && pass_.s.world.policies.find(failure.policy) == nullptr &&
                            failure.policy != kDefaultPolicy;
      if (!orphaned && (failure.rolled_back || !has_recovered(failure))) continue;
      FleetRecord& next = change("Recovered", fmt::format("{} does not count as failed any more", failure.revision));
      std::erase(next.failures, failure);
    }
  }

  [[nodiscard]] bool has_recovered(const FleetRecord::Failure& failure) const {
    auto unit = pass_.index.units.find({failure.policy, failure.set, failure.key});
    if (unit == pass_.index.units.end() || failures_of(pass_.index, unit->second, failure.revision) > 0) return false;
    return std::ranges::any_of(failure.nodes, [&](const std::string& name) {
      const NodeAssessment* a = pass_.index.find(name);
      return a != nullptr && a->situation == Situation::current && a->matches && a->loaded.revision == failure.revision;
    });
  }

  Pass& pass_;
  std::optional<FleetRecord> next_;
  std::string_view reason_;
  std::string message_;
};

}  // namespace

void plan_outcomes(Pass& pass) {
  if (pass.index.record) Outcomes(pass).run();
}

}  // namespace gso
