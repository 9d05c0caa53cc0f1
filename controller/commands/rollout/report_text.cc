// Text, lines and JSON of a FleetReport.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "controller/commands/rollout/rollout.h"
#include "controller/commands/shared/print.h"
#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/gates.h"

namespace gso {

using OrderedJson = nlohmann::ordered_json;

namespace {

constexpr int kBarWidth = 24;
// Behind what an operator reported last, which can name a time at which nodes start.
constexpr std::string_view kNothingStarts = "; no node starts until an operator runs";

// ", about 2m to go", or what nobody can foretell.
std::string foretell(const RolloutReport& report, k8s::WallTime now) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> waits = waits_for_workloads(report.facts);
  if (!waits.empty()) {
    const std::size_t rest = waits.size() > kNamed ? waits.size() - kNamed : 0;
    waits.resize(waits.size() - rest);
    return fmt::format(", waiting for workloads on {}{}", fmt::join(waits, ", "),
                       rest > 0 ? fmt::format(" and {} more", rest) : "");
  }
  const auto lost = std::ranges::find(report.steps, false, &NodeStep::ready);
  if (lost != report.steps.end()) return fmt::format(", waiting for node {} to be Ready", lost->node);
  const auto end = k8s::parse_rfc3339(report.estimate);
  return end && *end > now ? ", ETA " + about(*end - now) : std::string();
}

// Since when a rollout that is paused or has stopped has started no node. Who set the switch is in no status. A
// condition keeps its time when its reason changes: where nodes have failed, it can be that of the failure before the
// pause. The record of an earlier attempt keeps the times of that one.
std::string since_stop(const RolloutFacts& facts, k8s::WallTime now) {
  const auto since = k8s::parse_rfc3339(facts.stopped_since);
  const std::string phase = facts.shown_phase();
  const bool paused = phase == reason_of(Gate::paused);
  if (!since || *since > now || facts.earlier_attempt || (paused && facts.failed > 0)) return {};
  if (!paused && phase != "Stopped" && !facts.stands()) return {};
  return fmt::format("; no node starts since {} ({} ago)", facts.stopped_since, about(now - *since));
}

// Nodes with the reasons that a status names, then those in a change with their steps, each node once. Nothing, if
// there are none.
void print_node_table(const std::vector<RolloutFacts::NodeRow>& nodes, const std::vector<NodeStep>& steps,
                      std::ostream& out) {
  std::vector<TextRow> rows{{"  NODE", "STATE", "REASON", "MESSAGE"}};
  for (const auto& node : nodes) rows.push_back({"  " + node.name, node.state, node.why.code, node.why.message});
  for (const NodeStep& step : steps)
    if (std::ranges::find(nodes, step.node, &RolloutFacts::NodeRow::name) == nodes.end())
      rows.push_back({"  " + step.node, std::string(to_string(step.phase)), "-", step.step});
  if (rows.size() > 1) print_table(rows, out);
}

void print_ways(const std::vector<std::string>& held, const std::vector<Command>& next, std::ostream& out) {
  for (const std::string& hold : held) print_line(out, "  held: {}", hold);
  for (const Command& command : next) print_line(out, "  next: {}", command.text());
}

// The stop that no status shows yet, else the phase.
std::string standing_text(const FleetReport& fleet, const RolloutReport& report, k8s::WallTime now) {
  const RolloutFacts& facts = report.facts;
  if (!report.replaced_by.empty())
    return fmt::format("{} (as last reported; its nodes should run {} now, and no operator has seen that)",
                       facts.phase_text(), report.replaced_by);
  if (!report.stop.is_set()) return facts.phase_text() + since_stop(facts, now);
  return fmt::format("{} (recorded; {} operator applies it)", report.stop.phase, fleet.has_operator ? "the" : "an");
}

void print_rollout(const FleetReport& fleet, const RolloutReport& report, k8s::WallTime now, std::ostream& out) {
  const RolloutFacts& facts = report.facts;
  const SharingRollout& rollout = *facts.rollout;
  const bool goes_on = !facts.finished() && !report.stop.is_set();
  const bool is_replaced = !report.replaced_by.empty();
  print_line(out, "{}: {}", rollout.meta.name, standing_text(fleet, report, now));
  print_line(out, "  {} {} to {} under policy {}", facts.finished() ? "Rollout of" : "Rolling out",
             describe_subject(rollout.config_map, rollout.key), rollout.to_revision, rollout.policy);
  if (!report.after.empty()) print_line(out, "  Begun {}", report.after);
  const std::string& since = report.since_completion;
  out << fmt::format("  {}{}{}{}\n", counts_text(facts), fleet.nodes_unread || is_replaced ? ", as last reported" : "",
                     facts.finished()  ? ""
                     : facts.wave == 0 ? "; canary"
                                       : fmt::format("; wave {}", facts.wave),
                     since.empty() ? "" : "; " + since);
  // A message of before the stop might name the next start.
  if (!facts.ready.message.empty() && !report.stop.is_set() && !is_replaced) {
    const bool stale = goes_on && !fleet.has_operator;
    print_line(out, "  {}{}: {}{}", stale ? "Last reported: " : "", facts.ready.code,
               shown_message(facts.ready.message), stale ? kNothingStarts : "");
  }
  if (!report.failures.empty()) print_line(out, "  {}: {}", kMaxFailures, report.failures);
  const auto started = k8s::parse_rfc3339(facts.started_at);
  if (started && goes_on && fleet.has_operator)
    print_line(out, "  {}",
               facts.advances() && !facts.stands()
                   ? fmt::format("Running {}{}", about(now - *started), foretell(report, now))
                   : fmt::format("Started {} ago", about(now - *started)));
  print_node_table(report.rows, report.steps, out);
  std::vector<Command> next = report.next;
  std::erase(next, report.said_by_its_policy);
  print_ways(report.held, next, out);
}

void print_wait(const PolicyWait& wait, bool has_operator, std::ostream& out) {
  const std::int64_t more = wait.count - std::ssize(wait.nodes);
  const std::string nodes = wait.nodes.empty() ? ""
                                               : fmt::format(" ({}{})", fmt::join(wait.nodes, ", "),
                                                             more > 0 ? fmt::format(" and {} more", more) : "");
  const std::string reason = wait.why.code == kRollingOut ? "" : fmt::format("{}{}: ", wait.why.code, nodes);
  const std::string_view stale = has_operator                                 ? ""
                                 : wait.why.code == kRollingOut               ? "last reported: "
                                 : wait.why.code == reason_of(Gate::settling) ? "if an operator runs, "
                                                                              : "";
  const bool promises = wait.why.code == kRollingOut || wait.why.code == reason_of(Gate::outside_window);
  print_line(out, "policy {} waits: {}{}{}{}{}", wait.policy, reason, wait.news, stale, shown_message(wait.why.message),
             !has_operator && promises ? kNothingStarts : "");
  if (!wait.runs.empty()) print_line(out, "  {}", wait.runs);
  print_node_table({}, wait.steps, out);
  print_ways(wait.held, wait.next, out);
  if (wait.goes_on() && wait.next.empty())
    print_line(out, "  to stop it: gpu-sharing-operator rollout pause policy/{}", wait.policy);
}

void print_left_failed(const LeftFailed& failed, std::ostream& out) {
  const std::size_t count = failed.nodes.size();
  print_line(out, "policy {}: {} failed, and {} not tried again", failed.policy, counted(count, "node"),
             count == 1 ? "is" : "are");
  std::vector<RolloutFacts::NodeRow> rows = failed.nodes;
  rows.resize(std::min(count, kMostListedSteps));
  print_node_table(rows, {}, out);
  if (count > kMostListedSteps) print_line(out, "  and {} more", count - kMostListedSteps);
  print_ways({}, failed.next, out);
}

}  // namespace

