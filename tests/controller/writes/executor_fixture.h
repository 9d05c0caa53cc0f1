// The executor under test, against a scripted API server: three nodes, and actions to give it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "controller/writes/executor.h"
#include "k8sclient/api/client.h"
#include "reconcilers/model/project.h"
#include "tests/controller/scripted_transport.h"
#include "tests/controller/sim_time.h"

namespace gso::executor_test {

inline PlannedAction patch(const std::string& node, std::map<std::string, std::string> labels,
                           const std::string& reconciler = "node.labels") {
  PatchNode action;
  action.name = node;
  action.set = std::move(labels);
  return {reconciler, action, "Labels", "", false, node};
}

inline PlannedAction drop_pod(const std::string& node, const std::string& pod, const std::string& uid) {
  return {"sharing.rollout", DeletePod{{"gpu-operator", pod}, uid, {}, {}}, "Restart", "", true, node};
}

inline PlannedAction status_of(const std::string& phase, int ready) {
  PatchStatus action;
  action.object = {"gpusharing.dev/v1alpha1", "SharingRollout", "", "r1", ""};
  action.status_json = nlohmann::json{{"phase", phase}, {"ready", ready}}.dump();
  return {"sharing.rollout", action, "Status", "", false, ""};
}

inline PlannedAction create_rollout() {
  CreateObject action;
  action.object = {"gpusharing.dev/v1alpha1", "SharingRollout", "", "r1", ""};
  action.json = R"({"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingRollout","metadata":{"name":"r1"}})";
  return {"sharing.rollout", action, "Start", "", false, ""};
}

inline std::string node_json(const std::string& name, int version, const std::string& extra = "") {
  return R"({"apiVersion":"v1","kind":"Node","metadata":{"name":")" + name + R"(","uid":"u-)" + name +
         R"(","resourceVersion":")" + std::to_string(version) + "\"" + extra + R"(},"spec":{},"status":{}})";
}

class ExecutorTest : public testing::Test {
 protected:
  ExecutorTest() {
    world.nodes.init();
    for (const char* name : {"n1", "n2", "n3"}) world.nodes.init_apply(*project_node(node_json(name, 1)));
    world.nodes.init_done();
    world.operand_pods.mark_absent();
    world.configmaps.mark_absent();
    world.rollouts.mark_absent();
    options.patience = options.record_patience = std::chrono::hours(1);  // Every answer is in the result.
    options.state_config_map = {"gpu-sharing-operator", "gpu-sharing-operator-state"};
    make_executor();
  }

  // A new one, with the options and the last look as they are now.
  void make_executor() {
    Executor::Parts parts;
    parts.client = &client;
    parts.clock = &sim.clock;
    parts.world = &world;
    parts.settings = &settings;
    parts.expectations = &expectations;
    parts.log = log;
    parts.metrics = metrics;
    parts.view = view;
    parts.places = [this] { return places; };
    parts.ended_late = [this](const Execution& result) {
      ++ended_late;
      for (const auto& [node, answers] : result.evictions) late_evictions.insert(node);
    };
    parts.gate.check = [this]() -> k8s::Result<void> {
      if (!leading) return k8s::fail(k8s::Reason::cancelled, "the lease is not held");
      return {};
    };
    parts.gate.end_by = [this] { return end_by; };
    if (still_due) parts.still_due = [this](auto deletions) { return look(this, std::move(deletions)); };
    parts.hooks.crash_after_write = [this](std::uint64_t n, const PlannedAction&) { return n == crash_at; };
    executor = std::make_unique<Executor>(parts, options);
  }
  static boost::asio::awaitable<std::set<k8s::ObjectKey>> look(ExecutorTest* self, std::vector<PlannedAction> asked) {
    co_return self->still_due(std::move(asked));
  }

  ScriptedAnswer answer(const k8s::HttpRequest& request) {
    const std::string line =
        std::string(k8s::to_string(request.method)) + " " + request.path.substr(0, request.path.find('?'));
    for (const auto& [pattern, instead] : script) {
      if (line.find(pattern) != std::string::npos) return instead();
    }
    if (line.starts_with("GET /api/v1/nodes/")) return ScriptedAnswer::json(200, node_json(line.substr(18), 1));
    if (line.starts_with("PATCH /api/v1/nodes/")) return ScriptedAnswer::json(200, node_json(line.substr(20), 2));
    return ScriptedAnswer::json(200, R"({"metadata":{"name":"x","resourceVersion":"9"}})");
  }

  Execution execute(std::vector<PlannedAction> actions) {
    Plan plan;
    plan.actions = std::move(actions);
    transport.seen.clear();
    return sim.run(executor->execute(plan.actions));
  }
  // Reads live what is not known of the writes.
  void settle() {
    for (const ObjectRef& object : expectations.take_overdue()) (void)sim.run(expectations.settle(object));
  }
  std::vector<std::string> writes() const {
    std::vector<std::string> out;
    for (const std::string& line : transport.lines()) {
      if (!line.starts_with("GET")) out.push_back(line);
    }
    return out;
  }

  std::size_t places = 16;
  int ended_late = 0;
  std::set<std::string> late_evictions;  // Nodes.
  Sim sim;
  std::map<std::string, std::function<ScriptedAnswer()>> script;  // Part of "METHOD path" -> answer.
  ScriptedTransport transport{&sim.clock, [this](const k8s::HttpRequest& r) { return answer(r); }};
  k8s::ApiClient client{&transport, &sim.clock, client_options()};
  static k8s::ClientOptions client_options() {
    k8s::ClientOptions options;
    options.field_manager = "gpu-sharing-operator";
    return options;
  }
  World world;
  PlannerSettings settings;
  Expectations expectations{&client, &sim.clock, &world};
  std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();
  std::shared_ptr<RuntimeView> view = std::make_shared<RuntimeView>();
  std::vector<std::string> logged;  // From level info up.
  std::shared_ptr<Logger> log = std::make_shared<Logger>(
      LogFormat::text, LogLevel::info, [this] { return sim.clock.now(); },
      [this](const std::string& line) { logged.push_back(line); });
  ExecutorOptions options;
  std::function<std::set<k8s::ObjectKey>(std::vector<PlannedAction>)> still_due;  // Unset: no last look.
  std::unique_ptr<Executor> executor;
  bool leading = true;
  MonoTime end_by = MonoTime::never();
  std::uint64_t crash_at = 0;
};

}  // namespace gso::executor_test
