#include "tests/controller/writes/executor_fixture.h"

#include <chrono>
#include <ranges>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/project.h"

namespace gso::executor_test {

using k8s::test::Answer;

PlannedAction patch(const std::string& node, std::map<std::string, std::string> labels, const std::string& reconciler) {
  PatchNode action;
  action.name = node;
  action.set = std::move(labels);
  return {reconciler, action, {"Labels", ""}, false, node};
}

PlannedAction drop_pod(const std::string& node, const std::string& pod, const std::string& uid) {
  return {"sharing.rollout", DeletePod{{"gpu-operator", pod}, uid, {}, {}}, {"Restart", ""}, true, node};
}

PlannedAction evict(const std::string& ns, const std::string& pod, const std::string& uid) {
  return {"sharing.rollout", EvictPod{{ns, pod}, uid}, {"Evict", "evicted from node n1"}, true, "n1"};
}

PlannedAction begin_change(const std::string& node) {
  PlannedAction begins = patch(node, {{"gpusharing.dev/state", "Updating"}}, "sharing.rollout");
  auto& action = std::get<PatchNode>(begins.action);
  action.resource_version = "1";
  action.set_annotations[std::string(kChangeAnnotation)] = "{}";
  begins.disruptive = true;
  return begins;
}

PlannedAction status_of(const std::string& phase, int ready) {
  PatchStatus action;
  action.object = {"gpusharing.dev/v1alpha1", "SharingRollout", "", "r1", ""};
  action.status_json = nlohmann::json{{"phase", phase}, {"ready", ready}}.dump();
  return {"sharing.rollout", action, {"Status", ""}, false, ""};
}

PlannedAction create_rollout() {
  CreateObject action;
  action.object = {"gpusharing.dev/v1alpha1", "SharingRollout", "", "r1", ""};
  action.json = R"({"apiVersion":"gpusharing.dev/v1alpha1","kind":"SharingRollout","metadata":{"name":"r1"}})";
  return {"sharing.rollout", action, {"Start", ""}, false, ""};
}

std::string node_json(const std::string& name, int version, const std::string& extra) {
  return R"({"apiVersion":"v1","kind":"Node","metadata":{"name":")" + name + R"(","uid":"u-)" + name +
         R"(","resourceVersion":")" + std::to_string(version) + "\"" + extra + R"(},"spec":{},"status":{}})";
}

ExecutorTest::ExecutorTest() {
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

void ExecutorTest::make_executor() {
  Executor::Parts parts;
  parts.client = &client;
  parts.clock = &sim.clock;
  parts.world = &world;
  parts.settings = &settings;
  parts.expectations = &expectations;
  parts.log = log;
  parts.metrics = metrics;
  parts.view = view;
  parts.places = [this](k8s::WriteKind) { return places; };
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

boost::asio::awaitable<std::set<k8s::ObjectKey>> ExecutorTest::look(ExecutorTest* self,
                                                                    std::vector<PlannedAction> asked) {
  co_return self->still_due(std::move(asked));
}

Answer ExecutorTest::answer(const k8s::HttpRequest& request) {
  const std::string line =
      std::string(k8s::to_string(request.method)) + " " + request.path.substr(0, request.path.find('?'));
  for (const auto& [pattern, instead] : script | std::views::reverse)  // The longer of two with one beginning.
    if (line.find(pattern) != std::string::npos) return instead();
  if (line.starts_with("GET /api/v1/nodes/")) return Answer::json(200, node_json(line.substr(18), 1));
  if (line.starts_with("PATCH /api/v1/nodes/")) return Answer::json(200, node_json(line.substr(20), 2));
  return Answer::json(200, R"({"metadata":{"name":"x","resourceVersion":"9"}})");
}

Execution ExecutorTest::execute(std::vector<PlannedAction> actions) {
  transport.requests.clear();
  return sim.run(executor->execute(actions));
}

void ExecutorTest::settle() {
  for (const ObjectRef& object : expectations.take_overdue())
    EXPECT_EQ(sim.run(expectations.settle(object)), std::nullopt);
}

std::vector<std::string> ExecutorTest::writes() const {
  std::vector<std::string> out;
  for (const std::string& line : transport.lines())
    if (!line.starts_with("GET")) out.push_back(line);
  return out;
}

SlowServer::SlowServer() {
  options.patience = ExecutorOptions().patience;
  options.record_patience = ExecutorOptions().record_patience;
  make_executor();
}

void SlowServer::answer_after(const std::string& part, Duration delay) {
  script[part] = [delay] { return Answer::json(200, R"({"metadata":{"name":"x","resourceVersion":"9"}})", delay); };
}

Duration SlowServer::took(std::vector<PlannedAction> actions) {
  const MonoTime begun = sim.clock.monotonic();
  done = execute(std::move(actions));
  return sim.clock.monotonic() - begun;
}

k8s::ClientOptions ExecutorTest::client_options() {
  k8s::ClientOptions options;
  options.field_manager = "gpu-sharing-operator";
  return options;
}

}  // namespace gso::executor_test
