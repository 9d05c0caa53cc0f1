#include "reconcilers/explain/change_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "reconcilers/explain/node.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/node/node_step.h"
#include "reconcilers/node/pod_faults.h"

namespace gso {
namespace {

constexpr Component kComponents[] = {Component::mps, Component::gfd, Component::plugin};

// Of the pods that the change replaces, those for which `fits` is true.
template <class Fits>
std::vector<std::string> listed_pods(const FleetIndex::Impl& index, const Node& node, const NodeAssessment& a,
                                     Fits fits) {
  std::vector<std::string> out;
  const NodePods pods = sort_pods(index.installation_of(a), index.pods_of(node.meta.name));
  for (const Component component : kComponents) {
    const auto listed = a.change->pods.find(component);
    if (listed == a.change->pods.end()) continue;
    for (const Pod* pod : pods.of(component)) {
      if (listed->second.contains(pod->meta.uid) && fits(*pod))
        out.push_back(fmt::format("{} {}", to_string(component), pod->meta.name));
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> pods_to_go(const FleetIndex::Impl& index, const Node& node, const NodeAssessment& a) {
  return listed_pods(index, node, a, [](const Pod&) { return true; });
}

namespace {

// The step of the operator's first look at the node: no deadline has passed, and its workloads are not listed. Whether
// a deadline has passed is seen in what the operator did.
Step first_step(const World& world, const FleetIndex::Impl& index, const Node& node, const NodeAssessment& a,
                const NodePods& pods) {
  const Timers no_timers;
  const std::map<std::string, NodeConsumers> not_listed;
  const PlannerSettings settings;
  const Snapshot snapshot{world, {}, no_timers, not_listed, settings};
  const NodeView view{snapshot, node, a, index.installation_of(a), pods};
  return step({view,
               index.policy(world, a.policy.view()),
               profile_begun_for(view, index.record_or_null(), index.profiles),
               std::nullopt,
               std::nullopt,
               {}});
}

// No row applies yet: the node waits for pods to end or to become Ready, or does not show its profile.
std::string last_wait(const NodeAssessment& a, const NodePods& pods, const std::vector<std::string>& going) {
  if (!going.empty()) return fmt::format("waits for {} to end", going.front());
  if (!a.pods_ready) return first_problem(pods);
  return a.matches() ? "new profile is live; confirming" : "verifying: " + shown_difference(a);
}

}  // namespace

std::string change_step(const World& world, const FleetIndex::Impl& index, const Node& node, const NodeAssessment& a) {
  const NodePods pods = sort_pods(index.installation_of(a), index.pods_of(node.meta.name));
  const Step step = first_step(world, index, node, a, pods);
  const std::vector<std::string> left = pods_to_go(index, node, a);
  const std::vector<std::string> going =
      listed_pods(index, node, a, [](const Pod& pod) { return pod.meta.deletion_timestamp.has_value(); });
  const auto also_lost = [&](const std::string& text) { return node.ready ? text : "the node is not Ready; " + text; };
  switch (step.row) {
    case StepRow::c1:
      return fmt::format("{}: the operator waits until this ends", describe_holder(a.holder, node));
    case StepRow::forget_cordon:
      return "someone uncordoned the node; the change continues";
    case StepRow::c2:
      return "the change has failed";
    case StepRow::c3:
      if (a.cause == ChangeCause::ended) return "the node shows its profile without the change, and leaves it";
      return a.message.empty() ? "the profile changed before any pod was restarted: the node leaves its change"
                               : a.message;
    case StepRow::c4:
      return a.message;
    case StepRow::c5:
      return also_lost("the profile changed again: the pods to replace are listed again");
    case StepRow::c6:
      return also_lost(left.empty() ? "is being drained; then its label is written"
                                    : "is being drained; then " + left.front() + " is replaced");
    case StepRow::c7:
      return also_lost("the profile changed again: new pods that might have read the former text are replaced too");
    case StepRow::c8:
      return also_lost(last_wait(a, pods, going));
    case StepRow::c9: {
      const bool has_problem = !a.pods_ready && (!node.ready || !step.last_wait_for.empty());
      const std::string why = has_problem ? first_problem(pods) : step.last_wait_for;
      return also_lost(why.empty() ? fmt::format("{} is replaced next", left.front())
                                   : fmt::format("{}; then {} is replaced", why, left.front()));
    }
    case StepRow::c10:
      return "new profile is live; confirming";
    case StepRow::c11:
    case StepRow::c12:
    case StepRow::none:
      break;
  }
  return also_lost(last_wait(a, pods, going));
}

std::vector<NodeStep> steps_to(const World& world, const FleetIndex& index, std::string_view policy,
                               std::string_view id, std::size_t most) {
  std::vector<NodeStep> out;
  for (const std::string& name : index.impl().nodes_in(Bucket::changing)) {
    const NodeAssessment* a = index.assessment(name);
    const Node* node = world.nodes.find(name);
    const bool meant = a != nullptr && node != nullptr && a->change && !a->change->failed && a->policy == policy &&
                       fmt::format("{}/{}", index.impl().installation_of(*a).id(), a->key.view()) == id;
    if (!meant || out.size() >= most) continue;
    std::string who = blocking_pods_of(world, name);
    out.push_back(
        {name, phase_of(*a), who.empty() ? change_step(world, index.impl(), *node, *a) : std::move(who), node->ready});
  }
  return out;
}

}  // namespace gso
