// explain POD where no pod exists: the workload of that name says why its pods were not created.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <fmt/format.h>

#include "reconcilers/explain/pod.h"

namespace gso::uncreated_pod_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// `spec` ends with a comma, or is empty.
std::string workload(const std::string& spec, const std::string& status) {
  return R"({"metadata":{"name":"web","namespace":"team"},"spec":{)" + spec +
         R"("template":{"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"nvidia.com/gpu":"2"}}}]}}},)" +
         R"("status":{)" + status + "}}";
}

// As the API server answers, within a JSON text.
constexpr const char* kOverQuota =
    R"(pods \"web-7d-x2\" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=4, limited: requests.nvidia.com/gpu=4)";

std::string condition(const std::string& message, const std::string& status = "True") {
  return fmt::format(
      R"("replicas":0,"conditions":[{{"type":"Available","status":"False","reason":"MinimumReplicasUnavailable"}},)"
      R"({{"type":"ReplicaFailure","status":"{}","reason":"FailedCreate","message":"{}"}}])",
      status, message);
}

// What the Events of controllers have before and in that message.
constexpr const char* kEvent =
    "Error creating: pods \"web-x2\" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=2, used: "
    "requests.nvidia.com/gpu=4, limited: requests.nvidia.com/gpu=4";

TEST(UncreatedPod, TheQuotaThatRefusesIsNamedWithWhoDecides) {
  for (const char* kind : {"Deployment", "ReplicaSet"}) {
    const auto out = explain_uncreated_pod({kind, workload(R"("replicas":3,)", condition(kOverQuota)), ""}, "team/web");
    ASSERT_TRUE(out.has_value()) << kind;
    EXPECT_EQ(out->pod, "team/web");
    EXPECT_EQ(out->state, fmt::format("not created by {} web, which has 0 of 3 pods", kind));
    EXPECT_EQ(out->asks, "nvidia.com/gpu=2");
    EXPECT_TRUE(out->hindered());
    ASSERT_EQ(out->causes.size(), 1U);
    EXPECT_EQ(out->causes[0].reason.code, "QuotaRefuses");
    EXPECT_EQ(out->causes[0].reason.message,
              fmt::format("{} web cannot create its pods: they would exceed ResourceQuota gpus of namespace team "
                          "(requested: requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=4, limited: "
                          "requests.nvidia.com/gpu=4)",
                          kind));
    EXPECT_EQ(out->causes[0].cure.command.text(), "kubectl describe resourcequota gpus --namespace team");
    EXPECT_THAT(out->causes[0].cure.options,
                ElementsAre("whoever sets the quotas of namespace team decides how much it gets",
                            "the owners of its pods decide which of them end or request less: `kubectl get pods "
                            "--namespace team`"));
  }
}

TEST(UncreatedPod, AQuotaThatWantsEveryLimitSetIsNamedWithWhatIsMissing) {
  const auto out = explain_uncreated_pod(
      {"Deployment",
       workload("", condition(R"(pods \"web-x\" is forbidden: failed quota: cpus: must specify limits.cpu for: c)")),
       ""},
      "team/web");
  ASSERT_TRUE(out.has_value());
  EXPECT_EQ(out->causes[0].reason.code, "QuotaRefuses");
  EXPECT_EQ(out->causes[0].reason.message,
            "Deployment web cannot create its pods: ResourceQuota cpus of namespace team refuses pods without these "
            "requests or limits: must specify limits.cpu for: c");
  EXPECT_EQ(out->causes[0].cure.command.text(), "kubectl describe resourcequota cpus --namespace team");
}

TEST(UncreatedPod, AnotherRefusalIsQuoted) {
  const auto out = explain_uncreated_pod(
      {"Deployment", workload("", condition(R"(admission webhook \"x\" denied the request: no GPUs today)")), ""},
      "team/web");
  ASSERT_TRUE(out.has_value());
  EXPECT_EQ(out->causes[0].reason.code, "PodNotCreated");
  EXPECT_EQ(out->causes[0].reason.message,
            "Deployment web cannot create its pods; the API server's answer: admission webhook \"x\" denied the "
            "request: no GPUs today");
  EXPECT_EQ(out->causes[0].cure.command.text(), "kubectl describe deployment web --namespace team");
}

// A webhook can write what it likes: none of it becomes a command.
TEST(UncreatedPod, OnlyANameOfAnObjectBecomesPartOfACommand) {
  const auto out = explain_uncreated_pod(
      {"Deployment", workload("", condition("exceeded quota: x; reboot, requested: all")), ""}, "team/web");
  ASSERT_TRUE(out.has_value());
  EXPECT_EQ(out->causes[0].reason.code, "PodNotCreated");
  EXPECT_EQ(out->causes[0].cure.command.text(), "kubectl describe deployment web --namespace team");
}

struct EventRow {
  const char* name;
  const char* kind;
  const char* spec;
  const char* status;
  const char* state;  // nullptr: nothing is refused now.
};

// An Event is kept for an hour: it counts only while pods are missing.
TEST(UncreatedPod, AnEventCountsWhilePodsAreMissing) {
  const std::vector<EventRow> rows{
      {"no pod of a StatefulSet", "StatefulSet", R"("replicas":2,)", "", "StatefulSet web, which has 0 of 2 pods"},
      {"all of them by now", "StatefulSet", R"("replicas":2,)", R"("replicas":2)", nullptr},
      {"a DaemonSet", "DaemonSet", "", R"("desiredNumberScheduled":3,"currentNumberScheduled":1)",
       "DaemonSet web, which has 1 of 3 pods"},
      {"a Job", "Job", R"("parallelism":2,"completions":5,)", R"("active":1,"succeeded":1)",
       "Job web, which has 1 of 2 pods"},
      {"the last pod of a Job runs", "Job", R"("parallelism":2,"completions":5,)", R"("active":1,"succeeded":4)",
       nullptr},
      {"a Job that has ended", "Job", "", R"("conditions":[{"type":"Complete","status":"True"}])", nullptr},
      {"a suspended Job", "Job", R"("suspend":true,)", "", nullptr},
  };
  for (const EventRow& row : rows) {
    const auto out = explain_uncreated_pod({row.kind, workload(row.spec, row.status), kEvent}, "team/web");
    ASSERT_EQ(out.has_value(), row.state != nullptr) << row.name;
    if (!out) continue;
    EXPECT_EQ(out->state, fmt::format("not created by {}", row.state)) << row.name;
    EXPECT_EQ(out->causes[0].reason.code, "QuotaRefuses") << row.name;
    EXPECT_THAT(out->causes[0].reason.message, HasSubstr("ResourceQuota gpus of namespace team")) << row.name;
  }
}

TEST(UncreatedPod, AWorkloadWithoutARefusedPodSaysNothing) {
  EXPECT_FALSE(
      explain_uncreated_pod({"Deployment", workload("", condition(kOverQuota, "False")), ""}, "team/web").has_value());
  EXPECT_FALSE(explain_uncreated_pod({"StatefulSet", workload("", ""), ""}, "team/web").has_value());
  EXPECT_FALSE(explain_uncreated_pod({"Deployment", "[]", ""}, "team/web").has_value());
}

}  // namespace
}  // namespace gso::uncreated_pod_test
