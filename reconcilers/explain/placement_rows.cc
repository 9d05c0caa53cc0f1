// What can keep a waiting pod off a node, one row for each obstacle: its name, what is said about it, and what to do.
#include "reconcilers/explain/pod_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/field_names.h"

namespace gso {

namespace {

constexpr std::string_view kShared = ".shared";

std::int64_t asked_of(const AskedPod& asked, const Candidates& at) {
  return amount_of(asked.pod.gpu_requests, at.best.resource);
}

Cure described(const Candidates& at, std::vector<std::string> options = {}) {
  return {describe_node_command(at.nodes.front()), std::move(options)};
}

// What the verdicts say: the only text, or each with its nodes ("is full (a, b); is cordoned (c)").
std::string texts_of(const Candidates& at) {
  if (at.by_text.size() < 2) return at.best.text;
  std::string out;
  std::size_t left = kMostNames;
  for (const auto& [text, nodes] : at.by_text) {
    if (left-- == 0) return fmt::format("{} and {} more", out, at.by_text.size() - kMostNames);
    out += fmt::format("{}{} ({})", out.empty() ? "" : "; ", text, first_names(nodes));
  }
  return out;
}

// No node with GPUs has the label, whatever its value.
bool nobody_has_label(const Candidates& at) {
  return at.best.most == 0 && !at.best.resource.empty();
}

std::string not_selected(const AskedPod& asked, const Candidates& at) {
  if (nobody_has_label(at)) {
    const auto wanted = asked.placement.node_selector.find(at.best.resource);
    return fmt::format("the pod selects no node with GPUs: it requires the label {}{}, and none of them has the label",
                       at.best.resource,
                       wanted == asked.placement.node_selector.end() ? std::string() : "=" + wanted->second);
  }
  return fmt::format("the pod selects no node with GPUs: {}", at.best.text);
}

// The labels of nodes say what they are: whoever sets them (cloud, NFD, GFD, kubelet) writes them back, and a false one
// misleads every other pod.
Cure select_another(const AskedPod& /*asked*/, const Candidates& at) {
  if (at.best.obstacle == Obstacle::not_selected && nobody_has_label(at)) {
    return {{"kubectl get nodes --show-labels"},
            {"the pod's owner selects by a label that nodes with GPUs have",
             "whoever runs the cluster finds out what should have set the label, or adds nodes with it"}};
  }
  std::vector<std::string> options{"the pod's owner selects a label value that nodes with GPUs have",
                                   "whoever runs the cluster adds nodes with that label"};
  if (at.best.resource == kGpuProduct) {
    options[0] = fmt::format(
        "the pod's owner selects the product as the nodes have it (sharing without renameByDefault appends {})",
        kSharedProduct);
  }
  return {{at.best.resource.empty() ? "kubectl get nodes --show-labels"
                                    : fmt::format("kubectl get nodes --label-columns {}", at.best.resource)},
          std::move(options)};
}

std::string not_served(const AskedPod& /*asked*/, const Candidates& at) {
  const auto gigabytes = slice_gigabytes(at.best.resource);
  if (gigabytes && at.best.nobody_cuts) {
    return fmt::format(
        "no node has a slice of {} GiB, and none will: no node of the cluster has the label {}=mps, so "
        "nothing cuts slices",
        *gigabytes, kNosPartitioning);
  }
  if (gigabytes) {
    return fmt::format(
        "no node that the pod selects has a slice of {} GiB: partitioning cuts them on the nodes that have its label, "
        "once the scheduler has found no node for the pod",
        *gigabytes);
  }
  if (const std::string_view meant = meant_resource(at.best.resource); !meant.empty()) {
    return fmt::format("no node that the pod selects offers {}: no device plugin serves that name; did you mean {}?",
                       at.best.resource, meant);
  }
  // Slices under the name of GPUs.
  if (at.best.most > 0)
    return fmt::format("no node that the pod selects offers {}: {} {}", at.best.resource, at.nodes.front(),
                       at.best.text);
  return fmt::format("no node that the pod selects offers {}: no device plugin serves it, or it has another name",
                     at.best.resource);
}

Cure show_status(const AskedPod& asked, const Candidates& at) {
  if (const std::string_view meant = meant_resource(at.best.resource); !meant.empty())
    return ask_for(asked, std::string(meant), asked_of(asked, at), at.best.resource);
  if (at.best.most > 0) {
    return described(
        at, {fmt::format("the pod's owner requests {} instead, on a node like {}", kGpuResource, at.nodes.front()),
             "whoever runs the cluster sets the MIG strategy of the device plugin to mixed: slices then "
             "have names of their own"});
  }
  Cure cure{{"gpu-sharing-operator status"}};
  if (at.best.nobody_cuts)
    cure.options = {fmt::format("the pod's owner requests what the nodes offer, {} for example", kGpuResource),
                    "whoever runs the cluster gives nodes to partitioning: docs/partitioning.md has the steps"};
  return cure;
}

Cure ask_for_the_other(const AskedPod& asked, const Candidates& at) {
  return ask_for(asked, other_name(at.best.resource), std::min(asked_of(asked, at), at.best.most), at.best.resource);
}

Cure ask_for_less(const AskedPod& asked, const Candidates& at) {
  return {show_template(asked),
          {fmt::format("the pod's owner requests at most {}, or divides the work among several pods", at.best.most),
           "whoever runs the cluster adds a larger node, or a profile with more replicas"}};
}

std::string tainted(const AskedPod& /*asked*/, const Candidates& at) {
  return fmt::format("the pod does not tolerate a taint of {}: {}", where_of(at),
                     at.by_text.size() > 1 ? texts_of(at) : to_string(*at.best.taint));
}

// Taints by which controllers empty a node, or keep it empty until it is ready: a pod that tolerates one would be
// started where it cannot run.
bool is_of_a_controller(std::string_view key) {
  static constexpr std::array<std::string_view, 9> kParts{"node.cloudprovider.kubernetes.io/",
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

Cure tolerate_it(const AskedPod& asked, const Candidates& at) {
  const Taint& taint = *at.best.taint;
  if (taint.effect != "NoSchedule" || is_of_a_controller(taint.key.view())) {
    return described(at, {"wait until the system that set the taint removes it"});
  }
  Cure cure = tolerate(asked, taint);
  const bool changes = cure.command.does == Command::Does::changes;
  cure.options.insert(cure.options.begin(),
                      fmt::format("whoever set the taint decides which pods are allowed to run there{}",
                                  changes ? "; the command makes the pod one of them" : ""));
  if (at.by_text.size() > 1) {
    cure.options.push_back(
        fmt::format("a toleration of {} alone leaves the nodes with other taints closed to the pod", to_string(taint)));
  }
  return cure;
}

std::string full(const AskedPod& /*asked*/, const Candidates& at) {
  const std::string room = at.best.preemptible.empty()
                               ? std::string()
                               : fmt::format("; pods of lower priority use them: {}", first_names(at.best.preemptible));
  const bool one = at.nodes.size() == 1;
  return fmt::format("{} {} suitable but full: {}{}{}", where_of(at), one ? "is" : "are",
                     one ? std::string() : fmt::format("on {}, ", at.nodes.front()), at.best.text, room);
}

Cure wait_for_room(const AskedPod& /*asked*/, const Candidates& at) {
  std::vector<std::string> options{"wait until a pod there ends", "whoever runs the cluster adds nodes or replicas"};
  if (!at.best.preemptible.empty())
    options.insert(options.begin(), "the scheduler preempts pods of lower priority, unless preemptionPolicy is Never");
  return {explain_command(at.nodes.front()), std::move(options)};
}

struct ObstacleRow {
  Obstacle obstacle;
  std::string_view code;  // CamelCase, stable.
  // About the nodes, with the arguments of worded(); empty: `text` says it.
  std::string_view words;
  std::string (*text)(const AskedPod& asked, const Candidates& at) = nullptr;
  Cure (*cure)(const AskedPod& asked, const Candidates& at) = nullptr;
};

constexpr ObstacleRow kRows[] = {
    {Obstacle::not_selected, "NotSelected", {}, not_selected, select_another},
    {Obstacle::no_gpus, "NoGPUsThere", "the pod selects {where}, and {they_have} no GPUs", nullptr, select_another},
    {Obstacle::not_served, "NotServed", {}, not_served, show_status},
    {Obstacle::renamed, "Renamed",
     "{where} {offer} {other} and not {resource}: renameByDefault determines the name of shared resources", nullptr,
     ask_for_the_other},
    {Obstacle::too_few, "TooFew",
     "the pod requests {asked} {resource}, and no node that it selects has more than {most}", nullptr, ask_for_less},
    {Obstacle::refused, "RequestRefused",
     "the {plugins} of {where} {refuse} more than one {resource} per container (failRequestsGreaterThanOne, the "
     "default of MPS): the kubelet would reject the pod there",
     nullptr,
     [](const AskedPod& asked, const Candidates& at) { return ask_for(asked, at.best.resource, 1, at.best.resource); }},
    {Obstacle::none_allocatable, "NoneAllocatable", "{where} should serve {resource}: {texts}", nullptr,
     [](const AskedPod&, const Candidates& at) { return Cure{explain_command(at.nodes.front())}; }},
    {Obstacle::tainted, "NotTolerated", {}, tainted, tolerate_it},
    {Obstacle::pressure, "NodeCondition", "{where} {are} suitable, but {texts}", nullptr,
     [](const AskedPod&, const Candidates& at) {
       return described(
           at, {"whoever runs the node ends the condition that the taint names; Kubernetes then removes the taint"});
     }},
    {Obstacle::not_ready, "NotReady", "{where} {are} suitable but not Ready", nullptr,
     [](const AskedPod&, const Candidates& at) { return described(at); }},
    // Who cordons a node has a reason that no object shows.
    {Obstacle::cordoned, "Cordoned", "{where} {are} suitable but cordoned, and not by the operator", nullptr,
     [](const AskedPod&, const Candidates& at) {
       return Cure{{fmt::format("kubectl get node {} --show-managed-fields --output yaml", at.nodes.front())},
                   {"whoever cordoned the node decides when it is uncordoned; the manager of f:unschedulable names the "
                    "tool"}};
     }},
    {Obstacle::in_change, "NodeInChange", "{where} {are} suitable, but the operator is changing {profiles}: {texts}",
     nullptr, [](const AskedPod&, const Candidates&) { return Cure{rollout_status_command()}; }},
    {Obstacle::full, "AllInUse", {}, full, wait_for_room},
    {Obstacle::none, "NotScheduledYet",
     "GPUs are free for the pod on {where}, and its scheduler has not placed it (yet)", nullptr,
     [](const AskedPod&, const Candidates&) { return Cure(); }},
};

// {where}, {resource}, {other} (its other name), {most}, {asked}, {texts}; the others by the number of nodes.
std::string worded(std::string_view words, const AskedPod& asked, const Candidates& at) {
  const bool one = at.nodes.size() == 1;
  return fmt::format(fmt::runtime(words), fmt::arg("where", where_of(at)), fmt::arg("resource", at.best.resource),
                     fmt::arg("other", other_name(at.best.resource)), fmt::arg("most", at.best.most),
                     fmt::arg("asked", asked_of(asked, at)), fmt::arg("texts", texts_of(at)),
                     fmt::arg("are", one ? "is" : "are"), fmt::arg("they_have", one ? "it has" : "they have"),
                     fmt::arg("offer", one ? "offers" : "offer"), fmt::arg("plugins", one ? "plugin" : "plugins"),
                     fmt::arg("refuse", one ? "refuses" : "refuse"),
                     fmt::arg("profiles", one ? "its profile" : "their profiles"));
}

const ObstacleRow& row_of(Obstacle obstacle) {
  return kRows[static_cast<std::size_t>(obstacle)];
}

}  // namespace

std::string_view code_of(Obstacle obstacle) {
  return row_of(obstacle).code;
}

PodCause cause_of(Obstacle obstacle, const AskedPod& asked, const Candidates& at) {
  const ObstacleRow& row = row_of(obstacle);
  return pod_cause(Severity::error, row.code, row.text == nullptr ? worded(row.words, asked, at) : row.text(asked, at),
                   row.cure(asked, at));
}

std::string where_of(const Candidates& at) {
  std::vector<std::string> names = at.nodes;
  std::ranges::sort(names);
  return names.size() == 1 ? fmt::format("one node ({})", names.front())
                           : fmt::format("{} nodes ({})", names.size(), first_names(names));
}

std::string other_name(std::string_view resource) {
  if (resource.ends_with(kShared)) return std::string(resource.substr(0, resource.size() - kShared.size()));
  return std::string(resource) + std::string(kShared);
}

}  // namespace gso
