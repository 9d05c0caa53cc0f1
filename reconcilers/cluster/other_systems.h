// Systems beside the device plugin that a node can belong to: nos, HAMi, DRA, and those that take nodes out of
// service.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/object.h"
#include "reconcilers/cluster/operand.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// --- nos (Nebuly) partitions the GPUs of the nodes that carry its label into MPS slices, according to the requests of
// pending pods. It has its own device plugin and writes a ConfigMap key and nvidia.com/device-plugin.config for each
// of these nodes: the rules for SharingPolicies, profiles and lint, which concern the official device plugin, do not
// apply there. Source: nebuly-ai/nos at 12e0a72, docs/en/docs (prerequisites, mps-partitioning) and
// pkg/api/nos.nebuly.com.

// Whether nos partitions the node's GPUs; only this function decides it. The label's present name decides if the node
// has it; the earlier name counts only on a node without the present one.
[[nodiscard]] bool is_partitioned_by_nos(const Node& node);
// The names of these nodes, sorted: those whose pods partitioning reads (model/partitioning_world.h).
[[nodiscard]] std::vector<std::string> partitioned_nodes(const World& world);
// "nos.nebuly.com/gpu-partitioning=mps": the label that decides it; empty if the node has none.
[[nodiscard]] std::string nos_label(const Node& node);
// Says of such a node that its GPUs are cut into slices, by whom as far as that shows, and that no SharingPolicy
// applies. For people.
[[nodiscard]] std::string nos_in_charge(const Node& node);

// The device plugin of nos: its template requires the label on its nodes.
[[nodiscard]] bool is_plugin_of_nos(const Operand& plugin);

// Keys of profiles that nos has written: nodes of nos name them, and no other node does.
[[nodiscard]] std::set<std::string> keys_of_nos(const World& world);

// --- Project-HAMi shares GPUs with a device plugin and a scheduler of its own. Its plugin serves nvidia.com/gpu like
// NVIDIA's; the memory and cores of a request (nvidia.com/gpumem, nvidia.com/gpucores) are known to its scheduler
// alone and are in no node's capacity.

// Where the DaemonSets of HAMi's device plugin place its pods, by key: only `key` and the placement are filled.
[[nodiscard]] std::vector<Operand> hami_plugins(const World& world);
// The first of them that selects the node; null: none.
[[nodiscard]] const Operand* hami_plugin_on(const std::vector<Operand>& plugins, const Node& node);
// HAMi's device plugin has registered GPUs of the node at some time: the annotation stays when HAMi is removed.
[[nodiscard]] bool was_registered_by_hami(const Node& node);

// --- Nodes that a remediation system has taken out of service, recognised by its labels and taints: while a node has
// one, that system holds the node, and the operator neither starts a change on it nor repairs it. The table in
// other_systems.cc has the source of each mark.

struct Quarantine {
  std::string_view by;  // Which system set the mark, and its meaning: "NVSentinel has quarantined the node".
  std::string mark;     // "label dgxc.nvidia.com/nvsentinel-state=draining"
};

// The first mark of the table that the node has; nullopt: none.
[[nodiscard]] std::optional<Quarantine> quarantine_of(const Node& node);

// --- GPUs that a DRA driver offers in addition to the device plugin. The scheduler takes the DRA path for an extended
// resource that a DeviceClass names on every node where allocatable of it is 0: if such a node also publishes
// ResourceSlices, the same GPU is allocated twice. Source: filterExtendedResources of Kubernetes 1.36,
// extendeddynamicresources.go.

// The plugin serves the node's GPUs under other names alone (renameByDefault, MIG devices), so that nvidia.com/gpu is
// 0: the scheduler takes the DRA path at any time, not only while the plugin restarts.
[[nodiscard]] bool is_double_offer_permanent(const Node& node);
// The consequence for a node, for people. `resource`: what the class names; for another one than nvidia.com/gpu nothing
// is blocked.
[[nodiscard]] std::string double_offer(const Node& node, std::string_view device_class,
                                       std::string_view resource = kGpuResource);

class DraOffers {
 public:
  // Listens to the stores of `world`, which must outlive this object.
  void attach(World& world);
  void note_everything_changed() { stale_ = true; }
  void refresh(const World& world);
  // Nodes whose answer may have changed since the last call.
  [[nodiscard]] std::vector<std::string> take_changed_nodes();

  // --- After refresh(). The DeviceClass by which the scheduler would allocate the GPUs of this node; empty: none.
  [[nodiscard]] const std::string& class_of(std::string_view node) const;
  // All nodes with such a DeviceClass, by name.
  [[nodiscard]] std::vector<std::string> nodes(const World& world) const;
  // Nodes for which the GPUs' driver publishes devices, by name, whatever DeviceClasses exist. Slices with a
  // nodeSelector are left out: nothing here evaluates one.
  [[nodiscard]] std::vector<std::string> offering(const World& world) const;
  // Resources below nvidia.com/ that a DeviceClass names -> the class by which Kubernetes allocates them: the one
  // created last, and of equal ones the first by name.
  [[nodiscard]] const std::map<std::string, std::string>& classes() const { return classes_; }

 private:
  bool stale_ = true;
  bool all_nodes_ = false;  // The driver publishes devices for all nodes.
  std::map<std::string, std::string> classes_;
  std::string device_class_;                    // Of nvidia.com/gpu; empty: none.
  std::set<std::string, std::less<>> offered_;  // Nodes with slices of their own.
  std::set<std::string> changed_;
};

// --- Which pods among manifests have a ResourceClaim for a GPU: a claim can be for a device of any driver. In doubt
// it is for a GPU.

class PodClaims {
 public:
  // Whether it is a kind that this class reads.
  [[nodiscard]] static bool reads(std::string_view kind);
  // A ResourceClaim, ResourceClaimTemplate or DeviceClass.
  void add(std::string_view kind, std::string_view json);
  // The pod's JSON; without its claims if each of them is known to be for other devices. After every object was added.
  [[nodiscard]] std::string without_other_claims(std::string_view pod) const;

 private:
  // What a claim asks for, and what it got.
  struct Claim {
    std::set<std::string> classes;
    std::set<std::string> drivers;  // Of its allocation; empty: it has none.
    bool unclear = false;           // A request names no class.
  };
  static Claim read(const nlohmann::json& spec, const nlohmann::json& status);
  [[nodiscard]] bool is_for_gpu(const Claim& claim) const;
  [[nodiscard]] const Claim* claim_of(const nlohmann::json& pod, const nlohmann::json& entry) const;

  std::map<k8s::ObjectKey, Claim> claims_;
  std::map<k8s::ObjectKey, Claim> templates_;
  std::set<std::string> gpu_classes_;  // DeviceClasses that name the GPUs' driver.
};

}  // namespace gso
