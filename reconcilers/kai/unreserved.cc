// Consumers that no watch shows: multi-device pods carry no label to select by. If each of their groups has a
// reservation, the reservations show the use; otherwise only their BindRequests do.
#include "reconcilers/kai/index.h"
#include "reconcilers/kai/planners.h"

namespace gso {

UnreservedConsumers unreserved_consumers(const Snapshot& snapshot, const KaiIndex& index, const std::string& node,
                                         std::int64_t& asks, KaiWants& wanted) {
  UnreservedConsumers out;
  const KaiWorld& kai = snapshot.world.kai;
  const KaiSettings& settings = snapshot.settings.kai;
  const auto found = index.unreserved().find(node);
  if (found == index.unreserved().end()) return out;
  for (const auto& [key, groups] : found->second) {
    const BindRequest* request = kai.bind_requests.find(key);
    if (request == nullptr) continue;
    const ObjectKey pod{key.ns, request->pod_name};
    const auto looked_up = kai.lookups.pods.find(pod);
    const bool there = looked_up != kai.lookups.pods.end();
    const Duration age = there ? snapshot.mono - looked_up->second.at : Duration::zero();
    if ((!there || age >= settings.sweep) && asks > 0) {
      --asks;
      wanted.pods.insert(pod);
    }
    if (!there || age >= 2 * settings.sweep) {
      out.known = false;
    } else if (looked_up->second.alive) {
      out.pods.insert(k8s::to_string(pod));
    }
  }
  return out;
}

}  // namespace gso
