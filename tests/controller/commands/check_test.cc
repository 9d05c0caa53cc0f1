// `check` and the Lease: a leader is who renews while we look, whatever the clocks say.
#include "controller/commands/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "controller/reading/operator_lease.h"
#include "tests/controller/our_cluster.h"

namespace gso::check_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Json = nlohmann::json;

struct LeaseCase {
  const char* name;
  const char* lease;
  bool fresh;
  const char* why;
};

class Leases : public testing::TestWithParam<LeaseCase> {};

TEST_P(Leases, LookFreshByTheirRenewTimeAndSayWhatIsWrong) {
  const k8s::WallTime now = *k8s::parse_rfc3339("2026-01-01T00:01:00Z");
  EXPECT_EQ(looks_fresh(read_lease(GetParam().lease), now), GetParam().fresh);
  LeaseRenewals renewals;
  renewals.see(GetParam().lease, {});
  EXPECT_FALSE(renewals.renewed()) << "nothing has changed yet";
  EXPECT_THAT(renewals.why(), HasSubstr(GetParam().why));
}

INSTANTIATE_TEST_SUITE_P(
    Check, Leases,
    testing::Values(
        LeaseCase{"Renewed",
                  R"({"spec":{"holderIdentity":"a","leaseDurationSeconds":15,"renewTime":"2026-01-01T00:00:50Z"}})",
                  true, ""},
        LeaseCase{"Expired",
                  R"({"spec":{"holderIdentity":"a","leaseDurationSeconds":15,"renewTime":"2026-01-01T00:00:40Z"}})",
                  false, "a has not renewed the Lease since 2026-01-01T00:00:40Z"},
        LeaseCase{"Released", R"({"spec":{"holderIdentity":"","leaseDurationSeconds":1}})", false, "no holder"},
        LeaseCase{"NeverRenewed", R"({"spec":{"holderIdentity":"a"}})", false, "since ever"},
        LeaseCase{"WithoutSpec", R"({"metadata":{}})", false, "no spec"}, LeaseCase{"NoObject", "[]", false, "no spec"},
        LeaseCase{"NoJson", "<html>", false, "no spec"}),
    [](const auto& param) { return param.param.name; });

std::string lease_of(const std::string& holder, const std::string& renewed, int lasts = 15) {
  return Json{{"spec", {{"holderIdentity", holder}, {"leaseDurationSeconds", lasts}, {"renewTime", renewed}}}}.dump();
}

TEST(LeaseRenewalsTest, AChangeByAHolderIsARenewalAndAReleaseIsNone) {
  const k8s::MonoTime begin{100s};
  LeaseRenewals renewals;
  EXPECT_EQ(renewals.expires(), k8s::MonoTime{});
  renewals.see(lease_of("a", "2026-01-01T00:00:00Z"), begin);
  EXPECT_EQ(renewals.expires(), begin + 15s);
  renewals.see(lease_of("a", "2026-01-01T00:00:00Z"), begin + 10s);
  EXPECT_FALSE(renewals.renewed());
  EXPECT_EQ(renewals.expires(), begin + 15s) << "an unchanged Lease lasts no longer";
  renewals.see(lease_of("", "2026-01-01T00:00:02Z"), begin + 11s);
  EXPECT_FALSE(renewals.renewed());
  EXPECT_EQ(renewals.expires(), k8s::MonoTime{});
  renewals.see(lease_of("b", "2025-01-01T00:00:02Z"), begin + 12s);
  EXPECT_TRUE(renewals.renewed()) << "another one has acquired it";
  EXPECT_EQ(renewals.last()->holder, "b");
  renewals.see(lease_of("b", "2025-01-01T00:00:02Z"), begin + 13s);
  EXPECT_TRUE(renewals.renewed()) << "as long as it is not released";
}

class CheckCommand : public OurCluster {
 protected:
  static constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/namespaces/gpu-sharing-operator/leases";

  // A Lease that was renewed now, by a clock that is `ahead` of ours.
  void create_lease(std::chrono::milliseconds ahead, int lasts = 15) {
    Json lease = Json::parse(lease_of("pod-1", k8s::format_micro_time(sim.clock.now() + ahead), lasts));
    lease["apiVersion"] = "coordination.k8s.io/v1";
    lease["kind"] = "Lease";
    lease["metadata"]["name"] = "gpu-sharing-operator";
    post(kLeases, lease.dump());
  }
  void renew_lease(std::chrono::milliseconds ahead) {
    merge(std::string(kLeases) + "/gpu-sharing-operator",
          Json{{"spec", {{"renewTime", k8s::format_micro_time(sim.clock.now() + ahead)}}}}.dump());
  }
  int check() {
    CheckOptions options;
    options.timeout = 1s;
    return sim.run(check_on_cluster(&client, &sim.clock, Options(), options, &out, &err));
  }
  std::string said_of_none() {
    const k8s::ObjectKey lease{"gpu-sharing-operator", "gpu-sharing-operator"};
    const OperatorPresence found = sim.run(find_operator(&client, &sim.clock, lease, &incomplete));
    EXPECT_EQ(found.none.has_value() + !found.running.empty() + found.unread.has_value(), 1) << "it has one answer";
    return found.none ? found.none->text() : "";
  }

  std::ostringstream out;
  std::ostringstream err;
  std::vector<std::string> incomplete;
};

boost::asio::awaitable<void> repeat(k8s::Clock* clock, const bool* stop, std::function<void()> act) {
  while (!*stop) {
    act();
    co_await clock->sleep_for(2s);
  }
}

