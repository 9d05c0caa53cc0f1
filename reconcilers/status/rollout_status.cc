// Status of the SharingRollouts: phase, counts, blocked and failed nodes.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/status/next_status.h"
#include "reconcilers/status/status.h"

namespace gso {

namespace {

constexpr std::size_t kMostRolloutNodes = 50;  // In status.nodes: the CRD takes no more.

// The next content of a SharingRollout's status.
struct NextStatus {
  RolloutPhase phase{"Superseded",
                     {"Superseded", "the profile has changed again, or no node of the policy uses it any more"}};
  Json status = Json::object();       // The present status, updated where it differs.
  bool left = false;                  // is_left()
  bool anew = false;                  // RolloutView::anew
  bool stopped = false;               // By people, failures or windows.
  std::int64_t changing = 0;          // Nodes in progress,
  std::int64_t settled = 0;           // and nodes that are done.
  std::vector<GroupWait> waits = {};  // What the groups wait for while the gate is open.
  // Nodes that failed, are blocked or wait; nullopt: they stay as they are in `status`.
  std::optional<std::vector<DaemonRollout::Row>> nodes = {};
};

// The number of nodes that the policy's budget allows out of service at a time.
std::int64_t nodes_per_wave(const RolloutView& view) {
  const Tally& sums = view.pass.index.policies.at(view.key.policy);
  return std::max<std::int64_t>(1, view.policy.rollout.max_unavailable.of(sums.total));
}

// 0 while the canary is in progress; then 1, plus 1 for each nodes_per_wave() of settled nodes.
std::int64_t wave_of(const RolloutView& view) {
  bool some_passed = false;
  for (const auto& [product, group] : view.profile_rollout.groups)
    if (view.canary_passed(product))
      some_passed = true;
    else if (has_candidate(view, product, CanaryNodes::free) || !canaries_in_progress(view, product).empty())
      return 0;
  if (!some_passed) return 0;
  return 1 + view.profile_rollout.tally.settled / nodes_per_wave(view);
}

// Reports on the SharingRollout that its canary has passed, and which wave begins: about twenty reports if the waves
// are many. `before`: the wave in its status.
void report_wave(Pass& pass, const RolloutView& view, const SharingRollout& rollout, std::int64_t before,
                 std::int64_t wave) {
  constexpr std::int64_t kMostReported = 20;
  if (wave <= before) return;
  const std::string what = fmt::format("{} to {}", rollout.key, rollout.to_revision);
  const Tally& nodes = view.profile_rollout.tally;
  if (before == 0) {
    if (!has_passed_canary(view)) return;
    pass.event(rollout_ref(rollout.meta.name), false, kCanaryPassed, "Canary",
               fmt::format("{}: the canary has shown the revision for {}; {} of {} nodes remain", what,
                           k8s::format_go_duration(view.policy.rollout.canary_soak), nodes.total - nodes.settled,
                           nodes.total));
    return;
  }
  const std::int64_t waves = 1 + (nodes.total - 1) / nodes_per_wave(view);
  const std::int64_t step = std::max<std::int64_t>(1, (waves + kMostReported - 1) / kMostReported);
  if (wave / step == before / step) return;
  pass.event(rollout_ref(rollout.meta.name), false, kWaveStarted, "Wave",
             fmt::format("{}: wave {} of {}; {} of {} nodes show the revision", what, wave, waves, nodes.settled,
                         nodes.total));
}

std::vector<DaemonRollout::Row> nodes_of(const RolloutView& view) {
  const Pass& pass = view.pass;
  const std::set<std::string>& failed = view.failed();
  std::vector<DaemonRollout::Row> out;
  std::set<std::string> named;  // The list is a map by name: keep the first reason.
  auto add = [&](const std::string& name, std::string_view state, const Reason& why) {
    if (out.size() < kMostRolloutNodes && named.insert(name).second) out.push_back({name, state, why});
  };
  for (const std::string& name : failed) {
    const Node* node = pass.s.world.nodes.find(name);
    add(name, kStateFailed,
        {kVerificationFailed,
         std::string(node ? node->meta.annotations.get(kMessageAnnotation).value_or("") : std::string_view())});
  }
  for (const auto& [reason, names] : view.profile_rollout.blocked) {
    for (const std::string& name : names) {
      const NodeAssessment& a = *pass.index.find(name);
      if (!failed.contains(name)) add(name, to_string(phase_of(a)), a.obstacle);  // Blocked, or Held.
    }
  }
  const std::map<std::string, Reason> queued = blocked_in_queue(pass);
  for (const auto* waiting : {&pass.rollouts->blocked_in_progress(), &queued}) {
    for (const auto& [name, who] : *waiting)
      if (view.has(*pass.index.find(name))) add(name, "Waiting", who);
  }
  for (const auto& [reason, nodes] : view.out_of_reach().nodes) {
    for (const auto& [name, why] : nodes) {
      const Phase phase = phase_of(*pass.index.find(name));
      add(name, phase == Phase::held ? to_string(phase) : "Waiting", {reason, why});
    }
  }
  for (const auto& [name, trouble] : view.troubles()) {
    using enum ChangeTrouble::Kind;
    const bool waits = trouble.kind == stands || trouble.kind == not_ready;
    const std::string_view state = waits ? "Waiting" : to_string(phase_of(*pass.index.find(name)));
    add(name, state, trouble);
  }
  return out;
}

// The object of an earlier attempt is deleted when every other gate lets nodes start (or they wait for approval), so
// that the object exists for as long as possible; the next pass creates the new one before it starts a node. `gate`:
// the first that is closed. False if another one is: the old object then reports what blocks the nodes.
bool plan_new_attempt(Pass& pass, const SharingRollout& rollout, Gate gate, const std::string& why) {
  if (rollout.meta.deletion_timestamp || gate == Gate::settling || gate == Gate::key_not_projected) return true;
  if (gate != Gate::new_attempt && gate != Gate::approval) return false;
  pass.add(DeleteObject{rollout_ref(rollout)}, reason_of(Gate::new_attempt), why);
  return true;
}

constexpr std::size_t kMostGroups = 20;  // In status.waits.

// The fields of an entry that say why.
Json said_of(const Reason& why) {
  Json out{{"reason", why.code}, {"message", cut_message(why.message)}};
  print_facts(why.facts(), out);
  return out;
}

constexpr std::string_view kLeft =
    "another revision has replaced this one; if this one returns, a new SharingRollout is created";

constexpr std::string_view kAnew =
    "this is the record of an earlier attempt: a new SharingRollout replaces it before a node starts, and switches set "
    "in this one have no effect";

void note_left(Pass& pass, const SharingRollout& rollout, Json status) {
  const Json added = condition_list({{kCurrentCondition, false, {"Superseded", std::string(kLeft)}}}, {},
                                    rollout.meta.generation, pass.s.now);
  Json conditions = list_at(status, "conditions");
  conditions.push_back(added.front());
  status["conditions"] = std::move(conditions);
  pass.add(PatchStatus{rollout_ref(rollout), dump(status)}, "Superseded", std::string(kLeft));
}

// For a SharingRollout whose revision is the target of its nodes. False if nothing must be written.
bool next_status_of_target(Pass& pass, const RolloutView& view, const SharingRollout& rollout, NextStatus& out) {
  const ProfileRollout& profile_rollout = view.profile_rollout;
  const bool returns = was_left(pass.index, rollout) && !is_undone(rollout);
  out.anew = view.anew;
  const std::string& key = view.key.key;
  const std::string why =
      was_left(pass.index, rollout)
          ? fmt::format("key {} returns to {}, which another revision had replaced", key, rollout.to_revision)
          : fmt::format("the pods got a new template after key {} was rolled out to {}", key, rollout.to_revision);
  if (out.anew && plan_new_attempt(pass, rollout, view.gate().gate, why)) return false;
  // If no node has another target since then, it is the same attempt.
  const auto has_another = [&] {
    return profile_rollout.tally.settled + std::ssize(view.changing()) != profile_rollout.tally.total;
  };
  if (returns && !out.anew && has_another()) return false;
  out.phase = rollout_phase_of(view, rollout);
  if (out.anew && !false_condition(out.status, kCurrentCondition).starts_with(reason_of(Gate::new_attempt)))
    out.status.erase("startedAt");
  // Nodes in a change finish after an abort: count them until then.
  const std::int64_t moving = profile_rollout.tally.changing;
  out.stopped = view.stop().has_value();
  out.changing = moving;
  out.settled = profile_rollout.tally.settled;
  const bool at_rest = moving == 0 && number_at(object_at(out.status, "counts"), "inProgress") == 0;
  if (out.phase.name == rollout.phase && has_ended(out.phase.name) && !returns && at_rest) return false;
  out.status["counts"] = {
      {"total", profile_rollout.tally.total},         {"updated", profile_rollout.tally.settled},
      {"inProgress", profile_rollout.tally.moving()}, {"pending", profile_rollout.tally.of(Phase::pending)},
      {"blocked", profile_rollout.tally.blocked()},   {"failed", std::ssize(view.failed())},
      {"drifting", profile_rollout.tally.unshown()}};
  if (!has_ended(out.phase.name) && (view.too_many_failures().empty() || !out.status.contains("wave"))) {
    std::int64_t wave = wave_of(view);
    if (out.status.contains("wave") && !out.anew) {
      // The wave number never decreases, even if nodes drift or return later.
      const std::int64_t before = number_at(out.status, "wave");
      report_wave(pass, view, rollout, before, wave);
      wave = std::max(before, wave);
    }
    out.status["wave"] = wave;
  }
  out.nodes = nodes_of(view);
  if (!has_ended(out.phase.name) && view.gate().is_open()) out.waits = view.waits().groups;
  return true;
}

// --- Of a standalone MPS daemon.

// No node has the template, and somebody holds each that could get it: nothing is complete.
RolloutPhase held_everywhere(const DaemonRollout& daemons) {
  std::vector<std::string> names;
  std::string reason(kHeld);
  for (const DaemonRollout::Row& row : daemons.nodes) {
    if (row.state != to_string(Phase::held)) continue;
    if (names.empty()) reason = row.why.code;
    names.push_back(row.name);
  }
  return {"Paused", {reason, "no node runs the template, and none can be changed now: " + first_names(names)}};
}

RolloutPhase daemon_phase_of(const DaemonRollout& daemons) {
  const GateState& gate = daemons.gate;
  if (gate.gate == Gate::aborted) return {std::string(row_of(gate.gate).phase), gate.why()};
  const std::int64_t left = daemons.pending + daemons.in_change;
  if (left == 0 && daemons.failed == 0) {
    if (daemons.updated == 0 && daemons.blocked > 0) return held_everywhere(daemons);
    return {"Completed",
            {"Completed", daemons.blocked == 0 ? "every node runs the template"
                                               : "every node that can be changed runs the template"}};
  }
  if (const std::string phase(row_of(gate.gate).phase); !phase.empty() && daemons.pending > 0)
    return {phase, gate.why()};
  if (left == 0) return {"Failed", {kVerificationFailed, why_failed(daemons)}};
  if (!gate.is_open()) return {"Progressing", gate.why()};
  return {"Progressing", {kRollingOut, {}}};
}

bool next_status_of_daemons(Pass& pass, const DaemonRollout& daemons, const SharingRollout& rollout, NextStatus& out) {
  out.anew = daemons.pending > 0 && was_left(pass.index, rollout);
  const bool history = !out.anew && was_left(pass.index, rollout);
  if (history || rollout.meta.deletion_timestamp) return false;
  const std::string why =
      fmt::format("{} returns to template {}, which another one had replaced", rollout.config_map, rollout.to_revision);
  if (out.anew && plan_new_attempt(pass, rollout, daemons.gate.gate, why)) return false;
  out.phase = daemon_phase_of(daemons);
  // A pod that is missing or not Ready later does not reopen a rollout that is complete, and no status is written.
  const bool ended = has_ended(rollout.phase) && daemons.pending == 0;
  if (rollout.phase == "Completed" && ended) return false;
  out.stopped = !row_of(daemons.gate.gate).phase.empty();
  out.changing = daemons.in_change;
  out.settled = daemons.updated;
  out.status["counts"] = {{"total", daemons.total},
                          {"updated", daemons.updated},
                          {"inProgress", daemons.in_change},
                          {"pending", daemons.pending},
                          {"blocked", daemons.blocked},
                          {"failed", daemons.failed},
                          {"drifting", 0}};
  if (!has_ended(out.phase.name))
    out.status["wave"] = out.anew ? daemons.wave : std::max(number_at(out.status, "wave"), daemons.wave);
  out.nodes = daemons.nodes;
  return true;
}

// For a rollout whose nodes have another target, or that has no nodes. False if nothing must be written except what is
// planned here.
bool next_status_of_other(Pass& pass, const SharingRollout& rollout, NextStatus& out) {
  if (has_ended(rollout.phase) && !(is_undone(rollout) && rollout.phase == "Completed")) {
    if (out.left && !says_left(rollout)) note_left(pass, rollout, std::move(out.status));
    return false;
  }
  const auto* failure = remembered_failure(pass, rollout_key_of(rollout),
                                           pass.index.policy(pass.s.world, rollout.policy), rollout.to_revision);
  if (failure != nullptr && failure->rolled_back) {
    constexpr std::string_view kBack = "the policy's nodes return to the last verified profile";
    out.phase = {
        "RolledBack",
        {failure->nodes.empty() ? kUndone : kMaxFailures,
         failure->nodes.empty() ? fmt::format("rolled back by a person: {}", kBack)
                                : fmt::format("failed on {}: {}", counted(failure->nodes.size(), "node"), kBack)}};
  }
  return true;
}

// Since when, and with how many nodes done already, the rollout has had one pace: since its canaries passed, or since
// the last stop ended. The time before that does not predict the time that is left.
void write_pace(NextStatus& next, WallTime now) {
  const bool goes =
      next.phase.name == "Progressing" && !next.phase.stands && !next.stopped && number_at(next.status, "wave") > 0;
  if (!goes)
    next.status.erase("pace");
  else if (next.changing > 0 && !next.status.contains("pace"))
    next.status["pace"] = {{"since", k8s::format_time(now)}, {"updated", next.settled}};
}

void write_next_status(Pass& pass, const SharingRollout& rollout, NextStatus next) {
  const RolloutPhase& phase = next.phase;
  Json& status = next.status;
  if (next.nodes) status.erase("nodes");
  for (const DaemonRollout::Row& row : next.nodes.value_or(std::vector<DaemonRollout::Row>())) {
    Json entry = said_of(row.why);
    entry["name"] = row.name;
    entry["state"] = row.state;
    status["nodes"].push_back(std::move(entry));
    if (status["nodes"].size() == kMostRolloutNodes) break;
  }
  if (phase.name == "Superseded" || phase.name == "RolledBack") keep_failed_nodes(status);
  const std::string now = k8s::format_time(pass.s.now);
  if (has_ended(rollout.phase) && !has_ended(phase.name)) status.erase("startedAt");
  const bool begins = next.changing > 0 || has_ended(phase.name);
  if (begins && !status.contains("startedAt")) status["startedAt"] = now;
  write_pace(next, pass.s.now);
  if (phase.name == "Completed" && !status.contains("completedAt")) status["completedAt"] = now;
  if (phase.name != "Completed") status.erase("completedAt");
  status["phase"] = phase.name;
  const Reason said{phase.why.code, phase.said()};
  std::vector<StatusCondition> conditions{{"Ready", phase.name == "Completed", said},
                                          {"Progressing", phase.name == "Progressing" && !phase.stands, said}};
  if (next.left) conditions.push_back({kCurrentCondition, false, {"Superseded", std::string(kLeft)}});
  if (next.anew) conditions.push_back({kCurrentCondition, false, {reason_of(Gate::new_attempt), std::string(kAnew)}});
  if (phase.why.code == reason_of(Gate::aborted)) conditions.push_back({kAbortedCondition, true, phase.why});
  status["conditions"] = condition_list(conditions, status, rollout.meta.generation, pass.s.now);
  status["reason"] = fields_of(phase.why);
  status.erase("waits");
  for (const GroupWait& group : next.waits) {
    if (status["waits"].size() == kMostGroups) break;
    status["waits"].emplace_back(said_of(group.why))["product"] = group.product;
  }
  if (rollout.meta.generation > 0) status["observedGeneration"] = rollout.meta.generation;
  auto text = text_to_write(pass.s.world, "SharingRollout", rollout.status_json, status);
  if (!text) return;
  PatchStatus patch{rollout_ref(rollout), *std::move(text)};
  if (phase.name != rollout.phase) {
    const bool aborted = phase.why.code == reason_of(Gate::aborted);
    const bool bad =
        (phase.name == "Failed" && !aborted) || phase.name == "RolledBack" || phase.why.code == kMaxFailures;
    const std::string& subject = rollout.key.empty() ? rollout.config_map : rollout.key;
    pass.event(patch.object, bad, phase.why.code, "Rollout",
               fmt::format("{} to {}: {}{}{}", subject, rollout.to_revision, aborted ? phase.why.code : phase.name,
                           phase.why.message.empty() ? "" : ": ", phase.why.message));
  }
  pass.add(std::move(patch), phase.name, phase.why.message);
}

// False if nothing must be written.
bool next_status_of(Pass& pass, const DaemonRollouts& daemons, const RolloutKey& key, const SharingRollout& rollout,
                    NextStatus& next) {
  const std::string_view daemonset = daemonset_of(rollout.config_map);
  if (daemonset.empty()) {
    RolloutView* view = find_rollout(pass, key);
    const bool wanted = view != nullptr && view->target == rollout.to_revision;
    return wanted ? next_status_of_target(pass, *view, rollout, next) : next_status_of_other(pass, rollout, next);
  }
  const std::string_view ns = daemonset.substr(0, daemonset.find('/'));
  if (pass.s.world.unsynced_namespaces.contains(std::string(ns))) return false;
  const auto nodes = daemons.find(key);
  const bool wanted = nodes != daemons.end() && nodes->second.target == rollout.to_revision;
  return wanted ? next_status_of_daemons(pass, nodes->second, rollout, next)
                : next_status_of_other(pass, rollout, next);
}

// The object goes, and the next pass makes the new one. A pause of the present attempt goes on: the record has it
// first, and the object goes as this pass sees it, because a person can have paused it since.
void end_retried(Pass& pass, const SharingRollout& rollout) {
  const RolloutView* view = find_rollout(pass, rollout_key_of(rollout));
  const bool of_this_attempt = view == nullptr || view->object != &rollout || !view->anew;
  const RecordedSwitches* known = recorded(pass.index, rollout);
  const bool forgets_pause = rollout.paused && of_this_attempt && (known == nullptr || !known->paused);
  if (rollout.meta.deletion_timestamp || forgets_pause) return;
  pass.add(DeleteObject{rollout_ref(rollout), rollout.meta.resource_version}, reason_of(Gate::new_attempt),
           fmt::format("`rollout start` has ended its {}: a new rollout takes its place",
                       rollout.aborted ? "abort" : "undo"));
}

void plan_status(Pass& pass, const DaemonRollouts& daemons, const SharingRollout& rollout) {
  const RolloutKey key = rollout_key_of(rollout);
  if (is_retried(rollout, pass.index.policy(pass.s.world, rollout.policy))) return end_retried(pass, rollout);
  NextStatus next{.status = parse_status(rollout.status_json), .left = is_left(pass, key, rollout.to_revision)};
  if (next_status_of(pass, daemons, key, rollout, next)) write_next_status(pass, rollout, std::move(next));
}

}  // namespace

Json fields_of(const Reason& why) {
  Json out{{"code", why.code}};
  print_facts(why.facts(), out);
  return out;
}

std::optional<std::string> text_to_write(const World& world, const std::string& kind, std::string_view stored,
                                         const Json& status) {
  std::string text = dump(status);
  if (text == stored) return std::nullopt;
  const auto dropped = world.dropped_status_fields.find(kind);
  if (dropped == world.dropped_status_fields.end()) return text;
  Json kept = status.flatten();
  for (const std::string& path : dropped->second) kept.erase(path);
  return kept == parse_status(stored).flatten() ? std::nullopt : std::optional(std::move(text));
}

void plan_rollout_statuses(Pass& pass, const DaemonRollouts& daemons) {
  for (const SharingRollout* rollout : in_order(pass.s.world.rollouts)) plan_status(pass, daemons, *rollout);
  trim_rollout_history(pass);
}

}  // namespace gso
