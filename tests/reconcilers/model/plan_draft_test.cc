// How many actions one pass plans.
#include "reconcilers/model/plan_draft.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace gso::test::plan_draft_test {
namespace {

class ActionsOfOnePass : public testing::Test {
 protected:
  // How many actions a draft takes that plans as many as it can.
  [[nodiscard]] std::size_t taken(PlanDraft& draft) const {
    while (draft.takes_more()) draft.plan.actions.emplace_back();
    return draft.plan.actions.size();
  }

  World world_;
  Timers running_;
  std::map<std::string, NodeConsumers> consumers_;
  PlannerSettings settings_;
  Snapshot snapshot_{world_, {}, running_, consumers_, settings_, nullptr, false};
};

TEST_F(ActionsOfOnePass, AreSixtyInASmallFleet) {
  PlanDraft draft(snapshot_, "test");
  draft.walks(1720);
  EXPECT_EQ(taken(draft), 60U);
  EXPECT_EQ(draft.plan.requeue_after, Duration::zero()) << "the rest is planned at once";
}

TEST_F(ActionsOfOnePass, GrowWithTheObjectsThatEachPassLooksAt) {
  PlanDraft draft(snapshot_, "test");
  draft.walks(5000);
  EXPECT_EQ(taken(draft), 333U);
}

TEST_F(ActionsOfOnePass, AreAsManyAsTheLargestWalkAllows) {
  PlanDraft draft(snapshot_, "test");
  draft.walks(2200);
  draft.walks(10);
  EXPECT_EQ(taken(draft), 100U);
}

TEST_F(ActionsOfOnePass, AreAsManyAsTheServerHasAnsweredInTheLastSecond) {
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
