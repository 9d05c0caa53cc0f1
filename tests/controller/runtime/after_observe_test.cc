// max-mode Observe writes no ConfigMap, so that the operator that follows it finds nothing in the record of what was
// held meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "reconcilers/model/labels.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/profile/revision.h"
#include "tests/controller/operators.h"

namespace gso {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

std::string time_slicing(int replicas) {
  return "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: " +
         std::to_string(replicas) + "}\n";
}

std::string revision(int replicas) {
  return revision_of(parse_profile(time_slicing(replicas)).profile);
}

// n1 drains for fewer replicas, and a Job uses more of them.
class AfterObserve : public ManagerTest {
 protected:
  AfterObserve() {
    create_plugin("gpu-operator");
    create("/api/v1/namespaces", R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}})");
    create("/api/v1/namespaces/gpu-operator/configmaps", Json{{"apiVersion", "v1"},
                                                              {"kind", "ConfigMap"},
                                                              {"metadata", {{"name", "mps-config"}}},
                                                              {"data", {{"any", time_slicing(2)}}}}
                                                             .dump());
    const std::string plugin = create_pod("gpu-operator", "plugin-1", "", true);
    create_pod("team", "train", "6", false);
    NodeChange change;
    change.policy = "default";
    change.config_map = "gpu-operator/mps-config";
    change.key = "any";
    change.from = revision(4);
    change.to = revision(2);
    change.kind = Transition::reshare;
    change.cause = ChangeCause::edited;
    change.begun = change.listed = sim.clock.now();
    change.pods = {{Component::plugin, {plugin}}};
    change.served = change.cordoned = true;
    const Json annotations{{kChangeAnnotation, print_change(change)},
                           {kRevisionAnnotation, revision(4)},
                           {kProfileAnnotation, "mps-config/any"}};
    const Json labels{
        {"nvidia.com/gpu.present", "true"}, {"nvidia.com/gpu.count", "2"}, {"gpusharing.dev/state", "Updating"}};
    merge("/api/v1/nodes/n1",
          {{"metadata", {{"annotations", annotations}, {"labels", labels}}}, {"spec", {{"unschedulable", true}}}});
    merge("/api/v1/nodes/n1/status", {{"status",
                                       {{"capacity", {{"nvidia.com/gpu", "8"}}},
                                        {"allocatable", {{"nvidia.com/gpu", "8"}}},
                                        {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
  }

  void merge(const std::string& path, const Json& body) {
    const k8s::HttpResponse answer = send(k8s::Method::patch, path, body.dump());
    ASSERT_EQ(answer.status, 200) << answer.body;
  }
  // Its uid.
  std::string create_pod(const std::string& ns, const std::string& name, const std::string& gpus, bool of_plugin) {
    const std::string path = "/api/v1/namespaces/" + ns + "/pods";
    Json container{{"name", "nvidia-device-plugin"}, {"image", "i"}};
    if (!gpus.empty()) container["resources"] = {{"limits", {{"nvidia.com/gpu", gpus}}}};
    Json metadata{{"name", name}};
    if (of_plugin) {
      const char* daemonset = "nvidia-device-plugin-daemonset";
      const Json owner = Json::parse(
          send(k8s::Method::get, std::string("/apis/apps/v1/namespaces/gpu-operator/daemonsets/") + daemonset, "")
              .body);
      metadata["labels"] = {{"app", daemonset}};
      metadata["ownerReferences"] = {{{"apiVersion", "apps/v1"},
                                      {"kind", "DaemonSet"},
                                      {"name", daemonset},
                                      {"controller", true},
                                      {"uid", owner["metadata"]["uid"]}}};
    }
    create(path, Json{{"apiVersion", "v1"},
                      {"kind", "Pod"},
                      {"metadata", metadata},
                      {"spec", {{"nodeName", "n1"}, {"containers", {container}}}}}
                     .dump());
    const Json status{{"name", "nvidia-device-plugin"}, {"ready", true}, {"state", {{"running", Json::object()}}}};
    merge(path + "/" + name + "/status", {{"status",
                                           {{"phase", "Running"},
                                            {"conditions", {{{"type", "Ready"}, {"status", "True"}}}},
                                            {"containerStatuses", {status}}}}});
    return Json::parse(send(k8s::Method::get, path + "/" + name, "").body)["metadata"]["uid"];
  }
  [[nodiscard]] Json annotations() {
    return Json::parse(send(k8s::Method::get, "/api/v1/nodes/n1", "").body)["metadata"]["annotations"];
  }
};

TEST_F(AfterObserve, TheDeadlinesOfAChangeInProgressStartAgain) {
  OneOperator before{sim, server, "before"};  // It records the fleet.
  before.start(sim);
  ASSERT_TRUE(eventually([&] { return before.view->synced && before.view->leading; }));
  run(1min);
  before.stop->notify();
  ASSERT_TRUE(eventually([&] { return before.result.has_value(); }));
  a.options.max_mode = PolicyMode::observe;
  a.start(sim);
  ASSERT_TRUE(eventually([&] { return a.view->synced && a.view->leading; }));
  run(5h);
  a.stop->notify();
  ASSERT_TRUE(eventually([&] { return a.result.has_value(); }));
  b.start(sim);
  ASSERT_TRUE(eventually([&] { return b.view->synced && b.view->leading; }));
  run(5min);
  EXPECT_TRUE(annotations().contains(std::string(kChangeAnnotation))) << annotations().dump(1) << b.log;
  EXPECT_FALSE(annotations().contains(std::string(kDeferredAnnotation))) << "nobody has waited for its Job until now";
  run(PlannerSettings().rollout.idle_timeout + 5min);
  EXPECT_TRUE(annotations().contains(std::string(kDeferredAnnotation))) << annotations().dump(1);
}

}  // namespace
}  // namespace gso
