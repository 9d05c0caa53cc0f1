// From the arguments to an explanation, and its text.
#include "controller/commands/commands.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>

#include "controller/commands/shared/command.h"
#include "controller/commands/shared/session.h"
#include "controller/reading/input_file.h"
#include "controller/reading/reads.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/explain/audit.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/what_if.h"
#include "reconcilers/model/resources.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/registry.h"

namespace gso {
namespace {

namespace asio = boost::asio;
using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kExplainCommand = "gpu-sharing-operator explain";

OrderedJson explanation_json(const PodExplanation& e) {
  OrderedJson causes = OrderedJson::array();
  for (const PodCause& cause : e.causes) {
    causes.push_back({{"severity", to_string(cause.severity)},
                      {"code", cause.reason.code},
                      {"message", cause.reason.message},
                      {"command", cause.cure.command.text()},
                      {"options", cause.cure.options}});
  }
  OrderedJson nodes = OrderedJson::array();
  for (const auto& verdict : e.nodes)
    nodes.push_back({{"node", verdict.node}, {"verdict", verdict.verdict}, {"code", verdict.code}});
  return {{"version", kExplanationVersion},
          {"pod", e.pod},
          {"state", e.state},
          {"asks", e.asks},
          {"requests", e.requests},
          {"client", to_json(e.client)},
          {"causes", std::move(causes)},
          {"nodes", std::move(nodes)},
          {"sharedGPUs", shared_gpus_json(e.shared_gpus)},
          {"events", e.events},
          {"beside", e.beside}};
}

void print_lines(std::string_view heading, const std::vector<std::string>& lines, std::ostream& out) {
  if (lines.empty()) return;
  print_line(out, "{}:", heading);
  for (const std::string& line : lines) print_line(out, "  {}", shown_message(line));
}

void print_shared_gpus(const std::vector<SharedGpu>& gpus, std::ostream& out) {
  std::vector<std::string> lines;
  for (const SharedGpu& gpu : gpus) lines.push_back(to_string(gpu));
  print_lines("GPUs shared by KAI", lines, out);
}

// What the node must show beside what it shows, as a table; where that is wider than the terminal, what differs has a
// line for each of the two.
void print_checks(const NodeExplanation& e, std::size_t columns, std::ostream& out) {
  if (e.rows.empty()) return;
  std::vector<TextRow> rows{{"  CHECK", "EXPECTED", "ACTUAL", ""}};
  for (const auto& row : e.rows)
    rows.push_back(
        {"  " + row.what, shown_value(row.expected), shown_value(row.observed), row.fits() ? "" : "differs"});
  const std::vector<std::string> table = table_lines(rows);
  const bool fits = std::ranges::all_of(table, [&](const std::string& line) { return columns_of(line) <= columns; });
  if (columns == 0 || fits) {
    for (const std::string& line : table) out << line << "\n";
    return;
  }
  out << "  CHECK\n";
  for (const auto& row : e.rows) {
    if (row.fits()) {
      print_line(out, "  {}   {}", row.what, shown_value(row.observed));
    } else {
      print_line(out, "  {}   differs", row.what);
      print_line(out, "    expected   {}", shown_value(row.expected));
      print_line(out, "    actual     {}", shown_value(row.observed));
    }
  }
}

}  // namespace

void print_explanation(const NodeExplanation& e, std::ostream& out, std::size_t columns) {
  print_line(out, "node {}: {}", e.node, e.shown.state);
  if (!e.shown.message.empty()) print_line(out, "  {}", shown_message(e.shown.message));
  if (const Reason& obstacle = e.obstacle; !obstacle.message.empty())
    print_line(out, "  to do{}: {}", obstacle.code.empty() ? "" : " (" + obstacle.code + ")", obstacle.message);
  std::vector<TextRow> facts;
  const auto fact = [&](std::string name, const std::string& value) {
    if (!value.empty()) facts.push_back({"  " + std::move(name), shown_value(value)});
  };
  fact("served by", e.provider);
  fact("plugin", e.plugin);
  fact("policy", e.policy + (e.policy_is_gone ? " (deleted; its last spec still applies)" : ""));
  fact("profile", e.strategy.empty() || e.profile.empty() ? e.profile : fmt::format("{} ({})", e.profile, e.strategy));
  fact(std::string(e.client.kind()), e.client.limits());
  fact("profile source", e.source);
  const bool invalid = e.target == kInvalidRevision;
  fact("running", e.loaded);
  fact("target", invalid ? "none (profile is invalid; no pod will be restarted with it)" : e.target);
  print_table(facts, out);
  print_checks(e, columns, out);
  std::vector<std::string> slices;
  for (const GpuBar& bar : e.slices) slices.push_back(to_string(bar));
  print_lines("slices (# used, - free)", slices, out);
  print_lines("notes", e.notes, out);
  print_lines("operands", e.operands, out);
  print_lines("GPU pods", e.consumers, out);
  print_shared_gpus(e.shared_gpus, out);
  const std::string headline = shown_message(e.shown.message);
  std::vector<std::string> quiet;
  for (const Finding& finding : e.findings) {
    if (needs_no_action(finding.severity, finding.why.code)) {
      quiet.push_back(finding.why.code);
      continue;
    }
    const auto known = e.remedies.find(finding.why.code);
    const bool has_remedy = known != e.remedies.end() && !known->second.empty() && known->second != e.obstacle.message;
    const bool is_headline = finding.why.message == headline || e.of_headline.contains(finding.why.message);
    if (is_headline && !has_remedy) continue;
    print_line(out, "{} {}: {}", to_string(finding.severity), finding.why.code,
               is_headline ? "see above" : finding.why.message);
    if (has_remedy) print_line(out, "  to do: {}", known->second);
  }
  print_lines("what can end the wait, and who decides it", e.options, out);
  const bool warns = std::ranges::any_of(e.findings, [](const Finding& f) { return f.severity != Severity::info; });
  if (!e.next.empty()) print_line(out, "next: {}", e.next.text());
  if (e.next.empty() && !warns) out << "No action needed\n";
  if (!quiet.empty()) print_line(out, "{}", no_action_text(std::move(quiet)));
}

namespace {

void print_explanation(const PodExplanation& e, std::ostream& out, std::size_t /*columns*/) {
  print_line(out, "pod {}: {}", e.pod, e.state);
  print_line(out, "  requests {}", e.asks.empty() ? "no GPU" : e.asks);
  if (e.client.strategy != Strategy::none) print_line(out, "  {}: {}", e.client.kind(), e.client.limits());
  for (const PodCause& cause : e.causes) {
    print_line(out, "{} {}: {}", to_string(cause.severity), cause.reason.code, cause.reason.message);
    for (const std::string& option : cause.cure.options) print_line(out, "  - {}", option);
    if (!cause.cure.command.empty()) print_line(out, "  {}", cause.cure.command.text());
  }
  print_shared_gpus(e.shared_gpus, out);
  print_lines("events", e.events, out);
  print_lines("GPU pods of its namespace", e.beside, out);
  if (e.causes.empty() && !e.asks.empty()) out << "No problem found in the objects that were read\n";
  if (e.causes.empty() && e.asks.empty() && e.pending)
    out << "The pod requests no GPU: nothing that this command reads keeps it Pending\n";
  // What is equal of many nodes is one row.
  std::vector<std::pair<std::string_view, std::vector<std::string>>> groups;
  for (const auto& verdict : e.nodes) {
    auto group = std::ranges::find(groups, verdict.verdict, &decltype(groups)::value_type::first);
    if (group == groups.end()) group = groups.insert(group, {verdict.verdict, {}});
    group->second.push_back(verdict.node);
  }
  constexpr std::size_t kMostRows = 20;
  std::vector<TextRow> rows{{"NODE", "FOR THIS POD"}};
  std::size_t more = e.nodes.size();
  for (const auto& [verdict, nodes] : std::span(groups).first(std::min(groups.size(), kMostRows))) {
    rows.push_back({first_names(nodes), std::string(verdict)});
    more -= nodes.size();
  }
  if (rows.size() > 1) print_table(rows, out);
  if (more > 0) print_line(out, "and {} (all: -o json)", counted(more, "more node"));
}

template <class Explanation>
void print(const Explanation& explanation, const ClusterView& view, OutputForm form, std::ostream& out) {
  if (form == OutputForm::json || form == OutputForm::yaml) {
    OrderedJson document = explanation_json(explanation);
    document["operator"] = view.presence.none ? view.presence.none->field() : "";
    document["incomplete"] = view.incomplete;
    print_document(document, form, out);
    return;
  }
  std::ostringstream text;
  if (view.presence.none) print_line(text, "{}", view.presence.none->text());
  const std::size_t columns = screen_of_stdout().columns;
  print_explanation(explanation, text, columns);
  for (const std::string& missing : view.incomplete) print_line(text, "incomplete: {}", missing);
  out << wrapped_prose(text.str(), columns);
}

struct Question {
  ExplainTarget target;
  std::string pod_json{};
  OutputForm form = OutputForm::text;
  PlannerSettings settings;
};

std::string no_such_node(const World& world, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [key, node] : world.nodes.all()) names.push_back(shown_value(key.name));
  std::ranges::sort(names);
  return fmt::format("node {} not found; a pod is named NAMESPACE/POD{}{}", name,
                     names.empty() ? "; no node was read" : "; nodes: " + first_names(names),
                     did_you_mean(name, names));
}

// The step of a node that only an operator carries out, where none runs, or the one that runs has recorded nothing: the
// way to one that carries it out comes first. `recorded`: an operator has recorded the fleet.
Command behind_an_operator(const ClusterView& view, bool recorded, const Command& then) {
  if (view.presence.none && (view.presence.none->was_running || recorded)) {
    // A Deployment of 0 replicas has no pod.
    return {fmt::format("kubectl get deployments,pods --namespace {}", view.presence.none->lease.ns),
            fmt::format("no operator {}; once one {}: {}", view.presence.none->was_running ? "runs" : "was seen there",
                        view.presence.none->was_running ? "does" : "runs", then.text())};
  }
  if (!view.presence.running.empty()) {
    return {fmt::format("kubectl get pods --namespace {} -o wide",
                        view.presence.running.substr(0, view.presence.running.find('/'))),
            fmt::format("{} (--max-mode, chart value modes.rollouts); once it is allowed to act and has recorded the "
                        "fleet: {}",
                        unrecorded_operator_text(view.presence.running), then.text())};
  }
  return {"helm list --all-namespaces --filter gpu-sharing-operator",
          fmt::format("no operator has recorded this fleet: install one as README.md says; once one runs: {}",
                      then.text())};
}

int answer(Question question, ClusterView& view, std::ostream& out, std::ostream& err) {
  question.settings = settings_of_operator(view.world, question.settings);
  FleetIndex index;
  const bool assumed = assume_baseline(view.world, index, question.settings, view.now);
  const Snapshot snapshot{view.world, view.now, kNoTimers, view.consumers, question.settings};
  if (question.target.pod) {
    const k8s::Result<PodExplanation> pod = explain_pod(snapshot, index, question.pod_json);
    if (!pod) return refuse(err, kExplainCommand, pod.error().message);
    print(*pod, view, question.form, out);
    if (pod->hindered()) return 1;
    return pod->lacks_nodes() ? 2 : 0;
  }
  const Plan plan = plan_all(snapshot, index, {.synced = everything_synced});
  const std::vector<Finding> findings = all_findings(snapshot, index, plan);
  std::optional<NodeExplanation> node = explain_node(snapshot, index, findings, question.target.key.name);
  if (!node) return refuse(err, kExplainCommand, no_such_node(view.world, question.target.key.name));
  if (const std::string note = state_note(node->shown.state, assumed, view.presence.running); !note.empty())
    node->notes.emplace(node->notes.begin(), note);
  if (assumed) node->notes.push_back(assumed_baseline_text(view.presence.running));
  const NodeAssessment* a = index.assessment(node->node);
  const bool in_change = a != nullptr && a->in_change();
  const bool lifts_hold = in_change && a->is_held() && node->shown.state == kHeld;
  if ((assumed || view.presence.none) && (node->next.needs_operator() || lifts_hold))
    node->next = behind_an_operator(view, !assumed, node->next);
  print(*node, view, question.form, out);
  const bool wrong = std::ranges::find(node->findings, Severity::error, &Finding::severity) != node->findings.end();
  // Nobody ends the change, and no pod gets the node's GPUs before its end.
  const bool left_mid_change = in_change && view.presence.none && (view.presence.none->was_running || !assumed);
  if (wrong || left_mid_change || node->shown.in_trouble) return 1;
  const bool unread = node->shown.state == kUnknown || !unread_decisions(view.world, question.settings).empty();
  return unread ? 2 : 0;
}

bool is_pod(std::string_view kind) {
  return kind == "pod" || kind == "pods" || kind == "po";
}
bool is_node(std::string_view kind) {
  return kind == "node" || kind == "nodes" || kind == "no";
}

// "node/NAME" and "pod/NAME", as kubectl prints them, in two words; nullopt: it is not one of them. A pod of a
// namespace of that name is `pod node/NAME`.
std::optional<std::vector<std::string>> kind_and_name(const std::vector<std::string>& what) {
  const std::size_t slash = what.size() == 1 ? what.front().find('/') : std::string::npos;
  if (slash == std::string::npos) return std::nullopt;
  const std::string kind = what.front().substr(0, slash);
  if (!is_pod(kind) && !is_node(kind)) return std::nullopt;
  return std::vector<std::string>{kind, what.front().substr(slash + 1)};
}

}  // namespace

