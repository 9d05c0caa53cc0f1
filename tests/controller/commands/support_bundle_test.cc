// support-bundle: what somebody far away needs to find a fault, and nothing that is secret or somebody else's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "controller/commands/commands.h"
#include "k8sclient/transport/transport.h"
#include "tests/controller/commands/rollout_commands.h"
#include "tests/controller/our_cluster.h"
#include "tests/controller/unpacked.h"

namespace gso::support_bundle_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

// The simulated API server has no logs. One of each pod has a secret in it.
class TransportWithLogs final : public k8s::Transport {
 public:
  explicit TransportWithLogs(k8s::Transport* behind) : behind_(behind) {}
  boost::asio::awaitable<k8s::Result<k8s::HttpResponse>> send(k8s::HttpRequest request) override {
    if (request.path.find("/log?") != std::string::npos)
      co_return k8s::HttpResponse{200, {}, "log of " + request.path + "\nREGISTRY_PASSWORD=hunter2\n"};
    k8s::Result<k8s::HttpResponse> answer = co_await behind_->send(std::move(request));
    co_return answer;
  }
  boost::asio::awaitable<k8s::Result<std::unique_ptr<k8s::ByteStream>>> open(k8s::HttpRequest request) override {
    k8s::Result<std::unique_ptr<k8s::ByteStream>> stream = co_await behind_->open(std::move(request));
    co_return stream;
  }

 private:
  k8s::Transport* behind_;
};

class Bundles : public OurClusterWithoutCrds {
 protected:
  Bundles() { post("/api/v1/namespaces", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}})"); }

  // A pod whose container "c" has been started again `restarts` times.
  void post_restarted(const std::string& ns, const std::string& name, Json metadata, int restarts) {
    metadata["name"] = name;
    const Json pod{{"apiVersion", "v1"},
                   {"kind", "Pod"},
                   {"metadata", std::move(metadata)},
                   {"spec", Json::parse(R"({"nodeName":"gpu-1","containers":[{"name":"c","image":"i"}]})")}};
    post("/api/v1/namespaces/" + ns + "/pods", pod.dump());
    Json container = Json::parse(R"({"name":"c","ready":false,"image":"i","imageID":"i",
                                     "state":{"waiting":{"reason":"CrashLoopBackOff"}}})");
    container["restartCount"] = restarts;
    const Json status{{"status", {{"phase", "Running"}, {"containerStatuses", Json::array({container})}}}};
    merge("/api/v1/namespaces/" + ns + "/pods/" + name + "/status", status.dump());
  }

  std::string bundle() {
    TransportWithLogs logs(&transport);
    k8s::ApiClient mine(&logs, &sim.clock, k8s::ClientOptions());
    const k8s::Result<std::string> bytes = sim.run(support_bundle(&mine, &sim.clock, Options()));
    EXPECT_TRUE(bytes.has_value()) << bytes.error().message;
    return unpacked(bytes.value_or(""));
  }
};

TEST_F(Bundles, HoldObjectsAndFindingsAndNoSecrets) {
  merge("/api/v1/nodes/gpu-1", R"({"metadata":{"annotations":{"example.com/api-token":"hunter2",
    "kubectl.kubernetes.io/last-applied-configuration":"{}"}}})");
  for (const char* who : {"gpusharing.dev/gpu-sharing-operator", "kubelet"}) {
    post(
        "/apis/events.k8s.io/v1/namespaces/default/events",
        std::string(R"({"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"gpu-1.)") +
            (*who == 'k' ? "a" : "b") +
            R"("},"eventTime":"2026-01-01T00:00:00.000000Z","type":"Normal","reason":"R","action":"A","note":"said by )" +
            who + R"(","reportingInstance":"i","regarding":{"kind":"Node","name":"gpu-1","apiVersion":"v1"},
             "reportingController":")" +
            who + "\"}");
  }
  const std::string bytes = bundle();
  EXPECT_EQ(bytes.size() % 512, 0U);
  EXPECT_THAT(bytes, HasSubstr("said by gpusharing.dev/gpu-sharing-operator"));
  EXPECT_THAT(bytes, Not(HasSubstr("said by kubelet"))) << "who is not ours is not taken along";
  for (const char* file : {"objects/nodes.json", "objects/gpu-operator/daemonsets.json", "status.txt", "audit.txt",
                           "plan.txt", "incomplete.txt", "version.txt"}) {
    EXPECT_THAT(bytes, HasSubstr(file));
  }
  EXPECT_THAT(bytes, Not(HasSubstr("hunter2")));
  EXPECT_THAT(bytes, Not(HasSubstr("last-applied")));
  EXPECT_THAT(bytes, Not(HasSubstr("managedFields")));
  EXPECT_THAT(bytes, HasSubstr("(redacted)"));
}

