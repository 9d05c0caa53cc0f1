// `rollout diff`: which nodes would restart, and which pods block them, between what the nodes run and the present or a
// given text. Reads only.
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "controller/commands/rollout/edited_file.h"
#include "controller/commands/rollout/rollout.h"
#include "controller/commands/shared/print.h"
#include "controller/reading/cluster_reader.h"
#include "controller/reading/node_consumers.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/explain/revisions.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/drain.h"

namespace gso {

using OrderedJson = nlohmann::ordered_json;

namespace {

constexpr int kWrongText = 1;

std::vector<std::string> names_of(const std::vector<Component>& components) {
  std::vector<std::string> out;
  for (const Component component : components) out.emplace_back(to_string(component));
  return out;
}

std::string what_happens(const NodeDifference& d) {
  if (d.blocked.code == kNodesWouldBreak) return "loses its GPUs";
  if (!d.blocked.code.empty()) return fmt::format("Blocked({})", d.blocked.code);
  if (d.leaves) return "leaves its change";
  if (d.in_progress) return "in progress";
  std::string out = d.held.empty() ? "" : d.held == kHeld ? "Held, " : fmt::format("Held({}), ", d.held);
  out += to_string(d.cause);
  return d.transition == Transition::none ? out : fmt::format("{}, {}", out, to_string(d.transition));
}

// A node in a change has a message if it waits for its pods: they are named there.
bool waits_in_change(const NodeDifference& d) {
  return d.in_progress && !d.blocked.message.empty();
}

// What happens to the pods of nodes that a ClusterPolicy changes. `restarts`: some are; otherwise all are deleted.
std::string harm_to_pods(const std::vector<NodeDifference>& all, bool restarts) {
  const auto breaks = [](const NodeDifference& d) { return d.drain == Drain::idle && !d.blocked_by_pods.empty(); };
  const auto is_beyond = [](const NodeDifference& d) { return d.drain != Drain::idle && !d.beyond.empty(); };
  if (std::ranges::none_of(all, breaks)) return "request more than is left";
  return fmt::format("{} breaks{}", restarts ? "the restart" : "the end of the MPS daemon",
                     std::ranges::any_of(all, is_beyond) ? ", or that request more than is left" : "");
}

// `reported`: the invalid text is reported elsewhere.
// `first`: only nodes that start first have a row, and those in a change or blocked; null: all have one. `columns`: of
// the terminal; 0: the output is none. `announced`: by a ClusterPolicy, so that no pod blocks a change.
void print_differences(const std::vector<NodeDifference>& all, bool reported, const FirstStarts* first, bool announced,
                       std::size_t columns, std::ostream& out) {
  if (all.empty()) {
    out << "No node would change.\n";
    return;
  }
  std::vector<TextRow> rows{{"NODE", "POLICY", "PROFILE", "FROM", "TO", "CHANGE", "RESTARTS", "CORDON",
                             announced ? "PODS ON IT" : "BLOCKING PODS"}};
  std::size_t restarts = 0;
  std::size_t busy = 0;
  std::size_t stay = 0;
  std::size_t breaking = 0;
  std::vector<std::string> leaving;
  for (const NodeDifference& d : all) {
    breaking += d.blocked.code == kNodesWouldBreak ? 1 : 0;
    stay += d.blocked.code.empty() || d.blocked.code == kNodesWouldBreak ? 0 : 1;
    if (d.leaves) leaving.push_back(d.node);
    restarts += d.restarts.empty() ? 0 : 1;
    busy += !d.blocked_by_pods.empty() || waits_in_change(d) ? 1 : 0;
    if (first != nullptr && first->waits.contains(d.node)) continue;
    rows.push_back({d.node, d.policy, or_dash(d.profile), d.from.empty() ? "unknown" : shown_revision(d.from),
                    d.to.empty() ? "-" : shown_revision(d.to), what_happens(d),
                    or_dash(first_names(names_of(d.restarts))), d.cordons ? "yes" : "no",
                    or_dash(first_names(d.blocked_by_pods))});
  }
  // What the revisions mean follows the table.
  constexpr std::size_t kPods = 20;
  drop_columns(rows, columns, {"FROM", "TO", "POLICY", "PROFILE", "CORDON"}, kPods);
  if (rows.size() > 1) print_table(rows, out);
  // The same reason is said once, with who has it.
  std::map<std::string, std::vector<std::string>> blocked;
  for (const NodeDifference& d : all) {
    const bool stays = !d.blocked.code.empty() && !(reported && d.blocked.code == kConfigInvalid);
    if (stays || waits_in_change(d)) blocked[d.blocked.message].push_back(d.node);
  }
  for (const auto& [message, nodes] : blocked) print_line(out, "{}: {}", first_names(nodes), shown_message(message));
  const std::size_t change = all.size() - stay - leaving.size();
  out << fmt::format("{} would change{}; {} {} pods that {}\n", counted(change, "node"),
                     announced && restarts == 0 ? std::string() : fmt::format(", {} by restarts", restarts),
                     counted(busy, "node"), busy == 1 ? "has" : "have",
                     announced ? harm_to_pods(all, restarts > 0) : "block the change");
  if (breaking > 0) out << fmt::format("{} of them would lose {} GPUs\n", breaking, breaking == 1 ? "its" : "their");
  if (!leaving.empty()) {
    print_line(out, "{} {} and {}: no pod was deleted there", first_names(leaving),
               leaving.size() == 1 ? "leaves its change" : "leave their changes",
               leaving.size() == 1 ? "keeps what it runs" : "keep what they run");
  }
  if (const auto held = std::ranges::count_if(all, [](const NodeDifference& d) { return !d.held.empty(); }); held > 0)
    print_line(out, "{} of them {} held and would change only once that ends", held, held == 1 ? "is" : "are");
  if (stay > 0) out << fmt::format("{} node{} blocked and would not change\n", stay, stay == 1 ? " is" : "s are");
}

std::string text_of(const DroppedKey& dropped) {
  return fmt::format("key {} of ConfigMap {} would be removed, but {} {} it: {}", dropped.key, dropped.config_map,
                     dropped.nodes.size() == 1 ? "one node" : fmt::format("{} nodes", dropped.nodes.size()),
                     dropped.nodes.size() == 1 ? "uses" : "use", first_names(dropped.nodes));
}

OrderedJson to_json(const DroppedKey& dropped) {
  return {{"severity", "error"}, {"reason", "KeyInUse"}, {"message", text_of(dropped)}, {"nodes", dropped.nodes}};
}

OrderedJson to_json(const RevisionChange& change) {
  const auto amount_json = [](const auto& entry) -> OrderedJson {
    const auto& [amount, nodes] = entry;
    return {{"resource", amount.resource}, {"before", amount.before}, {"after", amount.after}, {"nodes", nodes}};
  };
  return {{"profile", change.profile},
          {"from", change.from},
          {"to", change.to},
          {"known", change.known},
          {"fields", fields_json(change.fields)},
          {"amounts", json_list(change.amounts, amount_json)}};
}

OrderedJson to_json(const NodeDifference& d) {
  return {{"node", d.node},
          {"policy", d.policy},
          {"profile", d.profile},
          {"from", d.from},
          {"to", d.to},
          {"way", to_string(d.cause)},
          {"transition", to_string(d.transition)},
          {"restarts", names_of(d.restarts)},
          {"cordon", d.cordons},
          {"workloads", word_of(kWorkloadModeWords, d.workloads)},
          {"inTheWay", d.blocked_by_pods},
          {"beyond", d.beyond},
          {"inProgress", d.in_progress},
          {"leaves", d.leaves},
          {"held", d.held},
          {"blocked", d.blocked.code},
          {"message", shown_message(d.blocked.message)}};
}

// What the diff comes to.
struct Outcome {
  std::vector<NodeDifference> nodes;
  EditedFile file;
  std::vector<std::string> left_alone;             // Drift from before the operator.
  std::map<std::string, NodeConsumers> consumers;  // Of nodes that are not changed while pods use them.
  FirstStarts order;                               // `start`, and a file with a SharingPolicy: which nodes come first.
  std::vector<NodeDifference> without_file;        // What would change without it.
  std::int64_t unlisted = 0;                       // Of these, those that change all the same, and are left out.
  bool unrecorded = false;                         // No record exists: the present state was taken as the baseline.
  ProfileCache texts;                              // Of revisions, those that are replaced included.
  std::vector<RevisionChange> changes;
  // The given text, or the cluster's text, is invalid.
  [[nodiscard]] bool wrong() const {
    const bool blocked = std::ranges::any_of(nodes, [](const auto& node) {
      return node.blocked.code == kConfigInvalid || node.blocked.code == kNodesWouldBreak;
    });
    return blocked || !file.invalid.empty() || !file.dropped.empty();
  }
  // The node changes in the same way without the file, which is about others. What a policy of the file lets start is
  // its own, because it can also be its order and its stops that differ.
  [[nodiscard]] bool is_of_others(const NodeDifference& d) const {
    if (file.cluster_policy) return false;
    const bool is_of_file =
        file.policy && file.invalid.empty() ? d.policy == file.policy->policy : file.profiles.contains(d.profile);
    return !is_of_file && is_same_change(d, without_file);
  }
};

// As `lint` says it: file, line and column, with the line and a caret.
void print_findings(const RolloutCall& call, std::vector<LintedDocument> documents,
                    const std::set<Severity>& severities) {
  for (LintedDocument& document : documents) {
    std::erase_if(document.diagnostics, [&](const Diagnostic& d) { return !severities.contains(d.severity); });
    if (!document.diagnostics.empty()) *call.out << lint_report(document, SourceLines(call.input));
  }
}

// A policy that is refused changes nothing: only why it is refused is said.
void print_refused(const RolloutCall& call, const Outcome& found) {
  print_findings(call, found.file.policy->documents, {Severity::error, Severity::warning});
  print_line(*call.out, "invalid: {}: {} refuses it, so nothing would change", fmt::join(found.file.invalid_keys, ", "),
             found.file.policy->refused_by);
}

std::string left_alone_text(const Outcome& found, std::string_view operator_lease) {
  const bool one = found.left_alone.size() == 1;
  const std::string who = counted(found.left_alone.size(), "node");
  const std::string_view its = one ? "its profile" : "their profiles";
  const std::string_view them = one ? "it" : "them";
  const std::string names = first_names(found.left_alone);
  if (!found.unrecorded)
    return fmt::format(
        "{} {} not shown {} since the baseline was recorded, and {} skipped: {}. To roll {} out: rollout start --adopt",
        who, one ? "has" : "have", its, one ? "is" : "are", names, them);
  const std::string now = fmt::format("{} {} not show {} now: {}", who, one ? "does" : "do", its, names);
  if (!operator_lease.empty()) return now;
  return fmt::format(
      "{}. No record of the operator was found: an operator that starts records the present state as the baseline and "
      "leaves {} unchanged until `rollout start --adopt`",
      now, them);
}

// The nodes that wait for the same are named together.
void print_order(const FirstStarts& first, std::ostream& out) {
  const std::vector<std::string> nodes(first.nodes.begin(), first.nodes.end());
  if (!nodes.empty()) print_line(out, "Would start first: {}", first_names(nodes));
  if (nodes.empty() && !first.waits.empty()) out << "No node would start now\n";
  std::map<std::string, std::vector<std::string>> waits;
  for (const auto& [node, why] : first.waits) waits[why].push_back(node);
  for (const auto& [why, waiting] : waits) print_line(out, "Would wait: {} ({})", first_names(waiting), why);
}

// Who replaces the pods of nodes that a ClusterPolicy changes, if any are replaced.
std::string_view who_replaces(bool staged, const std::vector<NodeDifference>& all) {
  if (std::ranges::any_of(all, [](const NodeDifference& d) { return !d.restarts.empty(); }))
    return staged ? kReplacedInWaves : kReplacedAtOnce;
  return staged ? "The operator replaces no pod of these nodes: they lose their GPUs once their pods restart"
                : "The GPU Operator deletes the plugin's DaemonSets, and waits for no pod that uses GPUs";
}

void print_text(const RolloutCall& call, const Outcome& found) {
  const std::optional<PolicyPreview>& policy = found.file.policy;
  const bool invalid = !found.file.invalid.empty();
  if (policy && invalid) return print_refused(call, found);
  if (policy) print_findings(call, policy->documents, {Severity::warning});
  const std::size_t columns = screen_of_stdout().columns;
  const bool starts = call.options.verb == RolloutOptions::Verb::start;
  std::ostringstream text;
  if (policy) print_selection(*policy, call.world.policies_served, text);
  const std::optional<ClusterPolicyPreview>& announced = found.file.cluster_policy;
  const bool at_once = announced && !announced->staged;
  if (announced) {
    print_findings(call, announced->documents, {Severity::error, Severity::warning});
    print_announced(*announced, text);
  }
  if (!found.nodes.empty() || !announced || announced->not_previewed.empty())
    print_differences(found.nodes, invalid, starts ? &found.order : nullptr, at_once, columns, text);
  print_order(found.order, text);
  if (policy) print_waves(*policy, found.order, text);
  for (const NodeDifference& d : found.nodes)
    if (at_once && !d.beyond.empty()) print_line(text, "{}: {} ({})", d.node, d.beyond, first_names(d.blocked_by_pods));
  if (announced && !found.nodes.empty()) print_line(text, "{}", who_replaces(announced->staged, found.nodes));
  if (const std::int64_t others = found.unlisted; others > 0)
    print_line(text, "{} without this file and {} not listed. See: gpu-sharing-operator diff",
               others == 1 ? "1 node changes" : fmt::format("{} nodes change", others), others == 1 ? "is" : "are");
  for (const RevisionChange& change : found.changes) print_line(text, "{}", shown_message(describe(change)));
  if (!found.left_alone.empty()) print_line(text, "{}", left_alone_text(found, call.presence.running));
  // Its own state can hold changes that nothing stored shows.
  if (found.unrecorded && !call.presence.running.empty())
    print_line(text, "{}", assumed_baseline_text(call.presence.running));
  for (const DroppedKey& dropped : found.file.dropped) print_line(text, "error KeyInUse: {}", text_of(dropped));
  *call.out << wrapped_prose(text.str(), columns);
  if (!invalid || announced) return;
  print_findings(call, lint_text(call.options.file, call.input, PodRules()), {Severity::error});
  print_line(*call.out, "invalid: {}: no pod would be restarted with this profile",
             fmt::join(found.file.invalid_keys, ", "));
}

void print(const RolloutCall& call, const Outcome& found) {
  if (!call.options.json) return print_text(call, found);
  const auto as_json = [](const auto& value) { return to_json(value); };
  OrderedJson document{{"version", kRolloutJsonVersion},
                       {"nodes", json_list(found.nodes, as_json)},
                       {"changes", json_list(found.changes, as_json)},
                       {"invalid", found.file.invalid},
                       {"findings", json_list(found.file.dropped, as_json)},
                       {"leftAlone", found.left_alone}};
  if (const auto& announced = found.file.cluster_policy)
    document["clusterPolicy"] = {{"name", announced->name},
                                 {"fields", fields_json(announced->fields)},
                                 {"notPreviewed", announced->not_previewed},
                                 {"staged", announced->staged}};
  if (found.file.policy) document["policy"] = preview_json(*found.file.policy, found.order);
  print_document(document, OutputForm::json, *call.out);
}

// Of the world as it is then. `policy`: of that one alone; empty: of all. Those of `found->without_file` that a file
// has nothing to do with are left out.
boost::asio::awaitable<k8s::Result<void>> find_differences(RolloutCall* call, std::string policy, Outcome* found) {
  const k8s::WallTime now = call->clock->now();
  found->nodes = found->file.cluster_policy ? announced_differences(call->world, call->settings, now)
                                            : differences(call->world, call->settings, now);
  if (found->file.policy && found->file.invalid.empty())
    compare_changes(found->without_file, found->nodes, *found->file.policy);
  found->unlisted = std::ranges::count_if(
      found->nodes, [&](const NodeDifference& d) { return d.blocked.code.empty() && found->is_of_others(d); });
  std::erase_if(found->nodes, [&](const NodeDifference& d) {
    return (!policy.empty() && d.policy != policy) || found->is_of_others(d);
  });
  std::string unread;  // Claims of pods that in doubt use GPUs. The others would say the same.
  for (NodeDifference& difference : found->nodes) {
    if (difference.drain == Drain::nothing) continue;
    k8s::Result<NodeConsumers> consumers =
        co_await read_consumers(call->client, call->clock, &call->world, &call->settings, difference.node,
                                k8s::CallOptions(), KnownClaims(), &unread);
    if (!consumers) co_return std::unexpected(consumers.error());
    if (!consumers->unknown.empty()) co_return k8s::fail(k8s::Reason::decode, consumers->unknown);
    find_obstacles(difference, call->world, call->settings, *consumers);
    consumers->listed_at = one_look(now);
    found->consumers.insert_or_assign(difference.node, *std::move(consumers));
  }
  if (!unread.empty()) print_line(*call->err, "incomplete: {}", unread);
  learn_texts(call->world, nullptr, found->texts);
  found->changes = revision_changes(call->world, found->nodes, found->texts);
  co_return k8s::Result<void>();
}

// What the cluster knows of texts before one of them is replaced.
void learn_present_texts(RolloutCall& call, Outcome& found) {
  FleetIndex present;
  found.unrecorded = assume_baseline(call.world, present, call.settings, call.clock->now());
  const auto& record = present.impl().record;
  learn_texts(call.world, record ? &*record : nullptr, found.texts);
}

}  // namespace

boost::asio::awaitable<int> preview(RolloutCall* call, std::optional<GivenText> given, std::string policy) {
  const k8s::WallTime now = call->clock->now();
  const std::string unread = coverage_gap(call->world, call->settings);
  if (!unread.empty()) co_return call->refuse(unread);
  Outcome found;
  learn_present_texts(*call, found);
  k8s::Result<void> done;
  if (given) done = apply_given(call->world, call->settings, *given, now);
  if (!call->options.file.empty() || !call->options.cluster_policy_patch.empty()) {
    World present = call->world;
    found.without_file = differences(present, call->settings, now);
    k8s::Result<EditedFile> applied = apply_file(*call, now);
    if (!applied) co_return call->refuse(applied.error().message);
    found.file = *std::move(applied);
  }
  if (done && found.file.cluster_policy) done = co_await read_announced(call, &*found.file.cluster_policy);
  if (done) done = co_await find_differences(call, policy, &found);
  if (!done) co_return call->refuse(done.error().message);
  if (call->options.verb == RolloutOptions::Verb::start)
    found.order = first_starts(call->world, call->settings, now, found.consumers, policy);
  if (call->options.verb == RolloutOptions::Verb::diff)
    found.left_alone = drift_left_alone(call->world, call->settings);
  if (found.file.policy) found.order = add_changes(*call, found.nodes, found.consumers, now, *found.file.policy);
  print(*call, found);
  co_return found.wrong() ? kWrongText : 0;
}

}  // namespace gso
