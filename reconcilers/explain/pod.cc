// What the pod requests, and the first cause that applies: KAI's, the scheduler's, the kubelet's, or the pods that
// share its GPU.
#include "reconcilers/explain/pod.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "reconcilers/explain/node.h"
#include "reconcilers/explain/pod_parts.h"
#include "reconcilers/explain/slices.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/kai/pod_annotations.h"
#include "reconcilers/kai/waiting.h"
#include "reconcilers/model/kai_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/project.h"
#include "reconcilers/node/assess.h"

namespace gso {
namespace {

using Json = nlohmann::json;

std::string asks_of(const AskedPod& asked) {
  std::string out;
  for (const auto& [resource, count] : asked.pod.gpu_requests) {
    if (count > 0) out += fmt::format("{}{}={}", out.empty() ? "" : ", ", resource.view(), count);
  }
  const StringMap& annotations = asked.pod.meta.annotations;
  if (const auto fraction = annotations.get(kai::kFraction))
    out += fmt::format("{}a share of {} of a GPU, from KAI", out.empty() ? "" : ", ", *fraction);
  if (const auto memory = annotations.get(kai::kMemory))
    out += fmt::format("{}{} MiB of a GPU, from KAI", out.empty() ? "" : ", ", *memory);
  if (out.empty() && asked.pod.dra_gpu_claim) out = "a GPU by ResourceClaim";
  if (out.empty() && asked.pod.nvidia_visible_devices) out = "GPUs by NVIDIA_VISIBLE_DEVICES, without a request";
  return out;
}

std::string state_of(const Pod& pod) {
  std::string out = pod.phase.empty() ? "Pending" : std::string(pod.phase.view());
  if (!pod.reason.empty()) out += fmt::format(" ({})", pod.reason.view());
  if (pod.node_name.empty()) return out + ", no node has been chosen";
  return fmt::format("{} on {}", out, pod.node_name.view());
}

// True if a sentence names `name` as a whole: "team/job-1" is not in "waits for team/job-10".
bool is_named(std::string_view text, std::string_view name) {
  const auto goes_on = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '/'; };
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !goes_on(text[at - 1])) && (end == text.size() || !goes_on(text[end]))) return true;
  }
  return false;
}

class PodQuestions {
 public:
  PodQuestions(const Snapshot& snapshot, FleetIndex& index, const AskedPod& asked, PodExplanation& out)
      : s_(snapshot), index_(index), asked_(asked), out_(out) {}

  // Without access to nodes and plugins.
  void run_alone() {
    written_wrong();
    const Pod& pod = asked_.pod;
    if (pod.phase == "Succeeded") return;
    if (pod.node_name.empty()) {
      waits_for_somebody();
    } else if (pod.phase == "Failed") {
      rejected();
    } else {
      containers();
    }
  }

  void run(const std::vector<Finding>& findings) {
    written_wrong();
    const Pod& pod = asked_.pod;
    if (pod.phase == "Succeeded") return;
    if (pod.node_name.empty()) {
      if (asked_.fraction) {
        waits_for_kai();
      } else {
        explain_placement(s_, index_, asked_, awaited_slices(findings, pod), out_);
      }
    } else if (pod.phase == "Failed") {
      rejected();
    } else {
      node_reachable();
      containers();
      node_state();
      if (auto cause = other_pipe_directory(s_.world, asked_)) out_.causes.push_back(*std::move(cause));
      if (pod.phase == "Running") slow();
    }
    if (pod.phase != "Failed") memory();
    for (const Finding& finding : findings) {
      const bool mine = finding.object.kind == "Pod" && finding.object.name == pod.meta.name &&
                        finding.object.ns == pod.meta.ns.view();
      const bool of_node =
          finding.object.kind == "Node" && finding.object.name == pod.node_name.view() &&
          (finding.reason == kKaiMismatch || finding.reason == kKaiClaimedTwice || finding.reason == kKaiOnSharedNode);
      if ((mine && finding.reason != kKaiPodStuck && !is_of_awaited_slices(finding)) || of_node)
        add(finding.severity, finding.reason, finding.message, "");
    }
  }

 private:
  void add(Severity severity, std::string_view code, std::string text, std::string command,
           std::vector<std::string> options = {}) {
    out_.causes.push_back({severity, std::string(code), std::move(text), std::move(command), std::move(options)});
  }
  void add(Severity severity, std::string_view code, std::string text, Cure cure) {
    add(severity, code, std::move(text), std::move(cure.command), std::move(cure.options));
  }
  [[nodiscard]] std::string describe() const {
    return fmt::format("kubectl describe pod {} {}", asked_.pod.meta.name, asked_.in_namespace());
  }

