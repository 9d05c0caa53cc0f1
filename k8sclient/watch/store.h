// Store<T>: the projected objects of one watch, by key. The watcher writes it with five verbs (Init, InitApply,
// InitDone, Apply, Delete); everybody else reads. A relist is swapped in at InitDone, so a reader never sees half of
// it.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "k8sclient/value/object.h"

namespace k8s {

// T needs a member `ObjectMeta meta` and operator== (used to stay silent about events that change nothing we keep).
template <class T>
class Store {
 public:
  using Ptr = std::shared_ptr<const T>;
  // `before` or `after` is null for an addition or a removal. Called after the store changed.
  using Listener = std::function<void(const ObjectKey&, const Ptr& before, const Ptr& after)>;

  // Readers.
  [[nodiscard]] const T* find(const ObjectKey& key) const {
    auto it = objects_.find(key);
    return it == objects_.end() ? nullptr : it->second.get();
  }
  [[nodiscard]] const T* find(std::string_view name) const { return find(ObjectKey{"", std::string(name)}); }
  [[nodiscard]] Ptr get(const ObjectKey& key) const {
    auto it = objects_.find(key);
    return it == objects_.end() ? nullptr : it->second;
  }
  [[nodiscard]] const std::unordered_map<ObjectKey, Ptr>& all() const { return objects_; }
  [[nodiscard]] std::size_t size() const { return objects_.size(); }
  // True from the first InitDone on (or once discovery said that the API is absent: mark_absent()). Nothing is ever
  // removed, deleted or restarted on behalf of a store that is not synced.
  [[nodiscard]] bool synced() const { return synced_; }

  // Writers (the watcher, or a test).
  void init() { buffer_.clear(); }
  void init_apply(T object) {
    ObjectKey key = object.meta.key();
    // What has not changed is shared with the view before, so that a relist costs no second fleet of memory.
    auto it = objects_.find(key);
    const bool known = it != objects_.end() && take_version(*it->second, object);
    Ptr kept = known ? it->second : std::make_shared<T>(std::move(object));
    buffer_.insert_or_assign(std::move(key), std::move(kept));
  }
  void init_erase(const ObjectKey& key) { buffer_.erase(key); }
  void init_done() {
    auto before = std::exchange(objects_, std::exchange(buffer_, {}));
    synced_ = true;
    for (auto& [key, after] : objects_) {
      auto it = before.find(key);
      if (it == before.end()) {
        notify(key, nullptr, after);
      } else if (it->second != after) {
        notify(key, it->second, after);
      }
    }
    for (auto& [key, gone] : before) {
      if (!objects_.contains(key)) notify(key, gone, nullptr);
    }
  }
  void apply(T object) {
    ObjectKey key = object.meta.key();
    Ptr& slot = objects_[key];
    if (slot != nullptr && take_version(*slot, object)) return;
    const Ptr after = std::make_shared<T>(std::move(object));
    const Ptr before = std::exchange(slot, after);
    notify(key, before, after);
  }
  void erase(const ObjectKey& key) {
    auto it = objects_.find(key);
    if (it == objects_.end()) return;
    Ptr gone = std::move(it->second);
    objects_.erase(it);
    notify(key, gone, nullptr);
  }
  // What is held now is the first complete view: for stores that several watches fill object by object. Keys stay where
  // they are (init_done() moves them).
  void mark_synced() { synced_ = true; }
  // The API does not exist on this server (by discovery, never by 403 or 5xx): synced and empty.
  void mark_absent() {
    init();
    init_done();
  }
  void add_listener(Listener listener) { listeners_.push_back(std::move(listener)); }

 private:
  // resourceVersion alone is no change: heartbeats must not wake planners. Then the object that is held stays, so that
  // whoever shares it shares the one in the store, with the new version. (Never created const: Ptr only reads.)
  static bool take_version(const T& held, T& fresh) {
    std::string version = std::exchange(fresh.meta.resource_version, held.meta.resource_version);
    const bool same = held == fresh;
    fresh.meta.resource_version = version;
    if (same) const_cast<T&>(held).meta.resource_version = std::move(version);
    return same;
  }
  void notify(const ObjectKey& key, const Ptr& before, const Ptr& after) {
    for (auto& listener : listeners_) listener(key, before, after);
  }

  std::unordered_map<ObjectKey, Ptr> objects_;
  std::unordered_map<ObjectKey, Ptr> buffer_;
  std::vector<Listener> listeners_;
  bool synced_ = false;
};

}  // namespace k8s