std::string about(k8s::Duration duration) {
  using namespace std::chrono;
  const auto total = duration_cast<seconds>(duration).count();
  const auto hours = total / 3600;
  if (total < 60) return fmt::format("{}s", std::max<std::int64_t>(0, total));
  if (total < 120) return fmt::format("{}m{}s", total / 60, total % 60);
  if (total < 7200) return fmt::format("{}m", total / 60);
  if (hours < 48) return fmt::format("{}h{}m", hours, total / 60 % 60);
  return hours < 240 ? fmt::format("{}d{}h", hours / 24, hours % 24) : fmt::format("{}d", hours / 24);
}

std::string progress_bar(std::int64_t done, std::int64_t total) {
  const std::int64_t filled = total <= 0 ? 0 : std::clamp<std::int64_t>(done * kBarWidth / total, 0, kBarWidth);
  return "[" + std::string(static_cast<std::size_t>(filled), '#') +
         std::string(static_cast<std::size_t>(kBarWidth - filled), '.') + "]";
}

std::string counts_text(const RolloutFacts& facts) {
  const std::string done =
      fmt::format("{} {}/{} up to date", progress_bar(facts.updated, facts.total), facts.updated, facts.total);
  const std::string others =
      fmt::format("{} in progress, {} pending, {} blocked", facts.in_progress, facts.pending, facts.blocked);
  // A narrow terminal cuts the end off.
  return facts.failed > 0 ? fmt::format("{}, {} failed, {}", done, facts.failed, others)
                          : fmt::format("{}, {}, 0 failed", done, others);
}

