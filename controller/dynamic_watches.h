// The watches that follow from what was discovered: operand pods, ControllerRevisions and ConfigMaps of the namespaces
// where operands live. Opened and closed by difference when the wanted scopes change; many scopes fill one store.
//
// Guarantees
//  - An object leaves the store only when a synced scope no longer has it. When a scope is no longer wanted, its
//    objects stay until every scope that is wanted now has synced.
//  - World::unsynced_namespaces names every namespace with a wanted scope that has not synced (refused ones too).
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "controller/reporting_sink.h"
#include "controller/task_group.h"
#include "k8sclient/client.h"
#include "k8sclient/error.h"
#include "k8sclient/store.h"
#include "k8sclient/watcher.h"
#include "reconcilers/discovery.h"
#include "reconcilers/snapshot.h"

namespace gso {

// How many scopes hold each object of one store. The keys are the store's own, which stay where they are until the
// object goes: a fleet has too many pods to keep their names more than once.
struct SameKey {
  std::size_t operator()(const k8s::ObjectKey* key) const { return std::hash<k8s::ObjectKey>{}(*key); }
  bool operator()(const k8s::ObjectKey* a, const k8s::ObjectKey* b) const { return *a == *b; }
};
using ScopeCounts = std::unordered_map<const k8s::ObjectKey*, int, SameKey, SameKey>;

// Writes one scope's objects into a store that it shares with other scopes.
template <class T>
class ScopeSink final : public k8s::WatchSink {
 public:
  using Projector = k8s::Result<T> (*)(std::string_view json);
  ScopeSink(k8s::Store<T>* store, ScopeCounts* counts, Projector project)
      : store_(store), counts_(counts), project_(project) {}

  // What an abandoned list brought stays until the next one is complete.
  void init() override {
    given_up_.merge(fresh_);
    release(std::exchange(fresh_, {}));  // What was given up before already.
  }
  k8s::Result<void> init_apply(std::string_view json) override { return take(json, &fresh_); }
  void init_done() override {
    Keys before = std::exchange(keys_, std::exchange(fresh_, {}));
    before.merge(given_up_);
    release(std::exchange(given_up_, {}));
    release(std::move(before));
  }
  k8s::Result<void> apply(std::string_view json) override { return take(json, &keys_); }
  k8s::Result<void> remove(std::string_view json) override {
    const k8s::Result<k8s::ObjectKey> key = k8s::read_object_key(json);
    if (!key) return std::unexpected(key.error());
    if (keys_.erase(&*key) > 0) release(*key);
    return {};
  }
  void absent() override {
    init();
    init_done();
  }
  // The scope is gone for good.
  void release_all() {
    init();
    init_done();
  }

 private:
  // Keys of the store, each counted once for each set that holds it.
  using Keys = std::unordered_set<const k8s::ObjectKey*, SameKey, SameKey>;

  // A malformed object stays as the store has it, and counts as being there.
  k8s::Result<void> take(std::string_view json, Keys* into) {
    k8s::Result<T> object = project_(json);
    if (!object) {
      const k8s::Result<k8s::ObjectKey> key = k8s::read_object_key(json);
      if (key && store_->find(*key) != nullptr) hold(*key, into);
      return std::unexpected(object.error());
    }
    const k8s::ObjectKey key = object->meta.key();
    // Two scopes may hold the same object, one of them a moment behind.
    const T* now = store_->find(key);
    if (now == nullptr || !k8s::older(object->meta.resource_version, now->meta.resource_version)) {
      store_->apply(*std::move(object));
    }
    hold(key, into);
    return {};
  }
  void hold(const k8s::ObjectKey& key, Keys* into) {
    if (into->contains(&key)) return;
    const k8s::ObjectKey* stored = &store_->all().find(key)->first;
    ++(*counts_)[stored];
    into->insert(stored);
  }
  void release(Keys keys) {
    while (!keys.empty()) {
      const k8s::ObjectKey key = **keys.begin();
      keys.erase(keys.begin());
      release(key);
    }
  }
  void release(const k8s::ObjectKey& key) {
    auto it = counts_->find(&key);
    if (it == counts_->end() || --it->second > 0) return;
    counts_->erase(it);
    store_->erase(key);
  }

  k8s::Store<T>* store_;
  ScopeCounts* counts_;
  Projector project_;
  Keys keys_;
  Keys fresh_;
  Keys given_up_;  // Of lists that broke off.
};

class DynamicWatches {
 public:
  struct Reports {
    std::function<void()> changed;  // World::unsynced_namespaces changed.
    std::function<void(const WatchScope&, const k8s::Error&)> failed;
  };
  // Everything passed must outlive the watches; `tasks` runs them and is joined by its owner.
  DynamicWatches(k8s::ApiClient* client, World* world, k8s::WatcherOptions defaults, TaskGroup* tasks,
                 boost::asio::any_io_executor executor, Reports reports);
  ~DynamicWatches();
  DynamicWatches(const DynamicWatches&) = delete;
  DynamicWatches& operator=(const DynamicWatches&) = delete;

  // Opens what is new, closes what is not wanted. The first call marks the three stores as synced: from then on
  // unsynced_namespaces says what is missing.
  void want(std::vector<WatchScope> scopes);
  // Ends all of them.
  void stop();

  struct Refusal {
    WatchScope scope;
    k8s::Error error;
  };
  // Wanted scopes that the server forbids.
  [[nodiscard]] std::vector<Refusal> refused() const;
  // Wanted scopes that have neither synced nor been refused.
  [[nodiscard]] std::vector<WatchScope> loading() const;
  [[nodiscard]] std::size_t open() const { return watches_.size(); }
  // Open watches of one kind, for metrics.
  [[nodiscard]] std::size_t open(WatchScope::Kind kind) const;

 private:
  struct Watch;
  std::shared_ptr<Watch> start(const WatchScope& scope);
  void update();

  k8s::ApiClient* client_;
  World* world_;
  k8s::WatcherOptions defaults_;
  TaskGroup* tasks_;
  boost::asio::any_io_executor executor_;
  Reports reports_;
  ScopeCounts pod_counts_;
  ScopeCounts configmap_counts_;
  ScopeCounts revision_counts_;
  std::map<WatchScope, std::shared_ptr<Watch>> watches_;  // Shared with the watch's coroutine.
  std::vector<std::shared_ptr<Watch>> retired_;           // Stopped; their objects stay until the wanted ones synced.
  bool first_ = true;
};

// "pods of gpu-operator (app=nvidia-device-plugin-daemonset)"
[[nodiscard]] std::string to_string(const WatchScope& scope);

}  // namespace gso
