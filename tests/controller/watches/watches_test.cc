// Watches by scope on the simulated API server: shared stores, lost scopes, refusals; and how long conditions hold.
#include <fmt/format.h>

#include "controller/runtime/held_since.h"
#include "controller/watches/dynamic_watches.h"
#include "tests/controller/our_cluster.h"

namespace gso::watches_test {
namespace {

using namespace std::chrono_literals;
using Kind = WatchScope::Kind;

WatchScope config_map(const std::string& ns, const std::string& name) {
  return {Kind::configmaps, ns, {}, name};
}
WatchScope pods(const std::string& ns, const std::string& app) {
  return {Kind::pods, ns, {{"app", app}}, ""};
}

class WatchesTest : public SimulatedServer {
 protected:
  WatchesTest() {
    for (const char* ns : {"one", "two"}) add_namespace(ns);
    for (const char* name : {"a", "b"})
      post("/api/v1/namespaces/one/configmaps",
           fmt::format(R"({{"metadata":{{"name":"{}"}},"data":{{"k":"v"}}}})", name));
  }
  ~WatchesTest() override {
    watches.stop();
    tasks.cancel();
    EXPECT_TRUE(sim.clock.run_until([&] { return tasks.size() == 0; }, 1min));
  }
  void want(std::vector<WatchScope> scopes, Duration then = 5s) {
    watches.want(std::move(scopes));
    sim.clock.run_for(then);
  }
  bool has(const std::string& name) const { return world.configmaps.find(k8s::ObjectKey{"one", name}) != nullptr; }

