// Read-your-writes: the operator's own writes that the watched stores must show before the next plan.
// Source of the idea: KEP-5647 (stale controller handling), after client-go's ControllerExpectations.
//
// Guarantees
//  - While current() is false, the stores lag behind a write of the operator. A plan must leave out nodes(), or it
//    could act twice or overstep a budget; while fleet_is_current() is false it cannot be made at all.
//  - A status, whose answer is the whole object, is in the store with its answer: no plan waits for its watch.
//  - An expectation that is not met in time is settled by a live GET, whose answer is put into the store (it is newer
//    than what the store has); a stalled watch thus cannot block the fleet. A complete view that was begun before can
//    still take it away: then the expectation holds again.
//  - A live GET puts no object into a store whose watch has deleted it meanwhile, or does not cover it. One that is
//    older than what the store had before it is a contradiction (a restored etcd), and no answer.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "k8sclient/api/reader.h"
#include "k8sclient/clock.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

using k8s::Duration;
using k8s::MonoTime;

class Expectations {
 public:
  // `patience`: how long a watch may take to bring our write before a live GET.
  Expectations(k8s::Reader* client, k8s::Clock* clock, World* world, Duration patience = std::chrono::seconds(5))
      : client_(client), clock_(clock), world_(world), patience_(patience) {}
  // Called when a live read was older than its store.
  void on_contradiction(std::function<void(const k8s::Error&)> contradicted) {
    contradicted_ = std::move(contradicted);
  }

  // The node whose change the write belongs to; without a name it concerns the whole fleet.
  struct OfNode {
    std::string node;
    std::shared_ptr<const PatchNode> change;  // The write, if it writes a change to the Node.
  };
  // The object was written and now has this resourceVersion. Kinds that no store keeps are ignored.
  void written(const ObjectRef& object, const std::string& resource_version, OfNode of = {});
  // After written(), where the answer is the whole object: the store learns it from that, as from a live GET, if it has
  // the object. One that it does not have might be deleted already, and nobody would ever take it out again.
  void learn(const ObjectRef& object, const std::string& answer);
  // The object of this uid was deleted: gone, being deleted, or of another uid.
  void deleted(const ObjectRef& object, const std::string& uid, OfNode of = {});
  // It is unknown whether the write happened: only a live GET can show it, and of a change with its precondition only
  // one that shows the Node as another version, or some time later. Pods that no store has are ignored, too: who evicts
  // or deletes those lists them anew.
  void unknown(const ObjectRef& object, OfNode of = {});

  // True when the stores show all of it. Forgets what is met.
  [[nodiscard]] bool current();
  // True when the stores show every write that concerns the whole fleet: the record, policies, rollouts.
  //
  // Why there is such a wait: a plan for any node reads the record (what is loaded, verified, stopped), and the phases
  // of rollouts say which of them are in progress. From an older state a plan could start a rollout again that somebody
  // has stopped (S10), count a canary twice or write the same again (S6). It is short: a status and finalizers are
  // known from their answer. What waits for a watch are ConfigMaps (the record, managed keys), a new or deleted
  // rollout, and a deleted reservation of KAI, which belongs to no node's change: for `patience` and one GET at most.
  // A write whose answer was lost waits for one GET.
  [[nodiscard]] bool fleet_is_current();
  // The nodes with a write that the stores do not show yet.
  [[nodiscard]] NodesBeingWritten nodes();
  // When the next one needs a live GET; never() when none does.
  [[nodiscard]] MonoTime next_refresh() const;
  // Age of the oldest one; zero when none is outstanding.
  [[nodiscard]] Duration lag() const;

  // The objects that need a live GET now. Each is to be given to settle(), one beside the other: none of them is named
  // again until that has ended.
  [[nodiscard]] std::vector<ObjectRef> take_overdue();
  // Settles what is expected of the object by a live GET. An object that is gone leaves the store; an object that can
  // no longer be read (forbidden) is dropped, and its error is returned for reporting.
  boost::asio::awaitable<std::optional<k8s::Error>> settle(ObjectRef object);
  // GETs one object into its store now, whatever is expected of it. Errors: as Reader::get; `expired` with the cause
  // k8s::kBackInTimeCause for a contradiction.
  boost::asio::awaitable<k8s::Result<void>> refresh_one(ObjectRef object);
  // What the leader before has written last, into the stores: the record in `state` and its shards, and the nodes in a
  // change. The watches of a standby can be behind. Errors: of the first read that failed.
  boost::asio::awaitable<k8s::Result<void>> read_as_new_leader(k8s::ObjectKey state);

 private:
  struct Key {
    std::string kind;
    k8s::ObjectKey key;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Expected {
    ObjectRef object;
    std::string resource_version;  // Empty: not known.
    std::string gone_uid;          // Not empty: a deletion.
    OfNode of;
    MonoTime since;
    MonoTime refresh_at;
    std::optional<MonoTime> lost_at;  // It is unknown whether the write happened.
    // A live GET, or the write's own answer, has put into the store what is expected here.
    std::optional<MonoTime> settled_at;
    // The store had the object and learned the write from its answer: if it is missing, it was deleted since.
    bool learned = false;
    std::uint64_t write = 0;  // The number of the write: another one may follow while a GET is under way.
  };
  [[nodiscard]] bool met(const Expected& expected) const;
  [[nodiscard]] bool can_begin_still(const Expected& expected) const;
  void mark_settled(Expected& expected) const;
  bool expect_what_was_read(Expected& expected, const std::string& uid_before);
  Expected& slot(const ObjectRef& object, OfNode of);
  template <class T>
  k8s::Result<void> take_live(k8s::Store<T>& store, T live, const k8s::ObjectMeta& before);
  boost::asio::awaitable<k8s::Result<void>> read_record(k8s::ObjectKey state);
  boost::asio::awaitable<k8s::Result<void>> read_nodes_in_change();

  k8s::Reader* client_;
  k8s::Clock* clock_;
  World* world_;
  Duration patience_;
  std::function<void(const k8s::Error&)> contradicted_ = [](const k8s::Error&) {};
  std::map<Key, Expected> pending_;
  std::uint64_t writes_ = 0;
};

}  // namespace gso
