// The facts about a GPU group that the judgement uses: its objects in the stores, and the results of lookups.
#include <fmt/format.h>

#include "reconcilers/kai/index.h"
#include "reconcilers/kai/planners.h"
#include "reconcilers/model/kai_objects.h"

namespace gso {

using namespace kai;

std::string kai_hold(const World& world) {
  const KaiWorld& kai = world.kai;
  if (!kai.incomplete.empty()) return kai.incomplete;
  if (!world.nodes.synced() || !kai.pods.synced() || !kai.bind_requests.synced() || !kai.configs.synced()) {
    return "not every store has synced yet";
  }
  if (kai.configs_served == kai.bind_requests_served) return {};
  return fmt::format("KAI serves {} but not {}: an upgrade or a removal is in progress",
                     kai.configs_served ? "configs.kai.scheduler" : "bindrequests.scheduling.run.ai",
                     kai.configs_served ? "bindrequests.scheduling.run.ai" : "configs.kai.scheduler");
}

GroupFacts group_facts(const KaiWorld& kai, const KaiIndex& index, const std::string& name) {
  GroupFacts out;
  out.group = name;
  const KaiIndex::Group* group = index.group(name);
  if (group == nullptr) return out;
  const auto collect = [](const auto& store, const std::set<ObjectKey>& keys, auto& into) {
    for (const ObjectKey& key : keys) {
      if (const auto* object = store.find(key)) into.push_back(object);
    }
  };
  collect(kai.pods, group->reservations, out.reservations);
  collect(kai.pods, group->consumers, out.consumers);
  collect(kai.bind_requests, group->bind_requests, out.requests);
  if (auto found = kai.lookups.groups.find(name); found != kai.lookups.groups.end()) {
    for (const KaiPod& pod : found->second.pods) {
      // The object in the store is at least as new.
      const KaiPod* known = kai.pods.find(pod.meta.key());
      if (known == nullptr || known->meta.uid != pod.meta.uid) out.consumers.push_back(&pod);
    }
  }
  out.pod_alive = [&kai](const ObjectKey& key) -> std::optional<bool> {
    if (const KaiPod* pod = kai.pods.find(key); pod && is_alive(*pod)) return true;
    auto it = kai.lookups.pods.find(key);
    return it == kai.lookups.pods.end() ? std::nullopt : std::optional(it->second.alive);
  };
  out.devices = [&kai](const ObjectKey& key, const k8s::Uid& consumer) -> std::optional<std::string> {
    auto it = kai.lookups.config_maps.find(key);
    return it == kai.lookups.config_maps.end() ? std::nullopt : it->second.of(consumer);
  };
  return out;
}

DeviceClaims device_claims(const KaiIndex& index) {
  return [&index](const KaiPod& reservation) -> std::string {
    for (const ObjectKey& key : index.claimants(reservation)) {
      if (key != reservation.meta.key()) return k8s::to_string(key);
    }
    return {};
  };
}

DeviceClaims device_claims(const KaiWorld& kai, const KaiView& view) {
  return [&kai, &view](const KaiPod& reservation) -> std::string {
    const auto device = reservation.meta.annotations.get(kDeviceAnnotation);
    if (!device) return {};
    for (const auto& [key, pod] : kai.pods.all()) {
      const bool same = pod->node_name == reservation.node_name && pod->meta.uid != reservation.meta.uid &&
                        pod->meta.annotations.get(kDeviceAnnotation) == device;
      const bool other = pod->meta.labels.get(kGroupLabel) != reservation.meta.labels.get(kGroupLabel);
      if (same && other && is_alive(*pod) && role_of(*pod, view) == KaiRole::reservation) return k8s::to_string(key);
    }
    return {};
  };
}

}  // namespace gso
