// `rollout diff`: which nodes would restart, and which pods block them, between what the nodes run and the present or a
// given text. Reads only.
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "controller/commands/rollout/edited_file.h"
#include "controller/commands/rollout/report_text.h"
#include "controller/commands/shared/print.h"
#include "controller/reading/cluster_reader.h"
#include "controller/reading/node_consumers.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/explain/revisions.h"
#include "reconcilers/reasons/names.h"

namespace gso {

namespace asio = boost::asio;
using OrderedJson = nlohmann::ordered_json;

namespace {

constexpr int kWrongText = 1;

std::vector<std::string> names_of(const std::vector<Component>& components) {
  std::vector<std::string> out;
  for (const Component component : components) out.emplace_back(to_string(component));
  return out;
}

std::string what_happens(const NodeDifference& d) {
  if (!d.blocked.code.empty()) return fmt::format("Blocked({})", d.blocked.code);
  if (d.leaves) return "leaves its change";
  if (d.in_progress) return "in progress";
  std::string out = d.held.empty() ? "" : d.held == kHeld ? "Held, " : fmt::format("Held({}), ", d.held);
  out += to_string(d.cause);
  return d.transition == Transition::none ? out : fmt::format("{}, {}", out, to_string(d.transition));
}

// `reported`: the invalid text is reported elsewhere.
// `first`: only nodes that start first have a row, and those in a change or blocked; null: all have one. `columns`: of
// the terminal; 0: the output is none.
void print_differences(const std::vector<NodeDifference>& all, bool reported, const FirstStarts* first,
                       std::size_t columns, std::ostream& out) {
  if (all.empty()) {
    out << "No node would change.\n";
    return;
  }
  std::vector<TextRow> rows{
      {"NODE", "POLICY", "PROFILE", "FROM", "TO", "CHANGE", "RESTARTS", "CORDON", "BLOCKING PODS"}};
  std::size_t restarts = 0;
  std::size_t busy = 0;
  std::size_t stay = 0;
  std::vector<std::string> leaving;
  for (const NodeDifference& d : all) {
    stay += d.blocked.code.empty() ? 0 : 1;
    if (d.leaves) leaving.push_back(d.node);
    restarts += d.restarts.empty() ? 0 : 1;
    // A node in a change has a message if it waits for its pods: they are named there.
    const bool waits = !d.blocked_by_pods.empty() || (d.in_progress && !d.blocked.message.empty());
    busy += waits ? 1 : 0;
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
    if (!d.blocked.code.empty() && !(reported && d.blocked.code == kConfigInvalid))
      blocked[d.blocked.message].push_back(d.node);
  }
  for (const NodeDifference& d : all) {
    if (d.in_progress && !d.blocked.message.empty()) blocked[d.blocked.message].push_back(d.node);
  }
  for (const auto& [message, nodes] : blocked) print_line(out, "{}: {}", first_names(nodes), shown_message(message));
  const std::size_t change = all.size() - stay - leaving.size();
  out << fmt::format("{} would change, {} by restarts; {} {} pods that block the change\n", counted(change, "node"),
                     restarts, counted(busy, "node"), busy == 1 ? "has" : "have");
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
  OrderedJson amounts = OrderedJson::array();
  for (const RevisionChange::Amount& amount : change.amounts) {
    amounts.push_back(
        {{"resource", amount.resource}, {"before", amount.before}, {"after", amount.after}, {"nodes", amount.nodes}});
  }
  return {{"profile", change.profile},
          {"from", change.from},
          {"to", change.to},
          {"known", change.known},
          {"fields", fields_json(change.fields)},
          {"amounts", std::move(amounts)}};
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
          {"inProgress", d.in_progress},
          {"leaves", d.leaves},
          {"held", d.held},
          {"blocked", d.blocked.code},
          {"message", shown_message(d.blocked.message)}};
}

// What the diff comes to.
struct Outcome {
  std::vector<NodeDifference> nodes;
  std::string invalid;
  std::vector<std::string> invalid_keys;
  std::vector<DroppedKey> dropped;
  std::vector<std::string> left_alone;             // Drift from before the operator.
  std::map<std::string, NodeConsumers> consumers;  // Of nodes that are not changed while pods use them.
  std::optional<FirstStarts> first;                // `start`: which nodes come first.
  std::optional<PolicyPreview> policy;             // The file is a SharingPolicy.
  std::set<std::string> given;                     // The profiles of the file, as "configmap/key".
  std::vector<NodeDifference> without_file;        // What would change without it.
  std::int64_t unlisted = 0;                       // Of these, those that change all the same, and are left out.
  bool unrecorded = false;                         // No record exists: the present state was taken as the baseline.
  ProfileCache texts;                              // Of revisions, those that are replaced included.
  std::vector<RevisionChange> changes;
  // The given text, or the cluster's text, is invalid.
  [[nodiscard]] bool wrong() const {
    const bool blocked =
        std::ranges::any_of(nodes, [](const auto& node) { return node.blocked.code == kConfigInvalid; });
    return blocked || !invalid.empty() || !dropped.empty();
  }
  // The node changes in the same way without the file, which is about others. What a policy of the file lets start is
  // its own, because it can also be its order and its stops that differ.
  [[nodiscard]] bool is_of_others(const NodeDifference& d) const {
    const bool is_of_file = policy && invalid.empty() ? d.policy == policy->policy : given.contains(d.profile);
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
  print_findings(call, found.policy->documents, {Severity::error, Severity::warning});
  print_line(*call.out, "invalid: {}: {} refuses it, so nothing would change", fmt::join(found.invalid_keys, ", "),
             found.policy->refused_by);
}

// Puts the text of --file into the world. Errors: the text is no ConfigMap, SharingPolicy or profile.
k8s::Result<void> apply_file(RolloutCall& call, k8s::WallTime now, Outcome& out) {
  World present = call.world;
  out.without_file = differences(present, call.settings, now);
  const k8s::Result<void> readable = check_file(call);
  if (!readable) return readable;
  if (const std::optional<std::string> json = policy_in(call.input)) {
    k8s::Result<PolicyPreview> given = apply_policy(call, *json, now);
    if (!given) return std::unexpected(given.error());
    out.invalid = given->invalid;
    out.invalid_keys = {given->policy.empty() ? std::string("SharingPolicy") : "SharingPolicy " + given->policy};
    out.policy = *std::move(given);
    return {};
  }
  FleetIndex index;
  index.refresh(call.world, call.settings);
  const k8s::Result<EditedText> given = read_edited_text(call, index.installations());
  if (!given) return std::unexpected(given.error());
  out.invalid = given->invalid;
  out.invalid_keys = given->invalid_keys;
  out.dropped = dropped_keys(call.world, index, *given);
  for (const GivenText& text : given->maps) {
    for (const auto& [key, value] : text.keys) out.given.insert(text.config_map.name + "/" + key);
    const k8s::Result<void> applied = apply_given(call.world, call.settings, text, now);
    if (!applied) return applied;
  }
  return {};
}

std::string left_alone_text(const Outcome& found, std::string_view operator_lease) {
  const std::size_t count = found.left_alone.size();
  const std::string who = counted(count, "node");
  const std::string_view have = count == 1 ? "has" : "have";
  const std::string_view its = count == 1 ? "its profile" : "their profiles";
  const std::string_view them = count == 1 ? "it" : "them";
  if (found.unrecorded && !operator_lease.empty()) {
    return fmt::format("{} {} not show {} now: {}", who, count == 1 ? "does" : "do", its,
                       first_names(found.left_alone));
  }
  if (found.unrecorded) {
    return fmt::format(
        "{} {} not show {} now: {}. No record of the operator was found: an operator that starts records the present "
        "state as the baseline and leaves {} unchanged until `rollout start --adopt`",
        who, count == 1 ? "does" : "do", its, first_names(found.left_alone), them);
  }
  return fmt::format(
      "{} {} not shown {} since the baseline was recorded, and {} skipped: {}. To roll {} out: rollout start --adopt",
      who, have, its, count == 1 ? "is" : "are", first_names(found.left_alone), them);
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

void print_text(const RolloutCall& call, const Outcome& found) {
  if (found.policy && !found.invalid.empty()) return print_refused(call, found);
  if (found.policy) print_findings(call, found.policy->documents, {Severity::warning});
  const std::size_t columns = screen_of_stdout().columns;
  std::ostringstream text;
  if (found.policy) print_selection(*found.policy, call.world.policies_served, text);
  print_differences(found.nodes, !found.invalid.empty(), found.first ? &*found.first : nullptr, columns, text);
  if (found.first) print_order(*found.first, text);
  if (found.policy) print_order(found.policy->order, text);
  if (found.policy) print_waves(*found.policy, text);
  if (const std::int64_t others = found.unlisted; others > 0)
    print_line(text, "{} without this file and {} not listed. See: gpu-sharing-operator diff",
               others == 1 ? "1 node changes" : fmt::format("{} nodes change", others), others == 1 ? "is" : "are");
  for (const RevisionChange& change : found.changes) print_line(text, "{}", shown_message(describe(change)));
  if (!found.left_alone.empty()) print_line(text, "{}", left_alone_text(found, call.presence.running));
  // Its own state can hold changes that nothing stored shows.
  if (found.unrecorded && !call.presence.running.empty())
    print_line(text, "{}", assumed_baseline_text(call.presence.running));
  for (const DroppedKey& dropped : found.dropped) print_line(text, "error KeyInUse: {}", text_of(dropped));
  *call.out << wrapped_prose(text.str(), columns);
  if (found.invalid.empty()) return;
  print_findings(call, lint_text(call.options.file, call.input, KaiPodRules()), {Severity::error});
  print_line(*call.out, "invalid: {}: no pod would be restarted with this profile",
             fmt::join(found.invalid_keys, ", "));
}

template <class T>
OrderedJson all_json(const std::vector<T>& values) {
  OrderedJson out = OrderedJson::array();
  for (const T& value : values) out.push_back(to_json(value));
  return out;
}

void print(const RolloutCall& call, const Outcome& found) {
  if (!call.options.json) return print_text(call, found);
  OrderedJson document{{"version", kRolloutJsonVersion},      {"nodes", all_json(found.nodes)},
                       {"changes", all_json(found.changes)},  {"invalid", found.invalid},
                       {"findings", all_json(found.dropped)}, {"leftAlone", found.left_alone}};
  if (found.policy) document["policy"] = preview_json(*found.policy);
  print_document(document, OutputForm::json, *call.out);
}

// Of the world as it is then. `policy`: of that one alone; empty: of all. Those of `found->without_file` that a file
// has nothing to do with are left out.
asio::awaitable<k8s::Result<void>> find_differences(RolloutCall* call, std::string policy, Outcome* found) {
  const k8s::WallTime now = call->clock->now();
  found->nodes = differences(call->world, call->settings, now);
  if (found->policy && found->invalid.empty()) compare_changes(found->without_file, found->nodes, *found->policy);
  found->unlisted = std::ranges::count_if(
      found->nodes, [&](const NodeDifference& d) { return d.blocked.code.empty() && found->is_of_others(d); });
  std::erase_if(found->nodes, [&](const NodeDifference& d) {
    return (!policy.empty() && d.policy != policy) || found->is_of_others(d);
  });
  for (NodeDifference& difference : found->nodes) {
    if (difference.drain == Drain::nothing) continue;
    const k8s::CallOptions limits;
    k8s::Result<NodeConsumers> consumers =
        co_await read_consumers(call->client, call->clock, &call->world, &call->settings, difference.node, limits);
    if (!consumers) co_return std::unexpected(consumers.error());
    if (!consumers->unknown.empty()) co_return k8s::fail(k8s::Reason::decode, consumers->unknown);
    find_obstacles(difference, call->world, call->settings, *consumers);
    consumers->listed_at = one_look(now);
    found->consumers.insert_or_assign(difference.node, *std::move(consumers));
  }
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

asio::awaitable<int> preview(RolloutCall* call, std::optional<GivenText> given, std::string policy) {
  const k8s::WallTime now = call->clock->now();
  const std::string unread = coverage_gap(call->world, call->settings);
  if (!unread.empty()) co_return call->refuse(unread);
  Outcome found;
  learn_present_texts(*call, found);
  k8s::Result<void> done;
  if (given) done = apply_given(call->world, call->settings, *given, now);
  if (!call->options.file.empty()) done = apply_file(*call, now, found);
  if (!done) co_return call->refuse(done.error().message);
  done = co_await find_differences(call, policy, &found);
  if (!done) co_return call->refuse(done.error().message);
  if (call->options.verb == RolloutOptions::Verb::start)
    found.first = first_starts(call->world, call->settings, now, found.consumers, policy);
  if (call->options.verb == RolloutOptions::Verb::diff)
    found.left_alone = drift_left_alone(call->world, call->settings);
  if (found.policy) add_changes(*call, found.nodes, found.consumers, now, *found.policy);
  print(*call, found);
  co_return found.wrong() ? kWrongText : 0;
}

}  // namespace gso
