// `rollout status`: rollouts in progress, policies that wait without one, and what to type next.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <set>
#include <sstream>
#include <utility>

#include "controller/commands/rollout/history.h"
#include "controller/commands/rollout/policy_waits.h"
#include "controller/commands/rollout/verbs.h"
#include "controller/commands/rollout/view.h"
#include "controller/commands/rollout/wait.h"
#include "controller/commands/rollout/way_out.h"
#include "controller/commands/shared/print.h"
#include "controller/commands/shared/screen.h"
#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/rollout/rollout_view.h"

namespace gso {

using OrderedJson = nlohmann::ordered_json;

namespace {

// Without a Lease in the given namespace, an operator can run in another one.
bool has_stopped(const RolloutCall& call) {
  return call.no_operator && call.no_operator->was_running;
}

// The status of a rollout names no deadline of the nodes in a change that it lists.
void note_deadlines(ReadingPass& pass, std::vector<RolloutFacts::NodeRow>& nodes) {
  for (RolloutFacts::NodeRow& row : nodes) {
    const Node* node = pass.world().nodes.find(row.name);
    const NodeAssessment* a = pass.index().find(row.name);
    if (node != nullptr && a != nullptr) row.message += deadline_text(pass, *node, *a);
  }
}

// What the nodes of the rollout should run since an edit that no operator has seen: its status is about another text.
// Empty: no such edit is known.
std::string unseen_target(const RolloutCall& call, const ReadingPass& pass, const RolloutFacts& facts) {
  const SharingRollout& rollout = *facts.rollout;
  const Index& index = pass.index();
  if (!has_stopped(call) || has_unread_nodes(call) || !index.record || facts.finished()) return {};
  const ProfileRollout* nodes = profile_rollout_of(rollout, index);
  if (nodes == nullptr) return {};
  std::string target = target_of(*nodes);
  const bool waits = target == kInvalidRevision || nodes->tally.of(Phase::pending) > 0;
  return waits && target != rollout.to_revision ? target : std::string();
}

// What keeps policies from a rollout, of those that have none among `under_way`. A rollout that is named answers for
// itself.
std::vector<PolicyWait> waits_of(ReadingPass& pass, const RolloutCall& call,
                                 const std::vector<RolloutFacts>& under_way) {
  const std::optional<std::string> policy = policy_of(call.options.name);
  if (!call.options.name.empty() && !policy) return {};
  std::set<std::string> busy;
  for (const RolloutFacts& facts : under_way) {
    if (unseen_target(call, pass, facts).empty()) busy.insert(facts.rollout->policy);
  }
  return waiting_policies(pass, policy, busy, !has_stopped(call));
}

// The completion that the operator has estimated; empty: it has not, or the end is unknown.
std::string estimate_of(const RolloutCall& call, const RolloutFacts& facts) {
  const SharingPolicy* policy = call.world.policies.find(facts.rollout->policy);
  const OrderedJson status =
      OrderedJson::parse(policy == nullptr ? std::string() : policy->status_json, nullptr, false);
  const bool current = text_at(status, "currentRollout") == facts.rollout->meta.name;
  if (!current || has_stopped(call) || !waits_for_workloads(facts).empty()) return {};
  return text_at(status, "estimatedCompletion");
}

RecordedStop stop_of(const RolloutCall& call, const RolloutFacts& facts) {
  return recorded_stop(facts, call.world.policies.find(facts.rollout->policy));
}

// The same, or the retry that ends what the status reports.
RecordedStop recorded_for(const RolloutCall& call, ReadingPass& pass, const RolloutFacts& facts) {
  RecordedStop stop = stop_of(call, facts);
  if (!stop.is_set() && is_retried(pass, facts)) stop.phase = "Retry requested";
  return stop;
}

// Those in progress, and those whose stop no operator has applied yet.
std::vector<RolloutFacts> unfinished_rollouts(const RolloutCall& call) {
  const RolloutChoice choice{call.options.name, true};
  const auto is_unfinished = [&](const RolloutFacts& facts) {
    return !facts.finished() || stop_of(call, facts).is_set();
  };
  const auto found = choose(call.world, choice, is_unfinished, "is in progress");
  return found ? *found : std::vector<RolloutFacts>();
}

OrderedJson empty_document(const RolloutCall& call) {
  return {{"version", kRolloutJsonVersion},   {"operator", call.no_operator ? call.no_operator->field() : ""},
          {"rollouts", OrderedJson::array()}, {"waiting", OrderedJson::array()},
          {"failed", OrderedJson::array()},   {"incomplete", call.incomplete}};
}

// What changes the row of a failed node: nobody tries it again as long as that lasts.
void name_obstacle(const ReadingPass& pass, const ShownState& shown, RolloutFacts::NodeRow& row) {
  const NodeAssessment* a = pass.index().find(row.name);
  if (a != nullptr) row.reason = shown_reason(*a);
  if (shown.message.empty() || shown.message == row.message) return;
  row.message =
      row.message.empty() ? shown.message : fmt::format("{}; its change failed: {}", shown.message, row.message);
}

// Of the template of DaemonSets: `status` has no state of a node for that.
void name_daemon_states(const ReadingPass& pass, const SharingRollout& rollout,
                        std::vector<RolloutFacts::NodeRow>& rows) {
  const std::map<std::string, Phase> phases = daemon_phases(pass.world(), pass.index(), rollout_key_of(rollout));
  for (RolloutFacts::NodeRow& row : rows) {
    const auto phase = phases.find(row.name);
    if (row.state == "Waiting" && phase != phases.end()) row.state = to_string(phase->second);
  }
}

// The table names the state of a node as `status` does: a SharingRollout says Waiting of each node that waits, and
// Failed of each that failed, although something else blocks it by now. The reason and the message of one that waits
// say for what.
void name_states(ReadingPass& pass, const SharingRollout& rollout, std::vector<RolloutFacts::NodeRow>& rows) {
  if (!daemonset_of(rollout.config_map).empty()) return name_daemon_states(pass, rollout, rows);
  for (RolloutFacts::NodeRow& row : rows) {
    const Node* node = pass.world().nodes.find(row.name);
    const bool failed = row.state == to_string(Phase::failed);
    if (node == nullptr || (row.state != "Waiting" && !failed)) continue;
    const ShownState shown = shown_state(pass, *node);
    const std::string state = shown.state.substr(0, shown.state.find('('));
    const bool is_kept = state == to_string(Phase::blocked) || state == to_string(Phase::held);
    if (failed && !is_kept) continue;
    row.state = state;
    if (failed) name_obstacle(pass, shown, row);
  }
}

// The wait of a policy that is gone is printed after its rollouts, with the command that ends it: once is enough.
void leave_to_wait(const RolloutCall& call, const ReadingPass& pass, std::string_view policy,
                   std::vector<std::string>& next) {
  const bool prints_waits = call.options.name.empty() || policy_of(call.options.name);
  if (prints_waits) std::erase(next, gone_policy_command(pass.world(), pass.index(), pass.settings(), policy).text());
}

// `failures`: failures_behind() of it.
void show_rollout(RolloutCall& call, ReadingPass& pass, const RolloutFacts& reported, std::string failures,
                  OrderedJson& document) {
  const bool unread = has_unread_nodes(call);
  RolloutFacts facts = unread ? reported : with_present_counts(reported, pass.index());
  const std::string estimate = estimate_of(call, facts);
  const SharingRollout& rollout = *facts.rollout;
  const auto steps = steps_to(pass, rollout.policy, rollout.config_map + "/" + rollout.key, kMostListedSteps);
  RolloutOutlook outlook{estimate, steps, {}, recorded_for(call, pass, facts), !has_stopped(call)};
  outlook.nodes_unread = unread;
  outlook.failures = std::move(failures);
  if (!unread) outlook.since_completion = since_completion(facts, pass.index());
  outlook.after = came_after(all_rollouts(call.world), rollout);
  if (const std::string target = unseen_target(call, pass, facts); !target.empty())
    outlook.replaced_by = shown_revision(target);
  if (outlook.replaced_by.empty()) outlook.next = way_out(pass, facts, outlook);
  outlook.held = holds_on(pass, facts);
  OrderedJson& shown = document["rollouts"].emplace_back(rollout_json(facts));
  shown["estimatedCompletion"] = estimate;
  if (!has_stopped(call)) note_deadlines(pass, facts.nodes);  // For people.
  shown["inProgress"] = OrderedJson::array();
  for (const NodeStep& step : steps) shown["inProgress"].push_back({{"name", step.node}, {"step", step.step}});
  shown["next"] = outlook.next;
  shown["after"] = outlook.after;
  note_uncounted(pass.index(), facts.nodes);
  name_states(pass, rollout, facts.nodes);
  // What the others waited for has ended with the edit.
  if (!outlook.replaced_by.empty())
    std::erase_if(facts.nodes, [](const RolloutFacts::NodeRow& row) { return row.state != to_string(Phase::failed); });
  leave_to_wait(call, pass, rollout.policy, outlook.next);
  if (!call.options.json) print_rollout_status(facts, outlook, call.clock->now(), *call.out);
}

void print_json(const RolloutCall& call, const OrderedJson& document) {
  print_document(document, OutputForm::json, *call.out);
}

// What is written to the call's output while this exists is wrapped for the terminal when it ends.
class WrappedOutput {
 public:
  explicit WrappedOutput(RolloutCall& call) : call_(call), out_(call.out) { call_.out = &text_; }
  ~WrappedOutput() {
    call_.out = out_;
    *out_ << wrapped_prose(text_.str(), screen_of_stdout().columns);
  }
  WrappedOutput(const WrappedOutput&) = delete;
  WrappedOutput& operator=(const WrappedOutput&) = delete;

