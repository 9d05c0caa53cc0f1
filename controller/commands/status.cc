// A World, its assessments, and the tables.
#include "controller/commands/status.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <tuple>

#include "controller/commands/live/live_screen.h"
#include "controller/commands/rollout/rollout.h"
#include "controller/commands/shared/session.h"
#include "controller/reading/cluster_reader.h"
#include "reconcilers/explain/audit.h"
#include "reconcilers/explain/what_if.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/registry.h"
#include "reconcilers/report/rollout_facts.h"
#include "reconcilers/status/status.h"

namespace gso {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kStatusCommand = "gpu-sharing-operator status";
// Of the JSON document (docs/json.md): it changes when a field changes its meaning or goes, not when one comes.
constexpr int kStatusVersion = 1;

std::vector<RolloutFacts> rollouts_of(const World& world) {
  std::vector<RolloutFacts> out = all_rollouts(world);
  // Those under way, and the last one of each key that a policy still has: `rollout history` has them all.
  std::set<std::tuple<std::string_view, std::string_view, std::string_view>> seen;
  std::erase_if(out, [&](const RolloutFacts& facts) {
    const SharingRollout& rollout = *facts.rollout;
    const bool last = seen.emplace(rollout.policy, rollout.config_map, rollout.key).second;
    const bool governed = rollout.policy == kDefaultPolicy || world.policies.find(rollout.policy) != nullptr;
    return facts.finished() && !(last && governed);
  });
  std::ranges::sort(out, {}, [](const RolloutFacts& facts) { return facts.rollout->meta.name; });
  return out;
}

// What is to be said about kai-config now: the sharing mode in force, what cannot work, what an upgrade has wiped.
std::vector<Finding> kai_findings(const FleetLook& look) {
  const Snapshot snapshot{look.world, look.now, kNoTimers, kNobodyListed, look.settings};
  return plan_all(snapshot, look.index, {.only = kKaiConfig, .synced = everything_synced}).findings;
}

// What there is to print.
struct StatusContent {
  const FleetLook& look;
  const StatusView& view;
  std::vector<Finding> kai = kai_findings(look);
  std::vector<NodeRow> nodes = rows_of(look, view);
  std::vector<RolloutFacts> rollouts = rollouts_of(look.world);
  std::vector<DaemonProgress> daemons = daemon_progress(look.world, look.index);
  std::vector<Finding> switches = findings_of_settings(look.world, look.index.impl());

