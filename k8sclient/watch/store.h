// Store<T>: the projected objects of one watch, by key. The watcher writes it with five verbs (Init, InitApply,
// InitDone, Apply, Delete); everybody else reads. A relist is swapped in at InitDone, so a reader never sees half of
// it.
//
// A live GET can be ahead of the watch. What it has shown is never undone by events that the watch delivers late:
// apply() ignores an older version, and what erase_for_good() removed does not come back under its uid. Only a complete
// view replaces newer versions, because a restored etcd is believed, and brings back what was removed before that view
// began: it is a consistent read.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <unordered_set>
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
  [[nodiscard]] const T* find(const ObjectKey& key) const { return look_up(Name(key)); }
  [[nodiscard]] const T* find(std::string_view name) const { return look_up(Name("", name)); }
  [[nodiscard]] Ptr get(const ObjectKey& key) const {
    auto it = objects_.find(Name(key));
    return it == objects_.end() ? nullptr : it->object;
  }
  // Each object with its key, in no order: `for (const auto& [key, object] : store.all())`. The key is made for the
  // loop: keep a copy of it, or what the object itself has.
  struct Entry {
    ObjectKey first;
    Ptr second;
  };
  [[nodiscard]] auto all() const {
    return std::views::transform(objects_,
                                 [](const Slot& slot) { return Entry{slot.object->meta.key(), slot.object}; });
  }
  [[nodiscard]] std::size_t size() const { return objects_.size(); }
  // True from the first InitDone on (or once discovery said that the API is absent: mark_absent()). Nothing is ever
  // removed, deleted or restarted on behalf of a store that is not synced.
  [[nodiscard]] bool synced() const { return synced_; }

  // Writers (the watcher, or a test).
  void init() {
    buffer_.clear();
    list_began_ = erasures_;
  }
  // `content`: Revision's, if it is known; so of apply().
  void init_apply(T object, std::uint64_t content = 0) {
    if (is_gone(object.meta, list_began_)) return;
    // What has not changed is shared with the view before, so that a relist costs no second fleet of memory.
    auto it = objects_.find(Name(object.meta));
    const bool known = it != objects_.end() && take_version(*it->object, object);
    put(buffer_, known ? it->object : std::make_shared<T>(std::move(object)), content);
  }
  void init_erase(const ObjectKey& key) {
    gone_.erase(key);
    if (auto it = buffer_.find(Name(key)); it != buffer_.end()) buffer_.erase(it);
  }
  void init_done() {
    auto before = std::exchange(objects_, std::exchange(buffer_, {}));
    synced_ = true;
    forget_erasures(list_began_);
    for (const Slot& now : objects_) {
      auto it = before.find(now);
      if (it == before.end())
        notify(nullptr, now.object);
      else if (it->object != now.object)
        notify(it->object, now.object);
    }
    for (const Slot& gone : before)
      if (!objects_.contains(gone)) notify(gone.object, nullptr);
  }
  // Ignores an object that is older than what is held.
  void apply(T object, std::uint64_t content = 0) {
    const T* held = look_up(Name(object.meta));
    if (held != nullptr && older(object.meta.resource_version, held->meta.resource_version)) return;
    if (!is_gone(object.meta, 0)) replace(std::move(object), content);
  }
  // Instead of apply(), for an object whose content is that of the one that is held: takes the version alone. False: it
  // must be applied.
  bool renew(const Revision& now) {
    const auto it = objects_.find(Name("", now.name));
    if (it == objects_.end() || now.content == 0 || it->content != now.content) return false;
    std::string& version = it->object->meta.resource_version;
    if (!older(now.resource_version, version)) version = now.resource_version;
    return true;
  }
  // The same as apply() whatever its version, and whether it is gone.
  void replace(T object, std::uint64_t content = 0) {
    auto it = objects_.find(Name(object.meta));
    if (it != objects_.end() && take_version(*it->object, object)) {
      it->content = content;
      return;
    }
    const auto after = std::make_shared<T>(std::move(object));
    notify(put(objects_, after, content), after);
  }
  // The same of a list that began when erasures() had this value: for a view that several watches fill object by
  // object.
  void replace_listed(T object, std::uint64_t list_began) {
    if (!is_gone(object.meta, list_began)) replace(std::move(object));
  }
  void erase(const ObjectKey& key) {
    gone_.erase(key);
    auto it = objects_.find(Name(key));
    if (it == objects_.end()) return;
    const Ptr gone = it->object;
    objects_.erase(it);
    notify(gone, nullptr);
  }
  // A live GET has found that the object is gone. Its watch can be behind, and its events are ignored until it reports
  // the deletion as well: no uid is used twice. An object without a uid can come back.
  void erase_for_good(const ObjectKey& key) {
    const T* held = find(key);
    if (held == nullptr) return;
    const Uid uid = held->meta.uid;
    erase(key);
    // A list that is under way may have brought it already.
    if (auto it = buffer_.find(Name(key)); it != buffer_.end() && it->object->meta.uid == uid) buffer_.erase(it);
    gone_.insert_or_assign(key, Gone{uid, ++erasures_});
  }
  // How many objects have been erased for good.
  [[nodiscard]] std::uint64_t erasures() const { return erasures_; }
  // A complete list that began after the first `number` of them says what became of their objects.
  void forget_erasures(std::uint64_t number) {
    std::erase_if(gone_, [number](const auto& entry) { return entry.second.number <= number; });
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
  // An object is found by the namespace and the name in it. A fleet has tens of thousands of objects, and a second copy
  // of each key would need a quarter of their memory.
  struct Name {
    Name(std::string_view the_ns, std::string_view the_name) : ns(the_ns), name(the_name) {}
    explicit Name(const ObjectKey& key) : Name(key.ns, key.name) {}
    explicit Name(const ObjectMeta& meta) : Name(meta.ns.view(), meta.name) {}
    std::string_view ns;
    std::string_view name;
    friend bool operator==(const Name&, const Name&) = default;
  };
  struct Slot {
    // Never null. Mutable: an object of the same key replaces it. Everybody else reads it through a Ptr.
    mutable std::shared_ptr<T> object;
    mutable std::uint64_t content = 0;  // Of its Revision; 0: not known.
  };
  // Not noexcept: the standard library then keeps each hash beside its slot. Without that, it reads and hashes the name
  // of every object that it passes by.
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const Name& key) const {
      constexpr std::hash<std::string_view> kHash{};
      return kHash(key.name) * 31 + kHash(key.ns);
    }
    std::size_t operator()(const Slot& slot) const { return (*this)(Name(slot.object->meta)); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Slot& a, const Slot& b) const { return Name(a.object->meta) == Name(b.object->meta); }
    bool operator()(const Name& a, const Slot& b) const { return a == Name(b.object->meta); }
    bool operator()(const Slot& a, const Name& b) const { return Name(a.object->meta) == b; }
  };
  using Slots = std::unordered_set<Slot, Hash, Equal>;

  [[nodiscard]] const T* look_up(const Name& name) const {
    auto it = objects_.find(name);
    return it == objects_.end() ? nullptr : it->object.get();
  }
  // Returns the object that was there before; null: none.
  static Ptr put(Slots& slots, std::shared_ptr<T> object, std::uint64_t content) {
    auto [it, added] = slots.insert(Slot{object, content});
    if (added) return nullptr;
    it->content = content;
    return std::exchange(it->object, std::move(object));
  }
  // resourceVersion alone is no change: heartbeats must not wake planners. Then the object that is held stays, and
  // takes the new version, also for those who share it. That is right because they mean the object as it is on the
  // server: a plan writes with the version that the store has while it is made, the executor leaves the version out
  // when it compares the object that was planned from with a live one, and Expectations wait for a version or a later
  // one. Everything else that they hold is as they saw it: with any other difference the object is replaced. In
  // init_apply() the version arrives before init_done(), and is right as well: the server has sent it with just this
  // content. Kept in the slot instead, everybody who writes with it would have to look it up there.
  static bool take_version(T& held, T& fresh) {
    std::string version = std::exchange(fresh.meta.resource_version, held.meta.resource_version);
    const bool same = held == fresh;
    fresh.meta.resource_version = version;
    if (same) held.meta.resource_version = std::move(version);
    return same;
  }
  // It was erased for good, by a later erasure than the first `before`.
  [[nodiscard]] bool is_gone(const ObjectMeta& meta, std::uint64_t before) const {
    if (gone_.empty()) return false;
    const auto it = gone_.find(meta.key());
    return it != gone_.end() && it->second.number > before && !it->second.uid.empty() && it->second.uid == meta.uid;
  }
  void notify(const Ptr& before, const Ptr& after) {
    if (listeners_.empty()) return;
    const ObjectKey key = (after ? after : before)->meta.key();
    for (auto& listener : listeners_) listener(key, before, after);
  }

  Slots objects_;
  Slots buffer_;
  // Objects that were deleted, and whose deletion the watch has not reported yet. `number`: of the erasure.
  struct Gone {
    Uid uid;
    std::uint64_t number = 0;
  };
  std::map<ObjectKey, Gone> gone_;
  std::uint64_t erasures_ = 0;
  std::uint64_t list_began_ = 0;  // erasures_ at the last init().
  std::vector<Listener> listeners_;
  bool synced_ = false;
};

