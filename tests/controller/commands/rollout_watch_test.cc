// `rollout status --wait` and `--watch` on the simulated API server: what ends the wait, its lines, and the tree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "controller/commands/live/live_screen.h"
#include "controller/commands/rollout/rollout.h"
#include "controller/commands/shared/command.h"
#include "controller/commands/shared/print.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/fleet/pass.h"
#include "tests/change_words/change_words.h"
#include "tests/controller/commands/rollout_commands.h"

namespace gso::rollout_watch_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

boost::asio::awaitable<void> into(boost::asio::awaitable<int> watch, std::optional<int>* code) {
  const int ended = co_await std::move(watch);
  *code = ended;
}

class RolloutWatch : public RolloutCommand {
 protected:
  void begin(const std::string& name = "", Screen screen = {}) {
    options.name = name;
    if (screen.is_terminal()) {
      LiveScreen::Parts parts;
      parts.clock = &sim.clock;
      parts.stop = stop.get();
      parts.out = &out;
      parts.measure = [screen] { return screen; };
      live = std::make_unique<LiveScreen>(std::move(parts));
    }
    FleetWatch watch = watch_of_rollouts(options, {}, PlannerSettings());
    watch.client = &client;
    watch.clock = &sim.clock;
    watch.stop = stop.get();
    ended = sim.start(into(live ? live->run(watch, errors) : watch_fleet(watch, &out, errors), &code));
    sim.clock.run_for(2s);
  }
  void wait_for(const std::string& name = "") {
    options.wait = true;
    begin(name);
  }
  void phase(const std::string& name, const std::string& phase, const std::string& reason) {
    const Json condition{{"type", "Ready"},
                         {"status", "False"},
                         {"reason", reason},
                         {"message", "as reported"},
                         {"lastTransitionTime", "2026-01-01T00:00:00Z"}};
    merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/" + name + "/status",
          Json{{"status", {{"phase", phase}, {"conditions", Json::array({condition})}}}}.dump());
    sim.clock.run_for(2s);
  }
  int result() {
    EXPECT_TRUE(sim.clock.run_until([&] { return *ended; }, 1min));
    return code.value_or(-1);
  }

  std::unique_ptr<k8s::Signal> stop = sim.clock.make_signal();
  std::ostream* errors = &err;
  std::unique_ptr<LiveScreen> live;
  std::shared_ptr<bool> ended;
  std::optional<int> code;
};

TEST_F(RolloutWatch, EndsWith0WhenTheNamedRolloutIsCompleted) {
  rollout("r", "Progressing", "v1-2");
  wait_for("r");
  EXPECT_FALSE(*ended);
  EXPECT_THAT(out.str(), HasSubstr("r: Progressing (RollingOut): 2/4 up to date, 1 in progress"));
  phase("r", "Completed", "Completed");
  EXPECT_EQ(result(), 0);
  EXPECT_THAT(out.str(), testing::EndsWith("rollout r is Completed\n"));
}

TEST_F(RolloutWatch, EndsWith1WhenItFailedOrSomebodyAbortedIt) {
  rollout("r", "Progressing", "v1-2");
  wait_for("r");
  phase("r", "Paused", "MaxFailures");
  EXPECT_EQ(result(), 1);
  EXPECT_THAT(out.str(), HasSubstr("stopped: rollout r is Stopped (MaxFailures): as reported\n"));
}

TEST_F(RolloutWatch, EndsWith1WhereItWasAbortedEvenIfItIsPausedAsWell) {
  record(print_head({edit_behind_pods_of({"gpu-1"})}));
  const std::string r = rollout_name({"default", "gpu-operator/mps-config", "any"}, target());
  rollout(r, "Paused", target(), "any", "version: v1\n", "default", "Paused");
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/" + r, R"({"spec":{"paused":true,"aborted":true}})");
  merge("/apis/gpusharing.dev/v1alpha1/sharingpolicies/default", R"({"spec":{"rollout":{"paused":true}}})");
  for (const std::string& name : {std::string(), r}) {
    out.str("");
    wait_for(name);
    EXPECT_EQ(result(), 1) << out.str();
    EXPECT_THAT(out.str(), HasSubstr("stopped: "));
  }
}

