// `cleanup` on the simulated API server: the lease, what is taken back, and what is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "controller/commands/commands.h"
#include "tests/change_words/change_words.h"
#include "tests/controller/our_cluster.h"

namespace gso::cleanup_command_test {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/namespaces/gpu-sharing-operator/leases";

class CleanupCommand : public OurCluster {
 protected:
  CleanupCommand() {
    Json node = Json::parse(R"({"metadata":{"labels":{"gpusharing.dev/state":"Updating"},
      "annotations":{"gpusharing.dev/devices":"[]"}},"spec":{"unschedulable":true}})");
    test::ChangeWords change;
    change.to = "v1-2";
    change.cordoned = true;
    node["metadata"]["annotations"].update(Json(test::write_change(change)));
    merge("/api/v1/nodes/gpu-1", node.dump());
    post("/api/v1/nodes",
         R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"foreign"},"spec":{"unschedulable":true}})");
    post("/apis/gpusharing.dev/v1alpha1/sharingpolicies",
         R"({"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingPolicy",
      "metadata":{"name":"p","finalizers":["gpusharing.dev/revert","example.com/theirs"]},"spec":{"deletionPolicy":"Revert"}})");
    post("/api/v1/namespaces/gpu-sharing-operator/configmaps",
         R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"gpu-sharing-operator-state"},"data":{}})");
    post("/api/v1/namespaces/gpu-sharing-operator/configmaps",
         R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"gpu-sharing-operator-state-7"},"data":{}})");
  }
  int run() {
    out.str("");
    err.str("");
    return sim.run(cleanup_command(&client, &sim.clock, cleanup, options, &out, &err));
  }
  void lease_of(const std::string& holder, const std::string& renewed) {
    const Json spec{
        {"holderIdentity", holder}, {"leaseDurationSeconds", 15}, {"renewTime", renewed}, {"acquireTime", renewed}};
    const Json lease{{"apiVersion", "coordination.k8s.io/v1"},
                     {"kind", "Lease"},
                     {"metadata", {{"name", "gpu-sharing-operator"}}},
                     {"spec", spec}};
    post(kLeases, lease.dump());
  }
  void expect_clean() {
    const Json node = get("/api/v1/nodes/gpu-1");
    EXPECT_FALSE(node["spec"].value("unschedulable", false));
    EXPECT_FALSE(node["metadata"]["labels"].contains("gpusharing.dev/state"));
    EXPECT_EQ(node["metadata"]["annotations"], (Json{{"gpusharing.dev/devices", "[]"}}));
    EXPECT_EQ(get("/apis/gpusharing.dev/v1alpha1/sharingpolicies/p")["metadata"]["finalizers"],
              Json::array({"example.com/theirs"}));
    EXPECT_EQ(get("/api/v1/nodes/foreign")["spec"]["unschedulable"], true);
    EXPECT_EQ(get(std::string(kLeases) + "/gpu-sharing-operator")["kind"], "Status");
    for (const char* name : {"gpu-sharing-operator-state", "gpu-sharing-operator-state-7"})
      EXPECT_EQ(get(std::string("/api/v1/namespaces/gpu-sharing-operator/configmaps/") + name)["kind"], "Status");
  }
  std::string holder() { return get(std::string(kLeases) + "/gpu-sharing-operator")["spec"]["holderIdentity"]; }
  CleanupOptions cleanup;
  Options options;
  std::ostringstream out;
  std::ostringstream err;
};

// It can have a cordon of the operator's, which nobody would know of without the record.
TEST_F(CleanupCommand, ANodeThatCannotBeReadKeepsTheRecordAndTheLeaseIsReleased) {
  merge("/api/v1/nodes/gpu-1/status", R"({"status":{"capacity":{"nvidia.com/gpu":"9300P"}}})");
  EXPECT_EQ(run(), 2);
  EXPECT_THAT(err.str(), HasSubstr("nodes that cannot be read: Node gpu-1: status."));
  EXPECT_EQ(get("/api/v1/namespaces/gpu-sharing-operator/configmaps/gpu-sharing-operator-state")["kind"], "ConfigMap");
  EXPECT_EQ(get(std::string(kLeases) + "/gpu-sharing-operator")["spec"]["holderIdentity"], "");
}

TEST_F(CleanupCommand, TakesEverythingBackAndLeavesNeitherLeaseNorRecord) {
  EXPECT_EQ(run(), 0) << err.str();
  expect_clean();
  EXPECT_THAT(out.str(), HasSubstr("2 objects changed"));
}

