// Leader election against a Lease held in memory: two candidates, release, expiry, a stopped clock, a slow server.
#include "controller/runtime/leader_election.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "k8sclient/api/client.h"
#include "tests/controller/sim_time.h"
#include "tests/k8sclient/scripted_transport.h"

namespace gso::leader_election_test {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using k8s::test::Answer;

// One Lease with resourceVersions and conflicts, as the API server keeps it.
struct LeaseServer {
  Json lease;  // Null: does not exist.
  int version = 0;
  int writes = 0;
  std::function<std::optional<Answer>(const k8s::HttpRequest&)> before;  // An answer instead of the server's.
  std::function<void(Answer&)> after;                                    // Spoils the server's answer.

  Answer answer(const k8s::HttpRequest& request) {
    if (before) {
      if (std::optional<Answer> instead = before(request)) return *std::move(instead);
    }
    Answer out = serve(request);
    if (after) after(out);
    return out;
  }

 private:
  Answer store(Json object, int status) {
    lease = std::move(object);
    lease["metadata"]["resourceVersion"] = std::to_string(++version);
    ++writes;
    return Answer::json(status, lease.dump());
  }
  Answer serve(const k8s::HttpRequest& request) {
    if (request.method == k8s::Method::post) {
      if (!lease.is_null()) return Answer::status_of(409, "AlreadyExists", "leases exists");
      return store(Json::parse(request.body), 201);
    }
    if (lease.is_null()) return Answer::status_of(404, "NotFound", "leases not found");
    if (request.method == k8s::Method::get) return Answer::json(200, lease.dump());
    Json object = Json::parse(request.body);
    if (object["metadata"].value("resourceVersion", "") != lease["metadata"]["resourceVersion"])
      return Answer::status_of(409, "Conflict", "the object has been modified");
    return store(std::move(object), 200);
  }
};

// One candidate with a connection of its own.
struct Candidate {
  Candidate(Sim& sim, LeaseServer& server, std::string name, std::uint64_t seed, bool only_observes = false)
      : transport(
            &sim.clock,
            [&server, this](const k8s::HttpRequest& r) { return unplugged ? Answer::broken() : server.answer(r); }),
        client(&transport, &sim.clock, {}) {
    LeaderElectionOptions options;
    options.lease = {"gpu-sharing-operator", "gpu-sharing-operator"};
    options.identity = std::move(name);
    options.seed = seed;
    options.only_observes = only_observes;
    LeaderElectionEvents events;
    events.started_leading = [this] { observed.emplace_back("started"); };
    events.stopped_leading = [this] { observed.emplace_back("stopped"); };
    events.new_leader = [this](const std::string& who) { observed.push_back("saw " + who); };
    events.failed = [this](const k8s::Error& error) { errors.push_back(error); };
    elector = std::make_unique<LeaderElector>(&client, &sim.clock, options, events);
  }
  k8s::test::ScriptedTransport transport;
  k8s::ApiClient client;
  std::unique_ptr<LeaderElector> elector;
  bool unplugged = false;
  std::vector<std::string> observed;
  std::vector<k8s::Error> errors;
};

class LeaderElectionTest : public testing::Test {
 protected:
  // From now on, for so long.
  void run(Candidate& candidate, Duration then) {
    sim.start(candidate.elector->run());
    sim.clock.run_for(then);
  }
  // The Lease of another one that never renews it.
  void held_by_another(int seconds, const std::string& renewed, int transitions) {
    server.lease = Json{{"metadata", {{"name", "gpu-sharing-operator"}, {"resourceVersion", "0"}}},
                        {"spec",
                         {{"holderIdentity", "ghost"},
                          {"leaseDurationSeconds", seconds},
                          {"renewTime", renewed},
                          {"leaseTransitions", transitions}}}};
  }
  Json spec(const char* field) { return server.lease["spec"][field]; }

