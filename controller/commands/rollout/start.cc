// `rollout start`: what failed, was deferred, aborted or undone is tried again.
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "controller/commands/rollout/rollout.h"
#include "controller/commands/shared/print.h"
#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/reading_pass.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/resources.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/standalone/standalone.h"
#include "reconcilers/status/status.h"

namespace gso {

using OrderedJson = nlohmann::ordered_json;

namespace {

// Its nodes should run another valid revision by now, which has ended its abort: its object is history. Without the
// record this is not known.
bool is_replaced(const Index& index, const SharingRollout& rollout) {
  const ProfileRollout* nodes = index.record ? profile_rollout_of(rollout, index) : nullptr;
  if (nodes == nullptr) return false;
  const std::string target = target_of(*nodes);
  return !target.empty() && target != kInvalidRevision && target != rollout.to_revision;
}

// The rollouts of the policy that stay ended until a `start` names them.
std::vector<RolloutFacts> ended_by_people(const RolloutCall& call, const std::string& policy) {
  std::vector<RolloutFacts> out = all_rollouts(call.world);
  std::erase_if(out, [&](const RolloutFacts& facts) {
    const SharingRollout& rollout = *facts.rollout;
    const bool ended = rollout.policy == policy && (rollout.aborted || facts.undone());
    return !ended || is_replaced(call.index.impl(), rollout);
  });
  return out;
}

// What a start retries, a line each: nodes that are deferred, standalone MPS daemons, and what failed and is what nodes
// should run still.
std::vector<std::string> what_is_retried(const RolloutCall& call, const std::string& policy) {
  std::vector<std::string> out;
  const Index& index = call.index.impl();
  for (const std::string& name : index.nodes_in(Bucket::deferred)) {
    const auto deferral = deferral_of(*call.world.nodes.find(name));
    if (!deferral || index.find(name)->policy != policy) continue;
    out.push_back(
        deferral->by == Deferral::By::person
            ? fmt::format("node {}: it was uncordoned during its drain, and the retry cordons it again "
                          "(was deferred until {})",
                          name, k8s::format_time(deferral->until))
            : fmt::format("node {}: the operator has cordoned it for its workloads once, and the retry cordons "
                          "it again",
                          name));
  }
  for (const DaemonNode& node : read_daemon_nodes(call.world, index)) {
    if (node.policy->meta.name != policy || !(node.has_failed() || node.mark.deferred)) continue;
    out.push_back(fmt::format(
        "node {}: its standalone MPS daemon {}", node.name(),
        node.has_failed() ? "failed" : "was deferred until " + k8s::format_time(*node.mark.deferred->deferred_until)));
  }
  if (!index.record) return out;
  for (const FleetRecord::Failure& failure : index.record->failures) {
    const auto profile_rollout = index.profile_rollouts.find(RolloutKey{policy, failure.config_map, failure.key});
    const bool present =
        profile_rollout != index.profile_rollouts.end() && target_of(profile_rollout->second) == failure.revision;
    // Its nodes have the previous inline profile again, so that no rollout targets the failed revision.
    const bool inline_again = failure.rolled_back;
    if (failure.policy != policy || !(present || inline_again)) continue;
    std::string nodes;
    for (const auto& [node, machine] : failure.nodes) nodes += (nodes.empty() ? " on " : ", ") + node;
    out.push_back(fmt::format("{} of {} key {}, which {}{}", failure.revision, failure.config_map, failure.key,
                              failure.nodes.empty() ? "was rolled back" : "failed", nodes));
  }
  return out;
}

// Nodes of the policy failed, or were deferred (`retried`). In doubt some did: without the record it is not known.
bool retries_nodes(const RolloutCall& call, const std::string& policy, const std::vector<std::string>& retried) {
  const Index& index = call.index.impl();
  if (!index.record || !call.incomplete.empty() || !retried.empty()) return true;
  const auto nodes = index.policies.find(policy);
  return nodes != index.policies.end() && nodes->second.of(Phase::failed) > 0;
}

// A start stays without effect: nothing of the policy failed, was deferred (`retried`), aborted or undone, nor does
// `adopt` add drift. In doubt it has one: without the record it is not known what failed.
bool is_nothing_to_start(RolloutCall& call, const std::string& policy, const std::vector<std::string>& retried) {
  const Index& index = call.index.impl();
  if (retries_nodes(call, policy, retried)) return false;
  if (!ended_by_people(call, policy).empty()) return false;
  // An abort or failures can be in the record alone.
  ReadingPass pass(call.world, call.index, call.settings, call.clock->now());
  for (const auto& [key, profile_rollout] : index.profile_rollouts) {
    const RolloutView* rollout = key.policy == policy ? pass.rollout(key) : nullptr;
    if (rollout != nullptr && !ended_by(*rollout).is_open()) return false;
  }
  // Drift and unproven nodes of the installation.
  return !call.options.adopt || std::ranges::none_of(call.index.node_names(), [&](const std::string& name) {
    const NodeAssessment& a = *index.find(name);
    return a.policy == policy && a.at_install != AtInstall::shown;
  });
}

// What the operator would see after the start: another value of the annotation, and no rollout that has been stopped.
void retry_in_world(RolloutCall& call, const std::string& name, const std::string& retry,
                    const std::optional<std::string>& baseline) {
  SharingPolicy policy = *call.world.policies.find(name);
  policy.meta.annotations.set(kRetryAnnotation, retry);
  if (baseline) policy.meta.annotations.set(kAdoptAnnotation, *baseline);
  call.world.policies.apply(std::move(policy));
  for (const RolloutFacts& facts : ended_by_people(call, name)) call.world.rollouts.erase(facts.rollout->meta.key());
}

// The order for rollouts that are paused as well, before a preview erases them.
std::vector<std::string> what_stays_paused(const RolloutCall& call, const std::string& policy) {
  std::vector<std::string> out;
  for (const RolloutFacts& facts : ended_by_people(call, policy))
    if (std::string order = ended_and_paused(*facts.rollout); !order.empty()) out.push_back(std::move(order));
  return out;
}

// Why nodes of the policy wait although they are tried again: switches that `start` does not touch.
struct Holds {
  std::vector<std::string> lines;  // What holds each rollout, and the command that ends that.
  bool all = false;                // Every rollout of the policy that has nodes to start is held.
};

Holds what_holds(RolloutCall& call, const std::string& policy) {
  FleetIndex index;
  index.refresh(call.world, call.settings);
  const Snapshot snapshot{call.world, call.clock->now(), kNoTimers, kNobodyListed, call.settings};
  RolloutViews views(snapshot, index.impl());
  Holds out;
  bool any_starts = false;
  for (const auto& [key, profile_rollout] : index.impl().profile_rollouts) {
    const bool has_work = profile_rollout.tally.settled < profile_rollout.tally.total;
    RolloutView* rollout = key.policy == policy && has_work ? views.find(key) : nullptr;
    if (rollout == nullptr) continue;
    const bool holds = outlasts_retry(rollout->gate().gate);
    any_starts = any_starts || !holds;
    if (!holds) continue;
    out.lines.push_back(
        fmt::format("key {} waits ({}): {}", or_none(key.key), rollout->gate().reason(), rollout->gate().message));
    // The preview has erased its rollout, which comes back with its pause: ended_and_paused() has the order.
    const bool comes_back =
        call.options.dry_run && rollout->object == nullptr && pause_of_rollout(*rollout).by == PausedBy::rollout;
    const Command command = comes_back ? Command() : stop_command(*rollout);
    if (!command.empty()) out.lines.push_back("next: " + command.text());
  }
  out.all = !any_starts && !out.lines.empty();
  return out;
}

void print_what_holds(const RolloutCall& call, const Holds& holds) {
  for (const std::string& line : holds.lines) print_line(*call.out, "  {}", line);
}

// One write, which an operator applies when it sees it: another value of the annotation, and whose stops that ends.
boost::asio::awaitable<bool> ask_for_attempt(RolloutCall* call, std::string policy, std::string retry,
                                             std::optional<std::string> baseline, std::vector<RolloutFacts> ended) {
  OrderedJson annotations{{kRetryAnnotation, retry}};
  if (baseline) annotations[std::string(kAdoptAnnotation)] = *baseline;
  std::vector<std::string> uids;
  for (const RolloutFacts& facts : ended) uids.push_back(facts.rollout->meta.uid);
  if (!uids.empty()) {
    // Behind them those of an earlier start, which no operator might have seen yet.
    const k8s::StringMap& present = call->world.policies.find(policy)->meta.annotations;
    if (const auto earlier = present.get(kRetriedRolloutsAnnotation)) uids.emplace_back(*earlier);
    const std::string retried = fmt::format("{}", fmt::join(uids, ","));
    annotations[std::string(kRetriedRolloutsAnnotation)] = retried.substr(0, kMostRetriedBytes);
  }
  const std::string body = OrderedJson{{"metadata", {{"annotations", annotations}}}}.dump();
  co_return co_await patch_sharing_object(call, resources::sharing_policies, policy, body);
}

// Keys whose text no plugin takes. True: some are.
bool print_invalid_keys(const RolloutCall& call, const std::string& policy) {
  bool any = false;
  for (const auto& [key, profile_rollout] : call.index.impl().profile_rollouts) {
    if (key.policy != policy || target_of(profile_rollout) != kInvalidRevision) continue;
    any = true;
    print_line(*call.out,
               "  {}: key {} of ConfigMap {} is invalid, and no node starts with it: gpu-sharing-operator audit",
               kConfigInvalid, key.key, key.config_map);
  }
  return any;
}

// Nodes that wait for their turn start by themselves, or when what holds them ends.
int say_nothing_to_start(RolloutCall& call, const std::string& policy) {
  const auto nodes = call.index.impl().policies.find(policy);
  const std::int64_t pending = nodes == call.index.impl().policies.end() ? 0 : nodes->second.of(Phase::pending);
  *call.out << fmt::format(
      "Nothing to start: no node of policy {} failed or was deferred, and no rollout of it was aborted or undone{}\n",
      policy, call.options.adopt ? ", and none was unproven or had drifted when the operator was installed" : "");
  if (pending > 0) {
    *call.out << fmt::format("  {} wait{} for a change already: gpu-sharing-operator rollout status policy/{}\n",
                             counted(pending, "node"), pending == 1 ? "s" : "", policy);
  }
  print_what_holds(call, what_holds(call, policy));
  return print_invalid_keys(call, policy) ? 1 : 0;
}

// "retrying failed and deferred nodes of policy default"; `waits`: what is asked for and waits, "a retry of …".
std::string what_starts(const RolloutCall& call, const std::string& policy, bool retries, bool waits) {
  const std::string drifted = fmt::format("{} nodes that had drifted before the operator was installed",
                                          waits ? "a rollout of" : "rolling out");
  if (retries)
    return fmt::format("{} failed and deferred nodes of policy {}{}", waits ? "a retry of" : "retrying", policy,
                       call.options.adopt ? ", and " + drifted : "");
  return call.options.adopt ? drifted
                            : fmt::format("{} what was aborted or undone under policy {}",
                                          waits ? "a new attempt of" : "rolling out again", policy);
}

// `retries`: nodes failed or were deferred; else rollouts that a person ended begin again, or drift is rolled out.
void print_started(RolloutCall& call, const std::string& policy, bool retries, const std::vector<std::string>& retried,
                   const std::vector<RolloutFacts>& ended) {
  const Holds holds = what_holds(call, policy);
  const bool waits = holds.all && !call.presence.none;
  std::string begun = what_starts(call, policy, retries, waits);
  if (!waits && !call.presence.none) begun.front() = 'R';  // Of "retrying" and "rolling".
  print_line(*call.out, "{}{}",
             waits                ? "Recorded "
             : call.presence.none ? "Recorded (an operator applies it; none is running): "
                                  : "",
             begun);
  for (const std::string& line : retried) print_line(*call.out, "  {}", line);
  for (const RolloutFacts& facts : ended) {
    const SharingRollout& rollout = *facts.rollout;
    const std::string& name = rollout.meta.name;
    print_line(*call.out, "  rollout {}, which was {}", name, rollout.aborted ? "aborted" : "undone");
    if (rollout.paused)
      print_line(
          *call.out,
          "  {0} is still paused: once an operator has created it again, gpu-sharing-operator rollout resume {0}",
          name);
  }
  if (holds.all) *call.out << "No node starts before this ends:\n";
  print_what_holds(call, holds);
}

}  // namespace

boost::asio::awaitable<int> rollout_start(RolloutCall* call) {
  const std::string name = call->options.name.empty() ? std::string(kDefaultPolicy)
                                                      : policy_of(call->options.name).value_or(call->options.name);
  const SharingPolicy* policy = call->world.policies.find(name);
  if (policy == nullptr) co_return call->refuse(missing_policy(call->world, name));
  const Index& index = call->index.impl();
  // When the operator recorded what the fleet ran: the drift that is adopted is that of then.
  std::optional<std::string> baseline;
  if (call->options.adopt && index.record) baseline = k8s::format_time(index.record->recorded_at);
  if (call->options.adopt && !baseline) {
    const bool awaited = !call->presence.running.empty() && call->incomplete.empty() && index.record_problem.empty();
    co_return call->refuse(
        awaited ? fmt::format("--adopt: no baseline is recorded yet: {}. Repeat this once it is allowed to act",
                              unrecorded_operator_text(call->presence.running))
                : "--adopt: no baseline is recorded yet, or the record cannot be read, so no drift is known");
  }
  const std::string retry = k8s::format_micro_time(call->clock->now());
  const std::vector<std::string> retried = what_is_retried(*call, name);
  // A preview in JSON says it by its fields.
  const bool speaks = !(call->options.dry_run && call->options.json);
  if (speaks && is_nothing_to_start(*call, name, retried)) co_return say_nothing_to_start(*call, name);
  if (call->options.dry_run) {
    if (!call->options.json)
      for (const std::string& line : retried) print_line(*call->out, "Would retry {}", line);
    const std::vector<std::string> paused = what_stays_paused(*call, name);
    retry_in_world(*call, name, retry, baseline);
    const std::optional<GivenText> no_text;
    const int code = co_await preview(call, no_text, name);
    if (call->options.json) co_return code;
    print_what_holds(*call, what_holds(*call, name));
    for (const std::string& line : paused) print_line(*call->out, "  {}", line);
    co_return code;
  }
  const std::vector<RolloutFacts> ended = ended_by_people(*call, name);
  const bool retries = retries_nodes(*call, name, retried);
  const bool done = co_await ask_for_attempt(call, name, retry, baseline, ended);
  if (!done) co_return 2;
  print_started(*call, name, retries, retried, ended);
  co_return 0;
}

}  // namespace gso
