// What is known about a node's GPUs, what a profile must make of them, and whether the node shows it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/discovery.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/profile/expected.h"

namespace gso {

// --- The labels by which a node shows how its GPUs are shared: those that GPU Feature Discovery, or without it the
// operator (node.labels), writes according to the profile. No other label of a node is written or taken back as one.

// Of nvidia.com: mps.capable, and of each resource replicas, sharing-strategy and product.
[[nodiscard]] bool is_sharing_label(std::string_view label);

// --- One label of Node Feature Discovery's: nfd_owned() of label_owners.h gives all of them.

// NFD owns that label on the node. Each assessment of a node asks for one of the hundred that NFD's annotation lists.
[[nodiscard]] bool nfd_owns(const Node& node, std::string_view label);

// The pipe directory of an MPS daemon that a person says the host runs (annotation gpusharing.dev/mps-host): an
// absolute path, or for `true` the default of the node's driver, as GFD shows it. Empty: the annotation is absent or
// neither.
[[nodiscard]] std::string host_pipe_directory(const Node& node);

struct GpuFacts {
  std::optional<std::vector<Device>> devices;  // From the annotation gpusharing.dev/devices.
  std::string problem;                         // Why that annotation could not be read.
  std::string product;                         // nvidia.com/gpu.product without -SHARED; empty: unknown.
  std::int64_t count = 0;                      // The capacity of nvidia.com/gpu without sharing; 0: unknown.
  int compute_major = 0;                       // Of GFD's labels; 0: unknown.
  int compute_minor = 0;
  bool mig_enabled = false;
  std::string mig_strategy;                        // Label nvidia.com/mig.strategy; empty: none.
  std::map<std::string, std::int64_t> mig_counts;  // migStrategy mixed: nvidia.com/mig-… -> devices.
};
// From annotation, labels and capacity. The annotation gpusharing.dev/gpu-count, if the operator wrote it, overrides
// GFD's count: on nodes with two models GFD counts one of them only. `recorded`: the count in the fleet's record, 0 for
// none.
[[nodiscard]] GpuFacts facts_of(const Node& node, std::int64_t recorded = 0);
// The GPUs from the annotation, else from the labels, which suffices for model and compute capability. Empty if MIG is
// enabled and no annotation lists the MIG devices.
[[nodiscard]] std::vector<Device> devices_of(const GpuFacts& facts);
// nvidia.com/gpu.count, or 0.
[[nodiscard]] std::int64_t labelled_gpus(const Node& node);
// The devices behind what the node serves of nvidia.com/gpu under this profile, or 0. Only meaningful while the plugin
// certainly runs that profile.
[[nodiscard]] std::int64_t measured_gpus(const Node& node, const Profile& profile);
// True if the node shows any sign of NVIDIA GPUs: a count, a capacity, the operator's gpu.present, or the annotation.
[[nodiscard]] bool has_gpus(const Node& node);
// The node has an allocatable GPU resource.
[[nodiscard]] bool serves_gpus(const Node& node);

// What a profile must produce on a node with these facts: the sharing labels and the capacity, nothing else.
struct NodeExpectation {
  Strategy strategy = Strategy::none;
  std::map<std::string, std::string> labels;          // replicas, product, sharing-strategy by resource; mps.capable.
  std::map<std::string, std::string> dropped_labels;  // Labels without a valid value, which no component can write.
  std::map<std::string, std::int64_t> capacity;       // By registered name; 0: the resource must not be served.
  // If the GPU count is unknown: resource -> replicas; the capacity must be positive and divisible by them.
  std::map<std::string, std::int64_t> divisible;
  std::map<std::string, std::int64_t> replicas;                // Of each resource in `capacity` with more than 0.
  std::optional<std::string> error;                            // The node would be left without GPUs.
  [[nodiscard]] bool serves(std::string_view resource) const;  // In any number.
};
// `mig_strategy_env`: the operand's MIG_STRATEGY, which overrides the profile; empty: not set.
[[nodiscard]] NodeExpectation expect_on_node(const Profile& profile, const GpuFacts& facts,
                                             std::string_view mig_strategy_env);

struct Verification {
  std::string mismatch = {};  // The first difference, for people: "nvidia.com/gpu: capacity 8, expected 16".
  bool ok = false;
  // Only whole devices are missing: the hardware is broken, and the configuration is not stale.
  bool shortfall = false;
  // Only more whole devices than expected: GFD counts one model of several.
  bool surplus = false;
  bool unhealthy = false;  // It matches, but allocatable is below capacity.
  bool serving = false;    // Some expected resource is allocatable.
};
// `labels`: also compare the sharing labels (NFD owns them there). `has_read`: the plugin has certainly read the
// profile. Otherwise half of the capacity or less could also mean that all devices are served with fewer replicas, from
// an earlier text; then it does not count as missing devices.
[[nodiscard]] Verification verify(const NodeExpectation& expectation, const Node& node, bool labels, bool has_read);

// Expectations are shared between nodes of equal facts and profile.
class ExpectationCache {
 public:
  std::shared_ptr<const NodeExpectation> get(const ProfilePtr& profile, const GpuFacts& facts,
                                             std::string_view mig_strategy_env);

 private:
  std::map<std::string, std::weak_ptr<const NodeExpectation>> cache_;
};

// --- Whether a DaemonSet's template selects a node: the DaemonSet controller's rules as far as the NVIDIA operands
// use them. Source: kubernetes pkg/controller/daemon (Predicates, AddOrUpdateDaemonPodTolerations) and
// component-helpers' node affinity.

// Whether one of the tolerations lets a pod start or stay on a node with that taint.
[[nodiscard]] bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint);

// Whether the node matches required node affinity, an OR of ANDs; no terms: any node matches.
[[nodiscard]] bool matches_terms(const std::vector<std::vector<NodeSelectorRequirement>>& affinity_terms,
                                 const Node& node);

// How well a DaemonSet's template selects a node: nodeSelector, required node affinity, NoSchedule and NoExecute taints
// (with the tolerations every DaemonSet pod has). `paused`: only a deploy label with the value "paused-for-…" excludes
// the node; its pods are deleted until the driver manager or the MIG manager restores the label. `tainted`: only a
// taint excludes the node; running pods continue (NoSchedule), and a deleted pod is not created again.
enum class Selects { no, tainted, yes, paused };
// `ignore_mps_capable`: the label nvidia.com/mps.capable follows the profile, so it does not decide whether a node
// belongs to an MPS DaemonSet.
[[nodiscard]] Selects selects(const Operand& operand, const Node& node, bool ignore_mps_capable);

// The first taint of the node that the operand's pods do not tolerate, or nullptr.
[[nodiscard]] const Taint* untolerated(const Operand& operand, const Node& node);

// "maintenance=true:NoSchedule", as kubectl writes it.
[[nodiscard]] std::string to_string(const Taint& taint);

}  // namespace gso
