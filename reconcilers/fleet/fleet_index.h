// The inside of FleetIndex: assessments, and the sums and sets over them that planners walk. Used by planners only.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "reconcilers/fleet/fleet.h"
#include "reconcilers/kai/index.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/mps_ready.h"

namespace gso {

// Nodes that are alike for a rollout: one product and one profile.
struct Group {
  std::int64_t total = 0;
  std::int64_t busy = 0;     // In flight or unavailable, whoever caused it.
  std::int64_t settled = 0;  // Run the target, and show it.
  std::int64_t unwell = 0;   // Were verified on the target, and have stopped showing it (FleetIndex::drifting).
  // Waiting for a change: those that are busy anyway (and need no slot) first, then by name.
  std::set<std::pair<bool, std::string>> pending;
};

// One policy taking one profile key to its present revision.
struct UnitKey {
  std::string policy;
  std::string set;  // "namespace/configmap"
  std::string key;
  friend auto operator<=>(const UnitKey&, const UnitKey&) = default;
};

struct Unit {
  std::size_t set = 0;
  std::map<std::string, Group> groups;  // By product.
  std::map<Situation, std::int64_t> counts;
  std::int64_t total = 0;
  std::int64_t held = 0;
  // Neither settled nor under way nor blocked, and not to be had now: held, NotReady, or in the hands of another actor.
  std::set<std::string> set_aside;
  std::set<std::string> stuck;    // In flight, and held or in the hands of another actor.
  std::int64_t new_template = 0;  // Nodes that wait for pods of a new template, whatever their profile.
  std::set<std::string> failed;   // Failed on any target.
  std::map<std::string, std::set<std::string>> blocked;  // Reason -> nodes.
  std::map<std::string, std::int64_t> targets;           // Revision -> nodes; one, but in the moment of a change.
};

// Nodes of which preflight says the same, at one operand set, and that are blocked for one reason (empty: not blocked).
using SetupKey = std::tuple<SetupBook::Answer, std::string, std::string>;

// A node in flight that only waits: what its last look saw holds until then, or until something of the node changes.
struct QuietFlight {
  std::vector<std::string> conditions;
  WallTime until{};
  std::optional<WallTime> due;  // When a condition will have held for long enough.
};

struct Sums {
  std::int64_t total = 0;
  std::int64_t busy = 0;
};

class FleetIndex::Impl {
 public:
  // --- Dirt: what refresh() must look at.
  bool everything = true;
  bool discovery_dirty = true;
  bool policies_dirty = true;
  std::unordered_set<std::string> dirty_nodes;
  std::set<ObjectKey> dirty_config_maps;

  void refresh(const World& world, const PlannerSettings& settings);
  // Files the pod under its node, before it is looked at. Either may be null.
  void index_pod(const Pod* before, const k8s::Store<Pod>::Ptr& after);

  // --- What planners read.
  Discovery discovery;
  std::vector<std::string> signatures;  // Of each set: changes when what pods would load changes. For `settled`.
  std::optional<FleetRecord> record;
  std::string record_problem;  // Not empty: the record cannot be read; nothing is rolled by it.
  ProfileBook book;
  KaiIndex kai;
  std::unordered_map<std::string, NodeAssessment> nodes;
  std::map<UnitKey, Unit> units;
  std::map<std::string, Sums> policies;  // By policy name.
  Sums cluster;
  // Active sets, sorted by name. contested: another device plugin runs there, too. unwritable: a label that is ours to
  // write has no valid value. ailing: with a pod that may need to be made anew (ailments.h).
  std::map<SetupKey, std::set<std::string>> setups;  // What preflight finds -> the nodes that have it.
  std::set<std::string> unavailable, in_flight, failed, to_record, following, written_blocked, stale, first_seen,
      drifting, breaking, unhealthy, label_work, unwritable, releases, ailing, contested;
  // Nodes that no plugin with profiles serves (any more) and that carry what a change has left there -> whether they
  // count as busy in `cluster`.
  std::map<std::string, bool> abandoned;
  std::unordered_map<std::string, QuietFlight> quiet_flights;  // Kept by plan_nodes_in_flight().
  std::map<std::string, MpsMark> mps_work;  // Nodes whose mark for KAI is not as their MPS daemon is.
  // "namespace/configmap/key" -> nodes that have loaded it; policy -> nodes whose label it wrote; (loser, winner) ->
  // nodes that both select.
  std::map<std::string, std::int64_t> loaded, labelled;
  std::map<std::pair<std::string, std::string>, std::int64_t> overlaps;
  SharingPolicy built_in_policy;

  [[nodiscard]] const NodeAssessment* find(std::string_view node) const;
  [[nodiscard]] const OperandSet& set_of(const NodeAssessment& assessment) const {
    return discovery.sets[assessment.set];
  }
  // The policy object behind a name; the built-in one when the cluster has none of that name.
  [[nodiscard]] const SharingPolicy& policy(const World& world, std::string_view name) const;
  [[nodiscard]] std::vector<const Pod*> pods_of(std::string_view node) const;

 private:
  void reset();
  void read_record(const World& world, const PlannerSettings& settings);
  void rediscover(const World& world);
  void sign_sets(const World& world);
  [[nodiscard]] bool speaks_for(std::size_t set, std::size_t other) const;
  void assess(const AssessContext& context, const std::string& name);
  void compare_mark(const AssessContext& context, const Node& node, const NodeAssessment* assessment);
  void note_abandoned(const Node& node);
  void add(const std::string& name, NodeAssessment& assessment, const Node& node);  // Notes in it how it counts.
  void remove(const std::string& name);

  bool marks_ = false;  // marks_mps_nodes() at the last refresh.
  ExpectationCache expectations_;
  SetupBook setups_;
  std::shared_ptr<const std::string> record_text_;  // The ConfigMap's own.
  using PodPtr = k8s::Store<Pod>::Ptr;
  std::unordered_map<std::string, std::vector<PodPtr>> pods_by_node_;
  std::vector<const SharingPolicy*> ordered_policies_;  // Filled anew by each refresh: stores replace their objects.
  std::vector<SharingPolicy> policies_seen_;            // Without what moves no node.
};

}  // namespace gso
