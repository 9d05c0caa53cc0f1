// What keeps a waiting pod off the nodes that it can have: the scheduler's checks for every node. The nodes that come
// nearest determine the reported cause, and those with another obstacle are named after it.
#include "reconcilers/explain/pod_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/profile/field_names.h"

namespace gso {

namespace {

// In the order in which a node is looked at, from what makes it no candidate at all to what is nearest to running
// there.
enum class Obstacle {
  not_selected,
  no_gpus,
  not_served,
  renamed,
  too_few,
  refused,
  none_allocatable,
  tainted,
  pressure,
  not_ready,
  cordoned,
  in_change,
  full,
  none,
};

// What keeps the pod off one node.
struct Verdict {
  Obstacle obstacle = Obstacle::none;
  std::string text;           // Follows the node's name.
  std::string resource = {};  // The resource or label that it concerns.
  // How much of the resource the node offers; of not_selected: UnmetSelector::nearness.
  std::int64_t most = 0;
  const Taint* taint = nullptr;
  std::vector<std::string> preemptible = {};  // Pods of lower priority that use what the pod requests.
  std::string node = {};
};
// Of the nodes with one obstacle, that of the node that offers most first.
using Candidates = std::vector<Verdict>;

// The other name of the resource: a profile with renameByDefault adds or removes the suffix.
std::string other_name(std::string_view resource) {
  constexpr std::string_view kShared = ".shared";
  if (resource.ends_with(kShared)) return std::string(resource.substr(0, resource.size() - kShared.size()));
  return std::string(resource) + std::string(kShared);
}

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

// --- Which obstacle a node has.

// What the node has at its best.
std::optional<Verdict> not_served_on(const PodQuestion& q, const Node& node, const std::string& name,
                                     std::int64_t count) {
  const NodeAssessment* a = q.index.assessment(node.meta.name);
  const std::int64_t now = std::max(amount_of(node.allocatable, name), amount_of(node.capacity, name));
  const std::int64_t has = std::max(now, expected_of(a, name));
  // No amount of GPUs helps a request that the plugin refuses.
  if (has > 0 && refuses_request(q, node, name))
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
  if (others > 0) return Verdict{Obstacle::renamed, fmt::format("offers {} instead ({})", other, others), name, others};
  const std::int64_t gpus = slices_as_gpus(node, name);
  return Verdict{Obstacle::not_served,
                 gpus > 0 ? fmt::format("offers {} {}, which are MIG slices of that kind", gpus, kGpuResource)
                          : fmt::format("does not offer {}", name),
                 name, gpus};
}

// Kubernetes itself sets the taints of its own prefix, for as long as a condition of the node lasts.
Verdict of_taint(const Taint& taint) {
  const std::string_view key = taint.key.view();
  if (!key.starts_with(kConditionTaints))
    return {Obstacle::tainted, fmt::format("taint {} is not tolerated", to_string(taint)), "", 0, &taint};
  const std::string_view condition = key.substr(kConditionTaints.size());
  if (condition == "not-ready" || condition == "unreachable") return {Obstacle::not_ready, "is not Ready"};
  if (condition == "unschedulable") return {Obstacle::cordoned, "is cordoned"};
  return {Obstacle::pressure, fmt::format("Kubernetes has set the taint {}", to_string(taint)), "", 0, &taint};
}

std::optional<Verdict> not_admitted_by(const PodQuestion& q, const Node& node) {
  const NodeAssessment* a = q.index.assessment(node.meta.name);
  if (!node.ready) return Verdict{Obstacle::not_ready, "is not Ready"};
  if ((a != nullptr && a->in_change()) || (node.unschedulable && is_cordoned_by_operator(node))) {
    const bool to = a != nullptr && a->change;
    return Verdict{Obstacle::in_change,
                   to ? fmt::format("changes to {}", a->change->to) : "is cordoned by the operator"};
  }
  if (node.unschedulable) return Verdict{Obstacle::cordoned, "is cordoned"};
  for (const Taint& taint : node.taints) {
    const bool keeps_off = taint.effect == "NoSchedule" || taint.effect == "NoExecute";
    if (keeps_off && !tolerates(q.asked.tolerations, taint)) return of_taint(taint);
  }
  return std::nullopt;
}

std::optional<Verdict> not_free_on(const PodQuestion& q, const Node& node, const std::string& name,
                                   std::int64_t count) {
  const std::int64_t offers = amount_of(node.allocatable, name);
  if (offers < count) {
    return Verdict{Obstacle::none_allocatable,
                   offers == 0 ? "none of it is allocatable" : fmt::format("only {} of it are allocatable", offers),
                   name, offers};
  }
  const auto listed = q.snapshot.consumers.find(node.meta.name);
  if (listed == q.snapshot.consumers.end()) return std::nullopt;
  std::int64_t used = 0;
  Verdict full{Obstacle::full, "", name};
  for (const Pod& other : listed->second.pods) {
    const std::int64_t has = other.meta.uid == q.asked.pod.meta.uid ? 0 : amount_of(other.gpu_requests, name);
    used += has;
    if (has > 0 && other.priority < q.asked.pod.priority) full.preemptible.push_back(k8s::to_string(other.meta.key()));
  }
  if (offers - used >= count) return std::nullopt;
  full.text = fmt::format("{} of {} {} are in use", used, offers, name);
  full.most = offers - used;
  return full;
}

Verdict verdict_on(const PodQuestion& q, const Node& node) {
  if (std::optional<UnmetSelector> unmet = not_selected_by(q.asked, node))
    return {Obstacle::not_selected, std::move(unmet->text), std::move(unmet->label), unmet->nearness};
  std::optional<Verdict> out;
  const auto ask = [&](auto question) {
    for (const auto& [resource, count] : q.asked.pod.gpu_requests)
      if (!out && count > 0) out = question(q, node, std::string(resource.view()), count);
  };
  ask(not_served_on);
  if (!out) out = not_admitted_by(q, node);
  ask(not_free_on);
  return out.value_or(Verdict{Obstacle::none, q.asked.fraction ? "the pod selects it; KAI decides by the shares in use"
                                                               : "has GPUs for the pod"});
}

// --- What is said about each obstacle, and what to do.

std::int64_t asked_of(const PodQuestion& q, const Candidates& at) {
  return amount_of(q.asked.pod.gpu_requests, at.front().resource);
}

bool have_several_texts(const Candidates& at) {
  return std::ranges::any_of(at, [&](const Verdict& verdict) { return verdict.text != at.front().text; });
}

// What the verdicts say: the only text, or each with its nodes ("is full (a, b); is cordoned (c)").
std::string texts_of(const Candidates& at) {
  if (!have_several_texts(at)) return at.front().text;
  std::map<std::string_view, std::set<std::string>> by_text;
  for (const Verdict& verdict : at) by_text[verdict.text].insert(verdict.node);
  std::string out;
  std::size_t left = kMostNames;
  for (const auto& [text, nodes] : by_text) {
    if (left-- == 0) return fmt::format("{} and {} more", out, by_text.size() - kMostNames);
    out += fmt::format("{}{} ({})", out.empty() ? "" : "; ", text, first_names({nodes.begin(), nodes.end()}));
  }
  return out;
}

// "one node (gpu-1)", "7 nodes (a, b, c, d, e and 2 more)"
std::string where_of(const Candidates& at) {
  std::set<std::string> names;
  for (const Verdict& verdict : at) names.insert(verdict.node);
  return names.size() == 1 ? fmt::format("one node ({})", *names.begin())
                           : fmt::format("{} nodes ({})", names.size(), first_names({names.begin(), names.end()}));
}

// A function of this form says what to do, and where the row has no words also what is wrong.
using ObstacleAnswer = void(const PodQuestion& q, const Candidates& at, PodCause& out);

void describe_first(const PodQuestion& /*q*/, const Candidates& at, PodCause& out) {
  out.cure.command = describe_node_command(at.front().node);
}

void explain_first(const PodQuestion& /*q*/, const Candidates& at, PodCause& out) {
  out.cure.command = explain_command(at.front().node);
}

// The labels of nodes say what they are: whoever sets them (cloud, NFD, GFD, kubelet) writes them back, and a false one
// misleads every other pod.
void select_another(const PodQuestion& /*q*/, const Candidates& at, PodCause& out) {
  const std::string& label = at.front().resource;
  out.cure = {
      {label.empty() ? "kubectl get nodes --show-labels" : fmt::format("kubectl get nodes --label-columns {}", label)},
      {"the pod's owner selects a label value that nodes with GPUs have",
       "whoever runs the cluster adds nodes with that label"}};
  if (label == kGpuProduct) {
    out.cure.options[0] = fmt::format(
        "the pod's owner selects the product as the nodes have it (sharing without renameByDefault appends {})",
        kSharedProduct);
  }
}

void not_selected(const PodQuestion& q, const Candidates& at, PodCause& out) {
  const std::string& label = at.front().resource;
  if (label.empty() || at.front().most > 0) {
    // Those that come nearest.
    Candidates nearest;
    std::ranges::copy_if(at, std::back_inserter(nearest), [&](const Verdict& verdict) {
      return verdict.most == at.front().most && verdict.resource == label;
    });
    out.reason.message = fmt::format("the pod selects no node with GPUs: {}", texts_of(nearest));
    return select_another(q, at, out);
  }
  // No node with GPUs has the label, whatever its value.
  const auto wanted = q.asked.placement.node_selector.find(label);
  out.reason.message =
      fmt::format("the pod selects no node with GPUs: it requires the label {}{}, and none of them has the label",
                  label, wanted == q.asked.placement.node_selector.end() ? std::string() : "=" + wanted->second);
  out.cure = {{"kubectl get nodes --show-labels"},
              {"the pod's owner selects by a label that nodes with GPUs have",
               "whoever runs the cluster finds out what should have set the label, or adds nodes with it"}};
}

void not_served(const PodQuestion& q, const Candidates& at, PodCause& out) {
  const auto& [obstacle, text, resource, most, taint, preemptible, node] = at.front();
  std::string& message = out.reason.message;
  out.cure.command = {"gpu-sharing-operator status"};
  const auto gigabytes = slice_gigabytes(resource);
  if (gigabytes && partitioned_nodes(q.snapshot.world).empty()) {
    message = fmt::format(
        "no node has a slice of {} GiB, and none will: no node of the cluster has the label {}=mps, so "
        "nothing cuts slices",
        *gigabytes, kNosPartitioning);
    out.cure.options = {fmt::format("the pod's owner requests what the nodes offer, {} for example", kGpuResource),
                        "whoever runs the cluster gives nodes to partitioning: docs/partitioning.md has the steps"};
  } else if (gigabytes) {
    message = fmt::format(
        "no node that the pod selects has a slice of {} GiB: partitioning cuts them on the nodes that have its label, "
        "once the scheduler has found no node for the pod",
        *gigabytes);
  } else if (const std::string_view meant = meant_resource(resource); !meant.empty()) {
    message = fmt::format("no node that the pod selects offers {}: no device plugin serves that name; did you mean {}?",
                          resource, meant);
    out.cure = ask_for(q.asked, std::string(meant), asked_of(q, at), resource);
  } else if (most > 0) {
    // Slices under the name of GPUs.
    message = fmt::format("no node that the pod selects offers {}: {} {}", resource, node, text);
    out.cure = {describe_node_command(node),
                {fmt::format("the pod's owner requests {} instead, on a node like {}", kGpuResource, node),
                 "whoever runs the cluster sets the MIG strategy of the device plugin to mixed: slices then "
                 "have names of their own"}};
  } else {
    message = fmt::format("no node that the pod selects offers {}: no device plugin serves it, or it has another name",
                          resource);
  }
}

void ask_for_the_other(const PodQuestion& q, const Candidates& at, PodCause& out) {
  const std::string& resource = at.front().resource;
  out.cure = ask_for(q.asked, other_name(resource), std::min(asked_of(q, at), at.front().most), resource);
}

void ask_for_one(const PodQuestion& q, const Candidates& at, PodCause& out) {
  out.cure = ask_for(q.asked, at.front().resource, 1, at.front().resource);
}

void ask_for_less(const PodQuestion& q, const Candidates& at, PodCause& out) {
  out.cure = {
      show_template(q.asked),
      {fmt::format("the pod's owner requests at most {}, or divides the work among several pods", at.front().most),
       "whoever runs the cluster adds a larger node, or a profile with more replicas"}};
}

// Taints by which controllers empty a node, or keep it empty until it is ready: a pod that tolerates one would be
// started where it cannot run.
bool is_of_a_controller(std::string_view key) {
  constexpr std::string_view kParts[] = {"node.cloudprovider.kubernetes.io/",
                                         "ToBeDeletedByClusterAutoscaler",
                                         "DeletionCandidateOfClusterAutoscaler",
                                         "karpenter.sh/",
                                         "cloud.google.com/impending",
                                         "node.cilium.io/",
                                         "gpu-driver-upgrade",
                                         "kubevirt.io/drain",
                                         "medik8s.io/"};
  return std::ranges::any_of(kParts, [&](std::string_view part) { return key.contains(part); });
}

void tainted(const PodQuestion& q, const Candidates& at, PodCause& out) {
  const Taint& taint = *at.front().taint;
  const bool differ = have_several_texts(at);
  out.reason.message = fmt::format("the pod does not tolerate a taint of {}: {}", where_of(at),
                                   differ ? texts_of(at) : to_string(taint));
  if (taint.effect != "NoSchedule" || is_of_a_controller(taint.key.view())) {
    out.cure = {describe_node_command(at.front().node), {"wait until the system that set the taint removes it"}};
    return;
  }
  out.cure = tolerate(q.asked, taint);
  const bool changes = out.cure.command.does == Command::Does::changes;
  out.cure.options.insert(out.cure.options.begin(),
                          fmt::format("whoever set the taint decides which pods are allowed to run there{}",
                                      changes ? "; the command makes the pod one of them" : ""));
  if (differ) {
    out.cure.options.push_back(
        fmt::format("a toleration of {} alone leaves the nodes with other taints closed to the pod", to_string(taint)));
  }
}

void under_pressure(const PodQuestion& /*q*/, const Candidates& at, PodCause& out) {
  out.cure = {describe_node_command(at.front().node),
              {"whoever runs the node ends the condition that the taint names; Kubernetes then removes the taint"}};
}

// Who cordons a node has a reason that no object shows.
void cordoned_by_others(const PodQuestion& /*q*/, const Candidates& at, PodCause& out) {
  out.cure = {{fmt::format("kubectl get node {} --show-managed-fields --output yaml", at.front().node)},
              {"whoever cordoned the node decides when it is uncordoned; the manager of f:unschedulable names the "
               "tool"}};
}

void no_room(const PodQuestion& /*q*/, const Candidates& at, PodCause& out) {
  const bool one = at.size() == 1;
  const std::vector<std::string>& preemptible = at.front().preemptible;
  out.reason.message = fmt::format("{} {} suitable but full: {}{}", where_of(at), one ? "is" : "are",
                                   one ? std::string() : fmt::format("on {}, ", at.front().node), at.front().text);
  out.cure = {explain_command(at.front().node),
              {"wait until a pod there ends", "whoever runs the cluster adds nodes or replicas"}};
  if (preemptible.empty()) return;
  out.reason.message += fmt::format("; pods of lower priority use them: {}", first_names(preemptible));
  out.cure.options.insert(out.cure.options.begin(),
                          "the scheduler preempts pods of lower priority, unless preemptionPolicy is Never");
}

struct ObstacleRow {
  Obstacle obstacle;
  std::string_view code;   // CamelCase, stable.
  std::string_view words;  // About the nodes, with the arguments of cause_at(). Can be empty.
  ObstacleAnswer* answer;
};

constexpr ObstacleRow kRows[] = {
    {Obstacle::not_selected, "NotSelected", {}, not_selected},
    {Obstacle::no_gpus, "NoGPUsThere", "the pod selects {where}, and {they_have} no GPUs", select_another},
    {Obstacle::not_served, kNotServed, {}, not_served},
    {Obstacle::renamed, "Renamed",
     "{where} {offer} {other} and not {resource}: renameByDefault determines the name of shared resources",
     ask_for_the_other},
    {Obstacle::too_few, "TooFew",
     "the pod requests {asked} {resource}, and no node that it selects has more than {most}", ask_for_less},
    {Obstacle::refused, "RequestRefused",
     "the {plugins} of {where} {refuse} more than one {resource} per container (failRequestsGreaterThanOne, the "
     "default of MPS): the kubelet would reject the pod there",
     ask_for_one},
    {Obstacle::none_allocatable, "NoneAllocatable", "{where} should serve {resource}: {texts}", explain_first},
    {Obstacle::tainted, "NotTolerated", {}, tainted},
    {Obstacle::pressure, "NodeCondition", "{where} {are} suitable, but {texts}", under_pressure},
    {Obstacle::not_ready, "NotReady", "{where} {are} suitable but not Ready", describe_first},
    {Obstacle::cordoned, "Cordoned", "{where} {are} suitable but cordoned, and not by the operator",
     cordoned_by_others},
    {Obstacle::in_change, "NodeInChange", "{where} {are} suitable, but the operator is changing {profiles}: {texts}",
     [](const PodQuestion&, const Candidates&, PodCause& out) { out.cure.command = rollout_status_command(); }},
    {Obstacle::full, "AllInUse", {}, no_room},
    {Obstacle::none, "NotScheduledYet",
     "GPUs are free for the pod on {where}, and its scheduler has not placed it (yet)", explain_first},
};

std::string_view code_of(Obstacle obstacle) {
  return kRows[static_cast<std::size_t>(obstacle)].code;
}

// The words have {where}, {resource}, {other} (its other name), {most}, {asked}, {texts}; the others by the number of
// nodes.
PodCause cause_at(const PodQuestion& q, const Candidates& at) {
  const Verdict& best = at.front();
  const ObstacleRow& row = kRows[static_cast<std::size_t>(best.obstacle)];
  const bool one = at.size() == 1;
  PodCause out = pod_cause(
      Severity::error, row.code,
      fmt::format(fmt::runtime(row.words), fmt::arg("where", where_of(at)), fmt::arg("resource", best.resource),
                  fmt::arg("other", other_name(best.resource)), fmt::arg("most", best.most),
                  fmt::arg("asked", asked_of(q, at)), fmt::arg("texts", texts_of(at)),
                  fmt::arg("are", one ? "is" : "are"), fmt::arg("they_have", one ? "it has" : "they have"),
                  fmt::arg("offer", one ? "offers" : "offer"), fmt::arg("plugins", one ? "plugin" : "plugins"),
                  fmt::arg("refuse", one ? "refuses" : "refuse"),
                  fmt::arg("profiles", one ? "its profile" : "their profiles")));
  row.answer(q, at, out);
  return out;
}

using ByObstacle = std::map<Obstacle, Candidates>;

void add(ByObstacle& all, const std::string& node, Verdict verdict) {
  Candidates& at = all[verdict.obstacle];
  verdict.node = node;
  const bool is_best = at.empty() || verdict.most > at.front().most;
  at.insert(is_best ? at.begin() : at.end(), std::move(verdict));
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

void explain_placement(const PodQuestion& q, PodExplanation& out) {
  const World& world = q.snapshot.world;
  std::map<std::string, const Node*> nodes;
  for (const auto& [key, node] : world.nodes.all())
    if (has_gpus(*node) || q.index.assessment(key.name) != nullptr) nodes.emplace(key.name, node.get());
  if (nodes.empty()) {
    out.causes.push_back(without_gpu_nodes(world));
    return;
  }
  ByObstacle all;
  for (const auto& [name, node] : nodes) add(all, name, verdict_on(q, *node));
  // Nodes without GPUs that the pod selects: it was meant for them, and the selector is wrong.
  const bool selects_none = all.size() == 1 && all.contains(Obstacle::not_selected);
  for (const auto& [key, node] : world.nodes.all())
    if (selects_none && !nodes.contains(key.name) && !not_selected_by(q.asked, *node))
      add(all, key.name, {Obstacle::no_gpus, "has no GPUs"});
  // The nearest first, and of one obstacle the node that its cause speaks of.
  for (auto at = all.rbegin(); at != all.rend(); ++at)
    for (const Verdict& verdict : at->second)
      out.nodes.push_back({verdict.node, verdict.text, std::string(code_of(at->first))});
  const auto room = all.find(Obstacle::none);
  if (auto unseen = unseen_by_schedulers(q)) {
    out.causes.push_back(*std::move(unseen));
    if (room != all.end()) return;
  }
  if (room != all.end() && q.asked.fraction) return;  // KAI decides there.
  if (room != all.end()) {
    const std::string otherwise = cause_at(q, room->second).reason.message;
    out.causes.push_back(not_placed(q.asked, otherwise, where_of(room->second), room->second.front().node));
    return;
  }
  if (auto slices = awaited_slices(q)) {
    out.causes.push_back(*std::move(slices));
    return;
  }
  // Nodes that the pod does not select are no candidates where it selects others.
  for (auto at = all.rbegin(); at != all.rend() && out.causes.size() < kMostCauses; ++at) {
    const bool first = at == all.rbegin();
    if (!first && at->first < Obstacle::refused) break;
    out.causes.push_back(cause_at(q, at->second));
  }
}

}  // namespace gso
