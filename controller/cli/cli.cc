// From arguments to a command, and its run.
#include "controller/cli/cli.h"

#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <sstream>

#include "controller/commands/commands.h"
#include "controller/commands/rollout/rollout.h"
#include "controller/commands/shared/print.h"
#include "controller/commands/status.h"
#include "controller/config/version.h"
#include "reconcilers/profile/field_names.h"

namespace gso {

namespace {

constexpr int kUsage = 2;
constexpr std::string_view kProgram = "gpu-sharing-operator";
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

// The command, or the verb of one, that the arguments name, and where those behind it begin.
struct Named {
  CLI::App* app = nullptr;
  std::string whole;  // "gpu-sharing-operator rollout"
  std::size_t rest = 0;
};

Named named_by(CLI::App& app, const std::string& program, const std::vector<std::string>& arguments) {
  Named out{&app, program, 0};
  while (out.rest < arguments.size()) {
    const std::vector<CLI::App*> known = subcommands_of(*out.app);
    const auto found = std::ranges::find_if(
        known, [&](const CLI::App* command) { return command->get_name() == arguments[out.rest]; });
    if (found == known.end()) break;
    out.app = *found;
    out.whole += " " + arguments[out.rest++];
  }
  return out;
}

// A usage error that names the known commands, where the next argument should name one and does not; empty: it does.
// CLI11 would only say that one is required.
std::string unknown_command(const Named& named, const std::vector<std::string>& arguments) {
  const std::vector<CLI::App*> known = subcommands_of(*named.app);
  if (known.empty() || named.rest >= arguments.size() || arguments[named.rest].starts_with('-')) return {};
  std::vector<std::string> names;
  for (const CLI::App* command : known) names.push_back(command->get_name());
  const std::string suggestion = did_you_mean(arguments[named.rest], names);
  return fmt::format("{}: unknown command '{}'{} Commands: {}", named.whole, arguments[named.rest],
                     suggestion.empty() ? "." : suggestion, fmt::join(names, ", "));
}

// The same for a flag. CLI11 would name what is missing before, and arguments in reverse.
std::string unknown_flag(const Named& named, const std::vector<std::string>& arguments) {
  for (std::size_t i = named.rest; i < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string& argument = arguments[i];
    if (argument.size() < 2 || argument.front() != '-') continue;
    const bool is_long = argument.starts_with("--");
    const std::string name = is_long ? argument.substr(0, argument.find('=')) : argument.substr(0, 2);
    const CLI::Option* option = named.app->get_option_no_throw(name);
    if (option == nullptr) {
      const bool of_command = std::ranges::any_of(subcommands_of(*named.app), [&](const CLI::App* command) {
        return command->get_option_no_throw(name) != nullptr;
      });
      if (of_command && name != "-h")
        return fmt::format("{0}: unknown flag {1}; write it after the command: {0} COMMAND {1}", named.whole, name);
      std::vector<std::string> names;
      for (const CLI::Option* known : named.app->get_options())
        for (const std::string& each : known->get_lnames()) names.push_back("--" + each);
      const std::string suggestion = is_long ? did_you_mean(name, names) : std::string();
      return fmt::format("{}: unknown flag {}{} Flags: {} --help", named.whole, name,
                         suggestion.empty() ? "." : suggestion, named.whole);
    }
    const bool joined = is_long ? argument.find('=') != std::string::npos : argument.size() > 2;
    if (option->get_items_expected_min() > 0 && !joined) ++i;  // The value, whatever it looks like.
  }
  return {};
}

// What is wrong with the arguments of a command, in words for people: those of CLI11 name its own rules.

// "--output", or "FILE".
std::string name_of(const CLI::Option& option) {
  return option.get_name(option.get_positional());
}

// With what its value is: "--timeout DURATION".
std::string name_with_value(const CLI::Option& option) {
  const std::string type = option.get_type_name().substr(0, option.get_type_name().find(":{"));
  return option.get_positional() || type.empty() ? name_of(option) : name_of(option) + " " + type;
}

// The part of CLI11's message between two others.
std::string between(std::string_view message, std::string_view begin, std::string_view end) {
  const std::size_t from = message.find(begin);
  if (from == std::string_view::npos) return {};
  message.remove_prefix(from + begin.size());
  return std::string(message.substr(0, message.find(end)));
}

std::string mismatch(const std::string& message, const CLI::App& app) {
  const CLI::Option* option = app.get_option_no_throw(message.substr(0, message.find(": ")));
  if (option == nullptr) return message;
  const auto most = static_cast<std::size_t>(option->get_items_expected_max());
  if (option->results().size() > most)
    return fmt::format("too many arguments: {} takes at most {}, not {}", name_of(*option), most,
                       option->results().size());
  return fmt::format("{} needs a value: {}", name_of(*option), name_with_value(*option));
}

// "--output: foo not in {text,json}"
std::string no_such_value(const std::string& message) {
  constexpr std::string_view kNotIn = " not in {";
  const std::size_t name = message.find(": ");
  const std::size_t end = message.rfind(kNotIn);
  if (name == std::string::npos || end == std::string::npos || end < name + 2) return message;
  const std::string values = between(std::string_view(message).substr(end), "{", "}");
  return fmt::format("{}: '{}' is not one of {}", message.substr(0, name), message.substr(name + 2, end - name - 2),
                     fmt::join(CLI::detail::split(values, ','), ", "));
}

// `app`: the command's own, after it has failed to parse.
std::string in_words(const CLI::ParseError& error, const CLI::App& app) {
  const std::string message = error.what();
  const std::string& kind = error.get_name();
  if (kind == "RequiredError") {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options())
      if (option->get_required() && option->count() == 0) names.push_back(name_with_value(*option));
    return names.empty() ? message : fmt::format("missing: {}", fmt::join(names, ", "));
  }
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {  // Its name is the command's.
    const std::vector<std::string> left = app.remaining();
    return fmt::format("unexpected argument{} '{}'", left.size() == 1 ? "" : "s", fmt::join(left, "', '"));
  }
  if (kind == "ArgumentMismatch") return mismatch(message, app);
  if (kind == "ConversionError") {
    const std::string name = between(message, ": ", " = ");
    return name.empty() ? message : fmt::format("{}: '{}' is not a value for it", name, between(message, " = ", "\n"));
  }
  if (kind == "ValidationError") return no_such_value(message);
  return message;
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
  const auto end = [&parsed](int code) {
    parsed.exit_code = code;
    return parsed;
  };
  CommandTree tree(all_commands(), program);
  const Named named = named_by(tree.app(), program, arguments);
  std::string misnamed = unknown_command(named, arguments);
  if (misnamed.empty()) misnamed = unknown_flag(named, arguments);
  if (!misnamed.empty()) {
    err << misnamed << "\n";
    return end(kUsage);
  }
  if (named.rest == arguments.size() && !subcommands_of(*named.app).empty()) {
    const bool root = named.rest == 0;
    out << (root ? named.app->help() : named.app->help(tree.app().get_name()));
    return end(0);
  }
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // As CLI11 wants them.
    tree.app().parse(reversed);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return end(tree.app().exit(e, out, err));  // --help, --version
    err << fmt::format("{0}: {1}. Run: {0} --help\n", named.whole, in_words(e, *named.app));
    return end(kUsage);
  }
  const CommandTree::Entry* chosen = tree.chosen();
  if (chosen == nullptr) return end(kUsage);
  const k8s::Result<void> fine = finish(*chosen, parsed.options);
  parsed.run = chosen->command.run;
  if (chosen->command.names_unknown_variables)
    for (const std::string& unknown : unknown_variables(process_variables()))
      err << "gpu-sharing-operator: warning: " << unknown << "\n";
  if (fine) return parsed;
  err << "gpu-sharing-operator: " << fine.error().message << "\n";
  return end(kUsage);
}

