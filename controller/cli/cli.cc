// From arguments to an invocation, and from there to a command.
#include "controller/cli/cli.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <utility>

#include "controller/cli/arguments.h"
#include "controller/cli/completion.h"
#include "controller/commands/run.h"
#include "controller/config/did_you_mean.h"
#include "controller/config/version.h"

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

// A duration without bounds; an empty text leaves `out` as it is.
k8s::Result<void> read_any_duration(const char* flag, const std::string& text, const char* example,
                                    k8s::Duration& out) {
  if (text.empty()) return {};
  const auto parsed = k8s::parse_go_duration(text);
  if (!parsed || *parsed < k8s::Duration::zero()) {
    return k8s::fail(k8s::Reason::invalid, fmt::format("{}: '{}' is not a duration such as {}", flag, text, example));
  }
  out = *parsed;
  return {};
}

k8s::Result<void> read_duration(const char* flag, const std::string& text, k8s::Duration& out) {
  if (text.empty()) return {};
  const auto parsed = k8s::parse_go_duration(text);
  if (!parsed || *parsed < std::chrono::seconds(1) || *parsed > std::chrono::hours(1)) {
    return k8s::fail(k8s::Reason::invalid,
                     fmt::format("{}: '{}' is not a duration from 1s to 1h, such as 30s", flag, text));
  }
  out = *parsed;
  return {};
}

OutputForm form_of(const std::string& output) {
  if (output == "wide") return OutputForm::wide;
  if (output == "json") return OutputForm::json;
  return output == "yaml" ? OutputForm::yaml : OutputForm::text;
}

k8s::Result<void> check_key(const RolloutOptions& rollout, std::string_view command) {
  if (rollout.key.empty() || !rollout.file.empty()) return {};
  return k8s::fail(k8s::Reason::invalid, fmt::format("{}: --key goes with --file", command));
}

// --- What each subcommand needs beyond CLI11's own checks. Errors: `invalid`.

k8s::Result<void> resolve(const OptionFlags& flags, Invocation& out) {
  k8s::Result<Options> resolved = flags.resolve();
  if (!resolved) return std::unexpected(resolved.error());
  out.options = *std::move(resolved);
  return {};
}

k8s::Result<void> complete_run(const Commands& c, Invocation& out) {
  out.command = Invocation::Command::run;
  k8s::Result<void> fine = resolve(c.run_flags, out);
  return fine ? validate(out.options) : fine;
}

k8s::Result<void> complete_lint(const Commands& c, Invocation& out) {
  out.command = Invocation::Command::lint;
  out.lint.json = c.output == "json";
  if (!c.kai_sharing.empty()) out.lint.kai_gpu_sharing = c.kai_sharing == "true";
  return {};
}

k8s::Result<void> complete_expect(const Commands& c, Invocation& out) {
  out.command = Invocation::Command::expect;
  out.expect.json = c.output == "json";
  if (out.expect.devices.empty() != out.expect.node.empty()) return {};
  return k8s::fail(k8s::Reason::invalid, "expect needs exactly one of --devices and --node");
}

k8s::Result<void> complete_plan(const Commands& c, Invocation& out) {
  out.command = Invocation::Command::plan;
  out.plan.json = c.output == "json";
  if (out.plan.files.empty() && !out.plan.from_cluster) {
    return k8s::fail(k8s::Reason::invalid, "plan needs FILE, or --from-cluster");
  }
  k8s::Result<void> fine = resolve(c.plan_flags, out);
  out.plan.settings = out.options.planner_settings();
  k8s::Result<void> read =
      read_any_duration("--assume-observed-for", c.assume_observed_for, "10m", out.plan.assume_observed_for);
  return read ? fine : read;
}

k8s::Result<void> complete_status(const Commands& c, Invocation& out) {
  out.command = Invocation::Command::status;
  out.status.form = form_of(c.output);
  return resolve(c.status_flags, out);
}

// `explain pod NAME`: --namespace is the pod's then, as with kubectl, not the operator's.
bool names_a_pod_alone(const std::vector<std::string>& what) {
  return what.size() == 2 && what.front().starts_with("po") && what.back().find('/') == std::string::npos;
}

