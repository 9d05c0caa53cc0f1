// Choosing among rollouts, and their texts.
#include "controller/commands/rollout/view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "controller/commands/shared/print.h"
#include "controller/config/options.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/revisions.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/failures.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/status/status.h"

namespace gso {

using OrderedJson = nlohmann::ordered_json;

namespace {

constexpr std::string_view kPolicyPrefix = "policy/";
constexpr int kBarWidth = 24;
constexpr std::string_view kStopped = "Stopped";
constexpr std::string_view kProgressing = "Progressing";  // The phase and the condition.

std::int64_t count_at(const OrderedJson& object, const char* field) {
  return number_at(object, field);
}

void read_ready(const OrderedJson& status, RolloutFacts& out) {
  const auto conditions = status.find("conditions");
  if (conditions == status.end() || !conditions->is_array()) return;
  for (const OrderedJson& condition : *conditions) {
    if (!condition.is_object()) continue;
    if (text_at(condition, "type") == kCurrentCondition)
      out.earlier_attempt = text_at(condition, "reason") == reason_of(Gate::new_attempt);
    if (text_at(condition, "type") == kProgressing && text_at(condition, "status") == "False")
      out.stopped_since = text_at(condition, "lastTransitionTime");
    if (text_at(condition, "type") != "Ready") continue;
    out.reason = text_at(condition, "reason");
    out.message = text_at(condition, "message");
  }
}

std::string names_of(const std::vector<RolloutFacts>& rollouts) {
  constexpr std::size_t kMost = 10;
  std::string out;
  for (std::size_t i = 0; i < std::min(rollouts.size(), kMost); ++i) {
    out += fmt::format("{}{} ({})", i == 0 ? "" : ", ", rollouts[i].rollout->meta.name, rollouts[i].shown_phase());
  }
  if (rollouts.size() > kMost) out += fmt::format(" and {} more", rollouts.size() - kMost);
  return out;
}

// "2m", "3h12m": what people need of a duration.
std::string about(k8s::Duration duration) {
  using namespace std::chrono;
  const auto total = duration_cast<seconds>(duration).count();
  if (total < 60) return fmt::format("{}s", std::max<std::int64_t>(0, total));
  if (total < 120) return fmt::format("{}m{}s", total / 60, total % 60);
  if (total < 7200) return fmt::format("{}m", total / 60);
  return fmt::format("{}h{}m", total / 3600, total / 60 % 60);
}

}  // namespace

std::string progress_bar(std::int64_t done, std::int64_t total) {
  const std::int64_t filled = total <= 0 ? 0 : std::clamp<std::int64_t>(done * kBarWidth / total, 0, kBarWidth);
  return "[" + std::string(static_cast<std::size_t>(filled), '#') +
         std::string(static_cast<std::size_t>(kBarWidth - filled), '.') + "]";
}

bool RolloutFacts::finished() const {
  return has_ended(phase) || (rollout->aborted && !earlier_attempt);
}

bool RolloutFacts::advances() const {
  return !finished() && phase != "Paused" && phase != "AwaitingApproval";
}

bool RolloutFacts::stands() const {
  return phase == kProgressing && !stopped_since.empty();
}

std::string RolloutFacts::shown_phase() const {
  const std::string_view aborted = reason_of(Gate::aborted);
  if (phase == "Failed" && reason == aborted) return std::string(aborted);
  const bool by_a_person = reason.empty() || reason == reason_of(Gate::paused);
  return phase == "Paused" && !by_a_person ? std::string(kStopped) : phase;
}

std::string RolloutFacts::phase_text() const {
  if (stands() && !reason.empty()) return fmt::format("Waiting ({})", reason);
  std::string word = shown_phase();
  return word == kStopped ? fmt::format("{} ({})", word, reason) : word;
}

bool RolloutFacts::undone() const {
  return is_undone(*rollout);
}

bool RolloutFacts::went_wrong() const {
  const bool stopped = phase == "Failed" || phase == "RolledBack" || phase == "Paused";
  return stopped && (reason == kMaxFailures || reason == kVerificationFailed);
}

bool RolloutFacts::is_stopped() const {
  const bool aborted = shown_phase() == reason_of(Gate::aborted) || (rollout->aborted && !earlier_attempt);
  const bool invalid = !finished() && (reason == kConfigInvalid || std::ranges::any_of(nodes, [](const NodeRow& node) {
                                         return node.reason == kConfigInvalid;
                                       }));
  return went_wrong() || aborted || undone() || invalid;
}

RolloutFacts facts_of(const SharingRollout& rollout) {
  RolloutFacts out;
  out.rollout = &rollout;
  out.phase = rollout.phase.empty() ? "Starting" : rollout.phase;
  const OrderedJson status = OrderedJson::parse(rollout.status_json, nullptr, false);
  if (!status.is_object()) return out;
  read_ready(status, out);
  out.wave = count_at(status, "wave");
  out.started_at = text_at(status, "startedAt");
  out.completed_at = text_at(status, "completedAt");
  if (const auto counts = status.find("counts"); counts != status.end() && counts->is_object()) {
    out.total = count_at(*counts, "total");
    out.updated = count_at(*counts, "updated");
    out.in_progress = count_at(*counts, "inProgress");
    out.pending = count_at(*counts, "pending");
    out.blocked = count_at(*counts, "blocked");
    out.failed = count_at(*counts, "failed");
  }
  // Its nodes go on with the revision that took its place: the counts are those of then.
  if (out.phase == "Superseded" || out.phase == "RolledBack") out.in_progress = out.pending = 0;
  if (const auto nodes = status.find("nodes"); nodes != status.end() && nodes->is_array()) {
    for (const OrderedJson& node : *nodes) {
      if (node.is_object())
        out.nodes.push_back(
            {text_at(node, "name"), text_at(node, "state"), text_at(node, "reason"), text_at(node, "message")});
    }
  }
  return out;
}

RolloutKey rollout_key_of(const SharingRollout& rollout) {
  return {rollout.policy, rollout.config_map, rollout.key};
}

const ProfileRollout* profile_rollout_of(const SharingRollout& rollout, const FleetIndex::Impl& index) {
  const auto found = index.profile_rollouts.find(rollout_key_of(rollout));
  return found == index.profile_rollouts.end() ? nullptr : &found->second;
}

const ProfileRollout* present_rollout(const SharingRollout& rollout, const FleetIndex::Impl& index) {
  const ProfileRollout* nodes = profile_rollout_of(rollout, index);
  return nodes != nullptr && target_of(*nodes) == rollout.to_revision ? nodes : nullptr;
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

RolloutFacts with_present_counts(RolloutFacts facts, const FleetIndex::Impl& index) {
  const ProfileRollout* nodes = facts.finished() ? nullptr : present_rollout(*facts.rollout, index);
  if (nodes == nullptr) return facts;
  const Tally& tally = nodes->tally;
  facts.total = tally.total;
  facts.updated = tally.settled;
  facts.in_progress = tally.moving();
  facts.pending = tally.of(Phase::pending);
  facts.blocked = tally.blocked();
  facts.failed = std::ssize(failed_on(index, *nodes, facts.rollout->to_revision));
  return facts;
}

std::string since_completion(const RolloutFacts& facts, const FleetIndex::Impl& index) {
  const ProfileRollout* nodes = facts.phase == "Completed" ? present_rollout(*facts.rollout, index) : nullptr;
  if (nodes == nullptr) return {};
  const Tally& tally = nodes->tally;
  const std::int64_t failed = std::ssize(failed_on(index, *nodes, facts.rollout->to_revision));
  const bool as_then = tally.settled == facts.updated && tally.total == facts.total && failed == facts.failed;
  if (as_then || tally.settled == tally.total) return {};
  std::string out = fmt::format("now {}/{} up to date", tally.settled, tally.total);
  for (const auto& [count, what] :
       {std::pair(tally.moving(), "in progress"), std::pair(tally.of(Phase::pending), "pending"),
        std::pair(tally.blocked(), "blocked"), std::pair(failed, "failed"), std::pair(tally.unshown(), "drifting")}) {
    if (count > 0) out += fmt::format(", {} {}", count, what);
  }
  return out;
}

RecordedStop recorded_stop(const RolloutFacts& facts, const SharingPolicy* policy) {
  const SharingRollout& rollout = *facts.rollout;
  if (has_ended(facts.phase) || facts.earlier_attempt) return {};
  std::string resume = resume_of(rollout, policy);
  if (rollout.aborted) return {std::string(reason_of(Gate::aborted)), start_command(rollout.policy, {resume}).text()};
  const std::string paused(reason_of(Gate::paused));
  if (resume.empty() || facts.phase == paused || facts.reason == paused) return {};
  return {paused, std::move(resume)};
}

std::string resume_of(const SharingRollout& rollout, const SharingPolicy* policy) {
  const std::string command = "gpu-sharing-operator rollout resume";
  if (policy != nullptr && policy->rollout.paused) return fmt::format("{} policy/{}", command, rollout.policy);
  return rollout.paused ? fmt::format("{} {}", command, rollout.meta.name) : std::string();
}

std::string ended_and_paused(const SharingRollout& rollout) {
  if (!rollout.paused || !(rollout.aborted || is_undone(rollout))) return {};
  return fmt::format(
      "{0} is {1} and paused: first `gpu-sharing-operator rollout start {2}`, then `gpu-sharing-operator rollout "
      "resume {0}`",
      rollout.meta.name, rollout.aborted ? "aborted" : "undone", rollout.policy);
}

std::vector<RolloutFacts> all_rollouts(const World& world) {
  std::vector<RolloutFacts> out;
  for (const SharingRollout* rollout : newest_rollouts(world)) out.push_back(facts_of(*rollout));
  return out;
}

std::optional<std::string> policy_of(std::string_view name) {
  if (!name.starts_with(kPolicyPrefix)) return std::nullopt;
  return std::string(name.substr(kPolicyPrefix.size()));
}

std::string missing_policy(const World& world, std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [key, policy] : world.policies.all()) names.push_back(policy->meta.name);
  std::ranges::sort(names);
  return fmt::format("SharingPolicy {} does not exist{}{}", name, names.empty() ? "" : "; found " + first_names(names),
                     did_you_mean(name, names));
}

std::string unknown_policy(const World& world, std::string_view name) {
  const std::optional<std::string> policy = policy_of(name);
  if (!policy || world.policies.find(*policy) != nullptr) return {};
  const bool has_rollout =
      std::ranges::any_of(world.rollouts.all(), [&](const auto& entry) { return entry.second->policy == *policy; });
  return has_rollout ? std::string() : missing_policy(world, *policy);
}

k8s::Result<std::vector<RolloutFacts>> choose(const World& world, const RolloutChoice& choice,
                                              const std::function<bool(const RolloutFacts&)>& fits,
                                              std::string_view what) {
  const std::optional<std::string> policy = policy_of(choice.name);
  std::vector<RolloutFacts> named;
  std::vector<RolloutFacts> fitting;
  for (RolloutFacts& facts : all_rollouts(world)) {
    const bool meant =
        choice.name.empty() || (policy ? facts.rollout->policy == *policy : facts.rollout->meta.name == choice.name);
    if (!meant) continue;
    if (fits(facts)) fitting.push_back(facts);
    named.push_back(std::move(facts));
  }
  const auto refuse = [&](std::string text) -> k8s::Result<std::vector<RolloutFacts>> {
    return k8s::fail(k8s::Reason::invalid, std::move(text));
  };
  if (!choice.name.empty() && named.empty()) {
    const std::string history = "`rollout history` lists all SharingRollouts";
    if (policy) return refuse(fmt::format("policy {} has no SharingRollout; {}", *policy, history));
    const bool is_policy = world.policies.find(choice.name) != nullptr;
    return refuse(fmt::format("SharingRollout {} does not exist; {}", choice.name,
                              is_policy ? fmt::format("the SharingPolicy is policy/{}", choice.name) : history));
  }
  if (fitting.empty()) {
    // What has ended is named only where nothing else can be meant.
    const bool all_ended = std::ranges::all_of(named, &RolloutFacts::finished);
    if (!all_ended) std::erase_if(named, [](const RolloutFacts& facts) { return facts.finished(); });
    const char* const found = named.empty() ? "" : all_ended && choice.name.empty() ? "; all have ended: " : "; found ";
    return refuse(fmt::format("no rollout {}{}{}{}", what, found, names_of(named), choice.hint));
  }
  if (fitting.size() > 1 && !choice.all && !policy) {
    return refuse(fmt::format("several rollouts match: {}. Name one of them, or use --all", names_of(fitting)));
  }
  return fitting;
}

std::vector<std::string> waits_for_workloads(const RolloutFacts& facts) {
  std::vector<std::string> out;
  for (const RolloutFacts::NodeRow& node : facts.nodes) {
    if (is_of_workloads(node.reason)) out.push_back(node.name);
  }
  return out;
}

namespace {

// ", about 2m to go", or what nobody can foretell.
std::string foretell(const RolloutFacts& facts, const std::string& estimate, const std::vector<NodeStep>& steps,
                     k8s::WallTime now) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> waits = waits_for_workloads(facts);
  if (!waits.empty()) {
    const std::size_t rest = waits.size() > kNamed ? waits.size() - kNamed : 0;
    waits.resize(waits.size() - rest);
    return fmt::format(", waiting for workloads on {}{}", fmt::join(waits, ", "),
                       rest > 0 ? fmt::format(" and {} more", rest) : "");
  }
  const auto lost = std::ranges::find(steps, false, &NodeStep::ready);
  if (lost != steps.end()) return fmt::format(", waiting for node {} to be Ready", lost->node);
  const auto end = k8s::parse_rfc3339(estimate);
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
  if (!paused && phase != kStopped && !facts.stands()) return {};
  return fmt::format("; no node starts since {} ({} ago)", facts.stopped_since, about(now - *since));
}

}  // namespace

