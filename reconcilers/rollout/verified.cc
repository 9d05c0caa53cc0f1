#include "reconcilers/rollout/verified.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "reconcilers/model/labels.h"
#include "reconcilers/rollout/baseline.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/failures.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

namespace {

class VerifiedRevisions {
 public:
  VerifiedRevisions(Pass& pass, NextRecord& next) : pass_(pass), next_(next) {}

  Verified run() {
    std::map<std::string, ShownKey> keys;
    for (const auto& [key, profile_rollout] : pass_.index.profile_rollouts) {
      const RolloutView& rollout = rollout_of(pass_, key);
      const std::string& target = rollout.target;
      const bool complete = is_complete(rollout);
      if (complete) verified_.complete.insert(key);
      const bool proven = profile_rollout.tally.unproven == 0;
      ShownKey& shown = keys.try_emplace(key.config_map + "/" + key.key, target).first->second;
      shown.by_all = shown.by_all && complete && shown.revision == target;
      shown.proven = shown.proven && proven;
      add_products(rollout, shown);
      if (complete && proven) note_good(key, target);
    }
    for (const auto& [id, key] : keys) note_shown(id, key);
    return std::move(verified_);
  }

 private:
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
      return !has_candidate(rollout, entry.first, CanaryNodes::any) || rollout.canary_passed(entry.first);
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

  void note_shown(const std::string& id, const ShownKey& key) {
    const FleetRecord& record = *pass_.index.record;
    if (is_at(record.verified, id, key.revision)) return note_products(id, key);
    if (!key.by_all) return;
    if (key.proven) {
      verified_.newly = true;
      next_.change("Verified", "every node of a key shows its revision")
          .note(id, key, text_of_key(pass_, id, key.revision));
    } else if (!record.verified.contains(id) && !is_at(record.previous, id, key.revision)) {
      next_.change("Shown", "every node of a key shows its revision, with pods that might be older than its text")
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
    next_.note("Verified", "nodes of another product show a verified revision")
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
    next_.change("Verified", fmt::format("policy {} is at {}", key.policy, target)).good[{key.policy, key.config_map}] =
        good;
  }

  Pass& pass_;
  NextRecord& next_;
  Verified verified_;
};

}  // namespace

Verified record_verified(Pass& pass, NextRecord& next) {
  return VerifiedRevisions(pass, next).run();
}

}  // namespace gso
