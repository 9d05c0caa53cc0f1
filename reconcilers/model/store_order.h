// The objects of a store by key: stores are unordered, and no action, message or record is allowed to depend on their
// order.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "k8sclient/value/object.h"
#include "k8sclient/watch/store.h"

namespace gso {

template <class T>
[[nodiscard]] std::vector<const T*> in_order(const k8s::Store<T>& store) {
  std::vector<std::pair<k8s::ObjectKey, const T*>> keyed;
  for (const auto& [key, object] : store.all()) keyed.emplace_back(key, object.get());
  std::ranges::sort(keyed, {}, [](const auto& entry) -> const k8s::ObjectKey& { return entry.first; });
  std::vector<const T*> out;
  out.reserve(keyed.size());
  for (const auto& [key, object] : keyed) out.push_back(object);
  return out;
}

}  // namespace gso