void print_node_table(const std::vector<RolloutFacts::NodeRow>& nodes, const std::vector<NodeStep>& steps,
                      std::ostream& out) {
  std::vector<TextRow> rows{{"  NODE", "STATE", "REASON", "MESSAGE"}};
  for (const auto& node : nodes) rows.push_back({"  " + node.name, node.state, node.reason, node.message});
  for (const NodeStep& step : steps) {
    if (std::ranges::find(nodes, step.node, &RolloutFacts::NodeRow::name) == nodes.end())
      rows.push_back({"  " + step.node, std::string(to_string(step.phase)), "-", step.step});
  }
  if (rows.size() > 1) print_table(rows, out);
}

void print_rollout_status(const RolloutFacts& facts, const RolloutOutlook& outlook, k8s::WallTime now,
                          std::ostream& out) {
  const SharingRollout& rollout = *facts.rollout;
  const bool goes_on = !facts.finished() && !outlook.stop.is_set();
  const std::string_view applies = outlook.has_operator ? "the operator applies it" : "an operator applies it";
  const bool is_replaced = !outlook.replaced_by.empty();
  print_line(out, "{}: {}", rollout.meta.name,
             is_replaced
                 ? fmt::format("{} (as last reported; its nodes should run {} now, and no operator has seen that)",
                               facts.phase_text(), outlook.replaced_by)
             : outlook.stop.is_set() ? fmt::format("{} (recorded; {})", outlook.stop.phase, applies)
                                     : facts.phase_text() + since_stop(facts, now));
  print_line(out, "  {} {} to {} under policy {}", facts.finished() ? "Rollout of" : "Rolling out",
             describe_subject(rollout.config_map, rollout.key), rollout.to_revision, rollout.policy);
  if (!outlook.after.empty()) print_line(out, "  Begun {}", outlook.after);
  const std::string& since = outlook.since_completion;
  out << fmt::format("  {}{}{}{}\n", counts_text(facts),
                     outlook.nodes_unread || is_replaced ? ", as last reported" : "",
                     facts.finished()  ? ""
                     : facts.wave == 0 ? "; canary"
                                       : fmt::format("; wave {}", facts.wave),
                     since.empty() ? "" : "; " + since);
  // A message of before the stop might name the next start.
  if (!facts.message.empty() && !outlook.stop.is_set() && !is_replaced) {
    const bool stale = goes_on && !outlook.has_operator;
    print_line(out, "  {}{}: {}{}", stale ? "Last reported: " : "", facts.reason, shown_message(facts.message),
               stale ? kNothingStarts : "");
  }
  if (!outlook.failures.empty()) print_line(out, "  {}: {}", kMaxFailures, outlook.failures);
  const auto started = k8s::parse_rfc3339(facts.started_at);
  if (started && goes_on && outlook.has_operator)
    print_line(out, "  {}",
               facts.advances() && !facts.stands() ? fmt::format("Running {}{}", about(now - *started),
                                                                 foretell(facts, outlook.estimate, outlook.steps, now))
                                                   : fmt::format("Started {} ago", about(now - *started)));
  print_node_table(facts.nodes, outlook.steps, out);
  for (const std::string& hold : outlook.held) print_line(out, "  held: {}", hold);
  for (const std::string& command : outlook.next) print_line(out, "  next: {}", command);
}

OrderedJson rollout_json(const RolloutFacts& facts) {
  const SharingRollout& rollout = *facts.rollout;
  OrderedJson nodes = OrderedJson::array();
  for (const auto& node : facts.nodes) {
    nodes.push_back({{"name", node.name}, {"state", node.state}, {"reason", node.reason}, {"message", node.message}});
  }
  const bool of_template = !daemonset_of(rollout.config_map).empty();
  return {{"name", rollout.meta.name},
          {"policy", rollout.policy},
          {"configMap", of_template ? "" : rollout.config_map},
          {"daemonSet", daemonset_of(rollout.config_map)},
          {"key", rollout.key},
          {"toRevision", rollout.to_revision},
          {"phase", facts.phase},
          {"reason", facts.reason},
          {"message", facts.message},
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
          {"nodes", std::move(nodes)},
          {"profile", rollout.profile}};
}

}  // namespace gso
