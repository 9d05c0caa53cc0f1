// A pod that has failed for good: rejected by its node's kubelet, evicted, or ended by its containers. See pod_parts.h.
#include <fmt/format.h>

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

constexpr std::string_view kRejectedByPlugin = "UnexpectedAdmissionError";
// What the device plugin answers under failRequestsGreaterThanOne.
constexpr std::string_view kTooLargeRequest = "maximum request size for shared resources";

std::string status_message(const AskedPod& asked) {
  return quoted_report(text_at(object_at<Json>(asked.object, "status"), "message"));
}

// The plugin has refused more than one replica, or would.
std::optional<PodCause> refused_request(const Snapshot& snapshot, const FleetIndex& index, const AskedPod& asked) {
  const Node* node = snapshot.world.nodes.find(asked.pod.node_name.view());
  const bool said = status_message(asked).find(kTooLargeRequest) != std::string::npos;
  for (const auto& [name, count] : asked.pod.gpu_requests) {
    const std::string resource(name.view());
    const bool refuses = said ? asked.most_of_a_container(resource) > 1
                              : node != nullptr && refuses_request(index, *node, asked, resource);
    if (!refuses) continue;
    Cure cure = ask_for(asked, resource, 1, resource);
    return PodCause{Severity::error, "RequestRefused",
                    fmt::format("the pod requests {} {}, but the plugin of node {} refuses more than one per container "
                                "(failRequestsGreaterThanOne)",
                                count, resource, asked.pod.node_name.view()),
                    std::move(cure.command), std::move(cure.options)};
  }
  return std::nullopt;
}

std::string who_creates_another(const AskedPod& asked) {
  const AskedPod::Workload owner = asked.workload();
  return owner.kind.empty() ? "nothing creates this pod anew: whoever created it deletes it and creates it again"
                            : fmt::format("{} {} creates another pod", owner.kind, owner.name);
}

PodCause not_given(const Snapshot& snapshot, const AskedPod& asked) {
  const std::string node(asked.pod.node_name.view());
  const std::string says = status_message(asked);
  PodCause out{Severity::error,
               "DeviceNotGiven",
               fmt::format("the kubelet of node {} rejected the pod, which never runs: {}", node,
                           says.empty() ? "it could not allocate a device, and gave no reason" : says),
               describe_pod(asked),
               {who_creates_another(asked)}};
  if (says.find("unhealthy") == std::string::npos) return out;
  out.text += fmt::format(
      ". The node's device plugin reports a GPU as unhealthy, or was not running. A pod that is created again can be "
      "placed there again");
  out.options.emplace_back(
      "whoever runs the node looks for XID errors, in the log of its device plugin and in its kernel log, and cordons "
      "the node until the GPU works");
  if (snapshot.world.nodes.find(node) != nullptr) out.command = "gpu-sharing-operator explain " + node;
  return out;
}

}  // namespace

PodCause failed_pod(const Snapshot& snapshot, const FleetIndex& index, const AskedPod& asked) {
  if (asked.pod.reason == kRejectedByPlugin) {
    if (auto refused = refused_request(snapshot, index, asked)) return *std::move(refused);
    return not_given(snapshot, asked);
  }
  PodCause out{Severity::error, "Failed", "the pod has failed", describe_pod(asked)};
  const std::string says = status_message(asked);
  if (!asked.pod.reason.empty()) out.text += ": " + shown_value(asked.pod.reason.view());
  if (!says.empty()) out.text += ": " + says;
  bool first = true;
  for (const ContainerState& container : container_states(asked)) {
    if (!container.ended || !container.ended->failed()) continue;
    out.text += fmt::format("; container {} ended: {}", shown_value(container.name),
                            how_it_ended(*container.ended, container.restarts));
    if (!std::exchange(first, false)) continue;
    // Where the kubelet has ended the pod, its reason is the cause, and not what its containers printed.
    if (asked.pod.reason.empty()) out.command = logs_of(asked, container.name);
    if (container.ended->out_of_memory()) out.options.emplace_back(kOutOfMemoryCure);
  }
  return out;
}

}  // namespace gso