// An uninstall deletes the DaemonSet next, and no daemon would be drained.
TEST_F(CleanupCommand, DaemonsThatPodsUseKeepEverythingAsItIsUntilTheyEndOrAPersonLetsThem) {
  merge("/api/v1/nodes/gpu-1", R"({"metadata":{"labels":{"team.example/mps":"true"}}})");
  const std::string daemonsets = "/apis/apps/v1/namespaces/gpu-sharing-operator/daemonsets";
  post(daemonsets, R"({"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"mps"},"spec":{
    "selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{
    "nodeSelector":{"team.example/mps":"true"},
    "containers":[{"name":"standalone-mps","image":"gso:1","args":["mps-daemon","run"]}]}}}})");
  post("/api/v1/namespaces", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}})");
  post("/api/v1/namespaces/team/pods", R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"train-0"},
    "spec":{"nodeName":"gpu-1","containers":[{"name":"main","image":"a","resources":{"limits":{"nvidia.com/gpu":"1"}}}]},
    "status":{"phase":"Running"}})");
  cleanup.standalone_mps = "gpu-sharing-operator/mps";
  EXPECT_EQ(run(), 1);
  const std::string generation = get(daemonsets + "/mps")["metadata"]["generation"].dump();
  EXPECT_THAT(err.str(), HasSubstr("pods use the GPUs of 1 node: gpu-1. "));
  EXPECT_THAT(err.str(), HasSubstr("kubectl annotate --overwrite daemonset --namespace gpu-sharing-operator mps "
                                   "gpusharing.dev/end-daemons=" +
                                   generation + ". Then uninstall again"));
  EXPECT_EQ(get("/api/v1/nodes/gpu-1")["spec"]["unschedulable"], true);
  EXPECT_EQ(get(std::string(kLeases) + "/gpu-sharing-operator")["kind"], "Status") << "no Lease was made";
  const auto allow = [&](const std::string& value) {
    merge(daemonsets + "/mps", Json{{"metadata", {{"annotations", {{"gpusharing.dev/end-daemons", value}}}}}}.dump());
    return run();
  };
  EXPECT_EQ(allow("77"), 1) << "of another generation";
  EXPECT_EQ(allow(generation), 0) << err.str();
}

TEST_F(CleanupCommand, ASecondTimeIsHarmless) {
  lease_of("gone", "2025-01-01T00:00:00.000000Z");
  EXPECT_EQ(run(), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("Lease gpu-sharing-operator/gpu-sharing-operator: removed\n"));
  EXPECT_EQ(run(), 0) << err.str();
  expect_clean();
  EXPECT_EQ(out.str(),
            "SharingPolicies (1) and SharingRollouts (0) stay, with their CRDs: an operator that is installed again "
            "applies them. To delete them all: kubectl delete crd sharingpolicies.gpusharing.dev "
            "sharingrollouts.gpusharing.dev\n0 objects changed\n")
      << "the Lease is that of this run";
}

TEST_F(CleanupCommand, ALeaderThatIsGoneIsWaitedOut) {
  lease_of("dead", "2026-01-01T00:00:00.000000Z");
  EXPECT_EQ(run(), 0) << err.str();
  expect_clean();
}

TEST_F(CleanupCommand, ALeaderThatLivesKeepsEverythingAsItIsAndIsNamed) {
  lease_of("alive", "2026-01-01T00:00:00.000000Z");
  cleanup.timeout = std::chrono::seconds(5);
  EXPECT_EQ(run(), 1);
  EXPECT_THAT(err.str(), HasSubstr("alive holds the lease gpu-sharing-operator/gpu-sharing-operator after 5s"));
  EXPECT_EQ(get("/api/v1/nodes/gpu-1")["spec"]["unschedulable"], true);
}

// The simulated server has no scale subresource; that it is scaled to 0 is seen with the chart on the real one.
TEST_F(CleanupCommand, ADeploymentThatIsNotThereNeedNotBeStopped) {
  cleanup.stop_deployment = "never-there";
  EXPECT_EQ(run(), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("Deployment gpu-sharing-operator/never-there: not found"));
  expect_clean();
}

boost::asio::awaitable<void> run_once_a_request_is_late(sim::InProcessTransport* transport, k8s::Clock* clock,
                                                        std::function<void()> act) {
  while (transport->faults().count(sim::Fault::latency) == 0) co_await clock->sleep_for(std::chrono::milliseconds(100));
  act();
}

