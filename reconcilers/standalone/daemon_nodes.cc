#include "reconcilers/standalone/daemon_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/rollout/budgets.h"

namespace gso {
namespace {

const Operand* daemonset_of(const Index& index, const Pod* pod, const MpsDaemonChangeOnNode& mark) {
  const std::vector<Operand>& all = index.discovery.standalone;
  const auto* owner = pod == nullptr ? nullptr : pod->meta.controller();
  const auto found = std::ranges::find_if(all, [&](const Operand& daemon) {
    if (owner != nullptr) return owner->uid.view() == daemon.uid;
    const std::string key = k8s::to_string(daemon.key);
    return (mark.change && mark.change->daemonset == key) || (mark.deferred && mark.deferred->daemonset == key);
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

bool DaemonNode::is_outdated() const {
  if (pod == nullptr || daemonset == nullptr || daemonset->newest_hash.empty()) return false;
  return pod->meta.labels.get(kRevisionHashLabel).value_or("") != daemonset->newest_hash;
}

bool DaemonNode::has_failed() const {
  return mark.change && mark.change->failed && daemonset != nullptr && mark.change->to == daemonset->newest_hash;
}

bool DaemonNode::is_asked_again() const {
  const std::optional<MpsDaemonChange>& last = mark.change ? mark.change : mark.deferred;
  return last && asks_again(last->retry, retry_of(*policy));
}

RolloutKey DaemonNode::rollout() const {
  return {policy->meta.name, daemonset == nullptr ? "" : daemonset_subject(k8s::to_string(daemonset->key)), ""};
}

std::string why_not_ready(const DaemonNode& node) {
  if (node.pod == nullptr) return "it has no pod yet";
  for (const ContainerStatus* container : node.pod->all_containers()) {
    if (container->ready) continue;
    // Where the daemon was is no reason.
    const std::string_view said = container->last_message();
    if (!said.empty() && reported_pipe_directory(said).empty()) return std::string(said);
  }
  return fmt::format("pod {} is not Ready", k8s::to_string(node.pod->meta.key()));
}

std::vector<DaemonNode> read_daemon_nodes(const World& world, const Index& index) {
  const NodePolicies policies(index, world);
  std::vector<DaemonNode> out;
  for (const std::string& name : index.nodes_in(Bucket::standalone_mps)) {
    DaemonNode one;
    one.node = world.nodes.find(name);
    if (one.node == nullptr) continue;
    one.assessment = index.find(name);
    one.pod = pod_of_standalone(index.discovery.standalone, index.pods_of(name));
    const std::optional<Node> written = with_change_being_written(world, *one.node);
    one.mark = mps_daemon_change_on(written ? *written : *one.node);
    one.daemonset = daemonset_of(index, one.pod, one.mark);
    one.policy = &policies.of(*one.node);
    one.product = one.assessment != nullptr
                      ? std::string(one.assessment->product.view())
                      : std::string(unshared_product(one.node->meta.labels.get(kGpuProduct).value_or("")));
    one.busy = index.nodes_in(Bucket::busy).contains(name);
    one.holder =
        holder_of(*one.node, one.assessment == nullptr ? PluginInstallation() : index.installation_of(*one.assessment));
    if (one.holder == kStandaloneMpsChange) one.holder = {};
    out.push_back(std::move(one));
  }
  return out;
}

DaemonGroups groups_of(const std::vector<DaemonNode>& nodes) {
  DaemonGroups out;
  for (const DaemonNode& node : nodes) {
    BudgetCount& group = out[node.group()];
    ++group.total;
    group.busy += node.busy ? 1 : 0;
  }
  return out;
}

}  // namespace gso
