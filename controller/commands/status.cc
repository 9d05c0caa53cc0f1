// A World, its assessments, and the tables.
#include "controller/commands/status.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <tuple>

#include "controller/commands/live/live_screen.h"
#include "controller/commands/rollout/report_text.h"
#include "controller/commands/shared/session.h"
#include "controller/commands/status_watch.h"
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

namespace asio = boost::asio;
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

OrderedJson document_of(const FleetStatus& status, const std::vector<NodeRow>& nodes) {
  OrderedJson document{
      {"version", kStatusVersion},         {"operator", status.presence.none ? status.presence.none->field() : ""},
      {"baselineAssumed", status.assumed}, {"nodes", OrderedJson::array()},
      {"rollouts", OrderedJson::array()},  {"standaloneMps", daemons_json(daemon_progress(status.world, status.index))},
      {"kai", OrderedJson::array()},       {"findings", OrderedJson::array()},
      {"incomplete", status.incomplete}};
  for (const NodeRow& row : nodes) document["nodes"].push_back(node_json(row));
  for (const RolloutFacts& facts : rollouts_of(status.world)) {
    const SharingRollout& rollout = *facts.rollout;
    document["rollouts"].push_back({{"name", rollout.meta.name},
                                    {"phase", rollout.phase},
                                    {"reason", facts.ready.code},
                                    {"policy", rollout.policy},
                                    {"key", rollout.key},
                                    {"toRevision", rollout.to_revision},
                                    {"updated", facts.updated},
                                    {"total", facts.total}});
  }
  for (const Finding& finding : findings_of_settings(status.world, status.index.impl()))
    document["findings"].push_back(to_json(finding));
  for (const Finding& finding : status.kai) {
    document["kai"].push_back(
        {{"severity", to_string(finding.severity)}, {"reason", finding.why.code}, {"message", finding.why.message}});
  }
  return document;
}

// What a person must see comes first: a narrow terminal cuts the end off.
std::string progress_of(const FleetStatus& status, const RolloutFacts& facts, bool bar) {
  std::string out = bar ? progress_bar(facts.updated, facts.total) + " " : std::string();
  out += fmt::format("{}/{}", facts.updated, facts.total);
  if (facts.failed > 0) out += fmt::format(", {} failed", facts.failed);
  if (facts.in_progress > 0) out += fmt::format(", {} in progress", facts.in_progress);
  if (facts.blocked > 0) out += fmt::format(", {} blocked", facts.blocked);
  // Else a broken node stands above a full bar.
  const bool nodes_unread = !status.world.unsynced_namespaces.empty();
  const std::string since = nodes_unread ? std::string() : since_completion(facts, status.index.impl());
  return since.empty() ? out : out + "; " + since;
}

std::vector<TextRow> rollout_rows(const FleetStatus& status, const std::vector<RolloutFacts>& rollouts,
                                  TerminalWidth width, bool bar) {
  std::vector<TextRow> rows{{"ROLLOUT", "PHASE", "POLICY", "KEY", "TO", "PROGRESS"}};
  for (const RolloutFacts& facts : rollouts) {
    const SharingRollout& rollout = *facts.rollout;
    const RecordedStop stop = recorded_stop(facts, status.world.policies.find(rollout.policy));
    const std::string phase = rollout.phase.empty() ? "-" : facts.phase_text();
    const bool of_template = !daemonset_of(rollout.config_map).empty();
    rows.push_back({rollout.meta.name, stop.is_set() ? stop.phase + " (recorded)" : phase, rollout.policy,
                    of_template ? rollout.config_map : rollout.key, rollout.to_revision,
                    progress_of(status, facts, bar)});
  }
  drop_columns(rows, width, {"TO", "KEY", "POLICY"});
  return rows;
}

void print_rollouts(const FleetStatus& status, const std::vector<RolloutFacts>& rollouts, TerminalWidth width,
                    std::ostream& out) {
  constexpr bool kBar = true;
  std::vector<TextRow> rows = rollout_rows(status, rollouts, width, kBar);
  const auto is_cut = [width](const std::string& line) { return columns_of(line) > width; };
  if (width > 0 && std::ranges::any_of(table_lines(rows), is_cut)) rows = rollout_rows(status, rollouts, width, !kBar);
  print_table(rows, out, width);
}

