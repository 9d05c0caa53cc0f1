// What the pod requests, and the first cause that applies: KAI's, the scheduler's, the kubelet's, or the pods that
// share its GPU.
#include "reconcilers/explain/pod.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/explain/placement_rows.h"
#include "reconcilers/explain/pod_parts.h"
#include "reconcilers/explain/remedy.h"
#include "reconcilers/explain/slices.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/kai/pod_annotations.h"
#include "reconcilers/kai/waiting.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/project.h"
#include "reconcilers/node/assess.h"

namespace gso {
namespace {

using Json = nlohmann::json;

std::string asks_of(const AskedPod& asked) {
  std::string out;
  for (const auto& [resource, count] : asked.pod.gpu_requests) {
    if (count > 0) out += fmt::format("{}{}={}", out.empty() ? "" : ", ", shown_value(resource.view()), count);
  }
  const StringMap& annotations = asked.pod.meta.annotations;
  if (const auto fraction = annotations.get(kai::kFraction))
    out += fmt::format("{}a share of {} of a GPU, from KAI", out.empty() ? "" : ", ", shown_value(*fraction));
  if (const auto memory = annotations.get(kai::kMemory))
    out += fmt::format("{}{} MiB of a GPU, from KAI", out.empty() ? "" : ", ", shown_value(*memory));
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

class PodQuestions {
 public:
  PodQuestions(const Snapshot& snapshot, FleetIndex& index, const AskedPod& asked, PodExplanation& out)
      : s_(snapshot), index_(index), asked_(asked), out_(out) {}

  // Without access to nodes and plugins.
  void run_alone() {
    add(being_deleted(asked_, s_.now));
    written_wrong();
    const Pod& pod = asked_.pod;
    if (pod.phase == "Succeeded") return;
    if (pod.node_name.empty()) {
      if (!pod.meta.deletion_timestamp) waits_for_somebody();
    } else if (pod.phase == "Failed") {
      add(failed_pod(s_, index_, asked_));
    } else {
      add(unknown_phase(asked_));
      containers();
    }
  }

  void run(const std::vector<Finding>& findings) {
    const Pod& pod = asked_.pod;
    const bool over = pod.phase == "Succeeded" || pod.phase == "Failed";
    const bool placed = !pod.node_name.empty();
    const std::optional<PodCause> unreachable = placed && !over ? node_unreachable(s_, asked_) : std::nullopt;
    add(unreachable);
    add(being_deleted(asked_, s_.now));
    written_wrong();
    if (pod.phase == "Succeeded") return;
    if (!placed) {
      if (!pod.meta.deletion_timestamp) wait_for_a_node(findings);
    } else if (pod.phase == "Failed") {
      add(failed_pod(s_, index_, asked_));
    } else {
      if (!unreachable) {
        add(unknown_phase(asked_));
        containers();
      }
      add(node_state(s_, index_, asked_));
      add(other_pipe_directory(s_.world, asked_));
      if (pod.phase == "Running") explain_neighbours(s_, index_, asked_, out_);
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
  void add(std::optional<PodCause> cause) {
    if (cause) out_.causes.push_back(*std::move(cause));
  }
  [[nodiscard]] std::string describe() const { return describe_pod(asked_); }

  // What KAI's admission refuses, or never handles.
  void written_wrong() {
    const KaiPodRules rules = rules_of(view_kai(s_.world.kai, s_.settings.kai));
    Json document{{"apiVersion", "v1"}, {"kind", "Pod"}};
    document.update(asked_.object);
    std::vector<Diagnostic> found = check_pod(dump(document), rules);
    // An error decides, wherever it stands.
    std::ranges::stable_partition(found, [](const Diagnostic& d) { return d.severity == Severity::error; });
    for (const Diagnostic& d : found) {
      if (d.severity == Severity::info || d.code == "KAISharingDisabled") continue;
      add(d.severity, d.code, d.path.empty() ? d.message : fmt::format("{}: {}", d.path, d.message),
          show_template(asked_), {"the pod's owner corrects it where the pod is defined"});
    }
  }

  void wait_for_a_node(const std::vector<Finding>& findings) {
    if (asked_.fraction) {
      explain_kai_wait(s_, asked_, out_);
    } else {
      explain_placement(s_, index_, asked_, awaited_slices(findings, asked_.pod), out_);
      if (asked_.pod.dra_gpu_claim && !waits_for_claims_alone(asked_)) add(claims_not_read(asked_));
    }
  }

  void containers() {
    for (PodCause& cause : container_causes(asked_, s_.now)) out_.causes.push_back(std::move(cause));
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

  const Snapshot& s_;
  FleetIndex& index_;
  const AskedPod& asked_;
  PodExplanation& out_;
};

}  // namespace

bool PodExplanation::hindered() const {
  return std::ranges::any_of(causes, [](const PodCause& cause) { return cause.severity == Severity::error; });
}

bool PodExplanation::lacks_nodes() const {
  return std::ranges::any_of(causes, [](const PodCause& cause) { return cause.code == kNoNodesGiven; });
}

PodExplanation about_pod(const AskedPod& asked) {
  PodExplanation out;
  out.pod = k8s::to_string(asked.pod.meta.key());
  out.state = state_of(asked.pod);
  out.pending = asked.pod.phase.empty() || asked.pod.phase == "Pending";
  out.asks = asks_of(asked);
  for (const auto& [resource, count] : asked.pod.gpu_requests) out.requests[std::string(resource.view())] = count;
  return out;
}

namespace {

// It waits for a resource that no node offers, and no node is cut into slices.
bool waits_in_vain(const World& world, const PodExplanation& out) {
  const auto not_served = std::ranges::find(out.causes, row_of(Obstacle::not_served).code, &PodCause::code);
  return not_served != out.causes.end() && partitioned_nodes(world).empty();
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
  PodExplanation out = about_pod(*asked);
  if (out.asks.empty()) return out;
  PodQuestions(snapshot, index, *asked, out).run(findings);
  if (!waits_in_vain(snapshot.world, out)) add_slice_limits(json, out);
  for (PodCause& cause : out.causes) {
    cause.command = command_here(snapshot.world, std::move(cause.command));
    cause.text = shown_message(cause.text);
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
  const Timers timers;
  const std::map<std::string, NodeConsumers> consumers;
  const Snapshot snapshot{nothing, surroundings.now, timers, consumers, settings};
  PodQuestions(snapshot, index, *asked, out).run_alone();
  add_slice_limits(json, out);
  for (PodCause& cause : out.causes) cause.text = shown_message(cause.text);
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
