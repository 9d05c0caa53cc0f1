// About how much memory the objects of a store use: for metrics and /debug/cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "k8sclient/watch/store.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/objects.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// One object with what it holds; interned texts are counted elsewhere (gpusharing_interned_bytes).
[[nodiscard]] std::size_t bytes_of(const Node& node);
[[nodiscard]] std::size_t bytes_of(const Pod& pod);
[[nodiscard]] std::size_t bytes_of(const ConfigMap& config_map);
[[nodiscard]] std::size_t bytes_of(const DaemonSet& daemonset);
[[nodiscard]] std::size_t bytes_of(const ControllerRevision& revision);
[[nodiscard]] std::size_t bytes_of(const ClusterPolicy& policy);
[[nodiscard]] std::size_t bytes_of(const DeviceClass& device_class);
[[nodiscard]] std::size_t bytes_of(const ResourceSlice& slice);
[[nodiscard]] std::size_t bytes_of(const SharingPolicy& policy);
[[nodiscard]] std::size_t bytes_of(const SharingRollout& rollout);
[[nodiscard]] std::size_t bytes_of(const KaiPod& pod);
[[nodiscard]] std::size_t bytes_of(const KaiConfig& config);
[[nodiscard]] std::size_t bytes_of(const BindRequest& request);

// Of a whole store, by the mean of a few of its objects: the cost does not grow with the fleet.
template <class T>
[[nodiscard]] std::size_t bytes_of(const k8s::Store<T>& store) {
  constexpr std::size_t kSampled = 200;
  constexpr std::size_t kEntry = sizeof(typename k8s::Store<T>::Ptr) + 4 * sizeof(void*);
  std::size_t sampled = 0;
  std::size_t bytes = 0;
  for (const auto& [key, object] : store.all()) {
    bytes += bytes_of(*object) + kEntry;
    if (++sampled == kSampled) break;
  }
  return sampled == 0 ? 0 : bytes / sampled * store.size();
}

struct StoreSize {
  const char* resource;
  std::size_t objects = 0;
  std::size_t bytes = 0;
};
// Of each store that can grow with the cluster.
[[nodiscard]] std::vector<StoreSize> store_sizes(const World& world);

}  // namespace gso