// --- A bound for stores that strangers fill. StoreBudget: how much memory the objects of one store may need together.
// LeftOut: which objects of a view are not in the store, because there was no room for them; whoever concludes
// something from an object's absence asks it first.

class LeftOut {
 public:
  // Of those beyond only a complete list says that they have gone.
  static constexpr std::size_t kMostTold = 4096;

  // A complete list replaces what was left out before it.
  void list_begins() {
    lists_ = true;
    fresh_ = {};
  }
  void list_ends() {
    if (std::exchange(lists_, false)) known_ = std::exchange(fresh_, {});
  }
  void add(const ObjectKey& key) { (lists_ ? fresh_ : known_).add(key); }
  void remove(const ObjectKey& key) {
    if (count() == 0) return;
    known_.prints.erase(print(key));
    fresh_.prints.erase(print(key));
  }

  // At least so many; 0: the view is complete.
  [[nodiscard]] std::size_t count() const { return std::max(known_.count(), fresh_.count()); }
  // The first of them: "team/pod-7".
  [[nodiscard]] const std::string& example() const { return known_.example.empty() ? fresh_.example : known_.example; }

 private:
  static std::size_t print(const ObjectKey& key) { return std::hash<std::string>{}(to_string(key)); }

  struct Names {
    std::unordered_set<std::size_t> prints;
    bool more = false;
    std::string example;
    void add(const ObjectKey& key) {
      if (count() == 0) example = to_string(key);
      if (prints.size() < kMostTold)
        prints.insert(print(key));
      else
        more = more || !prints.contains(print(key));
    }
    [[nodiscard]] std::size_t count() const { return prints.size() + (more ? 1 : 0); }
  };
  Names known_;
  Names fresh_;  // Of the list that is under way.
  bool lists_ = false;
};

