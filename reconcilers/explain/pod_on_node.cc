// A pod that has its node: what the node has to do with its trouble, what its kubelet says, and how it ends.
#include "reconcilers/explain/pod_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include "reconcilers/cluster/plugin_settings.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/node/assess.h"

namespace gso {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kOutOfMemoryCure =
    "the pod's owner raises resources.limits.memory of the container, or lets it use less: this is the node's memory, "
    "not the GPU's";

// --- The containers of the pod to explain, as its kubelet reports them: more than the operator keeps of every pod.

struct ContainerRun {
  Reason reason;  // OOMKilled, Error, Completed, …; and what the container said.
  std::int64_t exit_code = 0;
  [[nodiscard]] bool failed() const { return exit_code != 0 || out_of_memory(); }
  [[nodiscard]] bool out_of_memory() const { return reason.code == "OOMKilled"; }
};

struct ContainerState {
  std::string name;
  // It does its work and ends before the other containers start; false for sidecars.
  bool init_step = false;
  bool running = false;
  std::int64_t restarts = 0;
  Reason waiting;                     // ContainerCreating, CrashLoopBackOff, …; without a code it does not wait.
  std::optional<ContainerRun> ended;  // It has ended, and no new run has started.
  std::optional<ContainerRun> last;   // How the run before this state ended.
};

std::optional<ContainerRun> run_in(const Json& state) {
  const Json terminated = object_at(state, "terminated");
  if (terminated.empty()) return std::nullopt;
  return ContainerRun{{text_at(terminated, "reason"), text_at(terminated, "message")},
                      number_at(terminated, "exitCode")};
}

// Init containers first. Empty: its kubelet has reported none.
std::vector<ContainerState> container_states(const AskedPod& asked) {
  std::vector<ContainerState> out;
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    const bool init = std::string_view(list) == "initContainerStatuses";
    for (const Json& reported : list_at(asked.part("status"), list)) {
      const Json state = object_at(reported, "state");
      const Json waiting = object_at(state, "waiting");
      ContainerState container;
      container.name = text_at(reported, "name");
      container.init_step =
          init && std::ranges::find(asked.containers, container.name, &ServerContainer::name) == asked.containers.end();
      container.running = member_at(state, "running") != nullptr;
      container.restarts = number_at(reported, "restartCount");
      container.waiting = {text_at(waiting, "reason"), text_at(waiting, "message")};
      container.ended = run_in(state);
      container.last = run_in(object_at(reported, "lastState"));
      out.push_back(std::move(container));
    }
  }
  return out;
}

// What the kubelet says, on one line. Of a long text its beginning and its end: container runtimes put the cause last
// ("…: driver/library version mismatch").
std::string quoted_report(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  if (text.size() <= 2 * kMostValueCharacters) return one_line(text);
  return fmt::format("{} ... {}", one_line(first_bytes(text, kMostValueCharacters)),
                     one_line(last_bytes(text, kMostValueCharacters)));
}

// "OOMKilled (exit code 137), 12 restarts: what the container said"
std::string how_it_ended(const ContainerRun& run, std::int64_t restarts) {
  std::string out = run.reason.code.empty()
                        ? fmt::format("exit code {}", run.exit_code)
                        : fmt::format("{} (exit code {})", shown_value(run.reason.code), run.exit_code);
  if (restarts > 0) out += ", " + counted(restarts, "restart");
  if (!run.reason.message.empty()) out += ": " + quoted_report(run.reason.message);
  return out;
}

// --- Why a container of a pod that has its node does not run.

// An image with CUDA has gigabytes: pulling it takes minutes.
constexpr Duration kUsualCreation = std::chrono::minutes(10);

bool is_being_created(const ContainerState& container) {
  return waiting_for(container.waiting.code) == Waiting::starts;
}

// `kubectl logs` of the container's present or newest run; `run`: "", or " --previous".
Command logs_of(const AskedPod& asked, std::string_view container, std::string_view run = {}) {
  return {
      fmt::format("kubectl logs {} {} --container {}{}", asked.pod.meta.name, asked.in_namespace(), container, run)};
}