  // As for `audit`: what was not looked at is not fine.
  [[nodiscard]] int exit_status() const {
    const bool stopped = look.presence.none && look.presence.none->was_running;
    if (stopped || std::ranges::any_of(nodes, [](const NodeRow& row) { return row.shown.in_trouble; })) return 1;
    return coverage_gap(look.world, look.settings).empty() ? 0 : 2;
  }
};

OrderedJson rollout_json_of(const RolloutFacts& facts) {
  const SharingRollout& rollout = *facts.rollout;
  return {{"name", rollout.meta.name}, {"phase", rollout.phase}, {"reason", facts.ready.code},
          {"policy", rollout.policy},  {"key", rollout.key},     {"toRevision", rollout.to_revision},
          {"updated", facts.updated},  {"total", facts.total}};
}

OrderedJson kai_json(const Finding& finding) {
  return {{"severity", to_string(finding.severity)}, {"reason", finding.why.code}, {"message", finding.why.message}};
}

OrderedJson document_of(const StatusContent& status) {
  const FleetLook& look = status.look;
  const auto finding_json = [](const Finding& finding) { return to_json(finding); };
  return {{"version", kStatusVersion},
          {"operator", look.presence.none ? look.presence.none->field() : ""},
          {"baselineAssumed", look.assumed},
          {"nodes", json_list(status.nodes, node_json)},
          {"rollouts", json_list(status.rollouts, rollout_json_of)},
          {"standaloneMps", daemons_json(status.daemons)},
          {"kai", json_list(status.kai, kai_json)},
          {"findings", json_list(status.switches, finding_json)},
          {"incomplete", look.incomplete}};
}

// What a person must see comes first: a narrow terminal cuts the end off.
std::string progress_of(const FleetLook& look, const RolloutFacts& facts, bool bar) {
  std::string out = bar ? progress_bar(facts.updated, facts.total) + " " : std::string();
  out += fmt::format("{}/{}", facts.updated, facts.total);
  if (facts.failed > 0) out += fmt::format(", {} failed", facts.failed);
  if (facts.in_progress > 0) out += fmt::format(", {} in progress", facts.in_progress);
  if (facts.blocked > 0) out += fmt::format(", {} blocked", facts.blocked);
  // Else a broken node stands above a full bar.
  const bool nodes_unread = !look.world.unsynced_namespaces.empty();
  const std::string since = nodes_unread ? std::string() : since_completion(facts, look.index.impl());
  return since.empty() ? out : out + "; " + since;
}

std::vector<TextRow> rollout_rows(const StatusContent& status, TerminalWidth width, bool bar) {
  std::vector<TextRow> rows{{"ROLLOUT", "PHASE", "POLICY", "KEY", "TO", "PROGRESS"}};
  for (const RolloutFacts& facts : status.rollouts) {
    const SharingRollout& rollout = *facts.rollout;
    const RecordedStop stop = recorded_stop(facts, status.look.world.policies.find(rollout.policy));
    const std::string phase = rollout.phase.empty() ? "-" : facts.phase_text();
    const bool of_template = !daemonset_of(rollout.config_map).empty();
    rows.push_back({rollout.meta.name, stop.is_set() ? stop.phase + " (recorded)" : phase, rollout.policy,
                    of_template ? rollout.config_map : rollout.key, rollout.to_revision,
                    progress_of(status.look, facts, bar)});
  }
  drop_columns(rows, width, {"TO", "KEY", "POLICY"});
  return rows;
}

void print_rollouts(const StatusContent& status, TerminalWidth width, std::ostream& out) {
  if (status.rollouts.empty()) return;
  constexpr bool kBar = true;
  std::vector<TextRow> rows = rollout_rows(status, width, kBar);
  const auto is_cut = [width](const std::string& line) { return columns_of(line) > width; };
  if (width > 0 && std::ranges::any_of(table_lines(rows), is_cut)) rows = rollout_rows(status, width, !kBar);
  out << "\n";
  print_table(rows, out, width);
}

// What follows the nodes.
void print_rest(const StatusContent& status, std::ostream& out) {
  const FleetLook& look = status.look;
  const TerminalWidth width = status.view.width;
  if (!status.nodes.empty()) {
    print_slices(status.nodes, status.view.form == OutputForm::wide ? 0 : width, out);
    print_state_notes(status.nodes, look.assumed, look.presence.running, out);
  }
  print_rollouts(status, width, out);
  print_daemons(status.daemons, width, out);
  for (const Finding& finding : status.kai)
    print_line(out << '\n', "kai-config: {} ({})", finding.why.message, finding.why.code);
  for (const Finding& finding : status.switches) {
    print_line(out << '\n', "{} {}: {} {}: {}", to_string(finding.severity), finding.why.code, finding.object.kind,
               finding.object.name, shown_message(finding.why.message));
  }
  if (look.assumed) out << "\n" << assumed_baseline_text(look.presence.running) << ".\n";
  for (const std::string& missing : look.incomplete) print_line(out, "incomplete: {}", missing);
}

bool knows_policies(const FleetLook& look) {
  return look.world.policies_served || look.incomplete.empty();
}

// Of --policy: the first name of a policy that neither exists nor governs a node, for people; empty: each does, or the
// policies are not `known`.
std::string unknown_policy_in(const FleetLook& look, const NodeFilter& only, bool known) {
  if (!known) return {};
  for (const std::string& name : only.policies) {
    const bool governs = std::ranges::any_of(
        look.index.node_names(), [&](const std::string& node) { return look.index.assessment(node)->policy == name; });
    if (name != kDefaultPolicy && !governs && look.world.policies.find(name) == nullptr)
      return missing_policy(look.world, name);
  }
  return {};
}

bool is_for_people(OutputForm form) {
  return form == OutputForm::text || form == OutputForm::wide;
}

std::vector<LiveLine> lines_of(const StatusContent& status) {
  const FleetLook& look = status.look;
  const NodeFilter& only = status.view.only;
  const TerminalWidth width = status.view.width;
  std::ostringstream rest;
  if (!is_for_people(status.view.form)) {
    print_document(document_of(status), status.view.form, rest);
    return {{rest.str().substr(0, rest.str().size() - 1)}};  // Each line is shown with a newline.
  }
  std::vector<LiveLine> out;
  const auto say = [&out, width](std::string_view text) {
    append_text(out, wrapped_prose(one_line(text) + "\n", width));
  };
  if (look.presence.none) {
    say(look.presence.none->text());
    say("");
  }
  const std::string unknown = unknown_policy_in(look, only, knows_policies(look));
  if (!unknown.empty()) say(unknown);
  const bool wide = status.view.form == OutputForm::wide;
  if (status.nodes.empty()) {
    append_text(out, only.empty() ? "No node has GPUs.\n" : "No node matches --state, --policy and --selector.\n");
    for (const std::string& name : only.policies) {
      const SharingPolicy* policy = look.world.policies.find(name);
      const std::string others =
          policy == nullptr ? std::string() : other_governors_text(look.world, look.index.impl(), *policy);
      if (!others.empty()) say(fmt::format("policy {}: {}", name, others));
    }
  } else {
    std::ranges::move(node_lines(status.nodes, wide, width), std::back_inserter(out));
  }
  print_rest(status, rest);
  append_text(out, wrapped_prose(rest.str(), wide ? 0 : width));
  return out;
}

FleetWatch watch_of(OutputForm form, NodeFilter only, std::ostream* err) {
  FleetWatch watch;
  watch.assumes_baseline = true;
  watch.before_each = form == OutputForm::yaml ? "---\n" : is_for_people(form) ? "\n" : "";
  watch.show = [form, only, err, reported = std::string()](const FleetLook& look, const Screen& room) mutable {
    const StatusView view{form, room.columns, only, room.is_terminal()};
    // A document has no room for it.
    const std::string unknown =
        is_for_people(form) ? std::string() : unknown_policy_in(look, only, knows_policies(look));
    if (unknown != std::exchange(reported, unknown) && !unknown.empty())
      print_line(*err, "{}: {}", kStatusCommand, unknown);
    const StatusContent content{look, view};
    return FleetView{.lines = lines_of(content), .exit_status = content.exit_status()};
  };
  return watch;
}

}  // namespace