  Sim sim;
  LeaseServer server;
  Candidate one{sim, server, "one", 1};
  Candidate two{sim, server, "two", 2};
};

TEST_F(LeaderElectionTest, AMissingLeaseIsCreatedAndRenewedEveryRetryPeriodWithOneRequestOnTheLeaseChannel) {
  run(one, 1s);
  EXPECT_TRUE(one.elector->leading());
  EXPECT_TRUE(one.elector->may_write());
  EXPECT_EQ(spec("holderIdentity"), "one");
  EXPECT_EQ(spec("leaseDurationSeconds"), 15);
  EXPECT_EQ(spec("leaseTransitions"), 0);
  EXPECT_EQ(spec("acquireTime"), "2026-01-01T00:00:00.000000Z");
  EXPECT_EQ(one.observed, (std::vector<std::string>{"saw one", "started"}));
  const std::size_t before = one.transport.requests.size();
  sim.clock.run_for(20s);
  EXPECT_EQ(one.transport.requests.size() - before, 10U);
  for (const auto& seen : one.transport.requests) EXPECT_EQ(seen.channel, k8s::Channel::lease);
  EXPECT_EQ(one.transport.lines().back(),
            "PUT /apis/coordination.k8s.io/v1/namespaces/gpu-sharing-operator/leases/gpu-sharing-operator");
  EXPECT_EQ(spec("acquireTime"), "2026-01-01T00:00:00.000000Z") << "kept over renewals";
  EXPECT_TRUE(one.elector->may_write());
}

// Under max-mode Observe the Lease is all that an operator writes.
TEST_F(LeaderElectionTest, TheOneAfterAnObserverKnowsThatNobodyHasChangedNodes) {
  Candidate observer{sim, server, "observer", 3, true};
  const auto lead_until_released = [&](Candidate& candidate) {
    run(candidate, 4s);
    EXPECT_TRUE(candidate.elector->leading()) << "a released Lease is free";
    const bool says_so = server.lease["metadata"]["annotations"].contains(std::string(kMaxModeAnnotation));
    candidate.elector->stop();
    sim.start(candidate.elector->release());
    sim.clock.run_for(1s);
    return says_so;
  };
  EXPECT_TRUE(lead_until_released(observer));
  EXPECT_FALSE(observer.elector->follows_observer());
  EXPECT_FALSE(lead_until_released(one));
  EXPECT_TRUE(one.elector->follows_observer());
  EXPECT_FALSE(lead_until_released(two));
  EXPECT_FALSE(two.elector->follows_observer());
  EXPECT_EQ(spec("leaseTransitions"), 2);
}

// As if it died: its last renewal is at most 2 s old.
TEST_F(LeaderElectionTest, TheSecondCandidateTakesOverOnlyAfterTheLeaseDurationAndLongAfterTheFirstMayWrite) {
  run(one, 1s);
  run(two, 60s);
  ASSERT_TRUE(one.elector->leading());
  EXPECT_FALSE(two.elector->leading());
  one.unplugged = true;
  const MonoTime died = sim.clock.monotonic();
  bool both = false;
  MonoTime stopped{};
  ASSERT_TRUE(sim.clock.run_until(
      [&] {
        both = both || (one.elector->may_write() && two.elector->may_write());
        if (!one.elector->may_write() && stopped == MonoTime{}) stopped = sim.clock.monotonic();
        return two.elector->leading();
      },
      60s));
  const MonoTime now = sim.clock.monotonic();
  EXPECT_FALSE(both);
  EXPECT_FALSE(one.elector->leading()) << "given up at the renew deadline";
  EXPECT_GE(now - stopped, 5s) << "lease_duration - renew_deadline, for writes in flight";
  EXPECT_LE(one.elector->takeover_after(), now);
  EXPECT_GE(now - died, 13s);
  EXPECT_LE(now - died, 15s + 5s);
  EXPECT_EQ(spec("holderIdentity"), "two");
  EXPECT_EQ(spec("leaseTransitions"), 1);
  EXPECT_EQ(two.observed, (std::vector<std::string>{"saw one", "saw two", "started"}));
}

TEST_F(LeaderElectionTest, ReleaseHandsTheLeaseOverWithoutWaitingForItsDuration) {
  auto ended = sim.start(one.elector->run());
  sim.clock.run_for(10s);
  Candidate standby{sim, server, "standby", 3};  // It never led, and releases nothing.
  const int writes = server.writes;
  standby.elector->stop();
  sim.start(standby.elector->release());
  sim.clock.run_for(500ms);
  EXPECT_EQ(server.writes, writes);
  one.elector->stop();
  auto released = sim.start(one.elector->release());
  sim.clock.run_for(1s);
  EXPECT_TRUE(*ended && *released);
  EXPECT_FALSE(one.elector->may_write());
  EXPECT_EQ(spec("holderIdentity"), "");
  EXPECT_EQ(spec("leaseDurationSeconds"), 1);
  EXPECT_EQ(spec("leaseTransitions"), 0);
}

TEST_F(LeaderElectionTest, ReleaseWaitsForARenewalThatIsOnItsWay) {
  run(one, 1900ms);
  server.after = [](Answer& answer) { answer.takes = 500ms; };
  sim.clock.run_for(300ms);  // The renewal of second two is in flight.
  one.elector->stop();
  auto released = sim.start(one.elector->release());
  sim.clock.run_for(2s);
  EXPECT_TRUE(*released);
  EXPECT_EQ(spec("holderIdentity"), "");
}

// A renewTime that lies a year ahead is of a skewed clock. The holder says how long its Lease is good for: its flags
// may be others than ours.
TEST_F(LeaderElectionTest, ALeaseOfSomebodyElseIsTimedByTheLocalClockAndTheDurationThatItNames) {
  for (const auto& [seconds, renewed] :
       {std::pair(15, "2027-01-01T00:00:00.000000Z"), std::pair(60, "2026-01-01T00:00:00.000000Z")}) {
    held_by_another(seconds, renewed, 7);
    Candidate candidate{sim, server, "candidate", 1};
    run(candidate, (seconds - 1) * 1s);
    EXPECT_FALSE(candidate.elector->leading()) << seconds;
    sim.clock.run_for(6s);
    EXPECT_TRUE(candidate.elector->leading()) << seconds;
    EXPECT_EQ(spec("leaseTransitions"), 8);
    candidate.elector->stop();
    sim.clock.run_for(1s);
  }
}

// As after SIGSTOP: time passes, nothing of ours runs, nobody else takes the Lease.
TEST_F(LeaderElectionTest, AServerThatDoesNotAnswerCostsTheLeadershipAtTheDeadlineNotLater) {
  run(one, 20s);
  ASSERT_TRUE(one.elector->may_write());
  const MonoTime renewed = one.transport.times.back();
  server.before = [](const k8s::HttpRequest&) { return Answer::json(200, "{}", 1h); };
  sim.clock.run_for(9s);
  EXPECT_TRUE(one.elector->leading());
  sim.clock.run_for(2s);
  EXPECT_FALSE(one.elector->may_write());
  EXPECT_FALSE(one.elector->leading());
  sim.clock.run_for(49s);
  EXPECT_FALSE(one.elector->may_write());
  EXPECT_LE(one.elector->takeover_after(), renewed + 15s);
  server.before = nullptr;
  sim.clock.run_for(10s);
  EXPECT_TRUE(one.elector->may_write()) << "nobody took it: ours again";
  EXPECT_EQ(spec("leaseTransitions"), 0);
}

// The API server counts from when it has written the renewal, which is before the answer arrives.
TEST_F(LeaderElectionTest, ARenewalThatIsAnsweredLateCountsFromWhenItWasSent) {
  run(one, 20s);
  server.after = [](Answer& answer) { answer.takes = 4s; };
  sim.clock.run_for(3s);
  const MonoTime sent = one.transport.times.back();
  EXPECT_LT(sent, sim.clock.monotonic());
  sim.clock.run_until([&] { return one.elector->takeover_after() != sent - 2s + 15s; }, 4s);
  EXPECT_EQ(one.elector->takeover_after(), sent + 15s);
  EXPECT_GE(sim.clock.monotonic(), sent + 4s) << "known only now";
}

TEST_F(LeaderElectionTest, AFewFailedRenewalsAreSurvivedAndALeaseTakenByForceIsGivenUpAtOnce) {
  run(one, 20s);
  one.unplugged = true;
  sim.clock.run_for(7s);
  EXPECT_TRUE(one.elector->may_write());
  one.unplugged = false;
  sim.clock.run_for(4s);
  EXPECT_TRUE(one.elector->may_write());
  EXPECT_EQ(one.observed, (std::vector<std::string>{"saw one", "started"}));
  EXPECT_FALSE(one.errors.empty());
  bool once = true;  // A renewal whose answer was lost is recognised as its own.
  server.after = [&](Answer& answer) {
    if (std::exchange(once, false)) answer = Answer::broken();
  };
  sim.clock.run_for(10s);
  EXPECT_TRUE(one.elector->may_write());
  EXPECT_EQ(spec("leaseTransitions"), 0);
  server.lease["spec"]["holderIdentity"] = "thief";
  server.lease["metadata"]["resourceVersion"] = std::to_string(++server.version);
  sim.clock.run_for(2s);
  EXPECT_FALSE(one.elector->leading());
  EXPECT_FALSE(one.elector->may_write());
}

// Only an answer renews a Lease. Where no other replica has taken it, the same one leads again, as the same leader.
TEST_F(LeaderElectionTest, AMinuteOfRefusalsCostsTheLeadershipForThatMinuteAndNotTheLease) {
  run(one, 20s);
  const Json acquired = spec("acquireTime");
  server.before = [](const k8s::HttpRequest&) { return Answer::status_of(429, "TooManyRequests", "slow down", "1"); };
  sim.clock.run_for(11s);
  EXPECT_FALSE(one.elector->leading());
  EXPECT_FALSE(one.elector->may_write());
  sim.clock.run_for(49s);
  server.before = nullptr;
  EXPECT_TRUE(sim.clock.run_until([&] { return one.elector->leading(); }, 6s));
  EXPECT_EQ(spec("holderIdentity"), "one");
  EXPECT_EQ(spec("leaseTransitions"), 0);
  EXPECT_EQ(spec("acquireTime"), acquired);
}

TEST_F(LeaderElectionTest, LosingTheRaceForAFreeLeaseIsNoErrorAndForbiddenIsOneThatIsRetried) {
  server.before = [](const k8s::HttpRequest& request) -> std::optional<Answer> {
    if (request.method == k8s::Method::post) return Answer::status_of(409, "AlreadyExists", "exists");
    return std::nullopt;
  };
  run(one, 1s);
  EXPECT_FALSE(one.elector->leading());
  EXPECT_TRUE(one.errors.empty());
  server.before = [](const k8s::HttpRequest&) { return Answer::status_of(403, "Forbidden", "leases is forbidden"); };
  sim.clock.run_for(30s);
  EXPECT_FALSE(one.elector->leading());
  ASSERT_GE(one.errors.size(), 5U);
  EXPECT_EQ(one.errors.front().reason, k8s::Reason::forbidden);
  server.before = nullptr;
  sim.clock.run_for(10s);
  EXPECT_TRUE(one.elector->leading());
}

TEST(LeaderElectionOptionsTest, RelationsBetweenDurationsAreChecked) {
  struct Case {
    const char* name;
    Duration lease;
    Duration renew;
    Duration retry;
    const char* message;  // Empty: valid.
  };
  const Case cases[] = {
      {"the defaults", 15s, 10s, 2s, ""},
      {"lease not longer than the deadline", 10s, 10s, 2s,
       "lease-duration 10s must be greater than renew-deadline 10s"},
      {"deadline not longer than 1.2 retries", 15s, 2400ms, 2s,
       "renew-deadline 2.4s must be greater than retry-period 2s times 1.2"},
      {"lease of a broken second", 1900ms, 1800ms, 500ms, "lease-duration 1.9s must be whole seconds"},
      {"lease under a second", 900ms, 500ms, 100ms, "lease-duration 900ms must be at least 1s"},
      {"retry of zero", 15s, 10s, 0s, "retry-period 0s must be greater than 0"},
  };
  for (const Case& c : cases) {
    LeaderElectionOptions options;
    options.lease = {"ns", "name"};
    options.identity = "me";
    options.lease_duration = c.lease;
    options.renew_deadline = c.renew;
    options.retry_period = c.retry;
    const k8s::Result<void> valid = validate(options);
    EXPECT_EQ(valid.has_value() ? "" : valid.error().message, c.message) << c.name;
  }
}

}  // namespace
}  // namespace gso::leader_election_test
