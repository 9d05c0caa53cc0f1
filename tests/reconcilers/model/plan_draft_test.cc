// How many writes one pass plans, and for how long conditions have been true: what names a timer, and what only reads
// it.
#include "reconcilers/model/plan_draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "reconcilers/model/plan.h"

namespace gso::test::plan_draft_test {
namespace {

using std::chrono::minutes;
using testing::ElementsAre;
using testing::IsEmpty;

const TimerKey kSoak{Timer::soaking, "rollout-1", "A100"};

class OnePass : public testing::Test {
 protected:
  [[nodiscard]] Snapshot snapshot(bool first_look = false) const {
    return {world_, now_, running_, consumers_, settings_, nullptr, first_look};
  }
  // How many writes a draft takes that plans as many as it can. Events beside them do not count.
  [[nodiscard]] std::size_t taken(PlanDraft& draft) const {
    std::size_t writes = 0;
    for (; draft.takes_more(); ++writes) {
      draft.event({}, false, "Planned", "Plan", "a write beside this Event");
      draft.add(PatchNode(), "Written", "");
    }
    return writes;
  }

  const WallTime now_ = *k8s::parse_rfc3339("2026-01-01T10:00:00Z");
  World world_;
  Timers running_;
  std::map<std::string, NodeConsumers> consumers_;
  PlannerSettings settings_;
  Plan plan_;
};

struct AgesOfTimers : OnePass {};
struct WritesOfOnePass : OnePass {
  Snapshot snapshot_ = snapshot();
};

TEST_F(AgesOfTimers, AReaderNamesNoTimerAndRequestsALook) {
  running_[kSoak] = now_ - minutes(2);
  const Snapshot snapshot = this->snapshot();
  Ages ages(snapshot, plan_);
  EXPECT_EQ(ages.since(kSoak), now_ - minutes(2));
  EXPECT_FALSE(ages.has_run_for(kSoak, minutes(5)));
  EXPECT_TRUE(ages.has_run_for(kSoak, minutes(2)));
  EXPECT_THAT(plan_.timers, IsEmpty());
  EXPECT_EQ(plan_.requeue_after, minutes(3));
}

TEST_F(AgesOfTimers, ATimerThatDoesNotRunHasRunForNoTime) {
  const Snapshot snapshot = this->snapshot();
  Ages ages(snapshot, plan_);
  EXPECT_EQ(ages.since(kSoak), now_);
  EXPECT_FALSE(ages.has_run_for(kSoak, minutes(1)));
}

TEST_F(AgesOfTimers, AStoredTimeCountsInTheFirstLookOnly) {
  const WallTime stored = now_ - minutes(7);
  const Snapshot later = snapshot();
  Ages(later, plan_).run(kSoak, stored);
  EXPECT_THAT(plan_.timer_starts, IsEmpty());
  EXPECT_EQ(Ages(later, plan_).since(kSoak, stored), now_);

  const Snapshot first = snapshot(true);
  Plan plan;
  Ages ages(first, plan);
  ages.run(kSoak, stored);
  EXPECT_THAT(plan.timers, ElementsAre(kSoak));
  EXPECT_THAT(plan.timer_starts, ElementsAre(std::pair(kSoak, stored)));
  EXPECT_TRUE(ages.has_run_for(kSoak, minutes(7), stored));
}

TEST_F(AgesOfTimers, AStoredTimeInTheFutureCountsAsNow) {
  const Snapshot first = snapshot(true);
  EXPECT_EQ(Ages(first, plan_).since(kSoak, now_ + minutes(7)), now_);
}

// A stored time, what its timer says, if it runs, and the time that counts: minutes from now.
struct StoredCase {
  int stored;
  std::optional<int> runs;
  int counts;
};
constexpr StoredCase kStoredCases[] = {
    {-7, std::nullopt, -7},  // In the first look at it,
    {-7, -9, -9},            // and then as this process has measured: the wall clock was set back, or
    {-67, -9, -9},           // ahead.
    {50, std::nullopt, 0},   // It never lies in the future.
    {50, -9, -9},
};

TEST_F(AgesOfTimers, AStoredTimeCountsUntilThisProcessHasMeasuredIt) {
  for (const StoredCase& each : kStoredCases) {
    for (const bool first_look : {false, true}) {
      SCOPED_TRACE(testing::Message() << each.stored << " " << each.runs.value_or(99) << " " << first_look);
      const WallTime time = now_ + minutes(each.stored);
      const TimerKey timer = stored_time("n01", "deferral", time);
      running_.clear();
      if (each.runs) running_[timer] = now_ + minutes(*each.runs);
      const Snapshot snapshot = this->snapshot(first_look);
      Plan plan;
      EXPECT_EQ(Ages(snapshot, plan).stored(timer, time), now_ + minutes(each.counts));
      EXPECT_THAT(plan.timers, ElementsAre(timer));
      EXPECT_EQ(plan.timer_starts.contains(timer), !each.runs);
    }
  }
}

TEST_F(AgesOfTimers, AnotherEndOrLengthIsAnotherWait) {
  const StoredWait wait = stored_wait("n01", "deferral", now_, minutes(10));
  EXPECT_EQ(wait.begun, now_ - minutes(10));
  EXPECT_NE(wait.timer, stored_wait("n01", "deferral", now_, minutes(11)).timer);
  EXPECT_NE(wait.timer, stored_wait("n01", "deferral", now_ + minutes(1), minutes(10)).timer);
}

TEST_F(AgesOfTimers, ATimerIsKeptOnlyIfItHasRun) {
  const Snapshot without = snapshot();
  Ages(without, plan_).keep(kSoak);
  EXPECT_THAT(plan_.timers, IsEmpty());
  running_[kSoak] = now_;
  const Snapshot with = snapshot();
  Ages(with, plan_).keep(kSoak);
  EXPECT_THAT(plan_.timers, ElementsAre(kSoak));
}

TEST_F(WritesOfOnePass, AreSixtyInASmallFleet) {
  PlanDraft draft(snapshot_, "test");
  draft.walks(1720);
  EXPECT_EQ(taken(draft), 60U);
  EXPECT_EQ(draft.plan.requeue_after, Duration::zero()) << "the rest is planned at once";
}

TEST_F(WritesOfOnePass, GrowWithTheObjectsThatEachPassLooksAt) {
  PlanDraft draft(snapshot_, "test");
  draft.walks(5000);
  EXPECT_EQ(taken(draft), 333U);
  PlanDraft of_two(snapshot_, "test");
  of_two.walks(2200);
  of_two.walks(10);
  EXPECT_EQ(taken(of_two), 100U) << "as many as the largest walk allows";
}

TEST_F(WritesOfOnePass, AreAsManyAsTheServerHasAnsweredInTheLastSecond) {
  snapshot_.answered_lately = 400;
  PlanDraft fast(snapshot_, "test");
  fast.walks(2200);
  EXPECT_EQ(taken(fast), 400U);
  snapshot_.answered_lately = 20;
  PlanDraft slow(snapshot_, "test");
  EXPECT_EQ(taken(slow), 60U) << "the first plan after a pause has as many";
  snapshot_.answered_lately = 20000;
  PlanDraft fastest(snapshot_, "test");
  EXPECT_EQ(taken(fastest), 1500U);
}

}  // namespace
}  // namespace gso::test::plan_draft_test
