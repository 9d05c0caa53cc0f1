// One reconciler's plan under construction. Only this class reads the time, as timers.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "reconcilers/model/object_refs.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/reasons/reason.h"

namespace gso {

// How planners name the timers that run, and read for how long they have run (timer.h). The runtime keeps what a pass
// names. Two ways, so that no timer depends on who happens to ask:
// - Timers with several readers are named once, at the top of the pass (rollout/rollout_view.h), with run(). Their
//   readers call since() and has_run_for(), which name nothing.
// - A timer that one chain of steps owns, such as the steps of one node, is named there in every pass in which its
//   condition is true: held_for() names it and reads it.
class Ages {
 public:
  // Both outlive this; timers and the time of the next look are written into `plan`.
  Ages(const Snapshot& snapshot, Plan& plan) : snapshot_(&snapshot), plan_(&plan) {}

  // Names the timer as running now. `stored`: a time stamp from the cluster; the timer has been running at least since
  // then. It counts only in the first look of an operator, which has not observed the condition itself; after that the
  // clock counts. A time stamp in the future counts as now. For a stored time it counts whenever the timer is new.
  void run(const TimerKey& timer, std::optional<WallTime> stored = std::nullopt);
  // Since when it has run; now if it is new, or does not run. `stored`: as it was named with.
  [[nodiscard]] WallTime since(const TimerKey& timer, std::optional<WallTime> stored = std::nullopt) const;
  // True once it has run for `wanted`; otherwise requests another look at the moment when it will have.
  bool has_run_for(const TimerKey& timer, Duration wanted, std::optional<WallTime> stored = std::nullopt);
  // Both.
  bool held_for(const TimerKey& timer, Duration wanted, std::optional<WallTime> stored = std::nullopt);
  // The time of a stored_time() timer by the wall clock as it goes now, never in the future: names the timer, which
  // this process measures from its first look at the time on, whatever the wall clock is set to meanwhile.
  WallTime stored(const TimerKey& timer, WallTime time);
  [[nodiscard]] WallTime now() const { return snapshot_->now; }
  // For a fact that counts for `lifetime` after it was seen, and that has just been seen again: the timer continues,
  // and another look is requested when it will have run out. A timer that has run out is left out of this plan, so that
  // it has a gap and starts again.
  void renew(const TimerKey& timer, Duration lifetime);
  // Requests another look after `wait`; a wait that has already passed counts as zero.
  void look_again_in(Duration wait);
  // Keeps a timer of an earlier pass running for an object that this pass does not look at.
  void keep(const TimerKey& timer);

 private:
  const Snapshot* snapshot_;
  Plan* plan_;
};

class PlanDraft {
 public:
  // Both outlive this.
  PlanDraft(const Snapshot& snapshot, std::string_view reconciler);

  const Snapshot& s;
  Plan plan;
  Ages ages{s, plan};

  // See Ages.
  void run(const TimerKey& timer) { ages.run(timer); }
  bool held_for(const TimerKey& timer, Duration wanted) { return ages.held_for(timer, wanted); }
  [[nodiscard]] WallTime since(const TimerKey& timer) const { return ages.since(timer); }
  void renew(const TimerKey& timer, Duration lifetime) { ages.renew(timer, lifetime); }
  void look_again_in(Duration wait) { ages.look_again_in(wait); }
  void keep(const TimerKey& timer) { ages.keep(timer); }

  // The most writes that one pass plans, so that a step does not cost more in a large fleet; the rest follows in the
  // next pass, as soon as the stores show this pass's writes. A pass looks at every node in change, so fewer passes
  // cost less: it plans as many actions as the API server has answered within the last second, up to kMostOfAll. No
  // view is much older than a second when they are sent, however slow the server is.
  static constexpr std::size_t kMostActions = 60;
  static constexpr std::size_t kMostOfAll = 1500;
  // A pass that looks at that many objects, whatever it plans, may plan one action more for twelve of them beyond
  // 1,720: otherwise the passes until each object has had its action would cost the square of the number. A fleet of
  // 5,000 nodes in change has 333 actions, which an API server takes in one or two seconds: no view is older when they
  // are sent.
  void walks(std::size_t objects);
  // False once the limit is reached; then the pass requests another pass at once. Events are no writes here: whoever
  // may create pods can cause as many as they like.
  [[nodiscard]] bool takes_more();

  // If rollouts are only observed, writes for which the operator has no permission are left out.
  void add(Action action, std::string_view reason, std::string message, bool disruptive = false, std::string node = {});
  void event(ObjectRef regarding, bool warning, std::string_view reason, std::string_view action, std::string note);
  void finding(Severity severity, ObjectRef object, std::string_view reason, std::string message, std::string key = {},
               std::string_view cause = {});
  // Adds a plan that was built for one node without a draft.
  void take(Plan part, const std::string& node);

 private:
  std::string_view reconciler_;
  std::size_t most_actions_;
  std::size_t writes_ = 0;  // Of the plan's actions.
};

// --- What plans from views that are not current (World::stale_views): nothing new is started, and nothing is deleted
// by what they show. What is in progress continues by lists, which are made while a watch fails.

// The first view that is not current and that decisions about operands of this namespace rest on; null: all are
// current.
[[nodiscard]] const StaleView* stale_view_of(const Snapshot& s, std::string_view ns);
// For people: which watch, and since when.
[[nodiscard]] std::string describe(const StaleView& stale);
// A finding for each view that is to be reported.
void report_stale_views(const Snapshot& s, Plan& plan);

}  // namespace gso
