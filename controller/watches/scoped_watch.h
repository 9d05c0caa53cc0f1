// Watches that fill a shared store by scope: how the store's objects are counted, one such watch, and the families of
// those that are wanted, opened and closed by difference.
//
// Guarantees
//  - An object leaves the store only when a synced scope no longer has it.
//  - When a scope is no longer wanted, its watch is stopped and its objects stay until release_retired().
#pragma once

#include <algorithm>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "controller/runtime/task_group.h"
#include "k8sclient/api/reader.h"
#include "k8sclient/value/encoding.h"
#include "k8sclient/value/error.h"
#include "k8sclient/watch/store.h"
#include "k8sclient/watch/watcher.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/model/tenant_memory.h"

namespace gso {

// --- ScopeSink: what one scope brings, in a store that it shares with others.

// How many scopes hold each object of one store. Scopes name every pod of a fleet, which as text would be as large as
// half of its store. By print, never by pointers into the store: objects leave that by other ways too (Expectations
// drops what a GET finds gone).
using ScopeCounts = boost::unordered_flat_map<k8s::Print, int, std::hash<k8s::Print>>;

[[nodiscard]] inline k8s::Print print_of(const k8s::ObjectKey& key) {
  return k8s::Print(key.ns + '/' + key.name);
}

// Writes one scope's objects into a store that it shares with other scopes.
template <class T>
class ScopeSink final : public k8s::WatchSink {
 public:
  using Projector = k8s::Result<T> (*)(std::string_view json);
  // False: the object is of no interest, in whatever state it is.
  using Filter = bool (*)(std::string_view json);
  // `budget`: of the store; null: no limit.
  ScopeSink(k8s::Store<T>* store, ScopeCounts* counts, Projector project, Filter keeps = nullptr,
            k8s::StoreBudget<T>* budget = nullptr)
      : store_(store), counts_(counts), project_(project), keeps_(keeps), budget_(budget) {}

  // What an abandoned list brought stays until the next one is complete.
  void init() override {
    lists_ = true;
    left_out_.list_begins();
    placed_left_out_.list_begins();
    given_up_.merge(fresh_);
    release(std::exchange(fresh_, {}));  // Includes objects of lists that broke off earlier.
    list_began_ = store_->erasures();
  }
  k8s::Result<void> init_apply(std::string_view json) override { return take(json, &fresh_); }
  void on_relist() override { relists_ = true; }
  // take() has put the object into the store already.
  k8s::Result<void> init_remove(std::string_view json) override { return remove(json); }
  void init_done() override {
    relists_ = lists_ = false;
    left_out_.list_ends();
    placed_left_out_.list_ends();
    store_->forget_erasures(list_began_);
    Prints before = std::exchange(held_, std::exchange(fresh_, {}));
    before.merge(given_up_);
    release(std::exchange(given_up_, {}));
    release(before);
  }
  k8s::Result<void> apply(std::string_view json) override { return take(json, &held_); }
  k8s::Result<void> remove(std::string_view json) override {
    const k8s::Result<k8s::ObjectKey> key = k8s::read_object_key(json);
    if (!key) return std::unexpected(key.error());
    has_gone(*key);
    const k8s::Print print = print_of(*key);
    bool held = false;
    bool last_scope = false;
    for (Prints* prints : {&held_, &fresh_, &given_up_}) {
      if (prints->erase(print) == 0) continue;
      held = true;
      last_scope = drop(print);
    }
    if (!held) return {};
    // Only its last state shows how it ended: listeners see that state before the object is removed.
    if (store_->find(*key) != nullptr) {
      if (k8s::Result<T> last = project_(json); last && last->meta.deletion_timestamp) store_->apply(*std::move(last));
    }
    if (last_scope) store_->erase(*key);
    return {};
  }
  void skip(std::string_view metadata, const k8s::Error& /*why*/) override {
    const k8s::Result<k8s::ObjectKey> key = k8s::read_object_key(metadata);
    if (key && store_->find(*key) != nullptr) hold(*key, lists_ ? &fresh_ : &held_);
  }
  void absent() override {
    init();
    init_done();
  }
  [[nodiscard]] const k8s::LeftOut& left_out() const { return left_out_; }
  // Those of them that are on a node, or of kinds that are not.
  [[nodiscard]] const k8s::LeftOut& placed_left_out() const { return placed_left_out_; }
  // Drops all objects of the scope, which is not watched any more.
  void release_all() {
    init();
    init_done();
  }