bool in_trouble(const FleetStatus& status, const std::vector<NodeRow>& nodes) {
  const bool stopped = status.presence.none && status.presence.none->was_running;
  return stopped || std::ranges::any_of(nodes, [](const NodeRow& row) { return row.shown.in_trouble; });
}

// As for `audit`: what was not looked at is not fine.
int exit_status_of(const FleetStatus& status, bool trouble) {
  if (trouble) return 1;
  return coverage_gap(status.world, status.settings).empty() ? 0 : 2;
}

// What follows the nodes.
void print_rest(const FleetStatus& status, const std::vector<NodeRow>& nodes, bool wide, TerminalWidth width,
                std::ostream& out) {
  if (!nodes.empty()) {
    print_slices(nodes, wide ? 0 : width, out);
    print_state_notes(nodes, status.assumed, status.presence.running, out);
  }
  if (const std::vector<RolloutFacts> rollouts = rollouts_of(status.world); !rollouts.empty()) {
    out << "\n";
    print_rollouts(status, rollouts, width, out);
  }
  print_daemons(daemon_progress(status.world, status.index), width, out);
  for (const Finding& finding : status.kai)
    print_line(out << '\n', "kai-config: {} ({})", finding.why.message, finding.why.code);
  for (const Finding& finding : findings_of_settings(status.world, status.index.impl())) {
    print_line(out << '\n', "{} {}: {} {}: {}", to_string(finding.severity), finding.why.code, finding.object.kind,
               finding.object.name, shown_message(finding.why.message));
  }
  if (status.assumed) out << "\n" << assumed_baseline_text(status.presence.running) << ".\n";
  for (const std::string& missing : status.incomplete) print_line(out, "incomplete: {}", missing);
}

// Of --policy: the first name of a policy that neither exists nor governs a node, for people; empty: each does.
std::string unknown_policy_in(const NodeFilter& only, const World& world, const FleetIndex& index) {
  for (const std::string& name : only.policies) {
    const bool governs = std::ranges::any_of(
        index.node_names(), [&](const std::string& node) { return index.assessment(node)->policy == name; });
    if (name != kDefaultPolicy && !governs && world.policies.find(name) == nullptr) return missing_policy(world, name);
  }
  return {};
}

// The same of a view; nothing, where the policies cannot be read.
std::string unknown_policy_in(const FleetStatus& status) {
  const bool unread = !status.world.policies_served && !status.incomplete.empty();
  return unread ? std::string() : unknown_policy_in(status.only, status.world, status.index);
}

std::vector<LiveLine> lines_of(const FleetStatus& status, const std::vector<NodeRow>& nodes, bool wide,
                               TerminalWidth width) {
  std::vector<LiveLine> out;
  if (status.presence.none) append_text(out, wrapped_prose(one_line(status.presence.none->text()) + "\n\n", width));
  const std::string unknown = unknown_policy_in(status);
  if (!unknown.empty()) append_text(out, wrapped_prose(one_line(unknown) + "\n", width));
  if (nodes.empty()) {
    append_text(out,
                status.only.empty() ? "No node has GPUs.\n" : "No node matches --state, --policy and --selector.\n");
    for (const std::string& name : status.only.policies) {
      const SharingPolicy* policy = status.world.policies.find(name);
      const std::string others =
          policy == nullptr ? std::string() : other_governors_text(status.world, status.index.impl(), *policy);
      if (!others.empty())
        append_text(out, wrapped_prose(one_line(fmt::format("policy {}: {}", name, others)) + "\n", width));
    }
  } else {
    std::ranges::move(node_lines(nodes, wide, width), std::back_inserter(out));
  }
  std::ostringstream rest;
  print_rest(status, nodes, wide, width, rest);
  append_text(out, wrapped_prose(rest.str(), wide ? 0 : width));
  return out;
}

bool is_for_people(OutputForm form) {
  return form == OutputForm::text || form == OutputForm::wide;
}

