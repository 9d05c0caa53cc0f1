#include "reconcilers/explain/pod_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "reconcilers/cluster/record_store.h"
#include "reconcilers/explain/remedy.h"
#include "reconcilers/explain/shown_state.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/node/node_step.h"
#include "reconcilers/rollout/evictions.h"

namespace gso {
namespace {

constexpr std::string_view kEvictsPods =
    "the operator evicts the pods, with their grace period and within PodDisruptionBudgets (it needs the chart value "
    "eviction.enabled=true, which whoever installs the operator sets)";

struct Setting {
  std::string_view field;
  std::string_view value;
};

// The administrator of the policy sets those fields of its `rollout`.
PodDecision by_policy(std::string_view policy, const std::vector<Setting>& settings, std::string effect) {
  std::string fields;
  for (const Setting& setting : settings)
    fields += fmt::format("{}spec.rollout.{}: {}", fields.empty() ? "" : " and ", setting.field, setting.value);
  return {fmt::format("the administrator of policy {} sets {}", policy, fields),
          fmt::format("kubectl edit sharingpolicies.gpusharing.dev {}", policy), std::move(effect)};
}

// Without an object of the policy the flags govern; `workloads` is one, and evictBarePods is none.
PodDecision by_flag(std::string_view value, std::string_view effect) {
  return {fmt::format("the administrator of the operator sets --workloads {} (chart value config.workloads)", value),
          {},
          std::string(effect)};
}

// The PodDisruptionBudget that the API server's answer names ("The disruption budget web needs 2 healthy pods …").
// Empty: it names none, or several.
std::string budget_in(std::string_view message) {
  constexpr std::string_view kBefore = "disruption budget ";
  std::string out;
  for (std::size_t at = message.find(kBefore); at != std::string_view::npos; at = message.find(kBefore, at)) {
    at += kBefore.size();
    const std::string_view rest = message.substr(at);
    const std::size_t end = rest.find(' ');
    if (end == std::string_view::npos) break;
    const std::string_view name = rest.substr(0, end);
    const std::string_view behind = rest.substr(end);
    if (!behind.starts_with(" needs ") && !behind.starts_with(" is still ")) continue;
    if (!out.empty() && out != name) return {};
    out = name;
  }
  return out;
}

// What the owners of the pods, or of their budgets, can do.
std::string by_owners(const Reason& blocked, const ReportedStay& stay) {
  if (blocked.code == kPdbRefuses) {
    const std::string budget = budget_in(blocked.message);
    return fmt::format(
        "the owners of the pods scale the workload up, or whoever owns {} changes it, so that a pod can be evicted",
        budget.empty() ? "its PodDisruptionBudget" : "PodDisruptionBudget " + budget);
  }
  if (blocked.code == kRenameStrandsPods)
    return "the owners of the pods request the resource that the node will serve, or the owner of the profile keeps "
           "its name";
  if (blocked.code == kProtectedNamespace)
    return "the owners of the pods delete them, or move them to another namespace: the operator evicts no pod there";
  if (!stay.annotation.empty())
    return fmt::format(
        "the owners of the pods end them, delete them, or remove the annotation {}, which forbids their "
        "eviction",
        stay.annotation);
  return "the owners of the pods end them, or delete them";
}

// The API server forbids another write than an eviction: the pods do not keep the node.
bool is_of_another_write(const Reason& blocked) {
  return blocked.code == kForbidden && !blocked.message.contains(kNotAllowedToEvict);
}

// Nothing is listed, and the policy evicts already: what the operator reports of the pods is all that is known.
std::vector<PodDecision> by_evicting_more(const SharingPolicy& policy, bool has_object, std::string_view reason,
                                          const ReportedStay& stay) {
  const bool only_bare = stay.bare && stay.annotation.empty() && !stay.otherwise && reason != kProtectedNamespace;
  if (!only_bare || !has_object) return {};
  return {by_policy(policy.meta.name, {{"evictBarePods", "true"}},
                    "the operator evicts pods without a controller as well, and nothing creates those again")};
}

// The settings with which the operator evicts enough of the pods that block the node; empty: with none. `why` gets what
// keeps it from that.
std::vector<PodDecision> by_evicting(const ReadingPass& pass, const std::string& node, const NodeAssessment& a,
                                     const SharingPolicy& policy, bool has_object, std::string& why) {
  const bool evicts = policy.rollout.workloads == WorkloadMode::evict;
  // Without a listing nothing speaks against it.
  const bool frees = !pass.has_listed(node) || pass.eviction_outlook(node, a, policy.rollout.evict_bare_pods).frees;
  if (frees) {
    if (evicts) return {};
    if (!has_object) return {by_flag("Evict", kEvictsPods)};
    // Only a listing shows which pods have no controller.
    const bool all_evicted = pass.has_listed(node) || policy.rollout.evict_bare_pods;
    return {
        by_policy(policy.meta.name, {{"workloads", "Evict"}},
                  fmt::format("{}{}", kEvictsPods,
                              all_evicted ? "" : "; for pods without a controller set evictBarePods: true as well"))};
  }
  const EvictionOutlook with_bare = pass.eviction_outlook(node, a, true);
  if (!with_bare.frees) {
    why = with_bare.why;
    return {};
  }
  if (!has_object) {
    why =
        fmt::format("only a SharingPolicy can let it evict pods without a controller ({}: true)", kEvictBarePodsField);
    return {};
  }
  std::vector<Setting> settings;
  if (!evicts) settings.push_back({"workloads", "Evict"});
  settings.push_back({"evictBarePods", "true"});
  const bool one = with_bare.bare.waiting.size() == 1;
  return {by_policy(policy.meta.name, settings,
                    fmt::format("{}. {} {} no controller, so nothing creates {} again",
                                evicts ? "the operator evicts them as well" : kEvictsPods, with_bare.bare.names(),
                                one ? "has" : "have", one ? "it" : "them"))};
}

// A deferred node, of whose pods nothing is known: they have ended, or nobody has listed them since.
PodAdvice advice_on_deferred(const ReadingPass& pass, const Node& node, const NodeAssessment& a) {
  const std::optional<Deferral> deferral = deferral_of(node);
  const bool by_person = deferral && deferral->by == Deferral::By::person;
  PodAdvice out;
  out.command = command_of_reason(pass.world(), pass.index(), pass.settings(), node, a, kWaitingForWorkloads);
  out.owners = fmt::format(
      "the change waits for these pods, and begins once they have ended{}. To cordon the node for them again: "
      "gpu-sharing-operator rollout start {}",
      by_person ? ", not before the time in the node's message" : "", a.policy.view());
  if (by_person)
    out.owners +=
        fmt::format("; whoever uncordoned the node keeps the operator from it with kubectl annotate node {} {}=true",
                    node.meta.name, kHoldAnnotation);
  return out;
}

}  // namespace

std::string PodDecision::text() const {
  return fmt::format("{}{}{}{}", decision, command.empty() ? "" : fmt::format(" ({})", command),
                     effect.empty() ? "" : ": ", effect);
}

std::string PodDecision::next() const {
  if (command.empty()) return {};
  return fmt::format("{}  # {}{}{}", command, decision, effect.empty() ? "" : ": ", effect);
}

std::string PodAdvice::next() const {
  const bool has_comment = command.contains("  # ");
  return command.empty() || has_comment || owners.empty() ? command : fmt::format("{}  # {}", command, owners);
}

bool is_about_pods(std::string_view reason) {
  constexpr std::array kReasons{kWaitingForWorkloads, kPdbRefuses, kRenameStrandsPods,
                                kProtectedNamespace,  kForbidden,  kDeferred};
  return std::ranges::find(kReasons, reason) != kReasons.end();
}

PodAdvice advice_on_pods(const ReadingPass& pass, const Node& node, const NodeAssessment& a, const Reason& blocked) {
  if (blocked.code == kDeferred) return advice_on_deferred(pass, node, a);
  const SharingPolicy& policy = pass.index().policy(pass.world(), a.policy.view());
  const bool has_object =
      pass.world().policies.find(a.policy.view()) != nullptr || sharing_objects_unread(pass.world());
  const WorkloadMode mode = policy.rollout.workloads;
  const ReportedStay stay = reported_stay(blocked.message);
  PodAdvice out;
  out.command = command_of_reason(pass.world(), pass.index(), pass.settings(), node, a, blocked.code);
  if (const std::string budget = blocked.code == kPdbRefuses ? budget_in(blocked.message) : ""; !budget.empty())
    out.command += fmt::format(" --field-selector metadata.name={}", budget);
  out.owners = by_owners(blocked, stay);
  if (blocked.code == kRenameStrandsPods || is_of_another_write(blocked)) return out;
  if (mode == WorkloadMode::evict && blocked.code == kForbidden)
    out.decisions.push_back(
        {"whoever installs the operator lets it evict pods: chart value eviction.enabled=true (helm upgrade)", {}});
  if (mode == WorkloadMode::interrupt) return out;
  const bool evicts_unlisted = mode == WorkloadMode::evict && !pass.has_listed(node.meta.name);
  std::string why;
  std::ranges::move(evicts_unlisted ? by_evicting_more(policy, has_object, blocked.code, stay)
                                    : by_evicting(pass, node.meta.name, a, policy, has_object, why),
                    std::back_inserter(out.decisions));
  if (!why.empty() && mode == WorkloadMode::wait_for_idle)
    out.owners += fmt::format(". `workloads: Evict` does not help here: {}", why);
  // The pods are being evicted already.
  if (mode == WorkloadMode::evict && blocked.code == kWaitingForWorkloads && !stay.is_any()) return out;
  constexpr std::string_view kInterrupts = "the operator does not wait, and the GPU work of the pods fails";
  out.decisions.push_back(has_object
                              ? by_policy(policy.meta.name, {{"workloads", "Interrupt"}}, std::string(kInterrupts))
                              : by_flag("Interrupt", kInterrupts));
  return out;
}

PodChoices pod_choices(ReadingPass& pass, const Node& node, const NodeAssessment& a) {
  const std::string& name = node.meta.name;
  const bool can_wait = a.phase == Phase::draining || a.phase == Phase::pending || a.phase == Phase::restarting;
  if (!can_wait || pass.stop_of(a) != nullptr) return {};
  const std::optional<Reason> listed = pass.blocked_by_pods(name, a);
  const bool deferred = a.phase == Phase::pending && pass.index().nodes_in(Bucket::deferred).contains(name);
  if (blocking_pods_of(pass.world(), name).empty() && !(deferred && listed)) return {};
  // How the server answers evictions, only the operator knows.
  const std::optional<Reason> refused = refusal_of(pass.world(), name);
  const bool plain = listed ? listed->code == kWaitingForWorkloads : !pass.has_listed(name);
  const bool is_refused = plain && refused && !is_of_another_write(*refused);
  const PodAdvice advice = advice_on_pods(
      pass, node, a, is_refused ? *refused : listed.value_or(Reason{kWaitingForWorkloads, std::string()}));
  PodChoices out;
  out.command = advice.command;
  out.options.emplace_back("nobody acts: the operator changes the node when the pods have ended");
  if (a.phase == Phase::draining)
    out.options.back() +=
        fmt::format(", and changes other nodes first after idleTimeout ({})",
                    k8s::format_go_duration(pass.index().policy(pass.world(), a.policy.view()).rollout.idle_timeout));
  if (deferred) out.options.back() += ", once it retries the node at the time in the node's message";
  out.options.push_back(advice.owners);
  for (const PodDecision& decision : advice.decisions) out.options.push_back(decision.text());
  return out;
}

}  // namespace gso
