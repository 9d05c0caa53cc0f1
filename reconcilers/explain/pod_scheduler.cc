// A pod that its scheduler, or KAI's, has not placed, or that waits for slices.
#include "reconcilers/explain/pod_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <variant>

#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/explain/audit.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/kai/waiting.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/partitioning/node_slices.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/registry.h"

namespace gso {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kDefaultScheduler = "default-scheduler";

// "64Gi", "64Gi + 2Gi": the requests of its containers, as written.
std::string requests_of(const AskedPod& asked, const std::string& resource) {
  std::vector<std::string> out;
  for (const Json& container : list_at(asked.part("spec"), "containers")) {
    const Json resources = object_at(container, "resources");
    const Json limits = object_at(resources, "limits");
    const Json requests = object_at(resources, "requests");
    const Json* amount = member_at(requests, resource);
    if (amount == nullptr) amount = member_at(limits, resource);  // It counts if the container has no request.
    if (amount != nullptr) out.push_back(amount->is_string() ? amount->get<std::string>() : dump(*amount));
  }
  return fmt::format("{}", fmt::join(out, " + "));
}

// What the scheduler calls insufficient -> the code of the cause.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kShortages{
    {{"cpu", "NotEnoughCPU"}, {"memory", "NotEnoughMemory"}, {"ephemeral-storage", "NotEnoughStorage"}}};

}  // namespace

std::string scheduler_says(const AskedPod& asked) {
  const Json placed = condition_in(asked.part("status"), "PodScheduled");
  return text_at(placed, "status") == "False" ? text_at(placed, "message") : std::string();
}

std::string names_of_claims(const AskedPod& asked) {
  std::vector<std::string> names;
  for (const Json& claim : list_at(asked.part("spec"), "resourceClaims"))
    names.push_back(shown_value(text_at(claim, "name")));
  return first_names(names);
}

bool waits_for_claims_alone(const AskedPod& asked) {
  const auto& requests = asked.pod.gpu_requests;
  return asked.pod.dra_gpu_claim &&
         std::ranges::none_of(requests, [](const auto& request) { return request.second > 0; });
}

PodCause claims_not_read(const AskedPod& asked) {
  const std::string says = scheduler_says(asked);
  return pod_cause(
      says.empty() ? Severity::warning : Severity::error, "ClaimsNotRead",
      fmt::format("this command does not read the pod's ResourceClaims ({}), and GPUs of the device plugin do not "
                  "satisfy a claim{}",
                  names_of_claims(asked), says.empty() ? "" : "; its scheduler reports: " + says),
      {describe_pod(asked),
       {fmt::format("`kubectl get resourceclaims {}` shows which claims are allocated", asked.in_namespace())}});
}

std::optional<PodCause> unseen_by_schedulers(const Snapshot& snapshot, const AskedPod& asked) {
  constexpr Duration kPatience = std::chrono::minutes(1);
  const std::string name(asked.pod.scheduler_name.view());
  if (name.empty() || name == kDefaultScheduler || !scheduler_says(asked).empty()) return std::nullopt;
  const KaiView kai = view_kai(snapshot.world.kai, snapshot.settings.kai);
  const bool kais = name == kai.scheduler_name;
  if (kais && kai.served) return std::nullopt;
  const WallTime made = asked.pod.meta.creation_timestamp;
  const bool silent = kais || snapshot.now - made >= kPatience;
  Cure cure = schedule_by(asked, kDefaultScheduler);
  cure.options.insert(cure.options.begin(),
                      kais
                          ? "whoever runs the cluster installs KAI-Scheduler, or the pod's owner uses another scheduler"
                          : fmt::format("whoever runs {} starts it, or the pod's owner uses another scheduler", name));
  return pod_cause(
      silent ? Severity::error : Severity::warning, "NoScheduler",
      fmt::format("the schedulerName of the pod is {}, but {}", name,
                  kais ? "KAI-Scheduler is not installed in this cluster: no scheduler places the pod"
                       : "no scheduler of that name has reported anything about the pod: it does not seem to run"),
      std::move(cure));
}

