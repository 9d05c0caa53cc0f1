// What ends the stop of a rollout, or the wait of a node for pods.
#include "reconcilers/explain/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "k8sclient/value/encoding.h"
#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/policy_match.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/explain/node.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/reasons/names.h"
#include "reconcilers/rollout/drain.h"
#include "reconcilers/rollout/gates.h"

namespace gso {

std::string to_run(const World& world, const Command& command) {
  return world.policies_served ? fmt::format("run `{}`", command.text())
                               : fmt::format("install the CRDs (`{}`), then run `{}`", kInstallCrds, command.text());
}

std::string kubectl_name(std::string_view kind) {
  std::string out(kind);
  std::ranges::transform(out, out.begin(), k8s::to_lower);
  return out;
}

Command describe_node_command(std::string_view node) {
  return {fmt::format("kubectl describe node {}", node), {}, Command::Does::shows, std::string(node)};
}

Command describe_pod_command(const ObjectKey& pod) {
  return {fmt::format("kubectl describe pod {} --namespace {}", pod.name, pod.ns)};
}

Command explain_command(std::string_view node) {
  return {fmt::format("gpu-sharing-operator explain {}", node), {}, Command::Does::shows, std::string(node)};
}

Command changing(std::string line, std::string comment) {
  return {std::move(line), std::move(comment), Command::Does::changes};
}

Command edit_config_map_command(const ObjectKey& config_map, std::string comment) {
  return changing(fmt::format("kubectl edit configmap {} --namespace {}", config_map.name, config_map.ns),
                  std::move(comment));
}

Command edit_policy_command(std::string_view policy, std::string comment) {
  return changing(fmt::format("kubectl edit sharingpolicies.gpusharing.dev {}", policy), std::move(comment));
}

Command install_crds_command() {
  return changing(std::string(kInstallCrds));
}

Command rollout_status_command() {
  return {"gpu-sharing-operator rollout status", {}, Command::Does::watches};
}

Command command_here(const World& world, Command command) {
  if (command == rollout_status_command() && !world.policies_served) return {"gpu-sharing-operator status"};
  return command;
}

namespace {

// The release that installed the operator. Without a name: its ConfigMap was not read, or Helm did not install it.
ObjectKey operator_release(const World& world, const PlannerSettings& settings) {
  for (const ConfigMap* config_map : in_order(world.configmaps)) {
    const k8s::StringMap& marks = config_map->meta.annotations;
    const auto name = marks.get("meta.helm.sh/release-name");
    const bool of_chart = config_map->meta.ns == settings.operator_namespace && marks.contains(kChartConfigAnnotation);
    if (!of_chart || !name) continue;
    const auto ns = marks.get("meta.helm.sh/release-namespace");
    return {std::string(ns.value_or(settings.operator_namespace)), std::string(*name)};
  }
  return {settings.operator_namespace, {}};
}

// "helm list --namespace gso": works wherever the operator was installed by Helm.
Command list_command(const ObjectKey& release, std::string comment) {
  return {fmt::format("helm list --namespace {}", shell_word(release.ns)), std::move(comment)};
}

}  // namespace

Command upgrade_chart_command(const World& world, const PlannerSettings& settings, std::string_view values) {
  const ObjectKey release = operator_release(world, settings);
  return list_command(
      release,
      fmt::format("names the chart{}; upgrade the release to that chart, from the repository or folder that it was "
                  "installed from, with --reset-then-reuse-values {}",
                  release.name.empty() ? " and its release" : fmt::format(" of release {}", shown_value(release.name)),
                  values));
}

Command roll_back_chart_command(const World& world, const PlannerSettings& settings) {
  const ObjectKey release = operator_release(world, settings);
  const std::string_view correct = "to go on, correct the standaloneMps values and upgrade the release";
  if (release.name.empty())
    return list_command(release, fmt::format("names the release: `helm rollback` of it goes back; {}", correct));
  return changing(fmt::format("helm rollback {} --namespace {}", shell_word(release.name), shell_word(release.ns)),
                  fmt::format("to go back; {}", correct));
}

const Tally& nodes_of_policy(const FleetIndex::Impl& index, const std::string& policy) {
  static const Tally kNone;
  const auto nodes = index.policies.find(policy);
  return nodes == index.policies.end() ? kNone : nodes->second;
}

bool policy_is_gone(const World& world, const FleetIndex::Impl& index, std::string_view policy) {
  // A policy that could not be read is not gone.
  if (sharing_objects_unread(world)) return false;
  return world.policies.find(policy) == nullptr && index.held_policies.contains(std::string(policy));
}

Command spec_command(const World& world, std::string_view reason, const SharingPolicy& policy,
                     const PlannerSettings& settings) {
  if (reason == reason_of(Gate::outside_window))
    return edit_policy_command(policy.meta.name,
                               "spec.rollout.maintenanceWindows, to start nodes sooner; otherwise wait");
  if (reason != reason_of(Gate::observe)) return {};
  // Approve comes first: Enforce is a decision about every later edit as well.
  const std::string approve = approve_command(policy.meta.name).line;
  // The operator's own mode is the stricter one. These settings need not have it: it records nothing then.
  if (policy.mode != PolicyMode::observe) {
    return upgrade_chart_command(
        world, settings,
        fmt::format(
            "--set modes.rollouts=Approve (without the chart: start the operator with --max-mode Approve); each "
            "change then waits for `{}`; Enforce starts the present change, and later edits under policies in "
            "mode Enforce, without asking: look at `gpu-sharing-operator diff` first",
            approve));
  }
  return changing(
      fmt::format("kubectl patch sharingpolicies {} --type merge --patch '{{\"spec\":{{\"mode\":\"Approve\"}}}}'",
                  policy.meta.name),
      fmt::format("after a look at `gpu-sharing-operator diff`; each change then waits for `{}`; mode Enforce instead "
                  "starts this change and every later edit without asking",
                  approve));
}

namespace {

// Whom the nodes of the deleted policies follow once their stops are forgotten: "; n01, n02 then follow policy default
// (mode Enforce)".
std::string followers_text(const World& world, const FleetIndex::Impl& index, const PlannerSettings& settings) {
  static const std::map<std::string, SharingPolicy> kNoneHeld;
  const std::vector<const SharingPolicy*> others = policies_in_order(world, index.built_in_policy, kNoneHeld);
  // By what is said of the policy, and whether it starts changes.
  std::map<std::pair<std::string, bool>, std::vector<std::string>> followers;
  for (const auto& [name, indexed] : index.nodes) {
    const Node* node = indexed.assessment ? world.nodes.find(name.view()) : nullptr;
    const auto held = node == nullptr ? index.held_policies.end()
                                      : index.held_policies.find(std::string(indexed.assessment->policy.view()));
    const bool is_freed =
        held != index.held_policies.end() && index.record && has_recorded_stop(*index.record, held->second);
    const SharingPolicy* next = is_freed ? governing_policy(others, *node) : nullptr;
    if (next == nullptr) continue;
    const PolicyMode mode = settings.mode_of(*next);
    const bool paused = next->rollout.paused;
    followers[{fmt::format("policy {} (mode {}{})", next->meta.name, word_of(kPolicyModeWords, mode),
                           paused ? ", paused" : ""),
               mode == PolicyMode::enforce && !paused}]
        .emplace_back(name.view());
  }
  std::string out;
  for (auto& [follows, nodes] : followers) {
    const auto& [policy, starts] = follows;
    std::ranges::sort(nodes);
    out += fmt::format("; {} then follow{} {}", first_names(nodes), nodes.size() == 1 ? "s" : "", policy);
    if (starts) out += ", which starts pending changes there without asking";
  }
  return out;
}

}  // namespace

Gate named_gate(std::string_view reason) {
  Gate gate = Gate::new_attempt;  // The last one.
  while (gate != Gate::open && reason_of(gate) != reason) gate = static_cast<Gate>(std::to_underlying(gate) - 1);
  return gate;
}

bool outlasts_retry(Gate gate) {
  return gate == Gate::observe || gate == Gate::paused || gate == Gate::approval || gate == Gate::outside_window;
}

Command gone_policy_command(const World& world, const FleetIndex::Impl& index, const PlannerSettings& settings,
                            std::string_view policy) {
  if (!world.policies_served) return install_crds_command();
  return changing(
      forget_policies_command(settings),
      fmt::format("ends the stops of all deleted policies{}; to end this one alone, create SharingPolicy {} again",
                  followers_text(world, index, settings), policy));
}

Command resume_command(std::string_view what, std::string comment) {
  return {fmt::format("gpu-sharing-operator rollout resume{}{}", what.empty() ? "" : " ", what), std::move(comment),
          Command::Does::asks};
}

Command resume_command(const World& world, const ObjectKey& config_map) {
  return world.policies_served ? resume_command() : changing(end_pause_command(config_map));
}

Command resume_command(const RolloutView& rollout) {
  const World& world = rollout.pass.s.world;
  const PausedBy by = pause_of_rollout(rollout).by;
  if (by == PausedBy::nobody) return {};
  if (by == PausedBy::config_map) return resume_command(world, rollout.installation.config_map_key());
  if (policy_is_gone(world, rollout.pass.index, rollout.key.policy) && world.policies_served)
    return changing(forget_policies_command(rollout.pass.s.settings));
  if (by == PausedBy::policy) return resume_command("policy/" + rollout.key.policy);
  if (rollout.object != nullptr) return resume_command(rollout.object->meta.name);
  return resume_command(rollout_name(rollout.key, rollout.target), "once an operator has created it again");
}

Command start_command(std::string_view policy, const Command& resume) {
  return {fmt::format("gpu-sharing-operator rollout start {}", policy),
          resume.empty() ? std::string() : "then, because it is paused as well: " + resume.text(),
          Command::Does::retries};
}

Command adopt_command(std::string_view policy) {
  return {fmt::format("gpu-sharing-operator rollout start {} --adopt", policy), {}, Command::Does::asks};
}

Command approve_command(std::string_view policy) {
  return {fmt::format("gpu-sharing-operator rollout approve policy/{}", policy), {}, Command::Does::asks};
}

GateState ended_by(const RolloutView& rollout) {
  GateState aborted = closed_by_abort(rollout);
  if (!aborted.is_open()) return aborted;
  return is_stopped(rollout.gate().gate) ? rollout.gate() : GateState();
}

Command stop_command(const RolloutView& rollout) {
  const GateState ended = ended_by(rollout);
  const GateState& gate = ended.is_open() ? rollout.gate() : ended;
  const PlannerSettings& settings = rollout.pass.s.settings;
  const World& world = rollout.pass.s.world;
  const bool gone = policy_is_gone(world, rollout.pass.index, rollout.key.policy);
  const bool by_person = row_of(gate.gate).stops_all && gate.gate != Gate::max_failures;
  if (gone && (by_person || gate.gate == Gate::outside_window))
    return gone_policy_command(world, rollout.pass.index, settings, rollout.key.policy);
  if (gate.gate == Gate::paused) return resume_command(rollout);
  if (gate.gate == Gate::approval) return approve_command(rollout.key.policy);
  if (gate.gate == Gate::aborted || gate.gate == Gate::undone)
    return start_command(rollout.key.policy, resume_command(rollout));
  return spec_command(world, gate.reason(), rollout.policy, settings);
}

namespace {

constexpr std::string_view kEvictsPods =
    "the operator evicts the pods, with their grace period and within PodDisruptionBudgets (it needs the chart value "
    "eviction.enabled=true, which whoever installs the operator sets)";

// The administrator of the policy sets those fields ("workloads: Evict") of its `rollout`.
PodDecision by_policy(std::string_view policy, const std::vector<std::string_view>& fields, std::string effect) {
  return {fmt::format("the administrator of policy {} sets spec.rollout.{}", policy,
                      fmt::join(fields, " and spec.rollout.")),
          edit_policy_command(policy), std::move(effect)};
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
  constexpr std::array<std::string_view, 2> kBehind{" needs ", " is still "};
  std::string out;
  for (std::size_t at = message.find(kBefore); at != std::string_view::npos; at = message.find(kBefore, at)) {
    at += kBefore.size();
    const std::string_view rest = message.substr(at);
    const std::size_t end = rest.find(' ');
    if (end == std::string_view::npos) break;
    const std::string_view name = rest.substr(0, end);
    if (std::ranges::none_of(kBehind, [&](auto words) { return rest.substr(end).starts_with(words); })) continue;
    if (!out.empty() && out != name) return {};
    out = name;
  }
  return out;
}

// What the owners of the pods, or of their budgets, can do.
std::string by_owners(const Reason& blocked) {
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
  if (const std::string& annotation = blocked.facts().annotation; !annotation.empty())
    return fmt::format(
        "the owners of the pods end them, delete them, or remove the annotation {}, which forbids their "
        "eviction",
        annotation);
  return "the owners of the pods end them, or delete them";
}

// The API server forbids another write than an eviction: the pods do not keep the node.
bool is_of_another_write(const Reason& blocked) {
  return blocked.code == kForbidden && !blocked.facts().refused;
}

// The settings with which the operator evicts enough of the pods that block the node; nullopt: with none. `why` gets
// what keeps it from that.
std::optional<PodDecision> by_evicting(const ReadingPass& pass, const std::string& node, const NodeAssessment& a,
                                       const SharingPolicy& policy, bool has_object, const Reason& blocked,
                                       std::string& why) {
  const bool evicts = policy.rollout.workloads == WorkloadMode::evict;
  if (evicts && !pass.has_listed(node)) {
    // What the operator reports of the pods is all that is known.
    const Facts& stay = blocked.facts();
    const bool only_bare = stay.bare && stay.annotation.empty() && !stay.otherwise;
    if (!only_bare || blocked.code == kProtectedNamespace || !has_object) return std::nullopt;
    return by_policy(policy.meta.name, {"evictBarePods: true"},
                     "the operator evicts pods without a controller as well, and nothing creates those again");
  }
  // Without a listing nothing speaks against it.
  const bool frees =
      !pass.has_listed(node) || eviction_outlook(pass.pass(), node, a, policy.rollout.evict_bare_pods).frees;
  if (frees) {
    if (evicts) return std::nullopt;
    if (!has_object) return by_flag("Evict", kEvictsPods);
    // Only a listing shows which pods have no controller.
    const bool all_evicted = pass.has_listed(node) || policy.rollout.evict_bare_pods;
    return by_policy(policy.meta.name, {"workloads: Evict"},
                     fmt::format("{}{}", kEvictsPods,
                                 all_evicted ? "" : "; for pods without a controller set evictBarePods: true as well"));
  }
  const EvictionOutlook with_bare = eviction_outlook(pass.pass(), node, a, true);
  if (!with_bare.frees || !has_object) {
    why = !with_bare.frees ? with_bare.why
                           : fmt::format("only a SharingPolicy can let it evict pods without a controller ({}: true)",
                                         kEvictBarePodsField);
    return std::nullopt;
  }
  std::vector<std::string_view> fields{"workloads: Evict", "evictBarePods: true"};
  if (evicts) fields.erase(fields.begin());
  const bool one = with_bare.bare.waiting.size() == 1;
  return by_policy(policy.meta.name, fields,
                   fmt::format("{}. {} {} no controller, so nothing creates {} again",
                               evicts ? "the operator evicts them as well" : kEvictsPods, with_bare.bare.names(),
                               one ? "has" : "have", one ? "it" : "them"));
}

// A deferred node, of whose pods nothing is known: they have ended, or nobody has listed them since.
PodAdvice advice_on_deferred(const ReadingPass& pass, const Node& node, const NodeAssessment& a) {
  const std::optional<Deferral> deferral = deferral_of(node);
  const bool by_person = deferral && deferral->by == Deferral::By::person;
  PodAdvice out;
  out.command = command_of_reason(pass, node, a, kWaitingForWorkloads);
  out.owners = fmt::format(
      "the change waits for these pods, and begins once they have ended{}. To cordon the node for them again: {}",
      by_person ? ", not before the time in the node's message" : "", start_command(a.policy.view()).line);
  if (by_person)
    out.owners +=
        fmt::format("; whoever uncordoned the node keeps the operator from it with kubectl annotate node {} {}=true",
                    node.meta.name, kHoldAnnotation);
  return out;
}

}  // namespace

std::string PodDecision::text() const {
  return fmt::format("{}{}{}{}", decision, command.empty() ? "" : fmt::format(" ({})", command.text()),
                     effect.empty() ? "" : ": ", effect);
}

Command PodDecision::next() const {
  Command out = command;
  if (!out.empty()) out.comment = fmt::format("{}{}{}", decision, effect.empty() ? "" : ": ", effect);
  return out;
}

Command PodAdvice::next() const {
  Command out = command;
  if (!out.empty() && out.comment.empty()) out.comment = owners;
  return out;
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
  PodAdvice out;
  out.command = command_of_reason(pass, node, a, blocked.code);
  if (const std::string budget = blocked.code == kPdbRefuses ? budget_in(blocked.message) : ""; !budget.empty())
    out.command.line += fmt::format(" --field-selector metadata.name={}", budget);
  out.owners = by_owners(blocked);
  if (blocked.code == kRenameStrandsPods || is_of_another_write(blocked)) return out;
  if (mode == WorkloadMode::evict && blocked.code == kForbidden)
    out.decisions.push_back(
        {"whoever installs the operator lets it evict pods: chart value eviction.enabled=true (helm upgrade)", {}});
  if (mode == WorkloadMode::interrupt) return out;
  std::string why;
  if (auto more = by_evicting(pass, node.meta.name, a, policy, has_object, blocked, why))
    out.decisions.push_back(*std::move(more));
  if (!why.empty() && mode == WorkloadMode::wait_for_idle)
    out.owners += fmt::format(". `workloads: Evict` does not help here: {}", why);
  // The pods are being evicted already.
  if (mode == WorkloadMode::evict && blocked.code == kWaitingForWorkloads && !blocked.facts().some_stay()) return out;
  constexpr std::string_view kInterrupts = "the operator does not wait, and the GPU work of the pods fails";
  out.decisions.push_back(has_object ? by_policy(policy.meta.name, {"workloads: Interrupt"}, std::string(kInterrupts))
                                     : by_flag("Interrupt", kInterrupts));
  return out;
}

Cure pod_choices(ReadingPass& pass, const Node& node, const NodeAssessment& a) {
  const std::string& name = node.meta.name;
  const bool can_wait = a.phase == Phase::draining || a.phase == Phase::pending || a.phase == Phase::restarting;
  if (!can_wait || pass.stop_of(a) != nullptr) return {};
  const std::optional<Reason> listed = blocked_by_pods(pass.pass(), name, a);
  const bool deferred = a.phase == Phase::pending && pass.index().nodes_in(Bucket::deferred).contains(name);
  if (blocking_pods_of(pass.world(), name).empty() && !(deferred && listed)) return {};
  // How the server answers evictions, only the operator knows.
  const std::optional<Reason> refused = refusal_of(pass.world(), name);
  const bool plain = listed ? listed->code == kWaitingForWorkloads : !pass.has_listed(name);
  const bool is_refused = plain && refused && !is_of_another_write(*refused);
  const PodAdvice advice = advice_on_pods(
      pass, node, a, is_refused ? *refused : listed.value_or(Reason{kWaitingForWorkloads, std::string()}));
  Cure out{.command = advice.command};
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
