// The command line: `run`, `lint`, `expect`, `plan`, `status`, `rollout`, `check`, `cleanup`, `version`, and the
// settings they share.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "controller/command_check.h"
#include "controller/command_cleanup.h"
#include "controller/command_expect.h"
#include "controller/command_lint.h"
#include "controller/command_plan.h"
#include "controller/command_rollout.h"
#include "controller/command_status.h"
#include "controller/options.h"

namespace gso {

// What the arguments ask for.
struct Invocation {
  enum class Command {
    none,
    run,
    lint,
    expect,
    plan,
    status,
    rollout,
    check,
    cleanup,
    version
  } command = Command::none;
  Options options;  // run, plan, status, rollout, check and cleanup.
  LintOptions lint;
  ExpectOptions expect;
  PlanOptions plan;
  StatusOptions status;
  CheckOptions check;
  RolloutOptions rollout;
  CleanupOptions cleanup;
  // Set when there is nothing to do but to end: help was printed (0), or the usage is wrong (2).
  std::optional<int> exit_code;
};

// Parses flags, environment and the --config file. Prints help to `out` and complaints to `err`.
[[nodiscard]] Invocation parse_arguments(const std::vector<std::string>& arguments, std::ostream& out,
                                         std::ostream& err);

// The whole program. Exit status: 0 fine, 1 a finding of severity error (or a run that ended by itself), 2 usage or
// unreadable input.
[[nodiscard]] int run_cli(const std::vector<std::string>& arguments, std::istream& in, std::ostream& out,
                          std::ostream& err);

}  // namespace gso
