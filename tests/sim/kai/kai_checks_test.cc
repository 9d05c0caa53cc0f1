// The last look before a reservation is deleted, and the look-ups, against the simulated API server: what has changed
// since the plan, and every error, keeps the pod.
#include "controller/kai_checks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "controller/kai_lookups.h"
#include "k8sclient/client.h"
#include "reconcilers/kai/names.h"
#include "reconcilers/registry.h"
#include "tests/controller/sim_time.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/in_process_transport.h"
#include "tests/sim/apiserver/local_request.h"
#include "tests/sim/kai/kai_objects.h"

namespace gso::sim {
namespace {

using namespace std::chrono_literals;

const k8s::Gvr kPods{"", "v1", "pods"};
const std::string kTeamPods = std::string("/api/v1/namespaces/") + kTeam + "/pods";
const std::string kReservation = std::string("/api/v1/namespaces/") + kReservations + "/pods/r";
const std::string kRequests = std::string("/apis/scheduling.run.ai/v1alpha2/namespaces/") + kTeam + "/bindrequests";
const std::string kLeases = "/apis/coordination.k8s.io/v1/namespaces/kai-scheduler/leases";

// KAI with one reservation "r" of group "g" on node n1 that nobody needs; the world is as it was when that was planned.
class KaiChecksTest : public ::testing::Test {
 protected:
  KaiChecksTest() {
    const std::string crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    send(k8s::Method::post, crds, Json::parse(kai_config_crd()));
    send(k8s::Method::post, crds, Json::parse(kai_bind_request_crd()));
    for (const char* ns : {"kai-scheduler", kReservations, kTeam}) {
      send(k8s::Method::post, "/api/v1/namespaces", kai_namespace(ns));
    }
    send(k8s::Method::post, "/api/v1/nodes", kai_node("n1"));
    sim.clock.run_for(1s);
    send(k8s::Method::post, "/apis/kai.scheduler/v1/configs", kai_config());
    Json pod = kai_reservation("r", "g", "n1");
    send(k8s::Method::post, std::string("/api/v1/namespaces/") + kReservations + "/pods", pod);
    world.kai.configs.apply(project_kai_config(kai_config().dump()).value());
    world.kai.configs_served = world.kai.bind_requests_served = true;
    see();
  }
  int send(k8s::Method method, const std::string& path, const Json& body,
           const std::string& type = "application/json") {
    const std::string text = body.is_null() ? std::string() : body.dump();
    const k8s::HttpResponse answer =
        server.handle(local_request(method, path, text, type), {.user = "kai", .user_agent = "kai"});
    EXPECT_LT(answer.status, 300) << path << ": " << answer.body;
    return answer.status;
  }
  void patch(const std::string& path, const Json& body) {
    send(k8s::Method::patch, path, body, "application/merge-patch+json");
  }
  // The reservation as the watch has it now, and its deletion as planned by that.
  void see() {
    const auto found = server.get(kPods, {kReservations, "r"});
    ASSERT_TRUE(found);
    KaiPod pod = project_kai_pod(found->dump()).value();
    world.kai.pods.apply(pod);
    DeletePod action;
    action.pod = pod.meta.key();
    action.uid = pod.meta.uid;
    action.resource_version = pod.meta.resource_version;
    deletion = {std::string(kReservationGc), action, "NoConsumers", "", true, ""};
  }
  void replicas(std::int64_t count) {
    Deployment binder;
    binder.meta.name = "binder";
    binder.meta.ns = Interned("kai-scheduler");
    binder.replicas = count;
    world.kai.deployments.apply(binder);
  }
  void lease(const std::string& holder, const std::string& acquired) {
    send(k8s::Method::post, kLeases,
         {{"apiVersion", "coordination.k8s.io/v1"},
          {"kind", "Lease"},
          {"metadata", {{"name", kai::kBinderLease}, {"namespace", "kai-scheduler"}}},
          {"spec", {{"holderIdentity", holder}, {"acquireTime", acquired}}}});
  }
  void consumer(const std::string& label, const std::string& value, const std::string& phase) {
    Json pod = kai_fraction_pod("p", 1, "kai-scheduler");
    pod["metadata"]["labels"] = {{label, value}};
    pod["spec"]["nodeName"] = "n1";
    send(k8s::Method::post, kTeamPods, pod);
    patch(kTeamPods + "/p/status", {{"status", {{"phase", phase}}}});
  }
  void request(const std::string& phase, bool new_field = false) {
    send(k8s::Method::post, kRequests,
         kai_bind_request({{"metadata", {{"name", "p"}, {"uid", "u"}}}}, "n1", {"g"}, new_field));
    if (!phase.empty()) patch(kRequests + "/p/status", {{"status", {{"phase", phase}}}});
  }
  void fault(Fault kind, const std::string& verb, const std::string& resource) {
    FaultRule rule;
    rule.fault = kind;
    rule.verb = verb;
    rule.resource = resource;
    rule.delay = 1min;
    transport.faults().add(rule);
  }
  bool due() {
    const std::set<k8s::ObjectKey> found = sim.run(checks.still_due({deletion}));
    return found.contains({kReservations, "r"});
  }

