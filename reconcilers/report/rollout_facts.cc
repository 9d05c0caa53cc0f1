// Statuses and switches as values.
#include "reconcilers/report/rollout_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "reconcilers/explain/commands.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/explain/revisions.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/canary.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/gates.h"
#include "reconcilers/rollout/rollout_view.h"
#include "reconcilers/status/status.h"

namespace gso {

namespace {

constexpr std::string_view kPolicyPrefix = "policy/";
constexpr std::string_view kStopped = "Stopped";
constexpr std::string_view kProgressing = "Progressing";  // The phase and the condition.

}  // namespace

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
  if (phase == "Failed" && ready.code == aborted) return std::string(aborted);
  const bool by_a_person = ready.code.empty() || ready.code == reason_of(Gate::paused);
  return phase == "Paused" && !by_a_person ? std::string(kStopped) : phase;
}

std::string RolloutFacts::phase_text() const {
  if (stands() && !ready.code.empty()) return fmt::format("Waiting ({})", ready.code);
  std::string word = shown_phase();
  return word == kStopped ? fmt::format("{} ({})", word, ready.code) : word;
}

bool RolloutFacts::undone() const {
  return is_undone(*rollout);
}

bool RolloutFacts::went_wrong() const {
  const bool stopped = phase == "Failed" || phase == "RolledBack" || phase == "Paused";
  return stopped && (ready.code == kMaxFailures || ready.code == kVerificationFailed);
}

bool RolloutFacts::is_stopped() const {
  const bool aborted = shown_phase() == reason_of(Gate::aborted) || (rollout->aborted && !earlier_attempt);
  const bool invalid =
      !finished() && (ready.code == kConfigInvalid ||
                      std::ranges::any_of(nodes, [](const NodeRow& node) { return node.why.code == kConfigInvalid; }));
  return went_wrong() || aborted || undone() || invalid;
}

RolloutFacts facts_of(const SharingRollout& rollout) {
  RolloutFacts out;
  out.rollout = &rollout;
  out.phase = rollout.phase.empty() ? "Starting" : rollout.phase;
  const nlohmann::json status = parse_status(rollout.status_json);
  const nlohmann::json ready = condition_in(status, "Ready");
  out.ready = {text_at(ready, "reason"), text_at(ready, "message"), facts_in_status(status, text_at(ready, "reason"))};
  out.earlier_attempt = text_at(condition_in(status, kCurrentCondition), "reason") == reason_of(Gate::new_attempt);
  const nlohmann::json progressing = condition_in(status, kProgressing);
  if (text_at(progressing, "status") == "False") out.stopped_since = text_at(progressing, "lastTransitionTime");
  out.wave = number_at(status, "wave");
  out.started_at = text_at(status, "startedAt");
  out.completed_at = text_at(status, "completedAt");
  const nlohmann::json counts = object_at(status, "counts");
  out.total = number_at(counts, "total");
  out.updated = number_at(counts, "updated");
  out.in_progress = number_at(counts, "inProgress");
  out.pending = number_at(counts, "pending");
  out.blocked = number_at(counts, "blocked");
  out.failed = number_at(counts, "failed");
  // Its nodes go on with the revision that took its place: the counts are those of then.
  if (out.phase == "Superseded" || out.phase == "RolledBack") out.in_progress = out.pending = 0;
  for (const nlohmann::json& node : list_at(status, "nodes"))
    if (node.is_object()) out.nodes.push_back({text_at(node, "name"), text_at(node, "state"), reason_in(node)});
  return out;
}

RolloutKey rollout_key_of(const SharingRollout& rollout) {
  return {rollout.policy, rollout.config_map, rollout.key};
}

const ProfileRollout* profile_rollout_of(const SharingRollout& rollout, const Index& index) {
  const auto found = index.profile_rollouts.find(rollout_key_of(rollout));
  return found == index.profile_rollouts.end() ? nullptr : &found->second;
}

const ProfileRollout* present_rollout(const SharingRollout& rollout, const Index& index) {
  const ProfileRollout* nodes = profile_rollout_of(rollout, index);
  return nodes != nullptr && target_of(*nodes) == rollout.to_revision ? nodes : nullptr;
}

RecordedStop recorded_stop(const RolloutFacts& facts, const SharingPolicy* policy) {
  const SharingRollout& rollout = *facts.rollout;
  if (has_ended(facts.phase) || facts.earlier_attempt) return {};
  Command resume = resume_of(rollout, policy);
  if (rollout.aborted) return {std::string(reason_of(Gate::aborted)), start_command(rollout.policy, resume)};
  const std::string paused(reason_of(Gate::paused));
  if (resume.empty() || facts.phase == paused || facts.ready.code == paused) return {};
  return {paused, std::move(resume)};
}

