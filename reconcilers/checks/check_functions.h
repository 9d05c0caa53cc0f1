// The functions behind the chain's table. Only chain.cc calls them.
#pragma once

#include "reconcilers/checks/check.h"
#include "reconcilers/checks/object_checks.h"
#include "reconcilers/profile/mps.h"

namespace gso::check {

// --- Which key a node gets, and the key's content (node_checks.cc).
[[nodiscard]] Complaints config_map_missing(const Setup& setup);
[[nodiscard]] Complaints key_not_found(const Setup& setup);
[[nodiscard]] Complaints default_key_not_found(const Setup& setup);
[[nodiscard]] Complaints default_missing(const Setup& setup);
[[nodiscard]] Complaints default_invalid(const Setup& setup);
[[nodiscard]] Complaints config_invalid(const Setup& setup);
[[nodiscard]] Complaints setting_overridden(const Setup& setup);

// --- The installation (installation_checks.cc).
[[nodiscard]] Complaints gpu_cluster_serves(const Setup& setup);
[[nodiscard]] Complaints setting_invalid(const Setup& setup);
[[nodiscard]] Complaints gfd_other_config(const Setup& setup);
[[nodiscard]] Complaints mps_other_config(const Setup& setup);
[[nodiscard]] Complaints mps_daemon_missing(const Setup& setup);
[[nodiscard]] Complaints mps_daemon_has_no_pods(const Setup& setup);
[[nodiscard]] Complaints mps_root_missing(const Setup& setup);
[[nodiscard]] Complaints standalone_mps_conflict(const Setup& setup);
[[nodiscard]] Complaints nfd_missing(const Setup& setup);
[[nodiscard]] Complaints rename_hides_gpu_from_autoscaler(const Setup& setup);

// --- The GPUs (node_checks.cc).
[[nodiscard]] Complaints devices_unreadable(const Setup& setup);
[[nodiscard]] Complaints mps_fault(const Setup& setup, std::string_view code);
template <const std::string_view& kCode>
[[nodiscard]] Complaints mps_fault(const Setup& setup) {
  return mps_fault(setup, kCode);
}
[[nodiscard]] Complaints mig_not_uniform(const Setup& setup);
[[nodiscard]] Complaints gpus_cannot_be_served(const NodeSetup& setup);
[[nodiscard]] Complaints name_matches_nothing(const Setup& setup);
[[nodiscard]] Complaints label_dropped(const Setup& setup);
[[nodiscard]] Complaints labels_unreliable(const Setup& setup);

// --- The plugin's release (installation_checks.cc).
[[nodiscard]] Complaints mps_not_in_release(const Setup& setup);
[[nodiscard]] Complaints mps_by_label_unsupported(const Setup& setup);
[[nodiscard]] Complaints default_first_start(const Setup& setup);
[[nodiscard]] Complaints field_not_in_release(const Setup& setup);
[[nodiscard]] Complaints mps_sidecar_panics(const Setup& setup);
[[nodiscard]] Complaints mps_sidecar_cannot_signal(const Setup& setup);
[[nodiscard]] Complaints fail_requests_forced(const Setup& setup);
[[nodiscard]] Complaints allocation_policy_unknown(const Setup& setup);

// --- One node and its policy (node_checks.cc).
[[nodiscard]] Complaints device_plugin_conflict(const NodeSetup& setup);
[[nodiscard]] Complaints policy_key_not_found(const NodeSetup& setup);
[[nodiscard]] Complaints single_key_in_use(const NodeSetup& setup);
[[nodiscard]] Complaints taint_not_tolerated(const NodeSetup& setup);
[[nodiscard]] Complaints label_owned_by_other(const NodeSetup& setup);
[[nodiscard]] Complaints config_map_immutable(const NodeSetup& setup);
[[nodiscard]] Complaints config_map_full(const NodeSetup& setup);
[[nodiscard]] Complaints kai_reservations(const NodeSetup& setup);
[[nodiscard]] Complaints dra_double_offer(const NodeSetup& setup);
[[nodiscard]] Complaints labels_missing(const NodeSetup& setup);

// --- ConfigMaps, DaemonSets and ClusterPolicies (object_checks.cc).
[[nodiscard]] ObjectComplaints setting_invalid(const OperandSetup& setup);
[[nodiscard]] ObjectComplaints config_map_missing(const OperandSetup& setup);
[[nodiscard]] ObjectComplaints config_map_in_wrong_namespace(const OperandSetup& setup);
[[nodiscard]] ObjectComplaints no_profiles(const OperandSetup& setup);
[[nodiscard]] ObjectComplaints key_no_label_value(const OperandSetup& setup);
[[nodiscard]] ObjectComplaints config_map_name_no_volume(const OperandSetup& setup);
[[nodiscard]] ObjectComplaints config_map_name_collides(const OperandSetup& setup);
[[nodiscard]] ObjectComplaints default_key_not_found(const OperandSetup& setup);
[[nodiscard]] ObjectComplaints mps_by_label_unsupported(const OperandSetup& setup);

}  // namespace gso::check
