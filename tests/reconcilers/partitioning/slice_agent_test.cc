// nos's gpu-agent: what its pod says, and which reports of slices are trusted.
#include "reconcilers/partitioning/partitioned_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "reconcilers/model/project.h"
#include "reconcilers/partitioning/node_moves.h"
#include "tests/reconcilers/partitioning/slice_cluster.h"

namespace gso::testing::slice_agent_test {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kAgent = R"([{"name":"nos-gpu-agent","image":"ghcr.io/nebuly-ai/nos-gpu-agent:0.1.2"}])";

Json agent_pod(const std::string& containers, const std::string& status, const std::string& owner = "DaemonSet") {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"name", "agent"},
            {"namespace", "nebuly-nos"},
            {"ownerReferences", {{{"kind", owner}, {"name", "agents"}, {"uid", "agents"}, {"controller", true}}}}}},
          {"spec", {{"nodeName", "n"}, {"containers", Json::parse(containers)}}},
          {"status", Json::parse(status)}};
}

SlicePod projected(const Json& json) {
  auto pod = project_slice_pod(json.dump());
  EXPECT_TRUE(pod.has_value()) << pod.error().message;
  return pod ? *std::move(pod) : SlicePod();
}

// Source: nebuly-ai/nos at 12e0a72, helm-charts/nos (nos-gpu-agent) and config/gpuagent (gpu-agent:latest).
TEST(SliceAgents, AreKnownByTheNameOfAContainerOrItsImage) {
  const struct {
    const char* containers;
    const char* owner;
    bool agent;
  } rows[] = {
      {kAgent, "DaemonSet", true},
      {R"([{"name":"gpu-agent","image":"gpu-agent:latest"}])", "DaemonSet", true},
      {R"([{"name":"my-gpu-agent","image":"registry:5000/mirror/a@sha256:00"}])", "DaemonSet", true},
      {R"([{"name":"main","image":"registry:5000/mirror/nos-gpu-agent@sha256:00"}])", "DaemonSet", true},
      {R"([{"name":"kube-rbac-proxy","image":"proxy"},{"name":"main","image":"nos-gpu-agent"}])", "DaemonSet", true},
      {kAgent, "ReplicaSet", false},
      {R"([{"name":"nos-mig-agent","image":"ghcr.io/nebuly-ai/nos-mig-agent:0.1.2"}])", "DaemonSet", false},
      {R"([{"name":"main","image":"nos-gpu-agent/other:1"}])", "DaemonSet", false},
      {R"([{"name":"gpu-agent-exporter"}])", "DaemonSet", false},
  };
  for (const auto& row : rows) {
    const SlicePod pod = projected(agent_pod(row.containers, R"({"phase":"Running"})", row.owner));
    EXPECT_EQ(static_cast<bool>(pod.agent), row.agent) << row.containers << " " << row.owner;
  }
  Json bare = agent_pod(kAgent, R"({"phase":"Running"})");
  bare["metadata"].erase("ownerReferences");
  EXPECT_TRUE(projected(bare).agent) << "nothing says that it is a workload";
}

TEST(SliceAgents, AreReadySinceTheirLastStart) {
  const std::string started =
      R"("containerStatuses":[{"name":"nos-gpu-agent","ready":true,"state":{"running":{"startedAt":"2026-03-02T08:00:00Z"}}}])";
  const std::string crashed =
      R"("containerStatuses":[{"name":"nos-gpu-agent","ready":false,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}])";
  const auto ready = [](const std::string& status, const std::string& minute) {
    return R"("conditions":[{"type":"Ready","status":")" + status + R"(","lastTransitionTime":"2026-03-02T08:)" +
           minute + R"(:00Z"}])";
  };
  const struct {
    std::string status;
    bool ready;
    const char* since;  // Empty: unknown.
  } rows[] = {
      {R"({"phase":"Running",)" + started + "," + ready("True", "01") + "}", true, "2026-03-02T08:01:00Z"},
      // A restart that the condition has not followed.
      {R"({"phase":"Running",)" + ready("True", "00") + "," + started + "}", true, "2026-03-02T08:00:00Z"},
      // Another container of the pod fails.
      {R"({"phase":"Running",)" + started + "," + ready("False", "05") + "}", true, "2026-03-02T08:00:00Z"},
      {R"({"phase":"Running",)" + crashed + "," + ready("False", "05") + "}", false, ""},
      // Manifests without the statuses of containers, or without conditions.
      {R"({"phase":"Running",)" + ready("True", "05") + "}", true, "2026-03-02T08:05:00Z"},
      {R"({"phase":"Running",)" + ready("False", "05") + "}", false, ""},
      {R"({"phase":"Running"})", true, ""},
      {R"({"phase":"Pending"})", false, ""},
      {R"({"phase":"Failed",)" + ready("True", "05") + "}", false, ""},
  };
  for (const auto& row : rows) {
    const SlicePod pod = projected(agent_pod(kAgent, row.status));
    ASSERT_TRUE(pod.agent);
    EXPECT_EQ(pod.agent->ready, row.ready) << row.status;
    EXPECT_EQ(pod.agent->since ? k8s::format_time(*pod.agent->since) : "", row.since) << row.status;
  }
  Json dying = agent_pod(kAgent, R"({"phase":"Running"})");
  dying["metadata"]["deletionTimestamp"] = "2026-03-02T08:00:00Z";
  EXPECT_FALSE(projected(dying).agent->ready);
}