// Sinks ask it before each object that they write.
template <class T>
class StoreBudget {
 public:
  // What an object needs, whatever its resourceVersion.
  using Cost = std::size_t (*)(const T&);
  // The store must outlive the budget.
  StoreBudget(Store<T>* store, Cost cost, std::size_t most) : store_(store), cost_(cost), most_(most) {
    for (const auto& [key, object] : store->all()) *bytes_ += cost(*object);
    using Ptr = Store<T>::Ptr;
    store->add_listener([bytes = bytes_, cost](const ObjectKey& /*key*/, const Ptr& before, const Ptr& after) {
      if (after) *bytes += cost(*after);
      if (before) *bytes -= cost(*before);
    });
  }

  [[nodiscard]] std::size_t most() const { return most_; }
  void set_most(std::size_t bytes) { most_ = bytes; }
  // How much of the room is open to an object: of less important ones one half, so that they leave room for others.
  enum class Share : std::uint8_t { all, half };
  // An object that gets no larger has room.
  [[nodiscard]] bool has_room(const T& object, Share share = Share::all) const {
    const T* held = store_->find(object.meta.key());
    const std::size_t before = held == nullptr ? 0 : cost_(*held);
    const std::size_t after = cost_(object);
    const bool fits = after <= before || *bytes_ - before + after <= most_of(share);
    if (!fits) smallest_of(share) = std::min(smallest_of(share), after);
    return fits;
  }
  // After objects were left out: so much has gone that another list is worth it, because it takes one of them.
  [[nodiscard]] bool has_room_again() const {
    return std::ranges::any_of(std::array{Share::all, Share::half}, [this](Share share) {
      const std::size_t most = most_of(share);
      return *bytes_ <= most / 4 * 3 && smallest_of(share) <= most - *bytes_;
    });
  }

 private:
  [[nodiscard]] std::size_t most_of(Share share) const { return share == Share::all ? most_ : most_ / 2; }
  [[nodiscard]] std::size_t& smallest_of(Share share) const { return smallest_[static_cast<std::size_t>(share)]; }

  Store<T>* store_;
  Cost cost_;
  std::size_t most_;
  std::shared_ptr<std::size_t> bytes_ = std::make_shared<std::size_t>(0);  // Of the store's objects.
  // Of the objects that had no room, by their share.
  mutable std::array<std::size_t, 2> smallest_{std::numeric_limits<std::size_t>::max(),
                                               std::numeric_limits<std::size_t>::max()};
};

}  // namespace k8s
