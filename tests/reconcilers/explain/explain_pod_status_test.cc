// explain POD of a pod whose own status has the cause: what its kubelet reports, its end, and its claims.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <fmt/format.h>

#include "reconcilers/explain/pod.h"
#include "tests/reconcilers/explain/explained.h"

namespace gso::explain_pod_status_test {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr const char* kEight = R"(nvidia.com/gpu: "8")";
constexpr const char* kOnItsNode = R"("nodeName":"gpu-1",)";

// `meta` and `spec` end with a comma, or are empty.
std::string pod(const std::string& status, const std::string& meta = "", const std::string& spec = kOnItsNode,
                const std::string& amount = R"("nvidia.com/gpu":"1")") {
  return R"({"apiVersion":"v1","kind":"Pod","metadata":{)" + meta +
         R"("name":"train","namespace":"team","uid":"u1"},"spec":{"schedulerName":"default-scheduler",)" + spec +
         R"("containers":[{"name":"c","image":"i","resources":{"limits":{)" + amount + R"(}}}]},"status":{)" + status +
         "}}";
}

std::string with_container(const std::string& phase, const std::string& rest, int restarts = 0) {
  return fmt::format(R"("phase":"{}","containerStatuses":[{{"name":"c","ready":false,"restartCount":{},{}}}])", phase,
                     restarts, rest);
}

std::string waits(const std::string& reason, const std::string& message) {
  return R"("state":{"waiting":{"reason":")" + reason + R"(","message":")" + message + R"("}})";
}

PodCause first_of(const std::string& json) {
  const PodExplanation out = Explained(cluster(kSliced, "", kEight)).pod(json);
  return out.causes.empty() ? PodCause{Severity::info, {"none", ""}} : out.causes.front();
}

constexpr const char* kDescribe = "kubectl describe pod train --namespace team";
constexpr const char* kLogs = "kubectl logs train --namespace team --container c";

struct Case {
  const char* name;
  std::string status;
  const char* code;
  const char* text;
  std::string command;
  const char* option = "";
};

TEST(ExplainPodStatus, TheKubeletsCauseIsQuotedAndTheCommandShowsMoreOfIt) {
  const std::string oom = R"("terminated":{"exitCode":137,"reason":"OOMKilled"})";
  const std::string again = waits("CrashLoopBackOff", "back-off 5m0s") + R"(,"lastState":{)";
  const std::vector<Case> cases{
      {"an image that cannot be pulled",
       with_container("Pending", waits("ImagePullBackOff", R"(Back-off pulling image \"x\")")), "ContainerWaits",
       R"(container c waits: ImagePullBackOff: Back-off pulling image "x")", kDescribe},
      {"a device that CDI does not have",
       with_container("Pending", waits("CreateContainerError", "unresolvable CDI devices nvidia.com/gpu=GPU-1")),
       "ContainerWaits", "container c waits: CreateContainerError: unresolvable CDI devices nvidia.com/gpu=GPU-1",
       kDescribe},
      {"the same after restarts",
       with_container("Pending", waits("CreateContainerError", "unresolvable CDI devices"), 3), "ContainerWaits",
       "container c waits: CreateContainerError: unresolvable CDI devices", kDescribe},
      {"a Secret that does not exist",
       with_container("Pending", waits("CreateContainerConfigError", R"(secret \"s\" not found)")), "ContainerWaits",
       R"(container c waits: CreateContainerConfigError: secret "s" not found)", kDescribe},
      {"too little memory, again and again", with_container("Running", again + oom + "}", 12), "ContainerWaits",
       "container c waits: CrashLoopBackOff after OOMKilled (exit code 137), 12 restarts",
       std::string(kLogs) + " --previous", "not the GPU's"},
      {"what the container said last",
       with_container("Running", again + R"("terminated":{"exitCode":1,"reason":"Error","message":"no CUDA\n"}})", 1),
       "ContainerWaits", "container c waits: CrashLoopBackOff after Error (exit code 1), 1 restart: no CUDA",
       std::string(kLogs) + " --previous"},
      {"an init container",
       R"("phase":"Pending","initContainerStatuses":[{"name":"c","restartCount":0,)" + waits("ErrImagePull", "denied") +
           "}]",
       "ContainerWaits", "container c waits: ErrImagePull: denied", kDescribe},
      {"one of its containers has ended", with_container("Running", R"("state":{)" + oom + "}"), "ContainerEnded",
       "container c has ended: OOMKilled (exit code 137)", kLogs, "not the GPU's"},
      {"evicted", R"("phase":"Failed","reason":"Evicted","message":"The node was low on resource: memory.")", "Failed",
       "the pod has failed: Evicted: The node was low on resource: memory.", kDescribe},
      {"failed for too little memory", with_container("Failed", R"("state":{)" + oom + "}"), "Failed",
       "the pod has failed; container c ended: OOMKilled (exit code 137)", kLogs, "not the GPU's"},
      {"failed, and nobody says why", R"("phase":"Failed")", "Failed", "the pod has failed", kDescribe},
      {"rejected", R"("phase":"Failed","reason":"UnexpectedAdmissionError","message":"Allocate failed due to x")",
       "DeviceNotGiven", "the kubelet of node gpu-1 rejected the pod, which never runs: Allocate failed due to x",
       kDescribe, "nothing creates this pod anew"},
      {"rejected for an unhealthy GPU",
       R"("phase":"Failed","reason":"UnexpectedAdmissionError","message":"can't allocate unhealthy devices nvidia.com/gpu")",
       "DeviceNotGiven",
       "the kubelet of node gpu-1 rejected the pod, which never runs: can't allocate unhealthy devices nvidia.com/gpu. "
       "The node's device plugin reports a GPU as unhealthy, or was not running. A pod that is created again can be "
       "placed there again",
       "gpu-sharing-operator explain gpu-1", "XID"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const PodCause cause = first_of(pod(c.status));
    EXPECT_EQ(cause.reason.code, c.code);
    EXPECT_EQ(cause.reason.message, c.text);
    EXPECT_EQ(cause.cure.command.text(), c.command);
    EXPECT_EQ(cause.severity, Severity::error);
    if (*c.option != '\0') {
      EXPECT_THAT(cause.cure.options, Contains(HasSubstr(c.option)));
    }
  }
}

TEST(ExplainPodStatus, OfALongReportTheEndIsShownToo) {
  const std::string message = std::string(300, 'a') + "\\n" + std::string(300, 'b') + ": driver not loaded";
  const std::string text = first_of(pod(with_container("Pending", waits("RunContainerError", message)))).reason.message;
  EXPECT_THAT(text, HasSubstr(std::string(256, 'a') + " ... bbb"));
  EXPECT_THAT(text, testing::EndsWith("bbb: driver not loaded"));
  EXPECT_LT(text.size(), 600U);
}

TEST(ExplainPodStatus, ALongCreationIsAFaultAndAShortOneIsNot) {
  const auto created = [](const std::string& started, const std::string& containers) {
    return first_of(pod(R"("phase":"Pending","startTime":")" + started + R"(")" + containers));
  };
  const std::string creating =
      R"(,"containerStatuses":[{"name":"c","restartCount":0,"state":{"waiting":{"reason":"ContainerCreating"}}}])";
  const PodCause slow = created("2026-01-02T22:50:00Z", creating);
  EXPECT_EQ(slow.reason.code, "ContainerCreating");
  EXPECT_EQ(slow.severity, Severity::error);
  EXPECT_THAT(slow.reason.message, HasSubstr("ContainerCreating on node gpu-1 since 2026-01-02T22:50:00Z"));
  EXPECT_EQ(slow.cure.command.text(), kDescribe);
  EXPECT_EQ(created("2026-01-02T23:55:00Z", creating).severity, Severity::info);
  EXPECT_THAT(created("2026-01-02T22:50:00Z", "").reason.message,
              HasSubstr("has reported no container of the pod since"));
  const std::string downloads =
      R"(,"initContainerStatuses":[{"name":"model","state":{"running":{}}}],"containerStatuses":[{"name":"c","state":{"waiting":{"reason":"PodInitializing"}}}])";
  EXPECT_EQ(created("2026-01-02T22:50:00Z", downloads).reason.code, "none") << "an init container is at work";
}

TEST(ExplainPodStatus, APodThatDoesNotEndIsNoHealthyOne) {
  const std::string running = R"("phase":"Running")";
  const std::string since = R"("deletionTimestamp":"2026-01-02T23:00:30Z","deletionGracePeriodSeconds":30,)";
  const PodCause hangs = first_of(pod(running, since));
  EXPECT_EQ(hangs.reason.code, "Terminating");
  EXPECT_EQ(hangs.severity, Severity::error);
  EXPECT_THAT(hangs.reason.message,
              HasSubstr("Terminating since 2026-01-02T23:00:00Z, longer than its grace period: the kubelet "
                        "of node gpu-1 has not reported"));
  const PodCause held = first_of(pod(running, since + R"("finalizers":["example.com/hold"],)"));
  EXPECT_THAT(held.reason.message, HasSubstr("until its finalizers are removed: example.com/hold"));
  EXPECT_THAT(held.cure.command.text(), HasSubstr("--show-managed-fields"));
  EXPECT_EQ(first_of(pod(R"("phase":"Succeeded")", since + R"("finalizers":["example.com/hold"],)")).reason.code,
            "Terminating");
  const std::string now = R"("deletionTimestamp":"2026-01-03T00:00:20Z","deletionGracePeriodSeconds":30,)";
  EXPECT_EQ(first_of(pod(running, now)).severity, Severity::info) << "it has its grace period";
  EXPECT_EQ(Explained(cluster(kSliced, "", kEight)).pod(pod(running, since)).state, "Running on gpu-1, Terminating");
}

TEST(ExplainPodStatus, TheSameIsSaidToWhoMayReadTheNamespaceOnly) {
  PodSurroundings around;
  around.now = *k8s::parse_rfc3339("2026-01-03T00:00:00Z");
  const auto alone = [&](const std::string& json) {
    return explain_pod_alone(around, PlannerSettings(), json).value_or(PodExplanation());
  };
  const PodExplanation hangs = alone(pod(R"("phase":"Running")", R"("deletionTimestamp":"2026-01-02T23:00:30Z",)"));
  ASSERT_EQ(hangs.causes.size(), 1U);
  EXPECT_EQ(hangs.causes[0].reason.code, "Terminating");
  EXPECT_EQ(hangs.causes[0].severity, Severity::error);
  const PodExplanation unhealthy = alone(
      pod(R"("phase":"Failed","reason":"UnexpectedAdmissionError","message":"can't allocate unhealthy devices")"));
  ASSERT_EQ(unhealthy.causes.size(), 1U);
  EXPECT_EQ(unhealthy.causes[0].cure.command.text(), kDescribe) << "whoever reads no nodes cannot have one explained";
}

TEST(ExplainPodStatus, ADeletedPodIsNotScheduledAndGetsNoNodes) {
  Explained explained(cluster(kSliced, "", kEight));
  const PodExplanation out = explained.pod(pod(
      R"("phase":"Pending")", R"("deletionTimestamp":"2026-01-02T23:00:30Z","deletionGracePeriodSeconds":30,)", ""));
  ASSERT_EQ(out.causes.size(), 1U);
  EXPECT_EQ(out.causes[0].reason.code, "Deleted");
  EXPECT_THAT(out.causes[0].reason.message, HasSubstr("deleted at 2026-01-02T23:00:00Z: it will not be scheduled"));
  EXPECT_EQ(out.state, "Pending, deleted");
  EXPECT_TRUE(out.nodes.empty());
}

TEST(ExplainPodStatus, AnUnknownPhaseIsAFault) {
  const PodCause cause = first_of(pod(R"("phase":"Unknown")"));
  EXPECT_EQ(cause.reason.code, "PhaseUnknown");
  EXPECT_EQ(cause.cure.command.text(), "kubectl describe node gpu-1");
}

// Free GPUs of the device plugin are no news for a pod that waits for a claim.
TEST(ExplainPodStatus, APodWithClaimsIsSentToItsClaims) {
  Explained explained(cluster(kSliced, "", kEight));
  const std::string claims = R"("resourceClaims":[{"name":"g","resourceClaimTemplateName":"gpu"}],)";
  const PodExplanation out = explained.pod(pod(R"("phase":"Pending")", "", claims, ""));
  ASSERT_EQ(out.causes.size(), 1U);
  EXPECT_EQ(out.causes[0].reason.code, "WaitsForClaims");
  EXPECT_THAT(out.causes[0].reason.message, HasSubstr("ResourceClaims (g)"));
  EXPECT_EQ(out.causes[0].cure.command.text(), kDescribe);
  EXPECT_THAT(out.causes[0].cure.options, Contains(HasSubstr("kubectl get resourceclaims --namespace team")));
  EXPECT_TRUE(out.nodes.empty());
  EXPECT_FALSE(out.hindered());
  const PodExplanation refused = explained.pod(
      pod(R"("phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","message":"cannot allocate"}])",
          "", claims, ""));
  EXPECT_TRUE(refused.hindered());
  EXPECT_THAT(refused.causes[0].reason.message, HasSubstr("its scheduler reports: cannot allocate"));
  const PodExplanation both = explained.pod(pod(R"("phase":"Pending")", "", claims));
  ASSERT_EQ(both.causes.size(), 2U);
  EXPECT_EQ(both.causes[1].reason.code, "WaitsForClaims") << "the GPUs that it requests are not all that it needs";
}

}  // namespace
}  // namespace gso::explain_pod_status_test
