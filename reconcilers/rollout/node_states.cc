#include "reconcilers/rollout/repairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "reconcilers/model/labels.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/managed_keys.h"
#include "reconcilers/rollout/recorded_timers.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

namespace {

// If more nodes than this are affected, they share one Event on their policy.
constexpr std::int64_t kMostWithTheirOwn = 5;

// How long a node that loads by itself has to show its profile before its pods are replaced.
Duration loading_grace(const Pass& pass, const NodeAssessment& a) {
  const Duration timeout = pass.index.policy(pass.s.world, a.policy.view()).rollout.verify_timeout;
  return a.cause == ChangeCause::relabelled ? std::min(kReloadGrace, timeout) : timeout;
}

// When a moved label might have moved, if the operator has not seen it: it has just been started, and the text is so
// young that the operator before it need not have finished with the node. The earliest moment is when the text came.
// nullopt: the operator has seen the move, or matching labels decide, because the text is older than that.
std::optional<WallTime> earliest_move(const Pass& pass, const NodeAssessment& a) {
  const auto since = text_since(pass, pass.index.installation_of(a), std::string(a.key.view()));
  if (!since || pass.s.now - *since >= pass.s.settings.projection + loading_grace(pass, a)) return std::nullopt;
  return since;
}

// When the newest pod that loads profiles was created: the node has been loading the present text at least since then.
std::optional<WallTime> newest_pod(const Pass& pass, const std::string& name, const NodeAssessment& a) {
  const Node* node = pass.s.world.nodes.find(name);
  const auto text = text_since(pass, pass.index.installation_of(a), std::string(a.key.view()));
  if (node == nullptr || !text) return std::nullopt;
  std::optional<WallTime> newest;
  const NodeView view = view_of(pass, *node, a);
  for (const Component component : {Component::plugin, Component::gfd, Component::mps})
    for (const Pod* pod : view.pods.of(component))
      newest = std::max(newest.value_or(*text), WallTime(pod->meta.creation_timestamp));
  return newest;
}

// Since when the node has been loading, as far as the cluster shows it to an operator that has just been started. Later
// looks do not need it (model/plan_draft.h), and it costs a walk over the node's pods.
std::optional<WallTime> loading_seed(const Pass& pass, const std::string& name, const NodeAssessment& a) {
  if (!pass.s.first_look) return std::nullopt;
  if (a.cause != ChangeCause::relabelled) return newest_pod(pass, name, a);
  const auto recorded = recorded_since(pass, loading_timer(name, a));
  if (recorded) return recorded;
  // Its label has moved while its key had another text: the present text came later.
  if (has_recorded_move(pass, name)) return text_since(pass, pass.index.installation_of(a), std::string(a.key.view()));
  return earliest_move(pass, a);
}

WallTime loading_since(const Pass& pass, const std::string& name, const NodeAssessment& a) {
  return pass.ages.since(loading_timer(name, a), loading_seed(pass, name, a));
}

bool loads_ungated(const Pass& pass, const NodeAssessment& a) {
  const bool restarted =
      pass.index.policy(pass.s.world, a.policy.view()).rollout.mechanism == Mechanism::daemonset_restart;
  return a.cause == ChangeCause::edited && !restarted;
}

// Policies with many nodes that load a content outside a rollout, either at once, or one after the other while their
// DaemonSets replace the pods.
std::map<std::string, bool> with_many_ungated(const Pass& pass) {
  std::map<std::string, std::int64_t> counts;
  for (const auto& [name, node, a] : nodes_in(pass, Bucket::self_loaded))
    if (loads_ungated(pass, a)) ++counts[std::string(a.policy.view())];
  for (const auto& [key, profile_rollout] : pass.index.profile_rollouts)
    counts[key.policy] += profile_rollout.tally.of(Phase::following_daemonset);
  std::map<std::string, bool> out;
  for (const auto& [policy, count] : counts)
    if (count > kMostWithTheirOwn) out.emplace(policy, false);
  return out;
}

// `many`: policies with one Event for all nodes, and whether this pass has sent it already. Its note names no node and
// no number, so that the notes of later passes are occurrences of the same Event.
void report_ungated(Pass& pass, const std::string& name, const NodeAssessment& a, std::map<std::string, bool>& many) {
  const std::string what = fmt::format("{} ({}) outside a rollout", a.target.view(), a.profile_ref.view());
  const std::string policy(a.policy.view());
  const auto of_many = many.find(policy);
  if (of_many == many.end()) {
    pass.event(node_ref(name), true, kLoadedUngated, "Verify",
               fmt::format("someone else restarted its pods, which loaded {}; the operator verified the node", what));
    return;
  }
  if (std::exchange(of_many->second, true)) return;
  pass.event(
      policy_ref(pass.index.policy(pass.s.world, policy)), true, kLoadedUngated, "Verify",
      fmt::format("someone else restarted the pods of many nodes, which loaded {}; the operator verifies each node and "
                  "counts it in gpusharing_node_changes_total{{reason=\"LoadedUngated\"}}",
                  what));
}

}  // namespace

