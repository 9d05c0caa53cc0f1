// The table of the chain. A new check is one row here and one function.
#include <algorithm>
#include <iterator>

#include "reconcilers/checks/check.h"
#include "reconcilers/checks/check_functions.h"
#include "reconcilers/reasons/names.h"

namespace gso {
namespace {

using enum Severity;
using Stage = CheckStage;

// Of a sidecar that does not make the MPS daemon load an edit.
constexpr std::string_view kReplaceMpsDaemon =
    "no action needed while an operator runs: it replaces the pods. Without one, each edit needs a restart of the MPS "
    "daemon, which breaks the running CUDA programs of the node: once no pod uses its GPUs, delete the pods of the MPS "
    "daemon and GFD, then the plugin's";

constexpr Check kChecks[] = {
    // --- Whether profiles apply to the node at all.
    {.code = "GPUClusterServes",
     .blocks = kProviderUnsupported,
     .stage = Stage::provider,
     .listed = false,
     .meaning = "a GPUCluster serves the node's GPUs by DRA claims: no profile applies",
     .remedy = "set up sharing in the claims' DeviceClass or ResourceClaim",
     .of_setup = check::gpu_cluster_serves},

    // --- Whether the ConfigMap has what the node's policy needs.
    {.code = "PolicyKeyNotFound",
     .blocks = kConfigInvalid,
     .stage = Stage::policy,
     .meaning = "a SharingPolicy names a `configMapKey` that the ConfigMap does not have; its nodes are not changed",
     .remedy = "correct the key in the policy, or add it to the ConfigMap",
     .of_node = check::policy_key_not_found},
    {.code = "SingleKeyInUse",
     .blocks = kConfigInvalid,
     .stage = Stage::policy,
     .meaning = "nodes get the ConfigMap's only key by the fallback `single`, and an inline profile would add a second "
                "one",
     .remedy = "set the key as the default",
     .of_node = check::single_key_in_use},

    // --- Whether a pod can start with the key and profile that the node resolves to.
    {.code = kDevicePluginConflict,
     .blocks = kDevicePluginConflict,
     .stage = Stage::profile,
     .of_node = check::device_plugin_conflict},
    {.code = kConfigMapMissing,
     .blocks = kConfigInvalid,
     .stage = Stage::profile,
     .listed = false,
     .meaning = "the pods mount a ConfigMap that does not exist",
     .remedy = "create it",
     .of_setup = check::config_map_missing,
     .of_objects = check::config_map_missing},
    {.code = "KeyNotFound",
     .blocks = kConfigInvalid,
     .writes_to_node = true,
     .stage = Stage::profile,
     .meaning = "the node's label names a key that does not exist: pods that start there crash-loop",
     .remedy = "correct the label, or add the key",
     .of_setup = check::key_not_found},
    {.code = "DefaultKeyNotFound",
     .blocks = kConfigInvalid,
     .stage = Stage::profile,
     .meaning = "the default names a key that does not exist; from v0.18.2 on the pods of labelled nodes cannot start "
                "without it either",
     .remedy = "name a key that exists, or add it",
     .of_setup = check::default_key_not_found,
     .of_objects = check::default_key_not_found},
    {.code = "DefaultMissing",
     .blocks = kConfigInvalid,
     .stage = Stage::profile,
     .meaning = "no default, and no fallback resolves; from v0.18.2 on a label does not help",
     .remedy = "set a default key, or allow the fallback `empty`",
     .of_setup = check::default_missing},
    {.code = "ConfigInvalid", .blocks = kConfigInvalid, .stage = Stage::profile, .of_setup = check::config_invalid},

    // --- Whether the node can be changed to it: the node and its policy,
    {.code = kTaintNotTolerated,
     .blocks = kTaintNotTolerated,
     .writes_to_node = true,
     .of_node = check::taint_not_tolerated},
    {.code = kLabelOwnedByOther,
     .blocks = kLabelOwnedByOther,
     .writes_to_node = true,
     .of_node = check::label_owned_by_other},
    {.code = "ConfigMapImmutable",
     .blocks = kConfigInvalid,
     .meaning = "the ConfigMap is immutable, and an inline profile needs a key in it",
     .remedy = "use a ConfigMap that is not immutable, or an existing key",
     .of_node = check::config_map_immutable},
    {.code = "ConfigMapFull",
     .blocks = kConfigInvalid,
     .meaning =
         "the ConfigMap has nearly 1 MiB, the most that the API server stores, and an inline profile needs a key in it",
     .remedy = "remove keys that nobody uses, or use an existing key",
     .of_node = check::config_map_full},
    {.code = kLabelsMissing, .blocks = kLabelsMissing, .listed = false, .of_node = check::labels_missing},
    // the GPUs and who else uses them,
    {.code = kDevicesUnreadable,
     .blocks = kDevicesUnreadable,
     .writes_to_node = true,
     .of_setup = check::devices_unreadable},
    {.code = kMigEnabled, .blocks = kMigEnabled, .writes_to_node = true, .of_setup = check::mps_fault<kMigEnabled>},
    {.code = kMpsWithMixedMig,
     .blocks = kMigEnabled,
     .writes_to_node = true,
     .meaning = "MPS and `migStrategy: mixed`: the plugin exits, even on nodes without MIG",
     .remedy = "use `none` or `single`, or time-slicing",
     .of_setup = check::mps_fault<kMpsWithMixedMig>},
    {.code = kKaiReservations, .blocks = kKaiReservations, .writes_to_node = true, .of_node = check::kai_reservations},
    {.code = kDraDoubleOffer, .blocks = kDraDoubleOffer, .writes_to_node = true, .of_node = check::dra_double_offer},
    // the installation,
    {.code = "SettingInvalid",
     .blocks = kProviderUnsupported,
     .writes_to_node = true,
     .listed = false,
     .meaning = "a DaemonSet's own flag or variable has a value that the plugin or GFD exits on at start "
                "(`MIG_STRATEGY`, `DEVICE_LIST_STRATEGY`, `DEVICE_ID_STRATEGY`, `DEVICE_DISCOVERY_STRATEGY`, "
                "`SHARED_DEVICES_ALLOCATION_POLICY`, `IMEX_CHANNEL_IDS`, booleans); its nodes are not restarted",
     .remedy = "correct it in the chart's values or the ClusterPolicy",
     .of_setup = check::setting_invalid,
     .of_objects = check::setting_invalid},
    {.code = "MPSNotInRelease",
     .blocks = kProviderUnsupported,
     .writes_to_node = true,
     .meaning = "before v0.15.0 the plugin ignores `sharing.mps`: the GPUs would not be shared, and no pod is "
                "restarted for it",
     .remedy = "upgrade the plugin",
     .of_setup = check::mps_not_in_release},
    {.code = "MPSOtherConfig",
     .blocks = kProviderUnsupported,
     .writes_to_node = true,
     .meaning = "the MPS daemon loads another ConfigMap, default or label than the plugin, which waits for it forever",
     .remedy = "configure it like the plugin",
     .of_setup = check::mps_other_config},
    {.code = kStandaloneMpsConflict,
     .blocks = kStandaloneMpsConflict,
     .writes_to_node = true,
     .of_setup = check::standalone_mps_conflict},
    {.code = "MPSDaemonMissing",
     .blocks = kProviderUnsupported,
     .writes_to_node = true,
     .says_no_gpus = true,
     .meaning = "no DaemonSet of the MPS daemon selects the node",
     .remedy = "install it, or correct its node selector",
     .of_setup = check::mps_daemon_missing},
    {.code = "MPSDaemonHasNoPods",
     .blocks = kProviderUnsupported,
     .writes_to_node = true,
     .meaning = "the MPS daemon's pods need `nvidia.com/mps.capable=true` and no GFD writes it (info if the operator "
                "writes it; an error if NFD or a GFD with another ConfigMap owns the label)",
     .remedy = "install GFD and NFD, or set the label",
     .of_setup = check::mps_daemon_has_no_pods},
    {.code = "MPSRootMissing",
     .blocks = kProviderUnsupported,
     .writes_to_node = true,
     .meaning = "the plugin's DaemonSet has no `--mps-root`, or an empty `MPS_ROOT` (which overrides `flags.mpsRoot`): "
                "it exits with an MPS profile",
     .remedy = "set `MPS_ROOT`, usually `/run/nvidia/mps`",
     .of_setup = check::mps_root_missing},
    {.code = kMpsByLabelUnsupported,
     .blocks = kMpsByLabelUnsupported,
     .writes_to_node = true,
     .of_setup = check::mps_by_label_unsupported,
     .of_objects = check::mps_by_label_unsupported},
    // and whether the GPUs would be served.
    {.code = "MIGNotUniform",
     .blocks = kConfigInvalid,
     .meaning = "`migStrategy: single` with different or no MIG devices",
     .remedy = "make them alike, or use `mixed`",
     .of_setup = check::mig_not_uniform},
    {.code = kMpsReplicasAboveMaximum,
     .blocks = kConfigInvalid,
     .meaning =
         "more replicas than an MPS server accepts clients (48; 16 below compute capability 7.5): the MPS daemon exits",
     .remedy = "use fewer replicas, or time-slicing",
     .of_setup = check::mps_fault<kMpsReplicasAboveMaximum>},
    {.code = kMpsMatchesNothing,
     .blocks = kConfigInvalid,
     .says_no_gpus = true,
     .meaning = "MPS without an entry for `nvidia.com/gpu`: the plugin waits forever",
     .remedy = "add the entry",
     .of_setup = check::mps_fault<kMpsMatchesNothing>},
    {.code = "GPUsCannotBeServed",
     .blocks = kConfigInvalid,
     .meaning = "a component would exit on the profile with these GPUs, for a reason that no other check covers",
     .remedy = "see the message",
     .of_node = check::gpus_cannot_be_served},

    // --- Checks that block no node.
    {.code = "DefaultInvalid",
     .severity = warning,
     .meaning = "the label's key is valid, but the default key has an error, and from v0.18.2 on it is loaded first at "
                "every start",
     .remedy = "correct the default",
     .of_setup = check::default_invalid},
    {.code = "SettingOverridden",
     .severity = warning,
     .meaning =
         "a wrong value in the profile, which the DaemonSet's own flag or environment variable overrides on this node",
     .remedy = "correct it in the profile",
     .of_setup = check::setting_overridden},
    {.code = "GFDOtherConfig",
     .severity = warning,
     .meaning =
         "GFD loads another ConfigMap, default or label: the labels are wrong; the operator does not write them and, "
         "if the ConfigMap differs, does not verify them; a profile that switches to MPS is blocked on these nodes",
     .remedy = "configure it like the plugin",
     .of_setup = check::gfd_other_config},
    {.code = "NFDMissing",
     .severity = warning,
     .meaning = "GFD runs, but no component turns its output into labels",
     .remedy = "install NFD",
     .of_setup = check::nfd_missing},
    {.code = "NameMatchesNothing",
     .severity = warning,
     .meaning = "no device has that name",
     .remedy = "remove the entry, or set `migStrategy`",
     .of_setup = check::name_matches_nothing},
    {.code = kLabelDropped,
     .severity = warning,
     .meaning = "NFD drops a value of more than 63 characters",
     .remedy = "use a shorter name in `gpusharing.dev/devices`",
     .of_setup = check::label_dropped},
    {.code = kLabelsUnreliable,
     .severity = warning,
     .meaning = "GPUs of different models: labels change at random",
     .remedy = "rely on allocatable instead",
     .of_setup = check::labels_unreliable},
    {.code = "RenameHidesGPUFromAutoscaler",
     .severity = warning,
     .meaning = "an autoscaler manages the node, and `renameByDefault` leaves `nvidia.com/gpu` at 0, the resource by "
                "which the autoscaler sees that GPUs are ready",
     .remedy = "leave `renameByDefault` out on these nodes",
     .of_setup = check::rename_hides_gpu_from_autoscaler},
    {.code = "FailRequestsForced",
     .severity = warning,
     .meaning = "before v0.20.0 MPS refuses requests above 1 regardless of the profile",
     .remedy = "upgrade the plugin, or drop the field",
     .of_setup = check::fail_requests_forced},
    {.code = "FieldNotInRelease",
     .severity = warning,
     .meaning = "the plugin's release ignores a field that only later releases support",
     .remedy = "upgrade the plugin, or drop the field",
     .of_setup = check::field_not_in_release},
    {.code = "AllocationPolicyUnknown",
     .severity = warning,
     .meaning = "before v0.20.0 the field is ignored",
     .remedy = "upgrade the plugin, or drop the field",
     .of_setup = check::allocation_policy_unknown},
    {.code = "DefaultFirstStart",
     .severity = info,
     .needs_no_action = true,
     .meaning = "from v0.18.2 on the default is loaded first at every start",
     .remedy = "no action needed: the labelled profile follows by itself. To make that key the default instead moves "
               "every node of the plugin that has no label to it",
     .of_setup = check::default_first_start},
    {.code = "MPSSidecarPanics",
     .severity = info,
     .needs_no_action = true,
     .meaning = "v0.18.0 to v0.19.3: the MPS daemon's sidecar panics",
     .remedy = kReplaceMpsDaemon,
     .of_setup = check::mps_sidecar_panics},
    {.code = "MPSSidecarCannotSignal",
     .severity = info,
     .needs_no_action = true,
     .meaning = "other releases: the MPS daemon's sidecar cannot signal the daemon",
     .remedy = kReplaceMpsDaemon,
     .of_setup = check::mps_sidecar_cannot_signal},

    // --- Checks of objects alone.
    {.code = "ConfigMapInWrongNamespace",
     .meaning = "a ConfigMap of that name is in another namespace, where the pods cannot mount it",
     .remedy = "create it in the namespace of the DaemonSets",
     .of_objects = check::config_map_in_wrong_namespace},
    {.code = "ConfigMapNameNoVolume",
     .meaning = "the GPU Operator names a volume after it: no `.`, at most 63 characters",
     .remedy = "rename it",
     .of_objects = check::config_map_name_no_volume},
    {.code = "ConfigMapNameCollides",
     .meaning = "the GPU Operator's DaemonSets already have a volume of that name",
     .remedy = "rename it",
     .of_objects = check::config_map_name_collides},
    {.code = "NoProfiles",
     .meaning = "no key, neither in `data` nor in `binaryData`: config-manager exits",
     .remedy = "add a key",
     .of_objects = check::no_profiles},
    {.code = "KeyNoLabelValue",
     .severity = warning,
     .meaning = "a key that no node label can name",
     .remedy = "rename it",
     .of_objects = check::key_no_label_value},
};

}  // namespace

std::span<const Check> checks() {
  return kChecks;
}

const Check* find_check(std::string_view code) {
  const auto* found = std::ranges::find(kChecks, code, &Check::code);
  return found == std::end(kChecks) ? nullptr : found;
}

std::optional<Reason> first_block(const NodeSetup& setup, CheckStage from, CheckStage to) {
  for (const Check& check : kChecks) {
    if (check.blocks.empty() || check.stage < from || check.stage > to) continue;
    for (Complaint& complaint : check.of_setup != nullptr ? check.of_setup(setup.setup) : check.of_node(setup)) {
      const bool error = complaint.severity.value_or(check.severity) == Severity::error;
      if (error && complaint.blocks) return Reason{check.code, std::move(complaint.message)};
    }
  }
  return std::nullopt;
}

}  // namespace gso