TEST(SliceAgents, AreMissedWhereTheyWouldBeSeen) {
  SlicePod up;
  up.agent = Rare<SliceAgent>({true, WallTime{} + 2min});
  SlicePod older;
  older.agent = Rare<SliceAgent>({true, WallTime{} + 1min});
  SlicePod down;
  down.agent = Rare<SliceAgent>(SliceAgent{});
  SlicePod plugin;
  plugin.meta.owners.push_back({Interned("DaemonSet"), Interned("plugin"), Interned("p"), true});
  const SlicePod other;
  const struct {
    std::vector<const SlicePod*> pods;
    bool seen;
    bool missing;
    const SlicePod* pod;
  } rows[] = {
      {{}, false, false, nullptr},
      {{&other}, false, false, nullptr},
      {{&other}, true, true, nullptr},
      {{&plugin}, false, true, nullptr},
      {{&plugin, &up}, true, false, &up},
      {{&down}, true, false, &down},
      {{&down, &up}, true, false, &up},  // One of them is being replaced.
      {{&up, &down, &older}, true, false, &older},
  };
  for (const auto& row : rows) {
    const AgentView view = view_agent(row.pods, "p", row.seen);
    EXPECT_EQ(view.missing, row.missing);
    EXPECT_EQ(view.pod, row.pod);
  }
  EXPECT_FALSE(view_agent({&plugin}, "", false).missing) << "a plugin without a uid is nobody's owner";
}

// Node n with a free slice of 20 GiB that must go for the pod w; its agent is ready since then.
SliceCluster to_cut(WallTime since) {
  SliceCluster cluster;
  cluster.node("n", 1, 41'860, {}, {{0, {{20, 1}}}});
  cluster.object("Pod", "agent") =
      agent_pod(kAgent, R"({"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":")" +
                            k8s::format_time(since) + R"("}]})");
  cluster.pod("w", {39});
  return cluster;
}

TEST(SliceAgents, AreTrustedHalfAMinuteAfterTheyBecameReady) {
  const WallTime now = SliceCluster().now();
  const struct {
    std::chrono::seconds since;  // Before the first look.
    std::chrono::seconds wait;   // After it.
    bool planned;
  } rows[] = {
      {1h, 0s, true},
      {30s, 0s, true},
      {29s, 0s, false},
      {0s, 29s, false},
      {0s, 30s, true},
      // The node's clock is ahead: what the operator has seen of it counts.
      {-1h, 29s, false},
      {-1h, 30s, true},
  };
  for (const auto& row : rows) {
    SliceCluster cluster = to_cut(now - row.since);
    cluster.plan();
    cluster.wait(row.wait);
    const auto said = events_about(cluster.plan(), "w");
    EXPECT_THAT(said, ElementsAre(HasSubstr(row.planned ? "planned on node n" : "has just started")))
        << row.since.count() << " " << row.wait.count();
  }
}

TEST(SliceAgents, AreNamedWhereTheyAreDown) {
  SliceCluster cluster = to_cut(SliceCluster().now() - 1h);
  cluster.object("Pod", "agent")["status"]["conditions"][0]["status"] = "False";
  EXPECT_EQ(cluster.settle(), 0);
  EXPECT_THAT(findings_about(cluster.plan(), "n"), Contains(HasSubstr("pod nebuly-nos/agent) is not ready")));
  cluster.remove("Pod", "agent");
  EXPECT_EQ(cluster.settle() > 0, true) << "no pod of the GPU software can be seen any more";
}

// Node n moves to a second slice of 39 GiB, on GPU 1. Nobody reports that, pod a ends on GPU 0, and pod b has the new
// slice: the numbers of the old report still agree with the pods.
TEST(SliceAgents, AreNotWaitedForWhereAPodHasASliceOfTheNewKey) {
  for (const bool seen : {true, false}) {
    SliceCluster cluster;
    cluster.node("n", 2, 41'860, {{0, {{39, 1}}}});
    cluster.pod("a", {39}, {.node = "n"});
    cluster.pod("b", {39});
    cluster.move("n");
    const std::string moved = cluster.label("n");
    if (seen) {
      cluster.object("Pod", "agent") =
          agent_pod(kAgent, R"({"phase":"Running","conditions":[{"type":"Ready","status":"False"}]})");
    }
    Json& status = cluster.object("Node", "n")["status"];
    status["capacity"] = status["allocatable"] = {{"nvidia.com/gpu-39gb", "2"}};
    cluster.remove("Pod", "a");
    cluster.bind("b", "n");
    cluster.object("Pod", "b")["status"]["startTime"] = k8s::format_time(cluster.now());
    EXPECT_THAT(findings_about(cluster.plan(), "n"), IsEmpty()) << "the move goes on";
    cluster.pass(12, 2min, false);
    EXPECT_EQ(cluster.label("n"), moved) << seen;
    EXPECT_THAT(findings_about(cluster.plan(), "n"),
                Contains(HasSubstr(seen ? "is not ready" : "does not report the slices of key")))
        << seen;
  }
}

}  // namespace
}  // namespace gso::testing::slice_agent_test
