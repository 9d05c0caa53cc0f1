#include "reconcilers/standalone/daemon_rollouts.h"

#include <fmt/format.h>

#include <utility>

#include "reconcilers/cluster/node_match.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/rollout/attempts.h"
#include "reconcilers/rollout/stops.h"

namespace gso {
namespace {

constexpr std::string_view kWaiting = "Waiting";

void count(const DaemonNode& node, DaemonRollout& out) {
  ++out.total;
  const bool serves = node.pod != nullptr && is_serving(*node.pod);
  const bool waits = node.in_change() || node.is_outdated();
  if (waits && !node.holder.empty()) {
    out.nodes.push_back(
        {node.name(), to_string(Phase::held), std::string(node.holder), describe_holder(node.holder, *node.node)});
  }
  if (node.in_change()) {
    ++out.in_change;
  } else if (waits) {
    ++(node.holder.empty() ? out.pending : out.blocked);
    if (node.mark.deferred) {
      note_waiting(out, node.name(), kDeferred,
                   fmt::format("its GPU clients did not end, or a person uncordoned it: the next try is at {}",
                               k8s::format_time(*node.mark.deferred->deferred_until)));
    }
  } else if (serves) {
    ++out.updated;
  } else if (node.daemonset->watches_host) {  // Its pods are replaced without a mark.
    ++out.in_change;
  }
}

// A person approves the template by its SharingRollout or, in a cluster without these, by the DaemonSet.
std::string how_to_approve(const Pass& pass, const DaemonNode& node) {
  if (pass.s.world.policies_served)
    return "gpu-sharing-operator rollout approve " + rollout_name(node.rollout(), node.daemonset->newest_hash);
  return fmt::format("kubectl annotate daemonset --namespace {} {} {}={}", node.daemonset->key.ns,
                     node.daemonset->key.name, kApprovedAnnotation, node.daemonset->newest_hash);
}

}  // namespace

DaemonRollouts count_daemons(const std::vector<DaemonNode>& nodes) {
  DaemonRollouts out;
  for (const DaemonNode& node : nodes) {
    if (node.daemonset == nullptr || node.daemonset->newest_hash.empty()) continue;
    DaemonRollout& rollout = out[node.rollout()];
    rollout.target = node.daemonset->newest_hash;
    count(node, rollout);
  }
  return out;
}

void note_failed(DaemonRollout& rollout, const std::string& node, std::string message) {
  --rollout.in_change;
  ++rollout.failed;
  rollout.nodes.push_back({node, kStateFailed, std::string(kStandaloneMpsFailed), std::move(message)});
}

void note_waiting(DaemonRollout& rollout, const std::string& node, std::string_view reason, std::string message) {
  rollout.nodes.push_back({node, kWaiting, std::string(reason), std::move(message)});
}

GateState daemon_gate(Pass& pass, const DaemonNode& node) {
  const std::string& target = node.daemonset->newest_hash;
  const SharingRollout* object = pass.s.world.rollouts.find(rollout_name(node.rollout(), target));
  const bool anew = object != nullptr && was_left(pass.index, *object);
  Switches switches = anew ? Switches() : switches_of(pass, node.rollout(), target, object);
  const DaemonSet* daemonset = pass.s.world.daemonsets.find(node.daemonset->key);
  switches.approved =
      switches.approved || (daemonset != nullptr && daemonset->meta.annotations.get(kApprovedAnnotation) == target);
  GateState gate = closed_by_people(pass, *node.policy, switches);
  if (gate.gate == Gate::approval) gate.message += ": " + how_to_approve(pass, node);
  if (!gate.is_open()) return gate;
  const std::string id = k8s::to_string(node.daemonset->key);
  const WallTime since = node.daemonset->newest_since;
  const WallTime settled = pass.ages.stored(stored_time(id, "template", since), since) +
                           std::chrono::ceil<WallTime::duration>(pass.s.settings.settle);
  if (pass.s.now < settled) {
    pass.look_again_in(settled - pass.s.now);
    return {Gate::settling, fmt::format("DaemonSet {} got its template less than {} ago", id,
                                        k8s::format_go_duration(pass.s.settings.settle))};
  }
  if (anew) return {Gate::new_attempt, "the SharingRollout of an earlier attempt is replaced first"};
  return {};
}

}  // namespace gso
