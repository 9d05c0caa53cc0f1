// What the pod requests, and the first cause that applies: KAI's, the scheduler's, the kubelet's, or the pods that
// share its GPU.
#include "reconcilers/explain/pod.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/cluster/cluster_pods.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/explain/pod_parts.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/kai/pod_annotations.h"
#include "reconcilers/lint/lint.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/project.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/registry.h"

namespace gso {

namespace {

using Json = nlohmann::json;

bool has_cause(const PodExplanation& out, std::string_view code) {
  return std::ranges::any_of(out.causes, [&](const PodCause& cause) { return cause.reason.code == code; });
}

std::string asks_of(const AskedPod& asked) {
  std::string out;
  for (const auto& [resource, count] : asked.pod.gpu_requests)
    if (count > 0) out += fmt::format("{}{}={}", out.empty() ? "" : ", ", shown_value(resource.view()), count);
  if (const std::string share = asked_of_kai(asked.pod.meta.annotations); !share.empty())
    out += (out.empty() ? "" : ", ") + share;
  if (out.empty() && asked.pod.dra_gpu_claim) out = "what its ResourceClaims name: " + names_of_claims(asked);
  if (out.empty() && asked.pod.nvidia_visible_devices) out = "GPUs by NVIDIA_VISIBLE_DEVICES, without a request";
  return out;
}

std::string state_of(const Pod& pod) {
  std::string out = pod.phase.empty() ? "Pending" : shown_value(pod.phase.view());
  if (!pod.reason.empty()) out += fmt::format(" ({})", shown_value(pod.reason.view()));
  const bool deleted = pod.meta.deletion_timestamp.has_value();
  if (pod.node_name.empty()) return out + (deleted ? ", deleted" : ", no node has been chosen");
  return fmt::format("{} on {}{}", out, shown_value(pod.node_name.view()), deleted ? ", Terminating" : "");
}

// What the planners find about the pod, and KAI's findings about its node.
void add_reported(const PodQuestion& q, PodExplanation& out) {
  for (const Finding& finding : q.plan->findings) {
    const std::string& code = finding.why.code;
    const bool of_pod = is_about(finding.object, q.asked.pod) && code != kKaiPodStuck && !is_of_awaited_slices(code);
    const bool of_node = finding.object.kind == "Node" && finding.object.name == q.asked.pod.node_name.view() &&
                         (code == kKaiMismatch || code == kKaiClaimedTwice || code == kKaiOnSharedNode);
    if (of_pod || of_node) out.causes.push_back({finding.severity, finding.why});
  }
}

// What lint says of the pod's fields.
std::vector<PodCause> wrong_fields(const PodQuestion& q) {
  Json document{{"apiVersion", "v1"}, {"kind", "Pod"}};
  document.update(q.asked.object);
  std::vector<PodCause> out;
  for (const LintedDocument& pod : lint_text("pod", dump(document), rules_of(q.snapshot.world, q.snapshot.settings))) {
    for (const Diagnostic& d : pod.diagnostics) {
      if (d.severity == Severity::info || d.code == "KAISharingDisabled") continue;
      out.push_back(pod_cause(d.severity, d.code, d.path.empty() ? d.message : fmt::format("{}: {}", d.path, d.message),
                              {show_template(q.asked), {"the pod's owner corrects it where the pod is defined"}}));
    }
  }
  return out;
}

// What lint warns of, and the cause that says the same of the pod's node or scheduler.
constexpr std::pair<std::string_view, std::string_view> kSaidBefore[] = {{"SeveralReplicas", "SeveralReplicas"},
                                                                         {"SeveralReplicas", "RequestRefused"},
                                                                         {"ResourceMisspelt", kNotServed},
                                                                         {kSeveralSlices, kSliceRequestRefused},
                                                                         {kSliceWithoutHostIPC, kSliceRequestRefused},
                                                                         {kSliceOfAnotherUser, kSliceRequestRefused}};

bool is_said(const PodExplanation& out, const PodCause& cause) {
  return std::ranges::any_of(
      kSaidBefore, [&](const auto& pair) { return pair.first == cause.reason.code && has_cause(out, pair.second); });
}

// The device plugin mounts its daemon's directory into each client, and names it by a variable: what lint says of
// another mount holds only where the pod sets that variable itself.
void drop_superfluous_mounts(const PodQuestion& q, const PodExplanation& out, std::vector<PodCause>& fields) {
  const auto sets_variable = [](const Json& container) {
    return !list_at(container, "envFrom").empty() ||
           std::ranges::any_of(list_at(container, "env"),
                               [](const Json& each) { return text_at(each, "name") == "CUDA_MPS_PIPE_DIRECTORY"; });
  };
  const Json containers = list_at(q.asked.part("spec"), "containers");
  if (out.client.strategy != Strategy::mps || std::ranges::any_of(containers, sets_variable)) return;
  const std::size_t dropped = std::erase_if(fields, [](const PodCause& cause) {
    return cause.reason.code == "PipeDirectoryMisspelt" || cause.reason.code == "PipeDirectoryNotMounted";
  });
  if (dropped == 0) return;
  fields.push_back(pod_cause(
      Severity::info, "MountSuperfluous",
      fmt::format("the pod mounts a directory for MPS from its node and does not need it: with {} the device plugin "
                  "mounts its daemon's directory and sets CUDA_MPS_PIPE_DIRECTORY, so the pod is a client; remove "
                  "that volume and its mounts",
                  out.client.resource),
      {show_template(q.asked), {"the pod's owner corrects it where the pod is defined"}}));
}

// How many clients share a GPU by MPS on the pod's node. If the pod has no node yet, the largest number on a node that
// serves the requested resource. 0: none.
std::pair<std::int64_t, std::string> mps_clients(const PodQuestion& q) {
  const Pod& pod = q.asked.pod;
  std::pair<std::int64_t, std::string> most{0, ""};
  for (const std::string& name : q.index.node_names()) {
    const NodeAssessment* a = q.index.assessment(name);
    if ((!pod.node_name.empty() && pod.node_name != name) || !shares_by_mps(a)) continue;
    const Profile& profile = a->profile->profile();
    const std::string_view served = profile.mps->rename_by_default ? "nvidia.com/gpu.shared" : kGpuResource;
    const std::int64_t clients = profile.plugin_replicas(kGpuResource);
    if (pod.gpu_requests.contains(Interned(served)) && clients > most.first) most = {clients, name};
  }
  return most;
}

// Inference servers that reserve a fraction of the whole GPU.
void add_memory(const PodQuestion& q, PodExplanation& out) {
  const auto [clients, node] = mps_clients(q);
  for (const ServerContainer& container : q.asked.containers) {
    const auto found = memory_problem(container, clients, "node " + node);
    if (found) out.causes.push_back({found->severity, {found->code, found->message}, {show_template(q.asked)}});
  }
}

void add_causes(const PodQuestion& q, PodExplanation& out) {
  const Pod& pod = q.asked.pod;
  explain_end(q, out);
  std::vector<PodCause> fields = wrong_fields(q);
  drop_superfluous_mounts(q, out, fields);
  const auto is_error = [](const PodCause& cause) { return cause.severity == Severity::error; };
  // An error decides, wherever it is.
  std::ranges::copy_if(fields, std::back_inserter(out.causes), is_error);
  if (pod.phase == "Succeeded") return;
  if (!pod.node_name.empty())
    explain_on_node(q, out);
  else if (!pod.meta.deletion_timestamp)
    explain_wait(q, out);
  if (pod.phase != "Failed") add_memory(q, out);
  if (q.plan != nullptr) add_reported(q, out);
  std::ranges::copy_if(fields, std::back_inserter(out.causes),
                       [&](const PodCause& cause) { return !is_error(cause) && !is_said(out, cause); });
}

}  // namespace

bool is_about(const ObjectRef& object, const Pod& pod) {
  return object.kind == "Pod" && object.name == pod.meta.name && object.ns == pod.meta.ns.view();
}

PodCause pod_cause(Severity severity, std::string_view code, std::string message, Cure cure) {
  return {severity, {code, std::move(message)}, std::move(cure)};
}

bool PodExplanation::hindered() const {
  return std::ranges::find(causes, Severity::error, &PodCause::severity) != causes.end();
}

const PodCause* PodExplanation::deciding() const {
  const auto error = std::ranges::find(causes, Severity::error, &PodCause::severity);
  return error != causes.end() ? &*error : causes.empty() ? nullptr : &causes.front();
}

bool PodExplanation::only_waits() const {
  static constexpr std::string_view kPasses[] = {"AllInUse",        "NodeInChange",     "QueueFull",
                                                 "SchedulingGated", "Preempting",       "NotEnoughCPU",
                                                 "NotEnoughMemory", "NotEnoughStorage", kSliceUnavailable};
  return std::ranges::all_of(causes, [](const PodCause& cause) {
    return cause.severity != Severity::error || std::ranges::find(kPasses, cause.reason.code) != std::end(kPasses);
  });
}

bool PodExplanation::lacks_nodes() const {
  return has_cause(*this, kNoNodesGiven);
}

namespace {

// What an explanation of the pod has before any cause is checked.
PodExplanation about_pod(const AskedPod& asked) {
  PodExplanation out;
  out.pod = k8s::to_string(asked.pod.meta.key());
  out.state = state_of(asked.pod);
  out.pending = asked.pod.phase.empty() || asked.pod.phase == "Pending";
  out.asks = asks_of(asked);
  for (const auto& [resource, count] : asked.pod.gpu_requests) out.requests[std::string(resource.view())] = count;
  return out;
}

// No node serves the pod with slices: nobody cuts some, none is large enough, or the pod could not use them.
bool gets_no_slice(const World& world, const PodExplanation& out) {
  return (has_cause(out, kNotServed) && partitioned_nodes(world).empty()) || has_cause(out, kSliceTooLarge) ||
         has_cause(out, kSliceRequestRefused);
}

void add_slice_limits(std::string_view json, const PlannerSettings& settings, PodExplanation& out) {
  if (const k8s::Result<SlicePod> pod = project_slice_pod(json))
    std::ranges::move(slice_limits(*pod, settings.partitioning.mps_user), std::back_inserter(out.causes));
}

// The GPU that the pod has a part of, the pods beside it, and that nothing limits the parts.
void add_share_of_kai(const PodQuestion& q, PodExplanation& out) {
  const KaiView view = view_kai(q.snapshot.world.kai, q.snapshot.settings.kai);
  if (!view.served || q.asked.pod.node_name.empty()) return;
  const ObjectKey key = q.asked.pod.meta.key();
  out.shared_gpus = shared_gpus(q.snapshot, q.index.impl(), q.asked.pod.node_name.view());
  std::erase_if(out.shared_gpus, [&](const SharedGpu& gpu) {
    return std::ranges::find(gpu.parts, key, &SharedGpu::Part::pod) == gpu.parts.end();
  });
  const bool of_kai = q.asked.fraction && q.asked.pod.scheduler_name.view() == view.scheduler_name;
  if (!of_kai || view.sharing.limits_memory()) return;
  out.causes.push_back(pod_cause(
      Severity::info, "FractionMemory",
      "KAI counts the pod's share of a GPU when it places pods, and limits neither its memory nor its time: each of "
      "its processes sees the whole GPU, and one that allocates more than its share takes it from the pods beside it. "
      "Let the program limit itself (for vLLM --gpu-memory-utilization), or run KAI with an isolator "
      "(gpuSharingMode)"));
}

}  // namespace

k8s::Result<PodExplanation> explain_pod(const Snapshot& snapshot, FleetIndex& index, std::string_view json) {
  const Plan plan = plan_all(snapshot, index, {.synced = everything_synced});
  return explain_pod(snapshot, index, json, plan);
}

k8s::Result<PodExplanation> explain_pod(const Snapshot& snapshot, const FleetIndex& index, std::string_view json,
                                        const Plan& plan) {
  const k8s::Result<AskedPod> asked = read_pod(json);
  if (!asked) return std::unexpected(asked.error());
  PodExplanation out = about_pod(*asked);
  if (out.asks.empty()) return out;
  const std::string_view on = asked->pod.node_name.view();
  if (const Node* node = snapshot.world.nodes.find(on); node != nullptr && asked->pod.phase == "Running") {
    ClientShare share = client_share(*node, index.assessment(on));
    // What it was given before the node's last change is not known.
    if (share.is_loaded && out.requests.contains(share.resource)) out.client = std::move(share);
  }
  const PodQuestion question{snapshot, index, *asked, &plan};
  add_causes(question, out);
  if (!gets_no_slice(snapshot.world, out)) add_slice_limits(json, snapshot.settings, out);
  add_share_of_kai(question, out);
  for (PodCause& cause : out.causes) {
    cause.cure.command = command_here(snapshot.world, std::move(cause.cure.command));
    cause.reason.message = shown_message(cause.reason.message);
  }
  return out;
}

k8s::Result<PodExplanation> explain_pod_alone(const PodSurroundings& surroundings, const PlannerSettings& settings,
                                              std::string_view json) {
  const k8s::Result<AskedPod> asked = read_pod(json);
  if (!asked) return std::unexpected(asked.error());
  PodExplanation out = about_pod(*asked);
  out.events = surroundings.events;
  if (out.asks.empty()) return out;
  const World nothing;
  FleetIndex index;
  const Snapshot snapshot{nothing, surroundings.now, kNoTimers, kNobodyListed, settings};
  add_causes({snapshot, index, *asked}, out);
  add_slice_limits(json, settings, out);
  for (PodCause& cause : out.causes) cause.reason.message = shown_message(cause.reason.message);
  for (const Pod& other : surroundings.pods) {
    const bool ended = other.phase == "Succeeded" || other.phase == "Failed";
    if (!requests_gpus(other) || ended || other.meta.uid == asked->pod.meta.uid) continue;
    std::string line = k8s::to_string(other.meta.key()) + ":";
    for (const auto& [resource, count] : other.gpu_requests) line += fmt::format(" {}={}", resource.view(), count);
    out.beside.push_back(line +
                         (other.node_name.empty() ? ", waiting" : fmt::format(" on {}", other.node_name.view())));
  }
  std::ranges::sort(out.beside);
  return out;
}

namespace {

struct Workload {
  std::string kind;
  std::string name;
  std::string ns;
  std::int64_t wanted = 0;
  std::int64_t present = 0;
  bool over = false;  // It creates no more pods.
};

Workload workload_of(const std::string& kind, const Json& object) {
  const Json metadata = object_at(object, "metadata");
  const Json spec = object_at(object, "spec");
  const Json status = object_at(object, "status");
  const auto number_or = [&](std::string_view field, std::int64_t otherwise) {
    return member_at(spec, field) == nullptr ? otherwise : number_at(spec, field);
  };
  const auto holds = [&](std::string_view type) { return text_at(condition_in(status, type), "status") == "True"; };
  Workload out{kind, text_at(metadata, "name"), text_at(metadata, "namespace")};
  if (kind == "DaemonSet") {
    out.wanted = number_at(status, "desiredNumberScheduled");
    out.present = number_at(status, "currentNumberScheduled");
  } else if (kind == "Job") {
    const std::int64_t parallel = number_or("parallelism", 1);
    const std::int64_t ended = number_at(status, "succeeded");
    out.wanted = std::min(parallel, number_or("completions", parallel + ended) - ended);
    out.present = number_at(status, "active");
    out.over = flag_at(spec, "suspend") || holds("Complete") || holds("Failed");
  } else {
    out.wanted = number_or("replicas", 1);
    out.present = number_at(status, "replicas");
  }
  return out;
}

// Why the newest pod was not created; empty: none was refused, or all exist by now.
std::string failure_of(const PodCreator& creator, const Json& object, const Workload& workload) {
  // An Event stays for an hour.
  if (!creator.failure.empty())
    return workload.over || workload.present >= workload.wanted ? std::string() : creator.failure;
  const Json condition = condition_in(object_at(object, "status"), "ReplicaFailure");
  const bool failed = text_at(condition, "status") == "True" && text_at(condition, "reason") == "FailedCreate";
  return failed ? text_at(condition, "message") : std::string();
}

// A quota refuses: "pods "web-1" is forbidden: exceeded quota: Q, requested: …, used: …, limited: …", or "… failed
// quota: Q: must specify …".
PodCause cause_of(const Workload& workload, const std::string& failure) {
  constexpr std::string_view kExceeded = "exceeded quota: ";
  constexpr std::string_view kIncomplete = "failed quota: ";
  const std::string who = fmt::format("{} {} cannot create its pods", workload.kind, workload.name);
  const bool exceeded = failure.contains(kExceeded);
  const std::string_view before = exceeded ? kExceeded : kIncomplete;
  const std::size_t at = failure.find(before);
  const std::string_view rest =
      at == std::string::npos ? std::string_view() : std::string_view(failure).substr(at + before.size());
  // Empty: what is there is no name of an object.
  const std::string quota = name_for_command(rest.substr(0, rest.find(exceeded ? ',' : ':')));
  if (quota.empty())
    return pod_cause(
        Severity::error, "PodNotCreated", fmt::format("{}; the API server's answer: {}", who, failure),
        {{fmt::format("kubectl describe {} {} --namespace {}", kubectl_name(workload.kind), workload.name,
                      workload.ns)},
         {"whoever sets the rule that refuses the pods decides whether they are admitted; their owner can change "
          "the template"}});
  const std::string_view what = rest.substr(std::min(quota.size() + 2, rest.size()));
  PodCause out = pod_cause(Severity::error, "QuotaRefuses", {});
  out.cure.command = {fmt::format("kubectl describe resourcequota {} --namespace {}", quota, workload.ns)};
  if (exceeded) {
    out.reason.message = fmt::format("{}: they would exceed ResourceQuota {} of namespace {}{}", who, quota,
                                     workload.ns, what.empty() ? "" : fmt::format(" ({})", what));
    out.cure.options = {
        fmt::format("whoever sets the quotas of namespace {} decides how much it gets", workload.ns),
        fmt::format(
            "the owners of its pods decide which of them end or request less: `kubectl get pods --namespace {}`",
            workload.ns)};
  } else {
    out.reason.message =
        fmt::format("{}: ResourceQuota {} of namespace {} refuses pods without these requests or limits: {}", who,
                    quota, workload.ns, what);
    out.cure.options = {
        fmt::format("the pods' owner sets them in the template of {} {}", workload.kind, workload.name)};
  }
  return out;
}

// What a pod of its template requests.
PodExplanation of_template(const Json& object, const Workload& workload) {
  const Json spec = object_at(object, "spec");
  const Json of_pods = object_at(spec, "template");
  Json pod = of_pods;
  pod["metadata"] = object_at(of_pods, "metadata");
  pod["metadata"]["name"] = workload.name;
  pod["metadata"]["namespace"] = workload.ns;
  const k8s::Result<AskedPod> asked = read_pod(dump(pod));
  return asked ? about_pod(*asked) : PodExplanation();
}

}  // namespace

std::optional<PodExplanation> explain_uncreated_pod(const PodCreator& creator, const std::string& asked) {
  const Json object = Json::parse(creator.json, nullptr, false);
  const Workload workload = workload_of(creator.kind, object);
  const std::string failure = failure_of(creator, object, workload);
  if (failure.empty()) return std::nullopt;
  PodExplanation out = of_template(object, workload);
  out.pod = asked;
  out.state = fmt::format("not created by {} {}", workload.kind, workload.name);
  if (workload.present < workload.wanted)
    out.state += fmt::format(", which has {} of {} pods", workload.present, workload.wanted);
  PodCause& cause = out.causes.emplace_back(cause_of(workload, failure));
  cause.reason.message = shown_message(cause.reason.message);
  return out;
}

}  // namespace gso