TEST_F(RolloutWatch, WaitsForAPauseToBeLiftedUntilTheTimeout) {
  rollout("r", "Progressing", "v1-2");
  options.timeout = 5min;
  wait_for("r");
  phase("r", "Paused", "Paused");
  sim.clock.run_for(2min);
  EXPECT_FALSE(*ended);
  sim.clock.run_for(4min);
  EXPECT_EQ(result(), 3);
  EXPECT_THAT(err.str(), HasSubstr("rollout status: timed out after 5m0s waiting for rollout r: rollout r is Paused "
                                   "(Paused): as reported; 1 of 1 nodes are not up to date: gpu-1\n"));
}

// Whoever reads the log of a pipeline sees what it has waited for, and what the nodes wait for.
TEST_F(RolloutWatch, ATimeoutNamesTheRolloutsTheNodesAndTheirSteps) {
  record_gpu_1("v1-0");
  test::ChangeWords change;
  change.to = target();
  merge("/api/v1/nodes/gpu-1", nlohmann::json{{"metadata", {{"annotations", test::write_change(change)}}}}.dump());
  rollout("r", "Progressing", target());
  options.timeout = 1min;
  for (const auto& [name, whom] : {std::pair{"", "all rollouts"}, std::pair{"policy/default", "policy default"}}) {
    err.str("");
    wait_for(name);
    sim.clock.run_for(2min);
    EXPECT_EQ(result(), 3);
    EXPECT_THAT(err.str(), HasSubstr(std::string("timed out after 1m0s waiting for ") + whom +
                                     ": 1 of 1 nodes are not up to date: gpu-1; rollout r is not Completed\n"));
    EXPECT_THAT(err.str(), testing::ContainsRegex("\n  node gpu-1 \\([A-Z][a-z]+\\): .+\n"));
  }
  err.str("");
  wait_for("r");
  sim.clock.run_for(2min);
  EXPECT_EQ(result(), 3);
  EXPECT_THAT(err.str(),
              HasSubstr("waiting for rollout r: rollout r is Progressing (RollingOut): it is so; 1 of 1 nodes "
                        "are not up to date: gpu-1\n"));
}

// A failed node is not up to date either, and it does not come by itself.
TEST_F(RolloutWatch, ATimeoutNamesFailedNodesBesideThoseThatMove) {
  record_gpu_1("v1-0");
  fail("gpu-1");
  post("/api/v1/nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-2",
      "labels":{"nvidia.com/gpu.present":"true","nvidia.com/gpu.count":"2"}},
      "status":{"capacity":{"nvidia.com/gpu":"4"},"allocatable":{"nvidia.com/gpu":"4"},
                "conditions":[{"type":"Ready","status":"True"}]}})");
  options.timeout = 1min;
  wait_for();
  sim.clock.run_for(2min);
  EXPECT_EQ(result(), 3);
  EXPECT_THAT(err.str(), HasSubstr(": 2 of 2 nodes are not up to date: gpu-2; failed: gpu-1\n"));
}

// Between an edit and its SharingRollout only the nodes show that something is to be done.
TEST_F(RolloutWatch, DoesNotEndInTheSettleWindow) {
  record_gpu_1("v1-0");
  wait_for();
  EXPECT_FALSE(*ended) << out.str();
  EXPECT_THAT(out.str(), HasSubstr("1 of 1 nodes are not up to date: gpu-1"));
  options.timeout = 1min;
}

TEST_F(RolloutWatch, ACompleteFleetEndsItAtOnce) {
  record_gpu_1(target());
  serve_gpu_1();
  wait_for("policy/default");
  EXPECT_EQ(result(), 0) << out.str();
  EXPECT_THAT(out.str(), HasSubstr("1 of 1 nodes are up to date\n"));
}

// Regression: a pipeline went on over a node that did not show what its rollout had made of it.
TEST_F(RolloutWatch, WaitsForTheRepairOfANodeThatDriftsAlsoAfterItsRollout) {
  record_gpu_1(target());  // And no pod of the plugin runs on it.
  rollout("r", "Completed", target(), "any", "version: v1\n", "default", "Completed");
  options.timeout = 1min;
  for (const auto& [name, begins] :
       {std::pair{"", ""}, {"policy/default", ""}, {"r", "rollout r is Completed; now "}}) {
    err.str("");
    wait_for(name);
    EXPECT_FALSE(*ended) << out.str();
    sim.clock.run_for(2min);
    EXPECT_EQ(result(), 3) << name;
    EXPECT_THAT(err.str(),
                HasSubstr(std::string(": ") + begins + "1 of 1 nodes are not up to date: drifting: gpu-1\n"));
  }
  serve_gpu_1();
  wait_for("r");
  EXPECT_EQ(result(), 0);
  EXPECT_THAT(out.str(), testing::EndsWith("rollout r is Completed\n"));
}

