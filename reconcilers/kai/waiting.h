// Why a pod that requests a share of a GPU from KAI has no node, from objects alone: KAI itself does not report it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/reasons/reason.h"

namespace gso {

inline constexpr std::string_view kSharingOff = "SharingOff";
inline constexpr std::string_view kNotChosen = "NotChosen";  // Nothing is wrong with the pod's own fields.

class WaitingCauses {
 public:
  // `pods`: all that wait, with the scaling pods among them. Everything passed must outlive this object.
  WaitingCauses(const World& world, const KaiView& view, const std::vector<WaitingPod>& pods);

  // Asks KAI for a share of a GPU.
  [[nodiscard]] bool is_of_kai(const WaitingPod& waiting) const;
  // Why the pod can never be placed with the present nodes and kai-config: what is wrong, and what would be right.
  // Sizes are not checked if no nodes are known.
  [[nodiscard]] std::optional<Reason> impossible(const WaitingPod& waiting) const;
  // The same; otherwise what blocks the binder; otherwise where to look.
  [[nodiscard]] Reason cause(const WaitingPod& waiting) const;

 private:
  // MiB on each of so many GPUs of one node.
  [[nodiscard]] std::optional<Reason> too_large(std::int64_t wanted, std::int64_t devices) const;
  [[nodiscard]] std::optional<Reason> runtime_class() const;
  [[nodiscard]] std::optional<Reason> bind_trouble(const WaitingPod& waiting) const;

  const World& world_;
  const KaiView& view_;
  std::string scaling_pod_;
  // What the nodes with GPUs offer, each combination once. KAI treats all GPUs of a node as equal.
  struct Offer {
    std::int64_t gpus = 0;
    std::optional<std::int64_t> memory;  // MiB, as KAI counts it; none without nvidia.com/gpu.memory.
    friend auto operator<=>(const Offer&, const Offer&) = default;
  };
  std::map<Offer, std::string> offers_;  // -> the first such node.
  std::int64_t most_gpus_ = 0;
};

// MiB that KAI counts for each GPU of a node with that value of nvidia.com/gpu.memory: rounded down to hundreds; bytes
// where the number is too large for MiB; nullopt: no number (KAI then counts 100). Source: pkg/scheduler/api/node_info.
[[nodiscard]] std::optional<std::int64_t> kai_gpu_memory(std::optional<std::string_view> label);

}  // namespace gso
