// Manifests or a live cluster to World to plan to text or JSON.
#include "controller/commands/commands.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "controller/commands/shared/command.h"
#include "controller/commands/shared/session.h"
#include "controller/reading/input_file.h"
#include "controller/writes/schedule.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/registry.h"

namespace gso {
namespace {

constexpr std::string_view kPlanCommand = "gpu-sharing-operator plan";

// Timers appear one after another (settled, then soaking), so crediting them is repeated until no new one shows.
Plan plan_with_credit(const ClusterView& view, const PlanOptions& options, WallTime now) {
  PlannerSettings settings = options.settings;
  settings.kai.explain_all = true;
  constexpr int kMostRounds = 8;
  Timers timers;
  const WallTime since = now - std::chrono::duration_cast<std::chrono::milliseconds>(options.assume_observed_for);
  Plan plan;
  for (int round = 0; round < kMostRounds; ++round) {
    FleetIndex index;
    const Snapshot snapshot{view.world, now, timers, view.consumers, settings, nullptr, true};
    plan = plan_all(snapshot, index, {.only = options.only, .synced = was_read(view.world)});
    if (options.assume_observed_for <= Duration::zero()) break;
    bool fresh = false;
    for (const TimerKey& timer : plan.timers) {
      const auto stored = plan.timer_starts.find(timer);
      const bool counts = is_of_stored_time(timer.timer) && stored != plan.timer_starts.end();
      fresh = timers.emplace(timer, counts ? stored->second : since).second || fresh;
    }
    if (!fresh) break;
  }
  return plan;
}

void print_json(const Plan& plan, std::ostream& out) {
  const auto as_json = [](const auto& value) { return to_json(value); };
  const nlohmann::ordered_json document{{"actions", json_list(plan.actions, as_json)},
                                        {"findings", json_list(plan.findings, as_json)}};
  print_document(document, OutputForm::json, out);
}

// "2 nodes wait: Settling: nodes start at …", the waits of most nodes first. Empty: no node waits.
std::string waits_of(const ClusterView& view, const PlanOptions& options, WallTime now) {
  FleetIndex index;
  index.refresh(view.world, options.settings);
  const Snapshot snapshot{view.world, now, kNoTimers, view.consumers, options.settings};
  ReadingPass pass(snapshot, index);
  std::map<std::string, std::int64_t> nodes;
  for (const std::string& name : index.node_names()) {
    if (phase_of(*index.assessment(name)) != Phase::pending) continue;
    ++nodes[shown_state(pass, *view.world.nodes.find(name)).message];
  }
  std::vector<std::pair<std::string, std::int64_t>> sorted(nodes.begin(), nodes.end());
  std::ranges::stable_sort(sorted, std::greater(), &std::pair<std::string, std::int64_t>::second);
  std::vector<std::string> out;
  for (const auto& [wait, count] : sorted)
    out.push_back(
        fmt::format("{} wait{}{}{}", counted(count, "node"), count == 1 ? "s" : "", wait.empty() ? "" : ": ", wait));
  return fmt::format("{}", fmt::join(out, "; "));
}

// What is said where the operator would do nothing.
std::string nothing_text(const ClusterView& view, const PlanOptions& options, WallTime now) {
  if (!unread_decisions(view.world, options.settings).empty()) return "Nothing is planned from what could not be read.";
  const bool rollouts = options.only.empty() || options.only == kSharingRollout;
  const std::string waits = rollouts ? waits_of(view, options, now) : std::string();
  return waits.empty() ? "No action needed." : fmt::format("Nothing to do now; {}", waits);
}

// A status or an annotation is a kilobyte of JSON, which `-o json` has: "{…}".
std::string without_objects(std::string_view line) {
  std::string out;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (depth > 0 && c == '"') quoted = !quoted;
    if (quoted && c == '\\') ++i;
    if (!quoted && c == '{' && depth++ == 0) out += "{…}";
    if (depth == 0) out += c;
    if (!quoted && c == '}' && depth > 0) --depth;
  }
  return out;
}

// `nothing`: what is said without actions.
void print_text(const Plan& plan, const std::string& nothing, std::ostream& out) {
  if (plan.actions.empty()) print_line(out, "{}", nothing);
  for (const PlannedAction& action : plan.actions)
    out << (std::holds_alternative<RecordEvent>(action.action) ? print(action) : without_objects(print(action)))
        << "\n";
  for (const Finding& finding : plan.findings) {
    print_line(out, "{}: {} {}: {}: {}", to_string(finding.severity), finding.object.kind,
               shown_value(k8s::to_string(ObjectKey{finding.object.ns, finding.object.name})), finding.why.code,
               finding.why.message);
  }
  if (plan.requeue_after) out << "Next check in " << k8s::format_go_duration(*plan.requeue_after) << ".\n";
}

// Prints the plan; exit status 1 with an error among its findings.
int show_plan(const ClusterView& view, const PlanOptions& options, WallTime now, std::ostream& out) {
  Plan plan = plan_with_credit(view, options, now);
  plan.actions = in_execution_order(std::move(plan.actions));
  if (options.json)
    print_json(plan, out);
  else
    print_text(plan, plan.actions.empty() ? nothing_text(view, options, now) : std::string(), out);
  return std::ranges::find(plan.findings, Severity::error, &Finding::severity) != plan.findings.end() ? 1 : 0;
}

int plan_files(const PlanOptions& options, WallTime now, std::istream& in, std::ostream& out, std::ostream& err) {
  const k8s::Result<std::vector<ManifestFile>> files = read_files(options.files, in);
  if (!files) return refuse(err, kPlanCommand, files.error().message);
  std::vector<std::string> ignored;
  const k8s::Result<ClusterView> view = view_of(*files, now, options.settings, &ignored);
  if (!view) return refuse_manifests(err, kPlanCommand, view.error());
  const int code = show_plan(*view, options, now, out);
  for (const std::string& what : ignored)
    if (!options.json) print_line(err, "ignored: {}", what);
  return code;
}

}  // namespace

