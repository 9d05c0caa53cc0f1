// Until when an Event about a workload whose pods were refused counts; tests/transcripts has what explain says of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <fmt/format.h>

#include "reconcilers/explain/pod.h"

namespace gso::uncreated_pod_test {
namespace {

using testing::HasSubstr;

// `spec` ends with a comma, or is empty.
std::string workload(const std::string& spec, const std::string& status) {
  return R"({"metadata":{"name":"web","namespace":"team"},"spec":{)" + spec +
         R"("template":{"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"nvidia.com/gpu":"2"}}}]}}},)" +
         R"("status":{)" + status + "}}";
}

// As the Events of controllers have it.
constexpr const char* kEvent =
    "Error creating: pods \"web-x2\" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=2, used: "
    "requests.nvidia.com/gpu=4, limited: requests.nvidia.com/gpu=4";

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

}  // namespace
}  // namespace gso::uncreated_pod_test
