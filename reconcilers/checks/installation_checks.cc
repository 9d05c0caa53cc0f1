// The DaemonSets beside the plugin, their settings, and other components that depend on what the node serves.
#include <string>

#include <fmt/format.h>

#include "reconcilers/checks/check_functions.h"
#include "reconcilers/cluster/overrides.h"
#include "reconcilers/cluster/release.h"
#include "reconcilers/model/labels.h"

namespace gso::check {
namespace {

using LabelMode = PlannerSettings::LabelMode;

bool runs_mps(const Setup& setup) {
  return setup.wants_mps() && knows_mps(setup.plugin.version);
}

// How an operand that must load the same profile as the plugin differs from it; empty if it does not.
std::string difference(const Operand* operand, const Setup& setup) {
  return operand == nullptr ? std::string() : config_difference(*operand, setup.plugin);
}

std::string other_config(const Operand& operand, const std::string& difference, std::string_view effect) {
  return fmt::format("DaemonSet {} {}: {}; configure both alike", k8s::to_string(operand.key), difference, effect);
}

// The label that the MPS daemon's pods need and the node lacks, as "key=value"; empty if no label is missing.
std::string lacking_label(const Setup& setup) {
  if (!runs_mps(setup) || setup.mps == nullptr) return {};
  const auto wanted = setup.mps->node_selector.find(std::string(kMpsCapable));
  if (wanted == setup.mps->node_selector.end() || setup.mps_capable == wanted->second) return {};
  return fmt::format("{}={}", kMpsCapable, wanted->second);
}

std::string pods_need(const Setup& setup, const std::string& label) {
  return fmt::format("the MPS daemon's pods (DaemonSet {}) need the node label {}", k8s::to_string(setup.mps->key),
                     label);
}

// A GFD that loads another profile writes mps.capable according to it, and no other component is allowed to write the
// label.
std::string gfd_writes_otherwise(const Setup& setup) {
  return setup.gfd == nullptr ? difference(setup.other_gfd, setup) : std::string();
}

}  // namespace

Complaints gpu_cluster_serves(const Setup& setup) {
  if (setup.installation.gpu_cluster.empty()) return {};
  return {{"", fmt::format("GPUCluster {} shares GPUs by DRA claims: no profile of ConfigMap {} applies",
                           setup.installation.gpu_cluster, setup.installation.id())}};
}

Complaints setting_invalid(const Setup& setup) {
  Complaints out;
  for (const std::string& wrong : wrong_settings(setup.plugin)) {
    out.push_back({"", fmt::format("DaemonSet {}: {}", k8s::to_string(setup.plugin.key), wrong)});
  }
  return out;
}

Complaints gfd_other_config(const Setup& setup) {
  const std::string differs = difference(setup.any_gfd(), setup);
  if (differs.empty()) return {};
  return {{"", other_config(*setup.any_gfd(), differs, "the node's labels will not show its profile")}};
}

Complaints mps_other_config(const Setup& setup) {
  const std::string differs = setup.wants_mps() ? difference(setup.any_mps(), setup) : std::string();
  if (differs.empty()) return {};
  // The daemon of the node's own installation is created, with the profile that it loads.
  return {{"", other_config(*setup.any_mps(), differs, "the plugin will wait for an MPS daemon that never starts"),
           std::nullopt, setup.mps == nullptr}};
}

Complaints mps_daemon_missing(const Setup& setup) {
  if (!runs_mps(setup) || setup.any_mps() != nullptr) return {};
  return {{"sharing.mps",
           "no DaemonSet of the MPS control daemon selects the node: the plugin waits for it forever, and the node has "
           "0 GPUs"}};
}

Complaints mps_daemon_has_no_pods(const Setup& setup) {
  const std::string label = lacking_label(setup);
  if (label.empty()) return {};
  const std::string pods = pods_need(setup, label);
  if (const std::string differs = gfd_writes_otherwise(setup); !differs.empty()) {
    return {{"sharing.mps",
             fmt::format("{}, and DaemonSet {} (GPU Feature Discovery), which writes it, {}; configure both alike",
                         pods, k8s::to_string(setup.other_gfd->key), differs),
             std::nullopt, setup.label_mode != LabelMode::enforce}};
  }
  if (setup.any_gfd() != nullptr) return {};
  const bool we_write = setup.label_mode != LabelMode::verify && !setup.nfd_owns_mps_capable;
  std::string_view remedy = "install GFD and NFD, or set the label manually";
  if (setup.nfd_owns_mps_capable) {
    remedy =
        "Node Feature Discovery owns the label, so no other component can write it: install GFD, or remove the "
        "NodeFeature that sets the label";
  }
  if (we_write) remedy = "the operator writes it once the fleet's baseline is recorded";
  return {{"sharing.mps",
           fmt::format("{}, but no GPU Feature Discovery runs on the node to write it; {}", pods, remedy),
           we_write ? Severity::info : Severity::error, false}};
}

Complaints standalone_mps_conflict(const Setup& setup) {
  if (!setup.wants_mps() || setup.standalone == nullptr) return {};
  return {{"", fmt::format("the profile shares by MPS, and DaemonSet {} is for the node as well: two MPS daemons must "
                           "not serve one GPU. Take the node out of the DaemonSet's node selector "
                           "(standaloneMps.nodeSelector of the chart), or choose a profile without MPS",
                           k8s::to_string(setup.standalone->key))}};
}

Complaints mps_root_missing(const Setup& setup) {
  if (!runs_mps(setup) || has_mps_root(setup.plugin, *setup.valid_profile())) return {};
  const bool empty = setup.plugin.overrides.contains("MPS_ROOT");
  return {
      {"flags.mpsRoot",
       fmt::format("DaemonSet {} sets no --mps-root (environment variable MPS_ROOT{}), and the plugin exits with "
                   "an MPS profile; set it, usually to /run/nvidia/mps",
                   k8s::to_string(setup.plugin.key), empty ? ": it is set but empty, and overrides the profile" : "")}};
}

Complaints nfd_missing(const Setup& setup) {
  const std::string label = lacking_label(setup);
  const bool gfd_writes = setup.any_gfd() != nullptr && gfd_writes_otherwise(setup).empty();
  if (label.empty() || !gfd_writes || setup.nfd_serves) return {};
  return {{"sharing.mps", fmt::format("{}; GFD runs on the node, but no label shows that Node Feature Discovery turns "
                                      "its output into labels: install NFD",
                                      pods_need(setup, label))}};
}

// Autoscalers count only the resource name nvidia.com/gpu.
Complaints rename_hides_gpu_from_autoscaler(const Setup& setup) {
  const Profile* profile = setup.valid_profile();
  const SharingSection* active = profile == nullptr ? nullptr : profile->active();
  const bool renames = active != nullptr && active->rename_by_default && profile->plugin_replicas(kGpuResource) > 1;
  if (setup.autoscaler.empty() || !renames) return {};
  const std::string_view section = profile->strategy() == Strategy::mps ? "mps" : "timeSlicing";
  return {
      {fmt::format("sharing.{}.renameByDefault", section),
       fmt::format("the node offers nvidia.com/gpu.shared but no nvidia.com/gpu, the resource by which {} sees that "
                   "GPUs are ready: the autoscaler might treat the node as unready or empty, and adds no node for pods "
                   "that request nvidia.com/gpu.shared; leave renameByDefault out on nodes that the autoscaler creates",
                   setup.autoscaler)}};
}

}  // namespace gso::check