 private:
  // Each is counted once for each set that holds it.
  using Prints = boost::unordered_flat_set<k8s::Print, std::hash<k8s::Print>>;

  // A malformed object stays as the store has it, and counts as being there.
  k8s::Result<void> take(std::string_view json, Prints* into) {
    if (keeps_ != nullptr && !keeps_(json)) return {};
    k8s::Result<T> object = project_(json);
    if (!object) {
      const k8s::Result<k8s::ObjectKey> key = k8s::read_object_key(json);
      if (key && store_->find(*key) != nullptr) hold(*key, into);
      return std::unexpected(object.error());
    }
    const k8s::ObjectKey key = object->meta.key();
    has_gone(key);
    // Anybody can create pods that run nowhere: they do not displace those that use a node.
    using Share = k8s::StoreBudget<T>::Share;
    const bool placed = is_placed(*object);
    if (budget_ != nullptr && !budget_->has_room(*object, placed ? Share::all : Share::half)) {
      left_out_.add(key);
      if (placed) placed_left_out_.add(key);
      store_->erase(key);
      return {};
    }
    if (relists_)
      store_->replace_listed(*std::move(object), list_began_);
    else
      store_->apply(*std::move(object));  // Two scopes can hold the same object, one of them a moment behind.
    hold(key, into);
    return {};
  }
  [[nodiscard]] static bool is_placed(const T& object) {
    if constexpr (requires { object.is_placed(); })
      return object.is_placed();
    else
      return true;
  }
  void has_gone(const k8s::ObjectKey& key) {
    left_out_.remove(key);
    placed_left_out_.remove(key);
  }
  void hold(const k8s::ObjectKey& key, Prints* into) {
    const k8s::Print print = print_of(key);
    if (into->insert(print).second) ++(*counts_)[print];
  }
  // True when that was the last scope that held it.
  bool drop(const k8s::Print& print) {
    const auto it = counts_->find(print);
    if (it == counts_->end() || --it->second > 0) return false;
    counts_->erase(it);
    return true;
  }
  // Their names are found in the store, by one walk.
  void release(const Prints& prints) {
    Prints last;
    for (const k8s::Print& print : prints)
      if (drop(print)) last.insert(print);
    if (last.empty()) return;
    std::vector<k8s::ObjectKey> gone;
    for (const auto& [key, object] : store_->all())
      if (last.contains(print_of(key))) gone.push_back(key);
    for (const k8s::ObjectKey& key : gone) store_->erase(key);
  }

  k8s::Store<T>* store_;
  ScopeCounts* counts_;
  Projector project_;
  Filter keeps_;
  k8s::StoreBudget<T>* budget_;
  k8s::LeftOut left_out_;
  k8s::LeftOut placed_left_out_;
  Prints held_;
  Prints fresh_;
  Prints given_up_;               // Of lists that broke off.
  bool lists_ = false;            // A complete view is on its way.
  std::uint64_t list_began_ = 0;  // Store::erasures() at its beginning.
  bool relists_ = false;  // A complete view is on its way because the one before is not trusted (WatchSink::on_relist).
};

// One open watch: of one scope, or of all objects of a kind.
class ScopedWatch {
 public:
  // Where its objects go: into a store that other scopes can fill, too. Before open(). `budget`: of the store; null: no
  // limit.
  template <class T>
  void fill(k8s::Store<T>* store, ScopeCounts* counts, k8s::Result<T> (*project)(std::string_view),
            bool (*keeps)(std::string_view) = nullptr, k8s::StoreBudget<T>* budget = nullptr) {
    auto sink = std::make_unique<ScopeSink<T>>(store, counts, project, keeps, budget);
    release_ = [raw = sink.get()] { raw->release_all(); };
    left_out_ = &sink->left_out();
    placed_left_out_ = &sink->placed_left_out();
    if (budget != nullptr) room_ = [budget] { return Room{budget->most(), budget->has_room_again()}; };
    objects_ = std::move(sink);
  }
  // The same of a store of its own without a limit, which shows each complete view as a whole.
  template <class T>
  void fill_alone(k8s::Store<T>* store, k8s::Result<T> (*project)(std::string_view),
                  k8s::StoreSink<T>::Reviser revise = nullptr) {
    objects_ = std::make_unique<k8s::StoreSink<T>>(store, project, revise);
  }
  // All that is passed must outlive the watch.
  void open(k8s::Reader* client, k8s::Gvr resource, k8s::WatcherOptions options) {
    options.complete = [this, complete = std::move(options.complete)] {
      synced_ = true;
      refusal_.reset();
      error_.reset();
      complete();
    };
    options.failed = [this, failed = std::move(options.failed)](const k8s::Error& error) {
      if (error.reason == k8s::Reason::forbidden) refusal_ = error;
      if (error.reason != k8s::Reason::too_large) error_ = error;  // A skipped object is no failure of its watch.
      failed(error);
    };
    watcher_ = std::make_unique<k8s::Watcher>(client, std::move(resource), std::move(options), objects_.get());
  }
  // After open(): runs in `tasks`, which keeps `self` alive until the watch has ended.
  static void start(std::shared_ptr<ScopedWatch> self, TaskGroup* tasks, boost::asio::any_io_executor executor) {
    tasks->spawn(std::move(executor), run(self));
  }

