// The scheduler's checks for every node that the pod can have; the nodes that come nearest determine the reported
// cause, and those with another obstacle are named after it.
#include "reconcilers/explain/pod_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/cluster/plugin_settings.h"
#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/node/assess.h"

namespace gso {

// --- Which nodes the pod selects, and by how much another one differs from what it requires.

namespace {

constexpr std::string_view kName = "metadata.name";

// How near a node's label is to a required one.
constexpr std::int64_t kMissing = 0;
constexpr std::int64_t kOtherValue = 1;
constexpr std::int64_t kSharedApart = 2;  // The same but for what sharing appends.

bool is_shared_of(std::string_view shared, std::string_view plain) {
  return shared.size() == plain.size() + kSharedProduct.size() && shared.starts_with(plain) &&
         shared.ends_with(kSharedProduct);
}

std::int64_t nearness(std::optional<std::string_view> actual, std::string_view required) {
  if (!actual) return kMissing;
  return is_shared_of(*actual, required) || is_shared_of(required, *actual) ? kSharedApart : kOtherValue;
}

std::string shown_label(std::string_view key, std::optional<std::string_view> actual) {
  return fmt::format("label {} is {}", shown_value(key), actual ? shown_value(*actual) : "missing");
}

std::string names(const std::vector<Interned>& values) {
  std::vector<std::string> out;
  for (const Interned& value : values) out.push_back(shown_value(value.view()));
  return first_names(out);
}

// What follows "the pod's node affinity requires ".
std::string required_by(const NodeSelectorRequirement& requirement) {
  const std::string_view op = requirement.op.view();
  const std::string values = names(requirement.values);
  if (op == "In") return requirement.values.size() == 1 ? values : "one of " + values;
  if (op == "NotIn") return (requirement.values.size() == 1 ? "another one than " : "none of ") + values;
  if (op == "Gt") return "more than " + values;
  if (op == "Lt") return "less than " + values;
  if (op == "Exists") return "any value";
  if (op == "DoesNotExist") return "no such label";
  return fmt::format("{} {}", shown_value(op), values);
}

Verdict unmet(const NodeSelectorRequirement& requirement, const Node& node, std::size_t other_terms) {
  const std::string key(requirement.key.view());
  const bool by_name = key == kName;
  const std::optional<std::string_view> actual =
      by_name ? std::optional<std::string_view>(node.meta.name) : node.meta.labels.get(key);
  std::int64_t near = actual ? kOtherValue : kMissing;
  for (const Interned& value : requirement.values) near = std::max(near, nearness(actual, value.view()));
  const std::string others =
      other_terms == 0 ? std::string() : fmt::format(" (or {})", counted(other_terms, "other term"));
  return {Obstacle::not_selected,
          fmt::format("{}, the pod's node affinity requires {}{}",
                      by_name ? "the name is " + shown_value(node.meta.name) : shown_label(key, actual),
                      required_by(requirement), others),
          by_name ? std::string() : key, near};
}

// One of the terms must hold: what the node lacks for the term that it comes nearest to.
std::optional<Verdict> unmet_affinity(const std::vector<std::vector<NodeSelectorRequirement>>& terms,
                                      const Node& node) {
  if (matches_terms(terms, node)) return std::nullopt;
  std::optional<Verdict> nearest;
  std::size_t fewest = 0;
  for (const std::vector<NodeSelectorRequirement>& term : terms) {
    std::optional<Verdict> here;
    std::size_t count = 0;
    for (const NodeSelectorRequirement& requirement : term) {
      if (matches_terms({{requirement}}, node)) continue;
      ++count;
      Verdict verdict = unmet(requirement, node, terms.size() - 1);
      if (!here || verdict.most > here->most) here = std::move(verdict);
    }
    if (!here || (nearest && count >= fewest)) continue;
    nearest = std::move(here);
    fewest = count;
  }
  if (nearest) return nearest;
  return Verdict{Obstacle::not_selected, "the pod's node affinity selects no node: it has no requirement", "", 0};
}

// Why the pod's node selector or required node affinity excludes the node; nullopt: it selects the node.
std::optional<Verdict> not_selected_by(const AskedPod& asked, const Node& node) {
  for (const auto& [key, value] : asked.placement.node_selector) {
    const auto actual = node.meta.labels.get(key);
    if (actual == value) continue;
    return Verdict{Obstacle::not_selected,
                   fmt::format("{}, the pod requires {}", shown_label(key, actual), shown_value(value)), key,
                   nearness(actual, value)};
  }
  return unmet_affinity(asked.placement.affinity_terms, node);
}

using Json = nlohmann::json;

constexpr std::size_t kMostCauses = 4;
constexpr std::string_view kConditionTaints = "node.kubernetes.io/";

// What the node's profile makes of that resource; 0: nothing, or not known.
std::int64_t expected_of(const NodeAssessment* a, std::string_view resource) {
  if (a == nullptr || a->expectation == nullptr) return 0;
  const auto at = a->expectation->capacity.find(std::string(resource));
  return at == a->expectation->capacity.end() ? 0 : at->second;
}

// Of a request for MIG slices by their own name: how many of them the node offers as GPUs, which migStrategy single
// does.
std::int64_t slices_as_gpus(const Node& node, std::string_view resource) {
  constexpr std::string_view kMigPrefix = "nvidia.com/mig-";
  if (!resource.starts_with(kMigPrefix)) return 0;
  const std::string of_product = fmt::format("-MIG-{}", resource.substr(kMigPrefix.size()));
  const std::string_view product = unshared_product(node.meta.labels.get(kGpuProduct).value_or(""));
  return product.ends_with(of_product) ? amount_of(node.allocatable, kGpuResource) : 0;
}

class NodeQuestions {
 public:
  NodeQuestions(const Snapshot& snapshot, const FleetIndex& index, const AskedPod& asked)
      : snapshot_(snapshot), index_(index), asked_(asked), partitions_(!partitioned_nodes(snapshot.world).empty()) {}