k8s::Result<void> complete_explain(const Commands& c, Invocation& out) {
  out.command = Invocation::Command::explain;
  out.explain.form = form_of(c.output);
  k8s::Result<void> fine = resolve(c.explain_flags, out);
  if (fine && names_a_pod_alone(out.explain.what)) out.explain.pod_namespace = out.options.namespace_;
  return fine;
}

k8s::Result<void> complete_audit(const Commands& c, Invocation& out) {
  out.command = Invocation::Command::audit;
  out.audit.form = form_of(c.output);
  return resolve(c.audit_flags, out);
}

k8s::Result<void> complete_diff(const Commands& c, Invocation& out) {
  out.command = Invocation::Command::rollout;
  out.rollout.verb = RolloutOptions::Verb::diff;
  out.rollout.json = c.output == "json";
  k8s::Result<void> fine = resolve(c.diff_flags, out);
  return fine ? check_key(out.rollout, "diff") : fine;
}

k8s::Result<void> complete_support_bundle(const Commands& c, Invocation& out) {
  out.command = Invocation::Command::support_bundle;
  return resolve(c.bundle_flags, out);
}

k8s::Result<void> complete_completion(const Commands& /*c*/, Invocation& out) {
  out.command = Invocation::Command::completion;
  return {};
}

k8s::Result<void> complete_rollout(const Commands& c, Invocation& out) {
  out.command = Invocation::Command::rollout;
  out.rollout.json = c.output == "json";
  for (const auto& [verb, app] : c.rollout_verbs) {
    if (!app->parsed()) continue;
    out.rollout.verb = verb;
    if (k8s::Result<void> fine = resolve(*c.rollout_flags.at(verb), out); !fine) return fine;
  }
  return check_key(out.rollout, "rollout diff");
}

k8s::Result<void> complete_cleanup(const Commands& c, Invocation& out) {
  out.command = Invocation::Command::cleanup;
  out.cleanup.json = c.output == "json";
  k8s::Result<void> fine = resolve(c.cleanup_flags, out);
  return fine ? read_duration("--timeout", c.cleanup_timeout, out.cleanup.timeout) : fine;
}

k8s::Result<void> complete_check(const Commands& c, Invocation& out) {
  out.command = Invocation::Command::check;
  k8s::Result<void> fine = resolve(c.check_flags, out);
  k8s::Result<void> read = read_any_duration("--timeout", c.check_timeout, "30s", out.check.timeout);
  return read ? fine : read;
}

k8s::Result<void> complete(const Commands& c, Invocation& out) {
  struct Subcommand {
    CLI::App* Commands::* app;
    k8s::Result<void> (*complete)(const Commands& c, Invocation& out);
  };
  constexpr Subcommand kSubcommands[] = {
      {&Commands::run, complete_run},
      {&Commands::lint, complete_lint},
      {&Commands::expect, complete_expect},
      {&Commands::plan, complete_plan},
      {&Commands::status, complete_status},
      {&Commands::explain, complete_explain},
      {&Commands::audit, complete_audit},
      {&Commands::diff, complete_diff},
      {&Commands::support_bundle, complete_support_bundle},
      {&Commands::completion, complete_completion},
      {&Commands::rollout, complete_rollout},
      {&Commands::cleanup, complete_cleanup},
      {&Commands::check, complete_check},
  };
  for (const Subcommand& subcommand : kSubcommands) {
    if ((c.*subcommand.app)->parsed()) return subcommand.complete(c, out);
  }
  out.command = Invocation::Command::version;
  return {};
}