  // Had a complete view once, or was absent once.
  [[nodiscard]] bool synced() const { return synced_; }
  // Whether the scope's objects are those of the server.
  [[nodiscard]] k8s::View view() const { return watcher_->view(); }
  [[nodiscard]] bool current() const { return view().state == k8s::ViewState::current; }
  // Has a complete view that is a few minutes old at most.
  [[nodiscard]] bool readable() const { return synced_ && view().state >= k8s::ViewState::recent; }
  [[nodiscard]] k8s::ApiState api() const { return watcher_->api(); }
  void list_again() { watcher_->list_again(); }
  void retry_now() { watcher_->retry_now(); }
  // Current, and all objects are in the store.
  [[nodiscard]] bool is_whole() const { return current() && left_out_->count() == 0; }
  [[nodiscard]] bool knows_placed() const { return placed_left_out_->count() == 0; }
  // Of its objects, in words; empty: all are in the store.
  [[nodiscard]] std::string left_out() const {
    return left_out_->count() == 0 ? std::string() : left_out_text(*left_out_, room_().most_bytes);
  }
  // Lists what was left out, once each time that there is room again: a list that leaves it out still begins no other.
  void use_room() {
    const bool wants = left_out_->count() > 0 && room_().again;
    if (!std::exchange(listed_for_room_, wants) && wants) list_again();
  }
  // The server forbade it since, whatever else has gone wrong.
  [[nodiscard]] const std::optional<k8s::Error>& refusal() const { return refusal_; }
  // The last failure since the last complete view.
  [[nodiscard]] const std::optional<k8s::Error>& error() const { return error_; }
  // Has failed, and no stream has been opened since: its objects may be outdated.
  [[nodiscard]] bool failing() const { return watcher_->failing(); }
  // The server forbids it, which is the last that was seen of it.
  [[nodiscard]] bool is_forbidden() const { return failing() && error_ && error_->reason == k8s::Reason::forbidden; }
  void stop() { watcher_->stop(); }
  // Takes this scope's objects out of the store that it shares.
  void release() { release_(); }

 private:
  // In dynamic_watches.cc: g++ numbers the fields of a coroutine's frame anew in each file, which an optimised link
  // then reports as two types of one name.
  static boost::asio::awaitable<void> run(std::shared_ptr<ScopedWatch> self);

  struct Room {
    std::size_t most_bytes = 0;
    bool again = false;
  };
  static inline const k8s::LeftOut kNothing;