  Sim sim;
  ApiServer server{sim.io.get_executor(), sim.clock};
  InProcessTransport transport{server, {}};
  k8s::ApiClient client{&transport, &sim.clock, {}};
  World world;
  KaiSettings settings;
  std::shared_ptr<Logger> log =
      std::make_shared<Logger>(LogFormat::text, LogLevel::off, [this] { return sim.clock.now(); });
  KaiChecks checks{&client, &sim.clock, &world, &settings, log};
  PlannedAction deletion;
};

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
        Change{"a_bind_not_begun", [](LastLook& look) { look.request(""); }, false},
        Change{"a_bind_in_flight", [](LastLook& look) { look.request("Pending"); }, false},
        Change{"a_bind_in_flight_by_the_newer_field", [](LastLook& look) { look.request("Pending", true); }, false},
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
        Change{"another_reason", [](LastLook& look) { look.deletion.reason = "DuplicateReservation"; }, false},
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
    return {std::string(kReservationGc), action, reason, "", true, ""};
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
    KaiChecks looks{&through, &sim.clock, &world, &settings, log};
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

class LookUps : public KaiChecksTest {
 protected:
  ~LookUps() override {
    lookups.stop();
    tasks.cancel();
    *sim.start(tasks.join());
    sim.clock.run_for(1min);
  }
  void ask(const KaiWants& wants, k8s::Duration wait = 15s) {
    lookups.want(wants);
    sim.clock.run_for(wait);
  }
  static KaiWants groups(int count, const std::string& prefix) {
    KaiWants out;
    for (int i = 0; i < count; ++i) out.groups.insert(fmt::format("{}{:04}", prefix, i));
    return out;
  }
  [[nodiscard]] std::size_t answered(const std::string& prefix) const {
    const k8s::WallTime now = sim.clock.now();
    return static_cast<std::size_t>(std::ranges::count_if(world.kai.lookups.groups, [&](const auto& entry) {
      return entry.first.starts_with(prefix) && now - entry.second.at < 30s;
    }));
  }
  // Their answers, an hour old: a live consumer, or none.
  void known(const KaiWants& wants, bool alive) {
    KaiPod pod;
    pod.phase = Interned("Running");
    for (const std::string& group : wants.groups) {
      world.kai.lookups.groups[group] = {sim.clock.now() - 1h, alive ? std::vector{pod} : std::vector<KaiPod>{}};
    }
  }
  int woken = 0;
  InProcessTransport slow{server, {.user = "a", .user_agent = "b", .latency = 100ms}};
  k8s::ApiClient through{&slow, &sim.clock, {}};
  KaiChecks reads{&through, &sim.clock, &world, &settings, log};
  TaskGroup tasks{&sim.clock};
  KaiLookUps lookups{
      {&reads, &sim.clock, &world, &settings, log, &tasks, sim.io.get_executor(), [this](k8s::Duration) { ++woken; }}};
};

TEST_F(LookUps, ListPodsThatWait) {
  send(k8s::Method::post, kTeamPods, kai_fraction_pod("waits", 1, "kai-scheduler"));
  Json plain = kai_fraction_pod("plain", 1, "kai-scheduler");
  plain["metadata"].erase("annotations");
  send(k8s::Method::post, kTeamPods, plain);
  consumer("runai-gpu-group", "g", "Running");
  KaiWants wants;
  wants.waiting_pods = true;
  ask(wants);
  ASSERT_TRUE(world.kai.lookups.waiting);
  ASSERT_EQ(world.kai.lookups.waiting->pods.size(), 1u);
  EXPECT_EQ(world.kai.lookups.waiting->pods[0].pod.meta.name, "waits");
}

TEST_F(LookUps, KeepWhatIsKnownWhereOneFails) {
  KaiWants wants;
  wants.groups = {"g"};
  wants.pods = {{kTeam, "p"}};
  wants.binder_lease = true;
  ask(wants);
  const auto times = [this] {
    const KaiLookups& answers = world.kai.lookups;
    return std::vector<k8s::WallTime>{answers.groups.at("g").at, answers.pods.at({kTeam, "p"}).at,
                                      answers.binder_lease.value().at};
  };
  const std::vector<k8s::WallTime> before = times();
  sim.clock.run_for(10s);
  FaultRule rule;
  slow.faults().add(rule);
  woken = 0;
  ask(wants);
  EXPECT_EQ(times(), before);
  EXPECT_GT(woken, 0) << "to ask again";
}

TEST_F(LookUps, AskAFewAtATimeAndTellNowAndThen) {
  const std::uint64_t before = slow.requests();
  lookups.want(groups(1000, "a"));
  EXPECT_TRUE(lookups.busy());
  sim.clock.run_for(2s);
  EXPECT_NEAR(static_cast<double>(slow.requests() - before), 20.0 * KaiLookUps::kAtOnce, 10.0);
  EXPECT_LE(woken, 3) << "not a pass for each answer";
  EXPECT_GE(woken, 1);
  lookups.want({});
  sim.clock.run_for(2s);
  EXPECT_FALSE(lookups.busy()) << "what is not wanted any more is not asked";
  EXPECT_LT(slow.requests() - before, 150u);
}

TEST_F(LookUps, PutWhatADeletionWaitsForFirst) {
  known(groups(100, "due"), false);
  known(groups(100, "alive"), true);
  KaiWants wants = groups(100, "due");
  wants.merge(groups(100, "alive"));
  wants.merge(groups(100, "new"));
  ask(wants, 1s);
  EXPECT_GT(answered("due"), 0u);
  EXPECT_EQ(answered("new"), 0u);
  sim.clock.run_for(1800ms);
  EXPECT_EQ(answered("due"), 100u);
  EXPECT_GT(answered("new"), 0u);
  EXPECT_EQ(answered("alive"), 0u);
  sim.clock.run_for(10s);
  EXPECT_EQ(answered("alive"), 100u);
}

TEST_F(LookUps, RenewOnlySoManyOfThoseThatKeepInASweep) {
  KaiWants wants;
  for (int i = 0; i < 3 * KaiLookUps::kRenewals; ++i) {
    const std::string name = fmt::format("p{:03}", i);
    send(k8s::Method::post, kTeamPods, kai_fraction_pod(name, 2, "kai-scheduler"));
    wants.pods.insert({kTeam, name});
    world.kai.lookups.pods[{kTeam, name}] = {sim.clock.now() - 1h, true};
  }
  sim.clock.run_for(2 * settings.sweep);
  const std::uint64_t before = slow.requests();
  for (int i = 0; i < 50; ++i) ask(wants, 1s);
  EXPECT_EQ(slow.requests() - before, static_cast<std::uint64_t>(KaiLookUps::kRenewals));
  const auto renewed = std::ranges::count_if(
      world.kai.lookups.pods, [&](const auto& entry) { return sim.clock.now() - entry.second.at < 1min; });
  EXPECT_EQ(renewed, KaiLookUps::kRenewals) << "the oldest answers first, each once";
  EXPECT_EQ(woken, 0);
}

TEST_F(LookUps, AreNoNewsWhenTheySayTheSameAgain) {
  ask(groups(3, "a"));
  EXPECT_EQ(woken, 1);
  sim.clock.run_for(45s);
  ask(groups(3, "a"));
  EXPECT_EQ(woken, 1);
}

}  // namespace
}  // namespace gso::sim
