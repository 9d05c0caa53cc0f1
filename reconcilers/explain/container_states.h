// The containers of the pod to explain, as its kubelet reports them: more than the operator keeps of every pod.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/explain/pod_parts.h"

namespace gso {

struct ContainerRun {
  std::string reason;  // OOMKilled, Error, Completed, …
  std::int64_t exit_code = 0;
  std::string message;
  [[nodiscard]] bool failed() const { return exit_code != 0 || out_of_memory(); }
  [[nodiscard]] bool out_of_memory() const { return reason == "OOMKilled"; }
};

struct ContainerState {
  std::string name;
  // It does its work and ends before the other containers start; false for sidecars.
  bool init_step = false;
  bool running = false;
  std::int64_t restarts = 0;
  std::string waiting_reason;
  std::string waiting_message;
  std::optional<ContainerRun> ended;  // It has ended, and no new run has started.
  std::optional<ContainerRun> last;   // How the run before this state ended.
};

// Init containers first. Empty: its kubelet has reported none.
[[nodiscard]] std::vector<ContainerState> container_states(const AskedPod& asked);

// "OOMKilled (exit code 137), 12 restarts: what the container said"
[[nodiscard]] std::string how_it_ended(const ContainerRun& run, std::int64_t restarts);

// What the kubelet or the scheduler says, on one line. Of a long text its beginning and its end: container runtimes put
// the cause last ("…: driver/library version mismatch").
[[nodiscard]] std::string quoted_report(std::string_view text);

}  // namespace gso
