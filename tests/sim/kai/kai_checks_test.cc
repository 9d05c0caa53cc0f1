// The last look before reservations are deleted: what changed since the plan decides, one by one and in batches.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "k8sclient/api/client.h"
#include "reconcilers/model/kai_objects.h"
#include "tests/sim/kai/kai_checks_fixture.h"

namespace gso::sim::kai_checks_test {
namespace {

using namespace kai_test;
using namespace std::chrono_literals;

using LastLook = KaiChecksTest;

// Whether the deletion is still due after that has changed since the plan.
void expect(const char* rule, bool due, const std::function<void(LastLook&)>& change) {
  LastLook look;
  change(look);
  EXPECT_EQ(look.due(), due) << rule;
}

// What a set of facts means is judged by the planner's rules, and tested there.
TEST(Changes, OfConsumersAndBindsSinceThePlanDecide) {
  expect("nothing", true, [](auto&) {});
  expect("a consumer", false, [](auto& look) { look.consumer("runai-gpu-group", "g", "Running"); });
  expect("a multi-device consumer", false, [](auto& look) { look.consumer("runai-gpu-group/g", "g", "Running"); });
  expect("one with an edited value", false,
         [](auto& look) { look.consumer("runai-gpu-group/g", "edited", "Running"); });
  expect("a finished consumer", true, [](auto& look) { look.consumer("runai-gpu-group", "g", "Failed"); });
  expect("a consumer of another group", true, [](auto& look) { look.consumer("runai-gpu-group", "h", "Running"); });
  for (const bool new_field : {false, true})
    expect("a bind in progress", false, [&](auto& look) { look.request("Pending", new_field); });
  expect("a bind that cannot be read", false, [](auto& look) {
    look.request("Pending");
    look.patch(kRequests + "/p/status", {{"status", {{"failedAttempts", "many"}}}});
  });
  expect("a bind that has failed for good", true, [](auto& look) { look.request("Failed"); });
  expect("a bind that has succeeded, for a pod that is gone", true, [](auto& look) { look.request("Succeeded"); });
  for (const char* phase : {"Running", "Succeeded"}) {
    expect("a bind that has succeeded, for a pod without the label", phase == std::string_view("Succeeded"),
           [&](auto& look) {
             look.consumer("other", "x", phase);
             look.request("Succeeded");
           });
  }
}

TEST(Changes, OfTheReservationSinceThePlanKeepIt) {
  const Json annotated = {{"metadata", {{"annotations", {{"a", "b"}}}}}};
  expect("another version", false, [&](auto& look) { look.patch(kReservation, annotated); });
  expect("another version that was planned by", true, [&](auto& look) {
    look.patch(kReservation, annotated);
    look.see();
  });
  expect("another pod of that name", false,
         [](auto& look) { std::get<DeletePod>(look.deletion.action).uid = "uid-of-before"; });
  for (const Json& labels : {Json{{"runai-gpu-group", "h"}}, Json{{"app", "mine"}}})
    expect("another label", false, [&](auto& look) { look.patch(kReservation, {{"metadata", {{"labels", labels}}}}); });
  expect("it is gone", false,
         [](auto& look) { look.send(k8s::Method::del, kReservation, {{"gracePeriodSeconds", 0}}); });
  expect("another reason", false, [](auto& look) { look.deletion.why.code = "DuplicateReservation"; });
  for (const bool gone : {false, true}) {
    expect("planned for a node that is gone", gone, [gone](auto& look) {
      std::get<DeletePod>(look.deletion.action).grace_period_seconds = 0;
      if (gone) look.send(k8s::Method::del, "/api/v1/nodes/n1", nullptr);
    });
  }
}

TEST(Changes, ThatCannotBeReadKeepIt) {
  expect("one of two APIs is gone", false, [](auto& look) {
    look.send(k8s::Method::del,
              "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/bindrequests.scheduling.run.ai", nullptr);
  });
  for (const char* kind : {"pods", "bindrequests"})
    expect(kind, false, [kind](auto& look) { look.fault(Fault::server_error, "list", kind); });
  expect("no answer comes", false, [](auto& look) { look.fault(Fault::hang, "list", "pods"); });
}

TEST(Changes, OfTheBindersLeaderDecideWhereThereAreSeveralReplicas) {
  for (const int replicas : {1, 2}) {
    expect("a Lease that cannot be read", replicas == 1, [replicas](auto& look) {
      look.replicas(replicas);
      look.fault(Fault::server_error, "get", "leases");
    });
  }
  expect("no Lease", true, [](auto& look) { look.replicas(2); });
  for (const bool is_new : {false, true}) {
    expect("a leader", !is_new, [is_new](auto& look) {
      look.replicas(2);
      look.lease("binder-a", is_new ? "2025-12-31T23:59:00.000000Z" : "2025-12-31T00:00:00.000000Z");
    });
  }
}

// A server whose pods have a phase that is no text.
class OtherPhases final : public k8s::Transport {
 public:
  explicit OtherPhases(k8s::Transport* server) : server_(server) {}
  boost::asio::awaitable<k8s::Result<k8s::HttpResponse>> send(k8s::HttpRequest request) override {
    k8s::Result<k8s::HttpResponse> answer = co_await server_->send(std::move(request));
    const std::string text = R"("phase":"Running")";
    const std::size_t at = answer ? answer->body.find(text) : std::string::npos;
    if (at != std::string::npos) answer->body.replace(at, text.size(), R"("phase":5)");
    co_return answer;
  }
  boost::asio::awaitable<k8s::Result<std::unique_ptr<k8s::ByteStream>>> open(k8s::HttpRequest request) override {
    co_return co_await server_->open(std::move(request));
  }

