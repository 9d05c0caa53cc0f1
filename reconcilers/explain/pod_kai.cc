// Why a pod that requests a share of a GPU from KAI waits: see pod_parts.h.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/explain/pod_parts.h"
#include "reconcilers/kai/waiting.h"
#include "reconcilers/model/kai_objects.h"

namespace gso {
namespace {

// The queue that the pod names; empty: none, or the label has no name of an object.
std::string queue_of(const AskedPod& asked, const KaiView& view) {
  return name_for_command(asked.pod.meta.labels.get(view.queue_label).value_or(""));
}

// What KAI's scheduler says of a pod that it has not chosen a node for. The words change between its releases: only a
// missing queue and a full one are recognised, and the message is always shown as it is.
PodCause refused_by_scheduler(const AskedPod& asked, const KaiView& view, const std::string& says) {
  const std::string queue = queue_of(asked, view);
  const bool of_queue = says.find("queue") != std::string::npos || says.find("Queue") != std::string::npos;
  const auto says_one_of = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(words, [&](std::string_view word) { return says.find(word) != std::string::npos; });
  };
  PodCause out{Severity::error, std::string(kNotChosen), "KAI's scheduler reports: " + says, describe_pod(asked)};
  if (of_queue && says_one_of({"does not exist", "not found"})) {
    out.code = "NoQueue";
    out.command = "kubectl get queues.scheduling.run.ai";
    out.options = {
        fmt::format("the pod's owner sets label {} to a queue that exists; whoever runs KAI says which one, "
                    "or creates the queue",
                    view.queue_label)};
  } else if (says_one_of({"quota", "allowable limit"})) {
    out.code = "QueueFull";
    out.command = "kubectl get queues.scheduling.run.ai" + (queue.empty() ? "" : " " + queue + " --output yaml");
    out.options = {"whoever runs KAI decides how much each queue gets",
                   "the owners of the queue's pods decide which of them end or request less"};
  }
  return out;
}

Cure kai_cure(const AskedPod& asked, std::string_view code, const KaiView& view) {
  if (code == kSharingOff) {
    const bool modes = view.sharing.decided_by == "spec.global.gpuSharingMode";
    return {fmt::format("kubectl get configs.kai.scheduler {} --output yaml", kai::kConfigName),
            {fmt::format("whoever runs KAI enables sharing for the whole cluster: Helm value {} ({} of {})",
                         modes ? "global.gpuSharingMode" : "global.gpuSharing=true",
                         modes ? "spec.global.gpuSharingMode" : "spec.admission.gpuSharing", kai::kConfigName),
             "the pod's owner requests whole GPUs"}};
  }
  if (code == "NoQueueLabel") {
    return {"kubectl get queues.scheduling.run.ai",
            {fmt::format("the pod's owner sets label {} in the template; whoever runs KAI says which queue to name",
                         view.queue_label)}};
  }
  if (code == "NoMemoryLabel") return {"kubectl get nodes --label-columns nvidia.com/gpu.memory", {}};
  if (code == "TooMuchMemory") return {"kubectl get nodes --label-columns nvidia.com/gpu.memory", {}};
  if (code == "NoRuntimeClass") return {"kubectl get runtimeclasses", {}};
  if (code == "ScalingPod") return {fmt::format("kubectl describe pods --namespace {}", view.scaling), {}};
  if (code == "BindFails") return {fmt::format("kubectl logs deployment/{} --namespace {}", kai::kBinder, view.ns), {}};
  // NotChosen.
  const std::string queue = queue_of(asked, view);
  if (!queue.empty()) return {fmt::format("kubectl get queues.scheduling.run.ai {} --output yaml", queue), {}};
  return {describe_pod(asked), {}};
}

}  // namespace

void explain_kai_wait(const Snapshot& snapshot, const AskedPod& asked, PodExplanation& out) {
  const auto add = [&out](Severity severity, std::string_view code, std::string text, Cure cure) {
    out.causes.push_back(
        {severity, std::string(code), std::move(text), std::move(cure.command), std::move(cure.options)});
  };
  const KaiView view = view_kai(snapshot.world.kai, snapshot.settings.kai);
  if (!view.served) {
    add(Severity::error, "NoKAI",
        "the pod requests a share of a GPU from KAI, but KAI-Scheduler is not installed in this cluster",
        {"kubectl get crds configs.kai.scheduler", {}});
    return;
  }
  const WaitingPod waiting{asked.pod, asked.tolerations};
  const auto& others = snapshot.world.kai.lookups.waiting;
  const std::vector<WaitingPod> none;
  const WaitingCauses causes(snapshot.world, view, others ? others->pods : none);
  if (!causes.is_of_kai(waiting)) {
    add(Severity::error, "OtherScheduler",
        fmt::format("the pod requests a share of a GPU from KAI, but its schedulerName is {}, not {}",
                    asked.pod.scheduler_name.view(), view.scheduler_name),
        schedule_by(asked, view.scheduler_name));
    return;
  }
  const Reason cause = causes.cause(waiting);
  const bool elsewhere = cause.code == kNotChosen;
  const std::string says = elsewhere ? scheduler_says(asked) : std::string();
  if (!says.empty()) {
    out.causes.push_back(refused_by_scheduler(asked, view, says));
    return;
  }
  add(elsewhere ? Severity::warning : Severity::error, cause.code, cause.message, kai_cure(asked, cause.code, view));
}

}  // namespace gso