// `watch`: without what it shows.
asio::awaitable<int> show_always(FleetWatch watch, OutputForm form, NodeFilter only, LiveScreen* live,
                                 std::ostream* out, std::ostream* err) {
  const bool text = is_for_people(form);
  watch.assumes_baseline = true;
  std::string reported;
  watch.show = [&, clock = watch.clock](const FleetLook& look, std::ostream& view) {
    const k8s::WallTime now = clock->now();
    const FleetStatus fleet{look.world,      look.index,
                            look.settings,   now,
                            look.incomplete, kai_findings(look.world, look.index, look.settings, now),
                            look.presence,   only,
                            live != nullptr, look.assumed};
    // A document has no room for it.
    const std::string unknown = text ? std::string() : unknown_policy_in(fleet);
    if (unknown != std::exchange(reported, unknown) && !unknown.empty())
      print_line(*err, "{}: {}", kStatusCommand, unknown);
    if (live == nullptr) return FleetVerdict{.exit_status = exit_status_of(fleet, print_status(fleet, form, 0, view))};
    const std::vector<NodeRow> nodes = rows_of(fleet);
    live->show(lines_of(fleet, nodes, form == OutputForm::wide, live->room().columns));
    view << live->text();
    return FleetVerdict{.exit_status = exit_status_of(fleet, in_trouble(fleet, nodes))};
  };
  if (text && live == nullptr) watch.before_each = "\n";
  if (form == OutputForm::yaml) watch.before_each = "---\n";
  const int code = co_await watch_on(live, std::move(watch), out, err);
  co_return code;
}

}  // namespace

std::vector<Finding> kai_findings(const World& world, FleetIndex& index, const PlannerSettings& settings,
                                  k8s::WallTime now) {
  const Snapshot snapshot{world, now, kNoTimers, kNobodyListed, settings};
  return plan_all(snapshot, index, {.only = kKaiConfig, .synced = everything_synced}).findings;
}

bool print_status(const FleetStatus& status, OutputForm form, TerminalWidth width, std::ostream& out) {
  const std::vector<NodeRow> nodes = rows_of(status);
  if (form == OutputForm::json || form == OutputForm::yaml) {
    print_document(document_of(status, nodes), form, out);
  } else {
    const bool wide = form == OutputForm::wide;
    // Tables fit already; sentences around them do not.
    out << wrapped_prose(text_of(lines_of(status, nodes, wide, width)), wide ? 0 : width);
  }
  return in_trouble(status, nodes);
}

asio::awaitable<int> status_on_cluster(k8s::Reader* client, k8s::Clock* clock, OutputForm form, NodeFilter only,
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
  const bool policies_known = kinds.policies != Served::unknown;
  if (const std::string unknown = policies_known ? unknown_policy_in(only, world, index) : ""; !unknown.empty())
    co_return refuse(*err, kStatusCommand, unknown);
  const FleetStatus fleet{world, index, settings, now,    incomplete, kai_findings(world, index, settings, now),
                          found, only,  false,    assumed};
  const bool trouble = print_status(fleet, form, screen_of_stdout().columns, *out);
  co_return exit_status_of(fleet, trouble);
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
    return run_live(session, is_for_people(status.form), settings, lease.name, &out,
                    [&, client = session.client, clock = session.clock](k8s::Signal* stop, LiveScreen* live) {
                      FleetWatch watch{.client = client, .clock = clock, .stop = stop, .settings = settings};
                      watch.lease = lease;
                      return show_always(std::move(watch), status.form, *only, live, &out, &err);
                    });
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
        "With --watch on a terminal: Up and Down select a node, Enter explains it, q goes back and ends, ? shows all\n"
        "keys.\n"
        "Exit status: 0 fine, or the view was ended by q; 1 a node that is shown is Failed or Blocked, or the operator "
        "no\n"
        "longer runs; 2 wrong usage, or the cluster, the operator's record or policies, or objects of the device "
        "plugins\n"
        "cannot be read.\n"
        "Ctrl-C ends --watch with the status of the last view. A stopped rollout does not count here: `rollout "
        "status`\n"
        "ends with 1 then.");
  };
  return {.name = "status",
          .summary = "State of every GPU node, read from the live cluster",
          .describe = describe,
          .run = [status](const Invocation& i) { return run_status(*status, i.options, i.out, i.err); },
          .names_unknown_variables = true};
}

}  // namespace gso