  // What KAI's admission refuses, or never handles.
  void written_wrong() {
    const KaiPodRules rules = rules_of(view_kai(s_.world.kai, s_.settings.kai));
    Json document{{"apiVersion", "v1"}, {"kind", "Pod"}};
    document.update(asked_.object);
    for (const Diagnostic& d : check_pod(document.dump(-1, ' ', false, Json::error_handler_t::replace), rules)) {
      if (d.severity == Severity::info || d.code == "KAISharingDisabled") continue;
      add(d.severity, d.code, d.path.empty() ? d.message : fmt::format("{}: {}", d.path, d.message),
          show_template(asked_), {"the pod's owner corrects it where the pod is defined"});
    }
  }

  void waits_for_somebody() {
    const std::string says = scheduler_says(asked_);
    const std::string command = describe();
    const std::string_view scheduler =
        asked_.pod.scheduler_name.empty() ? std::string_view("default-scheduler") : asked_.pod.scheduler_name.view();
    if (says.empty()) {
      add(Severity::warning, "NotScheduledYet",
          fmt::format("{} has not placed the pod and reported no reason", scheduler), command);
    } else {
      add(Severity::error, "SchedulerRefuses", fmt::format("{} finds no node for the pod: {}", scheduler, says),
          command);
    }
  }

  void waits_for_kai() {
    const KaiView view = view_kai(s_.world.kai, s_.settings.kai);
    if (!view.served) {
      add(Severity::error, "NoKAI",
          "the pod requests a share of a GPU from KAI, but KAI-Scheduler is not installed in this cluster",
          "kubectl get crds configs.kai.scheduler");
      return;
    }
    const WaitingPod waiting{asked_.pod, asked_.tolerations};
    const auto& others = s_.world.kai.lookups.waiting;
    const std::vector<WaitingPod> none;
    const WaitingCauses causes(s_.world, view, others ? others->pods : none);
    if (!causes.is_of_kai(waiting)) {
      add(Severity::error, "OtherScheduler",
          fmt::format("the pod requests a share of a GPU from KAI, but its schedulerName is {}, not {}",
                      asked_.pod.scheduler_name.view(), view.scheduler_name),
          schedule_by(asked_, view.scheduler_name));
      return;
    }
    const WaitingCause cause = causes.cause(waiting);
    const bool elsewhere = cause.code == "NotChosen";
    add(elsewhere ? Severity::warning : Severity::error, cause.code, cause.text, kai_cure(cause.code, view));
  }

  [[nodiscard]] Cure kai_cure(std::string_view code, const KaiView& view) const {
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
    if (code == "BindFails")
      return {fmt::format("kubectl logs deployment/{} --namespace {}", kai::kBinder, view.ns), {}};
    return {describe(), {}};
  }

  // The kubelet has rejected the pod.
  void rejected() {
    const Pod& pod = asked_.pod;
    const Node* node = s_.world.nodes.find(pod.node_name.view());
    if (pod.reason == "UnexpectedAdmissionError" && node != nullptr) {
      for (const auto& [resource, count] : pod.gpu_requests) {
        if (!refuses_request(index_, *node, asked_, resource.view())) continue;
        add(Severity::error, "RequestRefused",
            fmt::format("the pod requests {} {}, but the plugin of node {} refuses more than one per container "
                        "(failRequestsGreaterThanOne)",
                        count, resource.view(), node->meta.name),
            ask_for(asked_, std::string(resource.view()), 1, std::string(resource.view())));
        return;
      }
    }
    if (pod.reason == "UnexpectedAdmissionError") {
      add(Severity::error, "DeviceNotGiven",
          fmt::format(
              "the kubelet of node {} could not allocate a device to the pod: the plugin was being restarted, or "
              "another pod used the GPU. This pod never runs",
              pod.node_name.view()),
          describe(),
          {asked_.workload().kind.empty()
               ? "nothing creates this pod anew: whoever created it deletes it and creates it again"
               : fmt::format("{} {} creates another pod", asked_.workload().kind, asked_.workload().name)});
      return;
    }
    add(Severity::error, "Failed",
        fmt::format("the pod has failed{}{}", pod.reason.empty() ? "" : ": ", pod.reason.view()),
        fmt::format("kubectl logs {} {}", pod.meta.name, asked_.in_namespace()));
  }

  void containers() {
    const auto look = [&](const ContainerStatus& container) {
      if (container.waiting_reason.empty() || container.waiting_reason == "ContainerCreating" ||
          container.waiting_reason == "PodInitializing") {
        return;
      }
      add(Severity::error, "ContainerWaits",
          fmt::format("container {} waits: {}{}{}", container.name.view(), container.waiting_reason.view(),
                      container.last_message().empty() ? "" : ": ", container.last_message()),
          fmt::format("kubectl logs {} {} --container {} --previous", asked_.pod.meta.name, asked_.in_namespace(),
                      container.name.view()));
    };
    for (const ContainerStatus* container : asked_.pod.all_containers()) look(*container);
  }

