#include "reconcilers/node/node_phase.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "reconcilers/cluster/cluster_pods.h"
#include "reconcilers/cluster/label_owners.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/node_patch.h"
#include "reconcilers/reasons/names.h"

namespace gso {

std::string_view to_string(Phase phase) {
  constexpr std::array<std::string_view, kPhases> kNames{"Unmanaged", "Unrecorded", "UpToDate",  "Pending",
                                                         "Draining",  "Restarting", "Verifying", "FollowingDaemonSet",
                                                         "Failed",    "Blocked",    "Held"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::size_t pods_left(const NodeChange& change, const NodePods& pods, Component component, bool terminating) {
  const auto listed = change.pods.find(component);
  if (listed == change.pods.end()) return 0;
  return static_cast<std::size_t>(std::ranges::count_if(pods.of(component), [&](const Pod* pod) {
    return listed->second.contains(pod->meta.uid) && (terminating || !pod->meta.deletion_timestamp);
  }));
}

bool any_listed_left(const NodeChange& change, const NodePods& pods, bool terminating) {
  return std::ranges::any_of(change.pods,
                             [&](const auto& entry) { return pods_left(change, pods, entry.first, terminating) > 0; });
}

bool any_left_of(const std::vector<Component>& components, const NodeChange& change, const NodePods& pods,
                 bool terminating) {
  return std::ranges::any_of(components,
                             [&](Component component) { return pods_left(change, pods, component, terminating) > 0; });
}

bool has_begun(const NodeChange& change, const NodePods& pods, bool without_mps) {
  if (change.touched != Touched::unknown) return change.touched == Touched::yes;
  return std::ranges::any_of(change.pods, [&](const auto& entry) {
    const auto& [component, listed] = entry;
    if (without_mps && component == Component::mps && change.pods.size() > 1) return false;
    return pods_left(change, pods, component, false) < listed.size();
  });
}

bool is_touched(const NodeAssessment& facts, const NodePods& pods) {
  const NodeChange& change = *facts.change;
  // The label is written, and marked, before the first pod is deleted. Pods that are gone before that were deleted by
  // somebody else, and their successors have read the former key: the node can still leave the change.
  if (change.cause == ChangeCause::policy && facts.label && change.touched != Touched::yes) return false;
  // The node has another key than the change was begun for. GFD can then take mps.capable away, and the DaemonSet
  // controller ends the MPS pod: only another listed pod that is gone shows that the operator deleted any.
  if (has_begun(change, pods, facts.key != std::string_view(change.key))) return true;
  // An earlier release wrote the label without the flag, and a person can write it as well: then nothing remains to be
  // written, and the node's own label chooses the change's key. If the policy drops the key before that, nothing
  // remains to be written either, but the node has its former key.
  if (change.cause == ChangeCause::policy) return !facts.label && facts.key == std::string_view(change.key);
  const bool lists_none = std::ranges::all_of(change.pods, [](const auto& entry) { return entry.second.empty(); });
  return lists_none && !facts.label;
}

Phase phase_in_change(const NodeAssessment& facts, const NodePods& pods) {
  if (facts.change->failed) return Phase::failed;
  if (!is_touched(facts, pods)) return Phase::draining;
  return facts.label || any_listed_left(*facts.change, pods, true) ? Phase::restarting : Phase::verifying;
}

Phase phase_of(const NodeAssessment& facts) {
  if (facts.phase == Phase::blocked) {
    // Not an obstacle of the change, but somebody who holds the node, or an annotation that only a person can judge.
    constexpr std::string_view kHolds[] = {kDriverUpgrade,    kMigChange,          kQuarantined,
                                           kChangeUnreadable, kDeferralUnreadable, kOwnedUnreadable};
    const bool is_hold = std::ranges::find(kHolds, facts.obstacle.code) != std::end(kHolds);
    return is_hold ? Phase::held : Phase::blocked;
  }
  const bool needs_something =
      facts.phase == Phase::pending || facts.phase == Phase::failed || facts.in_change() || facts.loads_by_itself();
  return needs_something && !facts.holder.empty() ? Phase::held : facts.phase;
}

std::string_view shown_reason(const NodeAssessment& facts) {
  const bool by_holder = phase_of(facts) == Phase::held && !facts.holder.empty() && !facts.is_unreadable();
  if (by_holder) return facts.holder;
  return facts.is_blocked() || facts.in_change() ? std::string_view(facts.obstacle.code) : std::string_view();
}

std::int64_t NodeUse::requested(std::string_view resource) const {
  std::int64_t sum = 0;
  for (const auto* pods : {&waiting, &daemonset_owned}) {
    for (const Pod* pod : *pods)
      for (const auto& [name, count] : pod->gpu_requests) sum += name == resource ? count : 0;
  }
  return sum;
}

std::string NodeUse::names() const {
  return waiting.empty() && !unknown.empty() ? "pods that are not known" : names_of(waiting);
}

std::string names_of(const std::vector<const Pod*>& pods) {
  std::vector<std::string> names;
  names.reserve(pods.size());
  for (const Pod* pod : pods) names.push_back(k8s::to_string(pod->meta.key()));
  std::ranges::sort(names);
  return first_names(names);
}

NodeUse use_of(const Snapshot& snapshot, const std::string& node, Duration within) {
  NodeUse out;
  auto it = snapshot.consumers.find(node);
  if (it == snapshot.consumers.end()) return out;
  // As precise as the timers by which `within` is measured.
  const auto age = std::chrono::floor<WallTime::duration>(snapshot.mono - it->second.listed_at);
  out.listed = age <= std::min(within, kListingFresh) && !it->second.failed;
  out.fresh = out.listed || it->second.failed;
  out.unknown = it->second.unknown;
  for (const Pod& pod : it->second.pods) {
    if (!is_gpu_consumer(pod, snapshot.world)) continue;
    const auto* owner = pod.meta.controller();
    // Mirror pods belong to the Node and cannot be evicted either.
    const bool stays = owner != nullptr && (owner->kind == "DaemonSet" || owner->kind == "Node");
    (stays ? out.daemonset_owned : out.waiting).push_back(&pod);
  }
  auto by_name = [](const Pod* a, const Pod* b) { return a->meta.key() < b->meta.key(); };
  std::ranges::sort(out.waiting, by_name);
  std::ranges::sort(out.daemonset_owned, by_name);
  return out;
}

Drain drain_for(const NodeAssessment& assessment, Transition transition, WorkloadMode mode) {
  if (mode == WorkloadMode::interrupt) return Drain::nothing;
  if (steps_for(transition).disruptive) return Drain::idle;
  return assessment.shrinks ? Drain::fits : Drain::nothing;
}

bool drained(Drain drain, const NodeUse& use, const NodeAssessment& assessment) {
  return (assessment.expectation || drain != Drain::fits) && drained(drain, use, served_afterwards(assessment));
}

bool drained(Drain drain, const NodeUse& use, const std::map<std::string, std::int64_t>& serves) {
  if (drain == Drain::nothing) return true;
  if (!use.fresh || !use.unknown.empty()) return false;
  if (drain == Drain::idle) return use.waiting.empty();
  return std::ranges::all_of(serves, [&](const auto& entry) { return use.requested(entry.first) <= entry.second; });
}

bool starts_live(Drain drain, bool is_drained) {
  return is_drained && drain != Drain::idle;
}

bool start_cordons(const std::optional<bool>& asked, Transition transition, bool live) {
  return asked.value_or(!live || steps_for(transition).disruptive);
}

std::string_view baseline_excuse(const NodeAssessment& a) {
  if (a.at_install == AtInstall::drifted) return kPreexistingDrift;
  return a.at_install == AtInstall::unproven && a.verified.serving ? kUnproven : std::string_view();
}

std::string_view state_name(const NodeAssessment& a) {
  if (!drifts(a)) return to_string(phase_of(a));
  const std::string_view excuse = baseline_excuse(a);
  return excuse.empty() ? kDrift : excuse;
}

std::string drift_text(const NodeAssessment& a) {
  std::string text = a.labels_missing.empty() ? shown_difference(a) : std::string(a.labels_missing.view());
  const std::string_view obstacle = a.reload_obstacle.view();
  const bool says_why = obstacle.empty() || text.find(obstacle) != std::string::npos;
  return says_why ? text : fmt::format("{}; its pods are not restarted: {}", text, obstacle);
}

std::optional<std::int64_t> served_afterwards(const NodeAssessment& assessment, std::string_view resource) {
  if (!assessment.expectation) return std::nullopt;
  const std::string name(resource);
  const auto counted = assessment.expectation->capacity.find(name);
  if (counted != assessment.expectation->capacity.end()) return counted->second;
  const auto uncounted = assessment.expectation->divisible.find(name);
  if (uncounted == assessment.expectation->divisible.end()) return std::nullopt;
  return uncounted->second * std::max<std::int64_t>(1, assessment.measured_gpus);
}

std::int64_t amount_of(const ResourceCounts& counts, std::string_view resource) {
  const auto at = counts.find(Interned(resource));
  return at == counts.end() ? 0 : at->second;
}

std::map<std::string, std::int64_t> served_with(const NodeExpectation& expectation, std::int64_t measured_gpus) {
  std::map<std::string, std::int64_t> out = expectation.capacity;
  for (const auto& [resource, replicas] : expectation.divisible)
    out[resource] = replicas * std::max<std::int64_t>(1, measured_gpus);
  return out;
}

std::map<std::string, std::int64_t> served_afterwards(const NodeAssessment& assessment) {
  if (!assessment.expectation) return {};
  return served_with(*assessment.expectation, assessment.measured_gpus);
}

void count_amounts(const Node& node, const std::map<std::string, std::int64_t>& serves, AmountChanges& out) {
  for (const auto& [resource, after] : serves)
    if (const std::int64_t before = amount_of(node.capacity, resource); before != after)
      ++out[{resource, before, after}];
}

std::vector<std::string> describe(const AmountChanges& amounts) {
  std::vector<std::string> out;
  for (const auto& [amount, nodes] : amounts) {
    out.push_back(fmt::format("{} {} -> {} on {}", amount.resource, amount.before, amount.after,
                              nodes == 1 ? "one node" : fmt::format("each of {} nodes", nodes)));
  }
  return out;
}

std::optional<Deferral> applying_deferral(const Node& node, const NodeAssessment& a, const SharingPolicy* policy) {
  std::optional<Deferral> deferral = deferral_of(node);
  const std::string_view retry = policy == nullptr ? std::string_view() : retry_of(*policy);
  if (!deferral || deferral->to != a.target.view() || asks_again(deferral->retry, retry)) return std::nullopt;
  const bool evicts = policy != nullptr && policy->rollout.workloads == WorkloadMode::evict;
  return evicts && !deferral->evicts ? std::nullopt : deferral;
}

Duration deferral_length(Duration idle_timeout) {
  constexpr Duration kNoPatience = std::chrono::seconds(10);
  return idle_timeout < kNoPatience ? std::chrono::minutes(1) : idle_timeout;
}

// --- Pods with a fault that only a new pod fixes.

bool is_config_manager(std::string_view container) {
  return container.find("config-manager") != std::string_view::npos || container.ends_with("-init") ||
         container.ends_with("-sidecar");
}

namespace {

using std::chrono::minutes;
using std::chrono::seconds;

struct Sign {
  std::string_view message;
  std::string_view name;
  std::string_view what;
};
// Source: the errors of the device plugin's cmd/config-manager.
constexpr Sign kSigns[] = {
    {"does not exist", "StaleProjection", "does not see a key that the ConfigMap has"},
    {"symlink", "DanglingSymlink", "cannot replace the link to a key that no longer exists"},
    {"file exists", "DanglingSymlink", "cannot replace the link to a key that no longer exists"},
    {"no process found", "SignalFailed", "cannot notify the main container about its new profile"},
    {"index out of range", "SignalFailed", "cannot notify the main container about its new profile"},
};

std::optional<PodFault> pod_fault_of(const ContainerStatus& container, bool init, const Pod& pod, Duration projection) {
  if (!is_config_manager(container.name.view())) return std::nullopt;
  const std::optional<WallTime> runs_since = container.running ? container.started_at : std::nullopt;
  if (container.running && (!runs_since || container.last_exit_code() == 0)) return std::nullopt;
  // Kubelet shows a container that was created and never started as waiting for no reason: a containerd that is
  // restarted at that moment loses it.
  const bool created = init && !container.running && pod.phase == "Pending" && container.waiting_reason.empty() &&
                       container.last_exit_code() == 0 && container.restarts == 0;
  if (created) {
    return PodFault{"StuckInCreated", fmt::format("container {} was created and never started", container.name.view()),
                    minutes(2)};
  }
  if (container.restarts == 0 && container.last_exit_code() == 0) return std::nullopt;
  for (const Sign& sign : kSigns) {
    if (container.last_message().find(sign.message) == std::string_view::npos) continue;
    return PodFault{sign.name,
                    fmt::format("container {} {}: {}", container.name.view(), sign.what, container.last_message()),
                    sign.name == "StaleProjection" ? projection : Duration(seconds(30)), runs_since};
  }
  // Between two crashes it has ended, waits, and runs for a moment: that is one fault, which lasts.
  constexpr std::int64_t kRestarts = 3;
  const bool crashes = waiting_for(container.waiting_reason.view()) == Waiting::crashes ||
                       (container.waiting_reason.empty() && container.last_exit_code() != 0);
  if (!crashes || container.restarts < kRestarts) return std::nullopt;
  return PodFault{"ConfigManagerCrashLoop",
                  fmt::format("container {} has ended {} times, the last time with exit code {}", container.name.view(),
                              container.restarts, container.last_exit_code()),
                  minutes(1), runs_since};
}

}  // namespace

std::optional<PodFault> pod_fault_of(const Pod& pod, Duration projection) {
  for (const ContainerStatus& container : pod.init_containers)
    if (auto found = pod_fault_of(container, true, pod, projection)) return found;
  for (const ContainerStatus& container : pod.containers)
    if (auto found = pod_fault_of(container, false, pod, projection)) return found;
  return std::nullopt;
}

std::string first_problem(const NodePods& pods) {
  for (Component component : {Component::plugin, Component::gfd, Component::mps}) {
    for (const Pod* pod : pods.of(component)) {
      if (is_serving(*pod) || pod->meta.deletion_timestamp) continue;
      for (const ContainerStatus* container : pod->all_containers()) {
        const std::string_view reason = container->waiting_reason.view();
        const std::string_view message = container->last_message();
        if (reason.empty() && message.empty()) continue;
        return fmt::format("pod {} container {}: {}{}{}", pod->meta.name, container->name.view(), reason,
                           reason.empty() || message.empty() ? "" : " ", message);
      }
      return fmt::format("pod {} is not Ready", pod->meta.name);
    }
  }
  return "a pod of the plugin, GFD or MPS is missing";
}

}  // namespace gso