 private:
  RolloutCall& call_;
  std::ostream* out_;
  std::ostringstream text_;
};

// Failed nodes are left, and nothing goes on: as --wait judges it.
bool ends_failed(const RolloutCall& call, ReadingPass& pass, const FleetIndex& index,
                 const std::vector<LeftFailed>& failed) {
  return !failed.empty() && wait_state(pass, index, call.options.name).is == WaitState::Is::stopped;
}

}  // namespace

int show_status(RolloutCall& call) {
  const bool named = !call.options.name.empty();
  std::vector<RolloutFacts> shown = unfinished_rollouts(call);
  FleetIndex index;
  index.refresh(call.world, call.settings);
  ReadingPass pass(call.world, index, call.settings, call.clock->now());
  const std::vector<PolicyWait> waiting = waits_of(pass, call, shown);
  const std::vector<std::string> gone = idle_gone_policies(call, pass, waiting);
  if (shown.empty() && named && waiting.empty() && gone.empty()) {
    if (const std::string unknown = unknown_policy(call.world, call.options.name); !unknown.empty())
      return call.refuse(unknown);
  }
  const std::optional<std::string> policy = policy_of(call.options.name);
  std::vector<LeftFailed> failed =
      named && !policy ? std::vector<LeftFailed>() : left_failed(pass, policy, shown, waiting);
  const bool some_failed = ends_failed(call, pass, index, failed);
  if (shown.empty() && named) {
    const RolloutChoice choice{call.options.name, true};
    const auto any = choose(call.world, choice, [](const RolloutFacts&) { return true; }, "is recorded");
    if (!any && waiting.empty() && failed.empty() && gone.empty())
      return call.refuse(any.error().message + why_without_nodes(pass, policy));
    if (any) shown.assign(any->begin(), any->begin() + 1);  // The newest.
  }
  leave_out_shown(failed, shown);
  std::vector<std::string> failures;  // Of each in `shown`.
  for (const RolloutFacts& facts : shown) failures.push_back(failures_behind(pass, facts));
  const bool wrong = some_failed || has_stopped(call) || std::ranges::any_of(shown, &RolloutFacts::is_stopped) ||
                     std::ranges::any_of(failures, [](const std::string& of_rollout) { return !of_rollout.empty(); }) ||
                     std::ranges::any_of(waiting, &PolicyWait::is_stopped) ||
                     ((!named || policy) && !stopped_rollout(pass, policy).empty());
  const int exit_status = has_unread_nodes(call) ? 2 : wrong ? 1 : 0;
  std::optional<WrappedOutput> text;
  if (!call.options.json) text.emplace(call);
  OrderedJson document = empty_document(call);
  for (const PolicyWait& wait : waiting) document["waiting"].push_back(waiting_json(wait));
  for (const LeftFailed& of_policy : failed) document["failed"].push_back(left_failed_json(of_policy));
  if (!call.options.json && call.no_operator) print_line(*call.out, "{}", call.no_operator->text());
  for (std::size_t i = 0; i < shown.size(); ++i) show_rollout(call, pass, shown[i], failures[i], document);
  if (call.options.json) {
    print_json(call, document);
    return exit_status;
  }
  std::vector<WaitOutlook> outlooks;
  for (const PolicyWait& wait : waiting) outlooks.push_back(outlook_of(pass, wait));
  // Nodes can be in a change although the rollout of their change has ended: another one takes its place.
  const bool goes_on = std::ranges::any_of(waiting, &PolicyWait::goes_on) ||
                       std::ranges::any_of(outlooks, [](const WaitOutlook& wait) { return !wait.steps.empty(); });
  if (shown.empty() && !goes_on) *call.out << "No rollout is in progress.\n";
  for (std::size_t i = 0; i < waiting.size(); ++i)
    print_waiting(waiting[i], outlooks[i], !has_stopped(call), *call.out);
  for (const LeftFailed& of_policy : failed) print_left_failed(of_policy, *call.out);
  print_drifting(call, pass, shown);
  print_idle_pauses(call, index, shown, waiting);
  print_idle_gone(call, pass, gone);
  return exit_status;
}

}  // namespace gso