boost::asio::awaitable<int> plan_cluster(k8s::Reader* client, k8s::Clock* clock, PlanOptions options, std::ostream* out,
                                         std::ostream* err) {
  ClusterView view;
  view.now = k8s::parse_rfc3339(options.now).value_or(WallTime());
  const k8s::Result<void> read = co_await read_cluster(client, clock, options.settings, &view);
  if (!read) co_return refuse(*err, kPlanCommand, read.error().message);
  const k8s::ObjectKey lease{options.settings.operator_namespace, options.lease_name};
  view.presence = co_await find_operator(client, clock, lease, &view.incomplete);
  note_record_elsewhere(view.presence.none, options.settings, &view.world, &view.incomplete);
  if (view.presence.none) print_line(*err, "{}", view.presence.none->text());
  for (const std::string& missing : view.incomplete) print_line(*err, "incomplete: {}", missing);
  const int code = show_plan(view, options, view.now, *out);
  const std::string unknown = coverage_gap(view.world, options.settings);
  if (unknown.empty()) co_return code;
  print_line(*err, "{}", unknown);
  co_return code == 0 ? 2 : code;
}

int run_plan(const PlanOptions& options, const Options& connection, std::istream& in, std::ostream& out,
             std::ostream& err) {
  std::vector<std::string_view> known;
  for (const Reconciler& reconciler : reconcilers()) known.push_back(reconciler.name);
  if (!options.only.empty() && std::ranges::find(known, options.only) == known.end())
    return refuse(err, kPlanCommand,
                  fmt::format("--only {}: unknown reconciler; choose one of {}", options.only, fmt::join(known, ", ")));
  const std::optional<WallTime> now = options.now.empty() ? present() : k8s::parse_rfc3339(options.now);
  if (!now)
    return refuse(err, kPlanCommand,
                  fmt::format("--now '{}' is not a time; write it like 2026-01-02T03:04:05Z", options.now));
  if (!options.from_cluster) return plan_files(options, *now, in, out, err);
  return run_on_cluster("plan", connection, err, [&](k8s::Reader* client, k8s::Clock* clock) {
    return plan_cluster(client, clock, options, &out, &err);
  });
}

namespace {

void describe_plan(CLI::App& app, OptionFlags& settings, PlanOptions& given) {
  CLI::Option* files =
      app.add_option("FILE", given.files, "Files or folders with manifests as YAML or JSON, or - for stdin");
  app.add_flag("--from-cluster", given.from_cluster, "The live cluster instead of files; it is only read")
      ->excludes(files);
  app.add_option("--now", given.now, "Plan for this time, RFC 3339 (default: now)")->type_name("TIME");
  app.add_option("--assume-observed-for", given.observed_for_text, "Treat observed conditions as already this old")
      ->type_name("DURATION");
  app.add_option("--only", given.only, "Limit the plan to one reconciler")->type_name("RECONCILER");
  app.footer(exit_status_of_findings() +
             "\n"
             "A node that cannot be changed now (blocked, drifted, busy) is a warning and does not change the exit "
             "status; a mistake that would leave a node without GPUs is an error.\n"
             "Files without any manifest are unreadable; an empty List is a cluster without such objects.");
  add_output(app, given.json);
  settings.add_config_to(&app);
  add_connection(app, settings);
  settings.add_to(&app, [](const OptionSpec& spec) { return spec.planned_by; });
}

k8s::Result<void> check_plan(PlanOptions& given, const Options& options) {
  if (given.files.empty() && !given.from_cluster)
    return k8s::fail(k8s::Reason::invalid, "plan needs FILE, or --from-cluster");
  given.settings = options.planner_settings();
  given.lease_name = options.lease_name;
  return read_any_duration("--assume-observed-for", given.observed_for_text, "10m", given.assume_observed_for);
}

}  // namespace

Subcommand make_plan_command() {
  const auto given = std::make_shared<PlanOptions>();
  return {.name = "plan",
          .summary = "What the operator would do now, over manifests or the live cluster (a dry run)",
          .describe = [given](CLI::App& app, OptionFlags& settings) { describe_plan(app, settings, *given); },
          .check = [given](const Options& options) { return check_plan(*given, options); },
          .run = [given](const Invocation& i) { return run_plan(*given, i.options, i.in, i.out, i.err); },
          .names_unknown_variables = true};
}

}  // namespace gso