Command resume_of(const SharingRollout& rollout, const SharingPolicy* policy) {
  if (policy != nullptr && policy->rollout.paused) return resume_command("policy/" + rollout.policy);
  return rollout.paused ? resume_command(rollout.meta.name) : Command();
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

bool is_named(const RolloutFacts& facts, std::string_view name) {
  if (const std::optional<std::string> policy = policy_of(name)) return facts.rollout->policy == *policy;
  return name.empty() || facts.rollout->meta.name == name;
}

std::vector<std::string> waits_for_workloads(const RolloutFacts& facts) {
  std::vector<std::string> out;
  for (const RolloutFacts::NodeRow& node : facts.nodes)
    if (is_of_workloads(node.why.code)) out.push_back(node.name);
  return out;
}

namespace {

std::string names_of(const std::vector<RolloutFacts>& rollouts) {
  constexpr std::size_t kMost = 10;
  std::string out;
  for (std::size_t i = 0; i < std::min(rollouts.size(), kMost); ++i)
    out += fmt::format("{}{} ({})", i == 0 ? "" : ", ", rollouts[i].rollout->meta.name, rollouts[i].shown_phase());
  if (rollouts.size() > kMost) out += fmt::format(" and {} more", rollouts.size() - kMost);
  return out;
}

}  // namespace

k8s::Result<std::vector<RolloutFacts>> choose(const World& world, const RolloutChoice& choice,
                                              const std::function<bool(const RolloutFacts&)>& fits,
                                              std::string_view what) {
  const std::optional<std::string> policy = policy_of(choice.name);
  std::vector<RolloutFacts> named;
  std::vector<RolloutFacts> fitting;
  for (RolloutFacts& facts : all_rollouts(world)) {
    if (!is_named(facts, choice.name)) continue;
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
  if (fitting.size() > 1 && !choice.all && !policy)
    return refuse(fmt::format("several rollouts match: {}. Name one of them, or use --all", names_of(fitting)));
  return fitting;
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

std::map<RolloutKey, RevisionCounts> loaded_revisions(const World& world, const Index& index) {
  std::map<RolloutKey, RevisionCounts> out;
  for (const auto& [key, node] : world.nodes.all()) {
    const NodeAssessment* a = index.find(key.name);
    if (a == nullptr || loaded_text_is_unknown(*node, *a)) continue;
    ++out[index.rollout_key_of(*a)][std::string(a->loaded.revision.view())];
  }
  return out;
}

std::vector<std::pair<std::string, std::int64_t>> running_revisions(
    const World& world, const Index& index, const std::function<bool(const RolloutKey&)>& is_meant) {
  RevisionCounts counts;
  for (const auto& [key, of_rollout] : loaded_revisions(world, index)) {
    for (const auto& [revision, count] : of_rollout)
      if (is_meant(key) && !revision.empty()) counts[revision] += count;
  }
  std::vector<std::pair<std::string, std::int64_t>> out(counts.begin(), counts.end());
  std::ranges::stable_sort(out, std::greater(), &std::pair<std::string, std::int64_t>::second);
  return out;
}

std::string since_completion(const RolloutFacts& facts, const Index& index) {
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

std::string came_after(const std::vector<RolloutFacts>& all, const SharingRollout& rollout) {
  const auto at = std::ranges::find_if(
      all, [&](const RolloutFacts& facts) { return facts.rollout->meta.name == rollout.meta.name; });
  if (at == all.end()) return {};
  // Of a profile of the same nodes: an inline profile has a key of its own.
  const auto before = std::find_if(std::next(at), all.end(), [&](const RolloutFacts& facts) {
    const SharingRollout& other = *facts.rollout;
    const bool same_key = other.key == rollout.key || is_managed_key(other.key) || is_managed_key(rollout.key);
    return same_key && other.policy == rollout.policy && other.config_map == rollout.config_map;
  });
  if (before == all.end()) return {};
  const std::string& name = before->rollout->meta.name;
  if (before->undone()) return fmt::format("after an undo of {}", name);
  if (!before->finished() || before->phase == "Completed") return {};
  if (before->rollout->aborted) return fmt::format("after {}, which was aborted", name);
  if (before->went_wrong()) return fmt::format("after {}, whose nodes failed", name);
  // As `rollout undo` leaves it, once the earlier text is restored.
  return before->rollout->paused ? fmt::format("after {}, which was paused", name) : std::string();
}

}  // namespace gso
