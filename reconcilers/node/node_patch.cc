#include "reconcilers/node/node_patch.h"

#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/node/node_labels.h"

namespace gso {

std::vector<Component> first_components(const NodeAssessment& facts, Transition kind) {
  std::vector<Component> out = steps_for(kind).first;
  if (facts.labeller == Labeller::gfd) return out;
  std::erase(out, Component::gfd);
  // Without GFD the operator itself must end the MPS pod.
  if (kind == Transition::leave_mps) out.push_back(Component::mps);
  return out;
}

ListedPods pods_to_replace(const NodeView& view, const ChangePlan& plan) {
  ListedPods out;
  auto list = [&](Component component) {
    auto& uids = out[component];
    for (const Pod* pod : view.pods.of(component)) uids.insert(pod->meta.uid);
  };
  // After a label change plugin and GFD reload by themselves; only a running MPS daemon needs the full order of
  // restarts.
  const bool reloads = plan.cause == ChangeCause::policy && plan.kind != Transition::change_mps;
  const Steps steps = steps_for(plan.kind);
  for (Component component : {Component::plugin, Component::gfd}) {
    if (component == Component::gfd && view.facts.labeller != Labeller::gfd) continue;
    if (!reloads && (steps.replaces(component) || plan.cause == ChangeCause::new_template)) list(component);
  }
  if (plan.kind == Transition::enter_mps) out[Component::mps];
  if (plan.kind == Transition::change_mps || plan.kind == Transition::leave_mps) list(Component::mps);
  return out;
}

std::string config_label(const PluginInstallation& installation, const Node& node) {
  const Operand* plugin = installation.find(Component::plugin, node);
  return plugin && !plugin->node_label.empty() ? plugin->node_label : std::string(kConfigLabel);
}

namespace {

struct Guard {
  std::string_view annotation;
  std::string_view autoscaler;  // The name in NodeChange::guards.
};
constexpr Guard kGuards[] = {{kScaleDownDisabled, "cluster-autoscaler"}, {kKarpenterDoNotDisrupt, "karpenter"}};

bool is_added_by_operator(const Guard& guard, const NodeChange& change) {
  return std::ranges::find(change.guards, guard.autoscaler) != change.guards.end();
}

// Annotations that another client set are kept, including the value false.
void add_guards(PatchNode& patch, const Node& node, NodeChange& change) {
  for (const Guard& guard : kGuards) {
    if (node.meta.annotations.contains(guard.annotation)) continue;
    patch.set_annotations[std::string(guard.annotation)] = "true";
    if (!is_added_by_operator(guard, change)) change.guards.emplace_back(guard.autoscaler);
  }
}

void aim(const NodeView& view, const ChangePlan& plan, NodeChange& out) {
  const NodeAssessment& facts = view.facts;
  out.policy = std::string(facts.policy.view());
  out.config_map = view.installation.id();
  out.key = std::string(facts.key.view());
  out.to = std::string(facts.target.view());
  out.kind = plan.kind;
  out.cause = plan.cause;
  out.listed = view.snapshot.now;
  out.failed.reset();
}

// The plugin's pod came so close to an edit that it can have read it: that proves nothing for the text, and all the
// more against it.
bool came_with_its_text(const NodeView& view, const ChangePlan& plan) {
  const auto since = data_known_since(view.snapshot.world, view.installation.config_map_key());
  if (plan.cause != ChangeCause::edited || !since || view.pods.plugin.empty()) return false;
  return created_after(*view.pods.plugin.front(),
                       *since - clock_difference(view.snapshot.settings) - std::chrono::seconds(1));
}

// The pods that ran before might have served: they were replaced, and the new ones lost the GPUs to the text that they
// read. A machine that has just joined, and one that showed no profile at the installation, lost none.
bool lost_by_itself(const NodeView& view, const ChangePlan& plan) {
  if (plan.cause == ChangeCause::joined || view.facts.at_install == AtInstall::drifted) return false;
  return view.facts.loads_by_itself() || came_with_its_text(view, plan);
}

}  // namespace

NodeChange begin_change(const NodeView& view, const ChangePlan& plan) {
  NodeChange out;
  aim(view, plan, out);
  out.product = std::string(view.facts.product.view());
  out.from = std::string(view.facts.loaded.revision.view());
  out.begun = view.snapshot.now;
  // A machine that has just joined has not served any pod yet, and one that was broken before proves nothing (S12).
  const bool was_sound = can_prove(view.facts) && !is_repair(view.facts);
  out.served = was_sound && plan.cause != ChangeCause::joined && !view.facts.loaded.revision.empty();
  out.self_loaded = !out.served && lost_by_itself(view, plan);
  out.pods = pods_to_replace(view, plan);
  // A new template concerns every component, whatever the difference between the profiles needs.
  if (out.kind == Transition::plugin_only && out.pods.contains(Component::gfd)) out.kind = Transition::reshare;
  if (const auto& before =
          view.facts.change) {   // A failed change: the operator removes what that change left on the node.
    if (before->to == out.to) {  // A retry of the same canary is also a canary.
      out.served = before->served;
      out.self_loaded = before->self_loaded;
    }
    // A cordon that is there after a person took the operator's away is that person's.
    out.cordoned = before->cordoned && view.node.unschedulable;
    out.guards = before->guards;
    NodeChange replaced = *before;
    replaced.cordoned = out.cordoned;
    replaced.replaced.clear();
    out.replaced = print_change(replaced);
  }
  return out;
}

NodeChange list_again(const NodeView& view, const NodeChange& before, const ChangePlan& plan, ListedPods pods) {
  NodeChange out = before;
  aim(view, plan, out);
  // The GPUs were lost to another text: the new one is not to blame.
  if (out.to != before.to) out.self_loaded = false;
  out.pods = std::move(pods);
  return touched(std::move(out));
}

NodeChange touched(NodeChange change) {
  change.touched = Touched::yes;
  change.replaced.clear();
  return change;
}

void remove_guards(PatchNode& patch, const Node& node, const NodeChange& change) {
  for (const Guard& guard : kGuards)
    if (is_added_by_operator(guard, change) && node.meta.annotations.get(guard.annotation) == "true")
      patch.remove_annotations.insert(std::string(guard.annotation));
}

PatchNode patch_of(const Node& node) {
  return {.name = node.meta.name, .resource_version = node.meta.resource_version};
}

PatchNode patch_of(const Node& node, const NodeChange& change) {
  PatchNode out = patch_of(node);
  out.set_annotations[std::string(kChangeAnnotation)] = print_change(change);
  return out;
}

PatchNode patch_into(const NodeView& view, NodeChange change, Into into) {
  const Node& node = view.node;
  PatchNode patch = patch_of(node);
  patch.set[std::string(kStateLabel)] = kStateUpdating;
  for (const std::string_view annotation : {kMessageAnnotation, kDeferredAnnotation})
    if (node.meta.annotations.contains(annotation)) patch.remove_annotations.insert(std::string(annotation));
  add_guards(patch, node, change);
  if (into.cordon && !node.unschedulable) {
    patch.unschedulable = true;
    change.cordoned = true;
  }
  LabelChange labels;
  if (into.live && view.facts.label) labels = policy_label(node, config_label(view.installation, node), view.facts);
  if (into.live) change = touched(std::move(change));
  if (steps_for(change.kind).touches_mps) {
    const bool capable = change.kind != Transition::leave_mps;
    labels = mps_capable_change(node, capable, view.facts.has_labeller(), {view.snapshot.settings, view.snapshot.now},
                                std::move(labels));
  }
  add_to(patch, labels);
  // Once the label has moved, what the node serves would not say which key its plugin runs, unless the number of its
  // GPUs is known. The node says so itself: the record can be lost.
  if (view.facts.label && facts_of(node, 0).count <= 0 && gpus_to_remember(node, view.facts) > 0)
    patch.set_annotations[std::string(kGpuCountAnnotation)] = std::to_string(view.facts.measured_gpus);
  patch.set_annotations[std::string(kChangeAnnotation)] = print_change(change);
  return patch;
}

std::vector<PlannedAction> deletions(const NodeView& view, const NodeChange& change,
                                     const std::vector<Component>& components, std::string_view why) {
  std::vector<PlannedAction> out;
  const std::string& node = view.node.meta.name;
  for (Component component : components) {
    const auto listed = change.pods.find(component);
    if (listed == change.pods.end()) continue;
    for (const Pod* pod : view.pods.of(component)) {
      if (pod->meta.deletion_timestamp || !listed->second.contains(pod->meta.uid)) continue;
      out.push_back({"",
                     DeletePod{pod->meta.key(), pod->meta.uid, std::nullopt, std::nullopt},
                     {"Restart", fmt::format("{} pod of node {}: {}", to_string(component), node, why)},
                     true,
                     node});
    }
  }
  return out;
}

PatchNode take_off(const Node& node, const NodeChange* change, bool says_blocked) {
  PatchNode patch{.name = node.meta.name};
  auto drop = [&](std::string_view annotation) {
    if (node.meta.annotations.contains(annotation)) patch.remove_annotations.insert(std::string(annotation));
  };
  if (!says_blocked) {
    if (node.meta.labels.contains(kStateLabel)) patch.remove.insert(std::string(kStateLabel));
    drop(kMessageAnnotation);
  }
  drop(kDeferredAnnotation);
  // With an annotation that cannot be read it is unknown who cordoned the node: the cordon stays, with the annotation.
  if (change == nullptr) return patch;
  drop(kChangeAnnotation);
  remove_guards(patch, node, *change);
  if (change->cordoned && node.unschedulable) {
    patch.unschedulable = false;
    patch.resource_version = node.meta.resource_version;
  }
  return patch;
}

PatchNode patch_back(const Node& node, const NodeAssessment& facts, Duration verify_timeout) {
  const NodeChange& change = *facts.change;
  const k8s::Result<NodeChange> replaced = parse_change(change.replaced);
  if (change.replaced.empty() || !replaced) return patch_out(node, facts);
  NodeChange failed = *replaced;
  failed.cordoned = failed.cordoned && node.unschedulable;
  NodeChange added = change;  // What the failed change had not done already.
  added.cordoned = change.cordoned && !failed.cordoned;
  PatchNode patch = take_off(node, &added);
  patch.remove.erase(std::string(kStateLabel));
  for (const std::string_view annotation : {kChangeAnnotation, kMessageAnnotation})
    patch.remove_annotations.erase(std::string(annotation));
  patch.set[std::string(kStateLabel)] = kStateFailed;
  patch.set_annotations[std::string(kChangeAnnotation)] = print_change(failed);
  set_message(patch, failure_text(failed.to, verify_timeout, failed.failed->why));
  return patch;
}

std::string failure_text(std::string_view revision, Duration verify_timeout, std::string_view why) {
  return fmt::format("{} did not verify within {}: {}", revision, k8s::format_go_duration(verify_timeout), why);
}

PatchNode patch_out(const Node& node, const NodeAssessment& facts) {
  return take_off(node, facts.change.get(), facts.is_blocked() && facts.write_blocked);
}

void set_message(PatchNode& patch, std::string_view message) {
  patch.set_annotations[std::string(kMessageAnnotation)] = cut_message(message);
}

bool has_message(const Node& node, std::string_view message) {
  return node.meta.annotations.get(kMessageAnnotation) == cut_message(message);
}

void record_on(PatchNode& patch, const Node& node, const NodeAssessment& facts, const std::string& revision) {
  patch.set_annotations[std::string(kRevisionAnnotation)] = revision;
  patch.set_annotations[std::string(kProfileAnnotation)] = std::string(facts.profile_ref.view());
  if (gpus_to_remember(node, facts) > 0) {
    const std::string count = std::to_string(facts.measured_gpus);
    // A machine that had more GPUs has lost some: what it had stays known, so that it is reported further on.
    const bool had_more = facts.recorded_gpus > facts.measured_gpus || facts_of(node, 0).count > facts.measured_gpus;
    if (!had_more && node.meta.annotations.get(kGpuCountAnnotation) != count)
      patch.set_annotations[std::string(kGpuCountAnnotation)] = count;
  } else if (node.meta.labels.get(kGpuCount) == node.meta.annotations.get(kGpuCountAnnotation) &&
             node.meta.annotations.contains(kGpuCountAnnotation)) {
    patch.remove_annotations.insert(std::string(kGpuCountAnnotation));
  }
}

std::int64_t gpus_to_remember(const Node& node, const NodeAssessment& facts) {
  const std::int64_t labelled = labelled_gpus(node);
  return facts.measured_gpus > labelled ? facts.measured_gpus : 0;
}

}  // namespace gso
