// A World, its assessments, and the tables.
#include "controller/commands/status.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "controller/commands/rollout/view.h"
#include "controller/commands/shared/arguments.h"
#include "controller/commands/shared/screen.h"
#include "controller/commands/shared/session.h"
#include "controller/commands/shared/stop_signals.h"
#include "controller/commands/status_daemons.h"
#include "controller/commands/status_watch.h"
#include "controller/config/operator_options.h"
#include "controller/reading/cluster_reader.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/explain/node_json.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/explain/shown_state.h"
#include "reconcilers/explain/slices.h"
#include "reconcilers/explain/switches.h"
#include "reconcilers/explain/what_if.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/rollout_subject.h"
#include "reconcilers/registry.h"

namespace gso {
namespace {

namespace asio = boost::asio;
using Json = nlohmann::ordered_json;

constexpr std::string_view kCommand = "gpu-sharing-operator status";
// Of the JSON document (docs/json.md): it changes when a field changes its meaning or goes, not when one comes.
constexpr int kVersion = 1;

std::string gpus_of(const Node& node) {
  std::string out;
  for (const auto& [resource, count] : node.allocatable) {
    std::string_view name = resource.view();
    if (name.starts_with("nvidia.com/")) name.remove_prefix(11);
    out += fmt::format("{}{}={}", out.empty() ? "" : ",", name, count);
  }
  return out.empty() ? "-" : out;
}

std::string or_dash(std::string_view text) {
  return text.empty() ? "-" : std::string(text);
}

// One node, in words.
struct NodeRow {
  std::string name;
  ShownState shown;
  std::string allocatable;
  const Node* node = nullptr;
  const NodeAssessment* assessment = nullptr;  // Null: no plugin.
  std::vector<GpuBar> slices = {};             // Of a node whose GPUs are partitioned.
  [[nodiscard]] bool in_trouble() const { return shown.state == "Failed" || shown.state.starts_with("Blocked"); }
  // The place on a screen that is too small for all: those that change come first, those with nothing to do last.
  [[nodiscard]] int rank() const {
    if (assessment != nullptr && assessment->in_change()) return 0;
    if (in_trouble()) return 1;
    return shown.state == "UpToDate" ? 3 : 2;
  }
};

std::string_view source_word(EffectiveKey::Source source) {
  switch (source) {
    case EffectiveKey::Source::label:
      return "label";
    case EffectiveKey::Source::default_key:
      return "default";
    case EffectiveKey::Source::fallback_named:
    case EffectiveKey::Source::fallback_single:
    case EffectiveKey::Source::fallback_empty:
      return "fallback";
    case EffectiveKey::Source::error:
      return "none";
  }
  return "none";
}

// "x4", "gpu x4, mig-1g.5gb x2"
std::string replicas_of(const NodeAssessment& a) {
  const SharingSection* section = a.profile == nullptr ? nullptr : a.profile->profile().active();
  if (section == nullptr) return {};
  std::string out;
  for (const ReplicatedResource& resource : section->resources) {
    std::string_view name = resource.name;
    if (name.starts_with("nvidia.com/")) name.remove_prefix(11);
    out += fmt::format("{}{} x{}", out.empty() ? "" : ",", name, resource.replicas);
  }
  return out;
}

// Resource to amount, for programs.
Json amounts_of(const ResourceCounts& counts) {
  Json out = Json::object();
  for (const auto& [resource, count] : counts) out[std::string(resource.view())] = count;
  return out;
}

Json replica_counts_of(const NodeAssessment& a) {
  Json out = Json::object();
  const SharingSection* section = a.profile == nullptr ? nullptr : a.profile->profile().active();
  if (section == nullptr) return out;
  for (const ReplicatedResource& resource : section->resources) out[resource.name] = resource.replicas;
  return out;
}

std::string strategy_of(const NodeAssessment& a) {
  return a.profile == nullptr ? std::string() : std::string(to_string(a.profile->profile().strategy()));
}

std::vector<NodeRow> rows_of(const FleetStatus& status) {
  std::vector<NodeRow> out;
  ReadingPass pass(status.world, status.index, status.settings, status.now);
  for (const auto& [key, node] : status.world.nodes.all()) {
    const NodeAssessment* a = status.index.assessment(key.name);
    if (a == nullptr && !has_gpus(*node)) continue;
    ShownState shown = shown_state(pass, *node);
    if (!status.only.shows(shown.state, a == nullptr ? "" : a->policy.view(), node->meta.labels)) continue;
    out.push_back({key.name, std::move(shown), gpus_of(*node), node.get(), a, slice_bars(*node)});
  }
  std::ranges::sort(out, [&](const NodeRow& a, const NodeRow& b) {
    const int first = status.in_change_first ? a.rank() : 0;
    const int second = status.in_change_first ? b.rank() : 0;
    return std::tie(first, a.name) < std::tie(second, b.name);
  });
  return out;
}

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

Json document_of(const FleetStatus& status, const std::vector<NodeRow>& nodes) {
  const NodeAssessment none{};
  Json document{{"version", kVersion},
                {"operator", status.no_operator ? status.no_operator->field() : ""},
                {"baselineAssumed", status.assumed},
                {"nodes", Json::array()},
                {"rollouts", Json::array()},
                {"standaloneMps", daemons_json(daemon_progress(status.world, status.index))},
                {"kai", Json::array()},
                {"findings", Json::array()},
                {"incomplete", status.incomplete}};
  for (const NodeRow& row : nodes) {
    const NodeAssessment& a = row.assessment == nullptr ? none : *row.assessment;
    document["nodes"].push_back({{"name", row.name},
                                 {"state", row.shown.state},
                                 {"policy", a.policy.view()},
                                 {"profile", a.profile_ref.view()},
                                 {"revision", a.loaded.revision.view()},
                                 {"target", a.target.view()},
                                 {"allocatable", amounts_of(row.node->allocatable)},
                                 {"capacity", amounts_of(row.node->capacity)},
                                 {"message", row.shown.message},
                                 {"source", source_word(a.source)},
                                 {"strategy", strategy_of(a)},
                                 {"replicas", replica_counts_of(a)},
                                 {"product", a.product.view()},
                                 {"slices", slices_json(row.slices)}});
  }
  for (const RolloutFacts& facts : rollouts_of(status.world)) {
    const SharingRollout& rollout = *facts.rollout;
    document["rollouts"].push_back({{"name", rollout.meta.name},
                                    {"phase", rollout.phase},
                                    {"policy", rollout.policy},
                                    {"key", rollout.key},
                                    {"toRevision", rollout.to_revision},
                                    {"updated", facts.updated},
                                    {"total", facts.total}});
  }
  for (const Finding& finding : ignored_switches(status.world)) document["findings"].push_back(to_json(finding));
  for (const Finding& finding : status.kai) {
    document["kai"].push_back(
        {{"severity", to_string(finding.severity)}, {"reason", finding.reason}, {"message", finding.message}});
  }
  return document;
}

void print_nodes(const std::vector<NodeRow>& nodes, bool wide, TerminalWidth width, std::ostream& out) {
  const NodeAssessment none{};
  TextRow heading{"NODE", "STATE", "POLICY", "PROFILE", "REVISION", "TARGET", "ALLOCATABLE"};
  if (wide) heading.insert(heading.end(), {"CHOSEN-BY", "STRATEGY", "REPLICAS", "PRODUCT"});
  heading.emplace_back("MESSAGE");
  std::vector<TextRow> rows{std::move(heading)};
  for (const NodeRow& node : nodes) {
    const NodeAssessment& a = node.assessment == nullptr ? none : *node.assessment;
    TextRow row{node.name,
                node.shown.state,
                or_dash(a.policy.view()),
                or_dash(a.profile_ref.view()),
                or_dash(shown_revision(a.loaded.revision.view())),
                or_dash(shown_revision(a.target.view())),
                node.allocatable};
    if (wide) {
      row.emplace_back(source_word(a.source));
      row.push_back(or_dash(strategy_of(a)));
      row.push_back(or_dash(replicas_of(a)));
      row.push_back(or_dash(a.product.view()));
    }
    row.push_back(node.shown.message);
    rows.push_back(std::move(row));
  }
  if (!wide) drop_columns(rows, width, {"TARGET", "REVISION", "PROFILE", "POLICY"});
  print_table(rows, out, wide ? 0 : width);
}

void print_slices(const std::vector<NodeRow>& nodes, TerminalWidth width, std::ostream& out) {
  std::vector<TextRow> rows{{"NODE", "GPU", "SLICES (# USED, - FREE)", "MEMORY", "USED", "FREE"}};
  for (const NodeRow& node : nodes) {
    for (const GpuBar& bar : node.slices) {
      rows.push_back({node.name, std::to_string(bar.gpu), bar.bar, memory_of(bar), describe(bar.slices.used),
                      describe(bar.slices.free)});
    }
  }
  if (rows.size() == 1) return;
  out << "\n";
  print_table(rows, out, width);
}

void print_rollouts(const World& world, const std::vector<RolloutFacts>& rollouts, TerminalWidth width,
                    std::ostream& out) {
  std::vector<TextRow> rows{{"ROLLOUT", "PHASE", "POLICY", "KEY", "TO", "PROGRESS"}};
  for (const RolloutFacts& facts : rollouts) {
    const SharingRollout& rollout = *facts.rollout;
    std::string progress =
        fmt::format("{} {}/{}", progress_bar(facts.updated, facts.total), facts.updated, facts.total);
    if (facts.in_progress > 0) progress += fmt::format(", {} in progress", facts.in_progress);
    if (facts.blocked > 0) progress += fmt::format(", {} blocked", facts.blocked);
    if (facts.failed > 0) progress += fmt::format(", {} failed", facts.failed);
    const RecordedStop stop = recorded_stop(facts, world.policies.find(rollout.policy));
    const std::string phase = rollout.phase.empty() ? "-" : facts.shown_phase();
    const bool of_template = !daemonset_of(rollout.config_map).empty();
    rows.push_back({rollout.meta.name, stop.is_set() ? stop.phase + " (recorded)" : phase, rollout.policy,
                    of_template ? rollout.config_map : rollout.key, rollout.to_revision, progress});
  }
  drop_columns(rows, width, {"TO", "KEY", "POLICY"});
  print_table(rows, out, width);
}

asio::awaitable<int> show_always(Session session, StatusOptions status, NodeFilter only, PlannerSettings settings,
                                 k8s::ObjectKey lease, std::ostream* out, std::ostream* err) {
  const std::unique_ptr<k8s::Signal> stop = session.clock->make_signal();
  const bool text = status.form == OutputForm::text || status.form == OutputForm::wide;
  const bool pages = text && screen_of_stdout().is_terminal();
  StopSignals signals(*session.io, stop.get(), pages ? kLeaveAlternateScreen : std::string_view());
  std::string last;  // What is left on the terminal.
  FleetWatch watch;
  watch.client = session.client;
  watch.clock = session.clock;
  watch.stop = stop.get();
  watch.settings = settings;
  watch.lease = lease;
  watch.assumes_baseline = true;
  watch.show = [&, form = status.form, clock = session.clock](const FleetLook& look, std::ostream& view) {
    std::ostringstream text_of_view;
    const k8s::WallTime now = clock->now();
    const FleetStatus fleet{look.world,
                            look.index,
                            look.settings,
                            now,
                            look.incomplete,
                            kai_findings(look.world, look.index, look.settings, now),
                            look.no_operator,
                            only,
                            pages,
                            look.assumed};
    const bool trouble = print_status(fleet, form, screen_of_stdout().columns, text_of_view);
    last = text_of_view.str();
    view << last;
    return FleetVerdict{.exit_status = trouble ? 1 : 0};
  };
  if (text) watch.before_each = pages ? "" : "\n";
  if (status.form == OutputForm::yaml) watch.before_each = "---\n";
  if (pages) watch.page = [](const std::string& view) { return page_of(view, screen_of_stdout()); };
  if (pages) *out << kEnterAlternateScreen << std::flush;
  const int code = co_await watch_fleet(watch, out, err);
  if (pages) *out << kLeaveAlternateScreen << last << std::flush;
  signals.cancel();
  co_return code;
}

}  // namespace

std::vector<Finding> kai_findings(const World& world, FleetIndex& index, const PlannerSettings& settings,
                                  k8s::WallTime now) {
  const Timers timers;
  const std::map<std::string, NodeConsumers> consumers;
  const Snapshot snapshot{world, now, timers, consumers, settings};
  return plan_all(snapshot, index, {.only = kKaiConfig, .synced = everything_synced}).findings;
}

bool print_status(const FleetStatus& status, OutputForm form, TerminalWidth width, std::ostream& out) {
  const std::vector<NodeRow> nodes = rows_of(status);
  const bool stopped = status.no_operator && status.no_operator->was_running;
  const bool trouble = stopped || std::ranges::any_of(nodes, &NodeRow::in_trouble);
  if (form == OutputForm::json || form == OutputForm::yaml) {
    print_document(document_of(status, nodes), form, out);
    return trouble;
  }
  if (status.no_operator) out << printable(status.no_operator->text()) << "\n\n";
  if (nodes.empty()) {
    out << (status.only.empty() ? "No node has GPUs.\n" : "No node matches --state, --policy and --selector.\n");
    for (const std::string& name : status.only.policies) {
      if (status.world.policies.find(name) == nullptr) out << printable(missing_policy(status.world, name)) << "\n";
    }
  } else {
    print_nodes(nodes, form == OutputForm::wide, width, out);
    print_slices(nodes, form == OutputForm::wide ? 0 : width, out);
  }
  if (const std::vector<RolloutFacts> rollouts = rollouts_of(status.world); !rollouts.empty()) {
    out << "\n";
    print_rollouts(status.world, rollouts, width, out);
  }
  print_daemons(daemon_progress(status.world, status.index), width, out);
  for (const Finding& finding : status.kai)
    out << printable(fmt::format("\nkai-config: {} ({})\n", finding.message, finding.reason));
  for (const Finding& finding : ignored_switches(status.world)) {
    out << printable(fmt::format("\n{} {}: {} {}: {}\n", to_string(finding.severity), finding.reason,
                                 finding.object.kind, finding.object.name, finding.message));
  }
  if (status.assumed) out << "\n" << kAssumedBaseline << ".\n";
  for (const std::string& missing : status.incomplete) out << "incomplete: " << missing << "\n";
  return trouble;
}

asio::awaitable<int> status_on_cluster(k8s::Reader* client, k8s::Clock* clock, OutputForm form, NodeFilter only,
                                       PlannerSettings settings, k8s::ObjectKey lease, std::ostream* out,
                                       std::ostream* err) {
  World world;
  std::vector<std::string> incomplete;
  const k8s::Result<void> read = co_await read_world(client, settings, &world, &incomplete);
  if (!read) {
    *err << kCommand << ": " << read.error().message << "\n";
    co_return 2;
  }
  settings = settings_of_operator(world, settings);
  const std::optional<NoOperator> none = co_await find_no_operator(client, clock, lease, &incomplete);
  FleetIndex index;
  index.note_everything_changed();
  const k8s::WallTime now = clock->now();
  const bool assumed = assume_baseline(world, index, settings, now);
  const FleetStatus fleet{world, index, settings, now,    incomplete, kai_findings(world, index, settings, now),
                          none,  only,  false,    assumed};
  const bool trouble = print_status(fleet, form, screen_of_stdout().columns, *out);
  if (trouble) co_return 1;
  co_return coverage_gap(world, settings).empty() ? 0 : 2;  // As for `audit`: what was not looked at is not fine.
}

int run_status(const StatusOptions& status, const Options& options, std::ostream& out, std::ostream& err) {
  const PlannerSettings settings = options.planner_settings();
  const k8s::ObjectKey lease{settings.operator_namespace, options.lease_name};
  const k8s::Result<NodeFilter> only = node_filter_of(status.only);
  if (!only) {
    err << kCommand << ": " << only.error().message << "\n";
    return 2;
  }
  return run_connected(kCommand, options, k8s::terminal_of_process(), err, [&](const Session& session) {
    return status.watch
               ? show_always(session, status, *only, settings, lease, &out, &err)
               : status_on_cluster(session.client, session.clock, status.form, *only, settings, lease, &out, &err);
  });
}

Command make_status_command() {
  const auto status = std::make_shared<StatusOptions>();
  const auto describe = [status](CLI::App& app, OptionFlags& settings) {
    add_output(app, status->form, {"text", "wide", "json", "yaml"});
    app.add_flag("-w,--watch", status->watch,
                 "Watch: refresh on every change of nodes or rollouts; on a terminal nodes in a change come first");
    add_node_filter(app, status->only);
    add_connection(app, settings);
  };
  return {.name = "status",
          .summary = "State of every GPU node, read from the live cluster",
          .describe = describe,
          .run = [status](const Invocation& i) { return run_status(*status, i.options, i.out, i.err); },
          .names_unknown_variables = true};
}

}  // namespace gso