  [[nodiscard]] Verdict ask(const Node& node) const {
    if (auto verdict = selected(node)) return *std::move(verdict);
    for (const auto& [resource, count] : asked_.pod.gpu_requests) {
      if (count <= 0) continue;
      if (auto verdict = served(node, resource, count)) return *std::move(verdict);
    }
    if (auto verdict = admitted(node)) return *std::move(verdict);
    for (const auto& [resource, count] : asked_.pod.gpu_requests) {
      if (count <= 0) continue;
      if (auto verdict = free(node, resource, count)) return *std::move(verdict);
    }
    return {Obstacle::none, "has GPUs for the pod", "", 0};
  }

  [[nodiscard]] std::optional<Verdict> selected(const Node& node) const { return not_selected_by(asked_, node); }

 private:
  // What the node has at its best.
  [[nodiscard]] std::optional<Verdict> served(const Node& node, const Interned& resource, std::int64_t count) const {
    const std::string name(resource.view());
    const NodeAssessment* a = index_.assessment(node.meta.name);
    const std::int64_t now = std::max(amount_of(node.allocatable, name), amount_of(node.capacity, name));
    const std::int64_t has = std::max(now, expected_of(a, name));
    // No amount of GPUs helps a request that the plugin refuses.
    if (has > 0 && refuses_request(index_, node, asked_, name))
      return Verdict{Obstacle::refused, fmt::format("refuses more than one {} per container", name), name, 1};
    if (has >= count) return std::nullopt;
    if (has > 0) {
      return Verdict{Obstacle::too_few,
                     has == now ? fmt::format("has {} of {}", has, name)
                                : fmt::format("has {} of {} now, {} when it shows its profile", now, name, has),
                     name, has};
    }
    const std::string other = other_name(name);
    const std::int64_t others = amount_of(node.allocatable, other);
    if (others > 0)
      return Verdict{Obstacle::renamed, fmt::format("offers {} instead ({})", other, others), name, others};
    Verdict lacks{Obstacle::not_served, fmt::format("does not offer {}", name), name, 0};
    lacks.nobody_cuts = slice_gigabytes(name) && !partitions_;
    if (const std::int64_t gpus = slices_as_gpus(node, name); gpus > 0) {
      lacks.text = fmt::format("offers {} {}, which are MIG slices of that kind", gpus, kGpuResource);
      lacks.most = gpus;
    }
    return lacks;
  }

  [[nodiscard]] std::optional<Verdict> admitted(const Node& node) const {
    const NodeAssessment* a = index_.assessment(node.meta.name);
    if (!node.ready) return Verdict{Obstacle::not_ready, "is not Ready", "", 0};
    if ((a != nullptr && a->in_change()) || (node.unschedulable && is_cordoned_by_operator(node))) {
      const bool to = a != nullptr && a->change;
      return Verdict{Obstacle::in_change,
                     to ? fmt::format("changes to {}", a->change->to) : "is cordoned by the operator", "", 0};
    }
    if (node.unschedulable) return Verdict{Obstacle::cordoned, "is cordoned", "", 0};
    for (const Taint& taint : node.taints) {
      const bool keeps_off = taint.effect == "NoSchedule" || taint.effect == "NoExecute";
      if (!keeps_off || tolerates(asked_.tolerations, taint)) continue;
      return of_taint(taint);
    }
    return std::nullopt;
  }

