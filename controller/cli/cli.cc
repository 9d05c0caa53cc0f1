// From arguments to a command, and its run.
#include "controller/cli/cli.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <ostream>
#include <utility>

#include "controller/cli/command_tree.h"
#include "controller/cli/completion.h"
#include "controller/config/did_you_mean.h"

namespace gso {
namespace {

constexpr int kUsage = 2;
constexpr std::string_view kPlugin = "kubectl-gpu_sharing";
constexpr std::string_view kCompleter = "kubectl_complete-gpu_sharing";  // As kubectl looks for it.

std::vector<std::string> process_variables() {
  std::vector<std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) out.emplace_back(*entry);
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<CLI::App*> subcommands_of(CLI::App& app) {
  return app.get_subcommands([](CLI::App*) { return true; });
}

// A usage error that names the known commands, where the arguments from `at` on name one that `app`, or its subcommand
// that they name, does not have; empty where they name none. CLI11 would only say that one is required.
std::string unknown_command(CLI::App& app, const std::vector<std::string>& arguments, std::size_t at,
                            const std::string& whole) {
  const std::vector<CLI::App*> known = subcommands_of(app);
  if (known.empty() || arguments.size() <= at || arguments[at].starts_with('-')) return {};
  std::vector<std::string> names;
  for (CLI::App* command : known) {
    if (command->get_name() == arguments[at])
      return unknown_command(*command, arguments, at + 1, whole + " " + arguments[at]);
    names.push_back(command->get_name());
  }
  const std::string suggestion = did_you_mean(arguments[at], names);
  return fmt::format("{}: unknown command '{}'{} Commands: {}", whole, arguments[at],
                     suggestion.empty() ? "." : suggestion, fmt::join(names, ", "));
}

k8s::Result<void> finish(const CommandTree::Entry& chosen, Options& options) {
  k8s::Result<Options> resolved = chosen.settings.resolve();
  if (!resolved) return std::unexpected(resolved.error());
  options = *std::move(resolved);
  return chosen.command.check ? chosen.command.check(options) : k8s::Result<void>();
}

}  // namespace

ParsedArguments parse_arguments(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err,
                                const std::string& program) {
  ParsedArguments parsed;
  CommandTree tree(all_commands(), program);
  const std::string misnamed = unknown_command(tree.app(), arguments, 0, "gpu-sharing-operator");
  if (!misnamed.empty()) {
    err << misnamed << "\n";
    parsed.exit_code = kUsage;
    return parsed;
  }
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // As CLI11 wants them.
    tree.app().parse(reversed);
  } catch (const CLI::ParseError& e) {
    parsed.exit_code = tree.app().exit(e, out, err) == 0 ? 0 : kUsage;
    return parsed;
  }
  const CommandTree::Entry* chosen = tree.chosen();
  if (chosen == nullptr) {
    parsed.exit_code = kUsage;
    return parsed;
  }
  const k8s::Result<void> fine = finish(*chosen, parsed.options);
  parsed.run = chosen->command.run;
  if (chosen->command.names_unknown_variables) {
    for (const std::string& unknown : unknown_variables(process_variables())) {
      err << "gpu-sharing-operator: warning: " << unknown << "\n";
    }
  }
  if (!fine) {
    err << "gpu-sharing-operator: " << fine.error().message << "\n";
    parsed.exit_code = kUsage;
  }
  return parsed;
}

int run_cli(const std::vector<std::string>& arguments, std::istream& in, std::ostream& out, std::ostream& err,
            const std::string& called) {
  const std::string name = called.substr(called.rfind('/') + 1);
  if (name == kCompleter) return print_completions(arguments, out, names_of_cluster);
  if (!arguments.empty() && arguments.front() == kCompleteWord) {
    return print_completions({arguments.begin() + 1, arguments.end()}, out, names_of_cluster);
  }
  const ParsedArguments parsed =
      parse_arguments(arguments, out, err, name == kPlugin ? "kubectl gpu-sharing" : "gpu-sharing-operator");
  if (parsed.exit_code) return *parsed.exit_code;
  return parsed.run({parsed.options, in, out, err});
}

}  // namespace gso
