#include "reconcilers/rollout/gang_peers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "reconcilers/model/labels.h"
#include "reconcilers/node/drift.h"

namespace gso {

namespace {

// A node of the same rollout that is Pending or in a change.
bool counts(const Pass& pass, const NodeAssessment& of, const NodeAssessment* other) {
  if (other == nullptr || !pass.index.is_of(*other, pass.index.rollout_key_of(of))) return false;
  if (other->in_change()) return true;
  const WorkloadMode mode = pass.index.policy(pass.s.world, of.policy.view()).rollout.workloads;
  return other->phase == Phase::pending && other->ready && !other->is_held() &&
         drain_for(*other, other->transition, mode) != Drain::nothing;
}

}  // namespace

std::string GangPeers::jobs_text() const {
  return fmt::format("{} {}", jobs.size() == 1 ? "job" : "each of the jobs", fmt::join(jobs, ", "));
}

GangPeers gang_peers_of(const Snapshot& snapshot, const std::string& node, const PeerRules& rules) {
  GangPeers out;
  std::vector<std::string> next{node};
  out.nodes.insert(node);
  while (!next.empty()) {
    const std::string name = std::move(next.back());
    next.pop_back();
    if (rules.waits(name)) out.pending.insert(name);
    const NodeUse use = use_of(snapshot, name);
    if (!use.listed) {
      (use.fresh ? out.unlistable : out.unlisted).insert(name);
      continue;
    }
    for (const auto& [job, members] : snapshot.consumers.at(name).jobs) {
      for (const std::string& member : members) {
        if (member == name || !rules.counts(member)) continue;
        out.jobs.insert(job);
        if (out.nodes.insert(member).second) next.push_back(member);
      }
    }
  }
  return out;
}

GangPeers gang_peers_of(const Pass& pass, const std::string& node) {
  const NodeAssessment* of = pass.index.find(node);
  if (of == nullptr) return {};
  const auto waits = [&pass](const std::string& name) {
    const NodeAssessment* here = pass.index.find(name);
    return here != nullptr && here->phase == Phase::pending;
  };
  const auto is_counted = [&pass, of](const std::string& name) { return counts(pass, *of, pass.index.find(name)); };
  return gang_peers_of(pass.s, node, {is_counted, waits});
}

namespace {

constexpr std::size_t kMostListed = 20;          // Nodes of one rollout whose consumers are listed before they change,
constexpr std::size_t kMostPeersLookedAt = 200;  // among the first of those that wait.
constexpr Duration kListingOld = std::chrono::minutes(1);

// What the pods of one node request in excess of what it will serve; empty: nothing.
std::string beyond(const NodeAssessment& a, const NodeUse& use) {
  std::string out;
  for (const auto& [resource, after] : served_afterwards(a)) {
    const std::int64_t requested = use.requested(resource);
    if (requested <= after) continue;
    const bool known = is_count_known(a, resource);
    out += fmt::format("{}{} of {} requested, {}{} served afterwards{}", out.empty() ? "" : ", ", requested, resource,
                       known ? "" : "at least ", after, known ? "" : " (the number of the node's GPUs is not known)");
  }
  return out;
}

std::string_view consequence(WorkloadMode mode) {
  switch (mode) {
    case WorkloadMode::interrupt:
      return "The policy has workloads: Interrupt, so the operator does not wait for these pods";
    case WorkloadMode::evict:
      return "The operator evicts pods, lowest priority first, until the others fit. It waits for pods whose resource "
             "is removed, whose eviction is refused or that have no controller";
    case WorkloadMode::wait_for_idle:
      break;
  }
  return "These nodes wait until their pods have ended";
}

void warn_of_capacity(Pass& pass, const RolloutKey& key, const ProfileRollout& profile_rollout) {
  std::size_t looked_at = 0;
  std::size_t listed = 0;
  std::vector<std::string> shortages;
  for (const auto& [product, group] : profile_rollout.groups) {
    if (group.tally.shrinking == 0) continue;  // The usual case, in which its nodes are not visited.
    for (const auto& [available, name] : group.pending) {
      if (++looked_at > kMostPeersLookedAt || listed >= kMostListed) break;
      const NodeAssessment& a = *pass.index.find(name);
      if (!a.shrinks || !a.expectation || a.change) continue;
      ++listed;
      const auto listing = pass.s.consumers.find(name);
      if (listing == pass.s.consumers.end() || pass.s.mono - listing->second.listed_at > kListingOld) {
        pass.plan.consumers_wanted.insert(name);
        continue;
      }
      const NodeUse use = use_of(pass.s, name);
      if (const std::string what = beyond(a, use); !what.empty()) {
        std::vector<const Pod*> pods = use.waiting;
        pods.insert(pods.end(), use.daemonset_owned.begin(), use.daemonset_owned.end());
        shortages.push_back(fmt::format("{}: {} ({})", name, what, names_of(pods)));
      }
    }
  }
  if (shortages.empty()) return;
  const WorkloadMode mode = pass.index.policy(pass.s.world, key.policy).rollout.workloads;
  pass.finding(Severity::warning,
               config_map_ref(pass.index.discovery.installations[profile_rollout.installation].config_map_key()),
               kReplicasBelowUse,
               fmt::format("key \"{}\" serves less than pods request now. {}. {}", key.key, fmt::join(shortages, "; "),
                           consequence(mode)));
}

}  // namespace

void plan_capacity_warnings(Pass& pass) {
  for (const auto& [key, profile_rollout] : pass.index.profile_rollouts) {
    if (pass.s.world.unsynced_namespaces.contains(pass.index.discovery.installations[profile_rollout.installation].ns))
      continue;
    warn_of_capacity(pass, key, profile_rollout);
  }
}

}  // namespace gso