// Regression: a pipeline went on over a node whose repair had failed since the rollout.
TEST_F(RolloutWatch, EndsWith1WhereANodeOfTheCompletedRolloutHasFailedAndNamesIt) {
  record_gpu_1(target());
  rollout("r", "Completed", target(), "any", "version: v1\n", "default", "Completed");
  fail("gpu-1");
  sim.clock.run_for(1s);
  wait_for("r");
  EXPECT_EQ(result(), 1) << out.str();
  EXPECT_THAT(out.str(), testing::EndsWith("stopped: rollout r is Completed; now 1 of 1 nodes are not up to date: "
                                           "failed: gpu-1\n"));
}

TEST_F(RolloutWatch, DriftFromBeforeTheOperatorIsNamedAndNotWaitedFor) {
  FleetRecord kept = record_with_gpu_1(target());
  const std::string uid = get("/api/v1/nodes/gpu-1")["metadata"]["uid"];
  MachineRecord gpu_1 = *kept.machines.find(machine_id(uid));
  gpu_1.drift = true;
  kept.machines.set(machine_id(uid), gpu_1);
  record(print_head({kept}));
  wait_for();
  EXPECT_EQ(result(), 0) << out.str();
  EXPECT_THAT(out.str(), HasSubstr("0 of 1 nodes are up to date; gpu-1 drifts, and the operator repairs that only on "
                                   "request\n"));
}

// Whoever holds a node decides when it is changed: a pipeline does not wait for them.
TEST_F(RolloutWatch, EndsWith0WhereOnlyHeldNodesAreLeftAndNamesWhoHoldsThem) {
  record(print_head({edit_behind_pods_of({"gpu-1"})}));
  merge("/api/v1/nodes/gpu-1", R"({"metadata":{"annotations":{"gpusharing.dev/hold":"true"}}})");
  const std::string r = rollout_name({"default", "gpu-operator/mps-config", "any"}, target());
  rollout(r, "Progressing", target(), "any", "version: v1\n", "default", "Held");
  for (const std::string& name : {std::string(), std::string("policy/default"), r}) {
    out.str("");
    wait_for(name);
    EXPECT_EQ(result(), 0) << out.str();
    EXPECT_THAT(out.str(), HasSubstr("0 of 1 nodes are up to date; gpu-1 is held (annotation gpusharing.dev/hold is "
                                     "set)\n"));
  }
}

// A driver upgrade ends by itself, and the node is changed then.
TEST_F(RolloutWatch, WaitsForANodeInADriverUpgrade) {
  record(print_head({edit_behind_pods_of({"gpu-1"})}));
  merge("/api/v1/nodes/gpu-1", R"({"metadata":{"labels":{"nvidia.com/gpu-driver-upgrade-state":"drain-required"}}})");
  const std::string r = rollout_name({"default", "gpu-operator/mps-config", "any"}, target());
  rollout(r, "Progressing", target(), "any", "version: v1\n", "default", "DriverUpgrade");
  options.timeout = 1min;
  wait_for();
  EXPECT_FALSE(*ended) << out.str();
  sim.clock.run_for(2min);
  EXPECT_EQ(result(), 3);
}

// A pipeline that names a policy wrongly must not go on.
TEST_F(RolloutWatch, APolicyThatDoesNotExistEndsItWith1) {
  record_gpu_1(target());
  wait_for("policy/nosuch");
  EXPECT_EQ(result(), 1);
  EXPECT_THAT(out.str(), HasSubstr("stopped: SharingPolicy nosuch does not exist; found default\n"));
}

TEST_F(RolloutWatch, AnInvalidProfileEndsItWith1) {
  record_gpu_1(target());
  merge("/api/v1/namespaces/gpu-operator/configmaps/mps-config", R"({"data":{"any":"version: v7\n"}})");
  wait_for();
  EXPECT_EQ(result(), 1) << out.str();
  EXPECT_THAT(out.str(), HasSubstr("stopped: a profile is invalid: node gpu-1: "));
}

