// The Kubernetes objects that planners read, projected: only the fields that a planner needs. One `project_*` function
// per kind (project.h) fills them from one object's JSON. operator== decides whether an event wakes a planner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "k8sclient/value/object.h"

namespace gso {

using k8s::Duration;
using k8s::Interned;
using k8s::MonoTime;
using k8s::ObjectKey;
using k8s::ObjectMeta;
using k8s::StringMap;
using k8s::WallTime;

// A few extended resources and their counts, sorted by name: with the interface of a map and the size of a vector.
class ResourceCounts {
 public:
  using Entry = std::pair<Interned, std::int64_t>;
  using Entries = std::vector<Entry>;
  // 0 at first.
  std::int64_t& operator[](const Interned& resource);
  [[nodiscard]] Entries::const_iterator find(const Interned& resource) const;
  [[nodiscard]] bool contains(const Interned& resource) const { return find(resource) != end(); }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] Entries::const_iterator begin() const { return entries_.begin(); }
  [[nodiscard]] Entries::const_iterator end() const { return entries_.end(); }
  // The caller must not change names.
  [[nodiscard]] Entries::iterator begin() { return entries_.begin(); }
  [[nodiscard]] Entries::iterator end() { return entries_.end(); }
  friend bool operator==(const ResourceCounts&, const ResourceCounts&) = default;

 private:
  Entries entries_;
};

// A value that few objects have: an absent one uses the space of a pointer. Compared by value.
template <class T>
class Rare {
 public:
  Rare() = default;
  explicit Rare(T value) : value_(std::make_unique<T>(std::move(value))) {}
  Rare(const Rare& other) : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}
  Rare(Rare&& other) noexcept = default;
  Rare& operator=(Rare other) noexcept {
    value_ = std::move(other.value_);
    return *this;
  }
  ~Rare() = default;
  [[nodiscard]] explicit operator bool() const { return value_ != nullptr; }
  // Call it only if the value is present.
  [[nodiscard]] const T* operator->() const { return value_.get(); }
  [[nodiscard]] const T& operator*() const { return *value_; }
  friend bool operator==(const Rare& a, const Rare& b) {
    return a.value_ && b.value_ ? *a.value_ == *b.value_ : !a.value_ && !b.value_;
  }

 private:
  std::unique_ptr<T> value_;
};

// A list that is empty in most objects: an empty one uses the space of a pointer. It is read like a vector and replaced
// as a whole. Compared by value.
template <class T>
class RareList {
 public:
  using Items = std::vector<T>;
  RareList() = default;
  RareList(Items items) : items_(items.empty() ? Rare<Items>() : Rare<Items>(std::move(items))) {}
  RareList(std::initializer_list<T> items) : RareList(Items(items)) {}
  [[nodiscard]] bool empty() const { return !items_; }
  [[nodiscard]] std::size_t size() const { return items().size(); }
  [[nodiscard]] typename Items::const_iterator begin() const { return items().begin(); }
  [[nodiscard]] typename Items::const_iterator end() const { return items().end(); }
  [[nodiscard]] const T& operator[](std::size_t index) const { return items()[index]; }
  friend bool operator==(const RareList&, const RareList&) = default;

 private:
  [[nodiscard]] const Items& items() const {
    static const Items kNone;
    return items_ ? *items_ : kNone;
  }
  Rare<Items> items_;
};

struct Taint {
  Interned key;
  Interned value;
  Interned effect;
  friend bool operator==(const Taint&, const Taint&) = default;
};

// What the kubelet offers to all pods together, beside extended resources. 0: unknown.
struct NodeRoom {
  std::int64_t memory = 0;  // Bytes.
  std::int32_t cpu = 0;     // Thousandths of a CPU.
  std::int32_t pods = 0;
  friend bool operator==(const NodeRoom&, const NodeRoom&) = default;
};

