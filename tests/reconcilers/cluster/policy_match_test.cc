// Which policy governs a node: labels that sharing changes on the node do not decide it.
#include "reconcilers/cluster/policy_match.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reconcilers/model/project.h"

namespace gso::policy_match_test {
namespace {

SharingPolicy policy(const std::string& spec) {
  auto read = project_sharing_policy(R"({"metadata":{"name":"p"},"spec":)" + spec + "}");
  EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().message);
  return read ? *std::move(read) : SharingPolicy{};
}

Node node(const std::string& labels) {
  auto read = project_node(R"({"metadata":{"name":"n","labels":)" + labels + "}}");
  EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().message);
  return read ? *std::move(read) : Node{};
}

TEST(PolicyMatch, ProductsAreComparedWithoutTheSuffixThatSharingAdds) {
  const Node plain = node(R"({"nvidia.com/gpu.product":"Tesla-T4"})");
  const Node shared = node(R"({"nvidia.com/gpu.product":"Tesla-T4-SHARED"})");
  const Node other = node(R"({"nvidia.com/gpu.product":"A100-SHARED"})");
  const Node none = node("{}");
  for (const std::string value : {"Tesla-T4", "Tesla-T4-SHARED"}) {
    SCOPED_TRACE(value);
    for (const std::string& selector :
         {R"({"matchLabels":{"nvidia.com/gpu.product":")" + value + R"("}})",
          R"({"matchExpressions":[{"key":"nvidia.com/gpu.product","operator":"In","values":[")" + value + R"("]}]})"}) {
      const SharingPolicy p = policy(R"({"nodeSelector":)" + selector + "}");
      EXPECT_TRUE(policy_selects(p, plain));
      EXPECT_TRUE(policy_selects(p, shared));
      EXPECT_FALSE(policy_selects(p, other));
      EXPECT_FALSE(policy_selects(p, none));
    }
    const SharingPolicy not_in = policy(
        R"({"nodeSelector":{"matchExpressions":[{"key":"nvidia.com/gpu.product","operator":"NotIn","values":[")" +
        value + R"("]}]}})");
    EXPECT_FALSE(policy_selects(not_in, plain));
    EXPECT_FALSE(policy_selects(not_in, shared));
    EXPECT_TRUE(policy_selects(not_in, other));
    EXPECT_TRUE(policy_selects(not_in, none));
  }
  // The suffix has a meaning only in GPU products.
  const SharingPolicy pool = policy(R"({"nodeSelector":{"matchLabels":{"pool":"a-SHARED"}}})");
  EXPECT_FALSE(policy_selects(pool, node(R"({"pool":"a"})")));
  EXPECT_TRUE(policy_selects(pool, node(R"({"pool":"a-SHARED"})")));
}

TEST(PolicyMatch, WithoutDiscoveredLabelsItIsUnknownWhichPolicyGoverns) {
  const SharingPolicy by_product =
      policy(R"({"nodeSelector":{"matchLabels":{"nvidia.com/gpu.product":"Tesla-T4","pool":"a"}}})");
  const SharingPolicy unless_pci = policy(
      R"({"nodeSelector":{"matchExpressions":[{"key":"feature.node.kubernetes.io/x","operator":"DoesNotExist"}]}})");
  const SharingPolicy by_pool = policy(R"({"nodeSelector":{"matchLabels":{"pool":"a"}}})");
  const SharingPolicy by_key = policy(
      R"({"nodeSelector":{"matchLabels":{"nvidia.com/device-plugin.config":"x"}},"profile":{"configMapKey":"x"}})");
  using Policies = std::vector<const SharingPolicy*>;
  const Node bare = node(R"({"pool":"a"})");
  EXPECT_EQ(policies_in_doubt({&by_product, &unless_pci, &by_pool}, bare), (Policies{&by_product, &unless_pci}));
  EXPECT_EQ(policies_in_doubt({&by_pool, &by_product}, bare), Policies{}) << "a policy of higher precedence selects it";
  EXPECT_EQ(policies_in_doubt({&by_product}, node(R"({"pool":"b"})")), Policies{}) << "it never selects that node";
  EXPECT_EQ(policies_in_doubt({&by_product}, node(R"({"pool":"a","nvidia.com/gpu.product":"A100"})")), Policies{});
  EXPECT_EQ(policies_in_doubt({&by_key}, bare), Policies{}) << "no discovery writes that label";
}

