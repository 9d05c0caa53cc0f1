// See daemonset_restart.h.
#include "reconcilers/rollout/daemonset_restart.h"

#include <fmt/format.h>

#include <map>

#include "reconcilers/cluster/config_map_times.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"

namespace gso {

namespace {

// The same revisions can return (an edit and its reversal), and pods that were created before an edit of any key might
// not have read it. So the time of the edit is part of what a DaemonSet is restarted for.
std::string identity(const RolloutView& rollout) {
  const Pass& pass = rollout.pass;
  std::string all;
  for (const auto& [other, profile_rollout] : pass.index.profile_rollouts) {
    if (other.config_map == rollout.key.config_map) all += rollout_name(other, target_of(profile_rollout)) + "|";
  }
  const ConfigMap* config_map = pass.s.world.configmaps.find(rollout.installation.config_map_key());
  if (config_map != nullptr && config_map->data_time_known) all += k8s::format_time(config_map->data_changed);
  return short_hash(all);
}

}  // namespace

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
      for (const Component component : {Component::gfd, Component::mps}) {
        if (steps_for(a.transition).replaces(component)) components[a.installation].insert(component);
      }
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

bool DaemonSetRestarts::plan(const RolloutView& rollout) {
  if (rollout.policy.rollout.mechanism != Mechanism::daemonset_restart) return false;
  const DueRestarts due = due_restarts(rollout);
  if (due.nodes.empty()) return false;
  objects_.ensure(rollout, rollout.target);
  for (const DaemonSet* daemonset : due.daemonsets) {
    const ObjectKey key = daemonset->meta.key();
    if (!restarted_.insert(key).second) continue;
    pass_.add(RestartDaemonSet{key, daemonset->meta.resource_version, due.restarted_for}, "Restart",
              fmt::format("key {} to {} by a restart of the DaemonSet", rollout.key.key, rollout.target), true);
  }
  return !due.daemonsets.empty() || wait_for_the_rest(rollout, due.nodes, due.restarted_for);
}

// Nodes that the DaemonSet's controller has not reached yet are not candidates (FollowingDaemonSet). The remaining
// nodes have new pods that might not have read the edit, for example because they were created in the same second, or
// by an API server whose clock is behind.
bool DaemonSetRestarts::wait_for_the_rest(const RolloutView& rollout, const std::set<std::string>& nodes,
                                          const std::string& restarted_for) {
  const TimerKey waits{Timer::left_behind, rollout.key.config_map,
                       fmt::format("{}/{}/{}", rollout.key.policy, rollout.key.key, restarted_for)};
  const Duration patience = rollout.policy.rollout.verify_timeout;
  if (pass_.held_for(waits, patience)) return false;
  pass_.finding(
      Severity::info, rollout_ref(rollout_name(rollout.key, rollout.target)), kNodesLeftBehind,
      fmt::format("the DaemonSets of ConfigMap {} were restarted for this revision, but the pods of {} are not "
                  "newer than the edit. If this lasts {}, the operator restarts these nodes one by one",
                  rollout.key.config_map, first_names({nodes.begin(), nodes.end()}),
                  k8s::format_go_duration(patience)));
  return true;
}

}  // namespace gso