namespace {

// "help lint" is "lint --help".
std::vector<std::string> without_help(std::vector<std::string> arguments) {
  if (arguments.empty() || arguments.front() != "help") return arguments;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
  return arguments;
}

int run_command(const std::vector<std::string>& arguments, std::istream& in, std::ostream& out, std::ostream& err,
                const std::string& program) {
  const ParsedArguments parsed = parse_arguments(without_help(arguments), out, err, program);
  if (parsed.exit_code) return *parsed.exit_code;
  return parsed.run({parsed.options, in, out, err});
}

// `out` is a pipe whose reader has ended, as `head -1` does: it has what it wanted, and no one needs a message. Asked
// of the system, because other calls have changed errno since the write.
bool has_lost_its_reader(const std::ostream& out) {
  if (&out != &std::cout) return false;
  pollfd descriptor{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return poll(&descriptor, 1, 0) == 1 && (descriptor.revents & POLLERR) != 0;
}

}  // namespace

int run_cli(const std::vector<std::string>& arguments, std::istream& in, std::ostream& out, std::ostream& err,
            const std::string& called) {
  const std::string name = called.substr(called.rfind('/') + 1);
  if (name == kCompleter) return print_completions(arguments, out, names_of_cluster);
  if (!arguments.empty() && arguments.front() == kCompleteWord)
    return print_completions({arguments.begin() + 1, arguments.end()}, out, names_of_cluster);
  PrintableStream messages(err, &err == &std::cerr ? columns_of_stderr() : 0);
  // Of help and usage. What else is printed names commands of the program, which has one name in all of its texts.
  const std::string program(name == kPlugin ? "kubectl gpu-sharing" : kProgram);
  const int code = run_command(arguments, in, out, messages, program);
  // Half an answer must not pass for a whole one in a pipeline.
  out.flush();
  if (out) return code;
  if (!has_lost_its_reader(out)) messages << "gpu-sharing-operator: the output cannot be written to stdout\n";
  return kUsage;
}

// --- The list of commands, their tree, and the form of its help.

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

// Each paragraph is a line of the text; lines that begin with spaces are a table of the author's.
std::string filled_lines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, length);
    out += (line.starts_with(' ') ? std::string(line) : filled(line, kColumns)) + '\n';
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return out;
}

