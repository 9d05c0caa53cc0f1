// The store behind the API: every object as immutable text of one revision, and a window of past events from which
// watches are replayed and older lists are rebuilt. Plays the part of etcd and of the watch cache.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "k8sclient/clock.h"
#include "k8sclient/value/object.h"

namespace gso::sim {

// One revision of one object. Its text is the truth; the parsed form, which takes five times the room, is made when
// asked for and kept while it is among the last few hundred that were used (recent_json.h).
class Object {
 public:
  // `object` has its metadata with a name; `fields` are its selectable fields.
  Object(nlohmann::json object, std::vector<std::pair<std::string, std::string>> fields);

  [[nodiscard]] std::uint64_t revision() const { return revision_; }
  [[nodiscard]] const k8s::ObjectKey& key() const { return key_; }
  [[nodiscard]] const std::string& uid() const { return uid_; }
  // JSON without spaces or a newline. `body` is the same without apiVersion and kind, as it stands in lists.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] const std::string& body() const { return body_; }
  [[nodiscard]] std::shared_ptr<const nlohmann::json> parsed() const;
  [[nodiscard]] std::optional<std::string_view> label(std::string_view label_key) const;
  // A selectable field's value ("spec.nodeName"); nullopt when the kind does not offer it.
  [[nodiscard]] std::optional<std::string_view> field(std::string_view path) const;
  [[nodiscard]] const std::vector<std::string>& owner_uids() const { return owner_uids_; }
  [[nodiscard]] bool deleting() const { return deleting_; }

 private:
  std::string type_;  // {"kind":"Node","apiVersion":"v1"
  std::string body_;
  k8s::ObjectKey key_;
  std::string uid_;
  std::uint64_t revision_ = 0;
  std::map<std::string, std::string, std::less<>> labels_;
  std::vector<std::pair<std::string, std::string>> fields_;
  std::vector<std::string> owner_uids_;
  bool deleting_ = false;
  mutable std::weak_ptr<const nlohmann::json> parsed_;  // Kept alive by its readers and by a ring of recent ones.
};
using ObjectPtr = std::shared_ptr<const Object>;

// What happened at a revision: before is null for an addition; for a removal, after is null and `removed` the last
// state with the revision of its removal.
struct StoredEvent {
  std::uint64_t revision = 0;
  k8s::MonoTime time;
  ObjectPtr before;
  ObjectPtr after;
  ObjectPtr removed;
};

// The objects of one resource. Keys are "namespace/name" or "name", in etcd's order.
class Bucket {
 public:
  using Objects = std::map<std::string, ObjectPtr, std::less<>>;

  [[nodiscard]] const Objects& objects() const { return objects_; }
  [[nodiscard]] ObjectPtr find(const k8s::ObjectKey& key) const;
  // Events still remembered, oldest first.
  [[nodiscard]] const std::deque<StoredEvent>& events() const { return events_; }
  // Watches and lists from before this revision are refused: events up to it are forgotten.
  [[nodiscard]] std::uint64_t forgotten() const { return forgotten_; }
  // The objects as they were at that revision; nullopt when it is too old.
  [[nodiscard]] std::optional<Objects> at(std::uint64_t revision) const;
  // The objects of one namespace (all when empty), in order.
  [[nodiscard]] static std::pair<Objects::const_iterator, Objects::const_iterator> range(const Objects& objects,
                                                                                         const std::string& ns);

 private:
  friend class Storage;
  Objects objects_;
  std::deque<StoredEvent> events_;
  std::uint64_t forgotten_ = 0;
};

struct StorageLimits {
  std::size_t events_per_resource = 10'000;         // Remembered at most.
  k8s::Duration history = std::chrono::minutes(5);  // etcd's compaction interval.
};

class Storage {
 public:
  using Listener = std::function<void(const std::string& bucket, const StoredEvent&)>;

  Storage(k8s::Clock& clock, StorageLimits limits) : clock_(clock), limits_(limits) {}

  // The last revision given out.
  [[nodiscard]] std::uint64_t revision() const { return revision_; }
  // Reserves the next revision, for the object that is about to be put.
  [[nodiscard]] std::uint64_t next_revision() { return ++revision_; }
  // "pods", "daemonsets.apps". Made when missing.
  [[nodiscard]] Bucket& bucket(const std::string& name) { return buckets_[name]; }
  [[nodiscard]] const std::map<std::string, Bucket>& buckets() const { return buckets_; }
  // Adds or replaces; the object carries the revision.
  void put(const std::string& bucket, ObjectPtr object);
  // Removes; `last` is the object's last state with the revision of the removal.
  void remove(const std::string& bucket, ObjectPtr last);
  // Forgets all events of a resource (all resources when empty), so that every older watch and continue token gets
  // 410.
  void compact(const std::string& bucket);
  // As an etcd that was restored, or lost what it had not yet saved: objects and revisions are what they were at
  // `since`, as far as events are remembered. Listeners hear nothing of it. Definitions of resources stay.
  void forget_last(k8s::MonoTime since);
  void drop_bucket(const std::string& name) { buckets_.erase(name); }
  void add_listener(Listener listener) { listeners_.push_back(std::move(listener)); }

 private:
  void record(const std::string& name, Bucket& bucket, StoredEvent event);

  k8s::Clock& clock_;
  StorageLimits limits_;
  std::uint64_t revision_ = 1;
  std::map<std::string, Bucket> buckets_;
  std::vector<Listener> listeners_;
};

// "ns/name" or "name".
[[nodiscard]] std::string storage_key(const k8s::ObjectKey& key);

}  // namespace gso::sim
