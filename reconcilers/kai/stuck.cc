// Fraction pods that wait, each with the cause that can be seen; and reservations that a taint may take away.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "reconcilers/kai/index.h"
#include "reconcilers/kai/names.h"
#include "reconcilers/kai/planners.h"
#include "reconcilers/labels.h"

namespace gso {

using namespace kai;

namespace {

constexpr std::string_view kGpuMemory = "nvidia.com/gpu.memory";
constexpr std::string_view kQueue = "kai.scheduler/queue";
constexpr std::string_view kFractionCount = "gpu-fraction-num-devices";

std::optional<std::int64_t> number(std::optional<std::string_view> text) {
  std::int64_t out = 0;
  if (!text) return std::nullopt;
  const auto [rest, code] = std::from_chars(text->data(), text->data() + text->size(), out);
  return code == std::errc{} && rest == text->data() + text->size() ? std::optional(out) : std::nullopt;
}

class StuckPods {
 public:
  explicit StuckPods(Pass& pass) : pass_(pass), view_(pass.index.kai.view()) {}

  void run(const std::vector<Pod>& unbound) {
    for (const Pod& pod : unbound) {
      const bool scaling = pod.meta.ns == kScaleNamespace;
      if (scaling && scaling_pod_.empty()) scaling_pod_ = k8s::to_string(pod.meta.key());
    }
    measure_nodes();
    for (const Pod& pod : unbound) {
      if (pod.scheduler_name.view() == view_.scheduler_name) look_at(pod);
    }
  }

 private:
  void measure_nodes() {
    for (const auto& [key, node] : pass_.s.world.nodes.all()) {
      const auto memory = number(node->meta.labels.get(kGpuMemory));
      if (memory) most_memory_ = std::max(most_memory_, *memory);
      const auto gpus = node->allocatable.find(Interned(kGpuResource));
      if (gpus == node->allocatable.end() || gpus->second <= 0) continue;
      most_gpus_ = std::max(most_gpus_, gpus->second);
      if (!memory && unlabelled_node_.empty()) unlabelled_node_ = key.name;
    }
  }

  void look_at(const Pod& pod) {
    const auto fraction = pod.meta.annotations.get(kFraction);
    const auto memory = pod.meta.annotations.get(kMemory);
    if (!fraction && !memory) return;
    // A bind may take that long.
    if (pass_.s.now - pod.meta.creation_timestamp < view_.bind_timeout) return;
    const std::string cause = cause_of(pod, memory);
    pass_.finding(Severity::warning, pod_ref(pod.meta), "KAIPodStuck", "waits for a share of a GPU: " + cause);
  }

  [[nodiscard]] std::string cause_of(const Pod& pod, std::optional<std::string_view> memory) const {
    if (!view_.sharing.enabled) return fmt::format("GPU sharing is off ({} decides)", view_.sharing.decided_by);
    if (!pod.meta.labels.contains(kQueue))
      return fmt::format("it has no label {}, so that KAI puts it into no queue, without an Event", kQueue);
    const auto wanted = number(memory);
    if (wanted && most_memory_ == 0) {
      return fmt::format(
          "it asks for gpu-memory, and no node carries the label {}: KAI cannot tell what a GPU has. GPU Feature "
          "Discovery writes it (missing on {})",
          kGpuMemory, unlabelled_node_.empty() ? "every node" : unlabelled_node_);
    }
    if (wanted && *wanted > most_memory_) {
      return fmt::format("it asks for {} MiB, and the largest GPU has {} MiB (label {})", *wanted, most_memory_,
                         kGpuMemory);
    }
    const auto devices = number(pod.meta.annotations.get(kFractionCount));
    if (devices && most_gpus_ > 0 && *devices > most_gpus_) {
      return fmt::format("it asks for {} devices, and no node has more than {}", *devices, most_gpus_);
    }
    if (!scaling_pod_.empty()) {
      return fmt::format("the scaling pod {} is not scheduled: until it is, the binder creates no reservation",
                         scaling_pod_);
    }
    return busy_cause(pod);
  }

  [[nodiscard]] std::string busy_cause(const Pod& pod) const {
    const KaiWorld& kai = pass_.s.world.kai;
    if (const BindRequest* request = kai.bind_requests.find(pod.meta.key())) {
      return fmt::format("its BindRequest for node {} is {} after {} failed attempts: look at the binder's log",
                         request->selected_node.view(), request->phase.empty() ? "not taken up" : request->phase.view(),
                         request->failed_attempts);
    }
    for (const auto& [field, name] : view_.runtime_classes) {
      if (kai.runtime_classes.size() > 0 && kai.runtime_classes.find(name) == nullptr) {
        return fmt::format("there is no RuntimeClass {} ({})", name, field);
      }
    }
    return "KAI has made no BindRequest for it: look at its queue's quota, its node selector, and the scheduler's log";
  }

  Pass& pass_;
  const KaiView& view_;
  std::string scaling_pod_;
  std::string unlabelled_node_;
  std::int64_t most_memory_ = 0;
  std::int64_t most_gpus_ = 0;
};

bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
  return std::ranges::any_of(tolerations, [&](const Toleration& t) {
    if (!t.effect.empty() && t.effect != taint.effect) return false;
    if (t.key.empty()) return t.op == "Exists";
    if (t.key != taint.key) return false;
    return t.op == "Exists" || t.value == taint.value;
  });
}

// A NoExecute taint takes the reservation away and leaves its consumer, which tolerates it.
void report_tolerations(Pass& pass) {
  const KaiWorld& kai = pass.s.world.kai;
  for (const auto& [node_name, use] : pass.index.kai.nodes()) {
    const Node* node = pass.s.world.nodes.find(node_name);
    if (node == nullptr) continue;
    for (const Taint& taint : node->taints) {
      if (taint.effect != "NoExecute") continue;
      for (const auto& [name, group] : pass.index.kai.groups()) {
        for (const ObjectKey& key : group.reservations) {
          const KaiPod* reservation = kai.pods.find(key);
          if (reservation == nullptr || reservation->node_name != std::string_view(node_name)) continue;
          if (!is_alive(*reservation) || tolerates(reservation->tolerations, taint)) continue;
          const GroupFacts facts = group_facts(kai, pass.index.kai, name);
          for (const KaiPod* consumer : facts.consumers) {
            if (!is_alive(*consumer) || !tolerates(consumer->tolerations, taint)) continue;
            pass.finding(
                Severity::warning, pod_ref(reservation->meta), "KAIReservationWithoutToleration",
                fmt::format("node {} has the taint {}:NoExecute, which consumer {} tolerates and its reservation does "
                            "not: the reservation is evicted, and the binder then deletes the consumer",
                            node_name, taint.key.view(), k8s::to_string(consumer->meta.key())));
            break;
          }
        }
      }
    }
  }
}

}  // namespace

void plan_kai_stuck(Pass& pass) {
  const KaiWorld& kai = pass.s.world.kai;
  if (!kai_hold(pass.s.world).empty()) return;
  const bool tainted = std::ranges::any_of(pass.index.kai.nodes(), [&](const auto& entry) {
    const Node* node = pass.s.world.nodes.find(entry.first);
    return node && std::ranges::any_of(node->taints, [](const Taint& taint) { return taint.effect == "NoExecute"; });
  });
  if (tainted) report_tolerations(pass);
  const auto unbound = pass.s.consumers.find("");
  if (unbound != pass.s.consumers.end() && (kai.configs_served || kai.configs.size() > 0))
    StuckPods(pass).run(unbound->second.pods);
}

}  // namespace gso