TimerKey loading_timer(std::string_view node, const NodeAssessment& assessment) {
  return {Timer::loading, node, assessment.target};
}

void run_loading_timers(Pass& pass) {
  const auto run = [&](const std::string& name, bool is_blocked) {
    const NodeAssessment* a = pass.index.find(name);
    if (a == nullptr || !pass.plannable(*a)) return;
    if (a->cause == ChangeCause::relabelled || (!is_blocked && a->holder.empty()))
      pass.ages.run(loading_timer(name, *a), loading_seed(pass, name, *a));
  };
  for (const std::string& name : pass.index.nodes_in(Bucket::self_loaded)) run(name, false);
  // A text that comes while a node with a moved label is Blocked, by an obstacle or by who holds it, is not one that
  // its sidecars have read.
  for (const auto& [key, profile_rollout] : pass.index.profile_rollouts) {
    for (const auto& [reason, names] : profile_rollout.blocked)
      for (const std::string& name : names) run(name, true);
  }
}

void run_loading_timers_of_all(Pass& pass) {
  for (const auto& [name, indexed] : pass.index.nodes) {
    const auto& a = indexed.assessment;
    if (!a || a->target.empty()) continue;
    pass.ages.run(loading_timer(name.view(), *a), pass.s.first_look ? earliest_move(pass, *a) : std::nullopt);
  }
}

std::set<std::string> plan_self_loaded_nodes(Pass& pass) {
  std::set<std::string> recorded;
  std::map<std::string, bool> many = with_many_ungated(pass);
  for (const auto& [name, node, a] : nodes_in(pass, Bucket::self_loaded)) {
    if (a.is_held() || !pass.plannable(a)) continue;
    // It had long enough to find its devices: their number has changed, and a restart would not bring others.
    const bool other_count = (has_more_devices(a) || has_read_with_fewer_devices(a)) && loading_expired(pass, name, a);
    if (!a.ready || (!a.matches() && !other_count) || !must_have_read(pass, name, a)) {
      // Afterwards the node is a candidate for a restart (plan_starts reads the same timer).
      (void)pass.ages.has_run_for(loading_timer(name, a), loading_grace(pass, a), loading_seed(pass, name, a));
      continue;
    }
    if (!pass.takes_more()) continue;
    PatchNode patch = patch_out(node, a);
    record_on(patch, node, a, std::string(a.target.view()));
    add_to(patch, label_change_to(node, *a.expectation, a.has_labeller(), {pass.s.settings, pass.s.now}));
    const bool ungated = loads_ungated(pass, a);
    pass.add(std::move(patch), ungated ? kLoadedUngated : "Recorded", fmt::format("runs {}", a.target.view()), false,
             name);
    if (ungated) report_ungated(pass, name, a, many);
    recorded.insert(name);
  }
  return recorded;
}

bool has_pod_from_the_future(const Pass& pass, const std::string& name, const NodeAssessment& a) {
  return is_from_the_future(sort_pods(pass.index.installation_of(a), pass.index.pods_of(name)), pass.s.now);
}