struct Node {
  ObjectMeta meta;  // All labels (selectors may name any); annotations: the operator's, NFD's feature-labels, and
                    // nvidia/nos/kai ones.
  bool unschedulable = false;
  bool ready = false;  // Condition Ready is True.
  std::vector<Taint> taints;
  // Extended resources `nvidia.com/*` only, as counts. A removed resource stays with 0, because the kubelet never
  // removes keys.
  ResourceCounts capacity;
  ResourceCounts allocatable;
  NodeRoom room;
  friend bool operator==(const Node&, const Node&) = default;
};
// A person makes the operator skip the node: gpusharing.dev/hold=true, as an annotation or as a label.
[[nodiscard]] bool is_held(const Node& node);
// "label gpusharing.dev/hold" or "annotation gpusharing.dev/hold", whichever holds the node (the annotation if both
// do); empty if none does.
[[nodiscard]] std::string hold_of(const Node& node);

struct ConfigMap {
  ObjectMeta meta;
  bool immutable = false;
  // Shared text: profiles are parsed once per content, for any number of nodes.
  std::map<std::string, std::shared_ptr<const std::string>> data;
  // When data last changed, from managedFields (the newest entry that owns f:data), else the creation time. Second
  // precision. The operator's writes do not count: its keys are named by their content and never edited.
  WallTime data_changed{};
  // False where the object has no managedFields for its data: `data_changed` then proves nothing.
  bool data_time_known = true;
  // Managers of f:data, newest last: shows GitOps and Helm ownership.
  std::vector<Interned> data_managers;
  std::set<std::string> our_keys;  // Keys of data that the operator's field manager owns.
  friend bool operator==(const ConfigMap& a, const ConfigMap& b);  // Compares texts, not pointers.
};
// The same keys with the same texts.
[[nodiscard]] bool same_data(const ConfigMap& a, const ConfigMap& b);
// null: the ConfigMap does not have the key, or there is no ConfigMap.
[[nodiscard]] std::shared_ptr<const std::string> key_text(const ConfigMap* config_map, std::string_view key);

// One container of a DaemonSet's template, reduced to what identifies and configures the NVIDIA operands.
struct ContainerSpec {
  std::string name;
  std::string image;
  std::vector<std::string> command;                  // And arguments.
  std::map<std::string, std::string> env;            // Literal values only.
  bool env_elsewhere = false;                        // Some variables come from ConfigMaps or Secrets.
  std::map<std::string, std::string> volume_mounts;  // mountPath -> volume name.
  // The values of a flag in the command ("--mig-strategy"): "--mig-strategy=x", or "--mig-strategy", "x"; one dash
  // works like two. `boolean`: it needs no value, and is "true" without one.
  [[nodiscard]] std::vector<std::string> flag_values(std::string_view flag, bool boolean = false) const;
  friend bool operator==(const ContainerSpec&, const ContainerSpec&) = default;
};

struct NodeSelectorRequirement {
  Interned key;
  Interned op;  // In, NotIn, Exists, DoesNotExist, Gt, Lt
  std::vector<Interned> values;
  friend bool operator==(const NodeSelectorRequirement&, const NodeSelectorRequirement&) = default;
};
struct Toleration {
  Interned key;
  Interned op;
  Interned value;
  Interned effect;
  friend bool operator==(const Toleration&, const Toleration&) = default;
};

struct DaemonSet {
  ObjectMeta meta;
  std::map<std::string, std::string> match_labels;   // spec.selector.matchLabels
  std::map<std::string, std::string> node_selector;  // template nodeSelector
  std::vector<std::vector<NodeSelectorRequirement>>
      affinity_terms;  // Required node affinity: OR of ANDs; empty: any node.
  std::vector<Toleration> tolerations;
  std::vector<ContainerSpec> init_containers;
  std::vector<ContainerSpec> containers;
  std::map<std::string, std::string> configmap_volumes;  // volume name -> ConfigMap name.
  // Host directories of MPS, as the template names them: MPS_ROOT, --mps-root, --pipe-directory, and host paths that
  // are mounted at /mps.
  std::set<std::string> mps_roots;
  std::string restarted_for;  // Annotation gpusharing.dev/restarted-for of the template.
  bool on_delete = false;     // updateStrategy OnDelete.
  // The status is not read: each pod that becomes Ready changes its counters, which would wake every planner.
  friend bool operator==(const DaemonSet&, const DaemonSet&) = default;
};

struct ControllerRevision {
  ObjectMeta meta;  // Label controller-revision-hash; owner is the DaemonSet.
  std::int64_t revision = 0;
  friend bool operator==(const ControllerRevision&, const ControllerRevision&) = default;
};