TEST_F(RolloutWatch, AFailedNodeEndsItWith1) {
  record_gpu_1("v1-0");
  fail("gpu-1");
  wait_for();
  EXPECT_EQ(result(), 1) << out.str();
  EXPECT_THAT(out.str(), HasSubstr("stopped: "));
}

TEST_F(RolloutWatch, ALineIsPrintedOnceForEachChange) {
  rollout("r", "Progressing", "v1-2");
  wait_for("r");
  const std::string before = out.str();
  merge("/api/v1/nodes/gpu-1", R"({"metadata":{"annotations":{"example.com/a":"b"}}})");
  sim.clock.run_for(10s);
  EXPECT_EQ(out.str(), before);
  EXPECT_THAT(before, Not(HasSubstr("\x1b"))) << "for a log";
}

// Regression: a line for each attempt of each watch, with its raw URL.
TEST_F(RolloutWatch, AnOutageOfTheApiServerIsOneLineAndTheTimeoutNamesIt) {
  rollout("r", "Progressing", "v1-2");
  options.timeout = 5min;
  wait_for("r");
  transport.set_connected(false);
  sim.clock.run_for(4min);
  EXPECT_FALSE(*ended);
  const std::string log = out.str();
  const std::size_t line = log.find("incomplete: the API server cannot be reached since ");
  ASSERT_NE(line, std::string::npos) << log;
  EXPECT_THAT(log.substr(line), testing::ContainsRegex("Z, and this view is older: .*connection re(set|fused)"));
  EXPECT_EQ(log.find("cannot be reached", line + 60), std::string::npos) << log;
  EXPECT_THAT(log, AllOf(Not(HasSubstr("timeoutSeconds")), Not(HasSubstr("incomplete: watch"))));
  EXPECT_EQ(result(), 3);
  EXPECT_THAT(err.str(), testing::ContainsRegex("timed out after 5m0s waiting for rollout r: .*; the API server cannot "
                                                "be reached since "));
}

TEST_F(RolloutWatch, AnOperatorThatStopsIsReportedWhileItWaits) {
  rollout("r", "Progressing", "v1-2");
  wait_for("r");
  EXPECT_THAT(out.str(), Not(HasSubstr("No operator is running")));
  sim.clock.run_for(2h);
  EXPECT_THAT(out.str(), HasSubstr("\nNo operator is running: pod-1 has not renewed the Lease since "));
  EXPECT_FALSE(*ended) << "another one may come";
}

TEST_F(RolloutWatch, OnATerminalATreeIsRedrawnInTheAlternateScreenAndTheLastOneStays) {
  rollout("r", "Progressing", "v1-2");
  options.watch = true;
  begin("", {.columns = 80, .rows = 24, .colour = true, .utf8 = true});
  EXPECT_THAT(out.str(), testing::StartsWith("\x1b[?1049h\x1b[?25l\x1b[HReading the cluster ...\x1b[K\n"))
      << "the screen is not empty while the first view is read";
  EXPECT_THAT(out.str(), HasSubstr("\x1b[H"));
  EXPECT_THAT(out.str(), HasSubstr("\x1b[1mr\x1b[0m"));
  stop->notify();
  EXPECT_EQ(result(), 0);
  const std::size_t left = out.str().find("\x1b[?1049l");
  ASSERT_NE(left, std::string::npos);
  EXPECT_THAT(out.str().substr(left), HasSubstr("2/4 up to date, 1 in progress"));
}

TEST_F(RolloutWatch, OnATerminalTheTreeNamesWhatToTypeNext) {
  rollout("r", "Paused", "v1-2", "any", "version: v1\n", "default", "Paused");
  merge("/apis/gpusharing.dev/v1alpha1/sharingrollouts/r", R"({"spec":{"paused":true}})");
  options.watch = true;
  begin("", {.columns = 80, .rows = 24, .colour = false, .utf8 = true});
  EXPECT_THAT(out.str(), HasSubstr("  next: gpu-sharing-operator rollout resume r"));
  stop->notify();
  EXPECT_EQ(result(), 0);
}

