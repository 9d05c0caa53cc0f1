#include "reconcilers/rollout/gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/slots.h"

namespace gso {

namespace {

// The same revisions can return (an edit and its reversal), and pods that were created before an edit of any key might
// not have read it. So the time of the edit is part of what a DaemonSet is restarted for.
std::string identity(const RolloutView& rollout) {
  const Pass& pass = rollout.pass;
  std::string all;
  for (const auto& [other, profile_rollout] : pass.index.profile_rollouts)
    if (other.config_map == rollout.key.config_map) all += rollout_name(other, target_of(profile_rollout)) + "|";
  const ConfigMap* config_map = pass.s.world.configmaps.find(rollout.installation.config_map_key());
  if (config_map != nullptr && config_map->data_time_known) all += k8s::format_time(config_map->data_changed);
  return short_hash(all);
}

// What a rollout needs from its DaemonSets now.
struct DueRestarts {
  std::set<std::string> nodes;  // Pending nodes that need no label: they get new pods from their DaemonSets.
  std::string restarted_for;    // The revisions and the edit; empty without such nodes.
  std::vector<const DaemonSet*> daemonsets;  // Those that were not restarted for them yet.
};

DueRestarts due_restarts(const RolloutView& rollout) {
  const Pass& pass = rollout.pass;
  DueRestarts out;
  std::map<std::size_t, std::set<Component>> components;  // By installation: several can mount the ConfigMap.
  for (const auto& [product, group] : rollout.profile_rollout.groups) {
    for (const auto& [available, name] : group.pending) {
      const NodeAssessment& a = *pass.index.find(name);
      if (a.label || a.change) continue;
      out.nodes.insert(name);
      components[a.installation].insert(Component::plugin);
      for (const Component component : {Component::gfd, Component::mps})
        if (steps_for(a.transition).replaces(component)) components[a.installation].insert(component);
    }
  }
  if (components.empty()) return out;
  out.restarted_for = identity(rollout);
  for (const auto& [installation, wanted] : components) {
    for (const Operand& operand : pass.index.discovery.installations[installation].operands) {
      const DaemonSet* daemonset = pass.s.world.daemonsets.find(operand.key);
      if (daemonset != nullptr && wanted.contains(operand.component) && daemonset->restarted_for != out.restarted_for)
        out.daemonsets.push_back(daemonset);
    }
  }
  return out;
}

// Nodes that the DaemonSet's controller has not reached yet are not candidates (FollowingDaemonSet). The remaining
// nodes have new pods that might not have read the edit, for example because they were created in the same second, or
// by an API server whose clock is behind.
bool wait_for_the_rest(const RolloutView& rollout, const DueRestarts& due) {
  const TimerKey waits{Timer::left_behind, rollout.key.config_map,
                       fmt::format("{}/{}/{}", rollout.key.policy, rollout.key.key, due.restarted_for)};
  const Duration patience = rollout.policy.rollout.verify_timeout;
  if (rollout.pass.held_for(waits, patience)) return false;
  rollout.pass.finding(
      Severity::info, rollout_ref(rollout_name(rollout.key, rollout.target)), kNodesLeftBehind,
      fmt::format("the DaemonSets of ConfigMap {} were restarted for this revision, but the pods of {} are not "
                  "newer than the edit. If this lasts {}, the operator restarts these nodes one by one",
                  rollout.key.config_map, first_names({due.nodes.begin(), due.nodes.end()}),
                  k8s::format_go_duration(patience)));
  return true;
}

}  // namespace

bool restart_daemonsets(const RolloutView& rollout) {
  if (rollout.policy.rollout.mechanism != Mechanism::daemonset_restart) return false;
  const DueRestarts due = due_restarts(rollout);
  if (due.nodes.empty()) return false;
  Pass& pass = rollout.pass;
  ensure_object(pass, rollout, rollout.target);
  for (const DaemonSet* daemonset : due.daemonsets) {
    const ObjectKey key = daemonset->meta.key();
    // Several rollouts can share a DaemonSet.
    if (plans<RestartDaemonSet>(pass, [&](const RestartDaemonSet& other) { return other.daemonset == key; })) continue;
    pass.add(RestartDaemonSet{key, daemonset->meta.resource_version, due.restarted_for}, "Restart",
             fmt::format("key {} to {} by a restart of the DaemonSet", rollout.key.key, rollout.target), true);
  }
  return !due.daemonsets.empty() || wait_for_the_rest(rollout, due);
}

namespace {

// The first node by name; empty: nos partitions no node that the installation's DaemonSets select.
std::string first_node_of_nos(const World& world, const PluginInstallation& installation) {
  std::string first;
  for (const auto& [key, node] : world.nodes.all()) {
    if (!is_partitioned_by_nos(*node) || (!first.empty() && first < key.name)) continue;
    const bool selected = std::ranges::any_of(
        installation.operands, [&](const Operand& operand) { return selects(operand, *node, false) != Selects::no; });
    if (selected) first = key.name;
  }
  return first;
}

// Why the DaemonSets of one installation cannot be restarted; empty: they can be.
std::string installation_obstacle(const World& world, const PluginInstallation& installation) {
  if (installation.announcement_unknown) {
    return fmt::format(
        "the operator is not allowed to read ClusterPolicy {}, so it cannot know whether the GPU Operator is also "
        "changing these DaemonSets: grant get, list and watch on clusterpolicies.nvidia.com, or use mechanism "
        "NodeByNode",
        installation.owner);
  }
  for (const Operand& operand : installation.operands) {
    if (operand.on_delete) {
      return fmt::format(
          "DaemonSet {} has updateStrategy OnDelete, so a restart of the DaemonSet would replace no pod: use "
          "mechanism NodeByNode",
          k8s::to_string(operand.key));
    }
  }
  if (std::string node = first_node_of_nos(world, installation); !node.empty()) {
    return fmt::format(
        "a restart of the DaemonSets in namespace {} would also restart their pods on node {}, whose GPUs nos "
        "partitions: exclude the nodes of nos with a nodeAffinity (NotIn), or use mechanism NodeByNode",
        installation.ns, node);
  }
  return {};
}

// Another policy of this ConfigMap does not restart DaemonSets; empty: all do.
std::string policy_obstacle(const RolloutView& rollout) {
  const Pass& pass = rollout.pass;
  for (const auto& [key, other] : pass.index.profile_rollouts) {
    if (key.config_map != rollout.key.config_map) continue;
    const SharingPolicy& policy = pass.index.policy(pass.s.world, key.policy);
    const bool observes = pass.s.settings.mode_of(policy) == PolicyMode::observe;
    if (policy.rollout.mechanism == Mechanism::daemonset_restart && !observes) continue;
    return fmt::format("a restart of the DaemonSets in namespace {} would also restart nodes of policy {}, which {}",
                       rollout.installation.ns, key.policy,
                       observes ? "is in mode Observe: its nodes must not change" : "must change one by one");
  }
  return {};
}

// The first of the rollout's pending nodes by name; empty: none is pending.
std::string first_pending(const ProfileRollout& nodes) {
  std::string first;
  for (const auto& [product, group] : nodes.groups) {
    for (const auto& [available, name] : group.pending)
      if (first.empty() || name < first) first = name;
  }
  return first;
}

// Nodes wait for another rollout of the ConfigMap, which a person or failures have stopped: new pods would read its
// text. Only its stop is read, not its gate, because the gate asks this function.
std::string stopped_rollout(const RolloutView& rollout) {
  const Pass& pass = rollout.pass;
  for (const auto& [key, nodes] : pass.index.profile_rollouts) {
    if (key.config_map != rollout.key.config_map || key == rollout.key) continue;
    const std::string waiting = first_pending(nodes);
    if (waiting.empty()) continue;
    const std::optional<Reason>& stop = rollout_of(pass, key).stop();
    if (!stop) continue;
    return fmt::format(
        "a restart of the DaemonSets in namespace {} would also restart node {}, which waits for key {} of policy {} "
        "({}: {}): end this stop, or use mechanism NodeByNode",
        rollout.installation.ns, waiting, key.key, key.policy, stop->code, stop->message);
  }
  return {};
}

// Why a node must stay as it is: what the chain of checks, a holder or KAI would say if the node itself started now. A
// label that another actor owns stays as it is under a restart, too.
std::optional<Reason> untouchable(Pass& pass, const std::string& name, const NodeAssessment& a) {
  const Node* node = pass.s.world.nodes.find(name);
  if (node == nullptr || a.phase == Phase::unmanaged) return std::nullopt;
  if (!a.holder.empty()) return Reason{a.holder, describe_holder(a.holder, *node)};
  if (a.is_blocked() && a.obstacle.code != kLabelOwnedByOther) return a.obstacle;
  if (!a.taint.empty()) return Reason{kTaintNotTolerated, fmt::format("it has the taint {}", a.taint.view())};
  if (auto hindrance = kai_hindrance(pass, name, a)) return Reason{kKaiReservations, std::move(hindrance->why)};
  return std::nullopt;
}

// The first node by name of those that new pods would reach and that must stay as they are. All are asked, so that the
// lookups of KAI's use are requested together.
std::string node_obstacle(const RolloutView& rollout) {
  Pass& pass = rollout.pass;
  std::string first;
  Reason why;
  for (const auto& [name, node] : pass.index.nodes) {
    if (!node.assessment || pass.index.installation_of(*node.assessment).id() != rollout.key.config_map) continue;
    auto found = untouchable(pass, std::string(name.view()), *node.assessment);
    if (!found || (!first.empty() && first < name.view())) continue;
    first = name.view();
    why = *std::move(found);
  }
  if (first.empty()) return {};
  return fmt::format(
      "a restart of the DaemonSets in namespace {} would also restart node {}, which must stay as it is ({}: {}): "
      "remove this cause, or use mechanism NodeByNode",
      rollout.installation.ns, first, why.code, why.message);
}

}  // namespace

std::string restart_obstacle(const RolloutView& rollout) {
  const Pass& pass = rollout.pass;
  if (rollout.policy.rollout.mechanism != Mechanism::daemonset_restart) return {};
  // Nodes that need a label or a repair, or that an earlier restart has left behind, change one by one.
  if (due_restarts(rollout).daemonsets.empty()) return {};
  for (const PluginInstallation& installation : pass.index.discovery.installations) {
    if (installation.id() != rollout.key.config_map) continue;
    if (std::string why = installation_obstacle(pass.s.world, installation); !why.empty()) return why;
  }
  if (std::string why = policy_obstacle(rollout); !why.empty()) return why;
  std::string why = stopped_rollout(rollout);
  return why.empty() ? node_obstacle(rollout) : why;
}

}  // namespace gso
