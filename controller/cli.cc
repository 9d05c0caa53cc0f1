// The arguments, with CLI11.
#include "controller/cli.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <ostream>
#include <utility>

#include "controller/command_run.h"
#include "controller/version.h"

namespace gso {
namespace {

constexpr int kUsage = 2;
const std::string kExitStatus =
    "Exit status: 0 fine, 1 a finding of severity error, 2 wrong usage or unreadable input.";

// The settings of one subcommand as CLI11 options. Values stay text until every source is known.
class Settings {
 public:
  // All settings, or only those that `wanted` chooses.
  void add_to(CLI::App* app, const std::function<bool(const OptionSpec&)>& wanted) {
    for (const OptionSpec& spec : option_specs()) {
      if (!wanted(spec)) continue;
      std::string& value = values_[spec.name];
      const std::string flag = "--" + spec.name;
      CLI::Option* option = spec.flag ? app->add_flag(flag, value, spec.doc) : app->add_option(flag, value, spec.doc);
      option->envname(spec.environment())->group(spec.group);
      if (!spec.flag) option->type_name(spec.type);
      const std::string fallback = spec.get(Options());
      if (!fallback.empty()) option->default_str(fallback);
      options_.emplace_back(&spec, option);
    }
  }
  void add_config_to(CLI::App* app) {
    config_ = app->add_option("--config", config_file_, "YAML file with any of these settings, by the same names")
                  ->envname("GSO_CONFIG")
                  ->type_name("FILE");
  }

