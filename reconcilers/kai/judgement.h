// Decides which reservations of one GPU group can be deleted: a pure function of the known facts, without timers. The
// planner calls it with the stores' view; the executor calls it again with fresh lists just before it deletes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reconcilers/model/kai_world.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/reasons/reason.h"

namespace gso {

struct GroupFacts {
  std::string group;
  std::vector<const KaiPod*> reservations;
  std::vector<const KaiPod*> consumers;  // In both label forms, in any namespace, whatever their phase. No duplicates.
  std::vector<const BindRequest*> requests;
  // Whether the pod that a BindRequest names is alive; nullopt: not known. Asked only about pods not in `consumers`.
  std::function<std::optional<bool>(const ObjectKey&)> pod_alive;
  // NVIDIA_VISIBLE_DEVICES in the ConfigMap of a consumer; nullopt: not known, or the ConfigMap is not that consumer's
  // (LookupResults::Devices::of).
  std::function<std::optional<std::string>(const ObjectKey& config_map, const k8s::Uid& consumer)> devices;
};

// A reservation of another group that claims the same GPU on the same node, or empty. Device evidence must be unique.
using DeviceClaims = std::function<std::string(const KaiPod& reservation)>;

enum class GcVerdict {
  keep,
  orphan,     // No live pod uses the group, and no bind is in progress.
  duplicate,  // Live pods use the group, but provably not this reservation's GPU.
};

struct Judgement {
  const KaiPod* reservation = nullptr;
  GcVerdict state = GcVerdict::keep;
  Severity severity = Severity::info;  // warning or error: a person should look.
  Reason why;
};

struct GroupJudgement {
  std::vector<Judgement> reservations;  // As in the facts.
  KaiWants wants;  // Lookups that would decide more, and each ConfigMap that the result depends on.
};

[[nodiscard]] GroupJudgement judge(const GroupFacts& facts, const DeviceClaims& claims);

// The ConfigMap that names a consumer's device; nullopt if the consumer has none.
[[nodiscard]] std::optional<ObjectKey> device_config_map(const KaiPod& consumer);
// GPU UUIDs in a value of NVIDIA_VISIBLE_DEVICES ("GPU-a,GPU-b", "k8s.device-plugin.nvidia.com/gpu=GPU-a"). nullopt
// when any part is none (an index, "all", a MIG device): then it proves nothing.
[[nodiscard]] std::optional<std::vector<std::string>> device_uuids(std::string_view text);

}  // namespace gso
