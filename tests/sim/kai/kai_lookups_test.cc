// Look-ups of groups and waiting pods: what is asked, how often, and how much at a time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "controller/kai/kai_lookups.h"
#include "k8sclient/api/client.h"
#include "tests/sim/kai/kai_checks_fixture.h"

namespace gso::sim::kai_lookups_test {
namespace {

using namespace kai_test;
using namespace std::chrono_literals;

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
    const k8s::MonoTime now = sim.clock.monotonic();
    return static_cast<std::size_t>(std::ranges::count_if(world.kai.lookups.groups, [&](const auto& entry) {
      return entry.first.starts_with(prefix) && now - entry.second.at < 30s;
    }));
  }
  // Their answers, an hour old: a live consumer, or none.
  void known(const KaiWants& wants, bool alive) {
    KaiPod pod;
    pod.phase = Interned("Running");
    for (const std::string& group : wants.groups)
      world.kai.lookups.groups[group] = {sim.clock.monotonic() - 1h, alive ? std::vector{pod} : std::vector<KaiPod>{}};
  }
  int woken = 0;
  InProcessTransport slow{server, {.user = "a", .user_agent = "b", .latency = 100ms}};
  k8s::ApiClient through{&slow, &sim.clock, {}};
  KaiReader reads{&through, &sim.clock, &world, &settings, log};
  TaskGroup tasks{&sim.clock};
  LookupQueue lookups{
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
    const LookupResults& answers = world.kai.lookups;
    return std::vector<k8s::MonoTime>{answers.groups.at("g").at, answers.pods.at({kTeam, "p"}).at,
                                      answers.binder_lease.value().at};
  };
  const std::vector<k8s::MonoTime> before = times();
  sim.clock.run_for(10s);
  FaultRule rule;
  slow.faults().add(rule);
  woken = 0;
  ask(wants);
  EXPECT_EQ(times(), before);
  EXPECT_GT(woken, 0) << "to ask again";
}

TEST_F(LookUps, AskAFewAtATimeAndReportNowAndThen) {
  const std::uint64_t before = slow.requests();
  lookups.want(groups(1000, "a"));
  EXPECT_TRUE(lookups.busy());
  sim.clock.run_for(2s);
  EXPECT_NEAR(static_cast<double>(slow.requests() - before), 20.0 * LookupQueue::kAtOnce, 10.0);
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
  for (int i = 0; i < 3 * LookupQueue::kRenewals; ++i) {
    const std::string name = fmt::format("p{:03}", i);
    send(k8s::Method::post, kTeamPods, kai_fraction_pod(name, 2, "kai-scheduler"));
    wants.pods.insert({kTeam, name});
    world.kai.lookups.pods[{kTeam, name}] = {sim.clock.monotonic() - 1h, true};
  }
  sim.clock.run_for(2 * settings.sweep);
  const std::uint64_t before = slow.requests();
  for (int i = 0; i < 50; ++i) ask(wants, 1s);
  EXPECT_EQ(slow.requests() - before, static_cast<std::uint64_t>(LookupQueue::kRenewals));
  const auto renewed = std::ranges::count_if(
      world.kai.lookups.pods, [&](const auto& entry) { return sim.clock.monotonic() - entry.second.at < 1min; });
  EXPECT_EQ(renewed, LookupQueue::kRenewals) << "the oldest answers first, each once";
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
}  // namespace gso::sim::kai_lookups_test
