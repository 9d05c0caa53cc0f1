// Verbs of `rollout` that set a switch of a SharingRollout or a SharingPolicy; `resume` also ends the pauses of
// ConfigMaps that people have annotated.
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "controller/commands/rollout/rollout.h"
#include "controller/commands/shared/print.h"
#include "controller/reading/reads.h"
#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/resources.h"
#include "reconcilers/report/report.h"

namespace gso {

namespace asio = boost::asio;
using OrderedJson = nlohmann::ordered_json;

namespace {

using Verb = RolloutOptions::Verb;

struct Switch {
  Verb verb;
  const char* field;  // Of the SharingRollout's spec.
  bool SharingRollout::* member;
  bool value;
  const char* done;  // "paused"
  const char* none;  // What no rollout is: "can be paused"
  const char* hint;  // What to do then.
};
constexpr Switch kSwitches[] = {
    {Verb::pause, "paused", &SharingRollout::paused, true,
     "paused: no further node starts, nodes with a deleted pod finish, nodes that only wait are uncordoned",
     "can be paused", ""},
    {Verb::resume, "paused", &SharingRollout::paused, false, "resumed", "is paused by spec.paused",
     ". If a failed node stopped a rollout, fix the node, then run: gpu-sharing-operator rollout start"},
    {Verb::approve, "approved", &SharingRollout::approved, true, "approved", "waits for approval", ""},
    {Verb::abort, "aborted", &SharingRollout::aborted, true,
     "aborted: nodes with a deleted pod finish, nodes that only wait are uncordoned, the others are not changed",
     "can be aborted", ""},
};

bool goes_on(const RolloutFacts& facts) {
  return !facts.finished() && !facts.earlier_attempt;
}

// Before the operator's first status, only the mode of the policy says that the rollout will wait for approval.
bool awaits_approval(const RolloutCall& call, const RolloutFacts& facts) {
  if (facts.phase == "AwaitingApproval") return true;
  const SharingPolicy* policy = call.world.policies.find(facts.rollout->policy);
  return facts.phase == "Starting" && policy != nullptr && call.settings.mode_of(*policy) == PolicyMode::approve;
}

bool can_be_set(const RolloutCall& call, const Switch& wanted, const RolloutFacts& facts) {
  if (wanted.verb == Verb::abort) return goes_on(facts);
  return goes_on(facts) && facts.rollout->*wanted.member != wanted.value &&
         (wanted.verb != Verb::approve || awaits_approval(call, facts));
}

// It is in this position already. An aborted rollout has ended: it is meant only as long as its nodes should run its
// revision.
bool is_set(const RolloutCall& call, const Switch& wanted, const RolloutFacts& facts) {
  if (facts.rollout->*wanted.member != wanted.value) return false;
  if (wanted.verb != Verb::abort) return goes_on(facts);
  return !facts.earlier_attempt && facts.phase != "Completed" &&
         present_rollout(*facts.rollout, call.index.impl()) != nullptr;
}

ConfigMapPause pause_on(const RolloutCall& call, const k8s::ObjectKey& key) {
  // The operator's record has pauses of deleted ConfigMaps.
  return pause_of(call.world, call.index.impl().record_or_null(), key);
}

// The ConfigMaps that plugins mount and that are paused. None where one cannot be read.
std::set<k8s::ObjectKey> paused_config_maps(const RolloutCall& call) {
  std::set<k8s::ObjectKey> out;
  for (const PluginInstallation& installation : call.index.installations()) {
    const k8s::ObjectKey key = installation.config_map_key();
    if (key.name.empty()) continue;
    const bool read = call.world.configmaps.find(key) != nullptr;
    if (!read && call.world.unsynced_namespaces.contains(installation.ns)) return {};
    if (read && pause_on(call, key) != ConfigMapPause::none) out.insert(key);
  }
  return out;
}

// Other stops that a `resume` does not lift.
std::string still_stopped(const RolloutCall& call, const std::set<k8s::ObjectKey>& paused,
                          const SharingRollout& rollout) {
  const SharingPolicy* policy = call.world.policies.find(rollout.policy);
  if (policy != nullptr && policy->rollout.paused) {
    return fmt::format("policy {} is also paused. Resume it: gpu-sharing-operator rollout resume policy/{}",
                       rollout.policy, rollout.policy);
  }
  const auto stopped =
      std::ranges::find(paused, rollout.config_map, [](const auto& key) { return k8s::to_string(key); });
  if (stopped == paused.end()) return {};
  const ConfigMapPause pause = pause_on(call, *stopped);
  if (pause == ConfigMapPause::record) return describe(pause, *stopped);
  return fmt::format(
      "ConfigMap {} also has the annotation {}=true. Remove it: kubectl annotate configmap {} --namespace {} {}-",
      rollout.config_map, kPausedAnnotation, stopped->name, stopped->ns, kPausedAnnotation);
}

asio::awaitable<int> end_pauses(RolloutCall* call, std::set<k8s::ObjectKey> paused) {
  const FleetRecord* record = call->index.impl().record_or_null();
  for (const k8s::ObjectKey& key : paused) {
    // The annotation is removed, unless the pause is that of a ConfigMap which this one has replaced.
    const OrderedJson ended = is_replaced(call->world, record, key) ? OrderedJson("false") : OrderedJson();
    const std::string text = OrderedJson{{"metadata", {{"annotations", {{kPausedAnnotation, ended}}}}}}.dump();
    const k8s::Result<std::string> patched = co_await call->client->merge_patch(resources::config_maps, key, text);
    if (!patched) co_return call->refuse(explain_error(patched.error(), "patch", resources::config_maps, key.ns));
    *call->out << fmt::format("ConfigMap {}: resumed ({})\n", k8s::to_string(key), kPausedAnnotation);
  }
  co_return 0;
}

// What a `resume` of a policy leaves paused; empty: nothing.
std::string paused_too(const RolloutCall& call) {
  std::vector<std::string> names;
  for (const k8s::ObjectKey& key : paused_config_maps(call)) {
    const ConfigMapPause pause = pause_on(call, key);
    if (pause == ConfigMapPause::record) return describe(pause, key);
    names.push_back(k8s::to_string(key));
  }
  if (names.empty()) return {};
  return fmt::format("{}=true is set on ConfigMap {}; `rollout resume` without a name removes it", kPausedAnnotation,
                     fmt::join(names, ", "));
}

// "its rollout r is paused: `… rollout resume r`", of each that is; empty: none is.
std::string rollouts_to_resume(const World& world, const std::string& policy) {
  std::vector<std::string> out;
  for (const RolloutFacts& facts : all_rollouts(world)) {
    const SharingRollout& rollout = *facts.rollout;
    const bool paused = rollout.policy == policy && rollout.paused && !facts.finished() && !facts.earlier_attempt;
    if (paused)
      out.push_back(
          fmt::format("its rollout {0} is paused: `gpu-sharing-operator rollout resume {0}`", rollout.meta.name));
  }
  return fmt::format("{}", fmt::join(out, "; "));
}

// Of a pause: when no operator applies it now, when it takes effect, and how it is undone.
void print_paused(const RolloutCall& call, std::string_view what) {
  const std::string resume = fmt::format("gpu-sharing-operator rollout resume {}", what);
  if (call.presence.none) *call.out << fmt::format("  it takes effect when an operator runs. To undo it: {}\n", resume);
  // Who has named no policy does not know which one to resume.
  if (!call.presence.none && policy_of(what) && call.options.name.empty())
    *call.out << fmt::format("  to resume it: {}\n", resume);
}

asio::awaitable<int> pause_policy(RolloutCall* call, std::string name, bool pause) {
  const SharingPolicy* policy = call->world.policies.find(name);
  if (policy == nullptr) co_return call->refuse(missing_policy(call->world, name));
  // What a resume of the policy leaves paused.
  std::vector<std::string> others;
  if (!pause) others = {rollouts_to_resume(call->world, name), paused_too(*call)};
  std::erase(others, "");
  if (pause && policy->rollout.paused) {
    *call->out << fmt::format("policy {}: already paused\n", name);
    co_return 0;
  }
  if (!pause && !policy->rollout.paused) {
    others.insert(others.begin(), fmt::format("policy {} is not paused by spec.rollout.paused", name));
    co_return call->refuse(fmt::format("{}", fmt::join(others, "; ")));
  }
  const std::string body = OrderedJson{{"spec", {{"rollout", {{"paused", pause}}}}}}.dump();
  const bool done = co_await patch_sharing_object(call, resources::sharing_policies, name, body);
  if (!done) co_return 2;
  *call->out << fmt::format("policy {}: {}\n", name, pause ? "paused: no further node starts" : "resumed");
  if (pause) print_paused(*call, "policy/" + name);
  for (const std::string& other : others) *call->out << "  " << other << "\n";
  co_return 0;
}

// Policies whose nodes are about to start, and for which there is no rollout yet.
std::set<std::string> policies_to_stop(RolloutCall& call) {
  ReadingPass pass(call.world, call.index, call.settings, call.clock->now());
  return policies_about_to_start(pass);
}

// The rollouts that are meant are in that position already: a second `pause` finds what it asks for. False: none is.
// `some_start`: nodes wait for a rollout that has not started yet.
bool print_already_set(const RolloutCall& call, const RolloutChoice& choice, const Switch& wanted, bool some_start) {
  if (wanted.verb == Verb::resume || (wanted.verb == Verb::abort && choice.name.empty() && some_start)) return false;
  const auto set =
      choose(call.world, choice, [&](const RolloutFacts& facts) { return is_set(call, wanted, facts); }, wanted.none);
  if (!set) return false;
  for (const RolloutFacts& facts : *set)
    *call.out << fmt::format("{}: already {}\n", facts.rollout->meta.name, wanted.field);
  return true;
}

// "gpu-sharing-operator rollout pause policy/a, gpu-sharing-operator rollout pause policy/b"
std::string commands_for(std::string_view verb, const std::set<std::string>& policies) {
  std::vector<std::string> out;
  for (const std::string& name : policies)
    out.push_back(fmt::format("gpu-sharing-operator rollout {} policy/{}", verb, name));
  return fmt::format("{}", fmt::join(out, ", "));
}

// Of all policies, or of those that are paused.
std::set<std::string> policy_names(const World& world, bool all) {
  std::set<std::string> out;
  for (const auto& [key, policy] : world.policies.all())
    if (all || policy->rollout.paused) out.insert(policy->meta.name);
  return out;
}

// "A policy is paused. To resume it: …"; empty: none is.
std::string policies_to_resume(const World& world) {
  const std::set<std::string> paused = policy_names(world, false);
  if (paused.empty()) return {};
  return fmt::format("{}: {}",
                     paused.size() == 1 ? "A policy is paused. To resume it" : "Policies are paused. To resume them",
                     commands_for("resume", paused));
}

// What to do where no rollout is in the state that the verb changes: the switch of a policy, if that is what is meant.
// `starting`: policies whose nodes a pause or an abort could stop.
std::string hint_of(const RolloutCall& call, const Switch& wanted, const std::set<std::string>& starting) {
  if (!starting.empty())
    return ". Nodes wait for a rollout that has not started yet. To stop it: " + commands_for("pause", starting);
  const std::set<std::string> all = policy_names(call.world, true);
  if (call.options.verb == Verb::pause && !all.empty())
    return ". To block the next rollout: " + commands_for("pause", all);
  const bool resumes = call.options.verb == Verb::resume;
  const std::string commands = resumes ? policies_to_resume(call.world) : std::string();
  return commands.empty() ? wanted.hint : ". " + commands;
}

// That the rollout that is named, or the newest one, is aborted as well; empty: it is not.
std::string why_no_resume(const RolloutCall& call) {
  const RolloutChoice choice{call.options.name, true};
  const auto any = choose(call.world, choice, [](const RolloutFacts&) { return true; }, "is recorded");
  const bool is_policy = policy_of(call.options.name).has_value();
  if (!any || is_policy || any->front().earlier_attempt) return {};
  return ended_and_paused(*any->front().rollout);
}

// No rollout fits. Before it is there, its policy is what can be paused (of `starting`), and what is resumed then.
asio::awaitable<int> pause_policies_meant(RolloutCall* call, std::set<std::string> starting, bool pause,
                                          std::string refusal) {
  const Verb verb = call->options.verb;
  const bool resumes = verb == Verb::resume;
  std::set<std::string> policies;
  if (call->options.name.empty() && verb == Verb::pause) policies = starting;
  if (call->options.name.empty() && resumes) policies = policy_names(call->world, false);
  const std::string both = resumes && policies.empty() ? why_no_resume(*call) : std::string();
  if (!both.empty()) co_return call->refuse(both);
  if (policies.empty() || (policies.size() > 1 && !call->options.all)) co_return call->refuse(refusal);
  for (const std::string& name : policies) {
    const int code = co_await pause_policy(call, name, pause);
    if (code != 0) co_return code;
  }
  co_return 0;
}

// Behind a pause or an abort: neither is of the change that comes next.
void print_next_changes(const RolloutCall& call, const std::vector<AboutToStart>& next, const Switch& set) {
  for (const AboutToStart& one : next)
    print_line(*call.out,
               "  policy {0}: a newer change replaces that rollout, and is not {1}{2}. To stop it: "
               "gpu-sharing-operator rollout pause policy/{0}",
               one.policy, set.field, one.start.empty() ? "" : ": " + one.start);
}

}  // namespace

asio::awaitable<int> set_switch(RolloutCall* call) {
  const Verb verb = call->options.verb;
  const bool resumes = verb == Verb::resume;
  const bool stops = verb == Verb::pause || verb == Verb::abort;
  const Switch& wanted = *std::ranges::find(kSwitches, verb, &Switch::verb);
  const std::optional<std::string> policy = policy_of(call->options.name);
  int code = 0;
  if ((resumes || verb == Verb::pause) && policy) co_return co_await pause_policy(call, *policy, wanted.value);
  const std::set<std::string> starting = stops ? policies_to_stop(*call) : std::set<std::string>();
  const std::string hint = hint_of(*call, wanted, starting);
  const RolloutChoice choice{call->options.name, call->options.all, hint};
  const auto fits = [&](const RolloutFacts& facts) { return can_be_set(*call, wanted, facts); };
  const auto chosen = choose(call->world, choice, fits, wanted.none);
  // ConfigMaps that were paused by hand are found as well.
  const std::set<k8s::ObjectKey> paused = resumes ? paused_config_maps(*call) : std::set<k8s::ObjectKey>();
  if (!chosen && call->options.name.empty() && !paused.empty()) {
    code = co_await end_pauses(call, paused);
    const std::string also = policies_to_resume(call->world);
    if (!also.empty()) *call->out << "  " << also << "\n";
    co_return code;
  }
  if (!chosen && print_already_set(*call, choice, wanted, !starting.empty())) co_return 0;
  if (!chosen) co_return co_await pause_policies_meant(call, starting, wanted.value, chosen.error().message);
  std::vector<AboutToStart> next;
  if (stops) {
    ReadingPass pass(call->world, call->index, call->settings, call->clock->now());
    next = about_to_replace(pass, *chosen);
  }
  for (const RolloutFacts& facts : *chosen) {
    const std::string name = facts.rollout->meta.name;
    const std::string body = OrderedJson{{"spec", {{wanted.field, wanted.value}}}}.dump();
    const bool done = co_await patch_sharing_object(call, resources::sharing_rollouts, name, body);
    if (!done) co_return 2;
    *call->out << fmt::format("{}: {}\n", name, wanted.done);
    if (verb == Verb::pause) print_paused(*call, name);
    const std::string stopped = resumes ? still_stopped(*call, paused, *facts.rollout) : std::string();
    if (!stopped.empty()) *call->out << "  " << stopped << "\n";
  }
  print_next_changes(*call, next, wanted);
  co_return code;
}

}  // namespace gso