TEST_F(CleanupCommand, ALeaseThatSomebodyElseHasCreatedMeanwhileIsNotDeleted) {
  transport.faults().add(
      {.fault = sim::Fault::latency, .verb = "delete", .resource = "leases", .delay = std::chrono::seconds(3)});
  const std::function<void()> replace = [this] {
    (void)send(k8s::Method::del, std::string(kLeases) + "/gpu-sharing-operator");
    lease_of("other", "2026-01-01T00:00:00.000000Z");
  };
  boost::asio::co_spawn(sim.io, run_once_a_request_is_late(&transport, &sim.clock, replace), boost::asio::detached);
  EXPECT_EQ(run(), 1) << "a write failed: " << err.str();
  EXPECT_EQ(get(std::string(kLeases) + "/gpu-sharing-operator")["spec"]["holderIdentity"], "other") << err.str();
}

// Of 15 s, after which an operator would take the Lease over and write. A request alone could take twice as long.
TEST_F(CleanupCommand, AWriteWithoutAnAnswerEndsWithTheLease) {
  transport.faults().add({.fault = sim::Fault::hang, .verb = "patch", .resource = "nodes"});
  const k8s::MonoTime begun = sim.clock.monotonic();
  EXPECT_EQ(run(), 1) << "a write failed: " << err.str();
  EXPECT_GE(transport.faults().count(sim::Fault::hang), 1U);
  EXPECT_LT(sim.clock.monotonic() - begun, std::chrono::seconds(20));
}

// An operator that takes the Lease over writes at once: beside what the server does too late (S4).
TEST_F(CleanupCommand, AWriteWhoseAnswerIsLostKeepsTheLeaseUntilItExpires) {
  for (const sim::Fault fault : {sim::Fault::hang, sim::Fault::ambiguous}) {
    transport.faults().clear();
    transport.faults().add({.fault = fault, .verb = "patch", .resource = "nodes"});
    EXPECT_EQ(run(), 1) << "a write failed: " << err.str();
    EXPECT_EQ(transport.faults().count(fault), 1U);
    EXPECT_THAT(holder(), testing::StartsWith("cleanup_"));
    EXPECT_THAT(err.str(), HasSubstr("Lease gpu-sharing-operator/gpu-sharing-operator is not released: "));
    EXPECT_THAT(err.str(), HasSubstr("takes over after 15s\n"));
  }
  transport.faults().clear();
  EXPECT_EQ(run(), 0) << err.str();
  expect_clean();
}

TEST_F(CleanupCommand, ADeletionOfTheRecordWhoseAnswerIsLostKeepsTheLeaseToo) {
  transport.faults().add({.fault = sim::Fault::ambiguous, .verb = "delete", .resource = "configmaps"});
  EXPECT_EQ(run(), 1) << err.str();
  EXPECT_THAT(holder(), testing::StartsWith("cleanup_"));
  EXPECT_THAT(err.str(), HasSubstr("is not released"));
}

TEST_F(CleanupCommand, AWriteThatTheServerRefusesReleasesTheLease) {
  transport.faults().add({.fault = sim::Fault::forbidden, .verb = "patch", .resource = "nodes"});
  EXPECT_EQ(run(), 1) << "a write failed: " << err.str();
  EXPECT_EQ(holder(), "");
  EXPECT_THAT(err.str(), testing::Not(HasSubstr("is not released")));
}

TEST_F(CleanupCommand, ADryRunWritesNothing) {
  cleanup.dry_run = true;
  const Json before = get("/api/v1/nodes/gpu-1");
  EXPECT_EQ(run(), 0) << err.str();
  EXPECT_EQ(get("/api/v1/nodes/gpu-1"), before);
  EXPECT_EQ(get(std::string(kLeases) + "/gpu-sharing-operator")["kind"], "Status") << "it took the lease";
  EXPECT_THAT(out.str(), HasSubstr("2 objects would be changed"));
  EXPECT_THAT(out.str(), HasSubstr("annotation gpusharing.dev/")) << "it names what would go";
  EXPECT_THAT(out.str(), testing::Not(HasSubstr("removes everything that the operator added")));
  EXPECT_THAT(out.str(), HasSubstr("ConfigMap gpu-sharing-operator/gpu-sharing-operator-state: would be removed\n"));
  EXPECT_THAT(out.str(), testing::Not(HasSubstr("Lease")));
  lease_of("gone", "2025-01-01T00:00:00.000000Z");
  EXPECT_EQ(run(), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("Lease gpu-sharing-operator/gpu-sharing-operator: would be removed\n"));
}