// How a container ended.
struct Termination {
  std::int64_t exit_code = 0;
  Interned reason;   // OOMKilled, Error, Completed, …
  Interned message;  // First 256 bytes.
  friend bool operator==(const Termination&, const Termination&) = default;
};

struct ContainerStatus {
  Interned name;
  bool ready = false;
  bool running = false;
  std::int64_t restarts = 0;
  // state.running.startedAt, minus the most by which the kubelet's clock can be ahead of the API server's.
  std::optional<WallTime> started_at;
  Interned waiting_reason;            // CrashLoopBackOff, ContainerCreating, …
  Rare<Termination> terminated;       // state.terminated: it has ended, and no new run has started.
  Rare<Termination> last_terminated;  // lastState.terminated: how the run before this state ended.
  // Of the newest end: its exit code (0 if the container never ended), and its message, or the message of the end
  // before it if it has none.
  [[nodiscard]] std::int64_t last_exit_code() const;
  [[nodiscard]] std::string_view last_message() const;
  friend bool operator==(const ContainerStatus&, const ContainerStatus&) = default;
};

// Plugin, GFD and MPS pods, and (with fewer fields used) the GPU consumers of one node.
struct Pod {
  ObjectMeta meta;
  Interned node_name;
  Interned phase;
  Interned reason;  // status.reason, e.g. UnexpectedAdmissionError
  Interned scheduler_name;
  Interned runtime_class;
  // Every node has several pods in memory: the small fields are together.
  std::int32_t priority = 0;  // spec.priority, which the API server fills from the PriorityClass.
  bool ready = false;
  bool uses_mps_pipe = false;           // Mounts a usual MPS directory, or the one that CUDA_MPS_PIPE_DIRECTORY names.
  bool nvidia_visible_devices = false;  // Has NVIDIA_VISIBLE_DEVICES (not void/none) without a request.
  bool dra_gpu_claim = false;
  std::vector<ContainerStatus> containers;
  RareList<ContainerStatus> init_containers;  // Not finished (sidecars: not ready), or reporting an MPS directory.
  // nvidia.com/* as the scheduler counts them: containers and sidecars summed, or the largest need of an init step.
  ResourceCounts gpu_requests;
  RareList<Interned> host_paths;  // Of its hostPath volumes; not of operand pods.
  // The init containers, then the others.
  [[nodiscard]] std::vector<const ContainerStatus*> all_containers() const;
  friend bool operator==(const Pod&, const Pod&) = default;
};

struct ClusterPolicy {
  ObjectMeta meta;
  std::string config_name;     // spec.devicePlugin.config.name
  std::string config_default;  // spec.devicePlugin.config.default
  std::string plugin_version;  // spec.devicePlugin.version: an image's tag, or a digest; empty: the GPU Operator's own.
  std::string mig_strategy;
  bool device_plugin_enabled = true;
  bool on_delete = false;  // spec.daemonsets.updateStrategy
  Interned state;          // status.state
  friend bool operator==(const ClusterPolicy&, const ClusterPolicy&) = default;
};

// The GPU Operator's DRA stack: if it exists, no device plugin serves the GPUs.
struct GpuCluster {
  ObjectMeta meta;
  friend bool operator==(const GpuCluster&, const GpuCluster&) = default;
};

// resource.k8s.io: devices that a claim, or a request for the extended resource that the class names, can get.
struct DeviceClass {
  ObjectMeta meta;
  Interned extended_resource;  // spec.extendedResourceName; empty: none.
  friend bool operator==(const DeviceClass&, const DeviceClass&) = default;
};

// resource.k8s.io: what a DRA driver offers on a node.
struct ResourceSlice {
  ObjectMeta meta;
  Interned driver;
  Interned node;           // spec.nodeName; empty: not bound to one node.
  bool all_nodes = false;  // spec.allNodes.
  bool offers = false;     // It has a device.
  friend bool operator==(const ResourceSlice&, const ResourceSlice&) = default;
};

// coordination.k8s.io: a leader election's record.
struct Lease {
  ObjectMeta meta;
  std::string holder;  // Empty: released.
  std::optional<WallTime> acquired;
  std::optional<WallTime> renewed;
  std::int64_t duration_seconds = 0;
  friend bool operator==(const Lease&, const Lease&) = default;
};

}  // namespace gso