k8s::Result<ExplainTarget> explain_target(const std::vector<std::string>& what, const std::string& ns) {
  const std::vector<std::string> words = kind_and_name(what).value_or(what);
  const auto refuse = [&] {
    constexpr std::string_view kForms = "give NODE, NAMESPACE/POD, node NAME, or pod [NAMESPACE/]NAME";
    return k8s::fail(k8s::Reason::invalid, words.empty() ? std::string(kForms)
                                                         : fmt::format("'{}' names neither a node nor a pod: {}",
                                                                       fmt::join(words, " "), kForms));
  };
  if (words.empty() || words.size() > 2) return refuse();
  const std::string& name = words.back();
  const std::size_t slash = name.find('/');
  const bool has_kind = words.size() == 2;
  const bool pod = has_kind ? is_pod(words.front()) : slash != std::string::npos;
  if (has_kind && !pod && (!is_node(words.front()) || slash != std::string::npos)) return refuse();
  ExplainTarget out{.pod = pod, .key = {pod ? ns : "", name}};
  if (slash != std::string::npos) out.key = {name.substr(0, slash), name.substr(slash + 1)};
  const bool complete = !out.key.name.empty() && !out.key.name.contains('/') && (!pod || !out.key.ns.empty());
  if (!complete) return refuse();
  return out;
}

