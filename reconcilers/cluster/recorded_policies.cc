#include "reconcilers/cluster/recorded_policies.h"

#include <algorithm>
#include <functional>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/store_order.h"

namespace gso {

namespace {

bool is_forgotten(const std::optional<WallTime>& gone_since, const std::optional<WallTime>& forget_until) {
  return gone_since && forget_until && *gone_since <= *forget_until;
}

// A rollout of the policy was paused, aborted or undone: without the policy another policy would start the same text.
bool has_stopped_rollout(const FleetRecord& record, const std::string& policy) {
  return std::ranges::any_of(record.rollouts, [&](const RecordedSwitches& rollout) {
    return rollout.policy == policy && !rollout.left && (rollout.paused || rollout.aborted || rollout.undone);
  });
}

// Without the CRDs, or while they are being deleted: `default` always exists otherwise, because the operator creates
// it.
bool without_objects(const World& world) {
  return !world.policies_served || world.policies.all().empty();
}

// Policies in the record that still exist: they were created before policy `name` was deleted.
std::vector<std::string> uids_beside(const FleetRecord& record, const World& world, const std::string& name) {
  std::vector<std::string> out;
  for (const auto& [other, recorded] : record.policies) {
    const SharingPolicy* live = world.policies.find(other);
    if (other != name && live != nullptr && live->meta.uid == recorded.policy.meta.uid)
      out.push_back(live->meta.uid.str());
  }
  std::ranges::sort(out);
  return out;
}

SharingPolicy holding(const FleetRecord& record, const World& world, const RecordedPolicy& recorded,
                      const SharingPolicy& spec) {
  SharingPolicy out = recorded_spec(spec);
  out.gone = SharingPolicy::Gone{recorded.gone_since ? recorded.beside : uids_beside(record, world, spec.meta.name)};
  return out;
}

}  // namespace

bool has_recorded_stop(const FleetRecord& record, const SharingPolicy& policy) {
  return has_stop(policy) || has_stopped_rollout(record, policy.meta.name);
}

std::map<std::string, SharingPolicy> policies_that_hold(const FleetRecord& record, const World& world,
                                                        const std::optional<WallTime>& forget_until) {
  std::map<std::string, SharingPolicy> out;
  const bool all = without_objects(world) && !is_forgotten(record.crds_gone_since, forget_until);
  for (const auto& [name, recorded] : record.policies) {
    const SharingPolicy* live = world.policies.find(name);
    if (live != nullptr && !live->meta.deletion_timestamp) continue;
    const SharingPolicy& spec = live != nullptr ? *live : recorded.policy;
    const bool forgotten = is_forgotten(recorded.gone_since, forget_until);
    if (live == nullptr && all && !has_recorded_stop(record, spec)) {
      out.emplace(name, recorded.policy);
    } else if (live == nullptr && recorded.gone_since && !forgotten) {
      out.emplace(name, holding(record, world, recorded, spec));
    } else if (live == nullptr && (all || (name == kDefaultPolicy && world.policies_served))) {
      out.emplace(name, recorded.policy);
    } else if (world.policies_served && !forgotten && (live == nullptr || has_recorded_stop(record, spec))) {
      // One without a stop governs until update_policies() drops it from the record.
      out.emplace(name, holding(record, world, recorded, spec));
    }
  }
  return out;
}

namespace {

// A policy that was created after this one was deleted, and that can govern its nodes instead.
bool has_successor(const RecordedPolicy& gone, const World& world) {
  return std::ranges::any_of(world.policies.all(), [&](const auto& entry) {
    const SharingPolicy& other = *entry.second;
    return !other.meta.deletion_timestamp && other.priority >= gone.policy.priority &&
           std::ranges::find(gone.beside, other.meta.uid.str()) == gone.beside.end();
  });
}

// Specs beyond the size limit are left out, except those with a stop.
void keep_bounded(const FleetRecord& record, std::map<std::string, RecordedPolicy>& policies) {
  std::size_t size = 0;
  for (const auto& [name, recorded] : policies) size += recorded.policy.spec_json.size();
  for (auto it = policies.begin(); it != policies.end() && size > FleetRecord::kMaxPolicies;) {
    const bool kept = it->first == kDefaultPolicy || has_recorded_stop(record, it->second.policy);
    size -= kept ? 0 : it->second.policy.spec_json.size();
    it = kept ? std::next(it) : policies.erase(it);
  }
}

}  // namespace

PolicyUpdate update_policies(const FleetRecord& record, const World& world, Ages& ages,
                             const std::optional<WallTime>& forget_until,
                             const std::function<bool(const std::string&)>& governs) {
  PolicyUpdate out;
  const WallTime second = std::chrono::floor<std::chrono::seconds>(ages.now());
  if (!world.policies_served && is_forgotten(record.crds_gone_since, forget_until)) {
    out.forgotten = true;
    return out;
  }
  const auto keep_gone = [&](const std::string& name, const RecordedPolicy& recorded, const SharingPolicy& spec) {
    RecordedPolicy kept{recorded_spec(spec), recorded.gone_since, recorded.beside};
    if (!kept.gone_since) {
      kept.gone_since = second;
      kept.beside = uids_beside(record, world, name);
      if (has_recorded_stop(record, spec)) out.gone.push_back(name);
    }
    out.policies.emplace(name, std::move(kept));
  };
  const auto keep_for_grace = [&](const std::string& name, const RecordedPolicy& recorded) {
    const WallTime since = recorded.gone_since.value_or(second);
    const Duration left = kDeletionGrace - (ages.now() - ages.stored(stored_time(name, "deletion", since), since));
    if (left <= Duration::zero()) return;
    out.grace_left = std::min(out.grace_left.value_or(left), left);
    keep_gone(name, recorded, recorded.policy);
  };
  for (const SharingPolicy* policy : in_order(world.policies)) {
    const std::string& name = policy->meta.name;
    const auto known = record.policies.find(name);
    const bool reverts = policy->meta.deletion_timestamp && policy->deletion_policy == DeletionPolicy::revert;
    if (reverts && !has_recorded_stop(record, *policy)) continue;
    const bool ends = policy->meta.deletion_timestamp && known != record.policies.end();
    if (!ends) {
      out.policies.emplace(name, RecordedPolicy{recorded_spec(*policy), std::nullopt, {}});
    } else if (is_forgotten(known->second.gone_since, forget_until)) {
      out.forgotten = true;
      out.policies.emplace(name, known->second);
    } else if (has_recorded_stop(record, *policy)) {
      keep_gone(name, known->second, *policy);
    } else {
      out.policies.emplace(name, RecordedPolicy{recorded_spec(*policy), std::nullopt, {}});
    }
  }
  for (const auto& [name, recorded] : record.policies) {
    if (world.policies.find(name) != nullptr) continue;
    if (is_forgotten(recorded.gone_since, forget_until)) {
      out.forgotten = true;
    } else if (without_objects(world) || (name == kDefaultPolicy && !recorded.gone_since)) {
      out.policies.emplace(name, recorded);
    } else if (has_recorded_stop(record, recorded.policy)) {
      const bool lifted = recorded.gone_since && has_successor(recorded, world) && !governs(name);
      if (!lifted) keep_gone(name, recorded, recorded.policy);
    } else {
      keep_for_grace(name, recorded);
    }
  }
  if (!world.policies_served && !out.policies.empty()) {
    out.crds_gone = !record.crds_gone_since;
    out.crds_gone_since = record.crds_gone_since.value_or(second);
  }
  keep_bounded(record, out.policies);
  return out;
}

}  // namespace gso
