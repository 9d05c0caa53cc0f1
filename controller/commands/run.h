// What runs in pods: `run`, the operator against a real cluster, and `mps-daemon`.
#pragma once

#include <iosfwd>

#include "controller/config/options.h"

namespace gso {

struct Subcommand;

// Runs until SIGTERM or SIGINT (a second one ends the process at once). Exit status: 0 after a clean stop, 1 when the
// operator ended by itself, 2 when the connection or the settings are wrong.
[[nodiscard]] int run_controller(Options options, std::ostream& err);

[[nodiscard]] Subcommand make_run_command();

// Of the chart's standalone MPS DaemonSet. Its verbs: `run`, `observe`, `ready`, `check`. In mps_daemon.cc.
[[nodiscard]] Subcommand make_mps_daemon_command();

}  // namespace gso
