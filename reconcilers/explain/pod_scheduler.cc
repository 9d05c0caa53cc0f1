// Why a pod has no node: what its scheduler, or KAI's, says, what holds it before, and the slices that it waits for.
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
#include "reconcilers/explain/commands.h"
#include "reconcilers/kai/waiting.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/partitioning/node_slices.h"
#include "reconcilers/partitioning/slice_plan.h"
#include "reconcilers/reasons/names.h"

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

// The scheduler's message about a pod that it has not placed; empty: no message.
std::string scheduler_says(const AskedPod& asked) {
  const Json placed = condition_in(asked.part("status"), "PodScheduled");
  return text_at(placed, "status") == "False" ? text_at(placed, "message") : std::string();
}

// The device plugin's GPUs are nothing to the pod: it has claims and requests no nvidia.com/* resource.
bool waits_for_claims_alone(const AskedPod& asked) {
  const auto& requests = asked.pod.gpu_requests;
  return asked.pod.dra_gpu_claim &&
         std::ranges::none_of(requests, [](const auto& request) { return request.second > 0; });
}

// A pod with ResourceClaims that can be for GPUs.
PodCause claims_decide(const AskedPod& asked) {
  const std::string says = scheduler_says(asked);
  return pod_cause(
      says.empty() ? Severity::warning : Severity::error, "WaitsForClaims",
      fmt::format("the pod needs devices for its ResourceClaims ({}), which a DRA driver allocates: GPUs of the device "
                  "plugin do not satisfy a claim{}",
                  names_of_claims(asked), says.empty() ? "" : "; its scheduler reports: " + says),
      {describe_pod(asked),
       {fmt::format("`kubectl get resourceclaims {}` shows which claims are allocated", asked.in_namespace())}});
}

}  // namespace

std::string names_of_claims(const AskedPod& asked) {
  std::vector<std::string> names;
  for (const Json& claim : list_at(asked.part("spec"), "resourceClaims"))
    names.push_back(shown_value(text_at(claim, "name")));
  return first_names(names);
}

std::optional<PodCause> unseen_by_schedulers(const PodQuestion& q) {
  constexpr Duration kPatience = std::chrono::minutes(1);
  const AskedPod& asked = q.asked;
  const std::string name(asked.pod.scheduler_name.view());
  if (name.empty() || name == kDefaultScheduler || !scheduler_says(asked).empty()) return std::nullopt;
  const KaiView kai = view_kai(q.snapshot.world.kai, q.snapshot.settings.kai);
  const bool kais = name == kai.scheduler_name;
  if (kais && kai.served) return std::nullopt;
  const WallTime made = asked.pod.meta.creation_timestamp;
  const bool silent = kais || q.snapshot.now - made >= kPatience;
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
    return pod_cause(
        Severity::error, "OtherScheduler",
        fmt::format("the pod requests a share of a GPU from KAI, but its schedulerName is {}, not {}",
                    asked.pod.scheduler_name.empty() ? "default-scheduler" : asked.pod.scheduler_name.view(),
                    view.scheduler_name),
        schedule_by(asked, view.scheduler_name));
  }
  const Reason cause = causes.cause(waiting);
  const bool elsewhere = cause.code == kNotChosen;
  if (const std::string says = elsewhere ? scheduler_says(asked) : std::string(); !says.empty())
    return refused_by_scheduler(asked, view, says);
  return pod_cause(elsewhere ? Severity::warning : Severity::error, cause.code, cause.message,
                   kai_cure(asked, cause.code, view));
}

// --- What holds a pod before any node is looked at, and what its scheduler alone says.

std::optional<PodCause> before_scheduling(const PodQuestion& q) {
  const AskedPod& asked = q.asked;
  std::vector<std::string> gates;
  for (const Json& gate : list_at(asked.part("spec"), "schedulingGates")) gates.push_back(text_at(gate, "name"));
  if (!gates.empty()) {
    const bool kueue =
        std::ranges::any_of(gates, [](const std::string& gate) { return gate.starts_with("kueue.x-k8s.io/"); });
    return pod_cause(
        Severity::error, "SchedulingGated",
        fmt::format("no scheduler looks at the pod while it has scheduling gates: {}{}", first_names(gates),
                    kueue ? " (Kueue: the quota of its queue has no room, or the queue is stopped)" : ""),
        {kueue ? Command{fmt::format("kubectl get workloads.kueue.x-k8s.io {}", asked.in_namespace())}
               : describe_pod(asked),
         {"the controller that set a gate removes it; whoever runs that controller decides"}});
  }
  if (const std::string node = text_at(asked.part("status"), "nominatedNodeName"); !node.empty()) {
    return pod_cause(
        Severity::warning, "Preempting",
        fmt::format("the scheduler has chosen node {} and waits until pods of lower priority have ended there", node),
        {explain_command(node)});
  }
  const KaiView kai = view_kai(q.snapshot.world.kai, q.snapshot.settings.kai);
  const Json labels = object_at(asked.part("metadata"), "labels");
  if (!kai.served || asked.pod.scheduler_name != kai.scheduler_name || labels.contains(kai.queue_label))
    return std::nullopt;
  return pod_cause(Severity::error, "NoQueueLabel",
                   fmt::format("the pod has no label {}: KAI-Scheduler skips pods without a queue", kai.queue_label),
                   {{std::string(kGetQueues)},
                    {"the pod's owner sets the label in the template; whoever runs KAI says which queue to name"}});
}

