// How a reconciler adds to its plan.
#include "reconcilers/model/plan_draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/reasons/names.h"

namespace gso {

namespace {

// A stored time begins its timer; the timers of conditions begin when they are seen, but for the first look.
bool counts_stored(const Snapshot& snapshot, const TimerKey& timer) {
  return is_of_stored_time(timer.timer) ? !snapshot.timers.contains(timer) : snapshot.first_look;
}

}  // namespace

WallTime Ages::since(const TimerKey& timer, std::optional<WallTime> stored) const {
  const auto it = snapshot_->timers.find(timer);
  WallTime out = it == snapshot_->timers.end() ? snapshot_->now : std::min(it->second, snapshot_->now);
  if (stored && counts_stored(*snapshot_, timer)) out = std::min(out, *stored);
  return out;
}

void Ages::run(const TimerKey& timer, std::optional<WallTime> stored) {
  plan_->timers.push_back(timer);
  if (stored && counts_stored(*snapshot_, timer)) plan_->timer_starts[timer] = since(timer, stored);
}

WallTime Ages::stored(const TimerKey& timer, WallTime time) {
  run(timer, time);
  return since(timer, time);
}

bool Ages::has_run_for(const TimerKey& timer, Duration wanted, std::optional<WallTime> stored) {
  const Duration age_now = snapshot_->now - since(timer, stored);
  if (age_now >= wanted) return true;
  look_again_in(wanted - age_now);
  return false;
}

bool Ages::held_for(const TimerKey& timer, Duration wanted, std::optional<WallTime> stored) {
  run(timer, stored);
  return has_run_for(timer, wanted, stored);
}

void Ages::renew(const TimerKey& timer, Duration lifetime) {
  const Duration age_now = snapshot_->now - since(timer);
  if (age_now >= lifetime) return look_again_in(lifetime);
  plan_->timers.push_back(timer);
  look_again_in(lifetime - age_now);
}

void Ages::look_again_in(Duration wait) {
  wait = std::max(wait, Duration::zero());
  plan_->requeue_after = plan_->requeue_after ? std::min(*plan_->requeue_after, wait) : wait;
}

void Ages::keep(const TimerKey& timer) {
  if (snapshot_->timers.contains(timer)) plan_->timers.push_back(timer);
}

PlanDraft::PlanDraft(const Snapshot& snapshot, std::string_view reconciler)
    : s(snapshot),
      reconciler_(reconciler),
      most_actions_(std::clamp(snapshot.answered_lately, kMostActions, kMostOfAll)) {}

void PlanDraft::walks(std::size_t objects) {
  constexpr std::size_t kWithoutMore = 1720;
  constexpr std::size_t kObjectsOfOneAction = 12;
  if (objects <= kWithoutMore) return;
  most_actions_ = std::max(most_actions_, kMostActions + (objects - kWithoutMore) / kObjectsOfOneAction);
}

bool PlanDraft::takes_more() {
  if (writes_ < most_actions_) return true;
  look_again_in(Duration::zero());
  return false;
}

namespace {

// Writes for which the operator has no permission if rollouts are only observed. Sharing labels have their own switch,
// and plan_all() reports what partitioning would write.
bool only_observed(const Action& action, std::string_view reconciler) {
  if (reconciler == "node.partitioning") return false;
  return (std::holds_alternative<PatchNode>(action) && reconciler != "node.labels") ||
         std::holds_alternative<PatchConfigMap>(action) || std::holds_alternative<DeletePod>(action) ||
         std::holds_alternative<EvictPod>(action) || std::holds_alternative<DeleteObject>(action);
}

}  // namespace

void PlanDraft::add(Action action, std::string_view reason, std::string message, bool disruptive, std::string node) {
  if (s.settings.rollouts == PolicyMode::observe && only_observed(action, reconciler_)) return;
  if (auto* event = std::get_if<RecordEvent>(&action))
    event->why.message = shown_message(event->why.message);
  else
    ++writes_;
  plan.actions.push_back(
      {std::string(reconciler_), std::move(action), {reason, shown_message(message)}, disruptive, std::move(node)});
}

void PlanDraft::event(ObjectRef regarding, bool warning, std::string_view reason, std::string_view action,
                      std::string note) {
  RecordEvent event{std::move(regarding), warning, {reason, shown_message(note)}, std::string(action)};
  plan.actions.push_back({std::string(reconciler_), std::move(event), {reason, {}}, false, {}});
}

void PlanDraft::finding(Severity severity, ObjectRef object, std::string_view reason, std::string message,
                        std::string key, std::string_view cause) {
  plan.findings.push_back({severity, std::move(object), {reason, shown_message(message)}, std::move(key), cause});
}

void PlanDraft::take(Plan part, const std::string& node) {
  for (PlannedAction& planned : part.actions) {
    add(std::move(planned.action), planned.why.code, std::move(planned.why.message), planned.disruptive,
        std::holds_alternative<RecordEvent>(planned.action) ? std::string() : node);
  }
  part.actions.clear();
  for (Finding& found : part.findings) found.why.message = shown_message(found.why.message);
  plan.append(std::move(part));
}

const StaleView* stale_view_of(const Snapshot& s, std::string_view ns) {
  const auto& views = s.world.stale_views;
  const auto found = std::ranges::find_if(views, [&](const StaleView& view) {
    return view.ns.empty() || view.ns == ns || view.ns == s.settings.operator_namespace;
  });
  return found == views.end() ? nullptr : &*found;
}

std::string describe(const StaleView& stale) {
  return fmt::format(
      "the watch of {} has delivered nothing since {}: no node is started and nothing is deleted until it does",
      stale.view, k8s::format_time(stale.since));
}

void report_stale_views(const Snapshot& s, Plan& plan) {
  for (const StaleView& stale : s.world.stale_views) {
    if (!stale.reported) continue;
    const std::string& ns = stale.ns.empty() ? s.settings.operator_namespace : stale.ns;
    plan.findings.push_back(
        {Severity::warning,
         {"v1", "Namespace", "", ns, ""},
         {kViewStale, describe(stale) +
                          ". The operator's log and /readyz say why; grant list and watch, or repair the connection"}});
  }
}

}  // namespace gso
