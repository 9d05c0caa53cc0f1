#include "reconcilers/cluster/other_systems.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/object_refs.h"

namespace gso {

namespace {

// nos also has `mig`: it then creates MIG devices, which any plugin serves.
constexpr std::string_view kMps = "mps";

std::optional<std::string_view> partitioning_label(const Node& node) {
  for (const std::string_view label : {kNosPartitioning, kNosPartitioningBefore})
    if (const auto value = node.meta.labels.get(label)) return *value == kMps ? std::optional(label) : std::nullopt;
  return std::nullopt;
}

bool demands(const Operand& operand, std::string_view label) {
  const auto selected = operand.node_selector.find(std::string(label));
  if (selected != operand.node_selector.end() && selected->second == kMps) return true;
  const auto asks = [&](const NodeSelectorRequirement& r) {
    return r.key == label && r.op == "In" && r.values.size() == 1 && r.values.front() == kMps;
  };
  return !operand.affinity_terms.empty() &&
         std::ranges::all_of(operand.affinity_terms, [&](const auto& term) { return std::ranges::any_of(term, asks); });
}

}  // namespace

bool is_partitioned_by_nos(const Node& node) {
  return partitioning_label(node).has_value();
}

std::vector<std::string> partitioned_nodes(const World& world) {
  std::vector<std::string> out;
  for (const auto& [key, node] : world.nodes.all())
    if (is_partitioned_by_nos(*node)) out.push_back(key.name);
  std::ranges::sort(out);
  return out;
}

std::string nos_label(const Node& node) {
  const auto label = partitioning_label(node);
  return label ? fmt::format("{}={}", *label, kMps) : std::string();
}

std::string nos_in_charge(const Node& node) {
  // Only node.partitioning writes the annotation. Whether it still runs and is switched on, no object shows.
  const bool cut = node.meta.annotations.contains(kPartitioningAnnotation);
  return fmt::format(
      "the GPUs of this node are cut into slices (label {}) {} the chart value modes.partitioning is Enforce. No "
      "SharingPolicy applies while the node has the label",
      nos_label(node), cut ? "by the operator while it runs and" : "by nos, or by the operator where");
}

bool is_plugin_of_nos(const Operand& plugin) {
  return demands(plugin, kNosPartitioning) || demands(plugin, kNosPartitioningBefore);
}

std::set<std::string> keys_of_nos(const World& world) {
  std::set<std::string> keys;
  std::set<std::string> of_others;
  for (const auto& [key, node] : world.nodes.all()) {
    const auto named = node->meta.labels.get(kConfigLabel);
    if (named) (is_partitioned_by_nos(*node) ? keys : of_others).emplace(*named);
  }
  std::erase_if(keys, [&](const std::string& key) { return of_others.contains(key); });
  return keys;
}

namespace {

bool is_hami_plugin(const DaemonSet& daemonset) {
  const auto label = daemonset.match_labels.find(std::string(hami::kComponentLabel));
  if (label != daemonset.match_labels.end() && label->second == hami::kComponent) return true;
  return std::ranges::any_of(daemonset.containers, [](const ContainerSpec& container) {
    return container.name == hami::kContainer && image_name(container.image) == hami::kImage;
  });
}

}  // namespace

std::vector<Operand> hami_plugins(const World& world) {
  std::vector<Operand> out;
  for (const DaemonSet* daemonset : all_daemonsets(world))
    if (is_hami_plugin(*daemonset)) out.push_back(placement_of(*daemonset));
  return out;
}

const Operand* hami_plugin_on(const std::vector<Operand>& plugins, const Node& node) {
  const auto found =
      std::ranges::find_if(plugins, [&](const Operand& plugin) { return selects(plugin, node, false) != Selects::no; });
  return found == plugins.end() ? nullptr : &*found;
}

bool was_registered_by_hami(const Node& node) {
  return node.meta.annotations.contains(hami::kRegistered);
}

namespace {

enum class MarkKind : std::uint8_t { label, taint };

struct QuarantineMark {
  MarkKind kind;
  std::string_view key;
  std::string_view value;  // The value begins with it; empty: any value, but a label needs one.
  std::string_view by;
};

constexpr QuarantineMark kMarks[] = {
    // NVIDIA/NVSentinel, commons/pkg/statemanager: quarantined, draining, drain-succeeded, drain-failed, remediating,
    // remediation-succeeded, remediation-failed. The label is removed when the node is healthy again.
    {MarkKind::label, "dgxc.nvidia.com/nvsentinel-state", "", "NVSentinel has quarantined the node"},
    // AWS, "Resilience-related Kubernetes labels by SageMaker HyperPod": Schedulable, Unschedulable (deep health checks
    // run), UnschedulablePendingReplacement, UnschedulablePendingReboot. The node has the taint during deep health
    // checks ("Installing packages on the Amazon EKS cluster", tolerations).
    {MarkKind::label, "sagemaker.amazonaws.com/node-health-status", "Unschedulable",
     "SageMaker HyperPod has taken the node out of service"},
    {MarkKind::taint, "sagemaker.amazonaws.com/node-health-status", "Unschedulable",
     "SageMaker HyperPod has taken the node out of service"},
    // Google, "Manage disruption to GKE nodes that run GPUs or TPUs": the host's maintenance has begun.
    {MarkKind::label, "cloud.google.com/active-node-maintenance", "ONGOING",
     "GKE is doing maintenance on the node's host"},
    {MarkKind::taint, "cloud.google.com/impending-node-termination", "", "GKE is about to terminate the node"},
    // Azure/AKS release notes and "AKS node auto-repair" (node auto-drain); the second is its former name.
    {MarkKind::taint, "remediator.kubernetes.azure.com/unschedulable", "", "AKS is repairing or draining the node"},
    {MarkKind::taint, "remediator.aks.microsoft.com/unschedulable", "", "AKS is repairing or draining the node"},
    // medik8s/self-node-remediation, controllers/selfnoderemediation_controller.go: NodeNoExecuteTaint.
    {MarkKind::taint, "medik8s.io/remediation", "", "Self Node Remediation is fencing the node"},
    // medik8s/fence-agents-remediation, api/v1alpha1: FARNoExecuteTaintKey, and FARNoScheduleTaintKey of later
    // releases.
    {MarkKind::taint, "medik8s.io/fence-agents-remediation", "", "Fence Agents Remediation is fencing the node"},
    {MarkKind::taint, "remediation.medik8s.io/fence-agents-remediation", "",
     "Fence Agents Remediation is fencing the node"},
    // medik8s/node-maintenance-operator, controllers/taint.go.
    {MarkKind::taint, "medik8s.io/drain", "", "the Node Maintenance Operator has put the node into maintenance"},
    // Kubernetes, "Non-graceful node shutdown handling"; Self Node Remediation also sets it (OutOfServiceTaint).
    {MarkKind::taint, "node.kubernetes.io/out-of-service", "", "the node is marked as shut down"},
    // kubernetes-sigs/karpenter, pkg/apis/v1/taints.go: set by disruption, node repair and termination.
    {MarkKind::taint, "karpenter.sh/disrupted", "", "Karpenter is removing the node"},
};

bool fits(const QuarantineMark& mark, std::string_view value) {
  return value.starts_with(mark.value) && (mark.kind == MarkKind::taint || !value.empty());
}

std::string print(const QuarantineMark& mark, std::string_view value) {
  return fmt::format("{} {}{}{}", mark.kind == MarkKind::label ? "label" : "taint", mark.key, value.empty() ? "" : "=",
                     value);
}

}  // namespace

std::optional<Quarantine> quarantine_of(const Node& node) {
  for (const QuarantineMark& mark : kMarks) {
    if (mark.kind == MarkKind::label) {
      const auto value = node.meta.labels.get(mark.key);
      if (value && fits(mark, *value)) return Quarantine{mark.by, print(mark, *value)};
      continue;
    }
    for (const Taint& taint : node.taints)
      if (taint.key == mark.key && fits(mark, taint.value.view()))
        return Quarantine{mark.by, print(mark, taint.value.view())};
  }
  return std::nullopt;
}

bool is_double_offer_permanent(const Node& node) {
  const auto gpus = node.allocatable.find(Interned(kGpuResource));
  return serves_gpus(node) && (gpus == node.allocatable.end() || gpus->second == 0);
}

std::string double_offer(const Node& node, std::string_view device_class, std::string_view resource) {
  std::string_view when =
      ", which the node's device plugin serves. While the plugin restarts, the scheduler gives the same GPU to a "
      "second pod";
  if (resource == kGpuResource) {
    when =
        is_double_offer_permanent(node)
            ? ". The device plugin serves them here under other names alone, so nvidia.com/gpu is 0, and the "
              "scheduler gives each GPU to a second pod at any time. The operator restarts no pod on this node"
            : ". While the device plugin restarts, the scheduler gives the same GPU to a second pod, so the operator "
              "restarts no pod on this node";
  }
  return fmt::format(
      "the DRA driver {} offers the GPUs of this node as well, and DeviceClass {} has extendedResourceName: {}{}. "
      "Remove extendedResourceName from the DeviceClass, or keep the DRA driver off the node",
      kGpuDraDriver, device_class, resource, when);
}

void DraOffers::attach(World& world) {
  const auto note = [this](const ObjectKey&, const auto&, const auto&) { stale_ = true; };
  world.device_classes.add_listener(note);
  world.resource_slices.add_listener(note);
}

void DraOffers::refresh(const World& world) {
  if (!std::exchange(stale_, false)) return;
  const auto offered_before = std::exchange(offered_, {});
  const bool all_before = std::exchange(all_nodes_, false);
  const std::string class_before = std::exchange(device_class_, {});
  for (const auto& [key, slice] : world.resource_slices.all()) {
    if (slice->driver != kGpuDraDriver || !slice->offers) continue;
    all_nodes_ = all_nodes_ || slice->all_nodes;
    if (!slice->all_nodes && !slice->node.empty()) offered_.emplace(slice->node.view());
  }
  classes_.clear();
  std::map<std::string_view, WallTime> created;
  for (const DeviceClass* device_class : in_order(world.device_classes)) {
    const std::string_view resource = device_class->extended_resource.view();
    const WallTime since = device_class->meta.creation_timestamp;
    const auto [newest, is_first] = created.try_emplace(resource, since);
    if (!resource.starts_with("nvidia.com/") || (!is_first && since <= newest->second)) continue;
    newest->second = since;
    classes_[std::string(resource)] = device_class->meta.name;
  }
  const auto gpus = classes_.find(std::string(kGpuResource));
  if (gpus != classes_.end()) device_class_ = gpus->second;
  std::ranges::set_symmetric_difference(offered_before, offered_, std::inserter(changed_, changed_.end()));
  if (device_class_ != class_before)
    for (std::string& name : offering(world)) changed_.insert(std::move(name));
  if (all_nodes_ != all_before)
    for (const auto& [key, node] : world.nodes.all()) changed_.insert(key.name);
}

std::vector<std::string> DraOffers::take_changed_nodes() {
  const std::set<std::string> changed = std::exchange(changed_, {});
  return {changed.begin(), changed.end()};
}

std::vector<std::string> DraOffers::nodes(const World& world) const {
  return device_class_.empty() ? std::vector<std::string>() : offering(world);
}

std::vector<std::string> DraOffers::offering(const World& world) const {
  std::set<std::string> out(offered_.begin(), offered_.end());
  if (all_nodes_)
    for (const auto& [key, node] : world.nodes.all()) out.insert(key.name);
  return {out.begin(), out.end()};
}

const std::string& DraOffers::class_of(std::string_view node) const {
  static const std::string kNone;
  return !device_class_.empty() && (all_nodes_ || offered_.contains(node)) ? device_class_ : kNone;
}

using Json = nlohmann::json;

namespace {

constexpr std::string_view kClaim = "ResourceClaim";
constexpr std::string_view kTemplate = "ResourceClaimTemplate";
constexpr std::string_view kClass = "DeviceClass";

k8s::ObjectKey key_of(const Json& object) {
  const Json& meta = object_at(object, "metadata");
  return {text_at(meta, "namespace"), text_at(meta, "name")};
}

}  // namespace

bool PodClaims::reads(std::string_view kind) {
  return kind == kClaim || kind == kTemplate || kind == kClass;
}

// A request has its class itself (v1beta1), in `exactly`, or in each alternative of `firstAvailable`.
PodClaims::Claim PodClaims::read(const Json& spec, const Json& status) {
  Claim out;
  const auto note = [&](const Json& request) {
    const std::string device_class = text_at(request, "deviceClassName");
    if (!device_class.empty()) out.classes.insert(device_class);
    return !device_class.empty();
  };
  for (const Json& request : list_at(object_at(spec, "devices"), "requests")) {
    bool named = note(request) || note(object_at(request, "exactly"));
    for (const Json& alternative : list_at(request, "firstAvailable")) named = note(alternative) || named;
    out.unclear = out.unclear || !named;
  }
  for (const Json& result : list_at(object_at(object_at(status, "allocation"), "devices"), "results"))
    out.drivers.insert(text_at(result, "driver"));
  out.unclear = out.unclear || out.classes.empty();
  return out;
}

void PodClaims::add(std::string_view kind, std::string_view json) {
  const Json object = Json::parse(json.begin(), json.end(), nullptr, false);
  if (!object.is_object()) return;
  if (kind == kClass) {
    if (dump(object_at(object, "spec")).find(kGpuDraDriver) != std::string::npos)
      gpu_classes_.insert(key_of(object).name);
  } else if (kind == kTemplate) {
    templates_.insert_or_assign(key_of(object), read(object_at(object_at(object, "spec"), "spec"), Json()));
  } else {
    claims_.insert_or_assign(key_of(object), read(object_at(object, "spec"), object_at(object, "status")));
  }
}

bool PodClaims::is_for_gpu(const Claim& claim) const {
  if (!claim.drivers.empty()) return claim.drivers.contains(std::string(kGpuDraDriver));
  if (claim.unclear) return true;
  return std::ranges::any_of(claim.classes, [&](const std::string& device_class) {
    return gpu_classes_.contains(device_class) || device_class.ends_with("nvidia.com");
  });
}

// By its name, else by the name of the claim that was made of the template, else by the template.
const PodClaims::Claim* PodClaims::claim_of(const Json& pod, const Json& entry) const {
  const std::string ns = key_of(pod).ns;
  std::string name = text_at(entry, "resourceClaimName");
  for (const Json& made : list_at(object_at(pod, "status"), "resourceClaimStatuses"))
    if (name.empty() && text_at(made, "name") == text_at(entry, "name")) name = text_at(made, "resourceClaimName");
  if (const auto claim = claims_.find({ns, name}); claim != claims_.end()) return &claim->second;
  const auto made_of = templates_.find({ns, text_at(entry, "resourceClaimTemplateName")});
  return made_of == templates_.end() ? nullptr : &made_of->second;
}

std::string PodClaims::without_other_claims(std::string_view pod) const {
  Json object = Json::parse(pod.begin(), pod.end(), nullptr, false);
  if (!object.is_object()) return std::string(pod);
  const Json claims = list_at(object_at(object, "spec"), "resourceClaims");
  const bool of_gpu = std::ranges::any_of(claims, [&](const Json& entry) {
    const Claim* claim = claim_of(object, entry);
    return claim == nullptr || is_for_gpu(*claim);
  });
  if (claims.empty() || of_gpu) return std::string(pod);
  object["spec"].erase("resourceClaims");
  return dump(object);
}

}  // namespace gso
