// How many writes one pass plans.
#include "reconcilers/model/plan_draft.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace gso::test::plan_draft_test {
namespace {

class WritesOfOnePass : public testing::Test {
 protected:
  // How many writes a draft takes that plans as many as it can. Events beside them do not count.
  [[nodiscard]] std::size_t taken(PlanDraft& draft) const {
    std::size_t writes = 0;
    for (; draft.takes_more(); ++writes) {
      draft.event({}, false, "Planned", "Plan", "a write beside this Event");
      draft.add(PatchNode(), "Written", "");
    }
    return writes;
  }

  World world_;
  Timers running_;
  std::map<std::string, NodeConsumers> consumers_;
  PlannerSettings settings_;
  Snapshot snapshot_{world_, {}, running_, consumers_, settings_, nullptr, false};
};

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
}

TEST_F(WritesOfOnePass, AreAsManyAsTheLargestWalkAllows) {
  PlanDraft draft(snapshot_, "test");
  draft.walks(2200);
  draft.walks(10);
  EXPECT_EQ(taken(draft), 100U);
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
