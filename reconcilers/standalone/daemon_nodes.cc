#include "reconcilers/standalone/daemon_nodes.h"

#include <algorithm>

#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/model/labels.h"

namespace gso {
namespace {

const Operand* daemonset_of(const Pass& pass, const Pod* pod, const MpsDaemonChangeOnNode& mark) {
  const std::vector<Operand>& all = pass.index.discovery.standalone;
  const auto* owner = pod == nullptr ? nullptr : pod->meta.controller();
  const auto found = std::ranges::find_if(all, [&](const Operand& daemon) {
    if (owner != nullptr) return owner->uid.view() == daemon.uid;
    const std::string key = k8s::to_string(daemon.key);
    return (mark.change && mark.change->daemonset == key) || (mark.deferred && mark.deferred->daemonset == key);
  });
  return found == all.end() ? nullptr : &*found;
}

bool is_busy(const DaemonNode& node) {
  return node.assessment != nullptr && gso::is_busy(*node.assessment);
}

}  // namespace

bool DaemonNode::is_outdated() const {
  if (pod == nullptr || daemonset == nullptr || daemonset->newest_hash.empty()) return false;
  return pod->meta.labels.get(kRevisionHashLabel).value_or("") != daemonset->newest_hash;
}

std::vector<DaemonNode> read_daemon_nodes(const Pass& pass) {
  const World& world = pass.s.world;
  const std::vector<const SharingPolicy*> policies =
      policies_in_order(world, pass.index.built_in_policy, pass.index.held_policies);
  std::vector<DaemonNode> out;
  for (const std::string& name : pass.index.nodes_in(Bucket::standalone_mps)) {
    DaemonNode one;
    one.node = world.nodes.find(name);
    if (one.node == nullptr) continue;
    one.assessment = pass.index.find(name);
    one.pod = pod_of_standalone(pass.index.discovery.standalone, pass.index.pods_of(name));
    one.mark = mps_daemon_change_on(*one.node);
    one.daemonset = daemonset_of(pass, one.pod, one.mark);
    const SharingPolicy* governs = governing_policy(policies, *one.node);
    one.policy = governs != nullptr ? governs : &pass.index.built_in_policy;
    one.holder = holder_of(
        *one.node, one.assessment == nullptr ? PluginInstallation() : pass.index.installation_of(*one.assessment));
    if (one.holder == kStandaloneMpsChange) one.holder = {};
    out.push_back(std::move(one));
  }
  return out;
}

DaemonSlots::DaemonSlots(const Pass& pass, const std::vector<DaemonNode>& nodes) : pass_(&pass) {
  cluster_ = {pass.index.cluster.total, pass.index.cluster.busy};
  for (const auto& [name, tally] : pass.index.policies) policies_[name] = {tally.total, tally.busy};
  for (const DaemonNode& node : nodes) {
    Budget& policy = policies_[node.policy->meta.name];
    const bool counted = node.assessment != nullptr && node.assessment->phase != Phase::unmanaged;
    const bool out_of_service = node.in_change() || !node.node->ready || node.node->unschedulable;
    for (Budget* budget : {&cluster_, &policy}) {
      if (!counted) ++budget->total;
      if (out_of_service && !is_busy(node)) ++budget->busy;
    }
  }
  // Changes of profiles that begin in this pass, of whatever policy.
  for (const PlannedAction& planned : pass.plan.actions) {
    const auto* patch = std::get_if<PatchNode>(&planned.action);
    if (patch == nullptr || !patch->set_annotations.contains(std::string(kChangeAnnotation))) continue;
    ++cluster_.busy;
    for (auto& [name, budget] : policies_) ++budget.busy;
  }
}

bool DaemonSlots::free(const DaemonNode& node) const {
  if (is_busy(node) || !node.node->ready || node.node->unschedulable) return true;
  const Budget& policy = policies_.at(node.policy->meta.name);
  return cluster_.busy < pass_->s.settings.cluster_max_unavailable.of(cluster_.total) &&
         policy.busy < node.policy->rollout.max_unavailable.of(policy.total);
}

void DaemonSlots::take(const DaemonNode& node) {
  if (is_busy(node)) return;
  ++cluster_.busy;
  ++policies_[node.policy->meta.name].busy;
}

}  // namespace gso
