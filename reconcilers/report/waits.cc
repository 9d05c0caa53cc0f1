// What keeps policies with a change from a rollout: what their statuses say, and what came after those; and changes
// that have no SharingRollout yet.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>
#include <utility>

#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/explain/revisions.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/report/report.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/status/status.h"

namespace gso {
namespace {

// --- What the status of a policy does not say yet: an edit or a retry since an operator wrote it.

// Of a wait: nodes need a change that no status names, and nothing stops them.
constexpr std::string_view kNotStarted = "NotStarted";

using Views = std::vector<const RolloutView*>;

// The first of the waits for that reason; end: none.
std::vector<PolicyWait>::iterator waiting_for(std::vector<PolicyWait>& waits, std::string_view code) {
  return std::ranges::find(waits, code, [](const PolicyWait& wait) -> std::string_view { return wait.why.code; });
}

// Only a retry or another profile continues the rollout, whatever else holds it.
bool is_over(const RolloutView* rollout) {
  if (!rollout->too_many_failures().empty()) return true;
  if (rollout->anew) return false;
  const Switches switches = switches_of(rollout->pass, rollout->key, rollout->target, rollout->object);
  return switches.aborted || switches.undone;
}

// What stopped the rollout was of what its nodes should run still: only a retry has ended that.
bool was_stopped(const RolloutView& rollout) {
  const FleetRecord& record = *rollout.pass.index.record;
  const RolloutKey& key = rollout.key;
  const RecordedSwitches* switches = record.rollout(key.policy, key.config_map, key.key, rollout.target);
  if (switches != nullptr && (switches->aborted || switches->undone)) return true;
  return std::ranges::any_of(record.failures, [&](const FleetRecord::Failure& failure) {
    return failure.policy == key.policy && failure.config_map == key.config_map && failure.key == key.key &&
           failure.revision == rollout.target;
  });
}

// `gate`: one that only a retry opens.
std::string why_it_has_ended(const World& world, const RolloutView& rollout, Gate gate) {
  if (was_stopped(rollout)) return "a retry is requested: ";
  const auto has_ended = [gate](const SharingRollout& other) {
    return gate == Gate::aborted  ? other.aborted
           : gate == Gate::undone ? is_undone(other)
                                  : facts_of(other).went_wrong();
  };
  const std::vector<const SharingRollout*> newest = newest_rollouts(world);
  const auto before = std::ranges::find_if(newest, [&](const SharingRollout* other) {
    return rollout_key_of(*other) == rollout.key && other->to_revision != rollout.target && has_ended(*other);
  });
  return fmt::format("the {} was of {}, and key {} of ConfigMap {} has {} now: ",
                     gate == Gate::aborted  ? "abort"
                     : gate == Gate::undone ? "undo"
                                            : "failure",
                     before == newest.end() ? "another revision" : (*before)->to_revision, rollout.key.key,
                     rollout.key.config_map, rollout.target);
}

// A rollout of its key to another revision is under way according to its status: no operator has seen the edit since.
bool is_behind(const World& world, const RolloutView* rollout) {
  return std::ranges::any_of(newest_rollouts(world), [&](const SharingRollout* other) {
    return rollout_key_of(*other) == rollout->key && other->to_revision != rollout->target &&
           !facts_of(*other).finished();
  });
}

bool is_edited(const RolloutView& rollout) {
  return std::ranges::all_of(rollout.profile_rollout.groups, [&](const auto& group) {
    return std::ranges::all_of(group.second.pending, [&](const auto& entry) {
      const NodeAssessment* a = rollout.pass.index.find(entry.second);
      return a != nullptr && a->cause == ChangeCause::edited;
    });
  });
}

// "the edit of ConfigMap gpu-operator/mps-config (2026-01-01T00:00:03Z)"
std::string what_is_new(const World& world, const Views& rollouts) {
  const RolloutView& first = *rollouts.front();
  const bool one_edit = std::ranges::all_of(rollouts, [&](const RolloutView* rollout) {
    return rollout->key.config_map == first.key.config_map && is_edited(*rollout);
  });
  if (!one_edit) return rollouts.size() == 1 ? "a change to " + first.target : "changes";
  const ConfigMap* config_map = world.configmaps.find(first.installation.config_map_key());
  const bool known = config_map != nullptr && config_map->data_time_known && config_map->data_changed != WallTime();
  return fmt::format("the edit of ConfigMap {}{}", first.key.config_map,
                     known ? fmt::format(" ({})", k8s::format_time(config_map->data_changed)) : "");
}

// The closed gate that the status does not name. Those that open by themselves say less than that an operator must run.
PolicyWait wait_of(const World& world, const Views& rollouts, const std::string& why, bool has_operator) {
  const RolloutView& first = *rollouts.front();
  const GateState& gate = first.gate();
  const bool approves = gate.gate == Gate::approval;
  if (!approves && (row_of(gate.gate).needs_attention || row_of(gate.gate).stops_all))
    return {first.key.policy, {gate.reason(), why + gate.message}};
  std::int64_t count = 0;
  for (const RolloutView* rollout : rollouts) count += rollout->profile_rollout.tally.of(Phase::pending);
  const bool one = count == 1;
  const std::string next = approves       ? "an operator creates the SharingRollout that a person can approve"
                           : has_operator ? fmt::format("the operator starts {}", one ? "it" : "them")
                                          : fmt::format("{} when an operator runs", one ? "it starts" : "they start");
  std::string message = fmt::format("{}{} wait{} for {}; {}", why, counted(count, "node"), one ? "s" : "",
                                    what_is_new(world, rollouts), next);
  return {first.key.policy, {kNotStarted, std::move(message)}};
}

// `waits`: what the status of the policy, and its switches, say. A stop of another revision, or before a retry, does
// not hold the nodes any more: what they wait for takes its place. Without an operator nodes can wait although the
// status names nothing: then what they wait for is added.
void note_unseen_changes(ReadingPass& pass, const SharingPolicy& policy, bool has_operator,
                         std::vector<PolicyWait>& waits) {
  const Views rollouts = pass.waiting_rollouts(policy.meta.name);
  if (rollouts.empty()) return;
  const auto stale = std::ranges::find_if(
      waits, [](const PolicyWait& wait) { return wait.nodes.empty() && is_stopped(named_gate(wait.why.code)); });
  const bool has_news = stale != waits.end() && std::ranges::none_of(rollouts, is_over);
  std::string why;
  if (has_news) {
    why = why_it_has_ended(pass.world(), *rollouts.front(), named_gate(stale->why.code));
    waits.erase(stale);
  }
  // What the nodes waited for in that rollout.
  if (!has_operator && std::ranges::all_of(rollouts, [&](const auto* one) { return is_behind(pass.world(), one); }))
    std::erase_if(waits, [](const PolicyWait& wait) {
      return wait.nodes.empty() && (wait.why.code == kRollingOut || wait.why.code == kBudgetExhausted);
    });
  const auto settling = waiting_for(waits, reason_of(Gate::settling));
  if (settling != waits.end()) {
    settling->news = std::move(why);
    return;
  }
  const bool is_named = std::ranges::any_of(waits, [](const PolicyWait& wait) { return wait.nodes.empty(); });
  if (is_named || !(has_news || !has_operator)) return;
  waits.insert(waits.begin(), wait_of(pass.world(), rollouts, why, has_operator));
}

// --- What it says.

// Of a policy. Progressing names what holds all that is left; blocked[] also who is held beside others.
std::vector<PolicyWait> read_waits(const SharingPolicy& policy) {
  std::vector<PolicyWait> out;
  const nlohmann::json status = parse_status(policy.status_json);
  const nlohmann::json progressing = condition_in(status, "Progressing");
  const std::string said = text_at(progressing, "reason");
  const bool stands = text_at(progressing, "status") == "False" && said != kNothingToDo;
  const bool some_wait = said == kRollingOut && number_at(object_at(status, "nodes"), "pending") > 0;
  const bool waits = progressing.is_object() && (stands || some_wait);
  if (waits) out.push_back({policy.meta.name, {said, text_at(progressing, "message"), facts_in_status(status, said)}});
  for (const nlohmann::json& entry : list_at(status, "blocked")) {
    if (!entry.is_object() || (waits && text_at(entry, "reason") == said)) continue;
    PolicyWait& wait = out.emplace_back(policy.meta.name, reason_in(entry));
    wait.count = number_at(entry, "count");
    for (const nlohmann::json& node : list_at(entry, "nodes"))
      if (node.is_string()) wait.nodes.push_back(node.get<std::string>());
  }
  return out;
}

// A pause that no operator has written into the status yet takes the place of what the status says. Just after an edit
// it says nothing, although nodes wait.
void note_recorded_pause(const ReadingPass& pass, const SharingPolicy& policy, std::vector<PolicyWait>& waits) {
  const std::string_view paused = reason_of(Gate::paused);
  if (!policy.rollout.paused || waiting_for(waits, paused) != waits.end()) return;
  auto all_wait = std::ranges::find_if(waits, [](const PolicyWait& wait) { return wait.nodes.empty(); });
  if (all_wait == waits.end() && nodes_of_policy(pass.index(), policy.meta.name).of(Phase::pending) > 0)
    all_wait = waits.insert(waits.begin(), PolicyWait{policy.meta.name, {}});
  if (all_wait == waits.end()) return;
  all_wait->why = {paused, "spec.rollout.paused of the policy is set (recorded; an operator applies it)"};
}

// An invalid text, as long as no status says it.
void note_invalid(const ReadingPass& pass, std::string_view policy, std::vector<PolicyWait>& waits) {
  if (waiting_for(waits, kConfigInvalid) != waits.end()) return;
  for (const auto& [key, rollout] : pass.index().profile_rollouts) {
    const auto invalid = rollout.blocked.find(std::string(kConfigInvalid));
    if (key.policy != policy || invalid == rollout.blocked.end() || invalid->second.empty()) continue;
    const std::set<std::string>& nodes = invalid->second;
    const std::string& message = pass.index().find(*nodes.begin())->obstacle.message;
    PolicyWait wait{std::string(policy), {kConfigInvalid, message}, {}, std::ssize(nodes)};
    std::ranges::copy(nodes | std::views::take(kMostNames), std::back_inserter(wait.nodes));
    waits.push_back(std::move(wait));
  }
}

// Of policies that do not exist any more: their status is gone with them.
void add_gone_policies(const ReadingPass& pass, const std::optional<std::string>& policy,
                       std::vector<PolicyWait>& out) {
  for (const auto& [name, held] : pass.index().held_policies) {
    const bool meant = !policy || name == *policy;
    const bool some_wait = nodes_of_policy(pass.index(), name).of(Phase::pending) > 0;
    std::string text = held.gone && meant && some_wait ? gone_policy_text(pass, name) : std::string();
    if (!text.empty()) out.push_back({name, {kPolicyGone, std::move(text)}});
  }
}

}  // namespace

std::vector<PolicyWait> waiting_policies(ReadingPass& pass, const std::optional<std::string>& policy,
                                         const std::set<std::string>& except, bool has_operator) {
  std::map<std::string_view, const SharingPolicy*> sorted;
  for (const auto& [key, object] : pass.world().policies.all()) {
    const bool meant = !policy || key.name == *policy;
    if (meant && !except.contains(key.name)) sorted.emplace(object->meta.name, object.get());
  }
  const std::map<std::string, std::string> settling = pass.settling();
  std::vector<PolicyWait> out;
  for (const auto& [name, object] : sorted) {
    std::vector<PolicyWait> waits = read_waits(*object);
    if (const auto start = settling.find(std::string(name)); start != settling.end()) {
      // That nodes are under way to start says less than when they do.
      std::erase_if(waits, [](const PolicyWait& wait) { return wait.why.code == kRollingOut; });
      waits.insert(waits.begin(), {start->first, {reason_of(Gate::settling), start->second}});
    }
    note_recorded_pause(pass, *object, waits);
    note_unseen_changes(pass, *object, has_operator, waits);
    note_invalid(pass, name, waits);
    for (PolicyWait& wait : waits) wait.paused = object->rollout.paused;
    std::ranges::move(waits, std::back_inserter(out));
  }
  add_gone_policies(pass, policy, out);
  return out;
}

bool is_retried(ReadingPass& pass, const RolloutFacts& facts) {
  const SharingRollout& rollout = *facts.rollout;
  if (!facts.went_wrong() || facts.finished() || !pass.index().record) return false;
  const RolloutView* view = pass.rollout(rollout_key_of(rollout));
  return view != nullptr && view->target == rollout.to_revision && !retry_of(view->policy).empty() && !is_over(view) &&
         view->profile_rollout.tally.of(Phase::failed) == 0;
}

bool PolicyWait::goes_on() const {
  return why.code == kRollingOut || why.code == kNotStarted || why.code == reason_of(Gate::settling);
}

bool PolicyWait::is_stopped() const {
  return why.code == kConfigInvalid || why.code == kVerificationFailed || gso::is_stopped(named_gate(why.code));
}

namespace {

// --- Policies whose nodes wait for a change that has no SharingRollout yet.

// The same as about_to_start(), by what the operator wrote last.
std::vector<AboutToStart> policies_that_wait(const World& world) {
  std::vector<AboutToStart> out;
  for (const auto& [key, policy] : world.policies.all()) {
    const nlohmann::json status = parse_status(policy->status_json);
    // The status follows the abort when an operator writes it.
    const SharingRollout* current = world.rollouts.find(text_at(status, "currentRollout"));
    if (current != nullptr && current->aborted) continue;
    const nlohmann::json progressing = condition_in(status, "Progressing");
    const std::string reason = text_at(progressing, "reason");
    const bool waits = text_at(progressing, "status") == "False" && reason != kNothingToDo;
    if (waits && reason != reason_of(Gate::aborted) && reason != reason_of(Gate::undone))
      out.push_back({policy->meta.name, policy->rollout.paused, {}});
  }
  return out;
}

}  // namespace

std::vector<AboutToStart> about_to_start(ReadingPass& pass, const std::function<bool(const RolloutKey&)>& is_meant) {
  std::vector<AboutToStart> out;
  std::map<std::string, std::string> settling = pass.settling();
  for (const RolloutView* rollout : pass.waiting_rollouts()) {
    const RolloutKey& key = rollout->key;
    const SharingPolicy* policy = is_meant(key) ? pass.world().policies.find(key.policy) : nullptr;
    // Then its own SharingRollout is what a pause sets.
    const bool has_switches = rollout->object != nullptr && !rollout->anew && !facts_of(*rollout->object).finished();
    if (policy == nullptr || has_switches || !ended_by(*rollout).is_open()) continue;
    if (std::ranges::find(out, key.policy, &AboutToStart::policy) == out.end())
      out.push_back({key.policy, policy->rollout.paused, settling[key.policy]});
  }
  return out;
}

std::vector<AboutToStart> about_to_replace(ReadingPass& pass, const std::vector<RolloutFacts>& rollouts) {
  std::vector<AboutToStart> out = about_to_start(pass, [&](const RolloutKey& key) {
    return std::ranges::any_of(rollouts, [&](const RolloutFacts& facts) {
      return key == rollout_key_of(*facts.rollout) && present_rollout(*facts.rollout, pass.index()) == nullptr;
    });
  });
  std::erase_if(out, &AboutToStart::paused);
  return out;
}

std::set<std::string> policies_about_to_start(ReadingPass& pass) {
  // The record can be in another namespace than the one that was given.
  std::vector<AboutToStart> starts = pass.index().record ? about_to_start(pass, [](const RolloutKey&) { return true; })
                                                         : policies_that_wait(pass.world());
  if (!std::ranges::all_of(starts, &AboutToStart::paused)) std::erase_if(starts, &AboutToStart::paused);
  std::set<std::string> out;
  for (AboutToStart& one : starts) out.insert(std::move(one.policy));
  return out;
}

}  // namespace gso