  // The pod's node is gone or cannot report: nothing that the pod's status says is current.
  void node_reachable() {
    const std::string name(asked_.pod.node_name.view());
    const Node* node = s_.world.nodes.find(name);
    if (s_.world.nodes.all().empty() || (node != nullptr && node->ready)) return;
    const bool ending = asked_.pod.meta.deletion_timestamp.has_value();
    add(Severity::error, "NodeNotReady",
        fmt::format("node {} {}{}", name, node == nullptr ? "does not exist any more" : "is not Ready",
                    ending ? ": the pod is being deleted, and no kubelet confirms that it has ended"
                           : ": the pod does not run, or nobody knows whether it does"),
        node == nullptr ? describe() : "kubectl describe node " + name,
        {"whoever runs the node brings it back, or deletes the Node object once the machine is certainly off"});
  }

  // A change or a problem of the pod's node.
  void node_state() {
    const NodeAssessment* a = index_.assessment(asked_.pod.node_name.view());
    if (a == nullptr || a->profile == nullptr) return;
    const std::string node(asked_.pod.node_name.view());
    const std::string explain = "gpu-sharing-operator explain " + node;
    const bool mps = a->profile->profile().strategy() == Strategy::mps;
    const NodePods pods = sort_pods(index_.impl().installation_of(*a), index_.impl().pods_of(node));
    const bool daemon = std::ranges::any_of(pods.mps, [](const Pod* pod) { return is_serving(*pod); });
    if (mps && !daemon) {
      add(Severity::error, "NoMPSDaemon",
          fmt::format("node {} should share its GPUs by MPS, but no MPS daemon runs on it: CUDA clients wait or fail",
                      node),
          explain);
    } else if (a->change) {
      const std::string who = blocking_pods_of(s_.world, node);
      const bool waits = is_named(who, k8s::to_string(asked_.pod.meta.key()));
      add(Severity::warning, "NodeInChange",
          fmt::format("node {} is being changed to {} now{}{}", node, a->change->to, who.empty() ? "" : ", and ",
                      waits ? "waits for this pod to end" : who),
          "gpu-sharing-operator rollout status");
    } else if (a->phase == Phase::pending &&
               is_named(blocking_pods_of(s_.world, node), k8s::to_string(asked_.pod.meta.key()))) {
      add(Severity::warning, "NodeWaits",
          fmt::format("node {} must change to {} and waits for this pod to end", node, a->target.view()),
          "gpu-sharing-operator rollout status");
    } else if (a->phase == Phase::failed || (a->phase == Phase::up_to_date && !a->matches())) {
      add(Severity::warning, "NodeDiffers",
          fmt::format("node {} does not show its profile: {}", node, shown_difference(*a)), explain);
    }
  }

  // How many clients share a GPU by MPS on the pod's node. If the pod has no node yet, the largest number on a node
  // that serves the requested resource. 0: none.
  std::pair<std::int64_t, std::string> mps_clients() {
    std::pair<std::int64_t, std::string> most{0, ""};
    for (const std::string& name : index_.node_names()) {
      if (!asked_.pod.node_name.empty() && asked_.pod.node_name != name) continue;
      const NodeAssessment* a = index_.assessment(name);
      if (a->profile == nullptr || !a->profile->valid) continue;
      const Profile& profile = a->profile->profile();
      if (profile.strategy() != Strategy::mps) continue;
      const std::string_view served = profile.mps->rename_by_default ? "nvidia.com/gpu.shared" : kGpuResource;
      const std::int64_t clients = profile.plugin_replicas(kGpuResource);
      if (asked_.pod.gpu_requests.contains(Interned(served)) && clients > most.first) most = {clients, name};
    }
    return most;
  }

  // Inference servers that reserve a fraction of the whole GPU.
  void memory() {
    const auto [clients, node] = mps_clients();
    if (clients == 0) return;
    for (const ServerContainer& container : asked_.containers) {
      const auto reserved = memory_fraction_of(container);
      if (!reserved) continue;
      MemoryProblem problem = memory_fraction_problem(*reserved, clients, "node " + node);
      if (problem.message.empty()) continue;
      add(problem.severity, problem.code, std::move(problem.message), show_template(asked_));
    }
  }

