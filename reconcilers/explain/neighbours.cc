// See neighbours.h.
#include "reconcilers/explain/neighbours.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/profile/profile.h"

namespace gso {
namespace {

// A mark on a DaemonSet or its template by which something replaces all of its pods at once when a ConfigMap changes.
struct Restarter {
  std::string_view prefix;
  std::string_view tool;
  std::string_view effect;
};
constexpr std::array<Restarter, 5> kRestarters{{
    {"reloader.stakater.com/", "Reloader", "it restarts all pods as soon as the ConfigMap is edited"},
    {"configmap.reloader.stakater.com/", "Reloader", "it restarts all pods as soon as the ConfigMap is edited"},
    {"rollme", "a Helm chart with the annotation rollme", "every helm upgrade restarts all pods"},
    {"checksum/", "a Helm chart with a checksum annotation",
     "a helm upgrade with another profile restarts all pods at once"},
    {"wave.pusher.com/", "Wave", "it restarts all pods as soon as the ConfigMap is edited"},
}};

class Neighbours {
 public:
  Neighbours(const World& world, const FleetIndex& index)
      : world_(world), index_(index), hami_plugins_(hami_plugins(world)) {}

  std::vector<Finding> run() && {
    for (const PluginInstallation& installation : index_.installations()) {
      for (const Operand& operand : installation.operands) restarters(operand);
      owned_by_gitops(installation);
    }
    for (const DaemonSet* daemonset : all_daemonsets(world_)) {
      fractioning(*daemonset);
      exporter(*daemonset);
    }
    for (const Node* node : in_order(world_.nodes)) second_plugin(*node);
    dra();
    return std::move(out_);
  }

 private:
  void add(Severity severity, ObjectRef object, std::string_view reason, std::string message) {
    out_.push_back({severity, std::move(object), std::string(reason), std::move(message)});
  }

  void restarters(const Operand& operand) {
    const DaemonSet* daemonset = world_.daemonsets.find(operand.key);
    if (daemonset == nullptr) return;
    std::string_view reported;
    for (const Restarter& restarter : kRestarters) {
      const bool marked = std::ranges::any_of(daemonset->meta.annotations, [&](const auto& entry) {
        return entry.key.view().starts_with(restarter.prefix);
      });
      if (!marked || restarter.tool == reported) continue;
      reported = restarter.tool;
      add(Severity::warning, daemonset_ref(operand.key), "OtherRestarter",
          fmt::format("{} also restarts these pods: {}, without canary, budgets or a look at workloads. Exclude the "
                      "DaemonSet there",
                      restarter.tool, restarter.effect));
    }
  }

  // Argo CD or Flux writes its own version of the ConfigMap back, a profile that was corrected by hand included.
  void owned_by_gitops(const PluginInstallation& installation) {
    const ConfigMap* config_map = world_.configmaps.find(installation.config_map_key());
    if (config_map == nullptr) return;
    const GitOpsOwner owner = gitops_owner(*config_map);
    if (!owner.syncs) return;
    add(Severity::info, config_map_ref(config_map->meta.key()), "OwnedByGitOps",
        fmt::format("{} owns the ConfigMap: an edit by hand is undone at the next sync (within minutes where it syncs "
                    "by itself), and each of the two changes restarts nodes. Change the profile in Git",
                    owner.tool));
  }

  [[nodiscard]] bool runs_mps_on_nodes_of(const DaemonSet& daemonset) const {
    const Operand placement = placement_of(daemonset);
    return std::ranges::any_of(index_.node_names(), [&](const std::string& name) {
      const NodeAssessment* a = index_.assessment(name);
      const Node* node = world_.nodes.find(name);
      const bool mps = a != nullptr && a->profile != nullptr && a->profile->valid &&
                       a->profile->profile().strategy() == Strategy::mps;
      return mps && node != nullptr && selects(placement, *node, true) != Selects::no;
    });
  }

  static bool has_container(const DaemonSet& daemonset, std::string_view name) {
    return std::ranges::any_of(daemonset.containers,
                               [&](const ContainerSpec& container) { return container.name == name; });
  }
  static bool has_image(const DaemonSet& daemonset, std::string_view part) {
    return std::ranges::any_of(daemonset.containers, [&](const ContainerSpec& container) {
      return container.image.find(part) != std::string::npos;
    });
  }

  // kai-gpu-fractioning runs an MPS daemon of its own.
  void fractioning(const DaemonSet& daemonset) {
    const bool its = has_image(daemonset, "gpu-fractioning") || has_container(daemonset, "mpsd") ||
                     has_container(daemonset, "fractiond");
    if (!its || !runs_mps_on_nodes_of(daemonset)) return;
    add(Severity::error, daemonset_ref(daemonset.meta.key()), "SecondMPSDaemon",
        "kai-gpu-fractioning runs an MPS daemon on nodes where the device plugin runs one: both set the compute mode "
        "of the "
        "GPUs, and clients of one of them fail. Keep one of the two off these nodes");
  }

  void exporter(const DaemonSet& daemonset) {
    if (!has_image(daemonset, "dcgm-exporter") || !runs_mps_on_nodes_of(daemonset)) return;
    add(Severity::info, daemonset_ref(daemonset.meta.key()), "MetricsNotAttributed",
        "under MPS, DCGM exporter cannot attribute the metrics of a GPU to the pods that share it (all of them are "
        "clients of one server process): dashboards and chargeback by pod are empty or wrong there. Use metrics of the "
        "GPU, or of the applications");
  }

  // HAMi gives out the same GPUs by a device plugin and a scheduler of its own.
  void second_plugin(const Node& node) {
    if (index_.assessment(node.meta.name) == nullptr) return;
    if (const Operand* hami = hami_plugin_on(hami_plugins_, node)) {
      add(Severity::error, node_ref(node.meta.name), "SecondDevicePlugin",
          fmt::format(
              "HAMi's device plugin (DaemonSet {}) serves the GPUs of this node as well: both hand out the same "
              "GPUs, and neither knows of the other. Keep one of them off the node, by its node selector",
              k8s::to_string(hami->key)));
    } else if (was_registered_by_hami(node)) {
      add(Severity::warning, node_ref(node.meta.name), "SecondDevicePlugin",
          fmt::format("the annotation {} says that HAMi's device plugin has registered the GPUs of this node, and no "
                      "DaemonSet of HAMi selects the node now: HAMi's scheduler might still place pods there. If HAMi "
                      "is no longer on the node, remove the annotation: `kubectl annotate node NODE {}-`",
                      hami::kRegistered, hami::kRegistered));
    }
  }

  // Without an extended resource name the scheduler does not mix the two, but one GPU is still handed out twice.
  void dra() {
    std::vector<std::string> both;
    for (const std::string& name : index_.impl().dra.offering(world_)) {
      const Node* node = world_.nodes.find(name);
      if (node != nullptr && index_.impl().dra.class_of(name).empty() && serves_gpus(*node)) both.push_back(name);
    }
    for (const std::string& name : both) {
      add(Severity::warning, node_ref(name), "DRABesidePlugin",
          fmt::format(
              "the DRA driver {} and a device plugin both offer the GPUs of this node: a pod with a ResourceClaim "
              "and a pod that requests nvidia.com/gpu can get the same GPU. Keep one of the two off the node",
              kGpuDraDriver));
    }
  }

  const World& world_;
  const FleetIndex& index_;
  const std::vector<Operand> hami_plugins_;
  std::vector<Finding> out_;
};

}  // namespace

std::vector<Finding> neighbours(const World& world, const FleetIndex& index) {
  return Neighbours(world, index).run();
}

}  // namespace gso