// Of `app`, where the argument at `at` names none of its commands: a usage error that names those there are. CLI11
// would only say that one is required.
std::string unknown_command(const CLI::App& app, const std::vector<std::string>& arguments, std::size_t at,
                            std::string_view whole) {
  const auto known = app.get_subcommands([](const CLI::App*) { return true; });
  const bool names_one = arguments.size() <= at || arguments[at].starts_with('-') ||
                         std::ranges::any_of(known, [&](const CLI::App* c) { return c->get_name() == arguments[at]; });
  if (names_one) return {};
  std::vector<std::string> names;
  for (const CLI::App* command : known) names.push_back(command->get_name());
  const std::string suggestion = did_you_mean(arguments[at], names);
  return fmt::format("{}: unknown command '{}'{} Commands: {}", whole, arguments[at],
                     suggestion.empty() ? "." : suggestion, fmt::join(names, ", "));
}

}  // namespace

Invocation parse_arguments(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err,
                           const std::string& program) {
  Invocation invocation;
  const auto commands = std::make_unique<Commands>();
  describe(*commands, invocation, program);
  std::string misnamed = unknown_command(commands->app, arguments, 0, "gpu-sharing-operator");
  if (misnamed.empty() && !arguments.empty() && arguments.front() == "rollout")
    misnamed = unknown_command(*commands->rollout, arguments, 1, "gpu-sharing-operator rollout");
  if (!misnamed.empty()) {
    err << misnamed << "\n";
    invocation.exit_code = kUsage;
    return invocation;
  }
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // As CLI11 wants them.
    commands->app.parse(reversed);
  } catch (const CLI::ParseError& e) {
    invocation.exit_code = commands->app.exit(e, out, err) == 0 ? 0 : kUsage;
    return invocation;
  }
  using Command = Invocation::Command;
  const k8s::Result<void> fine = complete(*commands, invocation);
  static constexpr Command kReadVariables[] = {Command::run,   Command::plan,    Command::status,
                                               Command::check, Command::explain, Command::audit};
  if (std::ranges::find(kReadVariables, invocation.command) != std::end(kReadVariables)) {
    for (const std::string& unknown : unknown_variables(process_variables())) {
      err << "gpu-sharing-operator: warning: " << unknown << "\n";
    }
  }
  if (!fine) {
    err << "gpu-sharing-operator: " << fine.error().message << "\n";
    invocation.exit_code = kUsage;
  }
  return invocation;
}

int run_cli(const std::vector<std::string>& arguments, std::istream& in, std::ostream& out, std::ostream& err,
            const std::string& called) {
  const std::string name = called.substr(called.rfind('/') + 1);
  if (name == kCompleter) return print_completions(arguments, out, names_of_cluster);
  if (!arguments.empty() && arguments.front() == kCompleteWord) {
    return print_completions({arguments.begin() + 1, arguments.end()}, out, names_of_cluster);
  }
  Invocation invocation =
      parse_arguments(arguments, out, err, name == kPlugin ? "kubectl gpu-sharing" : "gpu-sharing-operator");
  if (invocation.exit_code) return *invocation.exit_code;
  switch (invocation.command) {
    case Invocation::Command::run:
      return run_controller(std::move(invocation.options), err);
    case Invocation::Command::lint:
      return run_lint(invocation.lint, in, out, err);
    case Invocation::Command::expect:
      return run_expect(invocation.expect, in, out, err);
    case Invocation::Command::plan:
      return run_plan(invocation.plan, invocation.options, in, out, err);
    case Invocation::Command::status:
      return run_status(invocation.status, invocation.options, out, err);
    case Invocation::Command::explain:
      return run_explain(invocation.explain, invocation.options, in, out, err);
    case Invocation::Command::audit:
      return run_audit(invocation.audit, invocation.options, in, out, err);
    case Invocation::Command::rollout:
      return run_rollout(invocation.rollout, invocation.options, in, out, err);
    case Invocation::Command::cleanup:
      return run_cleanup(invocation.cleanup, invocation.options, out, err);
    case Invocation::Command::check:
      return run_check(invocation.check, invocation.options, out, err);
    case Invocation::Command::support_bundle:
      return run_support_bundle(invocation.bundle, invocation.options, out, err);
    case Invocation::Command::completion:
      return print_completion_script(invocation.shell, out);
    case Invocation::Command::version:
      out << "gpu-sharing-operator " << version() << "\n";
      return 0;
    case Invocation::Command::none:
      break;
  }
  return kUsage;
}

}  // namespace gso
