#include "reconcilers/rollout/drain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/reasons/names.h"

namespace gso {

namespace {

// The annotation by which a pod forbids its eviction, as "key=value"; empty: it has none. In doubt it forbids it.
std::string refusal_of(const Pod& pod) {
  for (const std::string_view key : {kDoNotDisruptAnnotation, kKarpenterDoNotDisrupt}) {
    const auto value = pod.meta.annotations.get(key);
    if (is_switched_on(value)) return fmt::format("{}={}", key, *value);
  }
  const auto safe = pod.meta.annotations.get(kSafeToEvict);
  return safe && says_no(*safe) ? fmt::format("{}={}", kSafeToEvict, *safe) : std::string();
}

// A pod without a controller: nothing creates it again. (Mirror pods belong to their Node.)
bool is_bare(const Pod& pod) {
  return pod.meta.controller() == nullptr;
}

// The pod was created on the node well after the node had been cordoned for its change: its controller tolerates the
// cordon and would create it there again after each eviction. Successors that were on their way come sooner.
bool comes_back(const Pass& pass, const NodeDrain& drain, const Pod& pod) {
  constexpr std::chrono::minutes kOnTheirWay{2};
  const Node* shown = pass.s.world.nodes.find(drain.node);
  return shown != nullptr && shown->unschedulable && drain.since && created_after(pod, *drain.since + kOnTheirWay);
}

// Why a pod is never evicted, whatever the node needs; in the order in which messages say it.
enum class Stay : std::uint8_t { no, protected_namespace, refuses, comes_back, bare };
// With whose namespace it is, or the annotation that forbids it.
using WhyItStays = std::pair<Stay, std::string>;

WhyItStays why_it_stays(const Pass& pass, const NodeDrain& drain, const Pod& pod) {
  const std::string_view owner = pass.protected_namespaces().owner_of(pod.meta.ns.view());
  if (!owner.empty()) return {Stay::protected_namespace, std::string(owner)};
  if (std::string refusal = refusal_of(pod); !refusal.empty()) return {Stay::refuses, std::move(refusal)};
  if (comes_back(pass, drain, pod)) return {Stay::comes_back, {}};
  return {is_bare(pod) && !drain.policy->rollout.evict_bare_pods ? Stay::bare : Stay::no, {}};
}

bool stays(const Pass& pass, const NodeDrain& drain, const Pod& pod) {
  return why_it_stays(pass, drain, pod).first != Stay::no;
}

// Jobs with a member on one of these nodes that must not be evicted.
std::set<std::string> jobs_that_stay(const Pass& pass, const Eviction& eviction, const NodeUse& lost) {
  std::set<std::string> out;
  const auto keep_job_of = [&](const Pod& pod) {
    if (const auto job = job_of(pod)) out.insert(job->id());
  };
  for (const std::string& node : eviction.peers.nodes) {
    const std::optional<NodeDrain> drain = eviction.drain_of(node);
    const NodeUse use = use_of(pass.s, node);
    for (const Pod* pod : use.waiting)
      if (!drain || stays(pass, *drain, *pod)) keep_job_of(*pod);
  }
  for (const Pod* pod : lost.waiting) keep_job_of(*pod);
  return out;
}

// Pods that leave together: one pod, or the members of one job on one node.
struct Evictable {
  std::vector<const Pod*> pods;
  std::int64_t priority = 0;  // The highest among the pods.
  // A PodDisruptionBudget has kept one of the pods: others of the same priority might be free to leave.
  bool refused = false;
  std::int64_t requests = 0;
  WallTime created{};  // Creation time of the youngest pod.
  std::string name;

