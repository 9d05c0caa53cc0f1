// A pod that is deleted and still there, or whose state is not known: see pod_parts.h.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reconcilers/explain/pod_parts.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"

namespace gso {
namespace {

using Json = nlohmann::json;

// The kubelet reports the end of containers, and the API server deletes the pod, a moment after the grace period.
constexpr Duration kUsualEnd = std::chrono::minutes(1);

std::vector<std::string> finalizers_of(const AskedPod& asked) {
  std::vector<std::string> out;
  const Json metadata = object_at<Json>(asked.object, "metadata");
  for (const Json& finalizer : list_at(metadata, "finalizers")) {
    if (finalizer.is_string()) out.push_back(shown_value(finalizer.get<std::string>()));
  }
  return out;
}

// deletionTimestamp is the end of the grace period.
WallTime deleted_at(const AskedPod& asked) {
  constexpr std::int64_t kMost = 365 * 24 * 3600;
  const std::int64_t grace = number_at(object_at<Json>(asked.object, "metadata"), "deletionGracePeriodSeconds");
  return *asked.pod.meta.deletion_timestamp - std::chrono::seconds(std::clamp<std::int64_t>(grace, 0, kMost));
}

void name_finalizers(const AskedPod& asked, PodCause& out) {
  const std::vector<std::string> finalizers = finalizers_of(asked);
  if (finalizers.empty()) return;
  out.text += fmt::format("; the object stays until its finalizers are removed: {}", first_names(finalizers));
  out.command = fmt::format("kubectl get pod {} {} --show-managed-fields --output yaml", asked.pod.meta.name,
                            asked.in_namespace());
  out.options.emplace_back(
      "the controller that set a finalizer removes it; where it does not run any more, whoever runs the cluster "
      "decides");
}

}  // namespace

std::optional<PodCause> being_deleted(const AskedPod& asked, WallTime now) {
  if (!asked.pod.meta.deletion_timestamp) return std::nullopt;
  const std::string since = k8s::format_time(deleted_at(asked));
  if (asked.pod.node_name.empty()) {
    PodCause out{Severity::error, "Deleted",
                 fmt::format("the pod was deleted at {}: it is not scheduled any more", since), describe_pod(asked)};
    name_finalizers(asked, out);
    return out;
  }
  const bool ended = asked.pod.phase == "Succeeded" || asked.pod.phase == "Failed";
  if (now - *asked.pod.meta.deletion_timestamp < kUsualEnd) {
    return PodCause{Severity::info, "Terminating", fmt::format("Terminating since {}, within its grace period", since),
                    describe_pod(asked)};
  }
  PodCause out{Severity::error, "Terminating",
               fmt::format("Terminating since {}, longer than its grace period{}", since,
                           ended ? std::string()
                                 : fmt::format(": the kubelet of node {} has not reported that the pod has ended",
                                               asked.pod.node_name.view())),
               describe_pod(asked)};
  name_finalizers(asked, out);
  if (!ended && out.options.empty()) {
    out.options.emplace_back(
        "whoever runs the node looks at its kubelet's log: a process that hangs in the GPU's driver cannot be ended");
  }
  return out;
}

std::optional<PodCause> unknown_phase(const AskedPod& asked) {
  if (asked.pod.phase != "Unknown") return std::nullopt;
  return PodCause{
      Severity::error, "PhaseUnknown",
      fmt::format("the kubelet of node {} did not report the pod's state (phase Unknown): the pod might run "
                  "or not",
                  asked.pod.node_name.view()),
      fmt::format("kubectl describe node {}", asked.pod.node_name.view())};
}

}  // namespace gso