 private:
  k8s::Transport* server_;
};

TEST_F(LastLook, APodThatCannotBeReadCountsAsAlive) {
  OtherPhases altered{&transport};
  k8s::ApiClient through{&altered, &sim.clock, {}};
  KaiReader looks{&through, &sim.clock, &world, &settings, log};
  EXPECT_EQ(sim.run(looks.still_due({deletion})).size(), 1u);
  for (const char* label : {"runai-gpu-group", "runai-gpu-group/g", "other"}) {
    consumer(label, "g", "Running");
    if (std::string_view(label) == "other") request("Succeeded");
    EXPECT_EQ(sim.run(looks.still_due({deletion})).size(), 0u) << label;
    send(k8s::Method::del, kTeamPods + "/p", {{"gracePeriodSeconds", 0}});
  }
}

// More reservations than "r", and more consumers than one.
class Batches : public KaiChecksTest {
 protected:
  // A reservation as the watch has it, and its deletion.
  PlannedAction add(const Json& pod, const std::string& reason = "NoConsumers") {
    const std::string pods = std::string("/api/v1/namespaces/") + kReservations + "/pods";
    const std::string name = pod["metadata"]["name"].get<std::string>();
    send(k8s::Method::post, pods, pod);
    patch(pods + "/" + name + "/status", {{"status", {{"phase", "Running"}}}});
    return deletion_of(name, reason);
  }
  PlannedAction orphan(int i) { return add(kai_reservation(fmt::format("r{:02}", i), fmt::format("g{:02}", i), "n1")); }
  PlannedAction duplicate(const std::string& name, const std::string& gpu) {
    Json pod = kai_reservation(name, "d", "n1");
    pod["metadata"]["annotations"] = {{std::string(kai::kDeviceAnnotation), gpu}};
    return add(pod, "DuplicateReservation");
  }
  // A consumer of group d that has been bound, and sees that GPU.
  void bound(const std::string& name, const std::string& gpu) {
    Json pod = kai_fraction_pod(name, 1, "kai-scheduler");
    pod["metadata"]["labels"] = {{"runai-gpu-group", "d"}};
    pod["metadata"]["annotations"][std::string(kai::kSharedConfigMap)] = name;
    pod["spec"]["nodeName"] = "n1";
    send(k8s::Method::post, kTeamPods, pod);
    patch(kTeamPods + "/" + name + "/status", {{"status", {{"phase", "Running"}}}});
    const auto created = server.get(kPods, {kTeam, name});
    const Json owner{{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", name}, {"uid", (*created)["metadata"]["uid"]}};
    send(k8s::Method::post, std::string("/api/v1/namespaces/") + kTeam + "/configmaps",
         {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", name + "-0"}, {"ownerReferences", Json::array({owner})}}},
          {"data", {{"NVIDIA_VISIBLE_DEVICES", gpu}}}});
    send(k8s::Method::post, kRequests, kai_bind_request(*created, "n1", {"d"}, false));
    patch(kRequests + "/" + name + "/status", {{"status", {{"phase", "Succeeded"}}}});
  }
  // How many of them a look confirms over a connection of that latency.
  std::size_t confirmed(const std::vector<PlannedAction>& deletions, k8s::Duration latency) {
    InProcessTransport slow{server, {.user = "a", .user_agent = "b", .latency = latency}};
    k8s::ApiClient through{&slow, &sim.clock, {}};
    KaiReader looks{&through, &sim.clock, &world, &settings, log};
    const k8s::MonoTime begun = sim.clock.monotonic();
    const std::size_t found = sim.run(looks.still_due(deletions)).size();
    took = sim.clock.monotonic() - begun;
    requests = slow.requests();
    return found;
  }
  boost::asio::awaitable<void> later(k8s::Duration after, std::string name) {
    co_await sim.clock.sleep_until(sim.clock.monotonic() + after);
    bound(name, "GPU-b");
  }
  boost::asio::awaitable<void> cancel_at(KaiReader* looks, k8s::Duration after) {
    co_await sim.clock.sleep_until(sim.clock.monotonic() + after);
    looks->cancel();
  }
  void end(const std::string& name) { send(k8s::Method::del, kTeamPods + "/" + name, {{"gracePeriodSeconds", 0}}); }
  k8s::Duration took{};
  std::uint64_t requests = 0;
};

TEST_F(Batches, AnOddPodKeepsNoOther) {
  Json odd = kai_reservation("odd", "x", "n1");
  odd["metadata"]["labels"] = {{"app", kReservations}, {"runai-gpu-group/x", "x"}};
  const std::set<k8s::ObjectKey> found = sim.run(checks.still_due({add(odd), orphan(1)}));
  EXPECT_EQ(found, (std::set<k8s::ObjectKey>{{kReservations, "r01"}}));
}

TEST_F(Batches, AGroupThatCannotBeReadKeepsNoOther) {
  FaultRule rule;
  rule.verb = "list";
  rule.resource = "pods";
  rule.status = 400;
  rule.skip = 1;
  rule.times = 1;
  transport.faults().add(rule);
  EXPECT_EQ(sim.run(checks.still_due({orphan(1), orphan(2), orphan(3)})).size(), 2u);
}

TEST_F(Batches, AReservationIsOfItsOwnGroupAlone) {
  Json pod = kai_reservation("both", "g1", "n1");
  pod["metadata"]["labels"]["runai-gpu-group/g2"] = "g2";
  const std::vector<PlannedAction> deletions{add(pod), add(kai_reservation("other", "g2", "n1"))};
  consumer("runai-gpu-group", "g1", "Running");
  const std::set<k8s::ObjectKey> found = sim.run(checks.still_due(deletions));
  EXPECT_EQ(found, (std::set<k8s::ObjectKey>{{kReservations, "other"}}));
}

TEST_F(Batches, ManyAreConfirmedOverASlowConnectionToo) {
  std::vector<PlannedAction> deletions;
  for (int i = 0; i < 16; ++i) deletions.push_back(orphan(i));
  for (const auto latency : {100ms, 300ms, 1000ms}) {
    EXPECT_EQ(confirmed(deletions, latency), 16u) << latency.count() << " ms";
    EXPECT_LE(took, 10 * latency) << "what does not depend on each other is asked at once";
    EXPECT_LE(requests, 24u);
  }
}

TEST_F(Batches, ALookThatFailsIsFollowedByASmallerOne) {
  std::vector<PlannedAction> deletions;
  for (int i = 0; i < 16; ++i) deletions.push_back(orphan(i));
  fault(Fault::hang, "list", "pods");
  EXPECT_EQ(sim.run(checks.still_due(deletions)).size(), 0u);
  EXPECT_EQ(sim.run(checks.still_due(deletions)).size(), 0u);
  transport.faults().clear();
  const auto last = sim.run(checks.still_due(deletions));
  EXPECT_EQ(last.size(), 4u);
  EXPECT_FALSE(last.contains({kReservations, "r00"})) << "first those that were not looked at in vain just now";
  EXPECT_EQ(sim.run(checks.still_due(deletions)).size(), 8u) << "and more again once one succeeds";
}

// The deletion was planned from a view of that age at least.
TEST_F(Batches, ALookEndsWithinTenSeconds) {
  const std::vector<PlannedAction> deletions{orphan(1)};
  fault(Fault::hang, "list", "pods");
  const k8s::MonoTime begun = sim.clock.monotonic();
  EXPECT_TRUE(sim.run(checks.still_due(deletions)).empty());
  EXPECT_LE(sim.clock.monotonic() - begun, 10s);
}

TEST_F(Batches, ALookThatIsCancelledConfirmsNothing) {
  const std::vector<PlannedAction> deletions{orphan(1)};
  InProcessTransport slow{server, {.user = "a", .user_agent = "b", .latency = 100ms}};
  k8s::ApiClient through{&slow, &sim.clock, {}};
  KaiReader looks{&through, &sim.clock, &world, &settings, log};
  sim.start(cancel_at(&looks, 150ms));  // While the multi-device consumers are listed.
  EXPECT_TRUE(sim.run(looks.still_due(deletions)).empty());
  EXPECT_EQ(sim.run(looks.still_due(deletions)).size(), 1u) << "the next one does";
}

TEST_F(Batches, RemembersWhatItDidNotConfirm) {
  const PlannedAction alive = orphan(1);
  consumer("runai-gpu-group", "g01", "Running");
  sim.run(checks.still_due({alive, orphan(2)}));
  sim.run(checks.still_due({alive}));
  const auto& refusals = world.kai.lookups.refusals;
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals.at(std::get<DeletePod>(alive.action).uid).count, 2);
}

// KAI may hand out any of a group's reservations: a duplicate's GPU may be taken while we look.
TEST_F(Batches, ADuplicateWhoseGpuIsTakenDuringTheLookStays) {
  duplicate("ra", "GPU-a");
  const std::vector<PlannedAction> deletions{duplicate("rb", "GPU-b")};
  for (int i = 0; i < 5; ++i) bound(fmt::format("c{}", i), "GPU-a");
  ASSERT_EQ(confirmed(deletions, 50ms), 1u);
  const k8s::Duration whole = took;
  // At every moment of it but the last two requests: then nothing that was read shows it yet.
  int tried = 0;
  for (k8s::Duration at = 10ms; at < whole - 100ms; at += 50ms) {
    const std::string name = fmt::format("late{}", tried++);
    sim.start(later(at, name));
    EXPECT_EQ(confirmed(deletions, 50ms), 0u) << "taken after " << at / 1ms << " ms of " << whole / 1ms;
    end(name);
    ASSERT_EQ(confirmed(deletions, 50ms), 1u);
  }
  EXPECT_GT(tried, 3);
}

}  // namespace
}  // namespace gso::sim::kai_checks_test
