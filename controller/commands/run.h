// `run`: the operator against a real cluster.
#pragma once

#include <iosfwd>

#include "controller/config/options.h"

namespace gso {

struct Command;

// Runs until SIGTERM or SIGINT (a second one ends the process at once). Exit status: 0 after a clean stop, 1 when the
// operator ended by itself, 2 when the connection or the settings are wrong.
[[nodiscard]] int run_controller(Options options, std::ostream& err);

[[nodiscard]] Command make_run_command();

}  // namespace gso