PodCause waiting(const AskedPod& asked, const ContainerState& container) {
  // Every other reason names a container that has not been started: it has no log, and no previous one.
  const bool ran =
      waiting_for(container.waiting.code) == Waiting::crashes && (container.last || container.restarts > 0);
  std::string text =
      fmt::format("container {} waits: {}", shown_value(container.name), shown_value(container.waiting.code));
  if (ran && container.last)
    text += " after " + how_it_ended(*container.last, container.restarts);
  else if (!container.waiting.message.empty())
    text += ": " + quoted_report(container.waiting.message);
  Cure cure{describe_pod(asked)};
  if (ran) cure.command = logs_of(asked, container.name, " --previous");
  if (ran && container.last && container.last->out_of_memory()) cure.options.emplace_back(kOutOfMemoryCure);
  return pod_cause(Severity::error, "ContainerWaits", std::move(text), std::move(cure));
}

// When the kubelet began with the pod, or else when the pod was made.
WallTime begun(const AskedPod& asked) {
  return k8s::parse_rfc3339(text_at(asked.part("status"), "startTime")).value_or(asked.pod.meta.creation_timestamp);
}

// No container has run yet, and nothing says that one cannot.
std::optional<PodCause> being_created(const AskedPod& asked, const std::vector<ContainerState>& containers,
                                      WallTime now) {
  if (asked.pod.phase != "Pending" && !asked.pod.phase.empty()) return std::nullopt;
  // An init step that downloads a model takes as long as it takes.
  const bool at_work =
      std::ranges::any_of(containers, [](const ContainerState& c) { return c.init_step && c.running; });
  const auto waits = std::ranges::find_if(containers, is_being_created);
  if (at_work || (waits == containers.end() && !containers.empty())) return std::nullopt;
  const WallTime since = begun(asked);
  const bool long_ago = since != WallTime{} && now - since >= kUsualCreation;
  const std::string for_how_long = since == WallTime{} ? std::string() : " since " + k8s::format_time(since);
  const std::string node = shown_value(asked.pod.node_name.view());
  return pod_cause(
      long_ago ? Severity::error : Severity::info, "ContainerCreating",
      containers.empty()
          ? fmt::format("the kubelet of node {} has reported no container of the pod{}", node, for_how_long)
          : fmt::format("{} on node {}{}: the kubelet pulls images, mounts volumes or sets up the network; the pod's "
                        "Events name what does not finish",
                        shown_value(waits->waiting.code), node, for_how_long),
      {describe_pod(asked)});
}

// Why containers of a pod that has a node do not run.
std::vector<PodCause> container_causes(const AskedPod& asked, WallTime now) {
  std::vector<PodCause> out;
  // The containers of a pod that is deleted end, which is no fault.
  if (asked.pod.meta.deletion_timestamp) return out;
  const std::vector<ContainerState> containers = container_states(asked);
  for (const ContainerState& container : containers) {
    if (!container.waiting.code.empty() && !is_being_created(container)) out.push_back(waiting(asked, container));
    if (!container.ended || !container.ended->failed()) continue;
    PodCause& ended = out.emplace_back(pod_cause(Severity::error, "ContainerEnded",
                                                 fmt::format("container {} has ended: {}", shown_value(container.name),
                                                             how_it_ended(*container.ended, container.restarts)),
                                                 {logs_of(asked, container.name)}));
    if (container.ended->out_of_memory()) ended.cure.options.emplace_back(kOutOfMemoryCure);
  }
  if (!out.empty()) return out;
  if (auto creating = being_created(asked, containers, now)) out.push_back(*std::move(creating));
  return out;
}

// --- A pod that has failed for good: rejected by its node's kubelet, evicted, or ended by its containers.

constexpr std::string_view kRejectedByPlugin = "UnexpectedAdmissionError";
// What the device plugin answers under failRequestsGreaterThanOne.
constexpr std::string_view kTooLargeRequest = "maximum request size for shared resources";