  // Flags and environment over the file over the defaults. Errors: `invalid`.
  k8s::Result<Options> resolve() const {
    Options out;
    std::vector<std::string> given;
    for (const auto& [spec, option] : options_) {
      if (option->count() == 0) continue;
      given.push_back(spec->name);
      const std::string wrong = spec->set(out, option->results().back());
      if (!wrong.empty()) {
        return std::unexpected(k8s::Error{k8s::Reason::invalid, 0,
                                          fmt::format("--{} (or {}): {}", spec->name, spec->environment(), wrong)});
      }
    }
    if (config_ == nullptr || config_->count() == 0) return out;
    out.config = config_file_;
    std::ifstream file(config_file_);
    if (!file) {
      return std::unexpected(
          k8s::Error{k8s::Reason::invalid, 0, fmt::format("--config {}: cannot be read", config_file_)});
    }
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const k8s::Result<void> applied = apply_config_file(out, config_file_, text, given);
    if (!applied) return std::unexpected(applied.error());
    return out;
  }

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::pair<const OptionSpec*, CLI::Option*>> options_;
  CLI::Option* config_ = nullptr;
  std::string config_file_;
};

std::vector<std::string> process_variables() {
  std::vector<std::string> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) out.emplace_back(*entry);
  std::sort(out.begin(), out.end());
  return out;
}

bool is_connection(const OptionSpec& spec) {
  return spec.group == "Connection";
}
bool is_planning(const OptionSpec& spec) {
  return spec.group.starts_with("Planning") || spec.name == "namespace";
}

void add_output(CLI::App* app, std::string& output) {
  app->add_option("-o,--output", output, "Form of the output")
      ->check(CLI::IsMember({"text", "json"}))
      ->default_str("text")
      ->type_name("text|json");
}

struct Commands {
  CLI::App app{"Keeps GPU sharing (MPS, time-slicing) in step with its configuration, node by node."};
  CLI::App* run = nullptr;
  CLI::App* lint = nullptr;
  CLI::App* expect = nullptr;
  CLI::App* plan = nullptr;
  CLI::App* status = nullptr;
  CLI::App* check = nullptr;
  CLI::App* rollout = nullptr;
  CLI::App* cleanup = nullptr;
  CLI::App* version_command = nullptr;
  Settings run_settings;
  Settings plan_settings;
  Settings status_settings;
  Settings check_settings;
  std::map<RolloutOptions::Verb, std::unique_ptr<Settings>> rollout_settings;  // The verb that is parsed has its own.
  std::map<RolloutOptions::Verb, CLI::App*> rollout_verbs;
  Settings cleanup_settings;
  std::string cleanup_timeout;
  std::string check_timeout;
  std::string output = "text";
  std::string kai_sharing;
  std::string assume_observed_for;
};

struct VerbText {
  RolloutOptions::Verb verb;
  const char* name;
  const char* does;
  const char* argument;  // Nullptr: takes none.
};
constexpr const char* kWhichRollout = "SharingRollout, or policy/NAME; the one that is meant where there is one";
constexpr VerbText kVerbs[] = {
    {RolloutOptions::Verb::status, "status", "Rollouts under way: how far, and what holds them up",
     "SharingRollout, or policy/NAME; all by default"},
    {RolloutOptions::Verb::history, "history", "Rollouts on record, newest first; with a name its text",
     "SharingRollout, or policy/NAME"},
    {RolloutOptions::Verb::start, "start", "Try again what failed, was aborted or taken back",
     "SharingPolicy; `default` by default"},
    {RolloutOptions::Verb::pause, "pause", "Start no further node; those in flight finish", kWhichRollout},
    {RolloutOptions::Verb::resume, "resume", "Go on with what was paused", kWhichRollout},
    {RolloutOptions::Verb::approve, "approve", "Let a rollout of a policy in mode Approve begin", kWhichRollout},
    {RolloutOptions::Verb::abort, "abort", "End a rollout for good; nodes in flight finish, the others stay",
     kWhichRollout},
    {RolloutOptions::Verb::undo, "undo", "Back to what was verified before", kWhichRollout},
    {RolloutOptions::Verb::diff, "diff", "Which nodes would restart, and whose pods are in the way", nullptr},
};

void describe_rollout(Commands& c, RolloutOptions& out) {
  using Verb = RolloutOptions::Verb;
  c.rollout = c.app.add_subcommand("rollout", "See, steer and undo rollouts on the live cluster");
  c.rollout->require_subcommand(1);
  for (const VerbText& text : kVerbs) {
    CLI::App* verb = c.rollout->add_subcommand(text.name, text.does);
    c.rollout_verbs[text.verb] = verb;
    if (text.argument != nullptr) verb->add_option("NAME", out.name, text.argument);
    auto& settings = c.rollout_settings[text.verb] = std::make_unique<Settings>();
    settings->add_to(verb, is_connection);
  }
  for (const Verb verb : {Verb::pause, Verb::resume, Verb::approve, Verb::abort}) {
    c.rollout_verbs[verb]->add_flag("--all", out.all, "Every rollout that it fits");
  }
  for (const Verb verb : {Verb::status, Verb::history, Verb::undo, Verb::diff})
    add_output(c.rollout_verbs[verb], c.output);
  c.rollout_verbs[Verb::start]->add_flag("--adopt", out.adopt, "Roll drift, too, that was there before the operator");
  CLI::App* undo = c.rollout_verbs[Verb::undo];
  undo->add_option("--to-revision", out.to_revision, "Back to this revision (`rollout history`)")
      ->type_name("REVISION");
  undo->add_flag("--write-configmap", out.write_config_map,
                 "Put the text into the plugin's ConfigMap; refused where Argo CD, Flux or Helm keeps it");
  undo->footer(
      "An inline profile of a policy goes back by itself. For others the rollout is paused and the text is printed.");
  CLI::App* diff = c.rollout_verbs[Verb::diff];
  diff->add_option("-f,--file", out.file,
                   "ConfigMap or profile to compare with, - for stdin; by default what the cluster has now")
      ->type_name("FILE");
  diff->add_option("--key", out.key, "Key that a profile is for")->type_name("KEY");
  diff->footer("Reads only. Exit status 1: the text is one that no device plugin takes.");
}

void describe_cleanup(Commands& c, CleanupOptions& out) {
  c.cleanup = c.app.add_subcommand("cleanup", "Take back what the operator left on nodes and policies, for good");
  c.cleanup->add_option("--stop-deployment", out.stop_deployment, "Deployment in --namespace that is scaled to 0 first")
      ->type_name("NAME");
  c.cleanup->add_option("--timeout", c.cleanup_timeout, "How long to wait for the leader to go, 1s to 1h")
      ->type_name("DURATION")
      ->default_str(k8s::format_go_duration(CleanupOptions().timeout));
  c.cleanup->add_flag("--dry-run", out.dry_run, "Only say what would be changed");
  add_output(c.cleanup, c.output);
  c.cleanup_settings.add_config_to(c.cleanup);
  c.cleanup_settings.add_to(c.cleanup,
                            [](const OptionSpec& spec) { return is_connection(spec) || spec.name == "lease-name"; });
  c.cleanup->footer(
      "Cordons, labels, annotations and finalizers of ours, then the record and the Lease. No pod is touched.");
}

void describe(Commands& c, Invocation& out) {
  c.app.name("gpu-sharing-operator");
  c.app.require_subcommand(1);
  c.app.set_version_flag("--version", version());
  c.app.footer(kExitStatus);

  c.run = c.app.add_subcommand("run", "Run the controller");
  c.run_settings.add_config_to(c.run);
  c.run_settings.add_to(c.run, [](const OptionSpec&) { return true; });
  c.run->footer(
      "Every setting can also come from the environment (the name in brackets) and from --config.\n"
      "A flag wins over the environment, that over the file.");

  c.lint = c.app.add_subcommand("lint", "Check profiles, ConfigMaps that hold them, SharingPolicies and Pods");
  c.lint->add_option("FILE", out.lint.files, "YAML or JSON files, folders, or - for stdin")->required();
  c.lint->footer(
      kExitStatus +
      "\nAn empty file is a profile without sharing, as for the plugin; nothing at all from stdin is unreadable.");
  c.lint->add_option("--kai-gpu-sharing", c.kai_sharing, "Whether KAI's GPU sharing is on, for Pods")
      ->check(CLI::IsMember({"true", "false"}))
      ->type_name("true|false");
  add_output(c.lint, c.output);

  c.expect = c.app.add_subcommand("expect", "Labels and allocatable that a profile must produce on a node");
  c.expect->add_option("--config", out.expect.config, "Profile document, or a ConfigMap with one key")
      ->required()
      ->type_name("FILE");
  auto* devices =
      c.expect->add_option("--devices", out.expect.devices, "JSON array of GPUs (fields below)")->type_name("FILE");
  auto* node = c.expect->add_option("--node", out.expect.node, "Node manifest")->type_name("FILE");
  devices->excludes(node);
  c.expect->footer(
      "A GPU of --devices, and of the Node annotation gpusharing.dev/devices, has the fields\n"
      "  name               as nvidia-smi prints it, \"Tesla T4\"; the only one that must be there\n"
      "  memoryMiB          15360; absent: no memory label, no MPS memory limit\n"
      "  computeCapability  [7, 5]\n"
      "  pciClass           197120 (0x030200, 3D controller) or 196608 (0x030000, VGA)\n"
      "  migCapable, migEnabled  true or false\n"
      "  migDevices         [{\"profile\": \"1g.5gb\", \"attributes\": {\"memory\": 4864, \"multiprocessors\": 14, "
      "…}}]\n"
      "A profile that a component would refuse or exit on is a finding of severity error.\n" +
      kExitStatus);
  add_output(c.expect, c.output);

  c.plan = c.app.add_subcommand("plan", "What the operator would do now, over manifests (an offline dry run)");
  c.plan->add_option("FILE", out.plan.files, "Manifests as YAML or JSON, or - for stdin")->required();
  c.plan->add_option("--now", out.plan.now, "The present, RFC 3339")->type_name("TIME");
  c.plan->add_option("--assume-observed-for", c.assume_observed_for, "Conditions count as having held for this long")
      ->type_name("DURATION");
  c.plan->add_option("--only", out.plan.only, "Limit the plan to one reconciler")->type_name("RECONCILER");
  c.plan->footer(
      kExitStatus +
      "\nA node that cannot be changed now (blocked, drifted, busy) is a warning and leaves the status 0; a mistake "
      "that would\nleave a node without GPUs is an error.\nFiles without any manifest are unreadable; an empty List is "
      "a cluster without such objects.");
  add_output(c.plan, c.output);
  c.plan_settings.add_config_to(c.plan);
  c.plan_settings.add_to(c.plan, is_planning);

  c.status = c.app.add_subcommand("status", "Where every GPU node stands, read from the live cluster");
  add_output(c.status, c.output);
  c.status_settings.add_to(c.status, is_connection);

  describe_rollout(c, out.rollout);
  describe_cleanup(c, out.cleanup);

  c.check = c.app.add_subcommand("check", "Whether the installed operator works: its rights, the CRDs, a leader");
  c.check->add_option("--timeout", c.check_timeout, "How long to wait for a leader")
      ->type_name("DURATION")
      ->default_str(k8s::format_go_duration(CheckOptions().timeout));
  c.check_settings.add_to(c.check,
                          [](const OptionSpec& spec) { return is_connection(spec) || spec.name == "lease-name"; });

  c.version_command = c.app.add_subcommand("version", "Print the version");
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

k8s::Result<void> complete_rollout(const Commands& c, Invocation& out) {
  out.command = Invocation::Command::rollout;
  out.rollout.json = c.output == "json";
  for (const auto& [verb, app] : c.rollout_verbs) {
    if (!app->parsed()) continue;
    out.rollout.verb = verb;
    k8s::Result<Options> resolved = c.rollout_settings.at(verb)->resolve();
    if (!resolved) return std::unexpected(resolved.error());
    out.options = *std::move(resolved);
  }
  if (!out.rollout.key.empty() && out.rollout.file.empty())
    return k8s::fail(k8s::Reason::invalid, "rollout diff: --key goes with --file");
  return {};
}

// What the chosen subcommand needs beyond CLI11's own checks. Errors: `invalid`.
k8s::Result<void> complete(Commands& c, Invocation& out) {
  const bool json = c.output == "json";
  const auto settings = [&](const Settings& from) -> k8s::Result<void> {
    k8s::Result<Options> resolved = from.resolve();
    if (!resolved) return std::unexpected(resolved.error());
    out.options = *std::move(resolved);
    return {};
  };
  k8s::Result<void> fine;
  if (c.run->parsed()) {
    out.command = Invocation::Command::run;
    fine = settings(c.run_settings);
    if (fine) fine = validate(out.options);
  } else if (c.lint->parsed()) {
    out.command = Invocation::Command::lint;
    out.lint.json = json;
    if (!c.kai_sharing.empty()) out.lint.kai_gpu_sharing = c.kai_sharing == "true";
  } else if (c.expect->parsed()) {
    out.command = Invocation::Command::expect;
    out.expect.json = json;
    if (out.expect.devices.empty() == out.expect.node.empty()) {
      fine = k8s::fail(k8s::Reason::invalid, "expect needs exactly one of --devices and --node");
    }
  } else if (c.plan->parsed()) {
    out.command = Invocation::Command::plan;
    out.plan.json = json;
    fine = settings(c.plan_settings);
    out.plan.settings = out.options.planner_settings();
    if (!c.assume_observed_for.empty()) {
      const auto parsed = k8s::parse_go_duration(c.assume_observed_for);
      if (!parsed) {
        return k8s::fail(k8s::Reason::invalid, fmt::format("--assume-observed-for: '{}' is not a duration such as 10m",
                                                           c.assume_observed_for));
      }
      out.plan.assume_observed_for = *parsed;
    }
  } else if (c.status->parsed()) {
    out.command = Invocation::Command::status;
    out.status.json = json;
    fine = settings(c.status_settings);
  } else if (c.rollout->parsed()) {
    fine = complete_rollout(c, out);
  } else if (c.cleanup->parsed()) {
    out.command = Invocation::Command::cleanup;
    out.cleanup.json = json;
    fine = settings(c.cleanup_settings);
    if (fine) fine = read_duration("--timeout", c.cleanup_timeout, out.cleanup.timeout);
  } else if (c.check->parsed()) {
    out.command = Invocation::Command::check;
    fine = settings(c.check_settings);
    if (!c.check_timeout.empty()) {
      const auto parsed = k8s::parse_go_duration(c.check_timeout);
      if (!parsed) {
        return k8s::fail(k8s::Reason::invalid,
                         fmt::format("--timeout: '{}' is not a duration such as 30s", c.check_timeout));
      }
      out.check.timeout = *parsed;
    }
  } else {
    out.command = Invocation::Command::version;
  }
  return fine;
}

}  // namespace

Invocation parse_arguments(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  Invocation invocation;
  const auto commands = std::make_unique<Commands>();
  describe(*commands, invocation);
  const auto known = commands->app.get_subcommands([](const CLI::App*) { return true; });
  if (!arguments.empty() && !arguments.front().starts_with('-') &&
      std::none_of(known.begin(), known.end(), [&](const CLI::App* c) { return c->get_name() == arguments.front(); })) {
    err << fmt::format("gpu-sharing-operator: unknown command '{}': there is", arguments.front());
    for (const CLI::App* command : known) err << (command == known.front() ? " " : ", ") << command->get_name();
    err << "\n";
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
  const Command command = invocation.command;
  if (command == Command::run || command == Command::plan || command == Command::status || command == Command::check) {
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

int run_cli(const std::vector<std::string>& arguments, std::istream& in, std::ostream& out, std::ostream& err) {
  Invocation invocation = parse_arguments(arguments, out, err);
  if (invocation.exit_code) return *invocation.exit_code;
  switch (invocation.command) {
    case Invocation::Command::run:
      return run_controller(std::move(invocation.options), err);
    case Invocation::Command::lint:
      return run_lint(invocation.lint, in, out, err);
    case Invocation::Command::expect:
      return run_expect(invocation.expect, in, out, err);
    case Invocation::Command::plan:
      return run_plan(invocation.plan, in, out, err);
    case Invocation::Command::status:
      return run_status(invocation.status, invocation.options, out, err);
    case Invocation::Command::rollout:
      return run_rollout(invocation.rollout, invocation.options, in, out, err);
    case Invocation::Command::cleanup:
      return run_cleanup(invocation.cleanup, invocation.options, out, err);
    case Invocation::Command::check:
      return run_check(invocation.check, invocation.options, out, err);
    case Invocation::Command::version:
      out << "gpu-sharing-operator " << version() << "\n";
      return 0;
    case Invocation::Command::none:
      break;
  }
  return kUsage;
}

}  // namespace gso
