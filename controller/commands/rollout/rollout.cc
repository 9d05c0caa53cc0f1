// `rollout`, its verbs and `diff`: names and arguments, one reading of the world, and the choice of the verb.
#include "controller/commands/rollout/rollout.h"

#include <memory>
#include <sstream>

#include "controller/commands/shared/print.h"
#include "controller/commands/shared/session.h"
#include "controller/reading/input_file.h"
#include "controller/reading/reads.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/rollout/gates.h"

namespace gso {

namespace asio = boost::asio;

int RolloutCall::refuse(std::string_view why) const {
  return gso::refuse(*err, "gpu-sharing-operator " + command_of(options.verb), why);
}

namespace {

// Why every verb but `diff` is refused where rollouts have no objects, and what can be done there.
std::string without_crds_text() {
  return fmt::format(
      "the SharingPolicy/SharingRollout CRDs are not installed in this cluster: install them with `{}`; without them "
      "the annotation {}=true of a device plugin's ConfigMap pauses what it serves, and `gpu-sharing-operator status` "
      "shows the nodes",
      kInstallCrds, kPausedAnnotation);
}

}  // namespace

asio::awaitable<bool> patch_sharing_object(RolloutCall* call, k8s::Gvr resource, std::string name, std::string body) {
  const k8s::ObjectKey key{"", name};
  const k8s::Result<std::string> patched = co_await call->client->merge_patch(resource, key, body);
  if (!patched) (void)call->refuse(explain_error(patched.error(), "patch", resource, ""));
  co_return patched.has_value();
}

asio::awaitable<int> rollout_command(k8s::ApiClient* client, k8s::Clock* clock, RolloutOptions rollout,
                                     PlannerSettings settings, std::string input, std::ostream* out,
                                     std::ostream* err) {
  RolloutCall call{.client = client,
                   .clock = clock,
                   .options = rollout,
                   .settings = settings,
                   .input = input,
                   .out = out,
                   .err = err};
  using Verb = RolloutOptions::Verb;
  const k8s::Result<void> read = co_await read_world(client, settings, &call.world, &call.incomplete);
  if (!read) co_return call.refuse(read.error().message);
  call.settings = settings_of_operator(call.world, settings);
  const k8s::ObjectKey lease{settings.operator_namespace, rollout.lease_name};
  call.presence = co_await find_operator(client, clock, lease, &call.incomplete);
  // A verb that writes says itself what it needs of the record.
  if (rollout.verb == Verb::status) note_record_elsewhere(call.presence.none, settings, &call.world, &call.incomplete);
  call.index.refresh(call.world, call.settings);
  for (const std::string& missing : call.incomplete) print_line(*err, "incomplete: {}", missing);
  const bool unread = sharing_objects_unread(call.world);
  const bool says_so_itself = rollout.verb == Verb::status && call.world.policies_served && !unread;
  if (call.presence.none && !says_so_itself) print_line(*err, "{}", call.presence.none->text());
  if (rollout.verb != Verb::diff) {
    // It is unknown whether SharingRollouts or ConfigMaps hold the switches, so none is set.
    if (unread) co_return call.refuse("the SharingPolicies and SharingRollouts cannot be read (see `incomplete`)");
    if (!call.world.policies_served) co_return call.refuse(without_crds_text());
    if (rollout.verb == Verb::status)
      co_return show_status(call);  // Also of a policy that is gone and stops its nodes.
    if (const std::string unknown = unknown_policy(call.world, rollout.name); !unknown.empty())
      co_return call.refuse(unknown);
    if (rollout.verb == Verb::history) co_return show_history(call);
  }
  asio::awaitable<int> run = rollout.verb == Verb::diff    ? preview(&call, std::nullopt, "")
                             : rollout.verb == Verb::start ? rollout_start(&call)
                             : rollout.verb == Verb::undo  ? rollout_undo(&call)
                                                           : set_switch(&call);
  co_return co_await std::move(run);
}

namespace {

// The verb with the connection of `options`.
int run_rollout(const RolloutOptions& rollout, const Options& options, std::istream& in, std::ostream& out,
                std::ostream& err) {
  std::string input;
  if (!rollout.cluster_policy_patch.empty()) input = rollout.cluster_policy_patch;
  if (!rollout.file.empty()) {
    k8s::Result<std::string> text = read_input(rollout.file, in);
    if (!text) return refuse(err, "gpu-sharing-operator " + command_of(rollout.verb), text.error().message);
    input = *std::move(text);
  }
  return run_on_cluster(command_of(rollout.verb), options, err, [&](k8s::ApiClient* client, k8s::Clock* clock) {
    return rollout_command(client, clock, rollout, options.planner_settings(), input, &out, &err);
  });
}

}  // namespace

std::string rollout_status_text(const ClusterView& view, const PlannerSettings& settings, k8s::Clock* clock,
                                bool json) {
  const SharingKinds& kinds = view.sharing_kinds;
  if (kinds.policies == Served::unknown || kinds.rollouts == Served::unknown) return {};
  if (!view.world.policies_served) return json ? std::string() : without_crds_text() + "\n";
  std::ostringstream out;
  std::ostringstream err;
  RolloutCall call{.clock = clock,
                   .options = {.json = json},
                   .settings = settings,
                   .world = view.world,
                   .incomplete = view.incomplete,
                   .presence = view.presence,
                   .out = &out,
                   .err = &err};
  call.index.refresh(call.world, call.settings);
  (void)show_status(call);
  return json ? out.str() : out.str() + err.str();
}

// --- Names and arguments.

namespace {

// An empty argument is that of a shell's variable that is not set, and asks for no other comparison.
std::string not_empty(const std::string& value) {
  return value.empty() ? "the argument is empty" : "";
}

void add_diff(CLI::App& app, RolloutOptions& rollout) {
  app.add_option(
         "-f,--file", rollout.file,
         "ConfigMap, SharingPolicy, ClusterPolicy or profile to compare with, - for stdin; by default what the cluster "
         "has now")
      ->check(not_empty, "")
      ->type_name("FILE");
  app.add_option("--key", rollout.key,
                 "Key that a profile is for, else the ConfigMap's only key, else the plugin's default key")
      ->type_name("KEY");
  app.add_option("--clusterpolicy-patch", rollout.cluster_policy_patch,
                 "Merge patch of the ClusterPolicy to compare with, as `kubectl patch --type merge` takes it")
      ->check(not_empty, "")
      ->type_name("PATCH");
  app.footer(
      "Reads only. Exit status 1: the profile is invalid, a key in use would be removed, or nodes would lose their "
      "GPUs.");
}

void add_all(CLI::App& app, RolloutOptions& rollout) {
  app.add_flag("--all", rollout.all, "Apply to all matching rollouts");
}

void add_start(CLI::App& app, RolloutOptions& rollout) {
  app.add_flag("--adopt", rollout.adopt, "Also roll out nodes that had drifted before the operator was installed");
  app.add_flag("--dry-run", rollout.dry_run, "Show what would restart, and the change itself; write nothing");
}

void add_history(CLI::App& app, RolloutOptions& rollout) {
  add_output(app, rollout.json);
}

void add_undo(CLI::App& app, RolloutOptions& rollout) {
  add_output(app, rollout.json);
  app.add_option("--to-revision", rollout.to_revision, "Revert to this revision (see `rollout history`)")
      ->type_name("REVISION");
  app.add_flag("--write-configmap", rollout.write_config_map,
               "Write the text into the plugin's ConfigMap; refused if Argo CD, Flux or Helm manages the ConfigMap");
  app.add_flag("--dry-run", rollout.dry_run, "Show what would restart, and the change itself; write nothing");
  app.footer(
      "The operator reverts an inline profile of a policy by itself. For every other key the rollout is paused, or "
      "before there is one its policy, and the text is printed.\n"
      "Exit status: 0 done, 1 another tool manages the ConfigMap (the text is printed), 2 nothing to undo or usage.");
}

void add_status(CLI::App& app, RolloutOptions& rollout) {
  add_output(app, rollout.json);
  app.add_flag("-w,--watch", rollout.watch,
               "Watch: a live tree of rollouts and their nodes; without a terminal a line for each change");
  app.add_flag("--wait", rollout.wait, "Print a line for each change until the rollouts are complete or stopped");
  app.add_option("--timeout", rollout.timeout_text, "With --wait: how long to wait; without it forever")
      ->type_name("DURATION");
  add_node_filter(app, rollout.only);
  app.footer(
      "With --watch on a terminal: Up and Down select a node, Enter explains it, q goes back and ends, ? shows all "
      "keys.\n"
      "Exit status: 0 fine; 1 a rollout is stopped (nodes failed, the profile is invalid, or somebody aborted or undid "
      "it), or the operator no longer runs; 2 wrong usage, the cluster cannot be read, or the CRDs are not installed.\n"
      "With --wait: 0 every node runs its target or is held by somebody; 1 stopped, or nodes are blocked; 3 timed "
      "out.\n"
      "Pauses, approvals and closed maintenance windows are waited for. --state, --policy and --selector choose the "
      "nodes of the live tree.");
}

k8s::Result<void> check_watch(RolloutOptions& rollout) {
  const auto refuse = [](const char* why) {
    return k8s::fail(k8s::Reason::invalid, std::string("rollout status: ") + why);
  };
  if (!rollout.timeout_text.empty() && !rollout.wait) return refuse("--timeout goes with --wait");
  if (rollout.json && (rollout.wait || rollout.watch)) return refuse("--watch and --wait have no JSON form");
  if (rollout.timeout_text.empty()) return {};
  Duration timeout{};
  if (auto read = read_any_duration("--timeout", rollout.timeout_text, "30m", timeout); !read) return read;
  // With kubectl, 0 means no limit; here nobody would be waited for.
  if (timeout < std::chrono::seconds(1)) return refuse("--timeout is at least 1s; without --timeout it waits forever");
  rollout.timeout = timeout;
  return {};
}

using Verb = RolloutOptions::Verb;

struct VerbText {
  Verb verb;
  const char* name;
  const char* does;
  const char* argument;                                         // Nullptr: takes none.
  void (*add_options)(CLI::App& app, RolloutOptions& rollout);  // Completion offers them in their order.
};
constexpr const char* kWhichRollout = "SharingRollout, or policy/NAME; optional if only one rollout qualifies";
// By Verb.
constexpr VerbText kVerbs[] = {
    {Verb::status, "status", "Rollouts in progress: how far they are and what they wait for",
     "SharingRollout, or policy/NAME; all by default", add_status},
    {Verb::history, "history", "Rollouts on record, newest first; with a name its text",
     "SharingRollout, or policy/NAME", add_history},
    {Verb::start, "start", "Retry nodes that failed, and rollouts that were aborted or undone",
     "SharingPolicy; `default` by default", add_start},
    {Verb::pause, "pause",
     "Start no further node. Nodes with a deleted pod finish; nodes that only wait are uncordoned", kWhichRollout,
     add_all},
    {Verb::resume, "resume", "Resume what was paused", kWhichRollout, add_all},
    {Verb::approve, "approve", "Approve a rollout of a policy in mode Approve", kWhichRollout, add_all},
    {Verb::abort, "abort",
     "End a rollout until `start`: nodes with a deleted pod finish, nodes that only wait are uncordoned, all others "
     "keep what they run",
     kWhichRollout, add_all},
    {Verb::undo, "undo", "Revert to the last verified profile", kWhichRollout, add_undo},
    {Verb::diff, "diff", "Which nodes would restart, and which pods block them", nullptr,
     [](CLI::App& app, RolloutOptions& rollout) {
       add_output(app, rollout.json);
       add_diff(app, rollout);
     }},
};

// `options`: name the operator's Lease.
k8s::Result<void> check_verb(RolloutOptions& rollout, const Options& options, const char* command) {
  rollout.lease_name = options.lease_name;
  if (rollout.verb == Verb::status) return check_watch(rollout);
  const auto refuse = [&](std::string_view why) {
    return k8s::fail(k8s::Reason::invalid, fmt::format("{}: {}", command, why));
  };
  if (!rollout.cluster_policy_patch.empty() && !rollout.file.empty())
    return refuse("--clusterpolicy-patch and --file exclude each other");
  if (rollout.key.empty() || !rollout.file.empty()) return {};
  return refuse("--key goes with --file");
}

Subcommand command_of_verb(const VerbText& text) {
  const auto rollout = std::make_shared<RolloutOptions>();
  rollout->verb = text.verb;
  const auto describe = [rollout, &text](CLI::App& app, OptionFlags& settings) {
    if (text.argument != nullptr) app.add_option("NAME", rollout->name, text.argument);
    add_connection(app, settings);
    text.add_options(app, *rollout);
  };
  return {.name = text.name,
          .summary = text.does,
          .describe = describe,
          .check = [rollout](const Options& options) { return check_verb(*rollout, options, "rollout diff"); },
          .run =
              [rollout](const Invocation& i) {
                return rollout->watch || rollout->wait ? watch_rollouts(*rollout, i.options, i.out, i.err)
                                                       : run_rollout(*rollout, i.options, i.in, i.out, i.err);
              }};
}

}  // namespace

std::string command_of(RolloutOptions::Verb verb) {
  const std::string name = kVerbs[static_cast<std::size_t>(verb)].name;
  return verb == Verb::diff ? name : "rollout " + name;
}

Subcommand make_rollout_command() {
  Subcommand rollout{.name = "rollout", .summary = "Show, control and undo rollouts on the live cluster"};
  for (const VerbText& text : kVerbs) rollout.verbs.push_back(command_of_verb(text));
  return rollout;
}

Subcommand make_diff_command() {
  const auto rollout = std::make_shared<RolloutOptions>();
  rollout->verb = Verb::diff;
  const auto describe = [rollout](CLI::App& app, OptionFlags& settings) {
    add_diff(app, *rollout);
    add_output(app, rollout->json);
    add_connection(app, settings);
  };
  return {.name = "diff",
          .summary = "Which nodes an edit would restart, and which pods block them; same as `rollout diff`",
          .describe = describe,
          .check = [rollout](const Options& options) { return check_verb(*rollout, options, "diff"); },
          .run = [rollout](const Invocation& i) { return run_rollout(*rollout, i.options, i.in, i.out, i.err); }};
}

}  // namespace gso