// Regression: they were cut at the width, and with them the rule that is missing.
TEST_F(RolloutWatch, OnATerminalWhatCannotBeReadIsBrokenIntoLines) {
  sim::FaultRule rule;
  rule.fault = sim::Fault::forbidden;
  rule.resource = "leases";
  transport.faults().add(rule);
  options.watch = true;
  begin("", {.columns = 80, .rows = 24, .colour = false, .utf8 = true});
  const std::string page = out.str().substr(out.str().rfind("\x1b[H"));
  EXPECT_THAT(page, HasSubstr("incomplete: whether an operator runs is unknown: Lease"));
  EXPECT_THAT(page, HasSubstr("(docs/rights.md)"));
  stop->notify();
  EXPECT_EQ(result(), 0);
}

// What is written into the alternate screen is gone with it.
TEST_F(RolloutWatch, AnErrorIsPrintedOnceTheAlternateScreenIsLeft) {
  sim::FaultRule rule;
  rule.fault = sim::Fault::forbidden;
  rule.resource = "nodes";
  transport.faults().add(rule);
  options.watch = true;
  errors = &out;
  begin("", {.columns = 80, .rows = 24, .colour = true, .utf8 = true});
  EXPECT_EQ(result(), 2);
  EXPECT_THAT(out.str(), testing::ContainsRegex("1049h.*1049l.*gpu-sharing-operator rollout status: .*nodes"));
}

TEST(NodeFilterFlags, NameStatesThatExist) {
  NodeFilterFlags flags;
  flags.states = {"pending", "Failed"};
  flags.selector = "pool=a";
  const auto filter = node_filter_of(flags);
  ASSERT_TRUE(filter.has_value());
  k8s::StringMap labels;
  EXPECT_FALSE(filter->shows("Pending", "default", labels)) << "without the label";
  labels.set("pool", "a");
  EXPECT_TRUE(filter->shows("Pending", "default", labels));
  EXPECT_FALSE(filter->shows("UpToDate", "default", labels));
  flags.states = {"Blocked"};
  EXPECT_TRUE(node_filter_of(flags)->shows("Blocked(OutsideWindow)", "default", labels));
  flags.states = {"Blocked(OutsideWindow)"};  // As the table shows it.
  ASSERT_TRUE(node_filter_of(flags).has_value());
  EXPECT_TRUE(node_filter_of(flags)->shows("Blocked(OutsideWindow)", "default", labels));
  EXPECT_FALSE(node_filter_of(flags)->shows("Blocked(ConfigInvalid)", "default", labels));
  flags.states = {"Waiting"};  // As a SharingRollout has it.
  ASSERT_TRUE(node_filter_of(flags).has_value());
  EXPECT_TRUE(node_filter_of(flags)->shows("Draining", "default", labels));
  EXPECT_TRUE(node_filter_of(flags)->shows("Pending", "default", labels));
  EXPECT_FALSE(node_filter_of(flags)->shows("UpToDate", "default", labels));
  flags.states = {"Pendign"};
  ASSERT_FALSE(node_filter_of(flags).has_value());
  EXPECT_THAT(node_filter_of(flags).error().message, HasSubstr("'Pendign' is not a state; use Unmanaged, "));
  flags.states.clear();
  flags.selector = "a=(";
  EXPECT_FALSE(node_filter_of(flags).has_value());
}

TEST(ScreenText, IsCutByColumnsAndKeepsItsColour) {
  EXPECT_EQ(cut_to("abcdef", 0), "abcdef");
  EXPECT_EQ(cut_to("abcdef", 6), "abcdef");
  EXPECT_EQ(cut_to("abcdef", 5), "ab...");
  EXPECT_EQ(cut_to("├─ x", 4), "├─ x") << "columns, not bytes";
  EXPECT_EQ(columns_of("\x1b[31mred\x1b[0m"), 3U);
  EXPECT_EQ(cut_to("\x1b[31mabcdef\x1b[0m", 5), "\x1b[31mab...\x1b[0m");
}

TEST(ScreenText, APageHasNoMoreRowsThanTheScreen) {
  const Screen screen{.columns = 10, .rows = 4, .colour = false, .utf8 = false};
  EXPECT_EQ(page_of({{"a"}, {"b"}}, screen), "\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J");
  EXPECT_EQ(page_of({{"a"}, {"b"}, {"c"}, {"d"}, {"e"}}, screen),
            "\x1b[Ha\x1b[K\nb\x1b[K\n(3 more lines)\x1b[K\n\x1b[J");
}

}  // namespace
}  // namespace gso::rollout_watch_test
