// Labels that a policy selects by, and that have vanished from a node.
#include "reconcilers/model/policy.h"
#include "reconcilers/node/node_labels.h"

#include <gtest/gtest.h>

namespace gso::lost_labels_test {
namespace {

class LostLabels : public testing::Test {
 protected:
  LostLabels() {
    policy.node_selector.match_labels["pool"] = "a";
    policy.node_selector.match_expressions.push_back({"zone", k8s::LabelOperator::in, {"x", "y"}});
    policy.node_selector.match_expressions.push_back({"gpu", k8s::LabelOperator::exists, {}});
    policy.node_selector.match_expressions.push_back({"spot", k8s::LabelOperator::does_not_exist, {}});
    node.meta.labels = {{"pool", "a"}, {"zone", "y"}, {"gpu", ""}};
  }

  SharingPolicy policy;
  Node node;
};

TEST_F(LostLabels, AreNoneOfANodeThatThePolicySelects) {
  EXPECT_FALSE(selects_but_for_lost_labels(policy, node));
}

TEST_F(LostLabels, AreThoseThatTheNodeDoesNotHaveAtAll) {
  for (const char* lost : {"pool", "zone", "gpu"}) {
    Node without = node;
    without.meta.labels.erase(lost);
    EXPECT_TRUE(selects_but_for_lost_labels(policy, without)) << lost;
  }
  node.meta.labels = {};
  EXPECT_TRUE(selects_but_for_lost_labels(policy, node)) << "all of them";
}

TEST_F(LostLabels, AreNotThoseWithAnotherValue) {
  node.meta.labels.set("pool", "b");
  EXPECT_FALSE(selects_but_for_lost_labels(policy, node));
  node.meta.labels.erase("zone");
  EXPECT_FALSE(selects_but_for_lost_labels(policy, node)) << "the other one is lost";
}

TEST_F(LostLabels, AreNotThoseThatMustNotBeThere) {
  node.meta.labels.set("spot", "true");
  EXPECT_FALSE(selects_but_for_lost_labels(policy, node));
}

}  // namespace
}  // namespace gso::lost_labels_test