void print_report(const FleetReport& report, k8s::WallTime now, std::ostream& out) {
  for (const RolloutReport& rollout : report.rollouts) print_rollout(report, rollout, now, out);
  // Nodes can be in a change although the rollout of their change has ended: another one takes its place.
  const bool goes_on =
      std::ranges::any_of(report.waiting, [](const PolicyWait& wait) { return wait.goes_on() || !wait.steps.empty(); });
  if (report.rollouts.empty() && !goes_on) out << "No rollout is in progress.\n";
  for (const PolicyWait& wait : report.waiting) print_wait(wait, report.has_operator, out);
  for (const LeftFailed& failed : report.failed) print_left_failed(failed, out);
  for (const FleetReport::Note& note : report.notes) {
    print_line(out, "{}", note.text);
    print_line(out, "  next: {}", note.next.text());
  }
}

std::string wait_line(const PolicyWait& wait) {
  return fmt::format("policy {} waits ({}): {}", wait.policy, wait.why.code, wait.why.message);
}

std::vector<std::string> progress_lines(const FleetReport& report) {
  constexpr std::size_t kMostSteps = 3;
  std::vector<std::string> out;
  for (const RolloutReport& one : report.rollouts) {
    const RolloutFacts& facts = one.facts;
    if (facts.finished()) continue;
    std::vector<std::string> steps;
    for (std::size_t i = 0; i < std::min(one.steps.size(), kMostSteps); ++i)
      steps.push_back(fmt::format("{} {}", one.steps[i].node, to_string(one.steps[i].phase)));
    const std::int64_t more = facts.in_progress - std::ssize(steps);
    if (!steps.empty() && more > 0) steps.push_back(fmt::format("{} more", more));
    out.push_back(fmt::format(
        "{}: {}{}: {}/{} up to date, {} in progress{}, {} pending, {} blocked, {} failed", facts.rollout->meta.name,
        facts.shown_phase(), facts.ready.code.empty() ? "" : " (" + facts.ready.code + ")", facts.updated, facts.total,
        facts.in_progress, steps.empty() ? std::string() : fmt::format(" ({})", fmt::join(steps, ", ")), facts.pending,
        facts.blocked, facts.failed));
  }
  for (const PolicyWait& wait : report.waiting) out.push_back(wait_line(wait));
  return out;
}

std::string waited_for(const std::string& name) {
  if (name.empty()) return "all rollouts";
  const std::optional<std::string> policy = policy_of(name);
  return policy ? "policy " + *policy : "rollout " + name;
}

OrderedJson rollout_json(const RolloutFacts& facts) {
  const SharingRollout& rollout = *facts.rollout;
  const auto node_row_json = [](const RolloutFacts::NodeRow& node) -> OrderedJson {
    return {{"name", node.name}, {"state", node.state}, {"reason", node.why.code}, {"message", node.why.message}};
  };
  const bool of_template = !daemonset_of(rollout.config_map).empty();
  return {{"name", rollout.meta.name},
          {"policy", rollout.policy},
          {"configMap", of_template ? "" : rollout.config_map},
          {"daemonSet", daemonset_of(rollout.config_map)},
          {"key", rollout.key},
          {"toRevision", rollout.to_revision},
          {"phase", facts.phase},
          {"reason", facts.ready.code},
          {"message", facts.ready.message},
          {"paused", rollout.paused},
          {"approved", rollout.approved},
          {"aborted", rollout.aborted},
          {"undone", facts.undone()},
          {"wave", facts.wave},
          {"counts",
           {{"total", facts.total},
            {"updated", facts.updated},
            {"inProgress", facts.in_progress},
            {"pending", facts.pending},
            {"blocked", facts.blocked},
            {"failed", facts.failed}}},
          {"startedAt", facts.started_at},
          {"completedAt", facts.completed_at},
          {"nodes", json_list(facts.nodes, node_row_json)},
          {"profile", rollout.profile}};
}

