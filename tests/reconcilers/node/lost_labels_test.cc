// Labels that a policy selects by, and that have vanished from a node.
#include "reconcilers/model/policy.h"
#include "reconcilers/node/node_labels.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace gso::lost_labels_test {
namespace {

TEST(LostLabels, AreThoseThatTheNodeDoesNotHaveAtAll) {
  SharingPolicy policy;
  policy.node_selector.match_labels["pool"] = "a";
  policy.node_selector.match_expressions = {{"zone", k8s::LabelOperator::in, {"x", "y"}},
                                            {"gpu", k8s::LabelOperator::exists, {}},
                                            {"spot", k8s::LabelOperator::does_not_exist, {}}};
  const std::map<std::string, std::string> selected{{"pool", "a"}, {"zone", "y"}, {"gpu", ""}};
  const auto are_lost = [&](const std::vector<std::string>& erased,
                            const std::map<std::string, std::string>& set = {}) {
    Node node;
    for (const auto& [key, value] : selected) node.meta.labels.set(key, value);
    for (const std::string& key : erased) node.meta.labels.erase(key);
    for (const auto& [key, value] : set) node.meta.labels.set(key, value);
    return selects_but_for_lost_labels(policy, node);
  };
  EXPECT_FALSE(are_lost({})) << "the policy selects it";
  for (const char* lost : {"pool", "zone", "gpu"}) EXPECT_TRUE(are_lost({lost})) << lost;
  EXPECT_TRUE(are_lost({"pool", "zone", "gpu"}));
  EXPECT_FALSE(are_lost({}, {{"pool", "b"}}));
  EXPECT_FALSE(are_lost({"zone"}, {{"pool", "b"}})) << "the other one is lost";
  EXPECT_FALSE(are_lost({}, {{"spot", "true"}})) << "one that must not be there";
}

}  // namespace
}  // namespace gso::lost_labels_test
