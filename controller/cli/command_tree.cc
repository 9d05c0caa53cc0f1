// See command_tree.h.
#include "controller/cli/command_tree.h"

#include <memory>
#include <ostream>
#include <utility>

#include "controller/cli/completion.h"
#include "controller/cli/help_format.h"
#include "controller/commands/audit.h"
#include "controller/commands/check.h"
#include "controller/commands/cleanup.h"
#include "controller/commands/expect.h"
#include "controller/commands/explain.h"
#include "controller/commands/lint.h"
#include "controller/commands/mps_daemon.h"
#include "controller/commands/plan.h"
#include "controller/commands/rollout/rollout.h"
#include "controller/commands/run.h"
#include "controller/commands/shared/arguments.h"
#include "controller/commands/status.h"
#include "controller/commands/support_bundle.h"
#include "controller/config/version.h"

namespace gso {
namespace {

void print_version(std::ostream& out, bool libraries) {
  out << "gpu-sharing-operator " << version() << "\n";
  if (!libraries) return;
  for (const LinkedLibrary& library : linked_libraries()) out << library.name << " " << library.version << "\n";
}

Command make_version_command() {
  const auto libraries = std::make_shared<bool>(false);
  return {.name = "version",
          .summary = "Print the version",
          .describe =
              [libraries](CLI::App& app, OptionFlags&) {
                app.add_flag("--libraries", *libraries,
                             "Also print the libraries inside the program: updates of the system do not reach them");
              },
          .run =
              [libraries](const Invocation& i) {
                print_version(i.out, *libraries);
                return 0;
              }};
}

}  // namespace

std::vector<Command> all_commands() {
  std::vector<Command> out;
  out.push_back(make_run_command());
  out.push_back(make_lint_command());
  out.push_back(make_expect_command());
  out.push_back(make_plan_command());
  out.push_back(make_status_command());
  out.push_back(make_explain_command());
  out.push_back(make_audit_command());
  out.push_back(make_diff_command());
  out.push_back(make_rollout_command());
  out.push_back(make_cleanup_command());
  out.push_back(make_check_command());
  out.push_back(make_support_bundle_command());
  out.push_back(make_mps_daemon_command());
  out.push_back(make_completion_command());
  out.push_back(make_version_command());
  return out;
}

CommandTree::CommandTree(std::vector<Command> commands, const std::string& program) {
  app_.name(program);
  app_.formatter(std::make_shared<HelpFormat>());  // Subcommands inherit it.
  app_.require_subcommand(1);
  app_.set_version_flag("--version", version());
  app_.footer(exit_status_of_findings());
  for (Command& command : commands) add(app_, std::move(command));
}

void CommandTree::add(CLI::App& parent, Command command) {
  CLI::App* app = parent.add_subcommand(command.name, command.summary);
  if (!command.verbs.empty()) {
    app->require_subcommand(1);
    for (Command& verb : command.verbs) add(*app, std::move(verb));
    return;
  }
  auto entry = std::make_unique<Entry>();
  entry->command = std::move(command);
  entry->app = app;
  if (entry->command.describe) entry->command.describe(*app, entry->settings);
  entries_.push_back(std::move(entry));
}

const CommandTree::Entry* CommandTree::chosen() const {
  for (const auto& entry : entries_) {
    if (entry->app->parsed()) return entry.get();
  }
  return nullptr;
}

}  // namespace gso
