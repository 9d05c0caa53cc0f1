// Why a container of a pod that has its node does not run: see pod_parts.h.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/explain/container_states.h"
#include "reconcilers/explain/pod_parts.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"

namespace gso {
namespace {

using Json = nlohmann::json;

// An image with CUDA has gigabytes: pulling it takes minutes.
constexpr Duration kUsualCreation = std::chrono::minutes(10);

bool is_being_created(const ContainerState& container) {
  return container.waiting_reason == "ContainerCreating" || container.waiting_reason == "PodInitializing";
}

PodCause waiting(const AskedPod& asked, const ContainerState& container) {
  // Every other reason names a container that has not been started: it has no log, and no previous one.
  const bool ran = container.waiting_reason == "CrashLoopBackOff" && (container.last || container.restarts > 0);
  std::string text =
      fmt::format("container {} waits: {}", shown_value(container.name), shown_value(container.waiting_reason));
  if (ran && container.last) {
    text += " after " + how_it_ended(*container.last, container.restarts);
  } else if (!container.waiting_message.empty()) {
    text += ": " + quoted_report(container.waiting_message);
  }
  PodCause out{Severity::error, "ContainerWaits", std::move(text),
               ran ? logs_of(asked, container.name) + " --previous" : describe_pod(asked)};
  if (ran && container.last && container.last->out_of_memory()) out.options.emplace_back(kOutOfMemoryCure);
  return out;
}

// When the kubelet began with the pod, or else when the pod was made.
WallTime begun(const AskedPod& asked) {
  const std::string started = text_at(object_at<Json>(asked.object, "status"), "startTime");
  return k8s::parse_rfc3339(started).value_or(asked.pod.meta.creation_timestamp);
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
  return PodCause{
      long_ago ? Severity::error : Severity::info, "ContainerCreating",
      containers.empty()
          ? fmt::format("the kubelet of node {} has reported no container of the pod{}", node, for_how_long)
          : fmt::format("{} on node {}{}: the kubelet pulls images, mounts volumes or sets up the network; the pod's "
                        "Events name what does not finish",
                        shown_value(waits->waiting_reason), node, for_how_long),
      describe_pod(asked)};
}

}  // namespace

std::string logs_of(const AskedPod& asked, std::string_view container) {
  return fmt::format("kubectl logs {} {} --container {}", asked.pod.meta.name, asked.in_namespace(), container);
}

std::vector<PodCause> container_causes(const AskedPod& asked, WallTime now) {
  std::vector<PodCause> out;
  // The containers of a pod that is deleted end, which is no fault.
  if (asked.pod.meta.deletion_timestamp) return out;
  const std::vector<ContainerState> containers = container_states(asked);
  for (const ContainerState& container : containers) {
    if (!container.waiting_reason.empty() && !is_being_created(container)) out.push_back(waiting(asked, container));
    if (!container.ended || !container.ended->failed()) continue;
    PodCause ended{Severity::error, "ContainerEnded",
                   fmt::format("container {} has ended: {}", shown_value(container.name),
                               how_it_ended(*container.ended, container.restarts)),
                   logs_of(asked, container.name)};
    if (container.ended->out_of_memory()) ended.options.emplace_back(kOutOfMemoryCure);
    out.push_back(std::move(ended));
  }
  if (!out.empty()) return out;
  if (auto creating = being_created(asked, containers, now)) out.push_back(*std::move(creating));
  return out;
}

}  // namespace gso
