// One line when something begins to fail, a reminder a minute, one line when it is over; and a finding is logged once
// for as long as it lasts, also where single passes lack it.
#include "controller/runtime/outage_log.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/controller/sim_time.h"

namespace gso::outage_log_test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class OutageLogTest : public testing::Test {
 protected:
  std::vector<std::string> said() { return std::exchange(lines_, {}); }
  void watches_fail(const k8s::Error& error) {
    for (const char* resource : {"nodes", "daemonsets", "pods of gpu-operator"})
      outages.failed("Watch failed", resource, error);
  }

  Sim sim;
  OutageLog outages{&sim.clock, std::make_shared<Logger>(
                                    LogFormat::text, LogLevel::info, [this] { return sim.clock.now(); },
                                    [this](const std::string& line) { lines_.push_back(line); })};
  const k8s::Error unreachable{k8s::Reason::transport, 0, "cannot connect"};
  const k8s::Error forbidden{k8s::Reason::forbidden, 403, "pods is forbidden"};

 private:
  std::vector<std::string> lines_;
};

TEST_F(OutageLogTest, AServerThatIsAwayIsOneLineThenOneAMinuteWithACountThenOne) {
  watches_fail(unreachable);
  EXPECT_THAT(said(), ElementsAre(AllOf(HasSubstr("API server cannot be reached"), HasSubstr("cannot connect"))));
  for (int second = 0; second < 59; ++second) {
    sim.clock.run_for(1s);
    outages.answered(0);
    watches_fail(unreachable);
  }
  EXPECT_THAT(said(), IsEmpty());
  sim.clock.run_for(1s);
  watches_fail(unreachable);
  EXPECT_THAT(said(), ElementsAre(AllOf(HasSubstr("cannot be reached, still"), HasSubstr("failures=181"),
                                        HasSubstr("for=1m0s"))));
  sim.clock.run_for(5s);
  outages.answered(200);
  outages.answered(200);
  EXPECT_THAT(said(),
              ElementsAre(AllOf(HasSubstr("Recovered: API server cannot be reached"), HasSubstr("after=1m5s"))));
  sim.clock.run_for(10min);
  watches_fail(unreachable);
  EXPECT_THAT(said(), ElementsAre(HasSubstr("API server cannot be reached")));
}

TEST_F(OutageLogTest, AnAddressThatCannotServeAnybodyIsOneLine) {
  watches_fail({k8s::Reason::invalid, 0, "its address must be https://10.0.0.1:6443, not http://10.0.0.1:6443"});
  outages.answered(0);
  watches_fail({k8s::Reason::invalid, 0, "its address must be https://10.0.0.1:6443, not http://10.0.0.1:6443"});
  EXPECT_THAT(said(), ElementsAre(HasSubstr("must be https://10.0.0.1:6443")));
  watches_fail({k8s::Reason::invalid, 400, "no such field"});
  EXPECT_THAT(said(), testing::SizeIs(3)) << "what the server itself refuses concerns one resource";
}

TEST_F(OutageLogTest, WhatComesAndGoesEveryFewSecondsIsNotALineEach) {
  for (int second = 0; second < 300; ++second) {
    watches_fail(unreachable);
    outages.answered(200);
    sim.clock.run_for(1s);
  }
  EXPECT_LE(said().size(), 10U);
}

TEST_F(OutageLogTest, RefusedCredentialsAreOneOutageAndForbiddenKindsOneEach) {
  const k8s::Error stale{k8s::Reason::unauthorized, 401, "Unauthorized (HTTP 401)"};
  watches_fail(stale);
  outages.failed("Lease could not be acquired or renewed", "Lease ops/operator", stale);
  EXPECT_THAT(said(), ElementsAre(HasSubstr("rejects the operator's credentials")));
  outages.answered(401);
  EXPECT_THAT(said(), IsEmpty());
  outages.answered(403);
  EXPECT_THAT(said(), ElementsAre(HasSubstr("Recovered: API server rejects the operator's credentials")));
  watches_fail(forbidden);
  watches_fail(forbidden);
  EXPECT_THAT(said(), ElementsAre(HasSubstr("subject=nodes"), HasSubstr("subject=daemonsets"),
                                  HasSubstr("pods of gpu-operator")));
  outages.worked("Watch failed", "nodes");
  outages.worked("Watch failed", "nodes");
  EXPECT_THAT(said(), ElementsAre(AllOf(HasSubstr("Recovered: Watch failed"), HasSubstr("subject=nodes"))));
}

TEST(ReportedFindingsTest, AFindingIsNewAgainOnlyAfterItWasAbsentForAMinute) {
  const struct {
    k8s::Duration at;
    bool there;
    bool logged;
  } passes[] = {
      {0s, true, true},     {0s, true, false},  // Twice in one pass.
      {10s, false, false},  {11s, true, false},   {21s, false, false}, {60s, true, false},
      {119s, false, false}, {120s, false, false}, {130s, true, true},
  };
  ReportedFindings findings;
  for (const auto& pass : passes) {
    const k8s::MonoTime now = k8s::MonoTime{} + pass.at;
    const bool logged = pass.there && findings.is_new("Node a01 WaitingForWorkloads pods use it", now);
    EXPECT_EQ(logged, pass.logged) << pass.at / 1s << " s";
    findings.end_pass(now);
  }
  EXPECT_TRUE(findings.is_new("Node a02 WaitingForWorkloads pods use it", k8s::MonoTime{} + 130s)) << "another one";
}

}  // namespace
}  // namespace gso::outage_log_test