namespace {

OrderedJson texts_of(const std::vector<Command>& commands) {
  return json_list(commands, [](const Command& command) { return command.text(); });
}

OrderedJson report_json_of(const RolloutReport& report) {
  OrderedJson out = rollout_json(report.facts);
  out["estimatedCompletion"] = report.estimate;
  out["inProgress"] = json_list(
      report.steps, [](const NodeStep& step) -> OrderedJson { return {{"name", step.node}, {"step", step.step}}; });
  out["next"] = texts_of(report.next);
  out["after"] = report.after;
  return out;
}

OrderedJson wait_json(const PolicyWait& wait) {
  return {{"policy", wait.policy},
          {"reason", wait.why.code},
          {"message", wait.news + wait.why.message},
          {"nodes", wait.nodes},
          {"count", wait.count}};
}

OrderedJson failed_json(const LeftFailed& failed) {
  const auto row_json = [](const RolloutFacts::NodeRow& row) -> OrderedJson {
    return {{"name", row.name}, {"message", row.why.message}};
  };
  return {{"policy", failed.policy}, {"nodes", json_list(failed.nodes, row_json)}, {"next", texts_of(failed.next)}};
}

}  // namespace

OrderedJson report_json(const FleetReport& report, const std::string& operator_field,
                        const std::vector<std::string>& incomplete) {
  return {{"version", kRolloutJsonVersion},
          {"operator", operator_field},
          {"rollouts", json_list(report.rollouts, report_json_of)},
          {"waiting", json_list(report.waiting, wait_json)},
          {"failed", json_list(report.failed, failed_json)},
          {"incomplete", incomplete}};
}

int show_status(RolloutCall& call) {
  const std::string& name = call.options.name;
  const k8s::WallTime now = call.clock->now();
  ReadingPass pass(call.world, call.index, call.settings, now);
  // Without a Lease in the given namespace, an operator can run in another one.
  const bool has_stopped = call.presence.none && call.presence.none->was_running;
  const FleetReport report = fleet_report(pass, name, !has_stopped);
  if (!name.empty() && report.rollouts.empty() && report.waiting.empty() && !report.names_gone) {
    if (const std::string unknown = unknown_policy(call.world, name); !unknown.empty()) return call.refuse(unknown);
    const auto any = choose(call.world, {name, true}, [](const RolloutFacts&) { return true; }, "is recorded");
    if (!any && report.failed.empty())
      return call.refuse(any.error().message + why_without_nodes(pass, policy_of(name)));
  }
  if (call.options.json) {
    const std::string field = call.presence.none ? call.presence.none->field() : "";
    print_document(report_json(report, field, call.incomplete), OutputForm::json, *call.out);
    return report.exit_status();
  }
  std::ostringstream text;
  if (call.presence.none) print_line(text, "{}", call.presence.none->text());
  print_report(report, now, text);
  *call.out << wrapped_prose(text.str(), screen_of_stdout().columns);
  return report.exit_status();
}

// --- `rollout history`: the recorded rollouts beside what the nodes should run and run now.

