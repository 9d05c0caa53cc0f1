// The list of commands, their tree, and the form of its help.
#include "controller/cli/command_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "controller/cli/completion.h"
#include "controller/commands/audit.h"
#include "controller/commands/check.h"
#include "controller/commands/cleanup.h"
#include "controller/commands/expect.h"
#include "controller/commands/explain.h"
#include "controller/commands/lint.h"
#include "controller/commands/plan.h"
#include "controller/commands/rollout/rollout.h"
#include "controller/commands/run.h"
#include "controller/commands/shared/command.h"
#include "controller/commands/status.h"
#include "controller/commands/support_bundle.h"
#include "controller/config/version.h"

namespace gso {
namespace {

constexpr std::size_t kColumns = 80;

// The words of a paragraph in lines of at most so many columns; a longer word has a line of its own.
std::string filled(std::string_view words, std::size_t columns) {
  std::string out;
  std::size_t used = 0;
  while (!words.empty()) {
    const std::size_t length = std::min(words.find(' '), words.size());
    if (used > 0) out += used + 1 + length > columns ? '\n' : ' ';
    used = used > 0 && used + 1 + length <= columns ? used + 1 + length : length;
    out += words.substr(0, length);
    words.remove_prefix(std::min(length + 1, words.size()));
  }
  return out;
}

// Sentences are filled, across the line ends that their author has made within them; lines that begin with spaces are a
// table of the author's.
std::string filled_lines(std::string_view text) {
  std::string out;
  std::string paragraph;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    if (line.starts_with(' ')) {
      out += std::string(line) + '\n';
      continue;
    }
    paragraph += paragraph.empty() ? "" : " ";
    paragraph += line;
    const bool ends = line.empty() || line.ends_with('.') || line.ends_with(':');
    const bool is_last = text.empty() || text.starts_with(' ') || text.starts_with('\n');
    if (!ends && !is_last) continue;
    out += filled(paragraph, kColumns) + '\n';
    paragraph.clear();
  }
  return out;
}

// Help as people read it: what a value is, and its default, without the parser's own words, in lines of 80 columns.
class HelpFormat final : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_usage(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* app) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
};

std::string HelpFormat::make_option_opts(const CLI::Option* option) const {
  std::string out;
  std::string type = option->get_type_name();  // With what its validators say: "text|json:{text,json}".
  type.resize(std::min(type.find(":{"), type.size()));
  const bool several = option->get_expected_max() == CLI::detail::expected_max_vector_size;
  if (option->get_type_size() != 0) {
    // A positional is named after what it is.
    if (!option->get_positional() && !type.empty()) out += " " + type;
    if (several && !option->get_positional()) out += " ...";
    if (!option->get_default_str().empty()) out += fmt::format(" (default {})", option->get_default_str());
  }
  if (!option->get_envname().empty()) out += fmt::format(" [{}]", option->get_envname());
  return out;
}

std::string HelpFormat::make_option_usage(const CLI::Option* option) const {
  const bool several = option->get_expected_max() == CLI::detail::expected_max_vector_size;
  const std::string name = make_option_name(option, true) + (several ? "..." : "");
  return option->get_required() ? name : "[" + name + "]";
}

std::string HelpFormat::make_option_desc(const CLI::Option* option) const {
  return filled(option->get_description(), kColumns - get_column_width());
}

std::string HelpFormat::make_subcommand(const CLI::App* app) const {
  std::ostringstream out;
  CLI::detail::format_help(out, app->get_display_name(true),
                           filled(app->get_description(), kColumns - get_column_width()), get_column_width());
  return out.str();
}

std::string HelpFormat::make_description(const CLI::App* app) const {
  return filled_lines(app->get_description());
}

std::string HelpFormat::make_footer(const CLI::App* app) const {
  return filled_lines(app->get_footer());
}

void print_version(std::ostream& out, bool libraries) {
  out << "gpu-sharing-operator " << version() << "\n";
  if (!libraries) return;
  for (const LinkedLibrary& library : linked_libraries()) out << library.name << " " << library.version << "\n";
}

Subcommand make_version_command() {
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

std::vector<Subcommand> all_commands() {
  std::vector<Subcommand> out;
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

CommandTree::CommandTree(std::vector<Subcommand> commands, const std::string& program) {
  app_.name(program);
  app_.formatter(std::make_shared<HelpFormat>());  // Subcommands inherit it.
  app_.require_subcommand(1);
  app_.set_version_flag("--version", version());
  app_.footer(exit_status_of_findings());
  for (Subcommand& command : commands) add(app_, std::move(command));
}

void CommandTree::add(CLI::App& parent, Subcommand command) {
  CLI::App* app = parent.add_subcommand(command.name, command.summary);
  if (!command.verbs.empty()) {
    app->require_subcommand(1);
    for (Subcommand& verb : command.verbs) add(*app, std::move(verb));
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