// What somebody far away asks for next: why the plugin's container ended, what refuses evictions, and who uses the
// GPUs.
TEST_F(Bundles, HaveLastWordsBudgetsAndExplanations) {
  post("/api/v1/namespaces/team/pods",
       R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"train"},"spec":{"nodeName":"gpu-1","containers":[
           {"name":"c","image":"i","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}})");
  post(
      "/apis/policy/v1/namespaces/team/poddisruptionbudgets",
      R"({"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"never"},"spec":{"minAvailable":1}})");
  const std::string uid =
      get("/apis/apps/v1/namespaces/gpu-operator/daemonsets/nvidia-device-plugin-daemonset")["metadata"]["uid"];
  const Json owner{{"apiVersion", "apps/v1"},
                   {"kind", "DaemonSet"},
                   {"name", "nvidia-device-plugin-daemonset"},
                   {"uid", uid},
                   {"controller", true}};
  post_restarted("gpu-operator", "plugin-1",
                 {{"labels", {{"app", "plugin"}}}, {"ownerReferences", Json::array({owner})}}, 7);
  const std::string bytes = bundle();
  EXPECT_THAT(bytes, HasSubstr("logs/plugin-1-c-previous.log"));
  EXPECT_THAT(bytes, HasSubstr("/pods/plugin-1/log?container=c&previous=true&tailLines=200"));
  EXPECT_THAT(bytes, HasSubstr("objects/poddisruptionbudgets.json"));
  EXPECT_THAT(bytes, HasSubstr("\"never\""));
  EXPECT_THAT(bytes, HasSubstr("explain.txt"));
  EXPECT_THAT(bytes, HasSubstr("  team/train: nvidia.com/gpu=1\n"));
  // As the commands describe a fleet that no operator has recorded.
  EXPECT_THAT(bytes, AllOf(HasSubstr("node gpu-1: PreexistingDrift\n"), Not(HasSubstr("Unrecorded"))));
  EXPECT_THAT(bytes, AllOf(HasSubstr("REGISTRY_PASSWORD=(redacted)"), Not(HasSubstr("hunter2"))));
}

// Of the operator's namespace only the chart's own pods: another team's program can run there.
TEST_F(Bundles, HaveNoLogOfProgramsThatAreNotTheOperators) {
  const Json chart{{"helm.sh/chart", "gpu-sharing-operator-0.1.0"}, {"app.kubernetes.io/component", "operator"}};
  const Json other{{"helm.sh/chart", "database-1.0.0"}, {"app.kubernetes.io/component", "operator"}};
  post_restarted("gpu-sharing-operator", "leader", Json::object({{"labels", chart}}), 1);
  post_restarted("gpu-sharing-operator", "database", Json::object({{"labels", other}}), 1);
  const std::string bytes = bundle();
  EXPECT_THAT(bytes, HasSubstr("/pods/leader/log?container=operator&tailLines=5000"));
  EXPECT_THAT(bytes, HasSubstr("/pods/leader/log?container=c&previous=true&tailLines=200"));
  EXPECT_THAT(bytes, Not(HasSubstr("/pods/database/log")));
}

TEST_F(Bundles, SayWithoutTheCrdsWhyTheyHaveNoStatusOfRollouts) {
  const std::string without = bundle();
  EXPECT_THAT(without, AllOf(HasSubstr("rollout-status.txt"), Not(HasSubstr("rollout-status.json")),
                             HasSubstr("CRDs are not installed in this cluster: install them with ")));
}

// Who may read nothing gets no archive that looks like one.
TEST_F(Bundles, OfAClusterWhereNothingCanBeReadAreNone) {
  sim::FaultRule rule;
  rule.fault = sim::Fault::forbidden;
  transport.faults().add(rule);
  std::vector<std::string> incomplete;
  const k8s::Result<std::string> bytes = sim.run(support_bundle(&client, &sim.clock, Options(), &incomplete));
  ASSERT_FALSE(bytes.has_value());
  EXPECT_THAT(bytes.error().message, HasSubstr("nothing was written: you are not allowed to list a single kind"));
  EXPECT_THAT(incomplete, testing::Contains(HasSubstr("nodes cannot be listed")));
}

// Whoever may read the operator's namespace alone can still send that.
TEST_F(Bundles, OfWhatCanBeReadAreWritten) {
  for (const char* resource : {"nodes", "daemonsets", "configmaps"}) {
    sim::FaultRule rule;
    rule.fault = sim::Fault::forbidden;
    rule.resource = resource;
    transport.faults().add(rule);
  }
  EXPECT_THAT(bundle(),
              AllOf(HasSubstr("objects/gpu-sharing-operator/operator-pods.json"), HasSubstr("incomplete.txt")));
}

class BundlesOfRollouts : public RolloutCommand {};

TEST_F(BundlesOfRollouts, HaveEachRolloutInProgressAsTextAndAsJson) {
  rollout("default-any-1", "Progressing", "v1-00000000000000aa");
  const k8s::Result<std::string> packed = sim.run(support_bundle(&client, &sim.clock, Options()));
  ASSERT_TRUE(packed.has_value()) << packed.error().message;
  const std::string bytes = unpacked(*packed);
  EXPECT_THAT(bytes, AllOf(HasSubstr("rollout-status.txt"), HasSubstr("rollout-status.json")));
  EXPECT_THAT(bytes, HasSubstr("default-any-1: Progressing\n"));
  EXPECT_THAT(bytes, HasSubstr(" to v1-00000000000000aa under policy default\n"));
  EXPECT_THAT(bytes, HasSubstr("\"toRevision\": \"v1-00000000000000aa\""));
}

// A stopped operator is the first thing to know about what the bundle has.
TEST_F(Bundles, SayThatNoOperatorRuns) {
  post("/apis/coordination.k8s.io/v1/namespaces/gpu-sharing-operator/leases",
       R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"gpu-sharing-operator"},
           "spec":{"holderIdentity":"pod-1","leaseDurationSeconds":15,"renewTime":"2025-12-31T00:00:00.000000Z"}})");
  EXPECT_THAT(bundle(),
              HasSubstr("No operator is running: pod-1 has not renewed the Lease since 2025-12-31T00:00:00Z"));
}

}  // namespace
}  // namespace gso::support_bundle_test
