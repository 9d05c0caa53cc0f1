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

using Json = nlohmann::json;

namespace {

// The number of nodes that the policy's budget allows out of service at a time.
std::int64_t nodes_per_wave(const RolloutView& view) {
  const Tally& sums = view.pass.index.policies.at(view.key.policy);
  return std::max<std::int64_t>(1, view.policy.rollout.max_unavailable.of(sums.total));
}

// 0 while the canary is in progress; then 1, plus 1 for each nodes_per_wave() of settled nodes.
std::int64_t wave_of(const RolloutView& view) {
  bool some_passed = false;
  for (const auto& [product, group] : view.profile_rollout.groups) {
    if (view.canary_passed(product)) {
      some_passed = true;
    } else if (has_candidate(view, product, CanaryNodes::free) || !canaries_in_progress(view, product).empty()) {
      return 0;
    }
  }
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

Json nodes_of(const RolloutView& view) {
  const Pass& pass = view.pass;
  const std::set<std::string>& failed = view.failed();
  Json out = Json::array();
  std::set<std::string> named;  // The list is a map by name: keep the first reason.
  auto add = [&](const std::string& name, std::string_view state, const Reason& why) {
    if (out.size() >= kMostRolloutNodes || !named.insert(name).second) return;
    out.push_back(rollout_node(name, state, why));
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
    for (const auto& [name, who] : *waiting) {
      if (view.has(*pass.index.find(name))) add(name, "Waiting", who);
    }
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

const FleetRecord::Failure* failure_of(const Pass& pass, const SharingRollout& rollout) {
  const RolloutKey key{rollout.policy, rollout.config_map, rollout.key};
  return remembered_failure(pass, key, pass.index.policy(pass.s.world, rollout.policy), rollout.to_revision);
}

// No node has another target since then, so it is the same attempt.
bool nobody_left(const RolloutView& view) {
  return view.profile_rollout.tally.settled + std::ssize(view.changing()) == view.profile_rollout.tally.total;
}

// The object is deleted when every other gate lets nodes start (or they wait for approval), so that the object exists
// for as long as possible; the next pass creates the new one before it starts a node. False if another gate is closed:
// the old object then reports what blocks the nodes.
bool plan_new_attempt(Pass& pass, const RolloutView& view, const SharingRollout& rollout) {
  const Gate gate = view.gate().gate;
  const std::string& key = view.key.key;
  if (rollout.meta.deletion_timestamp || gate == Gate::settling || gate == Gate::key_not_projected) return true;
  if (gate != Gate::new_attempt && gate != Gate::approval) return false;
  replace_attempt(
      pass, rollout,
      was_left(pass.index, rollout)
          ? fmt::format("key {} returns to {}, which another revision had replaced", key, rollout.to_revision)
          : fmt::format("the pods got a new template after key {} was rolled out to {}", key, rollout.to_revision));
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
  const Json added = condition_list({{kCurrentCondition, false, "Superseded", std::string(kLeft)}}, {},
                                    rollout.meta.generation, pass.s.now);
  Json conditions = list_at(status, "conditions");
  conditions.push_back(added.front());
  status["conditions"] = std::move(conditions);
  pass.add(PatchStatus{rollout_ref(rollout), dump(status)}, "Superseded", std::string(kLeft));
}

// counts.inProgress; null if the status has no counts.
Json* counted_in_progress(Json& status) {
  const auto counts = status.find("counts");
  if (counts == status.end() || !counts->is_object()) return nullptr;
  const auto at = counts->find("inProgress");
  return at == counts->end() ? nullptr : &*at;
}

// For a SharingRollout whose revision is the target of its nodes. False if nothing must be written.
bool next_status_of_target(Pass& pass, const RolloutView& view, const SharingRollout& rollout, NextStatus& out) {
  const ProfileRollout& profile_rollout = view.profile_rollout;
  const bool returns = was_left(pass.index, rollout) && !is_undone(rollout);
  out.anew = view.anew;
  if (out.anew && plan_new_attempt(pass, view, rollout)) return false;
  if (returns && !out.anew && !nobody_left(view)) return false;
  out.phase = rollout_phase_of(view, rollout);
  if (out.anew && !false_condition(out.status, kCurrentCondition).starts_with(reason_of(Gate::new_attempt)))
    out.status.erase("startedAt");
  // Nodes in a change finish after an abort: count them until then.
  const std::int64_t moving = profile_rollout.tally.changing;
  out.stopped = view.stop().has_value();
  out.changing = moving;
  out.settled = profile_rollout.tally.settled;
  const Json* counted = counted_in_progress(out.status);
  const bool at_rest = moving == 0 && (counted == nullptr || *counted == 0);
  if (out.phase.name == rollout.phase && has_ended(out.phase.name) && !returns && at_rest) return false;
  out.status["counts"] = {
      {"total", profile_rollout.tally.total},         {"updated", profile_rollout.tally.settled},
      {"inProgress", profile_rollout.tally.moving()}, {"pending", profile_rollout.tally.of(Phase::pending)},
      {"blocked", profile_rollout.tally.blocked()},   {"failed", std::ssize(view.failed())},
      {"drifting", profile_rollout.tally.unshown()}};
  if (!has_ended(out.phase.name) && (view.too_many_failures().empty() || !out.status.contains("wave"))) {
    std::int64_t wave = wave_of(view);
    const auto known = out.status.find("wave");
    if (known != out.status.end() && known->is_number_integer() && !out.anew) {
      // The wave number never decreases, even if nodes drift or return later.
      const auto before = known->get<std::int64_t>();
      report_wave(pass, view, rollout, before, wave);
      wave = std::max(before, wave);
    }
    out.status["wave"] = wave;
  }
  out.status.erase("nodes");
  if (Json nodes = nodes_of(view); !nodes.empty()) out.status["nodes"] = std::move(nodes);
  if (!has_ended(out.phase.name) && view.gate().is_open()) out.waits = view.waits().groups;
  return true;
}

// For a rollout whose nodes have another target, or that has no nodes. False if nothing must be written except what is
// planned here.
bool next_status_of_other(Pass& pass, const SharingRollout& rollout, NextStatus& out) {
  if (has_ended(rollout.phase) && !(is_undone(rollout) && rollout.phase == "Completed")) {
    if (out.left && !says_left(rollout)) note_left(pass, rollout, std::move(out.status));
    return false;
  }
  if (const auto* failure = failure_of(pass, rollout); failure != nullptr && failure->rolled_back) {
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
  if (!goes) {
    next.status.erase("pace");
  } else if (next.changing > 0 && !next.status.contains("pace")) {
    next.status["pace"] = {{"since", k8s::format_time(now)}, {"updated", next.settled}};
  }
}

void write_next_status(Pass& pass, const SharingRollout& rollout, NextStatus next) {
  const RolloutPhase& phase = next.phase;
  Json& status = next.status;
  if (phase.name == "Superseded" || phase.name == "RolledBack") keep_failed_nodes(status);
  const std::string now = k8s::format_time(pass.s.now);
  if (has_ended(rollout.phase) && !has_ended(phase.name)) status.erase("startedAt");
  const bool begins = next.changing > 0 || has_ended(phase.name);
  if (begins && !status.contains("startedAt")) status["startedAt"] = now;
  write_pace(next, pass.s.now);
  if (phase.name == "Completed" && !status.contains("completedAt")) status["completedAt"] = now;
  if (phase.name != "Completed") status.erase("completedAt");
  status["phase"] = phase.name;
  std::vector<StatusCondition> conditions{
      {"Ready", phase.name == "Completed", phase.why.code, phase.said()},
      {"Progressing", phase.name == "Progressing" && !phase.stands, phase.why.code, phase.said()}};
  if (next.left) conditions.push_back({kCurrentCondition, false, "Superseded", std::string(kLeft)});
  if (next.anew) conditions.push_back({kCurrentCondition, false, reason_of(Gate::new_attempt), std::string(kAnew)});
  if (phase.why.code == reason_of(Gate::aborted))
    conditions.push_back({kAbortedCondition, true, phase.why.code, phase.why.message});
  status["conditions"] = condition_list(conditions, status, rollout.meta.generation, pass.s.now);
  status["reason"] = fields_of(phase.why);
  status.erase("waits");
  for (const GroupWait& group : next.waits) {
    if (status["waits"].size() == kMostGroups) break;
    status["waits"].emplace_back(said_of(group.why))["product"] = group.product;
  }
  if (rollout.meta.generation > 0) status["observedGeneration"] = rollout.meta.generation;
  auto text = text_to_write(rollout.status_json, status);
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

// False if nothing must be written, or the DaemonSet's namespace cannot be read.
bool next_status_of_template(Pass& pass, const DaemonRollouts& daemons, const SharingRollout& rollout,
                             NextStatus& next) {
  const std::string_view name = daemonset_of(rollout.config_map);
  if (pass.s.world.unsynced_namespaces.contains(std::string(name.substr(0, name.find('/'))))) return false;
  const auto nodes = daemons.find({rollout.policy, rollout.config_map, rollout.key});
  const bool wanted = nodes != daemons.end() && nodes->second.target == rollout.to_revision;
  return wanted ? next_status_of_daemons(pass, nodes->second, rollout, next)
                : next_status_of_other(pass, rollout, next);
}

bool next_status_of_profile(Pass& pass, const RolloutKey& key, const SharingRollout& rollout, NextStatus& next) {
  RolloutView* view = find_rollout(pass, key);
  const bool wanted = view != nullptr && view->target == rollout.to_revision;
  return wanted ? next_status_of_target(pass, *view, rollout, next) : next_status_of_other(pass, rollout, next);
}

// The object goes, and the next pass makes the new one. The record has its pause first, which goes on.
void end_retried(Pass& pass, const SharingRollout& rollout) {
  const auto& record = pass.index.record;
  const RecordedSwitches* known =
      record ? record->rollout(rollout.policy, rollout.config_map, rollout.key, rollout.to_revision) : nullptr;
  if (rollout.meta.deletion_timestamp || (rollout.paused && (known == nullptr || !known->paused))) return;
  replace_attempt(pass, rollout,
                  fmt::format("`rollout start` has ended its {}: a new rollout takes its place",
                              rollout.aborted ? "abort" : "undo"));
}

void plan_status(Pass& pass, const DaemonRollouts& daemons, const SharingRollout& rollout) {
  const RolloutKey key{rollout.policy, rollout.config_map, rollout.key};
  if (is_retried(rollout, pass.index.policy(pass.s.world, rollout.policy))) return end_retried(pass, rollout);
  NextStatus next;
  next.status = parse_status(rollout.status_json);
  next.left = is_left(pass, key, rollout.to_revision);
  const bool of_profile = daemonset_of(rollout.config_map).empty();
  const bool differs = of_profile ? next_status_of_profile(pass, key, rollout, next)
                                  : next_status_of_template(pass, daemons, rollout, next);
  if (differs) write_next_status(pass, rollout, std::move(next));
}

}  // namespace

Json fields_of(const Reason& why) {
  Json out{{"code", why.code}};
  print_facts(why.facts(), out);
  return out;
}

void erase_reasons(Json& status) {
  status.erase("reason");
  status.erase("waits");
  const auto nodes = status.find("nodes");
  if (nodes == status.end() || !nodes->is_array()) return;
  for (Json& node : *nodes) erase_facts(node);
}

std::optional<std::string> text_to_write(std::string_view stored, const Json& status) {
  std::string text = dump(status);
  if (text == stored) return std::nullopt;
  if (parse_status(stored).contains("reason")) return text;
  Json kept = status;
  erase_reasons(kept);
  return dump(kept) == stored ? std::nullopt : std::optional(std::move(text));
}

Json rollout_node(std::string_view name, std::string_view state, const Reason& why) {
  Json out = said_of(why);
  out["name"] = name;
  out["state"] = state;
  return out;
}

void replace_attempt(Pass& pass, const SharingRollout& rollout, std::string why) {
  pass.add(DeleteObject{rollout_ref(rollout)}, reason_of(Gate::new_attempt), std::move(why));
}

void plan_rollout_statuses(Pass& pass, const DaemonRollouts& daemons) {
  std::map<std::string_view, const SharingRollout*> sorted;
  for (const auto& [key, rollout] : pass.s.world.rollouts.all()) sorted.emplace(rollout->meta.name, rollout.get());
  for (const auto& [name, rollout] : sorted) plan_status(pass, daemons, *rollout);
  trim_rollout_history(pass);
}

}  // namespace gso
