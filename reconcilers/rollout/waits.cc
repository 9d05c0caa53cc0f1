#include "reconcilers/rollout/standstill.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include "reconcilers/model/message_text.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/budgets.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/rollout/slots.h"

namespace gso {

namespace {

std::string group_of(std::string_view product) {
  return fmt::format("group {}", product.empty() ? "of unknown product" : product);
}

// What that group waits for. A full budget, and whatever else a group before it waits for as well, is said there.
std::string wait_beside_others(const std::vector<GroupWait>& groups, std::size_t at) {
  const GroupWait& wait = groups[at];
  for (const GroupWait& before : groups | std::views::take(at)) {
    if (wait.clauses.empty() || before.clauses.empty() || before.clauses.front() != wait.clauses.front()) continue;
    std::string out = fmt::format("{} (see {})", kNoSlot, group_of(before.product));
    for (const std::string& clause : wait.clauses)
      if (std::ranges::find(before.clauses, clause) == before.clauses.end()) out += "; " + clause;
    return out;
  }
  return wait.why.message;
}

}  // namespace

std::string joined_waits(const std::vector<GroupWait>& groups) {
  if (groups.empty()) return {};
  const std::string& first = groups.front().why.message;
  if (std::ranges::all_of(groups, [&](const GroupWait& group) { return group.why.message == first; })) return first;
  std::string out;
  for (std::size_t i = 0; i < std::min(groups.size(), kMostNames); ++i)
    out += fmt::format("{}{}: {}", i == 0 ? "" : "; ", group_of(groups[i].product), wait_beside_others(groups, i));
  if (groups.size() > kMostNames) out += fmt::format("; and {}", counted(groups.size() - kMostNames, "more group"));
  return out;
}

std::string busy_nodes_text(const std::vector<std::string>& draining, std::int64_t most, std::string_view whose,
                            std::string_view budget) {
  return fmt::format(
      "pods use these nodes: they start when their own pods end, or those of {}{}; {} lets {} wait for {} pods at a "
      "time (half of {})",
      draining.size() == 1 ? "" : "one of ", first_names(draining), whose, counted(most, "node"),
      most == 1 ? "its" : "their", budget);
}

namespace {

class Finder {
 public:
  explicit Finder(const RolloutView& rollout)
      : rollout_(rollout), pass_(rollout.pass), queued_(blocked_in_queue(pass_)) {
    for (const SeenNode& seen : seen_nodes(pass_, Timer::busy)) busy_.insert(seen.name);
    for (const auto& [name, who] : pass_.rollouts->blocked_in_progress()) {
      draining_.push_back(name);
      if (pass_.index.find(name)->policy == rollout.key.policy) draining_of_policy_.push_back(name);
    }
  }

  Waits run() {
    bool asks = false;
    for (const auto& [product, group] : rollout_.profile_rollout.groups) {
      const NodeAssessment* first = first_that_asks(group);
      if (first == nullptr) continue;
      asks = true;
      add_group(product, group, needs_slot(*first));
    }
    if (out_.has_slot) out_.exhausted.reset();
    if (asks) out_.deferred.clear();
    out_.message = joined_waits(out_.groups);
    for (const GroupWait& group : out_.groups) out_.facts.add(group.why.facts());
    return std::move(out_);
  }

 private:
  // The first node that asks for a slot; null: none does.
  [[nodiscard]] const NodeAssessment* first_that_asks(const Group& group) {
    std::vector<std::string> not_ready, held, behind;
    std::map<std::string, Reason> deferred;
    for (const auto& [available, name] : group.pending) {
      const NodeAssessment& a = *pass_.index.find(name);
      if (const auto queued = queued_.find(name); queued != queued_.end()) {
        deferred.emplace(name, queued->second);
        continue;
      }
      if (is_behind_canary(rollout_, a)) {
        behind.push_back(name);
        continue;
      }
      if (is_free_to_begin(a)) return &a;
      (a.is_held() ? held : not_ready).push_back(name);
    }
    out_.not_ready.insert(out_.not_ready.end(), not_ready.begin(), not_ready.end());
    out_.held.insert(out_.held.end(), held.begin(), held.end());
    out_.behind_canary.insert(out_.behind_canary.end(), behind.begin(), behind.end());
    out_.deferred.merge(deferred);
    return nullptr;
  }

