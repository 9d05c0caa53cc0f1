// The last look before reservations are deleted: what changed since the plan decides, one by one and in batches.
#include <fmt/format.h>
#include <gtest/gtest.h>

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

TEST_F(KaiChecksTest, ConfirmsAnOrphan) {
  EXPECT_TRUE(due());
}

// Rows reach the fixture through this, which makes its helpers public.
class LastLook : public KaiChecksTest {
 public:
  using KaiChecksTest::consumer;
  using KaiChecksTest::deletion;
  using KaiChecksTest::fault;
  using KaiChecksTest::lease;
  using KaiChecksTest::patch;
  using KaiChecksTest::replicas;
  using KaiChecksTest::request;
  using KaiChecksTest::see;
  using KaiChecksTest::send;
};

struct Change {
  const char* name;
  void (*make)(LastLook&);
  bool due;
};

void PrintTo(const Change& change, std::ostream* out) {
  *out << change.name;
}

class Changes : public LastLook, public ::testing::WithParamInterface<Change> {};

TEST_P(Changes, SinceThePlanDecide) {
  GetParam().make(*this);
  EXPECT_EQ(due(), GetParam().due);
}

INSTANTIATE_TEST_SUITE_P(
    LastLook, Changes,
    ::testing::Values(
        Change{"a_consumer", [](LastLook& look) { look.consumer("runai-gpu-group", "g", "Running"); }, false},
        Change{"a_consumer_of_unknown_phase", [](LastLook& look) { look.consumer("runai-gpu-group", "g", "Unknown"); },
               false},
        Change{"a_multi_device_consumer", [](LastLook& look) { look.consumer("runai-gpu-group/g", "g", "Running"); },
               false},
        Change{"a_multi_device_consumer_with_an_edited_value",
               [](LastLook& look) { look.consumer("runai-gpu-group/g", "edited", "Running"); }, false},
        Change{"a_finished_consumer", [](LastLook& look) { look.consumer("runai-gpu-group", "g", "Failed"); }, true},
        Change{"a_consumer_of_another_group", [](LastLook& look) { look.consumer("runai-gpu-group", "h", "Running"); },
               true},
        Change{"a_bind_that_cannot_be_read",
               [](LastLook& look) {
                 look.request("Pending");
                 look.patch(kRequests + "/p/status", {{"status", {{"failedAttempts", "many"}}}});
               },
               false},
        Change{"a_bind_not_begun", [](LastLook& look) { look.request(""); }, false},
        Change{"a_bind_in_progress", [](LastLook& look) { look.request("Pending"); }, false},
        Change{"a_bind_in_progress_by_the_newer_field", [](LastLook& look) { look.request("Pending", true); }, false},
        Change{"a_bind_that_has_failed_for_good", [](LastLook& look) { look.request("Failed"); }, true},
        Change{"a_bind_that_has_succeeded_for_a_pod_that_is_gone", [](LastLook& look) { look.request("Succeeded"); },
               true},
        Change{"a_bind_that_has_succeeded_for_a_pod_that_lives_without_the_label",
               [](LastLook& look) {
                 look.consumer("other", "x", "Running");
                 look.request("Succeeded");
               },
               false},
        Change{"a_bind_that_has_succeeded_for_a_pod_that_has_ended",
               [](LastLook& look) {
                 look.consumer("other", "x", "Succeeded");
                 look.request("Succeeded");
               },
               true},
        Change{"another_version_of_the_reservation",
               [](LastLook& look) { look.patch(kReservation, {{"metadata", {{"annotations", {{"a", "b"}}}}}}); },
               false},
        Change{"another_version_that_was_planned_by",
               [](LastLook& look) {
                 look.patch(kReservation, {{"metadata", {{"annotations", {{"a", "b"}}}}}});
                 look.see();
               },
               true},
        Change{"another_pod_of_that_name",
               [](LastLook& look) { std::get<DeletePod>(look.deletion.action).uid = "uid-of-before"; }, false},
        Change{
            "another_group",
            [](LastLook& look) { look.patch(kReservation, {{"metadata", {{"labels", {{"runai-gpu-group", "h"}}}}}}); },
            false},
        Change{"another_app_label",
               [](LastLook& look) { look.patch(kReservation, {{"metadata", {{"labels", {{"app", "mine"}}}}}}); },
               false},
        Change{"the_pod_is_gone",
               [](LastLook& look) { look.send(k8s::Method::del, kReservation, {{"gracePeriodSeconds", 0}}); }, false},
        Change{"another_reason", [](LastLook& look) { look.deletion.why.code = "DuplicateReservation"; }, false},
        Change{"one_of_two_apis_is_gone",
               [](LastLook& look) {
                 look.send(k8s::Method::del,
                           "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/bindrequests.scheduling.run.ai",
                           nullptr);
               },
               false},
        Change{"pods_cannot_be_listed", [](LastLook& look) { look.fault(Fault::server_error, "list", "pods"); }, false},
        Change{"requests_cannot_be_listed",
               [](LastLook& look) { look.fault(Fault::server_error, "list", "bindrequests"); }, false},
        Change{"no_answer_comes", [](LastLook& look) { look.fault(Fault::hang, "list", "pods"); }, false},
        Change{"a_node_that_is_there_after_all",
               [](LastLook& look) { std::get<DeletePod>(look.deletion.action).grace_period_seconds = 0; }, false},
        Change{"a_node_that_is_gone",
               [](LastLook& look) {
                 std::get<DeletePod>(look.deletion.action).grace_period_seconds = 0;
                 look.send(k8s::Method::del, "/api/v1/nodes/n1", nullptr);
               },
               true},
        Change{"replicas_without_a_lease", [](LastLook& look) { look.replicas(2); }, true},
        Change{"replicas_with_an_old_leader",
               [](LastLook& look) {
                 look.replicas(2);
                 look.lease("binder-a", "2025-12-31T00:00:00.000000Z");
               },
               true},
        Change{"replicas_with_a_new_leader",
               [](LastLook& look) {
                 look.replicas(2);
                 look.lease("binder-a", "2025-12-31T23:59:00.000000Z");
               },
               false},
        Change{"replicas_without_a_leader",
               [](LastLook& look) {
                 look.replicas(2);
                 look.lease("", "2025-12-31T00:00:00.000000Z");
               },
               false},
        Change{"a_lease_that_cannot_be_read",
               [](LastLook& look) {
                 look.replicas(2);
                 look.fault(Fault::server_error, "get", "leases");
               },
               false},
        Change{"one_replica_whose_lease_nobody_reads",
               [](LastLook& look) {
                 look.replicas(1);
                 look.fault(Fault::server_error, "get", "leases");
               },
               true}),
    [](const auto& row) { return std::string(row.param.name); });

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
  PlannedAction add(Json pod, const std::string& reason = "NoConsumers") {
    const std::string pods = std::string("/api/v1/namespaces/") + kReservations + "/pods";
    const std::string name = pod["metadata"]["name"].get<std::string>();
    send(k8s::Method::post, pods, pod);
    patch(pods + "/" + name + "/status", {{"status", {{"phase", "Running"}}}});
    const auto found = server.get(kPods, {kReservations, name});
    KaiPod seen = project_kai_pod(found->dump()).value();
    world.kai.pods.apply(seen);
    DeletePod action;
    action.pod = seen.meta.key();
    action.uid = seen.meta.uid;
    action.resource_version = seen.meta.resource_version;
    return {std::string(kReservationGc), action, {reason, ""}, true, ""};
  }
  PlannedAction orphan(int i) { return add(kai_reservation(fmt::format("r{:02}", i), fmt::format("g{:02}", i), "n1")); }
  PlannedAction duplicate(const std::string& name, const std::string& gpu) {
    Json pod = kai_reservation(name, "d", "n1");
    pod["metadata"]["annotations"] = {{std::string(kai::kDeviceAnnotation), gpu}};
    return add(pod, "DuplicateReservation");
  }
  // A consumer of group d that has been bound, and sees that GPU.
  void bound(const std::string& name, const std::string& gpu) {
    send(k8s::Method::post, std::string("/api/v1/namespaces/") + kTeam + "/configmaps",
         {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", name + "-0"}}},
          {"data", {{"NVIDIA_VISIBLE_DEVICES", gpu}}}});
    Json pod = kai_fraction_pod(name, 1, "kai-scheduler");
    pod["metadata"]["labels"] = {{"runai-gpu-group", "d"}};
    pod["metadata"]["annotations"][std::string(kai::kSharedConfigMap)] = name;
    pod["spec"]["nodeName"] = "n1";
    send(k8s::Method::post, kTeamPods, pod);
    patch(kTeamPods + "/" + name + "/status", {{"status", {{"phase", "Running"}}}});
    const auto created = server.get(kPods, {kTeam, name});
    patch_owner(name, (*created)["metadata"]["uid"].get<std::string>());
    send(k8s::Method::post, kRequests, kai_bind_request(*created, "n1", {"d"}, false));
    patch(kRequests + "/" + name + "/status", {{"status", {{"phase", "Succeeded"}}}});
  }
  void patch_owner(const std::string& name, const std::string& uid) {
    const Json owner{{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", name}, {"uid", uid}};
    patch(std::string("/api/v1/namespaces/") + kTeam + "/configmaps/" + name + "-0",
          {{"metadata", {{"ownerReferences", Json::array({owner})}}}});
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
