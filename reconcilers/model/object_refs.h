// What objects are known by, and in which order.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "k8sclient/value/object.h"
#include "k8sclient/watch/store.h"
#include "reconcilers/model/plan.h"

namespace gso {

// --- Identity: the key of a cache, from everything that its answer depends on.

// Values one after the other, as bytes: an identity is only compared, and one is made for each assessment of a node.
class Identity {
 public:
  template <class Value>
    requires std::is_pointer_v<Value> || std::is_arithmetic_v<Value> || std::is_enum_v<Value>
  Identity& operator<<(Value value) {
    const auto bytes = std::bit_cast<std::array<char, sizeof(Value)>>(value);
    text_.append(bytes.data(), bytes.size());
    return *this;
  }
  // With its length, so that two texts never look like two others.
  Identity& operator<<(std::string_view text) {
    *this << text.size();
    text_.append(text);
    return *this;
  }
  Identity& operator<<(const std::string& text) { return *this << std::string_view(text); }

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

// --- References to the objects that findings and Events are about.

[[nodiscard]] ObjectRef node_ref(const std::string& name);
[[nodiscard]] ObjectRef config_map_ref(const k8s::ObjectKey& key);
[[nodiscard]] ObjectRef daemonset_ref(const k8s::ObjectKey& key);
[[nodiscard]] ObjectRef pod_ref(const k8s::ObjectMeta& meta);
[[nodiscard]] ObjectRef policy_ref(const SharingPolicy& policy);
[[nodiscard]] ObjectRef cluster_policy_ref(const std::string& name);

// --- The objects of a store by key: stores are unordered, and no action, message or record is allowed to depend on
// their order.

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