std::string status_message(const AskedPod& asked) {
  return quoted_report(text_at(asked.part("status"), "message"));
}

// The plugin has refused more than one replica, or would.
std::optional<PodCause> refused_request(const PodQuestion& q) {
  const AskedPod& asked = q.asked;
  const Node* node = q.snapshot.world.nodes.find(asked.pod.node_name.view());
  const bool said = status_message(asked).contains(kTooLargeRequest);
  for (const auto& [name, count] : asked.pod.gpu_requests) {
    const std::string resource(name.view());
    const bool refuses =
        said ? asked.most_of_a_container(resource) > 1 : node != nullptr && refuses_request(q, *node, resource);
    if (!refuses) continue;
    return pod_cause(
        Severity::error, "RequestRefused",
        fmt::format("the pod requests {} {}, but the plugin of node {} refuses more than one per container "
                    "(failRequestsGreaterThanOne)",
                    count, resource, asked.pod.node_name.view()),
        ask_for(asked, resource, 1, resource));
  }
  return std::nullopt;
}

PodCause not_given(const Snapshot& snapshot, const AskedPod& asked) {
  const std::string node(asked.pod.node_name.view());
  const std::string says = status_message(asked);
  const AskedPod::Workload owner = asked.workload();
  std::string another = owner.kind.empty()
                            ? "nothing creates this pod anew: whoever created it deletes it and creates it again"
                            : fmt::format("{} {} creates another pod", owner.kind, owner.name);
  PodCause out = pod_cause(Severity::error, "DeviceNotGiven",
                           fmt::format("the kubelet of node {} rejected the pod, which never runs: {}", node,
                                       says.empty() ? "it could not allocate a device, and gave no reason" : says),
                           {describe_pod(asked), {std::move(another)}});
  if (!says.contains("unhealthy")) return out;
  out.reason.message +=
      ". The node's device plugin reports a GPU as unhealthy, or was not running. A pod that is created again can be "
      "placed there again";
  out.cure.options.emplace_back(
      "whoever runs the node looks for XID errors, in the log of its device plugin and in its kernel log, and cordons "
      "the node until the GPU works");
  if (snapshot.world.nodes.find(node) != nullptr) out.cure.command = explain_command(node);
  return out;
}

PodCause failed_pod(const PodQuestion& q) {
  const AskedPod& asked = q.asked;
  if (asked.pod.reason == kRejectedByPlugin) {
    if (auto refused = refused_request(q)) return *std::move(refused);
    return not_given(q.snapshot, asked);
  }
  PodCause out = pod_cause(Severity::error, "Failed", "the pod has failed", {describe_pod(asked)});
  std::string& text = out.reason.message;
  const std::string says = status_message(asked);
  if (!asked.pod.reason.empty()) text += ": " + shown_value(asked.pod.reason.view());
  if (!says.empty()) text += ": " + says;
  bool first = true;
  for (const ContainerState& container : container_states(asked)) {
    if (!container.ended || !container.ended->failed()) continue;
    text += fmt::format("; container {} ended: {}", shown_value(container.name),
                        how_it_ended(*container.ended, container.restarts));
    if (!std::exchange(first, false)) continue;
    // Where the kubelet has ended the pod, its reason is the cause, and not what its containers printed.
    if (asked.pod.reason.empty()) out.cure.command = logs_of(asked, container.name);
    if (container.ended->out_of_memory()) out.cure.options.emplace_back(kOutOfMemoryCure);
  }
  return out;
}

// --- A pod that is deleted and still there, or whose state is not known.

// The kubelet reports the end of containers, and the API server deletes the pod, a moment after the grace period.
constexpr Duration kUsualEnd = std::chrono::minutes(1);

// deletionTimestamp is the end of the grace period.
WallTime deleted_at(const AskedPod& asked) {
  constexpr std::int64_t kMost = 365 * 24 * 3600;
  const std::int64_t grace = number_at(asked.part("metadata"), "deletionGracePeriodSeconds");
  return *asked.pod.meta.deletion_timestamp - std::chrono::seconds(std::clamp<std::int64_t>(grace, 0, kMost));
}