  // A node that is unavailable already needs no free slot. Where as many nodes are in a change as a budget has slots,
  // they hold all of them.
  [[nodiscard]] bool needs_slot(const NodeAssessment& a) const {
    if (!is_busy(a)) return true;
    return !is_out_of_service(a) && !Slots(pass_).has_room(rollout_, a);
  }

  void add_group(const std::string& product, const Group& group, bool needs_slot) {
    const Exhausted& full = rollout_.exhausted(product);
    out_.has_slot = out_.has_slot || !full.is_any() || !needs_slot;
    if (!out_.exhausted && full.is_any()) out_.exhausted = full;
    std::optional<Reason> canary = behind_canary(product);
    // Workloads that hold the other slots are given up after idleTimeout.
    const bool has_room = !needs_slot || (!canary && !full.is_any());
    out_.some_start = out_.some_start || has_room || rollout_.canary(product).soaks_to;
    if (canary)
      out_.groups.push_back({product, *std::move(canary)});
    else if (full.is_any())
      out_.groups.push_back({product, full, full.clauses});
    else if (auto busy = behind_workloads(group))
      out_.groups.push_back({product, *std::move(busy)});
  }

  [[nodiscard]] std::optional<Reason> behind_canary(const std::string& product) {
    const Canary& canary = rollout_.canary(product);
    if (canary.passed) return std::nullopt;
    if (canary.soaks_to) {
      Facts about = about_nodes({canary.proven.begin(), canary.proven.end()});
      about.until = k8s::format_time(*canary.soaks_to);
      return Reason{kRollingOut,
                    fmt::format("the canary {} {} verified and soak{} for {}: the next nodes start at {}",
                                first_names(canary.proven), canary.proven.size() == 1 ? "is" : "are",
                                canary.proven.size() == 1 ? "s" : "",
                                k8s::format_go_duration(rollout_.policy.rollout.canary_soak), about.until),
                    std::move(about)};
    }
    const std::vector<std::string> trying = canaries_in_progress(rollout_, product);
    if (trying.empty() || left_in_canary(rollout_, product) > 0) return std::nullopt;
    return Reason{kRollingOut, fmt::format("waits for the canary {}", first_names(trying)), about_nodes(trying)};
  }

  // Busy nodes of the group, while as many nodes as allowed wait for their workloads.
  [[nodiscard]] std::optional<Reason> behind_workloads(const Group& group) const {
    if (busy_.empty()) return std::nullopt;
    const bool busy =
        std::ranges::any_of(group.pending, [&](const auto& entry) { return busy_.contains(entry.second); });
    if (!busy) return std::nullopt;
    const Slots slots(pass_);
    const auto behind = [](const std::vector<std::string>& draining, auto&&... words) {
      return Reason{kWaitingForWorkloads, busy_nodes_text(draining, words...), about_nodes(draining)};
    };
    const auto full = slots.without_waiting_room(rollout_.key, std::ssize(draining_of_policy_), std::ssize(draining_));
    if (!full) return std::nullopt;
    const std::int64_t most = slots.most_draining(*full, rollout_.key);
    return *full == Budget::policy
               ? behind(draining_of_policy_, most, "policy " + rollout_.key.policy, "maxUnavailable")
               : behind(draining_, most, std::string("the cluster"), "--cluster-max-unavailable");
  }

