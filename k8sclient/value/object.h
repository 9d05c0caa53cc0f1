// What every Kubernetes object has: identity, metadata, and the strings that repeat across thousands of objects
// (interned). No I/O here; the pure planners use these types too.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "k8sclient/value/interned.h"
#include "k8sclient/value/time.h"

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

// Sorted by key; at most some hundreds of entries, so a flat vector is smaller and faster than a map. Entries that
// other maps have as well can be kept once for all of them: see share().
class StringMap {
 public:
  struct Entry {
    Interned key;
    Interned value;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  using Entries = std::vector<Entry>;

  // In the order of the keys. A change of the map ends it.
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Entry;
    using difference_type = std::ptrdiff_t;
    using pointer = const Entry*;
    using reference = const Entry&;
    Iterator() = default;
    [[nodiscard]] reference operator*() const { return *at_; }
    [[nodiscard]] pointer operator->() const { return at_; }
    Iterator& operator++() {
      ++at_;
      enter_and_leave();
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

   private:
    friend class StringMap;
    Iterator(const Entry* at, const Entry* before, const Entries* shared) : at_(at), before_(before), shared_(shared) {
      enter_and_leave();
    }
    // The shared entries stand before the entry `before_` of the map's own.
    void enter_and_leave() {
      if (shared_ == nullptr) return;
      if (!inside_ && at_ == before_) {
        at_ = shared_->data();
        inside_ = true;
      } else if (inside_ && at_ == shared_->data() + shared_->size()) {
        at_ = before_;
        shared_ = nullptr;
      }
    }
    const Entry* at_ = nullptr;
    const Entry* before_ = nullptr;
    const Entries* shared_ = nullptr;  // Null: none, or left behind.
    bool inside_ = false;              // Of the shared entries.
  };

  StringMap() = default;
  StringMap(std::initializer_list<std::pair<std::string_view, std::string_view>> entries);
  // Sets or replaces.
  void set(std::string_view key, std::string_view value);
  void erase(std::string_view key);
  // nullopt when absent. The view lives as long as this entry.
  [[nodiscard]] std::optional<std::string_view> get(std::string_view key) const;
  [[nodiscard]] bool contains(std::string_view key) const { return get(key).has_value(); }
  [[nodiscard]] std::size_t size() const { return own_.size() + (shared_ == nullptr ? 0 : shared_->size()); }
  [[nodiscard]] bool empty() const { return own_.empty() && shared_ == nullptr; }
  [[nodiscard]] Iterator begin() const;
  [[nodiscard]] Iterator end() const { return {own_.data() + own_.size(), nullptr, nullptr}; }
  void shrink_to_fit() { own_.shrink_to_fit(); }
  // Keeps the entries whose keys begin with the prefix, if they are more than a few, once for all maps that have the
  // same: machines of one model have the same dozens of labels that describe their hardware. Changes nothing that can
  // be read. A map whose shared entries are changed has its own again.
  void share(std::string_view prefix);
  // Bytes that this map alone needs for its entries.
  [[nodiscard]] std::size_t own_bytes() const { return own_.capacity() * sizeof(Entry); }
  friend bool operator==(const StringMap& a, const StringMap& b);

 private:
  // Whether the key's place is among the shared entries.
  [[nodiscard]] bool shares(std::string_view key) const;
  [[nodiscard]] std::ptrdiff_t place_of_shared() const;
  void unshare();

  Entries own_;
  // Entries without a gap in the order of the keys, of at least one map. Null: none.
  std::shared_ptr<const Entries> shared_;
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

// What can be read of a cluster-scoped object without projecting it. Lives as long as the object's bytes.
struct Revision {
  std::string_view name;
  std::string_view resource_version;
  std::uint64_t content = 0;  // A hash of what its projection reads, and perhaps of more. 0: not known.
};

// True when both resourceVersions are numbers and a < b. Since Kubernetes 1.35 resourceVersions are comparable by
// promise, before that by implementation; anything else is never "older".
[[nodiscard]] bool older(std::string_view a, std::string_view b);

// --- URL paths of the Kubernetes API, and query encoding.

// Everything but letters, digits and `marks` becomes %XX. By default marks are those that RFC 3986 calls unreserved.
[[nodiscard]] std::string percent_encode(std::string_view text, std::string_view marks = "-._~");

// "/api/v1" or "/apis/apps/v1".
[[nodiscard]] std::string group_version_path(const Gvr& gvr);
// The collection: "/apis/apps/v1/namespaces/ns/daemonsets", or without namespace "/api/v1/nodes" (for a namespaced
// resource: of all namespaces).
[[nodiscard]] std::string collection_path(const Gvr& gvr, std::string_view ns = {});
// One object, and optionally its subresource: "/api/v1/namespaces/ns/pods/name/eviction".
[[nodiscard]] std::string object_path(const Gvr& gvr, const ObjectKey& key, std::string_view subresource = {});

// "?key=value&key=value", without those whose value is empty. Empty: there are none.
[[nodiscard]] std::string query_text(std::initializer_list<std::pair<std::string_view, std::string_view>> parameters);

}  // namespace k8s

template <>
struct std::hash<k8s::ObjectKey> {
  std::size_t operator()(const k8s::ObjectKey& key) const noexcept {
    return std::hash<std::string>{}(key.name) * 31 + std::hash<std::string>{}(key.ns);
  }
};