TEST_F(CleanupCommand, ARolloutUnderWayEndsWithAReason) {
  for (const std::string name : {"done", "going"}) {
    post("/apis/gpusharing.dev/v1alpha1/sharingrollouts",
         R"({"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingRollout","metadata":{"name":")" + name +
             R"("},"spec":{"policy":"p","configMap":"gpu-operator/mps-config","key":"any","toRevision":"v1-2",
             "profile":"version: v1\n","approved":true}})");
    const std::string phase = name == "done" ? "Completed" : "Progressing";
    merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/" + name + "/status",
          R"({"status":{"phase":")" + phase + R"(","startedAt":"2026-01-01T00:00:00Z","reason":{"code":"RollingOut",
              "nodes":["gpu-1"]},"waits":[{"product":"T4","reason":"RollingOut"}],"nodes":[{"name":"gpu-1",
              "state":"Waiting"}],"counts":{"total":3,"updated":1,"inProgress":1,"pending":1,"blocked":0,"failed":0}}})");
  }
  EXPECT_EQ(run(), 0) << err.str();
  EXPECT_EQ(get("/apis/gpusharing.dev/v1alpha1/sharingrollouts/done")["status"]["phase"], "Completed");
  const Json status = get("/apis/gpusharing.dev/v1alpha1/sharingrollouts/going")["status"];
  EXPECT_EQ(status["phase"], "Superseded");
  EXPECT_EQ(status["startedAt"], "2026-01-01T00:00:00Z");
  EXPECT_EQ(status["counts"]["updated"], 1);
  EXPECT_EQ(status["counts"]["inProgress"], 1) << "the counts stay as they were";
  EXPECT_EQ(status["counts"]["pending"], 1);
  for (const char* field : {"nodes", "reason", "waits"}) EXPECT_FALSE(status.contains(field)) << field;
  for (const Json& condition : status["conditions"]) {
    EXPECT_EQ(condition["status"], "False");
    EXPECT_EQ(condition["reason"], "OperatorRemoved");
  }
  EXPECT_EQ(status["conditions"].size(), 3U);
  EXPECT_THAT(out.str(), HasSubstr("SharingRollout going: ends as Superseded (OperatorRemoved)\n"));
  EXPECT_THAT(out.str(), HasSubstr("3 objects changed"));
}

TEST_F(CleanupCommand, APolicySaysThatNobodyLooksAfterItAnyMore) {
  merge(
      "/apis/gpusharing.dev/v1alpha1/sharingpolicies/p/status",
      R"({"status":{"currentRollout":"r","reason":{"code":"Settled"},"nodes":{"total":3},"conditions":[{"type":"Ready","status":"True",
            "reason":"Ready","message":"fine","lastTransitionTime":"2026-01-01T00:00:00Z"}]}})");
  EXPECT_EQ(run(), 0) << err.str();
  const Json status = get("/apis/gpusharing.dev/v1alpha1/sharingpolicies/p")["status"];
  ASSERT_EQ(status["conditions"].size(), 4U);
  for (const Json& condition : status["conditions"]) {
    EXPECT_EQ(condition["status"], "Unknown");
    EXPECT_EQ(condition["reason"], "OperatorRemoved");
  }
  EXPECT_FALSE(status.contains("currentRollout"));
  EXPECT_FALSE(status.contains("reason"));
  EXPECT_EQ(status["nodes"]["total"], 3);
  EXPECT_THAT(out.str(), HasSubstr("SharingPolicy p: its conditions become Unknown (OperatorRemoved)\n"));
  EXPECT_EQ(run(), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("0 objects changed"));
}

TEST_F(CleanupCommand, ARefusalIsAFailureAndIsSaid) {
  transport.faults().add({.fault = sim::Fault::forbidden, .resource = "nodes"});
  EXPECT_EQ(run(), 2);
  EXPECT_THAT(err.str(), HasSubstr("gpu-sharing-operator cleanup: "));
}

TEST_F(OurClusterWithoutCrds, CleanupWorksWhereOurCrdsAreNotServed) {
  merge("/api/v1/nodes/gpu-1", R"({"metadata":{"annotations":{"gpusharing.dev/revision":"v1-2"}}})");
  CleanupOptions cleanup;
  Options options;
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(sim.run(cleanup_command(&client, &sim.clock, cleanup, options, &out, &err)), 0) << err.str();
  EXPECT_FALSE(
      get("/api/v1/nodes/gpu-1")["metadata"].value("annotations", Json::object()).contains("gpusharing.dev/revision"));
}

}  // namespace
}  // namespace gso::cleanup_command_test
