// `status --watch` on the simulated API server: a view at first, another one when something that shows has changed, and
// an end when told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "controller/command_status.h"
#include "controller/status_watch.h"
#include "tests/controller/our_cluster.h"

namespace gso {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

boost::asio::awaitable<void> watch_into(FleetWatch watch, std::ostream* out, std::ostream* err,
                                        std::optional<int>* code) {
  const int ended = co_await watch_fleet(watch, out, err);
  *code = ended;
}

class StatusWatch : public OurCluster {
 protected:
  void begin() {
    FleetWatch watch;
    watch.client = &client;
    watch.clock = &sim.clock;
    watch.stop = stop.get();
    watch.before_each = "----\n";
    watch.show = [this](const World& world, FleetIndex& index, const std::vector<std::string>& incomplete,
                        std::ostream& view) {
      ++views;
      return print_status({world, index, incomplete, {}}, OutputForm::text, 0, view);
    };
    ended = sim.start(watch_into(watch, &out, &err, &code));
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

  std::unique_ptr<k8s::Signal> stop = sim.clock.make_signal();
  std::shared_ptr<bool> ended;
  std::optional<int> code;
  std::ostringstream out;
  std::ostringstream err;
  int views = 0;
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
  merge("/api/v1/nodes/gpu-1", R"({"metadata":{"labels":{"gpusharing.dev/state":"Failed"},
    "annotations":{"gpusharing.dev/target-revision":"v1-2"}}})");
  begin();
  EXPECT_EQ(end(), out.str().find("Failed") == std::string::npos ? 0 : 1);
}

TEST_F(StatusWatch, NodesThatMayNotBeWatchedEndIt) {
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
}  // namespace gso
