#include "tests/sim/story/kai_tenants.h"

#include <utility>
#include <vector>

#include "tests/sim/fleet/kinds.h"
#include "tests/sim/kai/kai_objects.h"

namespace gso::sim {

namespace asio = boost::asio;

namespace {

const k8s::Gvr kConfigs{"kai.scheduler", "v1", "configs"};
const k8s::Gvr kBindRequests{"scheduling.run.ai", "v1alpha2", "bindrequests"};
const k8s::ObjectKey kReservation{kReservations, "reservation"}, kFraction{kTeam, "fraction"},
    kWaiting{kTeam, "waiting"};

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

std::vector<Thing> tenants(const std::string& shared, const std::string& bound_soon) {
  Json fraction = kai_fraction_pod(kFraction.name, 1, "kai-scheduler");
  fraction["metadata"]["labels"]["runai-gpu-group"] = "g";
  fraction["spec"]["nodeName"] = shared;
  const Json waiting = kai_fraction_pod(kWaiting.name, 1, "kai-scheduler");
  Json request = kai_bind_request({{"metadata", {{"name", kWaiting.name}, {"uid", "u"}}}}, bound_soon, {"h"}, false);
  request["metadata"].erase("ownerReferences");
  return {{kConfigs, {"", "kai-config"}, kai_config()},
          {kPods, kReservation, kai_reservation(kReservation.name, "g", shared)},
          {kPods, kFraction, fraction},
          {kPods, kWaiting, waiting},
          {kBindRequests, kWaiting, request}};
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

asio::awaitable<void> end_kai_pods(Scene* scene) {
  // In an order in which nobody would find a reservation without its consumers.
  co_await scene->remove(kPods, kReservation);
  co_await scene->remove(kPods, kFraction);
  co_await scene->remove(kBindRequests, kWaiting);
  co_await scene->remove(kPods, kWaiting);
}

}  // namespace gso::sim
