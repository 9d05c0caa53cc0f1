// KaiIndex: which pods and BindRequests belong to which GPU group and node. Follows the stores; an event costs what it
// changes, and a planning pass visits only the groups that are not certainly healthy.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/model/kai_world.h"

namespace gso {

struct World;
struct PlannerSettings;

// Its plugin offers each device more than once (labels, resources).
[[nodiscard]] bool serves_replicas(const Node& node);

class KaiIndex {
 public:
  struct Group {
    std::set<ObjectKey> reservations;
    std::set<ObjectKey> consumers;  // Single-device ones, whatever their phase.
    std::set<ObjectKey> bind_requests;
    [[nodiscard]] bool empty() const { return reservations.empty() && consumers.empty() && bind_requests.empty(); }
  };
  // What of KAI is on one node, for exclusivity.
  struct NodeUse {
    std::int64_t reservations = 0;   // Live ones.
    std::int64_t consumers = 0;      // Live and bound.
    std::int64_t bind_requests = 0;  // In progress.
    [[nodiscard]] bool any() const { return reservations + consumers + bind_requests > 0; }
    friend bool operator==(const NodeUse&, const NodeUse&) = default;
  };

  // Listens to the stores of `world`, which must outlive this index.
  void attach(World& world);
  void note_everything_changed() { everything_ = true; }
  void refresh(const World& world, const PlannerSettings& settings);
  // Nodes whose KAI use began or ended since the last call.
  [[nodiscard]] std::vector<std::string> take_changed_nodes();

  // --- After refresh().
  [[nodiscard]] const KaiView& view() const { return view_; }
  [[nodiscard]] const Group* group(const std::string& name) const;
  [[nodiscard]] const std::unordered_map<std::string, Group>& groups() const { return groups_; }
  // Groups that need a look: all but those with one running, annotated reservation beside bound, live consumers.
  [[nodiscard]] const std::set<std::string>& attention() const { return attention_; }
  // Changes whenever a live consumer or a BindRequest of the group is added, changed or removed.
  [[nodiscard]] std::uint64_t activity(const std::string& group) const;
  [[nodiscard]] const std::set<ObjectKey>& unlabelled() const { return unlabelled_; }
  [[nodiscard]] const std::set<ObjectKey>& leftovers() const { return leftovers_; }
  [[nodiscard]] const std::map<std::string, NodeUse>& nodes() const { return nodes_; }
  // "2 reservations, 1 fraction pod"; empty if the node has no pods of KAI.
  [[nodiscard]] std::string use_of(std::string_view node) const;
  // Live reservations on a node.
  [[nodiscard]] const std::set<ObjectKey>& reservations_on(std::string_view node) const;
  // Nodes with reservations and a NoExecute taint.
  [[nodiscard]] const std::set<std::string>& evicting() const { return evicting_; }
  // A GPU of a node that reservations of several groups say they hold.
  using Device = std::pair<std::string, std::string>;  // Node, UUID.
  [[nodiscard]] const std::map<Device, std::set<ObjectKey>>& claimed_twice() const { return claimed_twice_; }
  // Live reservations that say they hold the GPU that this one says it holds, where they are of several groups.
  [[nodiscard]] const std::set<ObjectKey>& claimants(const KaiPod& reservation) const;
  // Nodes with KAI use whose plugin serves replicas (time-slicing or MPS).
  [[nodiscard]] const std::set<std::string>& shared_twice() const { return shared_twice_; }
  // Succeeded BindRequests whose pod no watch shows (multi-device consumers have no plain label), with the groups that
  // have no live reservation on the node: node -> BindRequest -> how many groups. unreserved_consumers() looks up
  // whether such a pod is alive.
  using Unreserved = std::map<std::string, std::map<ObjectKey, int>>;
  [[nodiscard]] const Unreserved& unreserved() const { return unreserved_; }

 private:
  // What one pod or BindRequest contributes.
  struct Share {
    std::vector<std::string> groups;
    std::set<ObjectKey> Group::* members = nullptr;  // Where it is in each of them.
    std::string node = {};                           // The node whose use includes it; empty: none.
    std::int64_t NodeUse::* counted = nullptr;       // As what.
    bool reserves = false;                           // It is a live reservation on that node,
    std::string device = {};                         // of this GPU.
  };
  using Shares = std::unordered_map<ObjectKey, Share>;
  void note_activity(const std::vector<std::string>& groups);
  void take_out(Shares& shares, const ObjectKey& key);
  void put_in(Shares& shares, const ObjectKey& key, Share share);
  void put_in_pod(const KaiWorld& kai, const ObjectKey& key);
  void put_in_request(const KaiWorld& kai, const ObjectKey& key);
  NodeUse& use(const std::string& node);
  void weigh(const KaiWorld& kai, const std::string& name);
  void find_unreserved(const KaiWorld& kai, const std::string& group);
  void compare_sharing(const World& world, const std::string& node);
  void compare_claims(const KaiWorld& kai, const Device& device);

  KaiView view_;
  bool everything_ = true;
  std::unordered_set<ObjectKey> dirty_pods_;
  std::unordered_set<ObjectKey> dirty_requests_;
  std::unordered_set<std::string> dirty_nodes_;
  std::unordered_set<std::string> touched_groups_;
  std::map<std::string, bool> touched_nodes_;  // Node -> whether it had use before.
  std::unordered_map<std::string, Group> groups_;
  std::unordered_map<std::string, std::uint64_t> activity_;
  Shares pod_shares_;
  Shares request_shares_;
  std::map<std::string, NodeUse> nodes_;
  std::set<std::string> attention_;
  std::set<ObjectKey> unlabelled_;
  std::set<ObjectKey> leftovers_;
  std::set<std::string> shared_twice_;
  Unreserved unreserved_;
  std::unordered_map<std::string, std::vector<std::pair<std::string, ObjectKey>>> unreserved_of_;  // By group.
  std::set<std::string> evicting_;
  std::unordered_map<std::string, std::set<ObjectKey>> reservations_on_;
  std::map<Device, std::set<ObjectKey>> devices_;
  std::map<Device, std::set<ObjectKey>> claimed_twice_;
  std::set<Device> touched_devices_;
  std::set<std::string> changed_nodes_;
};

}  // namespace gso