bool must_have_read(const Pass& pass, const std::string& name, const NodeAssessment& a) {
  if (has_pod_from_the_future(pass, name, a)) return false;
  if (a.fresh_pods || a.cause == ChangeCause::edited) return true;
  const Node* node = pass.s.world.nodes.find(name);
  const auto since = text_since(pass, pass.index.installation_of(a), std::string(a.key.view()));
  if (node == nullptr || !since) return false;
  // Sidecars reload when the label changes: the text must have been projected by then.
  if (a.cause == ChangeCause::relabelled && *since + pass.s.settings.projection <= loading_since(pass, name, a))
    return true;
  // A pod created in the same second as the ConfigMap has waited for it, because a mounted ConfigMap must exist. If the
  // ConfigMap was edited since, such a pod might have read the text before the edit.
  const ConfigMap* config_map = pass.s.world.configmaps.find(pass.index.installation_of(a).config_map_key());
  const bool never_edited = config_map != nullptr && config_map->data_time_known &&
                            config_map->data_changed <= config_map->meta.creation_timestamp;
  const auto has_read = [&](const Pod& pod) {
    return created_after(pod,
                         never_edited ? *since - std::chrono::seconds(1) : *since + clock_difference(pass.s.settings));
  };
  const NodeView view = view_of(pass, *node, a);
  for (const Component component : {Component::plugin, Component::gfd, Component::mps}) {
    for (const Pod* pod : view.pods.of(component))
      if (!pod->meta.deletion_timestamp && !has_read(*pod)) return false;
  }
  return true;
}

bool loading_expired(const Pass& pass, const std::string& node, const NodeAssessment& a, Duration longer) {
  return pass.s.now - loading_since(pass, node, a) >= loading_grace(pass, a) + longer;
}

void plan_node_states(Pass& pass, const std::set<std::string>& recorded) {
  for (const auto& [name, node, a] : nodes_in(pass, Bucket::block_to_write)) {
    // A person who holds the node wants nothing written to it. S7: every holder relies on the cordon.
    if (!pass.plannable(a) || a.is_held() || (a.change && !a.holder.empty())) continue;
    // The failed target was replaced by one that is Blocked: no change is in progress.
    PatchNode patch = patch_out(node, a);
    if (node.meta.labels.get(kStateLabel) != kStateBlocked) patch.set[std::string(kStateLabel)] = kStateBlocked;
    const Reason& why = a.obstacle;
    set_message(patch, why.message);
    pass.add(std::move(patch), why.code, why.message, false, name);
    pass.event(node_ref(name), true, why.code, "Block", why.message);
  }
  for (const auto& [name, node, a] : nodes_in(pass, Bucket::stale_marks)) {
    if (a.phase == Phase::unrecorded || !pass.plannable(a) || a.is_held()) continue;
    // The patch that blocks or records the node does this, too.
    if (pass.index.nodes_in(Bucket::block_to_write).contains(name) || recorded.contains(name)) continue;
    PatchNode patch = patch_out(node, a);
    const bool nothing = patch.remove.empty() && patch.remove_annotations.empty() && !patch.unschedulable;
    if (!nothing) pass.add(std::move(patch), "Released", "removes what a change left on the node", false, name);
  }
}

namespace {

void relabel_paused(Pass& pass, const RolloutView& rollout, const std::set<std::string>& names) {
  for (const std::string& name : names) {
    const Node& node = *pass.s.world.nodes.find(name);
    const NodeAssessment& a = *pass.index.find(name);
    // The driver upgrade has drained the node and deleted its operand pods; only the policy's label is missing.
    const bool is_drained = a.obstacle.code == kDriverUpgrade && pass.index.pods_of(name).empty();
    if (!is_drained || !a.label || a.is_held() || !node.ready || !pass.plannable(a)) continue;
    const bool known = a.label->empty() || key_is_projected(pass, pass.index.installation_of(a), rollout.key.key);
    if (!known || !rollout.canary_passed(std::string(a.product.view()))) continue;
    if (!rollout.gate().is_open()) return;
    PatchNode patch{.name = name, .resource_version = node.meta.resource_version};
    add_to(patch, policy_label(node, config_label(pass.index.installation_of(a), node), a));
    pass.add(std::move(patch), "Relabel",
             fmt::format("policy {} selects profile {}; a driver upgrade has already removed the node's pods",
                         a.policy.view(), a.label->view()),
             false, name);
  }
}

}  // namespace

// The pods that are created after the driver upgrade load the profile without another restart. (Nodes in a MIG change
// are excluded, because they might have other devices afterwards.)
void plan_paused_relabels(Pass& pass) {
  for (const auto& [key, profile_rollout] : pass.index.profile_rollouts) {
    const auto paused = profile_rollout.blocked.find(std::string(kDriverUpgrade));
    if (paused != profile_rollout.blocked.end()) relabel_paused(pass, rollout_of(pass, key), paused->second);
  }
}

}  // namespace gso
