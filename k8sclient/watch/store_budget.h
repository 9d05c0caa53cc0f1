// A bound for stores that strangers fill. StoreBudget: how much memory the objects of one store may need together.
// LeftOut: which objects of a view are not in the store, because there was no room for them; whoever concludes
// something from an object's absence asks it first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>

#include "k8sclient/value/object.h"
#include "k8sclient/watch/store.h"

namespace k8s {

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
      if (prints.size() < kMostTold) {
        prints.insert(print(key));
      } else {
        more = more || !prints.contains(print(key));
      }
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
  // An object that gets no larger has room.
  [[nodiscard]] bool has_room(const T& object) const {
    const T* held = store_->find(object.meta.key());
    const std::size_t before = held == nullptr ? 0 : cost_(*held);
    const std::size_t after = cost_(object);
    return after <= before || *bytes_ - before + after <= most_;
  }
  // The same of a list that replaces the store.
  void list_begins() { listed_ = 0; }
  [[nodiscard]] bool take_from_list(const T& object) {
    const std::size_t bytes = cost_(object);
    if (listed_ + bytes > most_) return false;
    listed_ += bytes;
    return true;
  }
  // Enough has gone for another list to be worth it, after objects were left out.
  [[nodiscard]] bool has_room_again() const { return *bytes_ <= most_ / 4 * 3; }

 private:
  Store<T>* store_;
  Cost cost_;
  std::size_t most_;
  std::shared_ptr<std::size_t> bytes_ = std::make_shared<std::size_t>(0);  // Of the store's objects.
  std::size_t listed_ = 0;
};

}  // namespace k8s
