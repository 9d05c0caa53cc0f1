// The causes, the certain ones first.
#include "reconcilers/kai/waiting.h"

#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/kai/index.h"
#include "reconcilers/kai/planners.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/reasons/names.h"

namespace gso {

using namespace kai;

std::optional<std::int64_t> kai_gpu_memory(std::optional<std::string_view> label) {
  constexpr std::int64_t kTebibyte = 1024 * 1024;  // In MiB; and a MiB in bytes.
  std::optional<std::int64_t> mib = whole_number(label);
  if (!mib) return std::nullopt;
  if (*mib >= kTebibyte) *mib /= kTebibyte;
  return *mib - *mib % 100;
}

WaitingCauses::WaitingCauses(const World& world, const KaiView& view, const std::vector<WaitingPod>& pods)
    : world_(world), view_(view) {
  for (const WaitingPod& waiting : pods)
    if (waiting.pod.meta.ns.view() == view_.scaling && scaling_pod_.empty())
      scaling_pod_ = k8s::to_string(waiting.pod.meta.key());
  for (const auto& [key, node] : world_.nodes.all()) {
    const auto gpus = node->allocatable.find(Interned(kGpuResource));
    if (gpus == node->allocatable.end() || gpus->second <= 0) continue;
    most_gpus_ = std::max(most_gpus_, gpus->second);
    offers_.try_emplace(Offer{gpus->second, kai_gpu_memory(node->meta.labels.get(kGpuMemory))}, key.name);
  }
}

bool WaitingCauses::is_of_kai(const WaitingPod& waiting) const {
  const StringMap& annotations = waiting.pod.meta.annotations;
  return waiting.pod.scheduler_name.view() == view_.scheduler_name &&
         (annotations.contains(kFraction) || annotations.contains(kMemory));
}

std::optional<Reason> WaitingCauses::too_large(std::int64_t wanted, std::int64_t devices) const {
  constexpr std::int64_t kUnlabelled = 100;  // What KAI assumes for nodes without the label.
  std::int64_t most = 0;
  const std::string* unlabelled = nullptr;
  for (const auto& [offer, node] : offers_) {
    if (offer.gpus < devices) continue;
    if (offer.memory.value_or(kUnlabelled) >= wanted) return std::nullopt;
    most = std::max(most, offer.memory.value_or(0));
    if (!offer.memory && unlabelled == nullptr) unlabelled = &node;
  }
  if (most_gpus_ < devices) return std::nullopt;  // Reported elsewhere.
  const std::string asks =
      devices == 1 ? fmt::format("{} MiB", wanted) : fmt::format("{} MiB on each of {} GPUs", wanted, devices);
  const std::string largest =
      devices == 1 ? std::string("the largest GPU") : fmt::format("the largest GPU of a node with {} of them", devices);
  if (unlabelled != nullptr) {
    return Reason{"NoMemoryLabel",
                  fmt::format("the pod requests {}, and node {} does not have the label {}: KAI counts {} MiB "
                              "for each GPU there{}. GPU Feature Discovery writes the label",
                              asks, *unlabelled, kGpuMemory, kUnlabelled,
                              most == 0 ? "" : fmt::format(", and {} elsewhere has {} MiB", largest, most))};
  }
  return Reason{"TooMuchMemory",
                fmt::format("the pod requests {}, but {} has {} MiB (label {}, which KAI rounds down to hundreds)",
                            asks, largest, most, kGpuMemory)};
}

std::optional<Reason> WaitingCauses::runtime_class() const {
  if (!world_.kai.runtime_classes.synced()) return std::nullopt;
  for (const auto& [field, name] : view_.runtime_classes)
    if (world_.kai.runtime_classes.find(name) == nullptr)
      return Reason{"NoRuntimeClass", fmt::format("RuntimeClass {} does not exist ({})", name, field)};
  return std::nullopt;
}

std::optional<Reason> WaitingCauses::impossible(const WaitingPod& waiting) const {
  const StringMap& annotations = waiting.pod.meta.annotations;
  if (view_.configured && !view_.sharing.enabled) {
    return Reason{std::string(kSharingOff),
                  fmt::format("GPU sharing is off (decided by {}): KAI's admission refuses new fraction pods, and the "
                              "binder's changes to existing ones",
                              view_.sharing.decided_by)};
  }
  const auto wanted = whole_number(annotations.get(kMemory));
  if (wanted && most_gpus_ > 0) {
    if (auto cause = too_large(*wanted, 1)) return cause;
  }
  const auto devices = whole_number(annotations.get(kDeviceCount));
  if (devices && most_gpus_ > 0 && *devices > most_gpus_) {
    return Reason{"TooManyDevices",
                  fmt::format("the pod requests {} devices, but no node has more than {}", *devices, most_gpus_)};
  }
  if (wanted && devices && most_gpus_ > 0) {
    if (auto cause = too_large(*wanted, *devices)) return cause;
  }
  if (auto cause = runtime_class()) return cause;
  if (!scaling_pod_.empty()) {
    return Reason{"ScalingPod",
                  fmt::format("the scaling pod {} is not scheduled: until it is, the binder creates no reservation",
                              scaling_pod_)};
  }
  return std::nullopt;
}

// Why a requested bind does not happen.
std::optional<Reason> WaitingCauses::bind_trouble(const WaitingPod& waiting) const {
  const BindRequest* request = world_.kai.bind_requests.find(waiting.pod.meta.key());
  if (request == nullptr) return std::nullopt;
  if (const Node* node = world_.nodes.find(request->selected_node.view())) {
    for (const Taint& taint : node->taints) {
      if (taint.effect != "NoExecute" || !tolerates(waiting.tolerations, taint)) continue;
      return Reason{
          "ReservationWithoutToleration",
          fmt::format("node {} has the taint {}:NoExecute, which this pod tolerates and KAI's reservation pods do not "
                      "in older releases: the reservation is evicted as soon as it is created",
                      node->meta.name, taint.key.view())};
    }
  }
  return Reason{"BindFails", fmt::format("its BindRequest for node {} is {} after {}: check the binder's log",
                                         request->selected_node.view(),
                                         request->phase.empty() ? "not processed" : request->phase.view(),
                                         counted(request->failed_attempts, "failed attempt"))};
}

Reason WaitingCauses::cause(const WaitingPod& waiting) const {
  if (auto cause = impossible(waiting)) return *std::move(cause);
  if (auto cause = bind_trouble(waiting)) return *std::move(cause);
  if (!waiting.pod.meta.labels.contains(view_.queue_label)) {
    return {"NoQueueLabel", fmt::format("the pod has no label {}: unless its owner has one, KAI uses the queue "
                                        "default-queue; if that queue does not exist, the pod waits without an Event",
                                        view_.queue_label)};
  }
  return {std::string(kNotChosen),
          "KAI has not created a BindRequest for the pod: check the queue's quota, the pod's node selector, and the "
          "scheduler's log"};
}

// --- Fraction pods that wait, each with the cause that can be seen; and reservations that a taint can evict.

namespace {

void report(KaiPass& pass, const ObjectMeta& pod, std::string_view reason, const std::string& text) {
  pass.finding(Severity::warning, pod_ref(pod), reason, text);
  pass.event(pod_ref(pod), true, reason, "CheckSharing", text);
}

// No watch shows these pods: they are listed periodically, and a list is used until it is too old.
void report_waiting_pods(KaiPass& pass) {
  const KaiWorld& kai = pass.s.world.kai;
  const KaiSettings& settings = pass.s.settings.kai;
  const KaiView& view = pass.kai.view();
  const auto& waiting = kai.lookups.waiting;
  if (!waiting || pass.s.mono - waiting->at >= settings.waiting_sweep)
    pass.plan.kai_wanted.waiting_pods = true;
  else
    pass.look_again_in(settings.waiting_sweep - (pass.s.mono - waiting->at));
  if (!waiting || pass.s.mono - waiting->at >= 2 * settings.waiting_sweep) return;
  const WaitingCauses causes(pass.s.world, view, waiting->pods);
  for (const WaitingPod& pod : waiting->pods) {
    const Duration age = pass.s.now - pod.pod.meta.creation_timestamp;
    if (!causes.is_of_kai(pod) || age < view.bind_timeout) continue;  // A bind can take that long.
    const Reason cause = causes.cause(pod);
    report(pass, pod.pod.meta, kKaiPodStuck,
           fmt::format("waits for a share of a GPU: {} ({})", cause.message, cause.code));
  }
}

// A NoExecute taint evicts the reservation and leaves its consumer, which tolerates it.
void report_toleration(KaiPass& pass, const Node& node, const Taint& taint, const KaiPod& reservation) {
  if (tolerates(reservation.tolerations, taint)) return;
  const std::string group(reservation.meta.labels.get(kGroupLabel).value_or(""));
  for (const KaiPod* consumer : group_facts(pass.s.world.kai, pass.kai, group).consumers) {
    if (!is_alive(*consumer) || !tolerates(consumer->tolerations, taint)) continue;
    report(pass, reservation.meta, kKaiNoToleration,
           fmt::format("node {} has the taint {}:NoExecute, which consumer {} tolerates and its reservation does not: "
                       "the reservation is evicted, and the binder then deletes the consumer",
                       node.meta.name, taint.key.view(), k8s::to_string(consumer->meta.key())));
    return;
  }
}

void report_tolerations(KaiPass& pass) {
  for (const std::string& name : pass.kai.evicting()) {
    const Node* node = pass.s.world.nodes.find(name);
    if (node == nullptr) continue;
    for (const ObjectKey& key : pass.kai.reservations_on(name)) {
      const KaiPod* reservation = pass.s.world.kai.pods.find(key);
      if (reservation == nullptr) continue;
      for (const Taint& taint : node->taints)
        if (taint.effect == "NoExecute") report_toleration(pass, *node, taint, *reservation);
    }
  }
}

}  // namespace

void plan_kai_stuck(KaiPass& pass) {
  const KaiWorld& kai = pass.s.world.kai;
  if (pass.s.settings.kai.gc_mode == KaiGcMode::off || !kai_hold(pass.s.world).empty()) return;
  report_tolerations(pass);
  if (kai.configs_served || kai.configs.size() > 0) report_waiting_pods(pass);
}

// --- Consumers that no watch shows: multi-device pods carry no label to select by. If each of their groups has a
// reservation, the reservations show the use; otherwise only their BindRequests do.

UnreservedConsumers unreserved_consumers(const Snapshot& snapshot, const KaiIndex& index, const std::string& node,
                                         std::int64_t& asks, KaiWants& wanted) {
  UnreservedConsumers out;
  const KaiWorld& kai = snapshot.world.kai;
  const KaiSettings& settings = snapshot.settings.kai;
  const auto found = index.unreserved().find(node);
  if (found == index.unreserved().end()) return out;
  for (const auto& [key, groups] : found->second) {
    const BindRequest* request = kai.bind_requests.find(key);
    if (request == nullptr) continue;
    const ObjectKey pod{key.ns, request->pod_name};
    const auto looked_up = kai.lookups.pods.find(pod);
    const bool there = looked_up != kai.lookups.pods.end();
    const Duration age = there ? snapshot.mono - looked_up->second.at : Duration::zero();
    if ((!there || age >= settings.sweep) && asks > 0) {
      --asks;
      wanted.pods.insert(pod);
    }
    if (!there || age >= 2 * settings.sweep)
      out.known = false;
    else if (looked_up->second.alive)
      out.pods.insert(k8s::to_string(pod));
  }
  return out;
}

}  // namespace gso
