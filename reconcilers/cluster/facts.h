// What is known about a node's GPUs, what a profile must make of them, and whether the node shows it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/profile_cache.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/profile/expected.h"

namespace gso {

struct GpuFacts {
  std::optional<std::vector<Device>> devices;  // From the annotation gpusharing.dev/devices.
  std::string problem;                         // Why that annotation could not be read.
  std::string product;                         // nvidia.com/gpu.product without -SHARED; empty: unknown.
  std::int64_t count = 0;                      // What nvidia.com/gpu counts unshared; 0: unknown.
  int compute_major = 0;                       // Of GFD's labels; 0: unknown.
  int compute_minor = 0;
  bool mig_enabled = false;
  std::string mig_strategy;                        // Label nvidia.com/mig.strategy; empty: none.
  std::map<std::string, std::int64_t> mig_counts;  // migStrategy mixed: nvidia.com/mig-… -> devices.
};
// From annotation, labels and capacity. The annotation gpusharing.dev/gpu-count, where we left it, beats GFD's count:
// on nodes with two models GFD counts one of them only.
// `recorded`: the count in the fleet's record, 0 for none.
[[nodiscard]] GpuFacts facts_of(const Node& node, std::int64_t recorded = 0);
// The GPUs as they were written down, else as far as labels tell: enough for what depends on model and compute
// capability. Empty where MIG is enabled and nobody wrote down which MIG devices there are.
[[nodiscard]] std::vector<Device> devices_of(const GpuFacts& facts);
// nvidia.com/gpu.count, or 0.
[[nodiscard]] std::int64_t labelled_gpus(const Node& node);
// The devices behind what the node serves of nvidia.com/gpu under this profile, or 0. Only meaningful while the plugin
// certainly runs that profile.
[[nodiscard]] std::int64_t measured_gpus(const Node& node, const Profile& profile);
// True when the node shows any sign of NVIDIA GPUs: a count, a capacity, the operator's gpu.present, or the annotation.
[[nodiscard]] bool has_gpus(const Node& node);

// What a profile must produce on a node with these facts: the sharing labels and the capacity, nothing else.
struct NodeExpectation {
  Strategy strategy = Strategy::none;
  std::map<std::string, std::string> labels;          // replicas, product, sharing-strategy by resource; mps.capable.
  std::map<std::string, std::string> dropped_labels;  // What nobody can show: no valid label value.
  std::map<std::string, std::int64_t> capacity;       // By registered name; 0: must serve nothing.
  // Where the GPU count is unknown: resource -> replicas; its capacity must be positive and divisible.
  std::map<std::string, std::int64_t> divisible;
  std::map<std::string, std::int64_t> replicas;  // Of each resource in `capacity` that serves something.
  std::optional<std::string> error;              // The node would be left without GPUs.
  [[nodiscard]] std::int64_t total() const;      // Sum of capacity.
};
// `mig_strategy_env`: the operand's MIG_STRATEGY, which overrides the profile; empty: not set.
[[nodiscard]] NodeExpectation expect_on_node(const Profile& profile, const GpuFacts& facts,
                                             std::string_view mig_strategy_env);

struct Verification {
  bool ok = false;
  std::string mismatch;  // The first thing that is wrong, for people: "nvidia.com/gpu: capacity 8, expected 16".
  // Only whole devices are missing, and fewer than half of them: sick hardware, not a stale configuration.
  bool shortfall = false;
  // Only more whole devices than expected: GFD counts one model of several.
  bool surplus = false;
  bool unhealthy = false;  // Fine, but allocatable is below capacity.
  bool serving = false;    // Some expected resource is allocatable.
};
// `labels`: also compare the sharing labels (NFD owns them there).
[[nodiscard]] Verification verify(const NodeExpectation& expectation, const Node& node, bool labels);

// Expectations are shared between nodes of equal facts and profile.
class ExpectationCache {
 public:
  std::shared_ptr<const NodeExpectation> get(const ProfilePtr& profile, const GpuFacts& facts,
                                             std::string_view mig_strategy_env);

 private:
  std::map<std::string, std::weak_ptr<const NodeExpectation>> cache_;
};

}  // namespace gso