void name_finalizers(const AskedPod& asked, PodCause& out) {
  std::vector<std::string> finalizers = strings_at(asked.part("metadata"), "finalizers");
  if (finalizers.empty()) return;
  for (std::string& finalizer : finalizers) finalizer = shown_value(finalizer);
  out.reason.message += fmt::format("; the object stays until its finalizers are removed: {}", first_names(finalizers));
  out.cure.command = {fmt::format("kubectl get pod {} {} --show-managed-fields --output yaml", asked.pod.meta.name,
                                  asked.in_namespace())};
  out.cure.options.emplace_back(
      "the controller that set a finalizer removes it; where it no longer runs, whoever runs the cluster "
      "decides");
}

// The pod is deleted.
PodCause being_deleted(const AskedPod& asked, WallTime now) {
  const std::string since = k8s::format_time(deleted_at(asked));
  const bool placed = !asked.pod.node_name.empty();
  PodCause out =
      pod_cause(Severity::error, "Terminating", fmt::format("Terminating since {}", since), {describe_pod(asked)});
  if (placed && now - *asked.pod.meta.deletion_timestamp < kUsualEnd) {
    out.severity = Severity::info;
    out.reason.message += ", within its grace period";
    return out;
  }
  const bool hangs = placed && asked.pod.phase != "Succeeded" && asked.pod.phase != "Failed";
  out.reason.message += ", longer than its grace period";
  if (!placed) out.reason = {"Deleted", fmt::format("the pod was deleted at {}: it will not be scheduled", since)};
  if (hangs)
    out.reason.message +=
        fmt::format(": the kubelet of node {} has not reported that the pod has ended", asked.pod.node_name.view());
  name_finalizers(asked, out);
  if (hangs && out.cure.options.empty()) {
    out.cure.options.emplace_back(
        "whoever runs the node looks at its kubelet's log: a process that hangs in the GPU's driver cannot be ended");
  }
  return out;
}

PodCause unknown_phase(const AskedPod& asked) {
  const std::string_view node = asked.pod.node_name.view();
  return pod_cause(Severity::error, "PhaseUnknown",
                   fmt::format("the kubelet of node {} did not report the pod's state (phase Unknown): the pod might "
                               "run or not",
                               node),
                   {describe_node_command(node)});
}

// --- What the node of a pod has to do with its trouble.

// True if a sentence names `name` as a whole: "team/job-1" is not in "waits for team/job-10".
bool is_named(std::string_view text, std::string_view name) {
  const auto goes_on = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '/'; };
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !goes_on(text[at - 1])) && (end == text.size() || !goes_on(text[end]))) return true;
  }
  return false;
}

// The pod's node is gone or cannot report.
bool is_unreachable(const PodQuestion& q) {
  const Node* node = q.snapshot.world.nodes.find(q.asked.pod.node_name.view());
  const bool over = q.asked.pod.phase == "Succeeded" || q.asked.pod.phase == "Failed";
  const bool placed = !q.asked.pod.node_name.empty();
  return placed && !over && !q.snapshot.world.nodes.all().empty() && (node == nullptr || !node->ready);
}

PodCause node_unreachable(const PodQuestion& q) {
  const std::string name(q.asked.pod.node_name.view());
  const bool gone = q.snapshot.world.nodes.find(name) == nullptr;
  const bool ending = q.asked.pod.meta.deletion_timestamp.has_value();
  return pod_cause(
      Severity::error, "NodeNotReady",
      fmt::format("node {} {}{}", name, gone ? "does not exist" : "is not Ready",
                  ending ? ": the pod is being deleted, and no kubelet confirms that it has ended"
                         : ": the pod does not run, or nobody knows whether it does"),
      {gone ? describe_pod(q.asked) : describe_node_command(name),
       {"whoever runs the node brings it back, or deletes the Node object once the machine is certainly off"}});
}