namespace {

// The pod of the question does not exist: `error`. Its name can be that of a workload whose pods were never created.
asio::awaitable<int> explain_absent_pod(k8s::Reader* client, k8s::Clock* clock, Question question, k8s::Error error,
                                        std::string lease_name, std::ostream* out, std::ostream* err) {
  ClusterView view;
  const UncreatedPod found = co_await find_uncreated_pod(client, question.target.key, &view.incomplete);
  if (!found.explanation) {
    print_line(*err, "{}: {}. {}", kExplainCommand, error.message, found.hint);
    for (const std::string& missing : view.incomplete) print_line(*err, "incomplete: {}", missing);
    co_return 2;
  }
  const k8s::ObjectKey lease{question.settings.operator_namespace, lease_name};
  view.presence = co_await find_operator(client, clock, lease, &view.incomplete);
  print(*found.explanation, view, question.form, *out);
  co_return 1;
}

}  // namespace

asio::awaitable<int> explain_on_cluster(k8s::Reader* client, k8s::Clock* clock, ExplainTarget target, OutputForm form,
                                        PlannerSettings settings, std::ostream* out, std::ostream* err,
                                        std::string lease_name) {
  Question question{.target = target, .form = form, .settings = settings};
  question.settings.kai.explain_all = true;
  if (target.pod) {
    const k8s::CallOptions call;
    k8s::Result<std::string> pod = co_await client->get(resources::pods, target.key, call);
    if (!pod && pod.error().reason == k8s::Reason::not_found) {
      const int code = co_await explain_absent_pod(client, clock, question, pod.error(), lease_name, out, err);
      co_return code;
    }
    if (!pod)
      co_return refuse(*err, kExplainCommand, explain_error(pod.error(), "get", resources::pods, target.key.ns));
    question.pod_json = *std::move(pod);
  }
  ClusterView view;
  const k8s::ObjectKey lease{question.settings.operator_namespace, lease_name};
  view.presence = co_await find_operator(client, clock, lease, &view.incomplete);
  const k8s::Result<void> read = co_await read_cluster(client, clock, question.settings, &view);
  if (!read && target.pod && read.error().reason == k8s::Reason::forbidden) {
    view.incomplete.push_back("nodes not checked: " + read.error().message);
    const k8s::Result<PodExplanation> alone =
        co_await explain_alone(client, clock, target.key, question.pod_json, question.settings, &view.incomplete);
    if (!alone) co_return refuse(*err, kExplainCommand, alone.error().message);
    print(*alone, view, form, *out);
    co_return alone->hindered() ? 1 : 0;
  }
  if (!read) co_return refuse(*err, kExplainCommand, read.error().message);
  note_record_elsewhere(view.presence.none, question.settings, &view.world, &view.incomplete);
  co_return answer(question, view, *out, *err);
}