  std::unique_ptr<k8s::WatchSink> objects_;
  std::function<void()> release_;
  const k8s::LeftOut* left_out_ = &kNothing;         // Of objects_.
  const k8s::LeftOut* placed_left_out_ = &kNothing;  // The same.
  std::function<Room()> room_;
  bool listed_for_room_ = false;
  std::unique_ptr<k8s::Watcher> watcher_;
  bool synced_ = false;
  std::optional<k8s::Error> refusal_;
  std::optional<k8s::Error> error_;
};

// --- WatchFamily: watches that follow from other objects. What those of KAI, of partitioning and of the device plugins
// have in common: scopes of its own, one watch for each scope that is wanted, and which of them the server refuses.

// With what watches are opened. Everything must outlive them; `tasks` runs them and is joined by its owner.
struct WatchResources {
  k8s::Reader* client = nullptr;
  World* world = nullptr;  // Whose stores they fill.
  k8s::WatcherOptions defaults;
  TaskGroup* tasks = nullptr;
  boost::asio::any_io_executor executor;
};
struct WatchReports {
  std::function<void()> complete;  // A view has become complete.
  // `scope`: in words, such as "pods of gpu-operator".
  std::function<void(const std::string& scope, const k8s::Error&)> failed;
};

template <class Scope>
class WatchFamily {
 public:
  WatchFamily(const WatchFamily&) = delete;
  WatchFamily& operator=(const WatchFamily&) = delete;

  // Ends all of them.
  void stop() {
    for (auto& [scope, watch] : watches_) watch->stop();
  }
  // Watcher::list_again() of all of them.
  void list_again() {
    for (auto& [scope, watch] : watches_) watch->list_again();
  }
  struct Refusal {
    Scope scope;
    k8s::Error error;
  };
  // Wanted scopes that the server forbids.
  [[nodiscard]] std::vector<Refusal> refused() const {
    std::vector<Refusal> out;
    for (const auto& [scope, watch] : watches_)
      if (const auto refusal = watch->refusal()) out.push_back({scope, *refusal});
    return out;
  }
  [[nodiscard]] std::size_t open() const { return watches_.size(); }

 protected:
  WatchFamily(WatchResources resources, WatchReports reports)
      : world_(resources.world), reports_(std::move(reports)), resources_(std::move(resources)) {}
  virtual ~WatchFamily() = default;

  // The view of a scope has become complete, and a watch has failed.
  virtual void note_complete(const Scope& /*scope*/) { reports_.complete(); }
  virtual void note_failed(const Scope& scope, const k8s::Error& error) { reports_.failed(to_string(scope), error); }

  // Sets where the objects of the scope go (ScopedWatch::fill()) and what else than WatchResources::defaults is asked
  // for; returns the resource to watch.
  virtual k8s::Gvr prepare(const Scope& scope, ScopedWatch& watch, k8s::WatcherOptions& options) = 0;

  // Stops what is not in `scopes`, and opens what is new.
  void keep_open(const std::vector<Scope>& scopes) {
    for (auto it = watches_.begin(); it != watches_.end();) {
      if (std::ranges::find(scopes, it->first) != scopes.end()) {
        ++it;
        continue;
      }
      it->second->stop();
      retired_.push_back(std::move(it->second));
      it = watches_.erase(it);
    }
    for (const Scope& scope : scopes)
      if (!watches_.contains(scope)) watches_.emplace(scope, open_one(scope));
  }
  // Once every wanted scope has had a complete view, takes out of the stores what only scopes of before hold.
  void release_retired() {
    if (!std::ranges::all_of(watches_, [](const auto& entry) { return entry.second->synced(); })) return;
    for (const auto& watch : std::exchange(retired_, {})) watch->release();
  }
  [[nodiscard]] bool has_retired() const { return !retired_.empty(); }
  void use_room() {
    for (auto& [scope, watch] : watches_) watch->use_room();
  }
  // The wanted scopes and their watches, in the order of Scope. Shared with the watch's coroutine.
  using Watches = std::map<Scope, std::shared_ptr<ScopedWatch>>;
  [[nodiscard]] const Watches& watches() const { return watches_; }

  World* world_;
  WatchReports reports_;

 private:
  std::shared_ptr<ScopedWatch> open_one(const Scope& scope) {
    auto watch = std::make_shared<ScopedWatch>();
    k8s::WatcherOptions options = resources_.defaults;
    options.seed += std::hash<std::string>{}(to_string(scope));  // Not all of them reconnect at once.
    k8s::Gvr resource = prepare(scope, *watch, options);
    options.complete = [this, scope] { note_complete(scope); };
    options.failed = [this, scope](const k8s::Error& error) { note_failed(scope, error); };
    watch->open(resources_.client, std::move(resource), std::move(options));
    ScopedWatch::start(watch, resources_.tasks, resources_.executor);
    return watch;
  }

  WatchResources resources_;
  Watches watches_;
  std::vector<std::shared_ptr<ScopedWatch>> retired_;
};

}  // namespace gso
