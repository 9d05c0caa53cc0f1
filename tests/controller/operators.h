// Two operators, each with a connection of its own, on one simulated API server: for tests of the whole runtime.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/config/logging.h"
#include "controller/runtime/manager.h"
#include "controller/runtime/run_operator.h"
#include "controller/serving/metrics.h"
#include "tests/controller/our_cluster.h"

namespace gso {

// One operator with a connection of its own.
struct OneOperator {
  OneOperator(Sim& sim, sim::ApiServer& server, std::string identity)
      : transport(server, {.user = "system:serviceaccount:gpu-sharing-operator:operator", .user_agent = identity}),
        stop(sim.clock.make_signal()),
        kill(sim.clock.make_signal()) {
    options.identity = std::move(identity);
    options.namespace_ = "gpu-sharing-operator";
    options.operand_namespaces = {"gpu-operator"};
    options.metrics_bind_address = "0";
    options.health_probe_bind_address = "0";
    options.settle = std::chrono::seconds(0);
  }
  ~OneOperator() { EXPECT_TRUE(metrics->misuses().empty()) << *metrics->misuses().begin(); }
  OneOperator(const OneOperator&) = delete;
  OneOperator& operator=(const OneOperator&) = delete;
  void start(Sim& sim) {
    Runtime own = runtime(sim, LogLevel::debug);
    own.view = view;
    sim.start(live(this, std::move(own), options));
  }
  // Of a Manager that a test asks directly; with a view of its own.
  Runtime runtime(Sim& sim, LogLevel level = LogLevel::info) {
    Runtime out;
    out.transport = &transport;
    out.clock = &sim.clock;
    out.stop = stop.get();
    out.kill = kill.get();
    out.view = std::make_shared<RuntimeView>();
    out.metrics = metrics;
    out.hooks = hooks;
    out.instance = options.identity;
    out.seed = 7;
    out.log = std::make_shared<Logger>(
        LogFormat::text, level, [&sim] { return sim.clock.now(); },
        [this](const std::string& line) {
          log += line + "\n";
          on_line(line);
        });
    return out;
  }
  double metric(const char* name, const Metrics::Labels& labels = {}) {
    (void)metrics->render(Metrics::Format::prometheus);
    return metrics->value(name, labels);
  }

  sim::InProcessTransport transport;
  std::unique_ptr<k8s::Signal> stop;
  std::unique_ptr<k8s::Signal> kill;
  Options options;
  RuntimeHooks hooks;
  std::shared_ptr<RuntimeView> view = std::make_shared<RuntimeView>();
  std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();
  std::optional<k8s::Result<void>> result;
  std::string log;
  std::function<void(const std::string& line)> on_line = [](const std::string&) {};  // For each line of the log.

 private:
  static boost::asio::awaitable<void> live(OneOperator* self, Runtime runtime, Options options) {
    k8s::Result<void> ended = co_await run_operator(runtime, options);
    self->result = std::move(ended);
  }
};

class ManagerTest : public SimulatedServer {
 protected:
  ManagerTest() {
    server.add_audit_listener([this](const sim::AuditEntry& entry) {
      if (entry.user.find("serviceaccount:gpu-sharing-operator") == std::string::npos) return;
      (entry.gvr.resource == "leases" ? lease_writes : writes)
          .push_back(entry.user_agent + " " + entry.verb + " " + entry.gvr.resource + " " + entry.key.name);
    });
    for (const char* name : {"gpu-sharing-operator", "gpu-operator"}) add_namespace(name);
    add_node("n1");
    sim.clock.run_for(std::chrono::seconds(1));
  }
  ~ManagerTest() override {
    for (OneOperator* one : {&a, &b}) {
      if (!one->view->started || one->result) continue;
      one->kill->notify();
      EXPECT_TRUE(sim.clock.run_until([&] { return one->result.has_value(); }, std::chrono::minutes(10)))
          << "it did not end";
    }
    if (HasFailure()) std::printf("%s", a.log.c_str());
  }

  void add_node(const std::string& name, const std::string& labels = "{}") {
    post("/api/v1/nodes", R"({"metadata":{"name":")" + name + R"(","labels":)" + labels + "}}");
  }
  void create_plugin(const std::string& ns) { post("/apis/apps/v1/namespaces/" + ns + "/daemonsets", kPlugin); }
  std::size_t created_policies() const {
    return static_cast<std::size_t>(std::count_if(writes.begin(), writes.end(), [](const std::string& line) {
      return line.find("create sharingpolicies default") != std::string::npos;
    }));
  }
  void run(Duration d) { sim.clock.run_for(d); }
  bool eventually(const std::function<bool()>& holds, Duration limit = std::chrono::minutes(2)) {
    return sim.clock.run_until(holds, limit);
  }

  // Starts it, and waits until it leads and has nothing more to do.
  void lead(OneOperator& one) {
    one.start(sim);
    ASSERT_TRUE(eventually([&] { return one.view->leading && one.view->idle; }));
  }

  static boost::asio::awaitable<bool> end(Manager* manager) {
    co_await manager->end(true);
    co_return true;
  }

  std::vector<std::string> writes;
  std::vector<std::string> lease_writes;
  OneOperator a{sim, server, "a"};
  OneOperator b{sim, server, "b"};
};

}  // namespace gso