namespace {

asio::awaitable<int> explain_in(Session session, ExplainOptions explain, PlannerSettings settings, std::ostream* out,
                                std::ostream* err) {
  std::string ns = session.namespace_name.empty() ? "default" : session.namespace_name;
  if (!explain.pod_namespace.empty()) ns = explain.pod_namespace;
  const k8s::Result<ExplainTarget> target = explain_target(explain.what, ns);
  if (!target) co_return refuse(*err, kExplainCommand, target.error().message);
  const int code = co_await explain_on_cluster(session.client, session.clock, *target, explain.form, settings, out, err,
                                               explain.lease_name);
  co_return code;
}

int run_explain(const ExplainOptions& explain, const Options& options, std::istream& in, std::ostream& out,
                std::ostream& err) {
  const auto usage = [&](const std::string& why) { return refuse(err, kExplainCommand, why); };
  if (!explain.files.empty()) {
    const std::string ns = explain.pod_namespace.empty() ? "default" : explain.pod_namespace;
    const k8s::Result<ExplainTarget> target = explain_target(explain.what, ns);
    if (!target) {
      const bool words = explain.what.size() > 1;
      return usage(target.error().message + (words ? "; each file needs an -f of its own" : ""));
    }
    Question question{.target = *target, .form = explain.form, .settings = options.planner_settings()};
    question.settings.kai.explain_all = true;
    const k8s::Result<std::vector<ManifestFile>> files = read_files(explain.files, in);
    if (!files) return usage(files.error().message);
    k8s::Result<ClusterView> view = view_of(*files, present(), question.settings);
    if (!view) return refuse_manifests(err, kExplainCommand, view.error());
    view->presence.none = no_operator_among(view->leases, {question.settings.operator_namespace, options.lease_name});
    if (target->pod) question.pod_json = pod_in(*files, target->key);
    if (target->pod && question.pod_json.empty())
      return usage(fmt::format("pod {} not found in {}; a pod is named NAMESPACE/POD", k8s::to_string(target->key),
                               fmt::join(explain.files, ", ")));
    return answer(question, *view, out, err);
  }
  PlannerSettings settings = options.planner_settings();
  if (!explain.pod_namespace.empty()) settings.operator_namespace = PlannerSettings().operator_namespace;
  return run_connected(kExplainCommand, options, k8s::terminal_of_process(), err,
                       [&](const Session& session) { return explain_in(session, explain, settings, &out, &err); });
}

}  // namespace