int print_status(const FleetLook& look, const StatusView& view, std::ostream& out) {
  const StatusContent status{look, view};
  // Tables fit already; sentences around them do not.
  out << wrapped_prose(text_of(lines_of(status)), view.form == OutputForm::text ? view.width : 0);
  return status.exit_status();
}

boost::asio::awaitable<int> status_on_cluster(k8s::Reader* client, k8s::Clock* clock, OutputForm form, NodeFilter only,
                                              PlannerSettings settings, k8s::ObjectKey lease, std::ostream* out,
                                              std::ostream* err) {
  World world;
  std::vector<std::string> incomplete;
  SharingKinds kinds;
  const k8s::Result<void> read = co_await read_world(client, settings, &world, &incomplete, &kinds);
  if (!read) co_return refuse(*err, kStatusCommand, read.error().message);
  settings = settings_of_operator(world, settings);
  const OperatorPresence found = co_await find_operator(client, clock, lease, &incomplete);
  note_record_elsewhere(found.none, settings, &world, &incomplete);
  FleetIndex index;
  const k8s::WallTime now = clock->now();
  const bool assumed = assume_baseline(world, index, settings, now);
  const FleetLook look{world, index, settings, now, incomplete, found, assumed};
  const std::string unknown = unknown_policy_in(look, only, kinds.policies != Served::unknown);
  if (!unknown.empty()) co_return refuse(*err, kStatusCommand, unknown);
  const StatusView view{form, screen_of_stdout().columns, only};
  co_return print_status(look, view, *out);
}

namespace {

int run_status(const StatusOptions& status, const Options& options, std::ostream& out, std::ostream& err) {
  const PlannerSettings settings = options.planner_settings();
  const k8s::ObjectKey lease{settings.operator_namespace, options.lease_name};
  const k8s::Result<NodeFilter> only = node_filter_of(status.only);
  if (!only) return refuse(err, kStatusCommand, only.error().message);
  return run_connected(kStatusCommand, options, k8s::terminal_of_process(), err, [&](const Session& session) {
    if (!status.watch)
      return status_on_cluster(session.client, session.clock, status.form, *only, settings, lease, &out, &err);
    FleetWatch watch = watch_of(status.form, *only, &err);
    watch.settings = settings;
    watch.lease = lease;
    return run_live(session, is_for_people(status.form), std::move(watch), &out, &err);
  });
}

}  // namespace

Subcommand make_status_command() {
  const auto status = std::make_shared<StatusOptions>();
  const auto describe = [status](CLI::App& app, OptionFlags& settings) {
    add_output(app, status->form, {"text", "wide", "json", "yaml"});
    app.add_flag("-w,--watch", status->watch,
                 "Watch: refresh on every change of nodes or rollouts; on a terminal nodes in a change come first");
    add_node_filter(app, status->only);
    add_connection(app, settings);
    app.footer(
        "With --watch on a terminal: Up and Down select a node, Enter explains it, q goes back and ends, ? shows all "
        "keys.\n"
        "Exit status: 0 fine, or the view was ended by q; 1 a node that is shown is Failed or Blocked, or the operator "
        "no longer runs; 2 wrong usage, or the cluster, the operator's record or policies, or objects of the device "
        "plugins cannot be read.\n"
        "Ctrl-C ends --watch with the status of the last view. A stopped rollout does not count here: `rollout status` "
        "ends with 1 then.");
  };
  return {.name = "status",
          .summary = "State of every GPU node, read from the live cluster",
          .describe = describe,
          .run = [status](const Invocation& i) { return run_status(*status, i.options, i.out, i.err); },
          .names_unknown_variables = true};
}

}  // namespace gso
