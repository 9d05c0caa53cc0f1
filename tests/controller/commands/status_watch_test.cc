// `status --watch` on the simulated API server: a view at first, another one when something that shows has changed, and
// an end when it is stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <csignal>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "controller/commands/shared/print.h"
#include "controller/commands/shared/session.h"
#include "controller/commands/status.h"
#include "controller/commands/status_watch.h"
#include "reconcilers/cluster/record.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/model/labels.h"
#include "tests/change_words/change_words.h"
#include "tests/controller/our_cluster.h"
#include "tests/sim/kai/kai_objects.h"

namespace gso::status_watch_test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

boost::asio::awaitable<void> watch_into(FleetWatch watch, std::ostream* out, std::ostream* err,
                                        std::optional<int>* code) {
  const int ended = co_await watch_fleet(watch, out, err);
  *code = ended;
}

// The first one asks the watch to end. One that is stuck is ended by the second, and the terminal is as it was before.
TEST(StopSignalsDeathTest, TheSecondSignalEndsTheProcessAndLeavesTheAlternateScreen) {
  const auto stopped_twice = [] {
    boost::asio::io_context io;
    Sim sim;
    const std::unique_ptr<k8s::Signal> stop = sim.clock.make_signal();
    const StopSignals signals(io, stop.get(), [] { std::cerr << kLeaveAlternateScreen; });
    std::raise(SIGINT);
    io.poll();
    std::raise(SIGINT);
    io.poll();
  };
  EXPECT_EXIT(stopped_twice(), testing::ExitedWithCode(128 + SIGINT), "1049l");
}

class StatusWatch : public OurCluster {
 protected:
  void begin() {
    FleetWatch watch;
    watch.client = &client;
    watch.clock = &sim.clock;
    watch.stop = stop.get();
    watch.before_each = "----\n";
    watch.lease = lease;
    watch.show = [this](const FleetLook& look, const Screen&) {
      ++views;
      std::ostringstream document;
      std::ostringstream text;
      const FleetLook shown{look.world, look.index, watch_settings, look.now, look.incomplete};
      print_status(shown, {.form = OutputForm::json}, document);
      target = nlohmann::json::parse(document.str())["nodes"][0]["target"];
      FleetView view;
      view.exit_status = print_status(shown, {}, text) == 1 ? 1 : 0;
      append_text(view.lines, text.str());
      return view;
    };
    ended = sim.start(watch_into(watch, &out, &err, &code));
    sim.clock.run_for(2s);
  }
  // Its kai-config names a RuntimeClass that is not there.
  void install_kai() {
    post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", sim::kai_config_crd());
    sim.clock.run_for(1s);
    sim::Json config = sim::kai_config();
    config["spec"]["admission"]["gpuPodRuntimeClassName"] = "nvidia";
    post("/apis/kai.scheduler/v1/configs", config.dump());
  }
  // It went where it should, and did not get there.
  void fail_gpu_1() {
    FleetRecord record;
    MachineRecord gpu_1;
    gpu_1.config_map = k8s::Interned("gpu-operator/mps-config");
    gpu_1.key = k8s::Interned("any");
    gpu_1.revision = k8s::Interned("v1-2");
    const std::string uid = get("/api/v1/nodes/gpu-1")["metadata"]["uid"];
    record.machines.set(machine_id(uid), gpu_1);
    const nlohmann::json state{{"apiVersion", "v1"},
                               {"kind", "ConfigMap"},
                               {"metadata", {{"name", "gpu-sharing-operator-state"}}},
                               {"data", {{std::string(kRecordKey), print_head({record})}}}};
    post("/api/v1/namespaces/gpu-sharing-operator/configmaps", state.dump());
    test::ChangeWords change;
    change.to = target;
    change.failed = true;
    const nlohmann::json meta{{"labels", {{"gpusharing.dev/state", "Failed"}}},
                              {"annotations", test::write_change(change)}};
    merge("/api/v1/nodes/gpu-1", nlohmann::json{{"metadata", meta}}.dump());
    sim.clock.run_for(2s);
  }
  int end() {
    stop->notify();
    EXPECT_TRUE(sim.clock.run_until([&] { return *ended; }, 1min));
    return code.value_or(-1);
  }
  std::string last() const {
    const std::string all = out.str();
    const std::size_t at = all.rfind("----\n");
    return at == std::string::npos ? all : all.substr(at + 5);
  }

  PlannerSettings watch_settings;
  k8s::ObjectKey lease;  // Without a name it is not looked at.
  std::unique_ptr<k8s::Signal> stop = sim.clock.make_signal();
  std::shared_ptr<bool> ended;
  std::optional<int> code;
  std::ostringstream out;
  std::ostringstream err;
  int views = 0;
  std::string target;  // Of gpu-1, in the last view.
};

TEST_F(StatusWatch, ShowsTheFleetAndThenWhatChanges) {
  begin();
  EXPECT_THAT(last(), testing::ContainsRegex("gpu-1 .*mps-config/any.* gpu=4"));
  EXPECT_THAT(out.str(), Not(HasSubstr("----")));
  merge("/api/v1/nodes/gpu-1/status", R"({"status":{"allocatable":{"nvidia.com/gpu":"3"}}})");
  sim.clock.run_for(2s);
  EXPECT_THAT(last(), HasSubstr("gpu=3"));
  post("/api/v1/nodes",
       R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-2","labels":{"nvidia.com/gpu.count":"1"}}})");
  sim.clock.run_for(2s);
  EXPECT_THAT(last(), HasSubstr("gpu-2"));
  EXPECT_EQ(end(), 0);
}

