// One branch for each row of the table in docs/node-steps.md, in its order.
#include "reconcilers/node/node_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/plugin_settings.h"
#include "reconcilers/cluster/record.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/node/node_labels.h"
#include "reconcilers/node/node_step_parts.h"
#include "reconcilers/reasons/names.h"

namespace gso {

TimerKey change_timer(Timer timer, const std::string& node, const NodeChange& change) {
  if (timer != Timer::verifying && timer != Timer::shown) return {timer, node, change.to};
  std::string list;
  for (const auto& [component, uids] : change.pods) {
    list += to_string(component);
    for (const k8s::Uid& uid : uids) list += "," + uid.str();
    list += ";";
  }
  return {timer, node, fmt::format("{}/{}", change.to, short_hash(list))};
}

TimerKey in_part_timer(const std::string& node, const NodeChange& change) {
  return {Timer::verifying, node, change.to + "/in-part"};
}

namespace {

// When the newest new pod of a change was created, according to the objects: a new leader did not observe it. If no
// component has a new pod yet: when the pods were listed, because the operator might have waited for their workloads
// since.
WallTime pods_came(const NodeView& view, const RolloutSpec& rollout) {
  const NodeChange& change = *view.facts.change;
  std::optional<WallTime> newest;
  for (const auto& [component, uids] : change.pods) {
    for (const Pod* pod : view.pods.of(component)) {
      if (uids.contains(pod->meta.uid)) continue;
      newest = newest ? std::max(*newest, pod->meta.creation_timestamp) : pod->meta.creation_timestamp;
    }
  }
  if (newest) return std::max(*newest, change.listed);
  if (drain_for(view.facts, change.kind, rollout.workloads) == Drain::nothing) return change.listed;
  return change.listed + std::chrono::ceil<WallTime::duration>(rollout.idle_timeout);
}

}  // namespace

WallTime deadline_start(WallTime stored, std::optional<WallTime> released) {
  return released ? std::max(stored, *released) : stored;
}

ChangeStep::ChangeStep(const StepInput& input)
    : input_(input),
      view_(input.view),
      snapshot_(input.view.snapshot),
      node_(input.view.node),
      facts_(input.view.facts),
      change_(*input.view.facts.change),
      rollout_(input.policy.rollout),
      pods_(input.view.pods),
      same_target_(facts_.profile && facts_.profile->valid && change_.to == facts_.target.view()),
      target_(same_target_ ? facts_.profile : input.begun_for),
      first_(first_components(facts_, change_.kind)),
      ages_(snapshot_, out_.plan) {}

Step ChangeStep::run() {
  if (same_target_) ages_.run(timer(Timer::unchanged), unchanged_seed());
  if (!node_.ready && !change_.failed) ages_.run(timer(Timer::not_ready));
  struct Row {
    StepRow name;
    bool (ChangeStep::*applies)();
  };
  constexpr Row kRows[] = {
      {StepRow::c1, &ChangeStep::c1_held},        {StepRow::forget_cordon, &ChangeStep::forget_cordon},
      {StepRow::c2, &ChangeStep::c2_failed},      {StepRow::c3, &ChangeStep::c3_back_out},
      {StepRow::c4, &ChangeStep::c4_wait},        {StepRow::c5, &ChangeStep::c5_new_target},
      {StepRow::c6, &ChangeStep::c6_drain},       {StepRow::c7, &ChangeStep::c7_list_older},
      {StepRow::c8, &ChangeStep::c8_terminating}, {StepRow::c9, &ChangeStep::c9_last},
      {StepRow::c10, &ChangeStep::c10_verified},  {StepRow::c11, &ChangeStep::c11_time_is_over},
      {StepRow::c12, &ChangeStep::c12_reload}};
  for (const Row& row : kRows) {
    if (!(this->*row.applies)()) continue;
    out_.row = row.name;
    break;
  }
  return std::move(out_);
}

bool ChangeStep::c1_held() {
  return !facts_.holder.empty();
}

bool ChangeStep::forget_cordon() {
  const bool lifted = change_.cordoned && !node_.unschedulable && (change_.failed || is_touched(facts_, pods_));
  if (!lifted || snapshot_.settings.rollouts == PolicyMode::observe) return false;
  NodeChange without = change_;
  without.cordoned = false;
  add(patch_of(node_, without), "Uncordoned", "someone uncordoned the node: a later cordon is not the operator's",
      false);
  return true;
}

bool ChangeStep::c2_failed() {
  report_lost_node();
  if (!change_.failed) return false;
  if (all_replaced() && shows_what_it_loaded() && has_shown_it() && !lists_older_again()) finish("Recovered");
  return true;
}

bool ChangeStep::c3_back_out() {
  if (is_touched(facts_, pods_)) {
    // All its pods are replaced, and the remaining label must not be written: no part of the change is incomplete.
    const bool label_only = facts_.label && all_replaced();
    if (label_only && !facts_.obstacle.code.empty()) return back_out(facts_.obstacle);
    const bool has_only_moved_the_label =
        std::ranges::all_of(change_.pods, [](const auto& listed) { return listed.second.empty(); }) && !facts_.label &&
        !steps_for(change_.kind).touches_mps;
    return has_only_moved_the_label && was_taken_to_another_key() &&
           back_out(
               {"Superseded", "someone moved the label of the node to another key: its pods reload by themselves"});
  }
  // Whatever else appeared: the operator must not write to the node.
  if (input_.stop && snapshot_.settings.rollouts == PolicyMode::observe) {
    finding(Severity::warning, input_.stop->code,
            fmt::format("{}: the node was being drained for {}{}", input_.stop->message, change_.to,
                        change_.cordoned ? " and stays cordoned: `cleanup`, or a max-mode other than Observe, "
                                           "uncordons it"
                                         : ""));
    return true;
  }
  if (!same_target_) return back_out({"Superseded", "the profile changed before any pod was restarted"});
  if (!facts_.obstacle.code.empty()) return queue_again(facts_.obstacle);
  // Without the change, pods with a creation time in the future would not count as newer than the text.
  if (facts_.cause == ChangeCause::ended && !is_from_the_future(pods_, snapshot_.now))
    return back_out({"NoLongerNeeded", fmt::format("the node shows {} without the change", change_.to)});
  return input_.stop && queue_again(*input_.stop);
}

bool ChangeStep::c4_wait() {
  const bool remains = facts_.label || any_listed_left(change_, pods_, false);
  if (!remains || !is_touched(facts_, pods_)) return false;
  if (facts_.obstacle.code.empty()) return is_hindered_by_kai(same_target_);
  // The message of an invalid target names its key and line, and no revision can be named.
  std::string message = facts_.obstacle.message;
  if (same_target_) {
    message = fmt::format("mid-change to {}, and no more pods are restarted: {}", change_.to, facts_.obstacle.message);
  } else if (facts_.profile && facts_.profile->valid) {
    message = fmt::format("mid-change to {}, and cannot continue to {}: {}", change_.to, facts_.target.view(),
                          facts_.obstacle.message);
  }
  finding(Severity::error, facts_.obstacle.code, std::move(message));
  return true;
}

bool ChangeStep::c5_new_target() {
  const bool moved_on = !same_target_ || has_superseded_template();
  if (!moved_on || !(facts_.label || any_listed_left(change_, pods_, false))) return false;
  if (!has_stood_long_enough()) return true;
  const ChangePlan next = next_plan();
  if (all_replaced() && serves_beside_workloads(next)) return true;
  go_on(next, pods_to_replace(view_, next));
  return true;
}

bool ChangeStep::c6_drain() {
  const bool untouched = !is_touched(facts_, pods_);
  if (!untouched && !facts_.label && !any_deletable(first_)) return false;
  // Its workloads might have left because the node is lost, and its kubelet would neither delete nor create a pod.
  if (!node_.ready) return true;
  const Drain drain = drain_for(facts_, change_.kind, rollout_.workloads);
  if (drain != Drain::nothing && !is_drained(drain)) return true;
  // A label that a person has written touches the change only for as long as it is there.
  const bool begins = untouched || change_.touched == Touched::no;
  const NodeChange begun = begins ? begin() : change_;
  if (facts_.label)
    write_label(begun);
  else if (begins)
    add(patch_of(node_, begun), "Begin", fmt::format("restarts pods for {}", change_.to), true);
  report_daemonset_pods();
  delete_pods(begun, first_, fmt::format("to {}", change_.to));
  return true;
}

bool ChangeStep::c7_list_older() {
  const WallTime since = deadline_start(pods_came(view_, rollout_), input_.released);
  if (node_.ready) out_.verifying_since = since;
  // Its deadline starts again once it is Ready.
  expired_ = node_.ready && ages_.held_for(timer(Timer::verifying), rollout_.verify_timeout, since);
  if (!facts_.taint.empty() && !facts_.pods_ready) {
    finding(Severity::warning, kTaintNotTolerated,
            fmt::format("mid-change to {}, and the new pods cannot start: the node has the taint {}. Remove the taint, "
                        "or add a toleration to the DaemonSets",
                        change_.to, facts_.taint.view()));
  }
  if (!is_superseded()) return false;
  if (is_hindered_by_kai(false)) return true;
  if (!has_stood_long_enough()) return true;
  const ChangePlan next = next_plan();
  if (serves_beside_workloads(next)) return true;
  go_on(next, older_pods(next));
  return true;
}

bool ChangeStep::c8_terminating() {
  if (!any_left_of(first_, change_, pods_, true)) return false;
  if (expired_) fail("pods of the first step are still terminating");
  return true;
}

bool ChangeStep::c9_last() {
  const std::vector<Component> last = steps_for(change_.kind).last;
  if (!any_deletable(last)) return false;
  if (node_.ready) out_.last_wait_for = waiting_for();
  const std::string why = node_.ready ? out_.last_wait_for : "the node is NotReady";
  if (why.empty())
    delete_pods(change_, last, fmt::format("last step to {}", change_.to));
  else if (expired_)
    fail(why);
  return true;
}

bool ChangeStep::c10_verified() {
  // If the text of its change is not known any more, nothing shows whether its pods have read it.
  const bool serves_an_unknown_text = target_ == nullptr && serves_what_it_read();
  if (!all_replaced() || !(serves_an_unknown_text || shows_what_it_loaded())) return false;
  // Pods that the kubelet rejected are listed once; this list never delays the end of the change.
  if (has_shown_it() && (expired_ || knows_rejected()) && !lists_older_again()) finish("Verified");
  return true;
}

bool ChangeStep::c11_time_is_over() {
  if (!expired_) return false;
  if (node_.ready && facts_.pods_ready && all_replaced() && !facts_.labels_missing.empty()) {
    finding(Severity::warning, kLabelsMissing,
            fmt::format("the change to {} waits: {}", change_.to, facts_.labels_missing.view()));
  } else {
    give_up();
  }
  return true;
}

bool ChangeStep::c12_reload() {
  const bool reloads = node_.ready && same_target_ && !facts_.label && facts_.obstacle.code.empty() &&
                       !change_.pods.contains(Component::plugin);
  if (!reloads || !ages_.held_for(timer(Timer::reloading), kReloadGrace)) return false;
  const Transition kind = change_.kind == Transition::none ? Transition::reshare : change_.kind;
  const ChangePlan next{kind, ChangeCause::relabelled};
  add(patch_into(view_, list_again(view_, change_, next, pods_to_replace(view_, next)), {}), "ReloadFailed",
      fmt::format("not reloaded within {}: {}", k8s::format_go_duration(kReloadGrace), facts_.verified.mismatch), true);
  return true;
}

Step step(const StepInput& input) {
  return ChangeStep(input).run();
}

namespace {

// New pods of the change came, or started again, while its key can have had another text than the one that it was begun
// for: what they serve proves nothing about that one.
bool can_run_another_text(const NodeView& view, const FleetRecord* record) {
  const NodeChange& change = *view.facts.change;
  const auto since = data_known_since(view.snapshot.world, view.installation.config_map_key());
  if (record == nullptr || !since || view.facts.key != change.key) return false;
  const auto texts = record->history.find(fmt::format("{}/{}", change.config_map, change.key));
  if (texts == record->history.end()) return false;
  const PlannerSettings& settings = view.snapshot.settings;
  const auto reads_another = [&](const ReadingTime& time) {
    return can_have_read_another(texts->second, {view.facts.target.view(), *since, *since}, change.to, time,
                                 settings.clock_difference);
  };
  constexpr std::array kLoaders{Component::plugin, Component::gfd, Component::mps};
  return std::ranges::any_of(kLoaders, [&](Component component) {
    const auto listed = change.pods.find(component);
    return std::ranges::any_of(view.pods.of(component), [&](const Pod* pod) {
      // A change by label lists none; those that were there before it have read their text again.
      const bool is_new =
          listed == change.pods.end() ? created_after(*pod, change.begun) : !listed->second.contains(pod->meta.uid);
      return is_new && std::ranges::any_of(reading_times(*pod, settings.projection), reads_another);
    });
  });
}

}  // namespace

ProfilePtr profile_begun_for(const NodeView& view, const FleetRecord* record, ProfileCache& profiles) {
  const std::string& to = view.facts.change->to;
  const Operand* plugin = view.installation.find(Component::plugin, view.node);
  if (to == view.facts.target.view() || plugin == nullptr || can_run_another_text(view, record)) return nullptr;
  const OverriddenErrors overridden = overridden_errors(*plugin, view.installation.find(Component::gfd, view.node));
  if (ProfilePtr known = known_profile(to, view.snapshot.world, record, profiles, overridden)) return known;
  // The node has another key now, and its former key can still have the text.
  const ConfigMap* config_map = view.snapshot.world.configmaps.find(view.installation.config_map_key());
  const auto text = key_text(config_map, view.facts.change->key);
  if (!text || view.facts.change->config_map != view.installation.id()) return nullptr;
  ProfilePtr present = profiles.compile(*text, overridden);
  return present->valid && present->revision == to ? present : nullptr;
}

void keep_timers(const NodeView& view, const RolloutSpec& rollout, std::optional<WallTime> released, Ages& ages) {
  const NodeChange& change = *view.facts.change;
  const std::string& name = view.node.meta.name;
  if (!view.node.ready) {
    if (!change.failed) ages.run(change_timer(Timer::not_ready, name, change));
    return;
  }
  if (is_touched(view.facts, view.pods)) {
    ages.keep(change_timer(Timer::draining, name, change));
    if (!change.failed)
      ages.run(change_timer(Timer::verifying, name, change), deadline_start(pods_came(view, rollout), released));
  } else {
    ages.run(change_timer(Timer::draining, name, change), deadline_start(change.listed, released));
    ages.keep(change_timer(Timer::verifying, name, change));
  }
  for (const Timer timer : {Timer::reloading, Timer::unchanged, Timer::shown})
    ages.keep(change_timer(timer, name, change));
  ages.keep(in_part_timer(name, change));
}

}  // namespace gso
