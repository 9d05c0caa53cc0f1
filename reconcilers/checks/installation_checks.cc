// The installation: the DaemonSets beside the plugin, their settings, other components that depend on what the node
// serves, and the defects of the plugin's release.
#include <array>
#include <string>

#include <fmt/format.h>

#include "reconcilers/checks/check_functions.h"
#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/plugin_settings.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"

namespace gso::check {
namespace {

// --- The DaemonSets.

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

// --- The release. An unknown one counts as the worst.

// Fields of the profile that a minor release introduced. Source: api/config/v1 of the device plugin's tags.
struct KnownSince {
  std::string_view path;
  int minor;
};
constexpr std::array<KnownSince, 6> kKnownSince{{{"flags.useNodeFeatureAPI", 15},
                                                 {"flags.nvidiaDevRoot", 16},
                                                 {"flags.deviceDiscoveryStrategy", 16},
                                                 {"imex.channelIDs", 17},
                                                 {"imex.required", 17},
                                                 {"flags.gdrcopyEnabled", 18}}};

bool by_label(const Setup& setup) {
  return setup.key.source == EffectiveKey::Source::label;
}

bool refused_by_label(const Setup& setup) {
  return setup.wants_mps() && by_label(setup) && setup.key.key != setup.plugin.default_key &&
         !loads_mps_by_label(setup.plugin.version, setup.mps_signal_fixed);
}

bool panics(const PluginVersion& version) {
  return version.known && !version.known_below(0, 18, 0) && version.known_below(0, 20, 0);
}

Complaints sidecar(const Setup& setup, bool of_panicking_release, std::string_view what) {
  const PluginVersion& version = setup.plugin.version;
  // If MPS is refused, replacing pods does not help.
  const bool concerned = setup.wants_mps() && knows_mps(version) && !refused_by_label(setup);
  if (!concerned || panics(version) != of_panicking_release) return {};
  if (setup.mps_signal_fixed && !of_panicking_release) return {};
  return {{"sharing.mps",
           fmt::format("the MPS daemon of plugin {} does not load a changed profile by itself: its sidecar {}; its "
                       "pod must be replaced when the profile changes",
                       version.to_string(), what)}};
}

}  // namespace

// --- The DaemonSets.

Complaints gpu_cluster_serves(const Setup& setup) {
  if (setup.installation.gpu_cluster.empty()) return {};
  return {{"", fmt::format("GPUCluster {} shares GPUs by DRA claims: no profile of ConfigMap {} applies",
                           setup.installation.gpu_cluster, setup.installation.id())}};
}

Complaints setting_invalid(const Setup& setup) {
  Complaints out;
  for (const std::string& wrong : wrong_settings(setup.plugin))
    out.push_back({"", fmt::format("DaemonSet {}: {}", k8s::to_string(setup.plugin.key), wrong)});
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

// --- The release. An unknown one counts as the worst.

Complaints mps_not_in_release(const Setup& setup) {
  const Profile* profile = setup.valid_profile();
  if (profile == nullptr || !profile->mps || knows_mps(setup.plugin.version)) return {};
  return {{"sharing.mps", fmt::format("plugin {} does not support MPS and ignores the section: the GPUs would not be "
                                      "shared; upgrade to v0.15.0 or later",
                                      setup.plugin.version.to_string())}};
}

Complaints mps_by_label_unsupported(const Setup& setup) {
  if (!refused_by_label(setup)) return {};
  if (setup.label_left)
    return {
        {"sharing.mps",
         fmt::format("label {} is left over: it names MPS key {}, which the operator generated for an inline profile "
                     "that no policy of the node has any more, and with which its pods cannot start again. Remove "
                     "the label",
                     setup.plugin.node_label, setup.key.key)}};
  return {{.path = "sharing.mps",
           .message = one_mps_profile_text(setup.installation, setup.plugin, "selects", {shown_value(setup.key.key)},
                                           setup.key.key),
           .key = setup.key.key}};
}

Complaints default_first_start(const Setup& setup) {
  const bool loads_another = by_label(setup) && setup.key.key != setup.plugin.default_key;
  if (setup.valid_profile() == nullptr || !loads_another || setup.plugin.version.known_below(0, 18, 2)) return {};
  return {{"", fmt::format("plugin {} loads the default profile first at every start and the labelled one after it; "
                           "until then the node shows the default",
                           setup.plugin.version.to_string())}};
}

Complaints field_not_in_release(const Setup& setup) {
  Complaints out;
  const Profile* profile = setup.valid_profile();
  for (const KnownSince& field : kKnownSince) {
    const bool written = profile != nullptr && profile->settings.contains(std::string(field.path));
    if (!written || !setup.plugin.version.known_below(0, field.minor, 0)) continue;
    out.push_back({std::string(field.path),
                   fmt::format("plugin {} does not support the field and ignores it; upgrade to v0.{}.0 or later",
                               setup.plugin.version.to_string(), field.minor)});
  }
  return out;
}

Complaints mps_sidecar_panics(const Setup& setup) {
  return sidecar(setup, true, "panics");
}

Complaints mps_sidecar_cannot_signal(const Setup& setup) {
  return sidecar(setup, false, "finds no process to signal");
}

Complaints fail_requests_forced(const Setup& setup) {
  const PluginVersion& version = setup.plugin.version;
  if (!setup.wants_mps() || !knows_mps(version)) return {};
  const Profile& profile = *setup.valid_profile();
  if (profile.mps->fail_requests_greater_than_one != false || !refuses_requests_above_one(profile, version)) return {};
  return {{"sharing.mps.failRequestsGreaterThanOne",
           fmt::format("plugin {} refuses requests above 1 anyway; false is honoured from v0.20.0 on",
                       version.to_string())}};
}

Complaints allocation_policy_unknown(const Setup& setup) {
  constexpr std::string_view kField = "flags.plugin.sharedDevicesAllocationPolicy";
  const Profile* profile = setup.valid_profile();
  const PluginVersion& version = setup.plugin.version;
  const bool written = profile != nullptr && profile->settings.contains(std::string(kField));
  if (!written || (version.known && !version.known_below(0, 20, 0))) return {};
  return {{std::string(kField),
           fmt::format("plugin {} does not support the field and ignores it; upgrade to v0.20.0 or later",
                       version.to_string())}};
}

}  // namespace gso::check
