// What planners get to see of an object's JSON, where a rule is behind it.
#include <gtest/gtest.h>

#include "reconcilers/model/project.h"

namespace gso {
namespace {

TEST(Projections, InitContainersThatHaveSucceededAreNotKept) {
  const auto pod = project_pod(R"({"kind":"Pod","metadata":{"name":"p","namespace":"n"},"status":{
    "initContainerStatuses":[
      {"name":"toolkit-validation","ready":true,"restartCount":0,"state":{"terminated":{"exitCode":0}}},
      {"name":"config-manager-init","ready":false,"restartCount":3,
       "state":{"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":1,"message":"no key"}}}],
    "containerStatuses":[{"name":"plugin","ready":true,"restartCount":0,"state":{"running":{}}}]}})");
  ASSERT_TRUE(pod.has_value()) << pod.error().message;
  ASSERT_EQ(pod->init_containers.size(), 1U);
  EXPECT_EQ(pod->init_containers[0].name, "config-manager-init");
  EXPECT_EQ(pod->init_containers[0].waiting_reason, "CrashLoopBackOff");
  EXPECT_EQ(pod->init_containers[0].last_message, "no key");
  ASSERT_EQ(pod->containers.size(), 1U);
  EXPECT_TRUE(pod->containers[0].running);
}

TEST(Projections, NullInAPolicyIsAsIfTheFieldWereAbsent) {
  const auto policy = project_sharing_policy(R"({"kind":"SharingPolicy","metadata":{"name":"p"},"spec":{
    "profile":{"configMapKey":null,"inline":null},"rollout":{"cordon":null},"revisionHistoryLimit":null}})");
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  EXPECT_FALSE(policy->config_map_key.has_value());
  EXPECT_FALSE(policy->inline_profile.has_value());
  EXPECT_FALSE(policy->rollout.cordon.has_value());
  EXPECT_FALSE(policy->revision_history_limit.has_value());
}

}  // namespace
}  // namespace gso