PodCause not_placed(const AskedPod& asked, const std::string& otherwise, const std::string& nodes,
                    const std::string& node) {
  const std::string says = scheduler_says(asked);
  for (const auto& [resource, code] : kShortages) {
    if (!says.contains(fmt::format("Insufficient {}", resource))) continue;
    const std::string wanted = requests_of(asked, std::string(resource));
    return pod_cause(Severity::error, code,
                     fmt::format("GPUs are free for the pod on {}, but not enough {}: the pod requests {}; its "
                                 "scheduler reports: {}",
                                 nodes, resource, wanted.empty() ? "some" : wanted, says),
                     {describe_node_command(node)});
  }
  if (says.empty()) {
    return pod_cause(
        Severity::warning, "NotScheduledYet",
        otherwise + "; CPU, memory, ports, volumes and other pods' affinity are for the scheduler to check",
        {describe_pod(asked)});
  }
  return pod_cause(Severity::error, "SchedulerRefuses",
                   fmt::format("GPUs are free for the pod on {}, but its scheduler reports: {}", nodes, says),
                   {describe_pod(asked)});
}

// --- Why a pod that requests a share of a GPU from KAI waits.

namespace {

constexpr std::string_view kGetQueues = "kubectl get queues.scheduling.run.ai";

// The queue that the pod names; empty: none, or the label has no name of an object.
std::string queue_of(const AskedPod& asked, const KaiView& view) {
  return name_for_command(asked.pod.meta.labels.get(view.queue_label).value_or(""));
}

// What KAI's scheduler says of a pod that it has not chosen a node for. The words change between its releases: only a
// missing queue and a full one are recognised, and the message is always shown as it is.
PodCause refused_by_scheduler(const AskedPod& asked, const KaiView& view, const std::string& says) {
  const std::string queue = queue_of(asked, view);
  const auto says_one_of = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(words, [&](std::string_view word) { return says.contains(word); });
  };
  PodCause out = pod_cause(Severity::error, kNotChosen, "KAI's scheduler reports: " + says, {describe_pod(asked)});
  if (says_one_of({"queue", "Queue"}) && says_one_of({"does not exist", "not found"})) {
    out.reason.code = "NoQueue";
    out.cure = {{std::string(kGetQueues)},
                {fmt::format("the pod's owner sets label {} to a queue that exists; whoever runs KAI says which one, "
                             "or creates the queue",
                             view.queue_label)}};
  } else if (says_one_of({"quota", "allowable limit"})) {
    out.reason.code = "QueueFull";
    out.cure = {{queue.empty() ? std::string(kGetQueues) : fmt::format("{} {} --output yaml", kGetQueues, queue)},
                {"whoever runs KAI decides how much each queue gets",
                 "the owners of the queue's pods decide which of them end or request less"}};
  }
  return out;
}

Cure kai_cure(const AskedPod& asked, std::string_view code, const KaiView& view) {
  if (code == kSharingOff) {
    const bool modes = view.sharing.decided_by == "spec.global.gpuSharingMode";
    return {{fmt::format("kubectl get configs.kai.scheduler {} --output yaml", kai::kConfigName)},
            {fmt::format("whoever runs KAI enables sharing for the whole cluster: Helm value {} ({} of {})",
                         modes ? "global.gpuSharingMode" : "global.gpuSharing=true",
                         modes ? "spec.global.gpuSharingMode" : "spec.admission.gpuSharing", kai::kConfigName),
             "the pod's owner requests whole GPUs"}};
  }
  if (code == "NoQueueLabel") {
    return {{std::string(kGetQueues)},
            {fmt::format("the pod's owner sets label {} in the template; whoever runs KAI says which queue to name",
                         view.queue_label)}};
  }
  if (code == "NoMemoryLabel" || code == "TooMuchMemory")
    return {{"kubectl get nodes --label-columns nvidia.com/gpu.memory"}};
  if (code == "NoRuntimeClass") return {{"kubectl get runtimeclasses"}};
  if (code == "ScalingPod") return {{fmt::format("kubectl describe pods --namespace {}", view.scaling)}};
  if (code == "BindFails") return {{fmt::format("kubectl logs deployment/{} --namespace {}", kai::kBinder, view.ns)}};
  // NotChosen.
  const std::string queue = queue_of(asked, view);
  return {queue.empty() ? describe_pod(asked) : Command{fmt::format("{} {} --output yaml", kGetQueues, queue)}};
}

}  // namespace

