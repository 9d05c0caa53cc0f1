// Status of the SharingRollouts: phase, counts, who is blocked or failed. And the history that is kept.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/stops.h"
#include "reconcilers/status/policy_sum.h"
#include "reconcilers/status/status.h"

namespace gso {

using Json = nlohmann::json;

namespace {

struct Phase {
  std::string name;
  std::string reason;
  std::string message;
  bool stands = false;  // Progressing, but for nodes that nobody may touch now.
};

// Why none of the nodes that wait has a slot; empty where one has, or where nobody but NotReady and held nodes waits.
std::string no_slot(const Pass& pass, const UnitKey& key, const Unit& unit) {
  std::string why;
  for (const auto& [product, group] : unit.groups) {
    const bool asks = std::ranges::any_of(group.pending, [&](const auto& entry) {
      const NodeAssessment& a = *pass.index.find(entry.second);
      return a.ready && !a.held;
    });
    if (!asks) continue;
    std::string full = exhausted_budget(pass, key, unit, product);
    if (full.empty() || !group.pending.begin()->first) return {};
    if (why.empty()) why = std::move(full);
  }
  return why;
}

// The revision may be the one that they run.
constexpr std::string_view kNewerTemplate =
    "nodes wait for pods of a newer template of their DaemonSets (updateStrategy OnDelete)";

// All nodes in flight wait for a right that the operator does not have: the first of them, and which; else empty.
std::string none_may_be_written(const Pass& pass, const UnitKey& key, std::int64_t moving) {
  std::string first;
  std::int64_t refused = 0;
  for (const std::string& name : pass.index.nodes_in(Bucket::changing)) {
    const NodeAssessment& a = *pass.index.find(name);
    const std::string* right = refused_write(pass, name);
    if (right == nullptr || a.policy != key.policy || a.key != key.key || pass.index.set_of(a).id() != key.set)
      continue;
    if (++refused == 1) first = fmt::format("{}: {}", name, *right);
  }
  return refused > 0 && refused == moving ? first : std::string();
}

// What the others wait for while canaries soak; empty where some group's have passed, or none has verified yet.
std::string soak(Pass& pass, const UnitKey& key, const Unit& unit, const std::string& target) {
  const RolloutSpec& rollout = pass.index.policy(pass.s.world, key.policy).rollout;
  std::optional<WallTime> until;
  for (const auto& [product, group] : unit.groups) {
    if (group.pending.empty()) continue;
    if (canary_passed(pass, key, unit, product, target)) return {};
    if (group.tally.settled < std::min(rollout.canary_nodes_per_group, group.tally.total)) continue;
    const WallTime end = pass.since(soaking_timer(key, target, product)) +
                         std::chrono::ceil<std::chrono::milliseconds>(rollout.canary_soak);
    until = until ? std::min(*until, end) : end;
  }
  if (!until) return {};
  return fmt::format("the canary is verified and soaks for {}: the next nodes start at {}",
                     k8s::format_go_duration(rollout.canary_soak), k8s::format_time(*until));
}

std::set<std::string> in_flight_to(const Pass& pass, const UnitKey& key, std::string_view revision) {
  std::set<std::string> out;
  std::ranges::copy_if(pass.index.nodes_in(Bucket::changing), std::inserter(out, out.end()),
                       [&](const std::string& name) {
                         const NodeAssessment& a = *pass.index.find(name);
                         return a.policy == key.policy && a.key == key.key && pass.index.set_of(a).id() == key.set &&
                                a.change->to == revision;
                       });
  return out;
}

// Half-way to another revision when this one came. Their pods read it whoever approves what; to stop there would keep
// them out of service.
std::string on_their_way(const Pass& pass, const UnitKey& key, std::string_view revision) {
  const std::set<std::string> nodes = in_flight_to(pass, key, revision);
  if (nodes.empty()) return {};
  return "; on their way already, and finished with what stands there now: " + join_names({nodes.begin(), nodes.end()});
}

// `anew`: its switches are those of an earlier attempt.
Phase phase_of(Pass& pass, const UnitKey& key, const Unit& unit, const SharingRollout& rollout, bool anew) {
  if (!anew && switches_of(pass, key, rollout.to_revision, &rollout).aborted)
    return {"Failed", "Aborted", "spec.aborted is set: the remaining nodes stay as they are"};
  const std::int64_t pending = unit.tally.of(Situation::change);
  const std::int64_t moving = unit.tally.of(Situation::in_flight);
  const std::int64_t other = unit.tally.of(Situation::to_record) + unit.tally.of(Situation::following);
  const bool failed = failures_of(pass.index, unit, rollout.to_revision) > 0;
  if (pending + moving == 0 && !failed) {
    // A node that joined, or drifted, later does not open what was completed.
    if (other == 0 || rollout.phase == "Completed")
      return {"Completed", "Completed", "every node that can be is at the revision"};
  }
  const Gate gate = gate_of(pass, key, unit);
  if (gate.reason == "AwaitingApproval")
    return {"AwaitingApproval", gate.reason, gate.message + on_their_way(pass, key, rollout.to_revision)};
  if (gate.reason == kMaxFailures || gate.reason == kUndone || gate.reason == "Paused" || gate.reason == kObserve) {
    return {"Paused", gate.reason, gate.message};
  }
  if (pending + moving == 0 && failed) return {"Failed", std::string(kVerificationFailed), "nodes failed to verify"};
  if (gate.open()) {
    if (auto refused = none_may_be_written(pass, key, moving); !refused.empty())
      return {"Progressing", std::string(kForbidden), std::move(refused), true};
    if (const OutOfReach out = out_of_reach(pass, key, unit); out.stops_all) {
      const auto& [reason, nodes] = *out.nodes.begin();
      return {"Progressing", reason, fmt::format("{}: {}", nodes.begin()->first, nodes.begin()->second), true};
    }
    if (std::string why = moving == 0 ? no_slot(pass, key, unit) : std::string(); !why.empty())
      return {"Progressing", std::string(kBudgetExhausted), std::move(why), true};
    std::string why = moving == 0 ? soak(pass, key, unit, rollout.to_revision) : std::string();
    if (why.empty() && unit.tally.new_template > 0) why = kNewerTemplate;
    return {"Progressing", "RollingOut", std::move(why)};
  }
  return {"Progressing", gate.reason, gate.message};
}

// 0 while the canary is under way, then the number of budgets' worth of nodes that are done.
std::int64_t wave_of(Pass& pass, const UnitKey& key, const Unit& unit, const std::string& target) {
  for (const auto& [product, group] : unit.groups) {
    if (!group.pending.empty() && !canary_passed(pass, key, unit, product, target)) return 0;
  }
  const auto& sums = pass.index.policies.at(key.policy);
  const std::int64_t budget =
      std::max<std::int64_t>(1, pass.index.policy(pass.s.world, key.policy).rollout.max_unavailable.of(sums.total));
  return 1 + unit.tally.settled / budget;
}

// `failed`: on this revision.
Json nodes_of(const Pass& pass, const UnitKey& key, const Unit& unit, const std::set<std::string>& failed) {
  constexpr std::size_t kMost = 50;
  Json out = Json::array();
  std::set<std::string> told;  // A map by name: the first reason stands.
  auto add = [&](const std::string& name, std::string_view state, std::string_view reason, std::string_view message) {
    if (out.size() >= kMost || !told.insert(name).second) return;
    out.push_back({{"name", name}, {"state", state}, {"reason", reason}, {"message", cut_message(message)}});
  };
  for (const std::string& name : failed) {
    const Node* node = pass.s.world.nodes.find(name);
    add(name, kStateFailed, kVerificationFailed,
        node ? node->meta.annotations.get(kMessageAnnotation).value_or("") : std::string_view());
  }
  for (const auto& [reason, names] : unit.blocked) {
    for (const std::string& name : names) {
      if (!failed.contains(name)) add(name, kStateBlocked, reason, pass.index.find(name)->message);
    }
  }
  for (const auto& waiting : {waiting_in_flight(pass), waiting_in_queue(pass)}) {
    for (const auto& [name, who] : waiting) {
      const NodeAssessment& a = *pass.index.find(name);
      const bool here = a.policy == key.policy && a.key == key.key && pass.index.set_of(a).id() == key.set;
      if (here) add(name, "Waiting", who.reason, who.message);
    }
  }
  for (const std::string& name : pass.index.nodes_in(Bucket::changing)) {
    const NodeAssessment& a = *pass.index.find(name);
    const bool here = a.policy == key.policy && a.key == key.key && pass.index.set_of(a).id() == key.set;
    if (here && !a.ready && a.situation == Situation::in_flight && !a.held)
      add(name, "Waiting", kNotReady, "is in flight, and not Ready: it is waited for, as long as verifyTimeout");
  }
  for (const auto& [reason, nodes] : out_of_reach(pass, key, unit).nodes) {
    for (const auto& [name, why] : nodes) add(name, reason == kHeld ? "Held" : "Waiting", reason, why);
  }
  return out;
}

bool is_undone(const SharingRollout& rollout) {
  return rollout.meta.annotations.get(kUndoAnnotation) == "true";
}

const FleetRecord::Failure* failure_of(const Pass& pass, const SharingRollout& rollout) {
  const UnitKey key{rollout.policy, rollout.config_map, rollout.key};
  return remembered_failure(pass.index, key, pass.index.policy(pass.s.world, rollout.policy), rollout.to_revision);
}

// Nobody has gone anywhere else meanwhile: it is the same attempt.
bool nobody_left(const Pass& pass, const UnitKey& key, const Unit& unit, const SharingRollout& rollout) {
  return unit.tally.settled + std::ssize(in_flight_to(pass, key, rollout.to_revision)) == unit.tally.total;
}

// The object goes once everything else lets nodes start (or they wait to be approved), so that there is one for as long
// as possible; the next pass writes the new one before it starts a node. False where something else holds the nodes:
// the old object is the one to tell what.
bool plan_new_attempt(Pass& pass, const UnitKey& key, const Unit& unit, const SharingRollout& rollout) {
  const Gate gate = gate_of(pass, key, unit);
  if (rollout.meta.deletion_timestamp || gate.reason == kSettling || gate.reason == "KeyNotProjected") return true;
  if (gate.reason != kNewAttempt && gate.reason != "AwaitingApproval") return false;
  ObjectRef ref = rollout_ref(rollout.meta.name);
  ref.uid = rollout.meta.uid;
  pass.add(
      DeleteObject{std::move(ref)}, kNewAttempt,
      was_left(pass.index, rollout)
          ? fmt::format("key {} comes back to {}, which another revision had replaced", key.key, rollout.to_revision)
          : fmt::format("a new template came after key {} had gone to {}", key.key, rollout.to_revision));
  return true;
}

constexpr std::string_view kLeft =
    "another revision has taken its place; should this one come back, that is a new attempt";

constexpr std::string_view kAnew =
    "this is the record of an earlier attempt: a new one takes its place before a node starts, and switches turned in "
    "this one do not count";

PatchStatus status_patch(const SharingRollout& rollout, const Json& status) {
  ObjectRef ref = rollout_ref(rollout.meta.name);
  ref.uid = rollout.meta.uid;
  return {std::move(ref), status.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

void note_left(Pass& pass, const SharingRollout& rollout, Json status) {
  const Json added = condition_list({{std::string(kCurrentCondition), false, "Superseded", std::string(kLeft)}}, "",
                                    rollout.meta.generation, pass.s.now);
  status["conditions"].push_back(added.front());
  pass.add(status_patch(rollout, status), "Superseded", std::string(kLeft));
}

// What a record says from now on.
struct Account {
  Phase phase{"Superseded", "Superseded", "the profile has changed again, or no node of the policy uses it any more",
              false};
  Json status = Json::object();  // As it stands, but for what differs.
  bool left = false;             // is_left()
  bool anew = false;             // begins_anew()
};

// counts.inFlight; null where nothing is counted.
Json* told_in_flight(Json& status) {
  const auto counts = status.find("counts");
  if (counts == status.end() || !counts->is_object()) return nullptr;
  const auto at = counts->find("inFlight");
  return at == counts->end() ? nullptr : &*at;
}

// Of a record whose revision its nodes are to have. False where there is nothing to write.
bool account_of_target(Pass& pass, const UnitKey& key, const Unit& unit, const SharingRollout& rollout, Account& out) {
  const bool returns = was_left(pass.index, rollout) && !is_undone(rollout);
  out.anew = begins_anew(pass.index, unit, rollout);
  if (out.anew && plan_new_attempt(pass, key, unit, rollout)) return false;
  if (returns && !out.anew && !nobody_left(pass, key, unit, rollout)) return false;
  out.phase = phase_of(pass, key, unit, rollout, out.anew);
  if (out.anew && !false_condition(rollout.status_json, kCurrentCondition).starts_with(kNewAttempt))
    out.status.erase("startedAt");
  // Nodes in flight finish when it is aborted: they are counted until they have.
  const std::int64_t moving = unit.tally.of(Situation::in_flight);
  const Json* told = told_in_flight(out.status);
  const bool at_rest = moving == 0 && (told == nullptr || *told == 0);
  if (out.phase.name == rollout.phase && has_ended(out.phase.name) && !returns && at_rest) return false;
  const std::set<std::string> failed = failed_on(pass.index, unit, rollout.to_revision);
  out.status["counts"] = {{"total", unit.tally.total},
                          {"updated", unit.tally.settled},
                          {"inFlight", moving},
                          {"pending", unit.tally.of(Situation::change)},
                          {"blocked", unit.tally.blocked()},
                          {"failed", std::ssize(failed)}};
  if (!has_ended(out.phase.name)) out.status["wave"] = wave_of(pass, key, unit, rollout.to_revision);
  out.status.erase("nodes");
  if (Json nodes = nodes_of(pass, key, unit, failed); !nodes.empty()) out.status["nodes"] = std::move(nodes);
  return true;
}

// Of one whose nodes are meant for something else, or are not seen. False where nothing is left to write but what is
// planned here.
bool account_of_other(Pass& pass, const SharingRollout& rollout, Account& out) {
  if (has_ended(rollout.phase) && !(is_undone(rollout) && rollout.phase == "Completed")) {
    if (out.left && !says_left(rollout)) note_left(pass, rollout, std::move(out.status));
    return false;
  }
  if (const auto* failure = failure_of(pass, rollout); failure != nullptr && failure->rolled_back) {
    constexpr std::string_view kBack = "the policy's nodes go back to what was verified before";
    out.phase = {"RolledBack", std::string(failure->nodes.empty() ? kUndone : kMaxFailures),
                 failure->nodes.empty() ? fmt::format("taken back by a person: {}", kBack)
                                        : fmt::format("failed on {} node{}: {}", failure->nodes.size(),
                                                      failure->nodes.size() == 1 ? "" : "s", kBack)};
  }
  return true;
}

void write_account(Pass& pass, const SharingRollout& rollout, Account account) {
  const Phase& phase = account.phase;
  Json& status = account.status;
  if (phase.name == "Superseded" || phase.name == "RolledBack") close_counts(status);
  const std::string now = k8s::format_time(pass.s.now);
  if (!status.contains("startedAt")) status["startedAt"] = now;
  if (phase.name == "Completed" && !status.contains("completedAt")) status["completedAt"] = now;
  if (phase.name != "Completed") status.erase("completedAt");
  status["phase"] = phase.name;
  std::vector<StatusCondition> conditions{
      {"Ready", phase.name == "Completed", phase.reason, phase.message},
      {"Progressing", phase.name == "Progressing" && !phase.stands, phase.reason, phase.message}};
  if (account.left) conditions.push_back({std::string(kCurrentCondition), false, "Superseded", std::string(kLeft)});
  if (account.anew)
    conditions.push_back({std::string(kCurrentCondition), false, std::string(kNewAttempt), std::string(kAnew)});
  if (phase.reason == "Aborted")
    conditions.push_back({std::string(kAbortedCondition), true, phase.reason, phase.message});
  status["conditions"] = condition_list(conditions, rollout.status_json, rollout.meta.generation, pass.s.now);
  if (rollout.meta.generation > 0) status["observedGeneration"] = rollout.meta.generation;
  PatchStatus patch = status_patch(rollout, status);
  if (patch.status_json == rollout.status_json) return;
  if (phase.name != rollout.phase) {
    const bool bad = phase.name == "Failed" || phase.name == "RolledBack" || phase.reason == kMaxFailures;
    pass.event(patch.object, bad, phase.reason, "Rollout",
               fmt::format("{} to {}: {}{}{}", rollout.key, rollout.to_revision, phase.name,
                           phase.message.empty() ? "" : ": ", phase.message));
  }
  pass.add(std::move(patch), phase.name, phase.message);
}

void plan_status(Pass& pass, const SharingRollout& rollout) {
  const UnitKey key{rollout.policy, rollout.config_map, rollout.key};
  Account account;
  if (Json old = Json::parse(rollout.status_json, nullptr, false); old.is_object()) account.status = std::move(old);
  account.left = is_left(pass, key, rollout);
  const auto at = pass.index.units.find(key);
  const bool wanted = at != pass.index.units.end() && unit_target(at->second) == rollout.to_revision;
  const bool differs =
      wanted ? account_of_target(pass, key, at->second, rollout, account) : account_of_other(pass, rollout, account);
  if (differs) write_account(pass, rollout, std::move(account));
}

// Finished rollouts beyond the limit go, oldest first, policy by policy.
void plan_history(Pass& pass) {
  std::map<std::string_view, std::vector<const SharingRollout*>> finished;
  for (const auto& [key, rollout] : pass.s.world.rollouts.all()) {
    if (has_ended(rollout->phase) && !rollout->meta.deletion_timestamp)
      finished[rollout->policy].push_back(rollout.get());
  }
  for (auto& [policy, rollouts] : finished) {
    const std::int64_t wanted =
        pass.index.policy(pass.s.world, policy).revision_history_limit.value_or(pass.s.settings.revision_history_limit);
    const auto limit = static_cast<std::size_t>(std::max<std::int64_t>(0, wanted));
    if (rollouts.size() <= limit) continue;
    std::ranges::sort(rollouts, [](const SharingRollout* a, const SharingRollout* b) {
      return std::tie(a->meta.creation_timestamp, a->meta.name) < std::tie(b->meta.creation_timestamp, b->meta.name);
    });
    std::size_t left = rollouts.size() - limit;
    for (const SharingRollout* rollout : rollouts) {
      if (left == 0) break;
      if (holds_a_switch(pass, *rollout)) continue;  // The present target's, or a stop: no history.
      ObjectRef ref = rollout_ref(rollout->meta.name);
      ref.uid = rollout->meta.uid;
      pass.add(DeleteObject{std::move(ref)}, "HistoryLimit", fmt::format("more than {} finished rollouts", limit));
      --left;
    }
  }
}

}  // namespace

void plan_rollout_statuses(Pass& pass) {
  std::map<std::string_view, const SharingRollout*> sorted;
  for (const auto& [key, rollout] : pass.s.world.rollouts.all()) sorted.emplace(key.name, rollout.get());
  for (const auto& [name, rollout] : sorted) plan_status(pass, *rollout);
  plan_history(pass);
}

}  // namespace gso
