// Which pods block the change of one node, and why they stay.
#include "reconcilers/rollout/drain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "reconcilers/checks/catalogue.h"
#include "reconcilers/cluster/cluster_pods.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/recorded_timers.h"

namespace gso {

namespace {

std::string strands_message(const NodeUse& lost, const NodeExpectation& afterwards) {
  std::string served;
  for (const auto& [resource, count] : afterwards.capacity)
    if (count > 0) served += (served.empty() ? "" : ", ") + resource;
  for (const auto& [resource, replicas] : afterwards.divisible) served += (served.empty() ? "" : ", ") + resource;
  const bool one = lost.waiting.size() == 1;
  return fmt::format(
      "the node will serve {}, but {} request{} other resources: change what {} request{}; the operator waits for {} "
      "and does not evict {}",
      served.empty() ? "no GPUs" : "only " + served, lost.names(), one ? "s" : "", one ? "it" : "they", one ? "s" : "",
      one ? "it" : "them", one ? "it" : "them");
}

// The pods that have an answer in `said`, and the answers, up to a maximum.
struct Answered {
  NodeUse use;
  std::vector<std::string> answers;
};
Answered answered(const NodeUse& use, const std::map<std::string, std::string>& said, std::size_t most) {
  Answered out;
  for (const Pod* pod : use.waiting) {
    const auto answer = said.find(std::string(pod->meta.uid));
    if (answer == said.end() || pod->meta.deletion_timestamp) continue;
    out.use.waiting.push_back(pod);
    const bool known = std::ranges::find(out.answers, answer->second) != out.answers.end();
    if (!known && out.answers.size() < most) out.answers.push_back(answer->second);
  }
  return out;
}

// Pods of DaemonSets and static pods alone request more than the node will serve: it waits for them, too. Empty: they
// fit, or the node need not serve them.
std::string excess_of_daemonsets(const NodeUse& use, const NodeDrain& drain) {
  if (drain.until != Drain::fits) return {};
  NodeUse fixed;
  fixed.daemonset_owned = use.daemonset_owned;
  for (const auto& [resource, served] : drain.serves) {
    const std::int64_t requested = fixed.requested(resource);
    if (requested <= served) continue;
    return fmt::format("{} ({}) request {} {}, the node will serve {}, and the operator does not evict them",
                       kPodsOfDaemonSets, names_of(fixed.daemonset_owned), requested, resource, served);
  }
  return {};
}

}  // namespace

NodeUse stranded(const NodeUse& use, const NodeExpectation* afterwards) {
  NodeUse out;
  for (const Pod* pod : use.waiting) {
    const bool lost = afterwards != nullptr && std::ranges::any_of(pod->gpu_requests, [&](const auto& request) {
                        return request.second > 0 && !afterwards->serves(request.first.view());
                      });
    if (lost) out.waiting.push_back(pod);
  }
  return out;
}

// A missing permission concerns all of them alike: one answer is reported.
std::optional<Reason> refused_evictions(const Pass& pass, const std::string& node, const NodeUse& use) {
  constexpr std::size_t kAnswers = 3;
  const auto listing = pass.s.consumers.find(node);
  if (listing == pass.s.consumers.end()) return std::nullopt;
  const Answered forbidden = answered(use, listing->second.forbidden, 1);
  if (!forbidden.answers.empty()) {
    return Reason{
        kForbidden,
        fmt::format("the operator is not allowed to evict {}: {}", forbidden.use.names(), forbidden.answers.front()),
        Facts{.refused = true}};
  }
  const Answered held = answered(use, listing->second.refused, kAnswers);
  if (held.answers.empty()) return std::nullopt;
  return Reason{kPdbRefuses,
                fmt::format("a PodDisruptionBudget prevents the eviction of {}: {}", held.use.names(),
                            fmt::join(held.answers, "; ")),
                Facts{.refused = true}};
}

std::optional<Reason> blocked_by_pods(const Pass& pass, const std::string& node, const NodeAssessment& a) {
  const NodeUse use = use_of(pass.s, node);
  const NodeDrain drain = node_drain_of(pass, node, a);
  const std::string excess = excess_of_daemonsets(use, drain);
  if (!use.unknown.empty()) {
    return Reason{kWorkloadsUnknown,
                  fmt::format("it is not known which pods use the node's GPUs: {}{}", use.unknown,
                              use.waiting.empty() ? "" : fmt::format("; known are {}", use.names()))};
  }
  if (use.waiting.empty()) {
    return excess.empty() ? std::nullopt
                          : std::optional(Reason{kWaitingForWorkloads, excess, Facts{.otherwise = true}});
  }
  if (const NodeUse lost = stranded(use, drain.afterwards); !lost.waiting.empty())
    return Reason{kRenameStrandsPods, strands_message(lost, *drain.afterwards)};
  auto answer = refused_evictions(pass, node, use);
  std::string_view code = answer ? std::string_view(answer->code) : kWaitingForWorkloads;
  std::string message = answer ? answer->message : fmt::format("waits for {}", use.names());
  Facts facts{.otherwise = !excess.empty(), .refused = answer.has_value()};
  const auto why = why_pods_stay(pass, drain, use);
  if (why) {
    if (!answer) code = why->code;
    message += "; " + why->message;
    facts.add(why->facts());
  }
  if (!excess.empty()) message += "; " + excess;
  return Reason{code, std::move(message), std::move(facts)};
}

namespace {

// When the operator queues the node again, if pods still block it then. Empty: it waits without a deadline, because its
// change is touched. The time comes from the change and the record, not from the timer, which an operator measures from
// when it was started: the status stays the same while nothing changes.
std::string deadline_text(const Pass& pass, const SeenNode& seen) {
  const NodeAssessment& a = seen.assessment;
  if (a.phase != Phase::draining) return {};
  const Duration patience = pass.index.policy(pass.s.world, a.policy.view()).rollout.idle_timeout;
  const std::string_view then = a.change->cordoned ? "uncordons the node and queues it again" : "queues the node again";
  const auto released = recorded_release(pass, seen.name, *a.change);
  if (!released && released_since(pass, seen.name, *a.change))
    return fmt::format("; if this lasts {}, the operator {}", k8s::format_go_duration(patience), then);
  const WallTime since = std::max(a.change->listed, released.value_or(a.change->listed));
  return fmt::format("; if this lasts until {}, the operator {}",
                     k8s::format_time(since + std::chrono::ceil<std::chrono::milliseconds>(patience)), then);
}

// The pods of the node have not been listed since this operator was started. Until they are, its SharingRollout's
// status has what the operator before it saw.
std::optional<Reason> last_reported(const Pass& pass, const std::string& name, const NodeAssessment& a) {
  const SharingRollout* rollout = pass.s.world.rollouts.find(rollout_name(pass.index.rollout_key_of(a), a.change->to));
  if (rollout == nullptr) return std::nullopt;
  for (const nlohmann::json& entry : list_at(parse_status(rollout->status_json), "nodes")) {
    if (!entry.is_object() || text_at(entry, "name") != name || text_at(entry, "state") != "Waiting") continue;
    const CodeRow* known = find_blocked_reason(text_at(entry, "reason"));
    if (known != nullptr) return Reason{known->codes.front(), text_at(entry, "message"), facts_in(entry)};
  }
  return std::nullopt;
}

}  // namespace

std::map<std::string, Reason> find_blocked_in_progress(const Pass& pass) {
  std::map<std::string, Reason> out;
  for (const auto& [name, node, a] : nodes_in(pass, Bucket::changing)) {
    if (a.phase != Phase::draining || !a.holder.empty() || pass.s.consumers.contains(name)) continue;
    if (auto who = last_reported(pass, name, a)) out.emplace(name, *std::move(who));
  }
  for (const SeenNode& seen : seen_nodes(pass, Timer::draining)) {
    const NodeAssessment& a = seen.assessment;
    if (!a.change || a.change->failed) continue;
    auto who = blocked_by_pods(pass, seen.name, a);
    if (!who) continue;
    who->message += deadline_text(pass, seen);
    out.insert_or_assign(seen.name, std::move(*who));
  }
  if (pass.s.refused_writes == nullptr || pass.s.refused_writes->empty()) return out;
  for (const std::string& name : pass.index.nodes_in(Bucket::changing))
    if (const std::string* right = refused_write(pass, name)) out.insert_or_assign(name, Reason{kForbidden, *right});
  return out;
}

const std::string* refused_write(const Pass& pass, const std::string& node) {
  if (pass.s.refused_writes == nullptr) return nullptr;
  const auto found = pass.s.refused_writes->find(node);
  return found == pass.s.refused_writes->end() ? nullptr : &found->second;
}

namespace {

constexpr std::chrono::minutes kClocksDiffer{1};

// Why the node is not cordoned for its workloads again, when it is changed, and how to give them another turn. The time
// stays in the text when it has passed, so that no status is written for that alone.
std::string deferral_text(const Pass& pass, const std::string& node, const SharingPolicy& policy) {
  const Deferral deferral = deferral_of(*pass.s.world.nodes.find(node)).value_or(Deferral{});
  const std::string retry = fmt::format("`gpu-sharing-operator rollout start {}`", policy.meta.name);
  if (deferral.by != Deferral::By::person) {
    const std::string ended =
        deferral.by == Deferral::By::stop
            ? "until a pause, a closed window or an obstacle, or until an idle node needed the slot"
            : fmt::format("idleTimeout {}", k8s::format_go_duration(policy.rollout.idle_timeout));
    return fmt::format(
        "the operator has cordoned it for its workloads once ({}), and changes it as soon as it is idle; to cordon it "
        "for them again: {}",
        ended, retry);
  }
  // Else the clock was set after the time had been written.
  const bool counts =
      std::chrono::abs(deferred_until(pass, node).value_or(pass.s.now) - deferral.until) < kClocksDiffer;
  return fmt::format(
      "someone uncordoned it during the drain, and the operator changes it as soon as it is idle{}; to change it "
      "earlier: {}, which cordons it again",
      counts ? fmt::format(", not before {}", k8s::format_time(deferral.until)) : "", retry);
}

}  // namespace

bool is_of_workloads(std::string_view reason) {
  return reason == kWaitingForWorkloads || reason == kPdbRefuses || reason == kJobSpansNodes ||
         reason == kRenameStrandsPods || reason == kForbidden || reason == kProtectedNamespace;
}

std::map<std::string, Reason> blocked_in_queue(const Pass& pass) {
  std::map<std::string, Reason> out;
  for (const auto& [name, node, a] : nodes_in(pass, Bucket::deferred)) {
    const auto pods = blocked_by_pods(pass, name, a);
    std::string message = deferral_text(pass, name, pass.index.policy(pass.s.world, a.policy.view()));
    out.emplace(name, pods ? Reason{pods->code, fmt::format("{}; {}", message, pods->message), pods->facts()}
                           : Reason{kDeferred, std::move(message)});
  }
  return out;
}

void remove_rejected(Pass& pass, const std::string& node) {
  const auto listing = pass.s.consumers.find(node);
  if (pass.s.settings.remove_rejected_pods.empty() || listing == pass.s.consumers.end()) return;
  for (const Pod& pod : listing->second.rejected) {
    if (!is_rejected(pod, pass.s.settings)) continue;
    pass.add(DeletePod{pod.meta.key(), pod.meta.uid, std::nullopt, std::nullopt}, kRejectedPod,
             fmt::format("rejected by the kubelet of node {} during its restart ({}); its controller creates it again",
                         node, pod.reason.view()),
             false, node);
  }
}

NodeDrain node_drain_of(const Pass& pass, const std::string& node, const NodeAssessment& a) {
  NodeDrain out;
  out.node = node;
  out.policy = &pass.index.policy(pass.s.world, a.policy.view());
  out.until = drain_for(a, a.change ? a.change->kind : a.transition, out.policy->rollout.workloads);
  out.afterwards = a.expectation.get();
  out.serves = served_afterwards(a);
  if (a.in_change()) out.since = a.change->listed;
  return out;
}

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

std::string requests_beyond(const NodeUse& use, const std::map<std::string, std::int64_t>& serves,
                            const std::map<std::string, std::int64_t>& known) {
  std::string out;
  for (const auto& [resource, after] : serves) {
    const std::int64_t requested = use.requested(resource);
    if (requested <= after) continue;
    const bool is_known = known.contains(resource);
    out += fmt::format("{}{} of {} requested, {}{} served afterwards{}", out.empty() ? "" : ", ", requested, resource,
                       is_known ? "" : "at least ", after,
                       is_known ? "" : " (the number of the node's GPUs is not known)");
  }
  return out;
}

namespace {

constexpr std::size_t kMostListed = 20;          // Nodes of one rollout whose consumers are listed before they change,
constexpr std::size_t kMostPeersLookedAt = 200;  // among the first of those that wait.
constexpr Duration kListingOld = std::chrono::minutes(1);

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

// What the pods of the node request in excess of what it will serve, and which pods there are; empty: nothing, or they
// are not listed yet. A list is asked for if there is none, or only an old one.
std::string shortage(Pass& pass, const std::string& node, const NodeAssessment& a, const NodeExpectation& afterwards) {
  const auto listing = pass.s.consumers.find(node);
  const bool is_listed = listing != pass.s.consumers.end();
  if (!is_listed || pass.s.mono - listing->second.listed_at > kListingOld) pass.plan.consumers_wanted.insert(node);
  if (!is_listed) return {};  // An old listing is reported until the new one is there: a condition must not alternate.
  const NodeUse use = use_of(pass.s, node);
  const auto serves = served_with(afterwards, a.measured_gpus);
  const std::string what = requests_beyond(use, serves, a.measured_gpus > 0 ? serves : afterwards.capacity);
  if (what.empty()) return what;
  std::vector<const Pod*> pods = use.waiting;
  pods.insert(pods.end(), use.daemonset_owned.begin(), use.daemonset_owned.end());
  return fmt::format("{}: {} ({})", node, what, names_of(pods));
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
      if (std::string text = shortage(pass, name, a, *a.expectation); !text.empty())
        shortages.push_back(std::move(text));
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

std::string announced_loss(Pass& pass, const PluginInstallation& installation, std::string_view policy) {
  std::vector<std::string> nodes;
  AmountChanges amounts;
  std::vector<std::string> shortages;
  bool keyless = true;  // No key resolves for any of them.
  for (const std::string& name : pass.index.nodes_in(Bucket::would_shrink)) {
    const NodeAssessment& a = *pass.index.find(name);
    if (!pass.plannable(a) || !pass.index.installation_of(a).has_id(installation.id())) continue;
    if (!policy.empty() && a.policy.view() != policy) continue;
    const NodeExpectation& afterwards = *a.announced->expectation;
    count_amounts(*pass.s.world.nodes.find(name), served_with(afterwards, a.measured_gpus), amounts);
    if (nodes.size() < kMostListed)
      if (std::string text = shortage(pass, name, a, afterwards); !text.empty()) shortages.push_back(std::move(text));
    keyless = keyless && a.announced->profile_ref.view().ends_with('/');
    nodes.push_back(name);
  }
  if (nodes.empty()) return {};
  const bool staged = std::ranges::all_of(installation.operands, &Operand::on_delete);
  return fmt::format(
      "ClusterPolicy {} announces {}: {}{} will serve less ({}): {}. {}{}", installation.owner,
      installation.announced_config(), keyless ? "no profile is applied to nodes without a label then; " : "",
      counted(nodes.size(), "node"), first_names(nodes), fmt::join(describe(amounts), ", "),
      shortages.empty() ? std::string()
                        : fmt::format("Pods request more than is left: {}. ", fmt::join(shortages, "; ")),
      staged ? kReplacedInWaves : kReplacedAtOnce);
}

}  // namespace gso