PodCause kai_wait(const Snapshot& snapshot, const AskedPod& asked) {
  const KaiView view = view_kai(snapshot.world.kai, snapshot.settings.kai);
  if (!view.served) {
    return pod_cause(Severity::error, "NoKAI",
                     "the pod requests a share of a GPU from KAI, but KAI-Scheduler is not installed in this cluster",
                     {{"kubectl get crds configs.kai.scheduler"}});
  }
  const WaitingPod waiting{asked.pod, asked.tolerations};
  const auto& others = snapshot.world.kai.lookups.waiting;
  const std::vector<WaitingPod> none;
  const WaitingCauses causes(snapshot.world, view, others ? others->pods : none);
  if (!causes.is_of_kai(waiting)) {
    return pod_cause(Severity::error, "OtherScheduler",
                     fmt::format("the pod requests a share of a GPU from KAI, but its schedulerName is {}, not {}",
                                 asked.pod.scheduler_name.view(), view.scheduler_name),
                     schedule_by(asked, view.scheduler_name));
  }
  const Reason cause = causes.cause(waiting);
  const bool elsewhere = cause.code == kNotChosen;
  if (const std::string says = elsewhere ? scheduler_says(asked) : std::string(); !says.empty())
    return refused_by_scheduler(asked, view, says);
  return pod_cause(elsewhere ? Severity::warning : Severity::error, cause.code, cause.message,
                   kai_cure(asked, cause.code, view));
}

bool is_of_awaited_slices(const Finding& finding) {
  constexpr std::string_view kOfSlices[] = {kSlicePlanned, kSliceUnavailable, kSliceTooLarge, kSliceRequestRefused};
  return finding.object.kind == "Pod" && std::ranges::find(kOfSlices, finding.why.code) != std::end(kOfSlices);
}

std::vector<Finding> findings_and_slices(const Snapshot& snapshot, FleetIndex& index) {
  Plan plan = plan_all(snapshot, index, {.synced = everything_synced});
  std::erase_if(plan.findings, is_of_awaited_slices);  // The Events say the same, and more.
  for (const PlannedAction& planned : plan.actions) {
    const auto* event = std::get_if<RecordEvent>(&planned.action);
    if (event == nullptr) continue;
    Finding said{event->warning ? Severity::error : Severity::warning, event->regarding, event->why};
    if (!is_of_awaited_slices(said)) continue;
    if (said.why.code != kSliceRequestRefused)
      said.why.message.insert(0, "the pod ");  // That one begins with a container.
    plan.findings.push_back(std::move(said));
  }
  return std::move(plan.findings);
}

std::optional<PodCause> awaited_slices(const std::vector<Finding>& findings, const Pod& pod) {
  const auto said = std::ranges::find_if(findings, [&](const Finding& finding) {
    return is_of_awaited_slices(finding) && finding.object.name == pod.meta.name &&
           finding.object.ns == pod.meta.ns.view();
  });
  if (said == findings.end()) return std::nullopt;
  PodCause out{said->severity, said->why, {{"gpu-sharing-operator status"}}};
  if (said->why.code == kSlicePlanned) {
    out.cure.options = {
        "wait: with partitioning switched on (chart value modes.partitioning), the node has the slices in a few "
        "minutes; docs/partitioning.md has the steps. If explain of the node shows them as free already, kubectl "
        "describe of the pod says what else it lacks there"};
  }
  return out;
}

std::vector<PodCause> slice_limits(const SlicePod& pod) {
  std::vector<PodCause> out;
  for (const SliceRequest& request : pod.requests) {
    if (request.count < 1) continue;
    PodCause& cause = out.emplace_back(pod_cause(
        Severity::info, "SliceMemory",
        fmt::format("container {} gets a slice of {} GiB: its processes together can allocate that much memory of one "
                    "GPU (CUDA_MPS_PINNED_DEVICE_MEM_LIMIT). nvidia-smi and the total of cudaMemGetInfo show the whole "
                    "GPU, so a server that reserves a share of the GPU's memory must reserve a share of the slice "
                    "instead",
                    request.container, request.gigabytes)));
    if (pod.phase == "Running") {
      cause.cure.command = {
          fmt::format("kubectl exec {} --namespace {} --container {} -- printenv CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
                      pod.meta.name, pod.meta.ns.view(), request.container)};
    }
  }
  return out;
}

}  // namespace gso