TEST_F(CheckCommand, ALeaderWhoseClockDiffersIsALeader) {
  create_lease(-20s);
  bool stop = false;
  const auto ended = sim.start(repeat(&sim.clock, &stop, [this] { renew_lease(-20s); }));
  (void)check();
  EXPECT_THAT(out.str(), HasSubstr("ok      Leader: pod-1"));
  EXPECT_EQ(said_of_none(), "");
  stop = true;
  sim.clock.run_for(5s);
  EXPECT_TRUE(*ended);
}

TEST_F(CheckCommand, ADeadLeaderWhoseClockWasAheadIsNone) {
  create_lease(1h);
  const k8s::MonoTime begun = sim.clock.monotonic();
  EXPECT_EQ(check(), 1);
  EXPECT_THAT(out.str(),
              HasSubstr("MISSING no leader within 15s: pod-1 has not renewed the Lease since 2026-01-01T01:"));
  EXPECT_LE(sim.clock.monotonic() - begun, 16s) << "its Lease has expired then";
}

TEST_F(CheckCommand, ALeaseThatLastsAnHourIsWaitedForAMinute) {
  create_lease(-5s, 3600);
  const k8s::MonoTime begun = sim.clock.monotonic();
  EXPECT_EQ(check(), 1);
  EXPECT_THAT(out.str(), HasSubstr("MISSING no leader within 1m0s: pod-1 has not renewed the Lease since "));
  EXPECT_LE(sim.clock.monotonic() - begun, 61s);
}

TEST_F(CheckCommand, WithoutALeaseTheTimeoutIsAllThatIsWaited) {
  const k8s::MonoTime begun = sim.clock.monotonic();
  EXPECT_EQ(check(), 1);
  EXPECT_THAT(out.str(),
              testing::ContainsRegex("MISSING no leader within 1s: Lease [a-z/-]+ does not exist: no operator "
                                     "has run here\\. Run: "));
  EXPECT_LE(sim.clock.monotonic() - begun, 2s);
}

boost::asio::awaitable<void> check_to_its_end(k8s::ApiClient* client, k8s::Clock* clock, CheckOptions options,
                                              std::ostream* out, std::ostream* err) {
  (void)co_await check_on_cluster(client, clock, Options(), options, out, err);
}

// A person at a terminal sees at once that no operator holds the Lease, and how long the command waits for one.
TEST_F(CheckCommand, WhatIsWaitedForIsSaidBeforeTheWait) {
  create_lease(-1h);
  CheckOptions options;
  options.timeout = 30s;
  const auto ended = sim.start(check_to_its_end(&client, &sim.clock, options, &out, &err));
  sim.clock.run_for(2s);
  EXPECT_FALSE(*ended);
  EXPECT_THAT(out.str(), HasSubstr("ok      the SharingPolicy/SharingRollout CRDs are installed")) << "as it was found";
  EXPECT_THAT(err.str(), HasSubstr("gpu-sharing-operator check: pod-1 has not renewed the Lease since 2025-12-31T23:"));
  EXPECT_THAT(err.str(), HasSubstr("Waiting up to 30s for an operator that renews Lease "
                                   "gpu-sharing-operator/gpu-sharing-operator\n"));
  const std::string announced = err.str();
  sim.clock.run_for(40s);
  EXPECT_TRUE(*ended);
  EXPECT_EQ(err.str(), announced) << "once";
}

TEST_F(CheckCommand, WhereNoLeaseIsTheOperatorMayRunInAnotherNamespace) {
  EXPECT_EQ(said_of_none(),
            "No operator was ever seen in namespace gpu-sharing-operator: Lease "
            "gpu-sharing-operator/gpu-sharing-operator does not exist. Whether one runs elsewhere is unknown: if it "
            "does, name its namespace with --namespace");
}

TEST_F(CheckCommand, AStaleLeaseIsWatchedForFiveSecondsBeforeNobodyIsSaidToRun) {
  create_lease(-1h);
  const k8s::MonoTime begun = sim.clock.monotonic();
  const std::string said = said_of_none();
  EXPECT_THAT(said, HasSubstr("No operator is running: pod-1 has not renewed the Lease since 2025-12-31T23:"));
  EXPECT_THAT(said, HasSubstr("(Lease gpu-sharing-operator/gpu-sharing-operator)"));
  EXPECT_THAT(said, HasSubstr("Run: kubectl get deployments,pods --namespace gpu-sharing-operator"));
  EXPECT_LE(sim.clock.monotonic() - begun, 6s);
}

TEST_F(CheckCommand, ALeaseThatMustNotBeReadIsNamedWithTheMissingRule) {
  create_lease(-1h);
  sim::FaultRule rule;
  rule.fault = sim::Fault::forbidden;
  rule.resource = "leases";
  transport.faults().add(rule);
  EXPECT_EQ(said_of_none(), "");
  ASSERT_THAT(incomplete, testing::SizeIs(1));
  EXPECT_THAT(incomplete.front(), testing::StartsWith("whether an operator runs is unknown: Lease "
                                                      "gpu-sharing-operator/gpu-sharing-operator was not read: leases "
                                                      "of namespace gpu-sharing-operator cannot be read by "));
  EXPECT_THAT(incomplete.front(),
              HasSubstr("add {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get]} to a Role"));
}

TEST_F(CheckCommand, ALeaseOfAHundredYearsDoesNotCallItsHolderAlive) {
  create_lease(-2h, 2'000'000'000);
  EXPECT_THAT(said_of_none(), HasSubstr("No operator is running: pod-1 has not renewed the Lease since"));
}

}  // namespace
}  // namespace gso::check_test
