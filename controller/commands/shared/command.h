// A subcommand as a value: its name, the arguments that it declares, and what it does with them; and the arguments that
// several declare alike. The command line is made of a list of subcommands (cli/cli.h). Each call of a
// function such as make_lint_command() gives a value with arguments of its own:
//
//   Subcommand make_lint_command() {
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
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controller/commands/shared/print.h"
#include "controller/config/option_flags.h"
#include "controller/config/options.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"
#include "k8sclient/value/selectors.h"

namespace gso {

// What a command runs with, apart from its own arguments.
struct Invocation {
  const Options& options;  // The settings that the command has declared; defaults for all others.
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
};

struct Subcommand {
  std::string name;
  std::string summary;  // One line of the help.
  // Declares the command's own arguments on `app`, and by `settings` those of the operator's settings that it has.
  std::function<void(CLI::App& app, OptionFlags& settings)> describe = nullptr;
  // Called once everything is parsed: what CLI11 does not check, and what follows from the settings. Null: nothing.
  // Errors: `invalid`.
  std::function<k8s::Result<void>(const Options& options)> check = nullptr;
  // Returns the exit status. Null only where there are `verbs`.
  std::function<int(const Invocation& invocation)> run = nullptr;
  std::vector<Subcommand> verbs = {};    // Subcommands of this one.
  bool names_unknown_variables = false;  // Warns of GSO_… variables that are no settings.
};

// --- Arguments that several commands declare alike.

// The end of the help of commands that report findings.
[[nodiscard]] const std::string& exit_status_of_findings();

// -o, --output: one of `forms`, which begin with text, and which `take` gets; or text or json.
void add_output(CLI::App& app, const std::vector<std::string>& forms, std::function<void(const std::string&)> take);
void add_output(CLI::App& app, bool& json);
void add_output(CLI::App& app, OutputForm& form, const std::vector<std::string>& forms);

// -f, --file: manifests instead of the live cluster.
void add_manifests(CLI::App& app, std::vector<std::string>& files);

// --mps-user, for what is said of pods with slices of nos.
void add_mps_user(CLI::App& app, OptionFlags& settings);

// Settings that say which cluster is meant, and --request-timeout. For people's commands.
void add_connection(CLI::App& app, OptionFlags& settings);

// Which nodes a screen shows: --state, --policy, -l.
struct NodeFilter {
  // Words of the column STATE in lower case, with or without their reason: "blocked", "blocked(outsidewindow)"; empty:
  // all.
  std::set<std::string> states;
  std::set<std::string> policies;
  k8s::LabelSelector labels;

  [[nodiscard]] bool empty() const { return states.empty() && policies.empty() && labels.empty(); }
  // `state`: as the table shows it, "Blocked(OutsideWindow)".
  [[nodiscard]] bool shows(std::string_view state, std::string_view policy, const k8s::StringMap& of_node) const;
};

// The flags as they were given.
struct NodeFilterFlags {
  std::vector<std::string> states, policies;
  std::string selector;
};
void add_node_filter(CLI::App& app, NodeFilterFlags& flags);
// Errors (`invalid`): a state that does not exist, with those that do; a selector that cannot be read.
[[nodiscard]] k8s::Result<NodeFilter> node_filter_of(const NodeFilterFlags& flags);

}  // namespace gso
