// Conditions, consumers, and the patches of a change.
#include "reconcilers/fleet/pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"

namespace gso {

namespace {
// A listing older than this says nothing about now.
constexpr Duration kListingFresh = std::chrono::seconds(10);
}  // namespace

WallTime Pass::since(const std::string& condition) const {
  auto it = s.observed.find(condition);
  return it == s.observed.end() ? s.now : std::min(it->second, s.now);
}

Duration Pass::age(const std::string& condition) {
  plan.conditions.push_back(condition);
  return s.now - since(condition);
}

bool Pass::held_for(const std::string& condition, Duration wanted) {
  const Duration age_now = age(condition);
  if (age_now >= wanted) return true;
  look_again_in(wanted - age_now);
  return false;
}

void Pass::look_again_in(Duration wait) {
  plan.requeue_after = plan.requeue_after ? std::min(*plan.requeue_after, wait) : wait;
}

void Pass::keep(std::string condition) {
  if (s.observed.contains(condition)) plan.conditions.push_back(std::move(condition));
}

bool Pass::takes_more() {
  if (plan.actions.size() < kMostActions) return true;
  look_again_in(Duration::zero());
  return false;
}

namespace {

// Writes that nobody has the rights for where rollouts are only observed. Sharing labels have a switch of their own.
bool only_observed(const Action& action, std::string_view reconciler) {
  return (std::holds_alternative<PatchNode>(action) && reconciler != "node.labels") ||
         std::holds_alternative<DeletePod>(action) || std::holds_alternative<EvictPod>(action) ||
         std::holds_alternative<DeleteObject>(action);
}

}  // namespace

void Pass::add(Action action, std::string_view reason, std::string message, bool disruptive, std::string node) {
  if (s.settings.rollouts == PolicyMode::observe && only_observed(action, reconciler_)) return;
  plan.actions.push_back({std::string(reconciler_), std::move(action), std::string(reason), std::move(message),
                          disruptive, std::move(node)});
}

void Pass::event(ObjectRef regarding, bool warning, std::string_view reason, std::string_view action,
                 std::string note) {
  RecordEvent event{std::move(regarding), warning, std::string(reason), std::string(action), std::move(note)};
  plan.actions.push_back({std::string(reconciler_), std::move(event), std::string(reason), {}, false, {}});
}

void Pass::finding(Severity severity, ObjectRef object, std::string_view reason, std::string message) {
  plan.findings.push_back({severity, std::move(object), std::string(reason), std::move(message)});
}

bool Pass::plannable(const NodeAssessment& assessment) const {
  return !s.world.unsynced_namespaces.contains(index.set_of(assessment).ns);
}

std::vector<SeenNode> seen_nodes(const Pass& pass, std::string_view kind) {
  std::vector<SeenNode> out;
  const std::string prefix = fmt::format("{}/", kind);
  for (auto it = pass.s.observed.lower_bound(prefix); it != pass.s.observed.end(); ++it) {
    if (!it->first.starts_with(prefix)) break;
    const std::string_view rest = std::string_view(it->first).substr(prefix.size());
    const std::string_view name = rest.substr(0, rest.find('/'));
    const std::string_view target = rest.substr(std::min(rest.size(), name.size() + 1));
    const NodeAssessment* a = pass.index.find(name);
    if (a == nullptr) continue;
    const bool flies = a->flight != nullptr && a->flight->target == target;
    const bool waits = a->situation == Situation::change && a->target == target;
    if (flies || waits) out.push_back({it->first, std::string(name), *a, it->second});
  }
  return out;
}

ObjectRef node_ref(const std::string& name) {
  return {"v1", "Node", "", name, ""};
}
ObjectRef config_map_ref(const ObjectKey& key) {
  return {"v1", "ConfigMap", key.ns, key.name, ""};
}
ObjectRef policy_ref(const SharingPolicy& policy) {
  return {std::string(kApiVersion), "SharingPolicy", "", policy.meta.name, policy.meta.uid};
}

std::int64_t NodeUse::requested(std::string_view resource) const {
  std::int64_t sum = 0;
  for (const auto* pods : {&waiting, &daemonset_owned}) {
    for (const Pod* pod : *pods) {
      for (const auto& [name, count] : pod->gpu_requests) sum += name == resource ? count : 0;
    }
  }
  return sum;
}

std::string NodeUse::names() const {
  constexpr std::size_t kShown = 5;
  std::string out;
  for (std::size_t i = 0; i < std::min(waiting.size(), kShown); ++i) {
    out += fmt::format("{}{}", i == 0 ? "" : ", ", k8s::to_string(waiting[i]->meta.key()));
  }
  if (waiting.size() > kShown) out += fmt::format(" and {} more", waiting.size() - kShown);
  return out;
}

NodeUse use_of(const Snapshot& snapshot, const std::string& node, WallTime needed_since) {
  NodeUse out;
  auto it = snapshot.consumers.find(node);
  if (it == snapshot.consumers.end()) return out;
  out.fresh = it->second.listed_at >= needed_since && snapshot.now - it->second.listed_at <= kListingFresh;
  for (const Pod& pod : it->second.pods) {
    if (!is_gpu_consumer(pod, snapshot.world)) continue;
    const auto* owner = pod.meta.controller();
    // Mirror pods belong to the Node and cannot be moved either.
    const bool stays = owner != nullptr && (owner->kind == "DaemonSet" || owner->kind == "Node");
    (stays ? out.daemonset_owned : out.waiting).push_back(&pod);
  }
  auto by_name = [](const Pod* a, const Pod* b) { return a->meta.key() < b->meta.key(); };
  std::ranges::sort(out.waiting, by_name);
  std::ranges::sort(out.daemonset_owned, by_name);
  return out;
}

Drain drain_for(const NodeAssessment& assessment, Transition transition, WorkloadMode mode) {
  if (mode == WorkloadMode::interrupt) return Drain::nothing;
  if (steps_for(transition).disruptive) return Drain::idle;
  return assessment.shrinks ? Drain::fits : Drain::nothing;
}

bool drained(Drain drain, const NodeUse& use, const NodeAssessment& assessment) {
  if (drain == Drain::nothing) return true;
  if (!use.fresh) return false;
  if (drain == Drain::idle) return use.waiting.empty();
  if (!assessment.expectation) return false;
  return std::ranges::all_of(assessment.expectation->capacity,
                             [&](const auto& entry) { return use.requested(entry.first) <= entry.second; });
}

std::vector<Component> first_components(const NodeAssessment& assessment, Transition transition) {
  std::vector<Component> out = steps_for(transition).first;
  if (assessment.gfd) return out;
  std::erase(out, Component::gfd);
  // Without GFD nobody else ends the MPS pod for us.
  if (transition == Transition::leave_mps) out.push_back(Component::mps);
  return out;
}

std::map<Component, std::set<std::string>> pods_to_replace(const Pass& pass, const Node& node,
                                                           const NodeAssessment& a) {
  const NodePods pods = sort_pods(pass.index.set_of(a), pass.index.pods_of(node.meta.name));
  std::map<Component, std::set<std::string>> out;
  auto list = [&](Component component) {
    auto& uids = out[component];
    for (const Pod* pod : pods.of(component)) uids.insert(pod->meta.uid);
  };
  // By label plugin and GFD reload by themselves; only a running MPS daemon needs the full order of restarts.
  const bool reloads = a.way == WayIn::relabel && a.transition != Transition::change_mps;
  const Steps steps = steps_for(a.transition);
  for (Component component : {Component::plugin, Component::gfd}) {
    if (component == Component::gfd && !a.gfd) continue;
    if (!reloads && (steps.replaces(component) || a.way == WayIn::on_delete)) list(component);
  }
  if (a.transition == Transition::enter_mps) out[Component::mps];
  if (a.transition == Transition::change_mps || a.transition == Transition::leave_mps) list(Component::mps);
  return out;
}

std::string config_label(const Pass& pass, const Node& node, const NodeAssessment& assessment) {
  const Operand* plugin = pass.index.set_of(assessment).find(Component::plugin, node);
  return plugin && !plugin->node_label.empty() ? plugin->node_label : std::string(kConfigLabel);
}

namespace {
struct Guard {
  std::string_view annotation;
  std::string_view autoscaler;  // In the list of those that are ours.
};
constexpr Guard kGuards[] = {{kScaleDownDisabled, "cluster-autoscaler"}, {kKarpenterDoNotDisrupt, "karpenter"}};
}  // namespace

void add_guards(PatchNode& patch, const Node& node) {
  const auto before = node.meta.annotations.get(kGuardAnnotation);
  std::string ours(before.value_or(""));
  for (const Guard& guard : kGuards) {
    if (node.meta.annotations.contains(guard.annotation)) continue;
    patch.set_annotations[std::string(guard.annotation)] = "true";
    const bool known = ours.find(guard.autoscaler) != std::string::npos;
    if (!known) ours += fmt::format("{}{}", ours.empty() ? "" : ",", guard.autoscaler);
  }
  if (!ours.empty() && before != ours) patch.set_annotations[std::string(kGuardAnnotation)] = ours;
}

void remove_guards(PatchNode& patch, const Node& node) {
  const auto ours = node.meta.annotations.get(kGuardAnnotation);
  if (!ours) return;
  for (const Guard& guard : kGuards) {
    const bool mine =
        ours->find(guard.autoscaler) != std::string_view::npos && node.meta.annotations.get(guard.annotation) == "true";
    if (mine) patch.remove_annotations.insert(std::string(guard.annotation));
  }
  patch.remove_annotations.insert(std::string(kGuardAnnotation));
}

PatchNode patch_into(const Pass& pass, const Node& node, const NodeAssessment& a, bool cordon, bool with_label) {
  PatchNode patch;
  patch.name = node.meta.name;
  patch.resource_version = node.meta.resource_version;
  patch.set[std::string(kStateLabel)] = kStateUpdating;
  patch.set_annotations[std::string(kTargetAnnotation)] = a.target.view();
  patch.set_annotations[std::string(kReplaceAnnotation)] = print_replace(pods_to_replace(pass, node, a));
  for (const std::string_view annotation : {kMessageAnnotation, kRetryAnnotation}) {
    if (node.meta.annotations.contains(annotation)) patch.remove_annotations.insert(std::string(annotation));
  }
  add_guards(patch, node);
  if (cordon && !node.unschedulable) {
    patch.unschedulable = true;
    patch.set_annotations[std::string(kCordonedAnnotation)] = "true";
  }
  LabelChange labels;
  if (with_label && a.label) labels = policy_label(node, config_label(pass, node, a), a);
  const Steps steps = steps_for(a.transition);
  if (steps.touches_mps) {
    const bool capable = a.transition != Transition::leave_mps;
    labels = merged(node, std::move(labels), mps_capable_change(node, capable, a.has_labeller(), pass.s.settings));
  }
  add_to(patch, labels);
  return patch;
}

PatchNode take_off(const Node& node, Kept kept) {
  PatchNode patch;
  patch.name = node.meta.name;
  auto drop = [&](std::string_view annotation) {
    if (node.meta.annotations.contains(annotation)) patch.remove_annotations.insert(std::string(annotation));
  };
  drop(kTargetAnnotation);
  drop(kReplaceAnnotation);
  if (!kept.blocked) {
    if (node.meta.labels.contains(kStateLabel)) patch.remove.insert(std::string(kStateLabel));
    drop(kMessageAnnotation);
  }
  drop(kRetryAnnotation);
  remove_guards(patch, node);
  if (node.meta.annotations.get(kCordonedAnnotation) == "true" && !kept.cordon) {
    drop(kCordonedAnnotation);
    if (node.unschedulable) {
      patch.unschedulable = false;
      patch.resource_version = node.meta.resource_version;
    }
  }
  return patch;
}

PatchNode patch_out(const Pass& pass, const Node& node, const NodeAssessment& a) {
  // Where somebody relies on the cordon it stays, remembered as ours, until nobody does.
  return take_off(node, {.blocked = a.situation == Situation::blocked && a.write_blocked,
                         .cordon = cordon_is_relied_on(node, pass.index.set_of(a))});
}

void set_message(PatchNode& patch, std::string_view message) {
  patch.set_annotations[std::string(kMessageAnnotation)] = cut_message(message);
}

bool has_message(const Node& node, std::string_view message) {
  return node.meta.annotations.get(kMessageAnnotation) == cut_message(message);
}

void record_on(PatchNode& patch, const Node& node, const NodeAssessment& a, const std::string& revision) {
  patch.set_annotations[std::string(kRevisionAnnotation)] = revision;
  patch.set_annotations[std::string(kProfileAnnotation)] = std::string(a.profile_ref.view());
  if (gpus_to_remember(node, a) > 0) {
    const std::string count = std::to_string(a.measured_gpus);
    if (node.meta.annotations.get(kGpuCountAnnotation) != count)
      patch.set_annotations[std::string(kGpuCountAnnotation)] = count;
  } else if (node.meta.labels.get(kGpuCount) == node.meta.annotations.get(kGpuCountAnnotation) &&
             node.meta.annotations.contains(kGpuCountAnnotation)) {
    patch.remove_annotations.insert(std::string(kGpuCountAnnotation));
  }
}

std::int64_t gpus_to_remember(const Node& node, const NodeAssessment& a) {
  const std::int64_t labelled = labelled_gpus(node);
  return a.measured_gpus > labelled ? a.measured_gpus : 0;
}

void delete_pods(Pass& pass, const std::string& node, const NodePods& pods, const std::vector<Component>& components,
                 const std::map<Component, std::set<std::string>>& replace, std::string_view why) {
  for (Component component : components) {
    auto listed = replace.find(component);
    if (listed == replace.end()) continue;
    for (const Pod* pod : pods.of(component)) {
      if (pod->meta.deletion_timestamp || !listed->second.contains(pod->meta.uid)) continue;
      pass.add(DeletePod{pod->meta.key(), pod->meta.uid, std::nullopt, std::nullopt}, "Restart",
               fmt::format("{} pod of node {}: {}", to_string(component), node, why), true, node);
    }
  }
}

WriteConfigMap write_state(const Snapshot& snapshot, std::map<std::string, std::string> keys) {
  return {{snapshot.settings.operator_namespace, snapshot.settings.state_config_map}, std::move(keys), {}};
}

std::string rollout_name(const UnitKey& key, std::string_view revision) {
  constexpr std::size_t kMaxName = 63;
  auto sanitised = [](std::string_view text) {
    std::string out;
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      out += std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : '-';
    }
    return out;
  };
  // The set is part of the identity (two ConfigMaps may have equal keys), so it goes into the hash.
  const std::string hash = short_hash(fmt::format("{}|{}|{}|{}", key.policy, key.set, key.key, revision)).substr(0, 10);
  std::string head = fmt::format("{}-{}", sanitised(key.policy), sanitised(key.key.empty() ? "unshared" : key.key));
  head = head.substr(0, kMaxName - hash.size() - 1);
  while (head.ends_with('-')) head.pop_back();
  return fmt::format("{}-{}", head, hash);
}

ObjectRef rollout_ref(const std::string& name) {
  return {std::string(kApiVersion), "SharingRollout", "", name, ""};
}

}  // namespace gso