// A change or a problem of the pod's node.
std::optional<PodCause> node_state(const PodQuestion& q) {
  const AskedPod& asked = q.asked;
  const NodeAssessment* a = q.index.assessment(asked.pod.node_name.view());
  if (a == nullptr || a->profile == nullptr) return std::nullopt;
  const std::string node(asked.pod.node_name.view());
  const bool mps = a->profile->profile().strategy() == Strategy::mps;
  const NodePods pods = sort_pods(q.index.impl().installation_of(*a), q.index.impl().pods_of(node));
  const bool daemon = std::ranges::any_of(pods.mps, [](const Pod* pod) { return is_serving(*pod); });
  if (mps && !daemon) {
    return pod_cause(Severity::error, "NoMPSDaemon",
                     fmt::format("node {} should share its GPUs by MPS, but no MPS daemon runs on it: CUDA clients "
                                 "wait or fail",
                                 node),
                     {explain_command(node)});
  }
  const std::string who = blocking_pods_of(q.snapshot.world, node);
  const bool waits = is_named(who, k8s::to_string(asked.pod.meta.key()));
  if (a->change) {
    return pod_cause(Severity::warning, "NodeInChange",
                     fmt::format("node {} is being changed to {} now{}{}", node, a->change->to,
                                 who.empty() ? "" : ", and ", waits ? "waits for this pod to end" : who),
                     {rollout_status_command()});
  }
  if (a->phase == Phase::pending && waits) {
    return pod_cause(Severity::warning, "NodeWaits",
                     fmt::format("node {} must change to {} and waits for this pod to end", node, a->target.view()),
                     {rollout_status_command()});
  }
  if (a->phase == Phase::failed || (a->phase == Phase::up_to_date && !a->matches())) {
    return pod_cause(Severity::warning, "NodeDiffers",
                     fmt::format("node {} does not show its profile: {}", node, shown_difference(*a)),
                     {explain_command(node)});
  }
  return std::nullopt;
}

// The pod runs: which pods use the GPUs of its node beside it.
void explain_neighbours(const PodQuestion& q, PodExplanation& out) {
  const AskedPod& asked = q.asked;
  const NodeAssessment* a = q.index.assessment(asked.pod.node_name.view());
  const auto listed = q.snapshot.consumers.find(std::string(asked.pod.node_name.view()));
  if (a == nullptr || a->profile == nullptr || listed == q.snapshot.consumers.end()) return;
  const Profile& profile = a->profile->profile();
  std::vector<std::string> beside;
  std::vector<std::string> unasked;
  for (const Pod& other : listed->second.pods) {
    if (other.meta.uid == asked.pod.meta.uid) continue;
    beside.push_back(k8s::to_string(other.meta.key()));
    if (other.gpu_requests.empty() && other.nvidia_visible_devices) unasked.push_back(beside.back());
  }
  std::ranges::sort(beside);
  std::ranges::sort(unasked);
  const std::string node(asked.pod.node_name.view());
  if (!unasked.empty()) {
    const std::size_t slash = unasked.front().find('/');
    out.causes.push_back(
        pod_cause(Severity::warning, "UnaccountedUse",
                  fmt::format("pods on node {} can use its GPUs without a request: {}", node, fmt::join(unasked, ", ")),
                  {describe_pod_command({unasked.front().substr(0, slash), unasked.front().substr(slash + 1)}),
                   {"the owners of these pods request a GPU, or remove NVIDIA_VISIBLE_DEVICES"}}));
  }
  if (profile.strategy() == Strategy::none) return;
  for (const auto& [resource, count] : asked.pod.gpu_requests) {
    if (count <= 1) continue;
    out.causes.push_back(
        pod_cause(Severity::warning, "SeveralReplicas",
                  fmt::format("the pod has {} of {}, which are replicas of shared GPUs: several replicas give "
                              "it neither more time nor more memory, and might be on the same GPU",
                              count, resource.view()),
                  {show_template(asked), {"the pod's owner requests 1, or selects nodes whose GPUs are not shared"}}));
  }
  // Others claim a device by DRA, which may be no GPU.
  if (!beside.empty() && (!asked.pod.gpu_requests.empty() || asked.fraction || asked.pod.nvidia_visible_devices)) {
    out.causes.push_back(
        pod_cause(Severity::info, "SharesGPUs",
                  fmt::format("the GPUs of node {} are shared ({}); {} also {} on this node", node,
                              to_string(profile.strategy()), first_names(beside), beside.size() == 1 ? "runs" : "run"),
                  {explain_command(node)}));
  }
}

