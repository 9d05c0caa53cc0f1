// Two operators, each with a connection of its own, on one simulated API server: for tests of the whole runtime.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/config/logging.h"
#include "controller/runtime/manager.h"
#include "controller/runtime/run_operator.h"
#include "controller/serving/metrics.h"
#include "reconcilers/cluster/manifests.h"
#include "tests/controller/sim_time.h"
#include "tests/sim/apiserver/api_server.h"
#include "tests/sim/apiserver/in_process_transport.h"
#include "tests/sim/apiserver/local_request.h"

namespace gso {

// The fault applies to each request for that resource.
inline sim::FaultRule always(sim::Fault fault, const std::string& resource) {
  sim::FaultRule rule;
  rule.fault = fault;
  rule.resource = resource;
  return rule;
}

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
    Runtime runtime;
    runtime.transport = &transport;
    runtime.clock = &sim.clock;
    runtime.stop = stop.get();
    runtime.kill = kill.get();
    runtime.view = view;
    runtime.metrics = metrics;
    runtime.hooks = hooks;
    runtime.seed = 7;
    runtime.log = std::make_shared<Logger>(
        LogFormat::text, LogLevel::debug, [&sim] { return sim.clock.now(); },
        [this](const std::string& line) {
          log += line + "\n";
          on_line(line);
        });
    sim.start(live(this, runtime, options));
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

// Of a Manager that a test asks directly.
inline Runtime runtime_of(OneOperator& one, Sim& sim) {
  Runtime runtime;
  runtime.transport = &one.transport;
  runtime.clock = &sim.clock;
  runtime.view = std::make_shared<RuntimeView>();
  runtime.metrics = one.metrics;
  runtime.seed = 7;
  runtime.log = std::make_shared<Logger>(
      LogFormat::text, LogLevel::info, [&sim] { return sim.clock.now(); },
      [&one](const std::string& line) { one.log += line + "\n"; });
  return runtime;
}

class ManagerTest : public testing::Test {
 protected:
  ManagerTest() {
    server.add_audit_listener([this](const sim::AuditEntry& entry) {
      if (entry.user.find("serviceaccount:gpu-sharing-operator") == std::string::npos) return;
      (entry.gvr.resource == "leases" ? lease_writes : writes)
          .push_back(entry.user_agent + " " + entry.verb + " " + entry.gvr.resource + " " + entry.key.name);
    });
    create("/api/v1/namespaces",
           R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"gpu-sharing-operator"}})");
    create("/api/v1/namespaces", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"gpu-operator"}})");
    create("/api/v1/nodes", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}})");
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

  k8s::HttpResponse send(k8s::Method method, const std::string& path, const std::string& body) {
    const char* type = method == k8s::Method::patch ? "application/merge-patch+json" : "application/json";
    return server.handle(sim::local_request(method, path, body, type), {});
  }
  void create(const std::string& path, const std::string& json) {
    const k8s::HttpResponse answer = send(k8s::Method::post, path, json);
    ASSERT_EQ(answer.status, 201) << answer.body;
  }
  void remove(const std::string& path) {
    const k8s::HttpResponse answer = send(k8s::Method::del, path, "");
    ASSERT_EQ(answer.status, 200) << answer.body;
  }
  void install_crds() {
    const char* root = std::getenv("GSO_SOURCE_DIR");
    ASSERT_NE(root, nullptr);
    for (const char* name : {"sharingpolicies", "sharingrollouts"}) {
      std::ifstream file(std::string(root) + "/crds/gpusharing.dev_" + name + ".yaml");
      const std::string text((std::istreambuf_iterator<char>(file)), {});
      const k8s::Result<std::string> json = yaml_to_json(text);
      ASSERT_TRUE(json.has_value()) << json.error().message;
      create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", *json);
    }
    sim.clock.run_for(std::chrono::seconds(1));
  }
  // A device plugin with a config-manager sidecar, as the GPU Operator deploys it.
  void create_plugin(const std::string& ns) {
    create("/apis/apps/v1/namespaces/" + ns + "/daemonsets", R"({"apiVersion":"apps/v1","kind":"DaemonSet",
      "metadata":{"name":"nvidia-device-plugin-daemonset"},"spec":{
        "selector":{"matchLabels":{"app":"nvidia-device-plugin-daemonset"}},
        "template":{"metadata":{"labels":{"app":"nvidia-device-plugin-daemonset"}},"spec":{
          "containers":[
            {"name":"nvidia-device-plugin","image":"nvcr.io/nvidia/k8s-device-plugin:v0.17.1",
             "volumeMounts":[{"name":"plugin-config","mountPath":"/available-configs"}]},
            {"name":"config-manager","image":"nvcr.io/nvidia/k8s-device-plugin:v0.17.1","command":["config-manager"],
             "env":[{"name":"DEFAULT_CONFIG","value":"any"},{"name":"CONFIG_FILE_SRCDIR","value":"/available-configs"},
                    {"name":"NODE_LABEL","value":"nvidia.com/device-plugin.config"}],
             "volumeMounts":[{"name":"plugin-config","mountPath":"/available-configs"}]}],
          "volumes":[{"name":"plugin-config","configMap":{"name":"mps-config"}}]}}}})");
  }
  std::size_t created_policies() const {
    return static_cast<std::size_t>(std::count_if(writes.begin(), writes.end(), [](const std::string& line) {
      return line.find("create sharingpolicies default") != std::string::npos;
    }));
  }
  void run(Duration d) { sim.clock.run_for(d); }
  bool eventually(const std::function<bool()>& holds, Duration limit = std::chrono::minutes(2)) {
    return sim.clock.run_until(holds, limit);
  }

  static boost::asio::awaitable<bool> end(Manager* manager) {
    co_await manager->end(true);
    co_return true;
  }

  Sim sim;
  sim::ApiServer server{sim.io.get_executor(), sim.clock};
  std::vector<std::string> writes;
  std::vector<std::string> lease_writes;
  OneOperator a{sim, server, "a"};
  OneOperator b{sim, server, "b"};
};

}  // namespace gso