  void add(const Pod& pod, bool was_refused) {
    priority = pods.empty() ? pod.priority : std::max<std::int64_t>(priority, pod.priority);
    created = pods.empty() ? pod.meta.creation_timestamp : std::max(created, pod.meta.creation_timestamp);
    refused = refused || was_refused;
    for (const auto& [resource, count] : pod.gpu_requests) requests += count;
    const std::string key = k8s::to_string(pod.meta.key());
    name = name.empty() ? key : std::min(name, key);
    pods.push_back(&pod);
  }
  [[nodiscard]] std::int64_t requested(std::string_view resource) const {
    std::int64_t sum = 0;
    for (const Pod* pod : pods) {
      const auto found = pod->gpu_requests.find(Interned(resource));
      sum += found == pod->gpu_requests.end() ? 0 : found->second;
    }
    return sum;
  }
  // Lowest priority first, then the smallest, then the youngest.
  [[nodiscard]] bool leaves_before(const Evictable& other) const {
    return std::tie(priority, refused, requests, other.created, name) <
           std::tie(other.priority, other.refused, other.requests, created, other.name);
  }
};

// By resource, how much more is requested than the node will serve. Pods that are ending already do not count.
using Excess = std::map<std::string, std::int64_t>;

Excess excess_of(const NodeUse& use, const NodeDrain& drain) {
  Excess out;
  NodeUse remaining = use;
  std::erase_if(remaining.waiting, [](const Pod* pod) { return pod->meta.deletion_timestamp.has_value(); });
  for (const auto& [resource, served] : drain.serves)
    if (const std::int64_t more = remaining.requested(resource) - served; more > 0) out.emplace(resource, more);
  return out;
}

bool fits_without(const Excess& excess, const std::vector<const Evictable*>& gone) {
  return std::ranges::all_of(excess, [&](const auto& entry) {
    std::int64_t freed = 0;
    for (const Evictable* evictable : gone) freed += evictable->requested(entry.first);
    return freed >= entry.second;
  });
}

// The least important pods whose eviction makes the others fit, and no more of them than that needs. Empty if not even
// all of them are enough: they would lose their work for nothing while the node still waits for the others.
std::vector<const Evictable*> until_it_fits(const Excess& excess, const std::vector<Evictable>& evictables) {
  std::vector<const Evictable*> gone;
  for (const Evictable& evictable : evictables) {
    const bool helps =
        std::ranges::any_of(excess, [&](const auto& entry) { return evictable.requested(entry.first) > 0; });
    if (helps) gone.push_back(&evictable);
  }
  if (!fits_without(excess, gone)) return {};
  // The most important ones are last, and are the first to stay.
  for (std::size_t i = gone.size(); i-- > 0;) {
    std::vector<const Evictable*> fewer = gone;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (fits_without(excess, fewer)) gone = std::move(fewer);
  }
  return gone;
}

// The pods of one node that could be evicted, in the order in which they are. `others_stay`: another pod does not leave
// by an eviction, and is not ending either.
struct Evictables {
  std::vector<Evictable> sorted;
  bool others_stay = false;
};

// `staying`: jobs that cannot leave. A pod that a PodDisruptionBudget has kept is tried again, so it does not stay.
Evictables evictables_on(const Pass& pass, const NodeDrain& drain, const NodeUse& use,
                         const std::set<std::string>& staying) {
  const NodeUse lost = stranded(use, drain.afterwards);
  const auto listing = pass.s.consumers.find(drain.node);
  Evictables out;
  std::map<std::string, Evictable> by_job;
  for (const Pod* pod : use.waiting) {
    const auto job = job_of(*pod);
    const bool keeps = stays(pass, drain, *pod) || std::ranges::find(lost.waiting, pod) != lost.waiting.end() ||
                       (job && staying.contains(job->id()));
    if (pod->meta.deletion_timestamp) continue;
    out.others_stay = out.others_stay || keeps;
    if (keeps) continue;
    const bool refused =
        listing != pass.s.consumers.end() && listing->second.refused.contains(std::string(pod->meta.uid));
    by_job[job ? job->id() : k8s::to_string(pod->meta.key())].add(*pod, refused);
  }
  for (auto& [id, evictable] : by_job) out.sorted.push_back(std::move(evictable));
  std::ranges::sort(out.sorted, [](const Evictable& x, const Evictable& y) { return x.leaves_before(y); });
  return out;
}

// Uids of the pods of one node that must leave; `staying`: jobs that cannot leave.
std::set<std::string> chosen_on(const Pass& pass, const NodeDrain& drain, const NodeUse& use,
                                const std::set<std::string>& staying) {
  const Evictables evictables = evictables_on(pass, drain, use, staying);
  std::vector<const Evictable*> gone;
  if (drain.until == Drain::fits) {
    gone = until_it_fits(excess_of(use, drain), evictables.sorted);
  } else if (!evictables.others_stay) {
    // If one pod stays, the node must wait for it: the others would lose their work for nothing.
    for (const Evictable& evictable : evictables.sorted) gone.push_back(&evictable);
  }
  std::set<std::string> out;
  for (const Evictable* evictable : gone)
    for (const Pod* pod : evictable->pods) out.insert(std::string(pod->meta.uid));
  return out;
}

// Which pods stay, and how to continue.
std::string sentence_about(const WhyItStays& why, const NodeUse& pods, const SharingPolicy& policy) {
  const bool one = pods.waiting.size() == 1;
  const std::string_view it = one ? "it" : "them";
  const auto& [stay, what] = why;
  switch (stay) {
    case Stay::protected_namespace:
      return fmt::format(
          "{} {} in a namespace of {}, where the operator evicts no pod, so the operator waits for {}. Delete {} with "
          "kubectl, or move {} to another namespace",
          pods.names(), one ? "runs" : "run", what, it, it, it);
    case Stay::refuses:
      return fmt::format("{} {} the annotation {}, so the operator waits for {} and does not evict {}", pods.names(),
                         one ? "has" : "have", what, it, it);
    case Stay::comes_back:
      return fmt::format(
          "{} {} created on the node after the node had been cordoned, and would be created there again after an "
          "eviction, so the operator waits for {}. Remove the toleration for node.kubernetes.io/unschedulable from {} "
          "controller, or stop the workload",
          pods.names(), one ? "was" : "were", it, one ? "its" : "their");
    case Stay::bare:
      return fmt::format(
          "{} {} no controller that would create {} again after an eviction, so the operator waits for {}. Delete {} "
          "with kubectl, or set {}: true in policy {}",
          pods.names(), one ? "has" : "have", it, it, it, kEvictBarePodsField, policy.meta.name);
    case Stay::no:
      break;
  }
  return {};
}

using Staying = std::map<WhyItStays, NodeUse>;

Staying staying_of(const Pass& pass, const NodeDrain& drain, const NodeUse& use) {
  Staying out;
  for (const Pod* pod : use.waiting) {
    WhyItStays why = why_it_stays(pass, drain, *pod);
    if (why.first != Stay::no && !pod->meta.deletion_timestamp) out[std::move(why)].waiting.push_back(pod);
  }
  return out;
}

Facts facts_of(const Staying& staying) {
  Facts out;
  for (const auto& [why, pods] : staying) {
    const auto& [stay, what] = why;
    out.bare = out.bare || stay == Stay::bare;
    out.otherwise = out.otherwise || stay == Stay::comes_back;
    if (stay == Stay::refuses && out.annotation.empty()) out.annotation = shown_value(what);
  }
  return out;
}

// Jobs that leave one of the nodes leave all of them.
std::set<std::string> jobs_that_leave(const Pass& pass, const Eviction& eviction,
                                      const std::set<std::string>& staying) {
  std::set<std::string> out;
  for (const std::string& node : eviction.peers.nodes) {
    const std::optional<NodeDrain> drain = eviction.drain_of(node);
    if (!drain) continue;
    const NodeUse use = use_of(pass.s, node);
    const std::set<std::string> chosen = chosen_on(pass, *drain, use, staying);
    for (const Pod* pod : use.waiting) {
      const auto job = chosen.contains(std::string(pod->meta.uid)) ? job_of(*pod) : std::nullopt;
      if (job) out.insert(job->id());
    }
  }
  return out;
}

// One sentence for each reason why pods stay.
std::vector<std::string> sentences_about(const Staying& staying, const SharingPolicy& policy) {
  std::vector<std::string> out;
  for (const auto& [why, pods] : staying) out.push_back(sentence_about(why, pods, policy));
  return out;
}

}  // namespace

std::optional<Reason> why_pods_stay(const Pass& pass, const NodeDrain& drain, const NodeUse& use) {
  if (drain.policy->rollout.workloads != WorkloadMode::evict) return std::nullopt;
  const Staying staying = staying_of(pass, drain, use);
  if (staying.empty()) return std::nullopt;
  const bool fits = drain.until == Drain::fits;
  // If evicting other pods is enough, the operator does not wait for these.
  if (fits && !chosen_on(pass, drain, use, {}).empty()) return std::nullopt;
  std::vector<std::string> why = sentences_about(staying, *drain.policy);
  if (!fits && !evictables_on(pass, drain, use, {}).sorted.empty())
    why.emplace_back("Until then no other pod of the node is evicted");
  const bool is_protected = staying.begin()->first.first == Stay::protected_namespace;
  return Reason{is_protected ? kProtectedNamespace : kWaitingForWorkloads, fmt::format("{}", fmt::join(why, ". ")),
                facts_of(staying)};
}

EvictionOutlook eviction_outlook(const Pass& pass, const std::string& node, const NodeAssessment& a,
                                 bool evict_bare_pods) {
  NodeDrain drain = node_drain_of(pass, node, a);
  SharingPolicy policy = *drain.policy;
  policy.rollout.workloads = WorkloadMode::evict;
  policy.rollout.evict_bare_pods = evict_bare_pods;
  drain.policy = &policy;
  const NodeUse use = use_of(pass.s, node);
  Eviction eviction;
  eviction.drain = drain;
  eviction.peers.nodes = {node};
  eviction.drain_of = [&](const std::string&) { return std::optional(drain); };
  const std::set<std::string> staying = jobs_that_stay(pass, eviction, stranded(use, drain.afterwards));
  const bool fits = drain.until == Drain::fits;
  EvictionOutlook out;
  out.frees = fits ? excess_of(use, drain).empty() || !chosen_on(pass, drain, use, staying).empty()
                   : !evictables_on(pass, drain, use, staying).others_stay;
  if (!out.frees) out.why = fmt::format("{}", fmt::join(sentences_about(staying_of(pass, drain, use), policy), ". "));
  const std::set<std::string> chosen = chosen_on(pass, drain, use, staying);
  for (const Pod* pod : use.waiting)
    if (is_bare(*pod) && chosen.contains(std::string(pod->meta.uid))) out.bare.waiting.push_back(pod);
  return out;
}

void evict_consumers(Pass& pass, const Eviction& eviction, const NodeUse& use) {
  const GangPeers& peers = eviction.peers;
  const std::string& node = eviction.drain.node;
  if (!peers.pending.empty()) {
    pass.finding(
        Severity::warning, node_ref(node), kJobSpansNodes,
        fmt::format("{} also runs on {}, which cannot start together with this node (budgets, canary). Pods of one job "
                    "are evicted together or not at all, so no pod is evicted here; the node waits until it is idle",
                    peers.jobs_text(), fmt::join(peers.pending, ", ")));
    return;
  }
  pass.plan.consumers_wanted.insert(peers.unlisted.begin(), peers.unlisted.end());
  pass.plan.consumers_wanted.insert(peers.unlistable.begin(), peers.unlistable.end());
  if (!peers.unlisted.empty() || !peers.unlistable.empty()) return;
  const std::set<std::string> staying = jobs_that_stay(pass, eviction, stranded(use, eviction.drain.afterwards));
  const std::set<std::string> chosen = chosen_on(pass, eviction.drain, use, staying);
  const std::set<std::string> leaving = jobs_that_leave(pass, eviction, staying);
  for (const Pod* pod : use.waiting) {
    const auto job = job_of(*pod);
    const bool leaves = chosen.contains(std::string(pod->meta.uid)) || (job && leaving.contains(job->id()));
    if (!leaves || pod->meta.deletion_timestamp) continue;
    pass.add(EvictPod{pod->meta.key(), pod->meta.uid}, "Evict",
             fmt::format("evicted from node {}, whose {}", node, eviction.cause), true, node);
  }
}

void evict_consumers(Pass& pass, const std::string& node, const NodeAssessment& a, const NodeUse& use) {
  const DrainOf drain_of_peer = [&pass](const std::string& peer) -> std::optional<NodeDrain> {
    const NodeAssessment* other = pass.index.find(peer);
    return other == nullptr ? std::nullopt : std::optional(node_drain_of(pass, peer, *other));
  };
  const std::string rollout =
      rollout_name(pass.index.rollout_key_of(a), a.change ? a.change->to : std::string(a.target.view()));
  evict_consumers(pass,
                  {node_drain_of(pass, node, a), gang_peers_of(pass, node), drain_of_peer,
                   fmt::format("GPU sharing changes (rollout {})", rollout)},
                  use);
}

}  // namespace gso