// --- A client that mounts another directory than the one where its node's standalone MPS daemon is.

// The pod mounts a usual directory of MPS, and not the one that its node's label gpusharing.dev/mps-pipe-directory
// names.
std::optional<PodCause> other_pipe_directory(const World& world, const AskedPod& asked) {
  const Node* node = world.nodes.find(std::string(asked.pod.node_name.view()));
  if (node == nullptr) return std::nullopt;
  const std::string daemon = pipe_directory_of_label(node->meta.labels.get(kMpsPipeDirectory).value_or(""));
  if (daemon.empty()) return std::nullopt;
  const RareList<Interned>& mounted = asked.pod.host_paths;
  const auto shows = [&](const Interned& path) { return is_at_or_below(daemon, path.view()); };
  // Of other directories it is not known whether they are for MPS.
  const auto other =
      std::ranges::find_if(mounted, [](const Interned& path) { return is_usual_pipe_directory(path.view()); });
  if (other == mounted.end() || std::ranges::any_of(mounted, shows)) return std::nullopt;
  return pod_cause(
      Severity::warning, "OtherPipeDirectory",
      fmt::format("the pod mounts {}, but the MPS daemon of node {} is in {} (the node's label {}): a client that "
                  "looks in another directory gets the whole GPU, without an error",
                  other->view(), node->meta.name, daemon, kMpsPipeDirectory),
      {show_template(asked),
       {fmt::format("mount {} and set CUDA_MPS_PIPE_DIRECTORY to it", daemon),
        fmt::format("select nodes whose daemon is in {}: {}={}", other->view(), kMpsPipeDirectory,
                    pipe_directory_label(other->view()))}});
}

}  // namespace

bool refuses_request(const PodQuestion& q, const Node& node, std::string_view resource) {
  constexpr std::string_view kShared = ".shared";
  const NodeAssessment* a = q.index.assessment(node.meta.name);
  const std::int64_t most = q.asked.most_of_a_container(std::string(resource));
  if (most <= 1 || a == nullptr || a->profile == nullptr || !a->profile->valid) return false;
  const Operand* plugin = q.index.impl().installation_of(*a).find(Component::plugin, node);
  if (resource.ends_with(kShared)) resource.remove_suffix(kShared.size());
  return plugin != nullptr &&
         request_refusal(a->profile->profile(), plugin->version, std::string(resource), most).has_value();
}

void explain_end(const PodQuestion& q, PodExplanation& out) {
  if (is_unreachable(q)) out.causes.push_back(node_unreachable(q));
  if (q.asked.pod.meta.deletion_timestamp) out.causes.push_back(being_deleted(q.asked, q.snapshot.now));
}

void explain_on_node(const PodQuestion& q, PodExplanation& out) {
  const AskedPod& asked = q.asked;
  if (asked.pod.phase == "Failed") {
    out.causes.push_back(failed_pod(q));
    return;
  }
  if (!is_unreachable(q)) {
    if (asked.pod.phase == "Unknown") out.causes.push_back(unknown_phase(asked));
    std::ranges::move(container_causes(asked, q.snapshot.now), std::back_inserter(out.causes));
  }
  if (auto state = node_state(q)) out.causes.push_back(*std::move(state));
  if (auto other = other_pipe_directory(q.snapshot.world, asked)) out.causes.push_back(*std::move(other));
  if (asked.pod.phase == "Running") explain_neighbours(q, out);
}

}  // namespace gso
