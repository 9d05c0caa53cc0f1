// Rollouts that nodes wait for and that start none of them.
#include "reconcilers/explain/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/explain/revisions.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/budgets.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/gates.h"

namespace gso {

namespace {

constexpr std::string_view kStartsNone = "starts no node";

// What lifts the pause.
std::string to_resume(const RolloutView& rollout) {
  const Command command = resume_command(rollout);
  // Without the CRDs it is kubectl's.
  if (pause_of_rollout(rollout).by == PausedBy::config_map) return fmt::format("run `{}`", command.text());
  return to_run(rollout.pass.s.world, command);
}

// The other way out after failures or an abort: back, where there is something to go back to.
std::string correction_of(const RolloutView& rollout) {
  const World& world = rollout.pass.s.world;
  if (owns_key(rollout.policy, rollout.key)) return fmt::format("change spec.profile of policy {}", rollout.key.policy);
  const std::string correct =
      correct_key_command(world, rollout.pass.index, config_map_key(rollout.key.config_map)).text();
  if (!has_earlier_text(world, rollout.pass.index, rollout.key.config_map, rollout.key.key))
    return fmt::format("correct the profile, because no earlier one is on record: `{}`", correct);
  const std::string undo = fmt::format("gpu-sharing-operator rollout undo {}--dry-run",
                                       rollout.object == nullptr ? "" : rollout.object->meta.name + " ");
  // Without the CRDs `rollout undo` does not work.
  return fmt::format("restore the profile before it, after a look: `{}`", world.policies_served ? undo : correct);
}

std::string after_failures(const RolloutView& rollout) {
  const std::string correction = correction_of(rollout);
  // Where the failures are those of an earlier attempt alone, the gate's message has the command of the retry.
  const bool failed_before = rollout.present_failures() == 0 &&
                             remembered_failure(rollout.pass, rollout.key, rollout.policy, rollout.target) != nullptr;
  return failed_before ? "Or " + correction
                       : fmt::format("Fix the failed nodes, then {}; or {}",
                                     to_run(rollout.pass.s.world, start_command(rollout.key.policy)), correction);
}

// The gate's message has the command of the retry.
std::string after_its_end(const RolloutView& rollout) {
  const bool paused = pause_of_rollout(rollout).by != PausedBy::nobody;
  return fmt::format(
      "{}{}Or {}",
      rollout.pass.s.world.policies_served ? "" : fmt::format("Before that, install the CRDs (`{}`). ", kInstallCrds),
      paused ? fmt::format("Then, because it is paused as well, {}. ", to_resume(rollout)) : "",
      correction_of(rollout));
}

std::string from_observe(const RolloutView& rollout) {
  // The finding CRDsGone says what ends that of a policy without an object.
  const bool gone = policy_is_gone(rollout.pass.s.world, rollout.pass.index, rollout.key.policy);
  return gone ? std::string() : "To change them: " + stop_command(rollout).text();
}

std::string from_pause(const RolloutView& rollout) {
  return selector_problem(rollout.policy).empty() ? "To continue, " + to_resume(rollout) : std::string();
}

std::string from_approval(const RolloutView& rollout) {
  return fmt::format("To approve it after a look at `gpu-sharing-operator diff`, {}",
                     to_run(rollout.pass.s.world, stop_command(rollout)));
}

// What goes on from a closed gate, where its message does not say it.
struct WayOut {
  Gate gate;
  std::string (*words)(const RolloutView& rollout);
};
constexpr WayOut kWaysOut[] = {{Gate::max_failures, after_failures}, {Gate::aborted, after_its_end},
                               {Gate::undone, after_its_end},        {Gate::observe, from_observe},
                               {Gate::paused, from_pause},           {Gate::approval, from_approval}};

// Nodes of the rollout that wait to start, by name.
std::vector<std::string> waiting_nodes(const RolloutView& rollout) {
  std::vector<std::string> out;
  for (const auto& [product, group] : rollout.profile_rollout.groups)
    for (const auto& [available, name] : group.pending) out.push_back(name);
  std::ranges::sort(out);
  return out;
}

std::string_view key_name(const RolloutView& rollout) {
  return or_none(rollout.key.key);
}

ObjectRef subject_of(const RolloutView& rollout) {
  return rollout.object != nullptr ? rollout_ref(rollout.object->meta.name) : policy_ref(rollout.policy);
}

// "the rollout of key any to v1-… starts no node, and 1 of 4 nodes waits for it (a02)". `does`: "is stopped", "starts
// no node".
std::string effect_on(const RolloutView& rollout, std::string_view does) {
  const std::int64_t waiting = rollout.profile_rollout.tally.of(Phase::pending);
  return fmt::format("the rollout of key {} to {} {}, and {} of {} wait{} for it ({})", key_name(rollout),
                     rollout.target, does, waiting, counted(rollout.profile_rollout.tally.total, "node"),
                     waiting == 1 ? "s" : "", first_names(waiting_nodes(rollout)));
}

Finding finding_of(const RolloutView& rollout, Severity severity, std::string_view reason, std::string_view does,
                   std::string_view why) {
  return found(severity, subject_of(rollout), reason, fmt::format("{}: {}", effect_on(rollout, does), why));
}

// A closed gate. nullopt: it opens by itself, or another finding says what stops the rollout.
std::optional<Finding> stopped_rollout(const RolloutView& rollout) {
  const GateState ended = ended_by(rollout);
  const GateState& gate = ended.is_open() ? rollout.gate() : ended;
  const GateRow& row = row_of(gate.gate);
  if (!row.audited && !row.needs_attention) return std::nullopt;
  // The finding PolicyGone says what else ends it.
  const World& world = rollout.pass.s.world;
  const bool gone = policy_is_gone(world, rollout.pass.index, rollout.key.policy);
  const bool by_failures = gate.gate == Gate::max_failures || gate.gate == Gate::mechanism_unusable;
  if (gone && world.policies_served && !by_failures) return std::nullopt;
  const Tally& tally = rollout.profile_rollout.tally;
  // The fleet runs two revisions of one profile, and nothing will change that.
  const bool half_way = gate.gate == Gate::aborted && (tally.settled > 0 || !rollout.failed().empty());
  const Severity severity = is_stopped(gate.gate) ? Severity::error : row.audited ? Severity::warning : Severity::info;
  const auto known = std::ranges::find(kWaysOut, gate.gate, &WayOut::gate);
  const std::string way_out = known == std::end(kWaysOut) ? std::string() : known->words(rollout);
  return finding_of(rollout, severity, gate.reason(), half_way ? "is stopped half-way" : "is stopped",
                    way_out.empty() ? gate.message : fmt::format("{}. {}", gate.message, way_out));
}

// Its nodes in a change, if each of them only waits for its pods to end; empty: one makes progress, or none is there.
std::vector<std::string> waiting_for_pods(const RolloutView& rollout) {
  const Tally& tally = rollout.profile_rollout.tally;
  std::vector<std::string> out;
  if (tally.moving() > tally.of(Phase::draining) || rollout.waits().some_start) return out;
  for (const std::string& name : rollout.changing())
    if (rollout.pass.index.find(name)->phase == Phase::draining) out.push_back(name);
  return out;
}

// Their pods are named by `explain`, which knows who can end them.
std::string pods_hold(const std::vector<std::string>& draining) {
  return fmt::format("{} for pods to end (`gpu-sharing-operator explain {}` names them)",
                     draining.size() == 1 ? draining.front() + " waits" : first_names(draining) + " wait",
                     draining.front());
}

// A full budget: its message names the nodes that are out of service. Slots of nodes that the operator is changing are
// free when the changes end, so no person has to act before, except on holds. nullopt: only such nodes hold slots; a
// change that makes no progress has a finding of its own rollout.
std::optional<std::string> full_budget_text(const RolloutView& rollout, const std::string& message) {
  const std::set<std::string> holders = holders_of_awaited_slots(rollout.pass, rollout.key, rollout.profile_rollout);
  const World& world = rollout.pass.s.world;
  std::vector<std::string> held;
  std::vector<std::string> changing;
  for (const std::string& name : holders) {
    if (slot_hold(world, rollout.pass.index, name) != SlotHold::in_change) continue;
    const NodeAssessment* a = rollout.pass.index.find(name);
    (a != nullptr && a->is_held() ? held : changing).push_back(name);
  }
  if (changing.size() == holders.size() && !changing.empty()) return std::nullopt;
  std::string out = message;
  if (!held.empty()) out += ". Held mid-change by a person: " + first_names(held);
  if (!changing.empty()) out += ". In change by the operator, which ends by itself: " + first_names(changing);
  return out;
}

// No gate is closed, and no node makes progress.
std::optional<Finding> standing_rollout(const RolloutView& rollout) {
  if (const auto& standstill = rollout.standstill()) {
    const bool full = standstill->code == kBudgetExhausted;
    const auto text = full ? full_budget_text(rollout, standstill->message) : std::optional(standstill->message);
    if (!text) return std::nullopt;
    return finding_of(rollout, Severity::warning, standstill->code, kStartsNone, *text);
  }
  const std::vector<std::string> draining = waiting_for_pods(rollout);
  const std::string& waits = rollout.waits().message;
  if (draining.empty() || waits.empty()) return std::nullopt;
  return finding_of(rollout, Severity::warning, std::string(kWaitingForWorkloads), kStartsNone,
                    fmt::format("{}; {}", waits, pods_hold(draining)));
}

// All nodes have begun, and the last ones wait for their pods. A closed gate does not stop them.
std::optional<Finding> last_nodes(const RolloutView& rollout) {
  const std::vector<std::string> draining = waiting_for_pods(rollout);
  if (draining.empty()) return std::nullopt;
  const Tally& tally = rollout.profile_rollout.tally;
  return found(Severity::warning, subject_of(rollout), kWaitingForWorkloads,
               fmt::format("the rollout of key {} to {} has {} of {} left: {}", key_name(rollout), rollout.target,
                           draining.size(), counted(tally.total, "node"), pods_hold(draining)));
}

// What the operator wrote about rollouts that failures have stopped. Without its record nothing else is known of them.
void add_written_failures(const World& world, std::vector<Finding>& findings) {
  for (const SharingRollout* rollout : in_order(world.rollouts)) {
    const nlohmann::json status = parse_status(rollout->status_json);
    const nlohmann::json ready = condition_in(status, "Ready");
    const bool failed = rollout->phase == "Failed" || rollout->phase == "Paused";
    const std::string reason = text_at(ready, "reason");
    const bool by_failures = reason == kMaxFailures || reason == kVerificationFailed;
    const bool replaced = text_at(condition_in(status, kCurrentCondition), "status") == "False";
    if (!failed || !by_failures || replaced) continue;
    std::string message = fmt::format("the rollout of key {} to {} is stopped, as the operator reported last: {}",
                                      rollout->key, rollout->to_revision, text_at(ready, "message"));
    findings.push_back(found(Severity::error, rollout_ref(rollout->meta.name), reason, std::move(message)));
  }
}

// A person holds the only node that could go on, and the finding about that says now who waits for it.
bool is_said_of_held_node(const RolloutView& rollout, std::vector<Finding>& findings) {
  return rollout.standstill() && rollout.standstill()->code == kHeld &&
         say_who_waits(rollout.out_of_reach().only_one(), effect_on(rollout, kStartsNone), findings);
}

}  // namespace

bool say_who_waits(std::string_view held, std::string_view effect, std::vector<Finding>& findings) {
  const auto about = std::ranges::find_if(findings, [&](const Finding& finding) {
    return finding.why.code == kHeldMidChange && finding.object.name == held;
  });
  if (about == findings.end()) return false;
  about->why.message += fmt::format(". Until then {}", effect);
  return true;
}

void add_waiting_rollouts(ReadingPass& pass, std::vector<Finding>& findings) {
  if (sharing_objects_unread(pass.world())) return;  // What stops a rollout is written there.
  if (record_unread(pass.world(), pass.settings())) return add_written_failures(pass.world(), findings);
  for (const auto& [key, profile_rollout] : pass.index().profile_rollouts) {
    const PluginInstallation& installation = pass.index().discovery.installations[profile_rollout.installation];
    if (pass.world().unsynced_namespaces.contains(installation.ns)) continue;
    const RolloutView* rollout = pass.rollout(key);
    if (rollout == nullptr) continue;
    const bool all_begun = profile_rollout.tally.of(Phase::pending) == 0;
    const bool open = rollout->gate().is_open() && pass.index().record;
    if (!all_begun && open && is_said_of_held_node(*rollout, findings)) continue;
    auto finding = all_begun ? last_nodes(*rollout) : open ? standing_rollout(*rollout) : stopped_rollout(*rollout);
    if (finding) findings.push_back(*std::move(finding));
  }
}

}  // namespace gso
