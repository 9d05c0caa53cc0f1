// Pods with a fault that only a new pod fixes.
#include <fmt/format.h>

#include <algorithm>

#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_phase.h"

namespace gso {

bool is_config_manager(std::string_view container) {
  return container.find("config-manager") != std::string_view::npos || container.ends_with("-init") ||
         container.ends_with("-sidecar");
}

namespace {

using std::chrono::minutes;
using std::chrono::seconds;

struct Sign {
  std::string_view message;
  std::string_view name;
  std::string_view what;
};
// Source: the errors of the device plugin's cmd/config-manager.
constexpr Sign kSigns[] = {
    {"does not exist", "StaleProjection", "does not see a key that the ConfigMap has"},
    {"symlink", "DanglingSymlink", "cannot replace the link to a key that no longer exists"},
    {"file exists", "DanglingSymlink", "cannot replace the link to a key that no longer exists"},
    {"no process found", "SignalFailed", "cannot notify the main container about its new profile"},
    {"index out of range", "SignalFailed", "cannot notify the main container about its new profile"},
};

std::optional<PodFault> pod_fault_of(const ContainerStatus& container, bool init, const Pod& pod, Duration projection) {
  if (!is_config_manager(container.name.view())) return std::nullopt;
  const std::optional<WallTime> runs_since = container.running ? container.started_at : std::nullopt;
  if (container.running && (!runs_since || container.last_exit_code() == 0)) return std::nullopt;
  // Kubelet shows a container that was created and never started as waiting for no reason: a containerd that is
  // restarted at that moment loses it.
  const bool created = init && !container.running && pod.phase == "Pending" && container.waiting_reason.empty() &&
                       container.last_exit_code() == 0 && container.restarts == 0;
  if (created) {
    return PodFault{"StuckInCreated", fmt::format("container {} was created and never started", container.name.view()),
                    minutes(2)};
  }
  if (container.restarts == 0 && container.last_exit_code() == 0) return std::nullopt;
  for (const Sign& sign : kSigns) {
    if (container.last_message().find(sign.message) == std::string_view::npos) continue;
    return PodFault{sign.name,
                    fmt::format("container {} {}: {}", container.name.view(), sign.what, container.last_message()),
                    sign.name == "StaleProjection" ? projection : Duration(seconds(30)), runs_since};
  }
  // Between two crashes it has ended, waits, and runs for a moment: that is one fault, which lasts.
  constexpr std::int64_t kRestarts = 3;
  const bool crashes = container.waiting_reason == "CrashLoopBackOff" ||
                       (container.waiting_reason.empty() && container.last_exit_code() != 0);
  if (!crashes || container.restarts < kRestarts) return std::nullopt;
  return PodFault{"ConfigManagerCrashLoop",
                  fmt::format("container {} has ended {} times, the last time with exit code {}", container.name.view(),
                              container.restarts, container.last_exit_code()),
                  minutes(1), runs_since};
}

}  // namespace

std::optional<PodFault> pod_fault_of(const Pod& pod, Duration projection) {
  for (const ContainerStatus& container : pod.init_containers) {
    if (auto found = pod_fault_of(container, true, pod, projection)) return found;
  }
  for (const ContainerStatus& container : pod.containers) {
    if (auto found = pod_fault_of(container, false, pod, projection)) return found;
  }
  return std::nullopt;
}

std::string first_problem(const NodePods& pods) {
  for (Component component : {Component::plugin, Component::gfd, Component::mps}) {
    for (const Pod* pod : pods.of(component)) {
      if (is_serving(*pod) || pod->meta.deletion_timestamp) continue;
      for (const ContainerStatus* container : pod->all_containers()) {
        const std::string_view reason = container->waiting_reason.view();
        const std::string_view message = container->last_message();
        if (reason.empty() && message.empty()) continue;
        return fmt::format("pod {} container {}: {}{}{}", pod->meta.name, container->name.view(), reason,
                           reason.empty() || message.empty() ? "" : " ", message);
      }
      return fmt::format("pod {} is not Ready", pod->meta.name);
    }
  }
  return "a pod of the plugin, GFD or MPS is missing";
}

}  // namespace gso