TEST(PolicyMatch, ASelectorOnALabelThatSharingWritesSelectsNothing) {
  const Node fits = node(
      R"({"nvidia.com/gpu.replicas":"1","nvidia.com/gpu.sharing-strategy":"none","nvidia.com/device-plugin.config":"a"})");
  const SharingPolicy replicas = policy(R"({"nodeSelector":{"matchLabels":{"nvidia.com/gpu.replicas":"1"}}})");
  EXPECT_FALSE(policy_selects(replicas, fits));
  EXPECT_NE(selector_problem(replicas).find("nvidia.com/gpu.replicas"), std::string::npos);
  const SharingPolicy strategy = policy(
      R"({"nodeSelector":{"matchExpressions":[{"key":"nvidia.com/gpu.sharing-strategy","operator":"Exists"}]}})");
  EXPECT_FALSE(policy_selects(strategy, fits));
  // A selector can use the label that chooses a profile if the policy does not change that label.
  const std::string by_config = R"("nodeSelector":{"matchLabels":{"nvidia.com/device-plugin.config":"a"}})";
  EXPECT_TRUE(policy_selects(policy("{" + by_config + "}"), fits));
  EXPECT_TRUE(policy_selects(policy("{" + by_config + R"(,"profile":{"configMapKey":"a"}})"), fits));
  EXPECT_FALSE(policy_selects(policy("{" + by_config + R"(,"profile":{"configMapKey":"b"}})"), fits));
  EXPECT_EQ(selector_problem(policy("{}")), "");
}

TEST(PolicyMatch, APolicyWithAStopKeepsTheNodesOfARefusedSelector) {
  const Node fits = node(R"({"nvidia.com/mps.capable":"true"})");
  const std::string selector = R"("nodeSelector":{"matchLabels":{"nvidia.com/mps.capable":"true"}})";
  EXPECT_FALSE(policy_selects(policy("{" + selector + "}"), fits));
  for (const std::string stop : {R"("mode":"Observe")", R"("mode":"Approve")", R"("rollout":{"paused":true})"}) {
    SCOPED_TRACE(stop);
    const SharingPolicy stopped = policy("{" + selector + "," + stop + "}");
    EXPECT_TRUE(policy_selects(stopped, fits));
    EXPECT_FALSE(policy_selects(stopped, node("{}")));
    EXPECT_NE(selector_problem(stopped), "");
  }
}

TEST(PolicyMatch, NotesWhatASelectorDoesBesides) {
  const auto codes = [](const std::string& selector) {
    std::vector<std::string> out;
    for (const Reason& note : selector_notes(policy(R"({"nodeSelector":)" + selector + "}")))
      out.emplace_back(note.code);
    return out;
  };
  using Codes = std::vector<std::string>;
  EXPECT_EQ(codes(R"({"matchLabels":{"nvidia.com/gpu.count":"8"}})"), Codes{"SelectorOnGPUCount"});
  EXPECT_EQ(
      codes(R"({"matchExpressions":[{"key":"nvidia.com/gpu.product","operator":"NotIn","values":["A-SHARED"]}]})"),
      Codes{"SharedSuffixIgnored"});
  EXPECT_EQ(codes(R"({"matchLabels":{"pool":"a","nvidia.com/gpu.product":"A"}})"), Codes{});
}

}  // namespace
}  // namespace gso::policy_match_test
