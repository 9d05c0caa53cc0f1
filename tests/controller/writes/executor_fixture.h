// The executor under test, against a scripted API server: three nodes, and actions to give it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "controller/writes/executor.h"
#include "k8sclient/api/client.h"
#include "tests/controller/sim_time.h"
#include "tests/k8sclient/scripted_transport.h"

namespace gso::executor_test {

PlannedAction patch(const std::string& node, std::map<std::string, std::string> labels,
                    const std::string& reconciler = "node.labels");
PlannedAction drop_pod(const std::string& node, const std::string& pod, const std::string& uid);
// From node n1.
PlannedAction evict(const std::string& ns, const std::string& pod, const std::string& uid);
// A change of n1, n2, … begins, planned from version 1.
PlannedAction begin_change(const std::string& node);
PlannedAction status_of(const std::string& phase, int ready);
PlannedAction create_rollout();
std::string node_json(const std::string& name, int version, const std::string& extra = "");

class ExecutorTest : public testing::Test {
 protected:
  ExecutorTest();

  // A new one, with the options and the last look as they are now.
  void make_executor();
  static boost::asio::awaitable<std::set<k8s::ObjectKey>> look(ExecutorTest* self, std::vector<PlannedAction> asked);

  k8s::test::Answer answer(const k8s::HttpRequest& request);
  Execution execute(std::vector<PlannedAction> actions);
  // Reads live what is not known of the writes, which succeeds.
  void settle();
  std::vector<std::string> writes() const;
  // Of the last request.
  nlohmann::json sent_body() const { return nlohmann::json::parse(transport.requests.back().body); }

  std::size_t places = 16;
  int ended_late = 0;
  std::set<std::string> late_evictions;  // Nodes.
  Sim sim;
  std::map<std::string, std::function<k8s::test::Answer()>> script;  // Part of "METHOD path" -> answer.
  k8s::test::ScriptedTransport transport{&sim.clock, [this](const k8s::HttpRequest& r) { return answer(r); }};
  k8s::ApiClient client{&transport, &sim.clock, client_options()};
  static k8s::ClientOptions client_options();
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

// With the patience of the operator.
class SlowServer : public ExecutorTest {
 protected:
  SlowServer();
  // What is written to `part` is answered after `delay`.
  void answer_after(const std::string& part, Duration delay);
  // How long the plan took.
  Duration took(std::vector<PlannedAction> actions);
  Execution done;  // Of that plan.
};

}  // namespace gso::executor_test