// Where nodes and plugins cannot be read.
PodCause without_a_look_at_nodes(const AskedPod& asked) {
  const std::string says = scheduler_says(asked);
  const std::string_view scheduler =
      asked.pod.scheduler_name.empty() ? kDefaultScheduler : asked.pod.scheduler_name.view();
  if (says.empty())
    return pod_cause(Severity::warning, "NotScheduledYet",
                     fmt::format("{} has not placed the pod and reported no reason", scheduler), {describe_pod(asked)});
  return pod_cause(Severity::error, "SchedulerRefuses",
                   fmt::format("{} finds no node for the pod: {}", scheduler, says), {describe_pod(asked)});
}

}  // namespace

void explain_wait(const PodQuestion& q, PodExplanation& out) {
  if (q.plan == nullptr) {
    out.causes.push_back(without_a_look_at_nodes(q.asked));
    return;
  }
  if (q.asked.fraction) {
    PodCause cause = kai_wait(q.snapshot, q.asked);
    const std::size_t before = out.causes.size();
    if (cause.reason.code == kNotChosen) explain_placement(q, out);
    // What keeps the pod off every node comes before the scheduler's own words, and in the place of none.
    if (out.causes.size() == before || cause.severity == Severity::error) out.causes.push_back(std::move(cause));
    return;
  }
  const bool claims_alone = waits_for_claims_alone(q.asked);
  auto held = before_scheduling(q);
  const bool is_held = held.has_value();
  if (!held && claims_alone) held = unseen_by_schedulers(q);
  if (held) out.causes.push_back(*std::move(held));
  if (!is_held && !claims_alone) explain_placement(q, out);
  if (q.asked.pod.dra_gpu_claim && !(is_held && claims_alone)) out.causes.push_back(claims_decide(q.asked));
}

// --- Slices that a pod waits for.

bool is_of_awaited_slices(std::string_view code) {
  constexpr std::string_view kOfSlices[] = {kSlicePlanned, kSliceUnavailable, kSliceTooLarge, kSliceRequestRefused};
  return std::ranges::find(kOfSlices, code) != std::end(kOfSlices);
}

std::optional<PodCause> awaited_slices(const PodQuestion& q) {
  for (const PlannedAction& planned : q.plan->actions) {
    const auto* event = std::get_if<RecordEvent>(&planned.action);
    const bool is_meant =
        event != nullptr && is_of_awaited_slices(event->why.code) && is_about(event->regarding, q.asked.pod);
    if (!is_meant) continue;
    PodCause out{event->warning ? Severity::error : Severity::warning, event->why, {describe_pod(q.asked)}};
    if (event->why.code == kSliceTooLarge)
      out.cure.command = {fmt::format("kubectl get nodes --selector {}=mps --label-columns {},{}", kNosPartitioning,
                                      kGpuCount, kGpuMemory)};
    if (event->why.code == kSliceUnavailable) {
      const World& world = q.snapshot.world;
      const SlicePod* pod = world.partitioning.pods.find(q.asked.pod.meta.key());
      Command cause = slices_command(world, q.index.impl(), q.plan->findings, [&](const Node& node) {
        return pod != nullptr && Admission(*pod).follows_rules(node);
      });
      if (!cause.empty()) out.cure.command = std::move(cause);
    }
    // That one begins with a container.
    if (out.reason.code != kSliceRequestRefused) out.reason.message.insert(0, "the pod ");
    if (out.reason.code == kSlicePlanned) {
      out.cure.options = {
          "wait: with partitioning switched on (chart value modes.partitioning), the node has the slices in a few "
          "minutes; docs/partitioning.md has the steps. If explain of the node shows them as free already, kubectl "
          "describe of the pod says what else it lacks there"};
    }
    return out;
  }
  return std::nullopt;
}

std::vector<PodCause> slice_limits(const SlicePod& pod, std::int64_t mps_user) {
  std::vector<PodCause> out;
  for (const SliceRequest& request : pod.requests) {
    if (request.count < 1 || !slice_faults(pod, request.container, mps_user).empty()) continue;
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
