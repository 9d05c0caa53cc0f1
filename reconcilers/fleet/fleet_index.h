// The inside of FleetIndex: assessments, and the sums and sets over them that planners visit. Planners use it, and what
// the operator shows of the fleet in its metrics.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/cluster/record_store.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/fleet/tally.h"
#include "reconcilers/kai/index.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/partitioning/partitioned_node.h"

namespace gso {

// Nodes that a rollout treats alike: one product and one profile.
struct Group {
  Tally tally;
  // Nodes that wait for a change: first those that are already busy (and need no slot), then by name.
  std::set<std::pair<bool, std::string>> pending;
};

struct ProfileRollout {
  std::size_t installation = 0;                       // The one of `installations` that speaks for it.
  std::map<std::size_t, std::int64_t> installations;  // Of its nodes -> how many of them.
  std::map<std::string, Group> groups;                // By product.
  Tally tally;
  std::array<std::set<std::string>, kRolloutBuckets> buckets;
  std::map<std::string, std::set<std::string>> blocked;  // Reason -> nodes.
  std::map<std::string, std::int64_t> targets;  // Revision -> nodes; one revision, except at the moment of a change.
  [[nodiscard]] const std::set<std::string>& nodes(RolloutBucket bucket) const {
    return buckets[static_cast<std::size_t>(bucket)];
  }
};

// Nodes of standalone MPS daemons that no plugin serves.
struct UnservedNodes {
  std::int64_t total = 0;
  std::set<std::string> busy;  // Those that hold a slot.
};

// A node in a change that only waits: the result of its last look is valid until `due`, or until an object of the node
// changes.
struct QuietChange {
  std::vector<TimerKey> timers;
  MonoTime until{};
  std::optional<MonoTime> due;  // When the first timer will have run for long enough.
};

struct IndexedNode {
  std::optional<NodeAssessment> assessment;  // nullopt: no plugin serves the node.
  NodeShare share;                           // As counted.
};

// A map with it can be asked for a name that is not a std::string. Not noexcept: see the hash of k8s::Store.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  std::size_t operator()(const Interned& text) const { return (*this)(text.view()); }
};

class FleetIndex::Impl {
 public:
  // --- Dirty objects: what refresh() must look at.
  bool everything = true;
  bool discovery_dirty = true;
  bool policies_dirty = true;
  std::unordered_set<std::string> dirty_nodes;
  std::set<ObjectKey> dirty_config_maps;

  void refresh(const World& world, const PlannerSettings& settings);
  // Indexes the pod by its node before it is looked at. Either can be null.
  void index_pod(const Pod* before, const k8s::Store<Pod>::Ptr& after);

  // --- Read by planners.
  Discovery discovery;
  std::vector<std::string>
      signatures;  // Per plugin installation: changes when what its pods would load changes. For `settled`.
  RecordStore stored;
  std::optional<FleetRecord> record;  // Of `stored`.
  [[nodiscard]] const FleetRecord* record_or_null() const { return record ? &*record : nullptr; }
  std::string record_problem;  // Not empty: the record cannot be read, and the operator rolls out nothing.
  // Policies that govern although they have no object, by name (cluster/policy_match.h).
  std::map<std::string, SharingPolicy> held_policies;
  mutable ProfileCache profiles;  // Who only reads the index compiles texts as well; the results are the same.
  KaiIndex kai;
  DraOffers dra;
  PlanningCache partitioning;
  std::unordered_map<Interned, IndexedNode, TextHash, std::equal_to<>> nodes;  // Those that add something to it.
  std::map<RolloutKey, ProfileRollout> profile_rollouts;
  std::map<std::string, Tally> policies;                       // By policy name.
  std::map<std::string, UnservedNodes, std::less<>> unserved;  // By the policy that governs them; not in `policies`.
  Tally cluster;
  ShownSums shown;                                   // For metrics.
  std::map<SetupKey, std::set<std::string>> setups;  // What preflight finds -> the nodes that have it.
  [[nodiscard]] const std::set<std::string>& nodes_in(Bucket bucket) const {
    return buckets_[static_cast<std::size_t>(bucket)];
  }
  // Nodes that no plugin with profiles serves (any more) and that still have marks of a change -> whether they count as
  // busy in `cluster`.
  std::map<std::string, bool> abandoned;
  std::unordered_map<std::string, QuietChange> quiet_changes;  // Kept by plan_changes_in_progress().
  std::map<std::string, MpsMark> mps_work;                     // By node, NodeShare::mark.
  // "namespace/configmap/key" -> nodes that have loaded it; policy -> nodes whose label it wrote; (loser, winner) ->
  // nodes that both select.
  std::map<std::string, std::int64_t> loaded, labelled;
  std::map<std::pair<std::string, std::string>, std::int64_t> overlaps;
  std::map<std::string, std::set<std::string>>
      left_to_nos;  // Policy -> nodes that the policy selects and nos partitions.
  // Policy -> nodes that it might govern once their labels are back (NodeAssessment::awaited_by).
  std::map<std::string, std::set<std::string>> awaited;
  SharingPolicy built_in_policy;

  [[nodiscard]] const NodeAssessment* find(std::string_view node) const;
  [[nodiscard]] const PluginInstallation& installation_of(const NodeAssessment& assessment) const {
    return discovery.installations[assessment.installation];
  }
  // The rollout that a node belongs to.
  [[nodiscard]] RolloutKey rollout_key_of(const NodeAssessment& assessment) const {
    return {std::string(assessment.policy.view()), installation_of(assessment).id(),
            std::string(assessment.key.view())};
  }
  [[nodiscard]] bool is_of(const NodeAssessment& assessment, const RolloutKey& rollout) const {
    return assessment.policy == rollout.policy && assessment.key == rollout.key &&
           installation_of(assessment).has_id(rollout.config_map);
  }
  // The policy of that name: its object, else its last spec if that still applies, else the built-in policy.
  [[nodiscard]] const SharingPolicy& policy(const World& world, std::string_view name) const;
  // The one that governs the node, whether a plugin serves it or not.
  [[nodiscard]] const SharingPolicy& policy_of(const World& world, const Node& node) const;
  [[nodiscard]] std::vector<const Pod*> pods_of(std::string_view node) const;

 private:
  void reset();
  void read_record(const World& world, const PlannerSettings& settings);
  void note_machines_changed(const World& world, const std::set<MachineId>& machines);
  void note_blocked();
  void rediscover(const World& world);
  void sign_sets(const World& world);
  [[nodiscard]] bool speaks_for(std::size_t installation, std::size_t other) const;
  void assess(const AssessContext& context, const std::string& name);
  // Adds a node (sign 1), or subtracts it (sign -1).
  void count(const std::string& name, const IndexedNode& node, std::int64_t sign);
  void count_unserved(const std::string& name, const NodeShare& share, std::int64_t sign);
  void count_in_fleet(const std::string& name, const NodeAssessment& assessment, std::int64_t sign);
  void count_in_rollout(const std::string& name, const NodeShare& share, const NodeAssessment& assessment,
                        std::int64_t sign);

  std::array<std::set<std::string>, kBuckets> buckets_;
  bool marks_ = false;  // marks_mps_nodes() at the last refresh.
  ExpectationCache expectations_;
  PreflightCache setups_;
  using PodPtr = k8s::Store<Pod>::Ptr;
  std::unordered_map<Interned, std::vector<PodPtr>> pods_by_node_;
  std::vector<const SharingPolicy*>
      ordered_policies_;                      // Rebuilt by each refresh, because stores replace their objects.
  std::vector<SharingPolicy> policies_seen_;  // Without the fields that change no node's policy or target.
};

}  // namespace gso
