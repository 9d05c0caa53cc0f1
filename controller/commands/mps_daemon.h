// `mps-daemon`: what runs in the pods of the chart's standalone MPS DaemonSet.
#pragma once

namespace gso {

struct Command;

// Its verbs: `run`, `observe`, `ready`, `check`.
[[nodiscard]] Command make_mps_daemon_command();

}  // namespace gso