// Help as people read it: what a value is, and its default, without the parser's own words, in lines of 80 columns.
class HelpFormat final : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return environment_of(*option);
    std::string out;
    std::string type = option->get_type_name();  // With what its validators say: "text|json:{text,json}".
    type.resize(std::min(type.find(":{"), type.size()));
    if (!option->get_positional()) {  // One is named after what it is.
      if (!type.empty()) out += " " + type;
      if (takes_several(*option)) out += " ...";
    }
    if (!option->get_default_str().empty()) out += fmt::format(" (default {})", option->get_default_str());
    return out + environment_of(*option);
  }

  std::string make_option_usage(const CLI::Option* option) const override {
    const std::string name = make_option_name(option, true) + (takes_several(*option) ? "..." : "");
    return option->get_required() ? name : "[" + name + "]";
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    return filled(option->get_description(), kColumns - get_column_width());
  }

  std::string make_subcommand(const CLI::App* app) const override {
    std::ostringstream out;
    CLI::detail::format_help(out, app->get_display_name(true),
                             filled(app->get_description(), kColumns - get_column_width()), get_column_width());
    return out.str();
  }

  std::string make_description(const CLI::App* app) const override { return filled_lines(app->get_description()); }
  std::string make_footer(const CLI::App* app) const override { return filled_lines(app->get_footer()); }

 private:
  static bool takes_several(const CLI::Option& option) {
    return option.get_expected_max() == CLI::detail::expected_max_vector_size;
  }
  static std::string environment_of(const CLI::Option& option) {
    return option.get_envname().empty() ? "" : fmt::format(" [{}]", option.get_envname());
  }
};

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
                i.out << "gpu-sharing-operator " << version() << "\n";
                if (!*libraries) return 0;
                for (const LinkedLibrary& library : linked_libraries())
                  i.out << library.name << " " << library.version << "\n";
                return 0;
              }};
}

}  // namespace

std::vector<Subcommand> all_commands() {
  return {make_run_command(),     make_lint_command(),       make_expect_command(),     make_plan_command(),
          make_status_command(),  make_explain_command(),    make_audit_command(),      make_diff_command(),
          make_rollout_command(), make_cleanup_command(),    make_check_command(),      make_support_bundle_command(),
          make_verify_command(),  make_mps_daemon_command(), make_completion_command(), make_version_command()};
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
  const auto parsed = std::ranges::find_if(entries_, [](const auto& entry) { return entry->app->parsed(); });
  return parsed == entries_.end() ? nullptr : parsed->get();
}

}  // namespace gso
