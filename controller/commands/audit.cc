// One page: the objects found, their problems, and where they are.
#include "controller/commands/commands.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>

#include "controller/commands/shared/command.h"
#include "controller/commands/shared/session.h"
#include "controller/reading/input_file.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/explain/audit.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/what_if.h"
#include "reconcilers/fleet/fleet_index.h"

namespace gso {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kAuditCommand = "gpu-sharing-operator audit";
// Of the JSON document (docs/json.md): it changes when a field changes its meaning or goes, not when one comes.
constexpr int kAuditVersion = 1;

// Those of most nodes first: "a on 11, b on 1"; the rest is counted.
std::string sums(const std::map<std::string, std::int64_t>& counts) {
  std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::greater(), &std::pair<std::string, std::int64_t>::second);
  std::vector<std::string> out;
  for (const auto& [name, count] : std::span(sorted).first(std::min(sorted.size(), kMostNames)))
    out.push_back(fmt::format("{} on {}", name.empty() ? "none" : shown_value(name), count));
  const std::size_t more = sorted.size() - out.size();
  return sorted.empty() ? "none"
                        : fmt::format("{}{}", fmt::join(out, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string name_of(const ObjectRef& object) {
  if (object.name.empty()) return object.kind;
  const std::string name = shown_value(object.ns.empty() ? object.name : object.ns + "/" + object.name);
  return object.kind == "Node" ? name : object.kind + " " + name;
}

std::vector<std::string> names_of(const std::vector<ObjectRef>& objects) {
  std::vector<std::string> out;
  for (const ObjectRef& object : objects) out.push_back(name_of(object));
  return out;
}

std::string lost_text(const AuditProblem& problem) {
  if (problem.gpus_lost == 0) return {};
  // The other nodes of the problem still serve their GPUs.
  const auto nodes = static_cast<std::size_t>(std::ranges::count(problem.objects, "Node", &ObjectRef::kind));
  return fmt::format(" ({} unusable{})", counted(problem.gpus_lost, "GPU"),
                     problem.lost_on.size() < nodes ? " on " + first_names(problem.lost_on) : "");
}

// `assumed` and `operator_lease`: as for state_note().
void print_problems(const std::vector<AuditProblem>& problems, bool assumed, std::string_view operator_lease,
                    std::ostream& out) {
  std::vector<std::string> quiet;
  for (const AuditProblem& problem : problems) {
    if (needs_no_action(problem.severity, problem.reason.code) && problem.gpus_lost == 0 && problem.pods.empty()) {
      quiet.push_back(problem.reason.code);
      continue;
    }
    print_line(out << '\n', "{} {}{}: {}", to_string(problem.severity), problem.reason.code, lost_text(problem),
               problem.reason.message);
    print_line(out, "    {}", first_names(names_of(problem.objects)));
    for (const std::string& pod : std::span(problem.pods).first(std::min(problem.pods.size(), kMostNames)))
      print_line(out, "    {}", shown_message(pod));
    if (problem.pods.size() > kMostNames) print_line(out, "    and {} more pods", problem.pods.size() - kMostNames);
    if (const std::string note = state_note(problem.reason.code, assumed, operator_lease); !note.empty())
      print_line(out, "    {}", note);
    for (const std::string& remedy : problem.cure.options) print_line(out, "    to do: {}", remedy);
    if (!problem.cure.command.empty()) print_line(out, "    {}", problem.cure.command.text());
  }
  if (!quiet.empty()) print_line(out << '\n', "{}", no_action_text(std::move(quiet)));
}

OrderedJson to_json(const AuditProblem& problem) {
  OrderedJson objects = OrderedJson::array();
  for (const ObjectRef& object : problem.objects)
    objects.push_back({{"kind", object.kind}, {"namespace", object.ns}, {"name", object.name}});
  return {{"severity", to_string(problem.severity)},
          {"reason", problem.reason.code},
          {"message", problem.reason.message},
          {"gpusUnusable", problem.gpus_lost},
          {"objects", std::move(objects)},
          {"pods", problem.pods},
          {"remedy", problem.cure.options.empty() ? std::string() : problem.cure.options.front()},
          {"command", problem.cure.command.text()}};
}

// "errors", "warnings" and "infos", each by `count`.
template <class Count>
OrderedJson by_severity(Count count) {
  return {{"errors", count(Severity::error)}, {"warnings", count(Severity::warning)}, {"infos", count(Severity::info)}};
}

OrderedJson document_of(const Audit& audit, const FleetIndex& index, const ClusterView& view) {
  OrderedJson findings = OrderedJson::array();
  for (const Finding& finding : audit.findings) {
    findings.push_back(to_json(finding));
    findings.back()["remedy"] = remedy_here(view.world, index.impl(), finding.why.code, finding.object);
  }
  OrderedJson problems = OrderedJson::array();
  for (const AuditProblem& problem : audit.problems) problems.push_back(to_json(problem));
  OrderedJson summary = by_severity([&](Severity severity) { return audit.objects(severity); });
  summary["problems"] = by_severity([&](Severity severity) { return audit.count(severity); });
  OrderedJson gpus{
      {"total", audit.gpus.total}, {"unusable", audit.gpus.lost}, {"uncountedNodes", audit.uncounted.size()}};
  if (audit.gpus.mig_slices > 0) gpus["migSlices"] = audit.gpus.mig_slices;
  return {{"version", kAuditVersion},
          {"operator", view.presence.none ? view.presence.none->field() : ""},
          {"nodes", audit.nodes},
          {"gpus", std::move(gpus)},
          {"pods", {{"cannotRun", audit.cannot_run}, {"waiting", audit.waiting}}},
          {"plugins", audit.plugins},
          {"profiles", audit.profiles},
          {"summary", std::move(summary)},
          {"problems", std::move(problems)},
          {"findings", std::move(findings)},
          {"incomplete", view.incomplete}};
}

// What could not be read, what there is, how much of it cannot be used, and how many problems there are, whatever
// number of objects they have.
void print_heading(const Audit& audit, const ClusterView& view, std::ostream& out) {
  const std::string_view least = audit.uncounted.empty() ? "" : "at least ";
  if (view.presence.none) print_line(out, "{}", view.presence.none->text());
  for (const std::string& missing : view.incomplete) print_line(out, "incomplete: {}", missing);
  // A MIG slice counts like a card: there are fewer cards than devices.
  const std::int64_t slices = audit.gpus.mig_slices;
  const std::string_view noun = slices > 0 ? "GPU device" : "GPU";
  print_line(out, "{} with {}{}{}: plugin {}; profile {}", counted(audit.nodes, "GPU node"), least,
             counted(audit.gpus.total, noun), slices > 0 ? fmt::format(" ({} of them MIG slices)", slices) : "",
             sums(audit.plugins), sums(audit.profiles));
  if (!audit.uncounted.empty()) {
    print_line(out,
               "the number of GPUs is not known of {}: no label, annotation or record counts them, and the profile "
               "that the plugin runs there is not known. Each counts as one GPU",
               first_names(audit.uncounted));
  }
  if (audit.gpus.lost > 0)
    print_line(out, "{} of {}{} {}s cannot be used by any pod", audit.gpus.lost, least, audit.gpus.total, noun);
  print_line(out, "{}, {}, {}", counted(audit.count(Severity::error), "error"),
             counted(audit.count(Severity::warning), "warning"), counted(audit.count(Severity::info), "info"));
}

// The first of the problems: while it lasts, none of the others is repaired.
void add_stopped_operator(const NoOperator& stopped, Audit& audit) {
  const ObjectRef lease{"coordination.k8s.io/v1", "Lease", stopped.lease.ns, stopped.lease.name, ""};
  const Reason reason{"OperatorNotRunning", stopped.why + ": no node is changed or repaired until an operator runs"};
  audit.findings.insert(audit.findings.begin(), {Severity::error, lease, reason});
  AuditProblem problem{.severity = Severity::error, .reason = reason, .objects = {lease}};
  problem.cure.command = {fmt::format("kubectl get deployments,pods --namespace {}", stopped.lease.ns)};
  audit.problems.insert(audit.problems.begin(), std::move(problem));
}

}  // namespace

int audit_view(ClusterView& view, const PlannerSettings& given, OutputForm form, std::ostream& out) {
  FleetIndex index;
  PlannerSettings settings = settings_of_operator(view.world, given);
  const bool assumed = assume_baseline(view.world, index, settings, view.now);
  if (assumed) {
    // No operator has ever run here: nothing writes what only the operator would write.
    settings.label_mode = PlannerSettings::LabelMode::verify;
    index.note_everything_changed();
  }
  const Snapshot snapshot{view.world, view.now, kNoTimers, view.consumers, settings};
  // A Lease that does not exist proves nothing where the operator's record could not be read: it is in another
  // namespace.
  const bool stopped = view.presence.none && (view.presence.none->was_running || !record_unread(view.world, settings));
  Audit found = audit(snapshot, index, !stopped, view.unstarted);
  if (view.presence.none && view.presence.none->was_running) add_stopped_operator(*view.presence.none, found);
  const std::int64_t errors = found.count(Severity::error);
  const std::string unknown = coverage_gap(view.world, settings);
  const int code = errors > 0 ? 1 : unknown.empty() ? 0 : 2;
  if (form == OutputForm::json || form == OutputForm::yaml) {
    print_document(document_of(found, index, view), form, out);
    return code;
  }
  std::ostringstream text;
  print_heading(found, view, text);
  if (!unknown.empty()) print_line(text, "{}.", unknown);
  if (assumed) print_line(text, "{}.", assumed_baseline_text(view.presence.running));
  print_problems(found.problems, assumed, view.presence.running, text);
  out << wrapped_prose(text.str(), screen_of_stdout().columns);
  return code;
}

boost::asio::awaitable<int> audit_cluster(k8s::Reader* client, k8s::Clock* clock, AuditOptions audit,
                                          PlannerSettings settings, std::ostream* out, std::ostream* err) {
  ClusterView view;
  const k8s::Result<void> read = co_await read_cluster(client, clock, settings, &view);
  if (!read) co_return refuse(*err, kAuditCommand, read.error().message);
  const k8s::ObjectKey lease{settings.operator_namespace, audit.lease_name};
  view.presence = co_await find_operator(client, clock, lease, &view.incomplete);
  note_record_elsewhere(view.presence.none, settings, &view.world, &view.incomplete);
  co_return audit_view(view, settings, audit.form, *out);
}

namespace {

int run_audit(const AuditOptions& audit, const Options& options, std::istream& in, std::ostream& out,
              std::ostream& err) {
  const PlannerSettings settings = options.planner_settings();
  if (!audit.files.empty()) {
    const k8s::Result<std::vector<ManifestFile>> files = read_files(audit.files, in);
    if (!files) return refuse(err, kAuditCommand, files.error().message);
    k8s::Result<ClusterView> view = view_of(*files, present(), settings);
    if (!view) return refuse_manifests(err, kAuditCommand, view.error());
    view->presence.none = no_operator_among(view->leases, {settings.operator_namespace, options.lease_name});
    return audit_view(*view, settings, audit.form, out);
  }
  return run_on_cluster("audit", options, err, [&](k8s::Reader* client, k8s::Clock* clock) {
    return audit_cluster(client, clock, {.form = audit.form, .lease_name = options.lease_name}, settings, &out, &err);
  });
}

}  // namespace

Subcommand make_audit_command() {
  const auto audit = std::make_shared<AuditOptions>();
  const auto describe = [audit](CLI::App& app, OptionFlags& settings) {
    add_manifests(app, audit->files);
    add_output(app, audit->form, {"text", "json", "yaml"});
    add_mps_user(app, settings);
    add_connection(app, settings);
    app.footer(
        "Reads only; the operator need not be installed. Reports nodes whose GPUs no pod can get, drift, invalid "
        "profiles, stopped rollouts, other tools that restart the plugin or hand out its GPUs, defects of the plugin's "
        "release and reservations without consumers: the problems that cost most GPUs first.\n" +
        exit_status_of_findings());
  };
  return {.name = "audit",
          .summary = "What is wrong with GPU sharing in the cluster, on one page",
          .describe = describe,
          .run = [audit](const Invocation& i) { return run_audit(*audit, i.options, i.in, i.out, i.err); },
          .names_unknown_variables = true};
}

}  // namespace gso
