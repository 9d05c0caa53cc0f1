// The whole operator while the API server takes ten seconds for one SharingRollout: what is planned meanwhile, and what
// is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "reconcilers/model/labels.h"
#include "reconcilers/profile/profile.h"
#include "tests/controller/runtime/plugin_fleet.h"

namespace gso::slow_rollout_test {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

const std::string kConfigMap = "/api/v1/namespaces/gpu-operator/configmaps/mps-config";
const std::string kPolicies = "/apis/gpusharing.dev/v1alpha1/sharingpolicies";

// n1 is of policy a and n2 of policy b; both run four replicas of two GPUs, and a Job uses six of them on n1.
class SlowRollout : public PluginFleetTest {
 protected:
  SlowRollout() {
    install_crds();
    create_plugin("gpu-operator");
    create("/api/v1/namespaces", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}})");
    create("/api/v1/nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n2"}})");
    create_config(4);
    add_node("n1", "a");
    add_node("n2", "b");
    create_pod("team", "train", "n1", "6", false);
    a.options.cluster_max_unavailable = {2, false};
  }
  void add_node(const std::string& name, const std::string& policy) {
    add_sharing_node(name, {{"policy", policy}});
    const Json selector{{"matchLabels", {{"policy", policy}}}};
    create(kPolicies, Json{{"apiVersion", "gpusharing.dev/v1alpha1"},
                           {"kind", "SharingPolicy"},
                           {"metadata", {{"name", policy}}},
                           {"spec", {{"nodeSelector", selector}}}}
                          .dump());
  }
  bool in_change(const std::string& node) {
    return get("/api/v1/nodes/" + node)["metadata"]["annotations"].contains(std::string(kChangeAnnotation));
  }
  void pause(const std::string& policy, bool paused) {
    merge(kPolicies + "/" + policy, {{"spec", {{"rollout", {{"paused", paused}}}}}});
  }
  // The key is edited for both policies, and the creation of policy a's SharingRollout takes ten seconds: it is the
  // second one, because idle nodes are planned before busy ones. Returns while it is not answered.
  void edit_with_a_slow_rollout() {
    a.start(sim);
    ASSERT_TRUE(eventually([&] { return a.view->leading && a.view->idle; }));
    run(1min);
    sim::FaultRule slow = always(sim::Fault::webhook, "sharingrollouts");
    slow.verb = "create";
    slow.skip = slow.times = 1;
    slow.delay = 10s;
    a.transport.faults().add(slow);
    merge(kConfigMap, {{"data", {{"any", time_slicing(2)}}}});
    ASSERT_TRUE(eventually([&] { return a.transport.faults().count(sim::Fault::webhook) == 1; }));
    ASSERT_FALSE(in_change("n1") || in_change("n2"));
  }
};

TEST_F(SlowRollout, HoldsTheNodesOfItsPolicyAndThoseOfOthersStartWithinASecond) {
  edit_with_a_slow_rollout();
  EXPECT_TRUE(eventually([&] { return in_change("n2"); }, 1100ms));
  run(8s);
  EXPECT_FALSE(in_change("n1"));
  EXPECT_TRUE(eventually([&] { return in_change("n1"); }, 3s)) << "once it is recorded";
}

TEST_F(SlowRollout, APauseThatArrivesBeforeTheAnswerHolds) {
  edit_with_a_slow_rollout();
  run(5s);
  pause("a", true);
  run(1min);
  EXPECT_FALSE(in_change("n1"));
  EXPECT_EQ(get("/apis/gpusharing.dev/v1alpha1/sharingrollouts")["items"].size(), 2U) << "it was created all the same";
  pause("a", false);
  EXPECT_TRUE(eventually([&] { return in_change("n1"); }, 5s));
}

TEST_F(SlowRollout, MeanwhileNoPodsAreListedOverAndOverForANodeThatWaitsForIt) {
  edit_with_a_slow_rollout();
  const auto lists = std::make_shared<int>(0);
  a.transport.set_request_listener([lists](const k8s::HttpRequest& request) {
    if (request.path.find("spec.nodeName") != std::string::npos && request.path.find("n1") != std::string::npos)
      ++*lists;
  });
  const std::uint64_t passes = a.view->passes;
  run(9s);
  ASSERT_FALSE(in_change("n1"));
  EXPECT_LE(*lists, 1);
  EXPECT_LE(a.view->passes - passes, 30U);
}

}  // namespace
}  // namespace gso::slow_rollout_test
