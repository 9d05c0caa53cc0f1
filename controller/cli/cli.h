// The command line. The same binary is `kubectl gpu-sharing` where it is installed as kubectl-gpu_sharing.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "controller/commands/shared/command.h"
#include "controller/config/options.h"

namespace gso {

// What the arguments ask for.
struct ParsedArguments {
  Options options;                            // The settings of the command.
  std::function<int(const Invocation&)> run;  // The command.
  // Set when there is nothing to do but to end: help was printed (0), or the usage is wrong (2).
  std::optional<int> exit_code;
};

// Parses flags, environment and the --config file. Prints help to `out` and complaints to `err`.
[[nodiscard]] ParsedArguments parse_arguments(const std::vector<std::string>& arguments, std::ostream& out,
                                              std::ostream& err, const std::string& program = "gpu-sharing-operator");

// The whole program, under the name that it was called by (argv[0]): `kubectl-gpu_sharing` is kubectl's plugin, and
// `kubectl_complete-gpu_sharing` what kubectl asks for completions. Exit status: 0 fine, 1 a finding of severity error
// (or a run that ended by itself), 2 usage or unreadable input.
[[nodiscard]] int run_cli(const std::vector<std::string>& arguments, std::istream& in, std::ostream& out,
                          std::ostream& err, const std::string& called = "gpu-sharing-operator");

}  // namespace gso
