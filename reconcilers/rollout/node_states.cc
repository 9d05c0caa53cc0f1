// Nodes that load a profile by themselves: verified and recorded. Nodes that carry a state that is not theirs any more.
#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/model/labels.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

void plan_nodes_to_record(Pass& pass) {
  for (const std::string& name : pass.index.nodes_in(Bucket::self_loaded)) {
    const Node* node = pass.s.world.nodes.find(name);
    const NodeAssessment* a = pass.index.find(name);
    if (node == nullptr || a == nullptr || a->is_held() || !pass.plannable(*a)) continue;
    const bool surplus = a->verified.surplus && a->measured_gpus > 0 && loading_expired(pass, name, *a);
    if ((!a->matches() && !surplus) || !must_have_read(pass, name, *a)) {
      const RolloutSpec& rollout = pass.index.policy(pass.s.world, a->policy.view()).rollout;
      const Duration grace =
          a->cause == ChangeCause::moved ? std::min(kReloadGrace, rollout.verify_timeout) : rollout.verify_timeout;
      // Afterwards it is a candidate for a restart (plan_starts asks the same timer).
      (void)pass.held_for(loading_timer(name, *a), grace);
      continue;
    }
    if (!pass.takes_more()) {
      pass.keep(loading_timer(name, *a));
      continue;
    }
    PatchNode patch = patch_out(*node, *a);
    record_on(patch, *node, *a, std::string(a->target.view()));
    add_to(patch, label_change_to(*node, *a->expectation, a->has_labeller(), pass.s.settings));
    const bool restarted =
        pass.index.policy(pass.s.world, a->policy.view()).rollout.mechanism == Mechanism::daemonset_restart;
    const bool ungated = a->cause == ChangeCause::edited && !restarted;
    pass.add(std::move(patch), ungated ? kLoadedUngated : "Recorded", fmt::format("runs {}", a->target.view()), false,
             name);
    if (ungated) {
      pass.event(
          node_ref(name), true, kLoadedUngated, "Verify",
          fmt::format("pods were restarted by somebody else and loaded {} ({}) outside a rollout; it is verified",
                      a->target.view(), a->profile_ref.view()));
    }
  }
}

bool must_have_read(Pass& pass, const std::string& name, const NodeAssessment& a) {
  if (a.fresh_pods || a.cause == ChangeCause::edited) return true;
  const Node* node = pass.s.world.nodes.find(name);
  const auto since = text_since(pass, pass.index.installation_of(a), std::string(a.key.view()));
  if (node == nullptr || !since) return false;
  // Sidecars reload when the label moves: the text must have been projected by then.
  if (a.cause == ChangeCause::moved) return *since + pass.s.settings.projection <= pass.since(loading_timer(name, a));
  // Creation times are whole seconds. A pod of the very second in which the ConfigMap was made has waited for it: what
  // is mounted must be there. Of one that was edited since, it may have read the text of before.
  const ConfigMap* config_map = pass.s.world.configmaps.find(pass.index.installation_of(a).config_map_key());
  const bool never_edited = config_map != nullptr && config_map->data_time_known &&
                            config_map->data_changed <= config_map->meta.creation_timestamp;
  const WallTime from = never_edited ? *since - std::chrono::seconds(1) : *since;
  const NodeView view = view_of(pass, *node, a);
  for (const Component component : {Component::plugin, Component::gfd, Component::mps}) {
    for (const Pod* pod : view.pods.of(component)) {
      if (!pod->meta.deletion_timestamp && !created_after(*pod, from)) return false;
    }
  }
  return true;
}

TimerKey loading_timer(const std::string& node, const NodeAssessment& assessment) {
  return {Timer::loading, node, std::string(assessment.target.view())};
}

bool loading_expired(Pass& pass, const std::string& node, const NodeAssessment& a) {
  const RolloutSpec& rollout = pass.index.policy(pass.s.world, a.policy.view()).rollout;
  const Duration grace =
      a.cause == ChangeCause::moved ? std::min(kReloadGrace, rollout.verify_timeout) : rollout.verify_timeout;
  return pass.s.now - pass.since(loading_timer(node, a)) >= grace;
}

void plan_node_states(Pass& pass) {
  for (const std::string& name : pass.index.nodes_in(Bucket::block_to_write)) {
    const Node* node = pass.s.world.nodes.find(name);
    const NodeAssessment* a = pass.index.find(name);
    if (node == nullptr || a == nullptr || !pass.plannable(*a)) continue;
    if (a->change && cordon_is_relied_on(*node, pass.index.installation_of(*a)))
      continue;  // S7: the cordon goes with the rest.
    // What failed before has been replaced by something that cannot be: nothing of it is under way any more.
    PatchNode patch = patch_out(*node, *a);
    if (node->meta.labels.get(kStateLabel) != kStateBlocked) patch.set[std::string(kStateLabel)] = kStateBlocked;
    set_message(patch, a->message);
    pass.add(std::move(patch), a->reason, a->message, false, name);
    pass.event(node_ref(name), true, a->reason, "Block", a->message);
  }
  for (const std::string& name : pass.index.nodes_in(Bucket::stale_marks)) {
    const Node* node = pass.s.world.nodes.find(name);
    const NodeAssessment* a = pass.index.find(name);
    if (node == nullptr || a == nullptr || a->phase == Phase::unrecorded || !pass.plannable(*a)) continue;
    if (pass.index.nodes_in(Bucket::block_to_write).contains(name)) continue;  // By the patch that says so.
    PatchNode patch = patch_out(*node, *a);
    const bool nothing = patch.remove.empty() && patch.remove_annotations.empty() && !patch.unschedulable;
    if (!nothing) pass.add(std::move(patch), "Released", "nothing of a change is left on the node", false, name);
  }
}

namespace {

// Blocked by a driver upgrade that has drained it and taken the operands from it; only the policy's label is missing.
bool can_be_relabelled(const Pass& pass, const std::string& name, const Node& node, const NodeAssessment& a) {
  return a.phase == Phase::held && !a.is_unreadable() && a.label && !a.is_held() && node.ready && pass.plannable(a) &&
         pass.index.pods_of(name).empty();
}

void relabel_paused(Pass& pass, RolloutView& rollout, const std::set<std::string>& names) {
  for (const std::string& name : names) {
    const Node& node = *pass.s.world.nodes.find(name);
    const NodeAssessment& a = *pass.index.find(name);
    if (!can_be_relabelled(pass, name, node, a)) continue;
    const bool known = a.label->empty() || key_is_projected(pass, pass.index.installation_of(a), rollout.key.key);
    if (!known || !rollout.canary_passed(std::string(a.product.view()))) continue;
    if (!rollout.gate().is_open()) return;
    PatchNode patch;
    patch.name = name;
    patch.resource_version = node.meta.resource_version;
    add_to(patch, policy_label(node, config_label(pass.index.installation_of(a), node), a));
    pass.add(std::move(patch), "Relabel",
             fmt::format("policy {} selects profile {}; a driver upgrade has taken the node's pods away already",
                         a.policy.view(), *a.label),
             false, name);
  }
}

}  // namespace

// Its pods come back with the profile, for free. (What the MIG manager has in its hands may come back with other
// devices.)
void plan_paused_relabels(Pass& pass) {
  for (const auto& [key, unit] : pass.index.units) {
    const auto paused = unit.blocked.find(std::string(kDriverUpgrade));
    if (paused != unit.blocked.end()) relabel_paused(pass, rollout_of(pass, key), paused->second);
  }
}

}  // namespace gso