  World world;
  TaskGroup tasks{&sim.clock};
  int changes = 0;
  DynamicWatches watches{{&client, &world, {}, &tasks, sim.io.get_executor()},
                         {.complete = [this] { ++changes; }, .failed = [](const std::string&, const k8s::Error&) {}}};
};

TEST_F(WatchesTest, StoresCountAsSyncedAtOnceAndNamespacesSayWhatIsMissing) {
  watches.want({config_map("one", "a"), pods("two", "x")});
  EXPECT_TRUE(world.configmaps.synced());
  EXPECT_EQ(world.unsynced_namespaces, (std::set<std::string>{"one", "two"}));
  sim.clock.run_for(5s);
  EXPECT_TRUE(world.unsynced_namespaces.empty());
  EXPECT_EQ(changes, 3) << "both missing, one missing, none missing";
  EXPECT_TRUE(has("a"));
  EXPECT_FALSE(has("b"));
}

TEST_F(WatchesTest, AScopeThatIsNoLongerWantedKeepsItsObjectsUntilTheNewOneHasSynced) {
  want({config_map("one", "a")});
  ASSERT_TRUE(has("a"));
  transport.faults().add(always(sim::Fault::server_error, "configmaps"));
  want({config_map("one", "b")}, 1min);
  EXPECT_TRUE(has("a")) << "nothing is removed yet";
  EXPECT_TRUE(world.unsynced_namespaces.contains("one"));
  EXPECT_TRUE(world.refused_namespaces.empty()) << "a server error is no refusal";
  transport.faults().clear();
  sim.clock.run_for(1min);
  EXPECT_TRUE(has("b"));
  EXPECT_FALSE(has("a"));
  EXPECT_EQ(server.open_watches(), 1U);
}

TEST_F(WatchesTest, AnObjectThatTwoScopesHoldStaysUntilBothHaveLostIt) {
  post("/api/v1/namespaces/one/pods", R"({"metadata":{"name":"p","labels":{"app":"plugin","tier":"gpu"}},
    "spec":{"containers":[{"name":"c","image":"i"}]}})");
  WatchScope by_tier = pods("one", "plugin");
  by_tier.labels = {{"tier", "gpu"}};
  const auto pod = [this] { return world.operand_pods.find(k8s::ObjectKey{"one", "p"}); };
  want({pods("one", "plugin"), by_tier});
  ASSERT_NE(pod(), nullptr);
  want({by_tier});
  EXPECT_NE(pod(), nullptr);
  remove("/api/v1/namespaces/one/pods/p?gracePeriodSeconds=0");
  sim.clock.run_for(5s);
  EXPECT_EQ(pod(), nullptr);
}

TEST_F(WatchesTest, MoreScopesThanItMayOpenAreNamedAndTheRecordIsNotAmongThem) {
  std::vector<WatchScope> scopes;
  for (std::size_t i = 0; i < DynamicWatches::kMost + 1; ++i) scopes.push_back(pods(fmt::format("n{:03}", i), "x"));
  scopes.push_back(config_map("one", "a"));
  want(scopes);
  EXPECT_TRUE(has("a"));
  EXPECT_EQ(watches.open(), DynamicWatches::kMost);
  EXPECT_EQ(watches.beyond(), (std::set<std::string>{"n255", "n256"}));
  EXPECT_EQ(world.unsynced_namespaces, watches.beyond());
  EXPECT_EQ(world.refused_namespaces, watches.beyond()) << "no retry opens them";
  want({config_map("one", "a")});
  EXPECT_TRUE(world.unsynced_namespaces.empty());
}

TEST_F(WatchesTest, ARefusedScopeIsReportedAndDoesNotHoldTheOthersBack) {
  transport.faults().add(always(sim::Fault::forbidden, "pods"));
  want({config_map("one", "a"), pods("two", "x")});
  EXPECT_TRUE(has("a"));
  ASSERT_EQ(watches.refused().size(), 1U);
  EXPECT_EQ(to_string(watches.refused()[0].scope), "pods of two (app=x)");
  EXPECT_TRUE(watches.loading().empty());
  EXPECT_EQ(world.unsynced_namespaces, (std::set<std::string>{"two"}));
  EXPECT_EQ(world.refused_namespaces, (std::set<std::string>{"two"}));
  transport.faults().clear();
  sim.clock.run_for(2min);
  EXPECT_TRUE(watches.refused().empty());
  EXPECT_TRUE(world.unsynced_namespaces.empty());
  EXPECT_TRUE(world.refused_namespaces.empty());
}

TEST_F(WatchesTest, WantingTheSameTwiceOpensNothingAndAScopeDroppedBeforeItsWatchBeganIsHarmless) {
  watches.want({config_map("one", "a")});
  want({config_map("one", "b"), pods("one", "x")});
  EXPECT_FALSE(has("a"));
  EXPECT_TRUE(has("b"));
  const std::uint64_t requests = transport.requests();
  want({pods("one", "x"), config_map("one", "b")});
  EXPECT_EQ(transport.requests(), requests);
}

Plan naming(std::vector<std::string> nodes) {
  Plan plan;
  for (std::string& node : nodes) plan.timers.push_back({Timer::verifying, std::move(node), ""});
  return plan;
}

const TimerKey kOne{Timer::verifying, "one", ""};
const TimerKey kOther{Timer::verifying, "other", ""};

class HeldSinceTest : public testing::Test {
 protected:
  void observe(const Plan& plan) { held_since.observe(plan, sim.clock.now(), sim.clock.monotonic()); }
  // -1 s: it does not run.
  k8s::Duration age(const TimerKey& timer) {
    const Timers timers = held_since.timers(sim.clock.now(), sim.clock.monotonic());
    return timers.contains(timer) ? sim.clock.now() - timers.at(timer) : k8s::Duration(-1s);
  }
  Sim sim;
  HeldSince held_since;
};

TEST_F(HeldSinceTest, ATimerRunsFromThePassThatFirstNamedItAndAGapStartsItAnew) {
  observe(naming({"one"}));
  sim.clock.run_for(30s);
  observe(naming({"one", "other"}));
  EXPECT_EQ(age(kOne), 30s);
  EXPECT_EQ(age(kOther), 0s);
  observe(naming({"other"}));
  EXPECT_EQ(age(kOne), -1s);
  observe(naming({"one"}));
  EXPECT_EQ(age(kOne), 0s);
}

TEST_F(HeldSinceTest, CreditIsForTheFirstPassOnlyAndAJumpOfTheWallClockShortensNothing) {
  held_since = HeldSince(1h);
  observe(naming({"one"}));
  observe(naming({"one", "other"}));
  sim.clock.jump_wall_clock(2h);
  EXPECT_EQ(age(kOne), 1h);
  EXPECT_EQ(age(kOther), 0h);
  held_since.reset();
  observe(naming({"one"}));
  EXPECT_EQ(age(kOne), 0h);
}

// Two clocks are never read in one moment, and the wall clock is adjusted all the time.
TEST_F(HeldSinceTest, AClockThatIsAdjustedSlowlyIsFollowed) {
  observe(naming({"one"}));
  for (int i = 0; i < 100; ++i) {
    sim.clock.jump_wall_clock(1ms);
    sim.clock.run_for(1s);
    EXPECT_LT(std::chrono::abs(age(kOne) - (i + 1) * 1s), 5ms);
  }
}

// It is over with the first pass that could name all timers.
TEST_F(HeldSinceTest, AStoredStartCountsOnlyAtTheFirstLookAndNeverLiesInTheFuture) {
  Plan incomplete = naming({"early"});
  incomplete.timers_complete = false;
  observe(incomplete);
  EXPECT_TRUE(held_since.first_look());
  sim.clock.run_for(30s);
  Plan plan = naming({"early", "one", "other"});
  plan.timer_starts[kOne] = sim.clock.now() - 40min;
  plan.timer_starts[kOther] = sim.clock.now() + 1h;
  observe(plan);
  EXPECT_FALSE(held_since.first_look());
  EXPECT_EQ(age(kOne), 40min);
  EXPECT_EQ(age(kOther), 0s);
  EXPECT_EQ(age({Timer::verifying, "early", ""}), 30s);
  observe({});
  observe(plan);
  EXPECT_EQ(age(kOne), 0s);
}

TEST_F(HeldSinceTest, AStoredTimeBeginsItsTimerInAnyLookAndAStepOfTheWallClockMovesBoth) {
  for (const auto step : {-1h, 1h}) {
    held_since = HeldSince(5h);
    observe({});
    Plan plan;
    for (const int minutes : {-40, 40}) {
      const k8s::WallTime time = sim.clock.now() + minutes * 1min;
      plan.timers.push_back(stored_time("n1", "deferral", time));
      plan.timer_starts[plan.timers.back()] = time;
    }
    observe(plan);
    sim.clock.run_for(5min);
    sim.clock.jump_wall_clock(step);
    observe(plan);
    EXPECT_EQ(age(plan.timers[0]), 45min);
    EXPECT_EQ(age(plan.timers[1]), 5min) << "it lay in the future";
  }
}

}  // namespace
}  // namespace gso::watches_test