  const RolloutView& rollout_;
  Pass& pass_;
  const std::map<std::string, Reason> queued_;   // Deferred nodes.
  std::set<std::string> busy_;                   // Waiting nodes that were seen in use.
  std::vector<std::string> draining_;            // Nodes that wait for their workloads,
  std::vector<std::string> draining_of_policy_;  // and those of them that the policy governs.
  Waits out_;
};

// The first nodes of the rollout in that set, and what they do; empty if `total` is 0. Held nodes are left out.
std::string nodes_in_progress(const RolloutView& rollout, Bucket bucket, std::int64_t total,
                              fmt::format_string<std::string> one, fmt::format_string<std::string> many) {
  std::vector<std::string> names;
  if (total <= 0) return {};
  for (const auto& [name, a] : rollout.nodes_in(bucket)) {
    if (std::ssize(names) >= std::min<std::int64_t>(total, kMostNames)) break;
    if (a.holder.empty()) names.push_back(name);
  }
  if (names.empty()) return {};
  return fmt::format(total == 1 ? one : many, first_names(names, static_cast<std::size_t>(total)));
}

// Of nodes that no other text names. The text of the settle time stays until the first node starts: another one for the
// pass in between would cost two writes.
std::string waiting_to_start(const RolloutView& rollout) {
  if (const auto& still = rollout.standstill()) return still->message;
  std::vector<std::string> names;
  for (const auto& [product, group] : rollout.profile_rollout.groups) {
    for (const auto& [available, name] : group.pending)
      if (names.size() < kMostNames) names.push_back(name);
  }
  const std::int64_t pending = rollout.profile_rollout.tally.of(Phase::pending);
  if (names.empty()) return {};
  const std::string which = first_names(names, static_cast<std::size_t>(pending));
  const Duration settle = settle_time(rollout);
  const bool has_begun = rollout.gate().is_open() && rollout.profile_rollout.tally.settled > 0;
  if (has_begun || settle == Duration::zero())
    return fmt::format("the operator starts {}{} next", pending == 1 ? "" : "the first of ", which);
  return fmt::format("{} {} once ConfigMap {} and its DaemonSets have not changed for {}", which,
                     pending == 1 ? "starts" : "start", rollout.installation.id(), k8s::format_go_duration(settle));
}

}  // namespace

std::string start_after_settling(const RolloutView& rollout) {
  const auto at = settled_at(rollout);
  return at ? fmt::format("nodes start at {} unless ConfigMap {} or its DaemonSets change again",
                          k8s::format_time(std::chrono::ceil<std::chrono::seconds>(*at)), rollout.installation.id())
            : std::string();
}

Waits waits_of(const RolloutView& rollout) {
  return Finder(rollout).run();
}

std::string progress_text(const RolloutView& rollout) {
  if (const std::string& waits = rollout.waits().message; !waits.empty()) return waits;
  const Tally& nodes = rollout.profile_rollout.tally;
  const std::int64_t changing = nodes.changing - std::ssize(rollout.profile_rollout.nodes(RolloutBucket::stuck));
  std::string out;
  for (const std::string& part :
       {nodes_in_progress(rollout, Bucket::changing, changing, "{} is in progress", "{} are in progress"),
        nodes_in_progress(rollout, Bucket::following, nodes.of(Phase::following_daemonset),
                          "{} waits for its DaemonSets", "{} wait for their DaemonSets"),
        nodes_in_progress(rollout, Bucket::self_loaded, nodes.loading, "{} is being verified",
                          "{} are being verified")}) {
    if (!part.empty()) out += (out.empty() ? "" : "; ") + part;
  }
  if (out.empty()) out = waiting_to_start(rollout);
  if (out.empty()) {
    out = nodes_in_progress(rollout, Bucket::repairable, rollout.repairs_left(),
                            "{} no longer shows its profile: its pods are restarted if this lasts",
                            "{} no longer show their profile: their pods are restarted if this lasts");
  }
  return out.empty() ? "nodes are changing to their revision" : out;
}

}  // namespace gso
