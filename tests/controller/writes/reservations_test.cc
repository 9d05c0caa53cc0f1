// Deletions of KAI's reservation pods: what the last look does not confirm stays, and what it confirms is deleted with
// its preconditions and under the Lease.
#include <gmock/gmock.h>

#include <chrono>

#include "reconcilers/registry.h"
#include "tests/controller/writes/executor_fixture.h"

namespace gso::reservations_test {
namespace {

using namespace executor_test;
using namespace std::chrono_literals;
using Json = nlohmann::json;
using k8s::test::Answer;
using testing::ElementsAre;
using testing::IsEmpty;

const std::string kPods = "DELETE /api/v1/namespaces/gpu-operator/pods/";

// Of version 7, with the uid u-<name>.
PlannedAction deletion(const std::string& name) {
  PlannedAction planned = drop_pod("", name, "u-" + name);
  planned.reconciler = kReservationGc;
  std::get<DeletePod>(planned.action).resource_version = "7";
  return planned;
}

// The last look confirms all but those in `kept`.
class Reservations : public ExecutorTest {
 protected:
  Reservations() {
    still_due = [this](std::vector<PlannedAction> deletions) {
      ++looks;
      if (at_look) at_look();
      std::set<k8s::ObjectKey> due;
      for (const PlannedAction& one : deletions) {
        const DeletePod& action = std::get<DeletePod>(one.action);
        if (!kept.contains(action.pod.name)) due.insert(action.pod);
      }
      return due;
    };
    make_executor();
  }
  std::set<std::string> kept;
  int looks = 0;
  std::function<void()> at_look;  // What happens meanwhile.
};

TEST_F(Reservations, OnlyWhatTheLastLookConfirmsIsDeletedByUidAndVersion) {
  kept = {"r2"};
  const Execution done = execute({deletion("r1"), deletion("r2")});
  ASSERT_THAT(writes(), ElementsAre(kPods + "r1"));
  EXPECT_EQ(sent_body()["preconditions"], Json::parse(R"({"uid":"u-r1","resourceVersion":"7"})"));
  EXPECT_EQ(looks, 1) << "at all of them together";
  EXPECT_EQ(done.deferred, 1U);
  EXPECT_EQ(done.requeue_after, 1s);
}

TEST_F(Reservations, WhereNoneIsConfirmedTheNextLookIsLater) {
  kept = {"r1", "r2"};
  EXPECT_EQ(execute({deletion("r1"), deletion("r2")}).requeue_after, 10s);
  EXPECT_THAT(writes(), IsEmpty());
}

TEST_F(Reservations, WithoutALastLookOrALeaseThatLastsThroughItNoneIsDeleted) {
  at_look = [this] { leading = false; };
  EXPECT_EQ(execute({deletion("r1")}).deferred, 1U);
  EXPECT_THAT(writes(), IsEmpty());
  leading = true;
  still_due = nullptr;
  make_executor();
  EXPECT_EQ(execute({deletion("r1")}).deferred, 1U);
  EXPECT_THAT(transport.requests, IsEmpty());
}

// One that the server refuses again and again lets the others of its node go first (reservation_gc.cc).
TEST_F(Reservations, ARefusedDeletionIsRememberedForThePlanner) {
  script["DELETE"] = [] { return Answer::status_of(409, "Conflict", "Precondition failed: ResourceVersion"); };
  for (int attempt = 1; attempt <= 3; ++attempt) {
    execute({deletion("r1")});
    const LookupResults::Refusal& refusal = world.kai.lookups.refusals["u-r1"];
    EXPECT_EQ(refusal.count, attempt);
    EXPECT_EQ(refusal.at, sim.clock.monotonic());
    sim.clock.run_for(10min);
  }
}

// Of KAI's reservation pods every deletion rests on a look that was made just before it.
TEST_F(Reservations, ADeletionIsSentOncePerLookWhateverTheAnswer) {
  const PlannedAction reservation = deletion("r1");
  struct Case {
    const char* name;
    Answer answer;
  };
  const Case cases[] = {
      {"429", Answer::status_of(429, "TooManyRequests", "slow down", "1")},
      {"503 with Retry-After", Answer::status_of(503, "ServiceUnavailable", "starting", "1")},
      {"503", Answer::status_of(503, "ServiceUnavailable", "starting")},
      {"500", Answer::status_of(500, "InternalError", "etcd")},
      {"the stream is lost", Answer::broken()},
      {"409: it changed", Answer::status_of(409, "Conflict", "Precondition failed: ResourceVersion")},
  };
  for (const Case& c : cases) {
    script["DELETE"] = [&] { return c.answer; };
    looks = 0;
    const Execution done = execute({reservation});
    EXPECT_THAT(writes(), ElementsAre(kPods + "r1")) << c.name;
    EXPECT_EQ(done.failed, 1U) << c.name;
    EXPECT_TRUE(done.requeue_after.has_value()) << c.name;
    sim.clock.run_for(10min);  // Past any backoff.
    script.clear();
    EXPECT_EQ(execute({reservation}).succeeded, 1U) << c.name;
    EXPECT_EQ(looks, 2) << c.name << ": another attempt takes another look";
  }
}

}  // namespace
}  // namespace gso::reservations_test
