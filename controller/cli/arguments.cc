// One function for each group of subcommands.
#include "controller/cli/arguments.h"

#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "controller/config/version.h"

namespace gso {

namespace {

const std::string kExitStatus =
    "Exit status: 0 fine, 1 a finding of severity error, 2 wrong usage or unreadable input.";

bool is_connection(const OptionSpec& spec) {
  return spec.group == "Connection";
}
bool is_planning(const OptionSpec& spec) {
  return spec.group.starts_with("Planning") || spec.name == "namespace";
}

void add_output(CLI::App* app, std::string& output, const std::vector<std::string>& forms = {"text", "json"}) {
  app->add_option("-o,--output", output, "Form of the output")
      ->check(CLI::IsMember(forms))
      ->default_str("text")
      ->type_name(fmt::format("{}", fmt::join(forms, "|")));
}

void add_manifests(CLI::App* app, std::vector<std::string>& files) {
  app->add_option("-f,--file", files, "Manifests to look at instead of the live cluster, - for stdin")
      ->type_name("FILE");
}

void add_diff(CLI::App* app, RolloutOptions& out) {
  app->add_option("-f,--file", out.file,
                  "ConfigMap or profile to compare with, - for stdin; by default what the cluster has now")
      ->type_name("FILE");
  app->add_option("--key", out.key, "Key that a profile is for")->type_name("KEY");
  app->footer("Reads only. Exit status 1: the profile is invalid, or a key in use would be removed.");
}

struct VerbText {
  RolloutOptions::Verb verb;
  const char* name;
  const char* does;
  const char* argument;  // Nullptr: takes none.
};
constexpr const char* kWhichRollout = "SharingRollout, or policy/NAME; optional if only one rollout qualifies";
constexpr VerbText kVerbs[] = {
    {RolloutOptions::Verb::status, "status", "Rollouts in progress: how far they are and what they wait for",
     "SharingRollout, or policy/NAME; all by default"},
    {RolloutOptions::Verb::history, "history", "Rollouts on record, newest first; with a name its text",
     "SharingRollout, or policy/NAME"},
    {RolloutOptions::Verb::start, "start", "Retry nodes that failed, and rollouts that were aborted or undone",
     "SharingPolicy; `default` by default"},
    {RolloutOptions::Verb::pause, "pause",
     "Start no further node. Nodes with a deleted pod finish; nodes that only wait are uncordoned", kWhichRollout},
    {RolloutOptions::Verb::resume, "resume", "Resume what was paused", kWhichRollout},
    {RolloutOptions::Verb::approve, "approve", "Approve a rollout of a policy in mode Approve", kWhichRollout},
    {RolloutOptions::Verb::abort, "abort",
     "End a rollout permanently: nodes with a deleted pod finish, nodes that only wait are uncordoned, all others keep "
     "what they run",
     kWhichRollout},
    {RolloutOptions::Verb::undo, "undo", "Revert to the last verified profile", kWhichRollout},
    {RolloutOptions::Verb::diff, "diff", "Which nodes would restart, and which pods block them", nullptr},
};

void describe_rollout(Commands& c, RolloutOptions& out) {
  using Verb = RolloutOptions::Verb;
  c.rollout = c.app.add_subcommand("rollout", "See, steer and undo rollouts on the live cluster");
  c.rollout->require_subcommand(1);
  for (const VerbText& text : kVerbs) {
    CLI::App* verb = c.rollout->add_subcommand(text.name, text.does);
    c.rollout_verbs[text.verb] = verb;
    if (text.argument != nullptr) verb->add_option("NAME", out.name, text.argument);
    auto& flags = c.rollout_flags[text.verb] = std::make_unique<OptionFlags>();
    flags->add_to(verb, is_connection);
  }
  for (const Verb verb : {Verb::pause, Verb::resume, Verb::approve, Verb::abort}) {
    c.rollout_verbs[verb]->add_flag("--all", out.all, "Apply to all matching rollouts");
  }
  for (const Verb verb : {Verb::status, Verb::history, Verb::undo, Verb::diff})
    add_output(c.rollout_verbs[verb], c.output);
  c.rollout_verbs[Verb::start]->add_flag("--adopt", out.adopt,
                                         "Also roll out nodes that had drifted before the operator was installed");
  CLI::App* undo = c.rollout_verbs[Verb::undo];
  undo->add_option("--to-revision", out.to_revision, "Revert to this revision (see `rollout history`)")
      ->type_name("REVISION");
  undo->add_flag("--write-configmap", out.write_config_map,
                 "Write the text into the plugin's ConfigMap; refused if Argo CD, Flux or Helm manages the ConfigMap");
  undo->footer(
      "The operator reverts an inline profile of a policy by itself. For every other key the rollout is paused and\n"
      "the text is printed.\n"
      "Exit status: 0 done, 1 another tool manages the ConfigMap (the text is printed), 2 nothing to undo or usage.");
  add_diff(c.rollout_verbs[Verb::diff], out);
}

void describe_cleanup(Commands& c, CleanupOptions& out) {
  c.cleanup =
      c.app.add_subcommand("cleanup", "Remove everything the operator added to nodes and policies (irreversible)");
  c.cleanup->add_option("--stop-deployment", out.stop_deployment, "Deployment in --namespace that is scaled to 0 first")
      ->type_name("NAME");
  c.cleanup
      ->add_option("--timeout", c.cleanup_timeout, "How long to wait until the leader has released the Lease, 1s to 1h")
      ->type_name("DURATION")
      ->default_str(k8s::format_go_duration(CleanupOptions().timeout));
  c.cleanup->add_flag("--dry-run", out.dry_run, "Only print what would be changed");
  add_output(c.cleanup, c.output);
  c.cleanup_flags.add_config_to(c.cleanup);
  c.cleanup_flags.add_to(c.cleanup,
                         [](const OptionSpec& spec) { return is_connection(spec) || spec.name == "lease-name"; });
  c.cleanup->footer(
      "Removes the operator's cordons, labels, annotations and finalizers, then its record and its Lease.\n"
      "No GPU pod is deleted.");
}

void describe_offline(Commands& c, Invocation& out) {
  c.lint = c.app.add_subcommand("lint", "Check profiles, ConfigMaps that hold them, SharingPolicies and Pods");
  c.lint->add_option("FILE", out.lint.files, "YAML or JSON files, folders, or - for stdin");
  c.lint->add_flag("--codes", out.lint.codes, "List every diagnostic code, with what it means and what to do");
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
      "  name               as nvidia-smi prints it, \"Tesla T4\"; required\n"
      "  memoryMiB          15360; absent: no memory label, no MPS memory limit\n"
      "  computeCapability  [7, 5]\n"
      "  pciClass           197120 (0x030200, 3D controller) or 196608 (0x030000, VGA)\n"
      "  migCapable, migEnabled  true or false\n"
      "  migDevices         [{\"profile\": \"1g.5gb\", \"attributes\": {\"memory\": 4864, \"multiprocessors\": 14, "
      "…}}]\n"
      "Profiles that a component rejects or crashes on are reported as errors.\n" +
      kExitStatus);
  add_output(c.expect, c.output);
}

void describe_plan(Commands& c, Invocation& out) {
  c.plan =
      c.app.add_subcommand("plan", "What the operator would do now, over manifests or the live cluster (a dry run)");
  auto* files = c.plan->add_option("FILE", out.plan.files, "Manifests as YAML or JSON, or - for stdin");
  c.plan->add_flag("--from-cluster", out.plan.from_cluster, "The live cluster instead of files; it is only read")
      ->excludes(files);
  c.plan->add_option("--now", out.plan.now, "Plan for this time, RFC 3339 (default: now)")->type_name("TIME");
  c.plan->add_option("--assume-observed-for", c.assume_observed_for, "Treat observed conditions as already this old")
      ->type_name("DURATION");
  c.plan->add_option("--only", out.plan.only, "Limit the plan to one reconciler")->type_name("RECONCILER");
  c.plan->footer(kExitStatus +
                 "\nA node that cannot be changed now (blocked, drifted, busy) is a warning and does not change the\n"
                 "exit status; a mistake that would leave a node without GPUs is an error.\n"
                 "Files without any manifest are unreadable; an empty List is a cluster without such objects.");
  add_output(c.plan, c.output);
  c.plan_flags.add_config_to(c.plan);
  c.plan_flags.add_to(c.plan, [](const OptionSpec& spec) { return is_planning(spec) || is_connection(spec); });
}

void describe_looks(Commands& c, Invocation& out) {
  c.status = c.app.add_subcommand("status", "State of every GPU node, read from the live cluster");
  add_output(c.status, c.output, {"text", "wide", "json", "yaml"});
  c.status->add_flag("-w,--watch", out.status.watch, "Watch: refresh on every change of nodes or rollouts");
  c.status_flags.add_to(c.status, is_connection);

  c.explain =
      c.app.add_subcommand("explain", "Why a node is in its state, or why a GPU pod is Pending, rejected or slow");
  c.explain->add_option("NODE|NAMESPACE/POD", out.explain.what, "What to explain; also `node NAME`, `pod NAME`")
      ->required()
      ->expected(1, 2);
  add_manifests(c.explain, out.explain.files);
  add_output(c.explain, c.output, {"text", "json", "yaml"});
  c.explain_flags.add_to(c.explain, is_connection);
  c.explain->footer(
      "Reads only; the operator need not be installed. Exit status: 0 no problem found; 1 the node is Failed or\n"
      "Blocked or has an error, or the pod cannot run; 2 the object does not exist, or the cluster or the ConfigMap\n"
      "of the node's device plugin cannot be read. With `pod NAME`, --namespace is the pod's namespace.");

  c.audit = c.app.add_subcommand("audit", "What is wrong with GPU sharing in the cluster, on one page");
  add_manifests(c.audit, out.audit.files);
  add_output(c.audit, c.output, {"text", "json", "yaml"});
  c.audit_flags.add_to(c.audit, is_connection);
  c.audit->footer(
      "Reads only; the operator need not be installed. Reports drift, invalid profiles, defects of the plugin's\n"
      "release and reservations without consumers. " +
      kExitStatus);
}

void describe_installation(Commands& c, Invocation& out) {
  c.check = c.app.add_subcommand("check", "Whether the installed operator works: rights, the CRDs, a leader");
  c.check->add_option("--timeout", c.check_timeout, "How long to wait for a leader")
      ->type_name("DURATION")
      ->default_str(k8s::format_go_duration(CheckOptions().timeout));
  c.check->add_flag("--writes", out.check.writes,
                    "Also whether this account may send the operator's writes: for the operator's own, as `helm test`");
  c.check_flags.add_to(c.check, [](const OptionSpec& spec) {
    return is_connection(spec) || spec.name == "lease-name" || spec.name == "max-mode";
  });

  c.support_bundle =
      c.app.add_subcommand("support-bundle", "Everything that helps to find a fault, without secrets, in one archive");
  c.support_bundle->add_option("-o,--output", out.bundle.file, "Where the tar archive goes, - for stdout")
      ->default_str(out.bundle.file)
      ->type_name("FILE");
  c.bundle_flags.add_to(c.support_bundle,
                        [](const OptionSpec& spec) { return is_connection(spec) || spec.name == "lease-name"; });
  c.support_bundle->footer(
      "Reads only. Objects of GPU sharing, findings, the plan, and the operator's logs; managed fields, last applied\n"
      "configurations, tokens, and values that are named like a secret are left out.");
}

}  // namespace