  // Kubernetes itself sets the taints of its own prefix, for as long as a condition of the node lasts.
  static Verdict of_taint(const Taint& taint) {
    const std::string_view key = taint.key.view();
    if (!key.starts_with(kConditionTaints))
      return {Obstacle::tainted, fmt::format("taint {} is not tolerated", to_string(taint)), "", 0, &taint};
    const std::string_view condition = key.substr(kConditionTaints.size());
    if (condition == "not-ready" || condition == "unreachable") return {Obstacle::not_ready, "is not Ready", "", 0};
    if (condition == "unschedulable") return {Obstacle::cordoned, "is cordoned", "", 0};
    return {Obstacle::pressure, fmt::format("Kubernetes has set the taint {}", to_string(taint)), "", 0, &taint};
  }

  [[nodiscard]] std::optional<Verdict> free(const Node& node, const Interned& resource, std::int64_t count) const {
    const std::string name(resource.view());
    const std::int64_t offers = amount_of(node.allocatable, name);
    if (offers < count) {
      return Verdict{Obstacle::none_allocatable,
                     offers == 0 ? "none of it is allocatable" : fmt::format("only {} of it are allocatable", offers),
                     name, offers};
    }
    const auto listed = snapshot_.consumers.find(node.meta.name);
    if (listed == snapshot_.consumers.end()) return std::nullopt;
    std::int64_t used = 0;
    Verdict full{Obstacle::full, "", name, 0};
    for (const Pod& other : listed->second.pods) {
      const std::int64_t has = other.meta.uid == asked_.pod.meta.uid ? 0 : amount_of(other.gpu_requests, name);
      used += has;
      if (has > 0 && other.priority < asked_.pod.priority) full.preemptible.push_back(k8s::to_string(other.meta.key()));
    }
    if (offers - used >= count) return std::nullopt;
    full.text = fmt::format("{} of {} {} are in use", used, offers, name);
    full.most = offers - used;
    return full;
  }

