// The record in its ConfigMaps: a head, the state ConfigMap itself, and for a fleet of more than kMostInlined machines
// shards beside it ("<state>-0" …). Every part stays below 512 KiB, whatever names nodes have.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reconcilers/cluster/record.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// So many machines stay in the head: 50 KiB.
inline constexpr std::size_t kMostInlined = 1000;

[[nodiscard]] k8s::ObjectKey state_key(const PlannerSettings& settings);
[[nodiscard]] k8s::ObjectKey shard_key(const k8s::ObjectKey& state, std::size_t index);
// The state ConfigMap and every shard: what `cleanup` deletes, and what the operator's role names.
[[nodiscard]] std::vector<k8s::ObjectKey> state_keys(const k8s::ObjectKey& state);
[[nodiscard]] bool is_shard(const k8s::ObjectKey& state, const k8s::ObjectKey& config_map);
// Writes these keys of the state ConfigMap; its others stay.
[[nodiscard]] WriteConfigMap write_state(const PlannerSettings& settings, std::map<std::string, std::string> keys);

// What the ConfigMaps hold, read again where they have changed.
class RecordStore {
 public:
  // True: what follows may have changed.
  bool read(const World& world, const PlannerSettings& settings);

  // The record; nullopt where there is none yet, or where it cannot be read.
  [[nodiscard]] const std::optional<FleetRecord>& record() const { return record_; }
  // The head of a baseline whose shards are being written: nothing is planned by it yet.
  [[nodiscard]] const std::optional<FleetRecord>& begun() const { return begun_; }
  // What cannot be read, and how it is repaired; empty: nothing. Then nothing is rolled.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  // The ConfigMap that `problem` is about.
  [[nodiscard]] const k8s::ObjectKey& problem_in() const { return problem_in_; }
  // Stops of policies that were gone by then are forgotten (annotation gpusharing.dev/forget-policies).
  [[nodiscard]] const std::optional<k8s::WallTime>& forget_until() const { return forget_until_; }

 private:
  using Text = std::shared_ptr<const std::string>;
  void assemble(const k8s::ObjectKey& state);
  void fail(const k8s::ObjectKey& config_map, std::string what);

  Text head_text_;
  std::array<Text, MachineRecords::kShards> shard_texts_;
  std::array<std::shared_ptr<const MachineRecords::Shard>, MachineRecords::kShards> shards_;
  std::optional<FleetRecord> record_;
  std::optional<FleetRecord> begun_;
  std::string problem_;
  k8s::ObjectKey problem_in_;
  std::optional<k8s::WallTime> forget_until_;
  bool first_ = true;
};

// The writes after which the ConfigMaps say `next`; none where they do already. Only parts that differ are written. A
// large fleet takes several passes: a head that says the baseline has begun, the shards, then the head that says it is
// complete; an operator that ends in between goes on with what is left.
[[nodiscard]] std::vector<WriteConfigMap> record_writes(const FleetRecord& next, const World& world,
                                                        const PlannerSettings& settings);

}  // namespace gso