namespace {

bool is_newest_template(const SharingRollout& rollout, const FleetIndex& index) {
  return std::ranges::any_of(index.impl().discovery.standalone, [&](const Operand& one) {
    return daemonset_of(rollout.config_map) == k8s::to_string(one.key) && one.newest_hash == rollout.to_revision;
  });
}

// "current, 2 nodes", "1 node", "-"
std::string now_text(const HistoryEntry& entry) {
  const std::int64_t running = entry.running.value_or(0);
  std::string out = entry.current ? "current" : "";
  if (running > 0)
    out += fmt::format("{}{}", out.empty() ? "" : ", ", counted(static_cast<std::size_t>(running), "node"));
  return out.empty() ? "-" : out;
}

OrderedJson entry_json(const HistoryEntry& entry) {
  OrderedJson out = rollout_json(entry.facts);
  out["current"] = entry.current;
  out["running"] = entry.running ? OrderedJson(*entry.running) : OrderedJson();
  out["after"] = entry.after;
  return out;
}

std::vector<HistoryEntry> history_of(const World& world, const FleetIndex& index,
                                     const std::vector<RolloutFacts>& rollouts) {
  const bool known = index.impl().record && world.unsynced_namespaces.empty();
  auto loads = known ? loaded_revisions(world, index.impl()) : std::map<RolloutKey, RevisionCounts>();
  const std::vector<RolloutFacts> all = all_rollouts(world);
  std::vector<HistoryEntry> out;
  for (const RolloutFacts& facts : rollouts) {
    const SharingRollout& rollout = *facts.rollout;
    HistoryEntry& entry = out.emplace_back(HistoryEntry{.facts = facts});
    entry.after = came_after(all, rollout);
    const bool of_template = !daemonset_of(rollout.config_map).empty();
    entry.current =
        of_template ? is_newest_template(rollout, index) : present_rollout(rollout, index.impl()) != nullptr;
    if (!known || of_template) continue;
    const RevisionCounts& of_nodes = loads[rollout_key_of(rollout)];
    const auto found = of_nodes.find(rollout.to_revision);
    entry.running = found == of_nodes.end() ? 0 : found->second;
  }
  return out;
}

}  // namespace

void print_rollout_history(const std::vector<HistoryEntry>& entries, std::size_t columns, std::ostream& out) {
  constexpr std::size_t kCounts = 9;  // "1000/1000"
  std::vector<TextRow> rows{
      {"NAME", "POLICY", "CONFIGMAP", "KEY", "REVISION", "NOW", "PHASE", "STARTED", "COMPLETED", "NODES"}};
  for (const HistoryEntry& entry : entries) {
    const RolloutFacts& facts = entry.facts;
    const SharingRollout& rollout = *facts.rollout;
    rows.push_back({rollout.meta.name, rollout.policy, rollout.config_map, or_dash(rollout.key), rollout.to_revision,
                    now_text(entry), facts.phase_text(), or_dash(facts.started_at), or_dash(facts.completed_at),
                    fmt::format("{}/{}", facts.updated, facts.total)});
  }
  if (rows.size() == 1) {
    out << "No rollout is recorded.\n";
    return;
  }
  // A revision is what `rollout undo --to-revision` takes.
  drop_columns(rows, columns, {"CONFIGMAP", "COMPLETED", "POLICY", "KEY", "STARTED", "NODES"}, kCounts);
  std::ostringstream text;
  print_table(std::move(rows), text);
  for (const HistoryEntry& entry : entries)
    if (!entry.after.empty()) print_line(text, "{}: {}", entry.facts.rollout->meta.name, entry.after);
  out << wrapped_prose(text.str(), columns);
}

namespace {

// The record of one, with the text that it rolls out, which is never broken.
void print_rollout_record(const HistoryEntry& entry, std::size_t columns, std::ostream& out) {
  const RolloutFacts& facts = entry.facts;
  print_rollout_history({entry}, columns, out);
  if (!facts.ready.message.empty()) {
    const std::string line = fmt::format("{}: {}", facts.ready.code, shown_message(facts.ready.message));
    out << wrapped_prose(one_line(line) + "\n", columns);
  }
  if (!daemonset_of(facts.rollout->config_map).empty()) return;
  out << (facts.rollout->profile.empty() ? "the text of this rollout is not recorded\n"
                                         : "\n" + facts.rollout->profile);
}

}  // namespace

int show_history(RolloutCall& call) {
  std::vector<RolloutFacts> shown = all_rollouts(call.world);
  if (!call.options.name.empty()) {
    auto chosen =
        choose(call.world, {call.options.name, true}, [](const RolloutFacts&) { return true; }, "is recorded");
    if (!chosen) return call.refuse(chosen.error().message);
    shown = *std::move(chosen);
  }
  const std::vector<HistoryEntry> entries = history_of(call.world, call.index, shown);
  if (call.options.json) {
    const OrderedJson document{{"version", kRolloutJsonVersion}, {"rollouts", json_list(entries, entry_json)}};
    print_document(document, OutputForm::json, *call.out);
  } else if (!call.options.name.empty() && !policy_of(call.options.name)) {
    print_rollout_record(entries.front(), screen_of_stdout().columns, *call.out);
  } else {
    print_rollout_history(entries, screen_of_stdout().columns, *call.out);
  }
  return 0;
}

}  // namespace gso
