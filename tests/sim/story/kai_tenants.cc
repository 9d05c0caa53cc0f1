#include "tests/sim/story/kai_tenants.h"

#include <utility>
#include <vector>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/kai/kai_objects.h"

namespace gso::sim {

namespace asio = boost::asio;

namespace {

const k8s::Gvr kConfigs{"kai.scheduler", "v1", "configs"};
const k8s::ObjectKey kReservation{kReservations, "reservation"}, kFraction{kTeam, "fraction"},
    kWaiting{kTeam, "waiting"}, kLate{kTeam, "late"};

struct Thing {
  k8s::Gvr gvr;
  k8s::ObjectKey key;
  Json object;
};

std::vector<Thing> definitions() {
  std::vector<Thing> out;
  for (const std::string& text : {kai_config_crd(), kai_bind_request_crd()}) {
    const Json object = Json::parse(text);
    out.push_back({kCustomResourceDefinitions, {"", object["metadata"]["name"]}, object});
  }
  for (const char* name : {"kai-scheduler", kReservations, kTeam})
    out.push_back({kNamespaces, {"", name}, kai_namespace(name)});
  return out;
}

// A pod that waits, and the request to bind it to that node.
std::vector<Thing> waiting_for(const k8s::ObjectKey& pod, const std::string& node, const std::string& group) {
  Json request = kai_bind_request({{"metadata", {{"name", pod.name}, {"uid", "u"}}}}, node, {group}, false);
  request["metadata"].erase("ownerReferences");
  return {{kPods, pod, kai_fraction_pod(pod.name, 1, "kai-scheduler")}, {kBindRequests, pod, request}};
}

std::vector<Thing> tenants(const std::string& shared, const std::string& next) {
  Json fraction = kai_fraction_pod(kFraction.name, 1, "kai-scheduler");
  fraction["metadata"]["labels"]["runai-gpu-group"] = "g";
  fraction["spec"]["nodeName"] = shared;
  std::vector<Thing> out{{kConfigs, {"", "kai-config"}, kai_config()},
                         {kPods, kReservation, kai_reservation(kReservation.name, "g", shared)},
                         {kPods, kFraction, fraction}};
  for (Thing& thing : waiting_for(kWaiting, next, "h")) out.push_back(std::move(thing));
  return out;
}

asio::awaitable<void> put_all(Scene* scene, std::vector<Thing> things) {
  for (const Thing& thing : things) co_await scene->put(thing.gvr, thing.key, thing.object);
}

}  // namespace

asio::awaitable<void> bring_kai(Scene* scene, std::string shared, std::string bound_soon) {
  const std::vector<Thing> first = definitions();
  co_await put_all(scene, first);
  co_await scene->clock().sleep_for(std::chrono::seconds(2));  // Until its kinds are served.
  const std::vector<Thing> then = tenants(shared, bound_soon);
  co_await put_all(scene, then);
}

asio::awaitable<void> bind_soon(Scene* scene, std::string node) {
  const std::vector<Thing> things = waiting_for(kLate, node, "l");
  co_await put_all(scene, things);
}

asio::awaitable<void> end_kai_pods(Scene* scene) {
  // In an order in which nobody would find a reservation without its consumers.
  co_await scene->remove(kPods, kReservation);
  co_await scene->remove(kPods, kFraction);
  const std::vector<k8s::ObjectKey> waiting{kWaiting, kLate};
  for (const k8s::ObjectKey& pod : waiting) {
    co_await scene->remove(kBindRequests, pod);
    co_await scene->remove(kPods, pod);
  }
}

}  // namespace gso::sim
