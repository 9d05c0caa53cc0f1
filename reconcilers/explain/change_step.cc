#include "reconcilers/explain/change_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/explain/node.h"
#include "reconcilers/node/node_phase.h"
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

std::string change_step(const FleetIndex::Impl& index, const Node& node, const NodeAssessment& a) {
  if (a.is_held()) return "held: the operator does not continue the change";
  if (!a.holder.empty()) return fmt::format("{}: the operator waits until this ends", a.holder);
  const NodePods pods = sort_pods(index.installation_of(a), index.pods_of(node.meta.name));
  if (!a.reason.empty() && can_stop_half_way(a, pods)) return a.message;
  const std::vector<std::string> left = pods_to_go(index, node, a);
  const std::vector<std::string> going =
      listed_pods(index, node, a, [](const Pod& pod) { return pod.meta.deletion_timestamp.has_value(); });
  std::string step;
  if (!going.empty()) {
    step = fmt::format("waits for {} to end", going.front());
  } else if (first_pods_remain(a, pods)) {
    step = left.empty() ? "is being drained; then its label is written"
                        : "is being drained; then " + left.front() + " is replaced";
  } else if (!a.pods_ready) {
    step = first_problem(pods);
    if (!left.empty()) step += fmt::format("; then {} is replaced", left.front());
  } else if (!left.empty()) {
    step = fmt::format("{} is replaced next", left.front());
  } else {
    step = a.matches() ? "new profile is live; confirming" : "verifying: " + shown_difference(a);
  }
  return node.ready ? step : "the node is not Ready; " + step;
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
        {name, phase_of(*a), who.empty() ? change_step(index.impl(), *node, *a) : std::move(who), node->ready});
  }
  return out;
}

}  // namespace gso