  // The pod runs: which pods run beside it.
  void slow() {
    const NodeAssessment* a = index_.assessment(asked_.pod.node_name.view());
    const auto listed = s_.consumers.find(std::string(asked_.pod.node_name.view()));
    if (a == nullptr || a->profile == nullptr || listed == s_.consumers.end()) return;
    const Profile& profile = a->profile->profile();
    std::vector<std::string> beside;
    std::vector<std::string> unasked;
    for (const Pod& other : listed->second.pods) {
      if (other.meta.uid == asked_.pod.meta.uid) continue;
      beside.push_back(k8s::to_string(other.meta.key()));
      const bool free = other.gpu_requests.empty() && other.nvidia_visible_devices;
      if (free) unasked.push_back(beside.back());
    }
    const std::string node(asked_.pod.node_name.view());
    if (!unasked.empty()) {
      add(Severity::warning, "UnaccountedUse",
          fmt::format("pods on node {} can use its GPUs without a request: {}", node, fmt::join(unasked, ", ")),
          fmt::format("kubectl describe pod {} --namespace {}", unasked.front().substr(unasked.front().find('/') + 1),
                      unasked.front().substr(0, unasked.front().find('/'))),
          {"the owners of these pods request a GPU, or remove NVIDIA_VISIBLE_DEVICES"});
    }
    if (profile.strategy() == Strategy::none) return;
    for (const auto& [resource, count] : asked_.pod.gpu_requests) {
      if (count > 1) {
        add(Severity::warning, "SeveralReplicas",
            fmt::format("the pod has {} of {}, which are replicas of shared GPUs: several replicas give it neither "
                        "more time nor more memory, and might be on the same GPU",
                        count, resource.view()),
            show_template(asked_), {"the pod's owner requests 1, or selects nodes whose GPUs are not shared"});
      }
    }
    if (!beside.empty()) {
      constexpr std::size_t kNamed = 5;
      const std::size_t rest = beside.size() > kNamed ? beside.size() - kNamed : 0;
      beside.resize(std::min(beside.size(), kNamed));
      add(Severity::info, "SharesGPUs",
          fmt::format("the GPUs of node {} are shared ({}); {}{} also {} on this node", node,
                      to_string(profile.strategy()), fmt::join(beside, ", "),
                      rest > 0 ? fmt::format(" and {} more", rest) : "", beside.size() + rest == 1 ? "runs" : "run"),
          "gpu-sharing-operator explain " + node);
    }
  }

  const Snapshot& s_;
  FleetIndex& index_;
  const AskedPod& asked_;
  PodExplanation& out_;
};

}  // namespace

bool PodExplanation::hindered() const {
  return std::ranges::any_of(causes, [](const PodCause& cause) { return cause.severity == Severity::error; });
}

namespace {
// What the explanation has before any cause is checked.
PodExplanation about(const AskedPod& asked) {
  PodExplanation out;
  out.pod = k8s::to_string(asked.pod.meta.key());
  out.state = state_of(asked.pod);
  out.asks = asks_of(asked);
  for (const auto& [resource, count] : asked.pod.gpu_requests) out.requests[std::string(resource.view())] = count;
  return out;
}

void add_slice_limits(std::string_view json, PodExplanation& out) {
  const k8s::Result<SlicePod> pod = project_slice_pod(json);
  if (!pod) return;
  for (PodCause& limit : slice_limits(*pod)) out.causes.push_back(std::move(limit));
}
}  // namespace

k8s::Result<PodExplanation> explain_pod(const Snapshot& snapshot, FleetIndex& index,
                                        const std::vector<Finding>& findings, std::string_view json) {
  const k8s::Result<AskedPod> asked = read_pod(json);
  if (!asked) return std::unexpected(asked.error());
  PodExplanation out = about(*asked);
  if (out.asks.empty()) return out;
  PodQuestions(snapshot, index, *asked, out).run(findings);
  add_slice_limits(json, out);
  return out;
}

k8s::Result<PodExplanation> explain_pod_alone(const PodSurroundings& surroundings, const PlannerSettings& settings,
                                              std::string_view json) {
  const k8s::Result<AskedPod> asked = read_pod(json);
  if (!asked) return std::unexpected(asked.error());
  PodExplanation out = about(*asked);
  out.events = surroundings.events;
  if (out.asks.empty()) return out;
  const World nothing;
  FleetIndex index;
  const Timers timers;
  const std::map<std::string, NodeConsumers> consumers;
  const Snapshot snapshot{nothing, WallTime{}, timers, consumers, settings};
  PodQuestions(snapshot, index, *asked, out).run_alone();
  add_slice_limits(json, out);
  for (const Pod& other : surroundings.pods) {
    const bool asks = std::ranges::any_of(other.gpu_requests, [](const auto& entry) { return entry.second > 0; });
    const bool ended = other.phase == "Succeeded" || other.phase == "Failed";
    if (!asks || ended || other.meta.uid == asked->pod.meta.uid) continue;
    std::string line = k8s::to_string(other.meta.key()) + ":";
    for (const auto& [resource, count] : other.gpu_requests) line += fmt::format(" {}={}", resource.view(), count);
    out.beside.push_back(line +
                         (other.node_name.empty() ? ", waiting" : fmt::format(" on {}", other.node_name.view())));
  }
  std::ranges::sort(out.beside);
  return out;
}

}  // namespace gso
