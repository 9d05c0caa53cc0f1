// A subcommand as a value: its name, the arguments that it declares, and what it does with them. The command line is
// made of a list of these (cli/command_tree.h). Each call of a function such as make_lint_command() gives a value with
// arguments of its own:
//
//   Command make_lint_command() {
//     const auto lint = std::make_shared<LintOptions>();
//     return {.name = "lint",
//             .summary = "Check profiles, …",
//             .describe = [lint](CLI::App& app, OptionFlags&) { describe(app, *lint); },
//             .run = [lint](const Invocation& i) { return run_lint(*lint, i.in, i.out, i.err); }};
//   }
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "controller/config/option_flags.h"
#include "controller/config/options.h"
#include "k8sclient/value/error.h"

namespace gso {

// What a command runs with, apart from its own arguments.
struct Invocation {
  const Options& options;  // The settings that the command has declared; defaults for all others.
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
};

struct Command {
  std::string name;
  std::string summary;  // One line of the help.
  // Declares the command's own arguments on `app`, and by `settings` those of the operator's settings that it has.
  std::function<void(CLI::App& app, OptionFlags& settings)> describe = nullptr;
  // Called once everything is parsed: what CLI11 does not check, and what follows from the settings. Null: nothing.
  // Errors: `invalid`.
  std::function<k8s::Result<void>(const Options& options)> check = nullptr;
  // Returns the exit status. Null only where there are `verbs`.
  std::function<int(const Invocation& invocation)> run = nullptr;
  std::vector<Command> verbs = {};       // Subcommands of this one.
  bool names_unknown_variables = false;  // Warns of GSO_… variables that are no settings.
};

}  // namespace gso