bool names_a_pod_alone(const std::vector<std::string>& what) {
  const std::vector<std::string> words = kind_and_name(what).value_or(what);
  return words.size() == 2 && words.front().starts_with("po") && words.back().find('/') == std::string::npos;
}

Subcommand make_explain_command() {
  const auto explain = std::make_shared<ExplainOptions>();
  const auto describe = [explain](CLI::App& app, OptionFlags& settings) {
    app.add_option("NODE|NAMESPACE/POD", explain->what, "What to explain; also `node NAME`, `pod NAME`")
        ->required()
        ->expected(1, 2);
    add_manifests(app, explain->files);
    // One file for each -f: the words after it are what is explained.
    app.get_option("--file")->allow_extra_args(false);
    add_output(app, explain->form, {"text", "json", "yaml"});
    add_mps_user(app, settings);
    add_connection(app, settings);
    app.footer(
        "Reads only; the operator need not be installed. Exit status: 0 no problem found; 1 the node is Failed or "
        "Blocked or has an error, no operator runs that ends its change, or the pod cannot run; 2 the object does not "
        "exist, the cluster or the ConfigMap of the node's device plugin cannot be read, or -f has no Node for a "
        "Pending pod. With `pod NAME`, --namespace is the pod's namespace.");
  };
  const auto check = [explain](const Options& options) -> k8s::Result<void> {
    explain->lease_name = options.lease_name;
    if (names_a_pod_alone(explain->what)) explain->pod_namespace = options.namespace_;
    return {};
  };
  return {.name = "explain",
          .summary = "Why a node is in its state, or why a GPU pod is Pending, rejected or slow",
          .describe = describe,
          .check = check,
          .run = [explain](const Invocation& i) { return run_explain(*explain, i.options, i.in, i.out, i.err); },
          .names_unknown_variables = true};
}

}  // namespace gso