  const Snapshot& snapshot_;
  const FleetIndex& index_;
  const AskedPod& asked_;
  const bool partitions_;
};

// What holds a pod before any node is looked at.
std::optional<PodCause> before_scheduling(const Snapshot& snapshot, const AskedPod& asked) {
  std::vector<std::string> gates;
  for (const Json& gate : list_at(asked.part("spec"), "schedulingGates")) gates.push_back(text_at(gate, "name"));
  if (!gates.empty()) {
    const bool kueue =
        std::ranges::any_of(gates, [](const std::string& gate) { return gate.starts_with("kueue.x-k8s.io/"); });
    return pod_cause(
        Severity::error, "SchedulingGated",
        fmt::format("no scheduler looks at the pod while it has scheduling gates: {}{}", first_names(gates),
                    kueue ? " (Kueue: the quota of its queue has no room, or the queue is stopped)" : ""),
        {kueue ? Command{fmt::format("kubectl get workloads.kueue.x-k8s.io {}", asked.in_namespace())}
               : describe_pod(asked),
         {"the controller that set a gate removes it; whoever runs that controller decides"}});
  }
  if (const std::string node = text_at(asked.part("status"), "nominatedNodeName"); !node.empty()) {
    return pod_cause(
        Severity::warning, "Preempting",
        fmt::format("the scheduler has chosen node {} and waits until pods of lower priority have ended there", node),
        {explain_command(node)});
  }
  const KaiView kai = view_kai(snapshot.world.kai, snapshot.settings.kai);
  const Json labels = object_at(asked.part("metadata"), "labels");
  if (kai.served && asked.pod.scheduler_name == kai.scheduler_name && !labels.contains(kai.queue_label)) {
    return pod_cause(Severity::error, "NoQueueLabel",
                     fmt::format("the pod has no label {}: KAI-Scheduler skips pods without a queue", kai.queue_label),
                     {{"kubectl get queues.scheduling.run.ai"},
                      {"the pod's owner sets the label in the template; whoever runs KAI says which queue to name"}});
  }
  return std::nullopt;
}

using ByObstacle = std::map<Obstacle, Candidates>;

void add(ByObstacle& all, const std::string& node, Verdict verdict) {
  Candidates& at = all[verdict.obstacle];
  at.by_text[verdict.text].push_back(node);
  if (at.nodes.empty() || verdict.most > at.best.most) {
    at.best = std::move(verdict);
    at.nodes.insert(at.nodes.begin(), node);
  } else {
    at.nodes.push_back(node);
  }
}

// The nearest first, and of one obstacle the node that its cause speaks of.
void list_nodes(const ByObstacle& all, PodExplanation& out) {
  for (auto at = all.rbegin(); at != all.rend(); ++at) {
    std::map<std::string_view, std::string_view> text_of;
    for (const auto& [text, nodes] : at->second.by_text) {
      for (const std::string& node : nodes) text_of[node] = text;
    }
    for (const std::string& node : at->second.nodes)
      out.nodes.push_back({node, std::string(text_of[node]), std::string(code_of(at->first))});
  }
}

// Manifests can leave out what every cluster has.
PodCause without_gpu_nodes(const World& world) {
  if (world.nodes.size() == 0) {
    return pod_cause(
        Severity::warning, kNoNodesGiven, "no Node was given, so whether a node can run the pod is not checked",
        {{"kubectl get nodes -o yaml > nodes.yaml"},
         {"add the cluster's Nodes, with `-f nodes.yaml` beside the pod's file, or leave out -f: then the cluster of "
          "the kubeconfig is read"}});
  }
  return pod_cause(
      Severity::error, "NoGPUNodes", "no node of the cluster has NVIDIA GPUs, as far as labels and capacities show",
      {{"kubectl get nodes --label-columns feature.node.kubernetes.io/pci-10de.present,nvidia.com/gpu.present"},
       {"whoever runs the cluster adds nodes with GPUs; where machines have some, the GPU Operator, or Node Feature "
        "Discovery with the device plugin, sets the labels"}});
}

}  // namespace

bool refuses_request(const FleetIndex& index, const Node& node, const AskedPod& asked, std::string_view resource) {
  const NodeAssessment* a = index.assessment(node.meta.name);
  const std::int64_t most = asked.most_of_a_container(std::string(resource));
  if (most <= 1 || a == nullptr || a->profile == nullptr || !a->profile->valid) return false;
  const Operand* plugin = index.impl().installation_of(*a).find(Component::plugin, node);
  const std::string original = resource.ends_with(".shared") ? other_name(resource) : std::string(resource);
  return plugin != nullptr && request_refusal(a->profile->profile(), plugin->version, original, most).has_value();
}

void explain_placement(const Snapshot& snapshot, const FleetIndex& index, const AskedPod& asked,
                       const std::optional<PodCause>& slices, PodExplanation& out) {
  if (auto held = before_scheduling(snapshot, asked)) {
    out.causes.push_back(*std::move(held));
    return;
  }
  if (waits_for_claims_alone(asked)) {
    if (auto unseen = unseen_by_schedulers(snapshot, asked)) out.causes.push_back(*std::move(unseen));
    out.causes.push_back(claims_not_read(asked));
    return;
  }
  const NodeQuestions questions(snapshot, index, asked);
  std::map<std::string, const Node*> nodes;
  for (const auto& [key, node] : snapshot.world.nodes.all()) {
    if (has_gpus(*node) || index.assessment(key.name) != nullptr) nodes.emplace(key.name, node.get());
  }
  ByObstacle all;
  for (const auto& [name, node] : nodes) add(all, name, questions.ask(*node));
  if (nodes.empty()) {
    out.causes.push_back(without_gpu_nodes(snapshot.world));
    return;
  }
  // Nodes without GPUs that the pod selects: it was meant for them, and the selector is wrong.
  const bool selects_none = all.size() == 1 && all.contains(Obstacle::not_selected);
  for (const auto& [key, node] : snapshot.world.nodes.all()) {
    if (selects_none && !nodes.contains(key.name) && !questions.selected(*node))
      add(all, key.name, {Obstacle::no_gpus, "has no GPUs", "", 0});
  }
  list_nodes(all, out);
  if (auto unseen = unseen_by_schedulers(snapshot, asked)) {
    out.causes.push_back(*std::move(unseen));
    if (all.contains(Obstacle::none)) return;
  }
  if (const auto room = all.find(Obstacle::none); room != all.end()) {
    const std::string otherwise = cause_of(Obstacle::none, asked, room->second).reason.message;
    out.causes.push_back(not_placed(asked, otherwise, where_of(room->second), room->second.nodes.front()));
    return;
  }
  if (slices) {
    out.causes.push_back(*slices);
    return;
  }
  // The nearest first. Nodes that the pod does not select are no candidates where it selects others.
  for (auto at = all.rbegin(); at != all.rend() && out.causes.size() < kMostCauses; ++at) {
    const bool first = at == all.rbegin();
    if (!first && at->first < Obstacle::refused) break;
    out.causes.push_back(cause_of(at->first, asked, at->second));
  }
}

}  // namespace gso
