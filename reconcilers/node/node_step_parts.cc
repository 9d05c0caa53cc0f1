// The conditions of the rows of the table in node_step.h, and the actions that they plan.
#include "reconcilers/node/node_step_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/node_labels.h"
#include "reconcilers/node/node_phase.h"
#include "reconcilers/reasons/names.h"

namespace gso {

bool ChangeStep::was_taken_to_another_key() const {
  if (facts_.profile == nullptr) return false;  // No key resolves at the moment.
  const bool same_key = facts_.key == change_.key && view_.installation.id() == change_.config_map;
  return !same_key && facts_.label_by.empty();
}

// Pods that replace the deleted ones are created by one API server, the text was written by another, and either clock
// can be the later one: pods that come sooner prove nothing and would be replaced once more.
bool ChangeStep::has_stood_long_enough() {
  const Duration enough = 2 * snapshot_.settings.clock_difference + std::chrono::seconds(1);
  return ages_.held_for({Timer::retargeting, name(), facts_.target}, enough);
}

Finding finding_of(const std::string& node, const KaiHindrance& hindrance) {
  return {hindrance.certain ? Severity::warning : Severity::info,
          node_ref(node),
          {kKaiReservations, fmt::format("not restarted, because its new profile has replicas: {}", hindrance.why)}};
}

bool ChangeStep::is_hindered_by_kai(bool only_certain) {
  const auto hindrance = input_.kai_hinders ? input_.kai_hinders() : std::nullopt;
  if (!hindrance || (only_certain && !hindrance->certain)) return false;
  out_.plan.findings.push_back(finding_of(name(), *hindrance));
  return true;
}

bool ChangeStep::has_superseded_template() const {
  if (facts_.pods_ready) return false;
  Loaders loaders;
  for (const Component component : {Component::plugin, Component::gfd, Component::mps}) {
    const Operand* operand = view_.installation.find(component, node_);
    const auto& pods = pods_.of(component);
    // A pod that is older than the list is not of this change, although the change does not list it.
    if (operand == nullptr || pods.empty() || pods.front()->meta.creation_timestamp < change_.listed) continue;
    loaders.emplace_back(operand, pods.front());
  }
  return created_from_an_older_template(change_, loaders);
}

ChangePlan ChangeStep::next_plan() const {
  ChangePlan next = from_what_it_shows();
  if (has_superseded_template()) next.cause = ChangeCause::new_template;
  return next;
}

bool ChangeStep::is_superseded() const {
  const bool moved_on = !same_target_ || has_superseded_template();
  if (!moved_on || facts_.label || !node_.ready || !facts_.profile || !facts_.profile->valid ||
      !facts_.obstacle.code.empty())
    return false;
  if (any_listed_left(change_, pods_, false) || shows_what_it_loaded() || (are_pods_newer() && facts_.pods_ready))
    return false;
  // A missing plugin pod would be created before its MPS daemon, and would not be replaced after it.
  const bool has_plugin = !pods_.plugin.empty() && !pods_.plugin.front()->meta.deletion_timestamp;
  return has_plugin || !steps_for(next_plan().kind).touches_mps;
}

void ChangeStep::report_lost_node() {
  if (node_.ready) return;
  if (!change_.failed) finding(Severity::info, kNodesNotReady, std::string(kNotReadyInChangeText));
  for (const Pod* pod : pods_.mps) {
    if (!pod->meta.deletion_timestamp) continue;
    finding(Severity::warning, kMpsUncleanExit,
            fmt::format(
                "the node was lost while MPS control daemon pod {} was terminating: its GPUs might be left in compute "
                "mode EXCLUSIVE_PROCESS",
                pod->meta.name));
  }
}

bool ChangeStep::is_drained(Drain drain) {
  const bool touched = is_touched(facts_, pods_);
  const bool uncordoned = change_.cordoned && !node_.unschedulable;
  if (uncordoned && !touched) {  // A person uncordoned the node, so new pods can start on it.
    const std::string message = fmt::format(
        "someone uncordoned the node during the drain: the change to {} is deferred; retry in {}, or now: "
        "`gpu-sharing-operator rollout start {}`",
        change_.to, k8s::format_go_duration(deferral_length(rollout_.idle_timeout)), input_.policy.meta.name);
    defer(Deferral::By::person,
          {input_.blocked_by_pods ? std::string_view(input_.blocked_by_pods->code) : kWaitingForWorkloads, message});
    event(false, "Uncordoned", "Drain", message);
    return false;
  }
  const TimerKey draining = timer(Timer::draining);
  const WallTime stored = deadline_start(change_.listed, input_.released);
  ages_.run(draining, stored);
  const Duration waited = snapshot_.now - ages_.since(draining, stored);
  const NodeUse use = use_of(snapshot_, name(), snapshot_.now - ages_.since(draining));
  if (drained(drain, use, facts_)) return true;
  if (!use.listed) out_.plan.consumers_wanted.insert(name());
  if (!use.fresh) {
    ages_.look_again_in(std::chrono::seconds(10));
    return false;
  }
  const Reason who = input_.blocked_by_pods.value_or(Reason{kWaitingForWorkloads, "waits"});
  if (!touched && (change_.had_turn || waited >= rollout_.idle_timeout)) {
    const std::string what = change_.had_turn
                                 ? "workloads have come"
                                 : fmt::format("still in use after {}", k8s::format_go_duration(rollout_.idle_timeout));
    defer(Deferral::By::idle_timeout, {who.code, fmt::format("{}: {}", what, who.message)});
    return false;
  }
  ages_.look_again_in(waited >= rollout_.idle_timeout
                          ? Duration(std::chrono::seconds(10))
                          : std::min<Duration>(std::chrono::seconds(10), rollout_.idle_timeout - waited));
  const bool plain = who.code == kWaitingForWorkloads;
  finding(plain ? Severity::info : Severity::warning, who.code, who.message);
  out_.evicts = rollout_.workloads == WorkloadMode::evict && !uncordoned;
  return false;
}

bool ChangeStep::would_wait_for_workloads(const ChangePlan& next) {
  const Drain drain = drain_for(facts_, next.kind, rollout_.workloads);
  if (drain == Drain::nothing || rollout_.workloads != WorkloadMode::wait_for_idle) return false;
  const NodeUse use = use_of(snapshot_, name());
  if (drained(drain, use, facts_)) return false;
  ages_.look_again_in(std::chrono::seconds(10));
  if (!use.listed) out_.plan.consumers_wanted.insert(name());
  if (!use.fresh) return true;
  finding(Severity::info, kWaitingForWorkloads,
          fmt::format("its new pods can still show what they have read, and then it is queued again: the change to {} "
                      "would wait for {}",
                      facts_.target.view(), use.names()));
  return true;
}

bool ChangeStep::serves_beside_workloads(const ChangePlan& next) {
  // While its plugin serves, workloads can come to the node without end: it is cordoned if its other pods do not come
  // up.
  const bool serves_in_part_for_long =
      serving(Component::plugin) && ages_.held_for(in_part_timer(name(), change_), rollout_.verify_timeout);
  if (serves_in_part_for_long || !would_wait_for_workloads(next)) return false;
  if (serves_what_it_read() && has_shown_it() && knows_rejected()) finish("Verified");
  return true;
}

// The node waits for no pod of a DaemonSet and no static pod: those that use its GPUs lose them when the first pods go.
void ChangeStep::report_daemonset_pods() {
  if (!steps_for(change_.kind).disruptive || !any_deletable(first_)) return;
  const NodeUse use = use_of(snapshot_, name());
  if (use.daemonset_owned.empty()) return;
  finding(Severity::info, kDaemonSetPodsInterrupted,
          fmt::format("the change to {} interrupts pods of DaemonSets or static pods that use the node's GPUs: {}. The "
                      "operator neither waits for them nor evicts them",
                      change_.to, names_of(use.daemonset_owned)));
}

void ChangeStep::defer(Deferral::By by, const Reason& why) {
  PatchNode patch = patch_back(node_, facts_, rollout_.verify_timeout);
  patch.remove_annotations.erase(std::string(kDeferredAnnotation));
  const bool by_person = by == Deferral::By::person;
  const Duration wait = by_person ? deferral_length(rollout_.idle_timeout) : Duration::zero();
  const Deferral deferral{change_.to, snapshot_.now + std::chrono::ceil<WallTime::duration>(wait), by,
                          std::string(retry_of(input_.policy)), rollout_.workloads == WorkloadMode::evict};
  patch.set_annotations[std::string(kDeferredAnnotation)] = print_deferral(deferral);
  add(std::move(patch), why.code, why.message, false);
}

bool ChangeStep::queue_again(const Reason& why) {
  const auto has_waited = [&] {
    if (change_.had_turn) return true;
    if (!change_.cordoned || drain_for(facts_, change_.kind, rollout_.workloads) == Drain::nothing) return false;
    // In doubt it has: a node that is idle loses nothing by that.
    const bool listed = snapshot_.consumers.contains(name());
    return !listed || !use_of(snapshot_, name()).is_idle();
  };
  // Under Evict a stop ends no turn: the node would be changed only once it is idle, and nothing would be evicted
  // again.
  const bool keeps_turn = rollout_.workloads == WorkloadMode::evict && !change_.had_turn;
  if (keeps_turn || !has_waited()) return back_out(why);
  defer(change_.had_turn ? Deferral::By::idle_timeout : Deferral::By::stop, why);
  return true;
}

NodeChange ChangeStep::begin() const {
  NodeChange out = touched(change_);
  const bool all_left = std::ranges::all_of(change_.pods, [&](const auto& listed) {
    return pods_left(change_, pods_, listed.first, false) == listed.second.size();
  });
  // Others have replaced some: the pods that run now have their place in the order.
  if (!all_left) out.pods = pods_to_replace(view_, {change_.kind, change_.cause});
  return out;
}

void ChangeStep::write_label(const NodeChange& begun) {
  const std::string label = config_label(view_.installation, node_);
  // The operator's own former value: the policy has moved to another key since.
  const bool is_own = label_writer(node_, label).has_value();
  if (change_.touched == Touched::yes && same_target_ && !is_own) {
    finding(Severity::warning, kLabelOwnedByOther,
            fmt::format("the label {} no longer has the value {}, which policy {} wants; the operator sets it "
                        "again. If this repeats, another client writes it: `kubectl get node {} --output yaml "
                        "--show-managed-fields` names it",
                        label, facts_.label->view(), facts_.policy.view(), name()));
  }
  PatchNode patch = patch_of(node_);
  add_to(patch, policy_label(node_, label, facts_));
  // In the same write: from now on the sidecars reload, whatever the policy wants next.
  if (change_.touched != Touched::yes)
    patch.set_annotations[std::string(kChangeAnnotation)] = print_change(touched(begun));
  add(std::move(patch), "Relabel",
      fmt::format("policy {} selects profile {}", facts_.policy.view(), facts_.label->view()), true);
}

bool ChangeStep::serving(Component component) const {
  const auto listed = change_.pods.find(component);
  return std::ranges::any_of(pods_.of(component), [&](const Pod* pod) {
    return is_serving(*pod) && (listed == change_.pods.end() || !listed->second.contains(pod->meta.uid));
  });
}

std::string ChangeStep::waiting_for() const {
  const Steps steps = steps_for(change_.kind);
  if (steps.wait == Steps::Wait::mps_ready && !serving(Component::mps))
    return "the new MPS control daemon is not Ready";
  if (steps.wait == Steps::Wait::mps_gone && pods_left(change_, pods_, Component::mps, true) > 0)
    return "the old MPS control daemon is still running";
  for (Component component : first_) {
    const bool returns = component != Component::mps || steps.wait == Steps::Wait::mps_ready;
    if (returns && change_.pods.contains(component) && !serving(component))
      return fmt::format("the new {} pod is not Ready", to_string(component));
  }
  return {};
}

bool ChangeStep::back_out(const Reason& why) {
  add(patch_back(node_, facts_, rollout_.verify_timeout), why.code, why.message, false);
  return true;
}

void ChangeStep::go_on(const ChangePlan& next, ListedPods pods) {
  const std::string_view what = next.cause == ChangeCause::new_template ? " with the newest template" : "";
  add(patch_into(view_, list_again(view_, change_, next, std::move(pods)), {.cordon = steps_for(next.kind).disruptive}),
      "Superseded", fmt::format("mid-change to {}; continues to {}{}", change_.to, facts_.target.view(), what), true);
}

void ChangeStep::delete_pods(const NodeChange& change, const std::vector<Component>& components, std::string_view why) {
  for (PlannedAction& deletion : deletions(view_, change, components, why))
    out_.plan.actions.push_back(std::move(deletion));
}

void ChangeStep::add(PatchNode patch, std::string_view reason, std::string message, bool disruptive) {
  out_.plan.actions.push_back({"", std::move(patch), {reason, std::move(message)}, disruptive, name()});
}

void ChangeStep::event(bool warning, std::string_view reason, std::string_view action, std::string note) {
  RecordEvent event{node_ref(name()), warning, {reason, std::move(note)}, std::string(action)};
  out_.plan.actions.push_back({"", std::move(event), {reason, {}}, false, {}});
}

void ChangeStep::finding(Severity severity, std::string_view reason, std::string message) {
  out_.plan.findings.push_back({severity, node_ref(name()), {reason, std::move(message)}});
}

}  // namespace gso
