// What every Kubernetes object has: identity, metadata, and the strings that repeat across thousands of objects
// (interned). No I/O here; the pure planners use these types too.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "k8sclient/value/interned.h"
#include "k8sclient/value/time.h"
#include "k8sclient/value/uid.h"

namespace k8s {

// g++ 12 miscompiles a temporary aggregate inside a co_await expression, a default argument included: its strings are
// copied bitwise and freed twice. So every type that is passed to coroutines by value has a declared constructor, which
// makes it no aggregate.

// Group, version, plural resource: {"", "v1", "nodes"}, {"apps", "v1", "daemonsets"}.
struct Gvr {
  Gvr() = default;
  Gvr(std::string the_group, std::string the_version, std::string the_resource)
      : group(std::move(the_group)), version(std::move(the_version)), resource(std::move(the_resource)) {}
  std::string group;
  std::string version;
  std::string resource;
  friend auto operator<=>(const Gvr&, const Gvr&) = default;
};

// Namespace (empty for cluster-scoped objects) and name.
struct ObjectKey {
  ObjectKey() = default;
  ObjectKey(std::string the_ns, std::string the_name) : ns(std::move(the_ns)), name(std::move(the_name)) {}
  std::string ns;
  std::string name;
  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};
// "ns/name", or "name" for a cluster-scoped object.
[[nodiscard]] std::string to_string(const ObjectKey& key);

struct OwnerReference {
  Interned kind;
  Interned name;
  Interned uid;
  bool controller = false;
  friend bool operator==(const OwnerReference&, const OwnerReference&) = default;
};

// Sorted by key; at most some hundreds of entries, so a flat vector is smaller and faster than a map.
class StringMap {
 public:
  struct Entry {
    Interned key;
    Interned value;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  StringMap() = default;
  StringMap(std::initializer_list<std::pair<std::string_view, std::string_view>> entries);
  // Sets or replaces.
  void set(std::string_view key, std::string_view value);
  void erase(std::string_view key);
  // nullopt when absent. The view lives as long as this entry.
  [[nodiscard]] std::optional<std::string_view> get(std::string_view key) const;
  [[nodiscard]] bool contains(std::string_view key) const { return get(key).has_value(); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] auto begin() const { return entries_.begin(); }
  [[nodiscard]] auto end() const { return entries_.end(); }
  void shrink_to_fit() { entries_.shrink_to_fit(); }
  friend bool operator==(const StringMap&, const StringMap&) = default;

 private:
  std::vector<Entry> entries_;
};

struct ObjectMeta {
  std::string name;
  Interned ns;
  Uid uid;
  std::string resource_version;
  std::int64_t generation = 0;
  WallTime creation_timestamp{};
  std::optional<WallTime> deletion_timestamp;
  StringMap labels;
  StringMap annotations;
  std::vector<OwnerReference> owners;

  [[nodiscard]] ObjectKey key() const { return {std::string(ns.view()), name}; }
  // The owner with controller=true, or nullptr.
  [[nodiscard]] const OwnerReference* controller() const;
  friend bool operator==(const ObjectMeta&, const ObjectMeta&) = default;
};

// True when both resourceVersions are numbers and a < b. Since Kubernetes 1.35 resourceVersions are comparable by
// promise, before that by implementation; anything else is never "older".
[[nodiscard]] bool older(std::string_view a, std::string_view b);

}  // namespace k8s

template <>
struct std::hash<k8s::ObjectKey> {
  std::size_t operator()(const k8s::ObjectKey& key) const noexcept {
    return std::hash<std::string>{}(key.name) * 31 + std::hash<std::string>{}(key.ns);
  }
};