void describe(Commands& c, Invocation& out, const std::string& program) {
  c.app.name(program);
  c.app.require_subcommand(1);
  c.app.set_version_flag("--version", version());
  c.app.footer(kExitStatus);

  c.run = c.app.add_subcommand("run", "Run the controller");
  c.run_flags.add_config_to(c.run);
  c.run_flags.add_to(c.run, [](const OptionSpec&) { return true; });
  c.run->footer(
      "Every setting can also be given in the environment (the name in brackets) and in the file of --config.\n"
      "A flag overrides the environment; the environment overrides the file.");

  describe_offline(c, out);
  describe_plan(c, out);
  describe_looks(c, out);
  c.diff = c.app.add_subcommand("diff",
                                "Which nodes an edit would restart, and which pods block them; same as `rollout diff`");
  add_diff(c.diff, out.rollout);
  add_output(c.diff, c.output);
  c.diff_flags.add_to(c.diff, is_connection);
  describe_rollout(c, out.rollout);
  describe_cleanup(c, out.cleanup);
  describe_installation(c, out);

  c.completion =
      c.app.add_subcommand("completion", "Print the script that completes commands, options and names in a shell");
  c.completion->add_option("SHELL", out.shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  c.completion->footer(
      "bash: `source <(gpu-sharing-operator completion bash)`, zsh the same; fish: `gpu-sharing-operator completion "
      "fish\n"
      "| source`. For `kubectl gpu-sharing`, link the binary as kubectl_complete-gpu_sharing beside it.");
  c.version_command = c.app.add_subcommand("version", "Print the version");
}

}  // namespace gso