TEST_F(StatusWatch, WhatDoesNotShowIsNoNewView) {
  begin();
  const std::string before = out.str();
  merge("/api/v1/nodes/gpu-1", R"({"metadata":{"annotations":{"example.com/a":"b"}}})");
  sim.clock.run_for(2s);
  EXPECT_EQ(out.str(), before);
  EXPECT_EQ(end(), 0);
}

TEST_F(StatusWatch, AFailedNodeIsTheExitStatus) {
  begin();
  EXPECT_THAT(last(), Not(HasSubstr("Failed")));
  fail_gpu_1();
  EXPECT_THAT(last(), testing::ContainsRegex("gpu-1 +Failed "));
  EXPECT_EQ(end(), 1);
}

TEST_F(StatusWatch, WhatIsToBeSaidAboutKaiFollowsItsConfig) {
  install_kai();
  begin();
  EXPECT_THAT(last(), HasSubstr("kai-config: GPU sharing is on"));
  EXPECT_THAT(last(), HasSubstr("(KAIRuntimeClassMissing)"));
  post("/apis/node.k8s.io/v1/runtimeclasses",
       R"({"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass","metadata":{"name":"nvidia"},"handler":"nvidia"})");
  sim.clock.run_for(2s);
  EXPECT_THAT(last(), Not(HasSubstr("(KAIRuntimeClassMissing)")));
  merge("/apis/kai.scheduler/v1/configs/kai-config", R"({"spec":{"admission":{"gpuSharing":false}}})");
  sim.clock.run_for(2s);
  EXPECT_THAT(last(), HasSubstr("kai-config: GPU sharing is off"));
  EXPECT_EQ(end(), 0);
}

TEST_F(StatusWatch, RuntimeClassesThatCannotBeReadAreNamedAndTheRestIsShown) {
  install_kai();
  sim::FaultRule rule;
  rule.fault = sim::Fault::forbidden;
  rule.resource = "runtimeclasses";
  transport.faults().add(rule);
  begin();
  EXPECT_THAT(last(), HasSubstr("kai-config: GPU sharing is on"));
  EXPECT_THAT(last(), HasSubstr("incomplete: runtimeclasses cannot be listed by "));
  EXPECT_EQ(end(), 0);
}

TEST_F(StatusWatch, ALeaseThatCannotBeReadIsNamedAndTheRestIsShown) {
  sim::FaultRule rule;
  rule.fault = sim::Fault::forbidden;
  rule.resource = "leases";
  transport.faults().add(rule);
  lease = {"gpu-sharing-operator", "gpu-sharing-operator"};
  begin();
  EXPECT_THAT(last(), HasSubstr("incomplete: whether an operator runs is unknown: Lease "));
  EXPECT_EQ(end(), 0);
}

// A watch that is opened again where it broke has no complete view of its own for minutes.
TEST_F(StatusWatch, AnOutageIsNamedUntilTheWatchesAreOpenAgain) {
  lease = {"gpu-sharing-operator", "gpu-sharing-operator"};
  begin();
  transport.set_connected(false);
  sim.clock.run_for(20s);
  EXPECT_THAT(last(), HasSubstr("incomplete: the API server cannot be reached since "));
  const int during = views;
  EXPECT_THAT(last(), Not(HasSubstr("whether an operator runs is unknown")));
  transport.set_connected(true);
  sim.clock.run_for(90s);
  EXPECT_GT(views, during);
  EXPECT_THAT(last(), Not(HasSubstr("incomplete: ")));
  EXPECT_EQ(end(), 0);
}

TEST_F(StatusWatch, AWrongNamespaceIsNamedAsLongAsTheRecordIsNotThere) {
  lease = {"gpu-sharing-operator", "gpu-sharing-operator"};
  merge("/api/v1/nodes/gpu-1", R"({"metadata":{"annotations":{"gpusharing.dev/revision":"v1-0123456789ab"}}})");
  begin();
  EXPECT_THAT(last(), HasSubstr("incomplete: the operator's record was not found: ConfigMap "
                                "gpu-sharing-operator/gpu-sharing-operator-state does not exist"));
  EXPECT_THAT(last(), testing::ContainsRegex("gpu-1 +Unknown "));
  const auto before = views;
  sim.clock.run_for(1min);
  EXPECT_EQ(views, before);  // What is left out of a view is no change that asks for the next one.
  post("/api/v1/namespaces/gpu-sharing-operator/configmaps",
       nlohmann::json{{"apiVersion", "v1"},
                      {"kind", "ConfigMap"},
                      {"metadata", {{"name", "gpu-sharing-operator-state"}}},
                      {"data", {{std::string(kRecordKey), print_head({FleetRecord()})}}}}
           .dump());
  sim.clock.run_for(2s);
  EXPECT_THAT(last(), AllOf(Not(HasSubstr("record was not found")), Not(testing::ContainsRegex("gpu-1 +Unknown "))));
  EXPECT_EQ(end(), 0);
}

TEST_F(StatusWatch, NodesThatCannotBeWatchedEndIt) {
  sim::FaultRule rule;
  rule.fault = sim::Fault::forbidden;
  rule.resource = "nodes";
  transport.faults().add(rule);
  begin();
  EXPECT_TRUE(sim.clock.run_until([&] { return *ended; }, 5min));
  EXPECT_EQ(code, 2);
  EXPECT_THAT(err.str(), HasSubstr("gpu-sharing-operator status: "));
}

}  // namespace
}  // namespace gso::status_watch_test
