// How the record is stored, and which of its decisions nobody has read.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"
#include "reconcilers/cluster/record.h"
#include "reconcilers/model/plan.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// --- What the operator decides by and a command could not read: nothing is concluded from its absence.

// SharingPolicies or SharingRollouts could not be read, because of missing permissions for example. A kind that the
// cluster does not have was read: it has no objects.
[[nodiscard]] bool sharing_objects_unread(const World& world);
// The same of the operator's record, the state ConfigMap.
[[nodiscard]] bool record_unread(const World& world, const PlannerSettings& settings);
// Which of these could not be read, and what is unknown because of it; empty: all were read.
[[nodiscard]] std::string unread_decisions(const World& world, const PlannerSettings& settings);

// --- The record in its ConfigMaps: a head, the state ConfigMap itself, and for a fleet of more than kMostInlined
// machines shards beside it ("<state>-0" …). Every part stays below 512 KiB, also with the longest node names.

// Up to this many machines stay in the head: 50 KiB.
inline constexpr std::size_t kMostInlined = 1000;

[[nodiscard]] k8s::ObjectKey state_key(const PlannerSettings& settings);
[[nodiscard]] k8s::ObjectKey shard_key(const k8s::ObjectKey& state, std::size_t index);
// The state ConfigMap and every shard: what `cleanup` deletes, and what the operator's role names.
[[nodiscard]] std::vector<k8s::ObjectKey> state_keys(const k8s::ObjectKey& state);
[[nodiscard]] bool is_shard(const k8s::ObjectKey& state, const k8s::ObjectKey& config_map);
// Writes these keys of the state ConfigMap; the other keys stay.
[[nodiscard]] WriteConfigMap write_state(const PlannerSettings& settings, std::map<std::string, std::string> keys);

// The content of the ConfigMaps, read again if they have changed.
class RecordStore {
 public:
  // True: the values below might have changed.
  bool read(const World& world, const PlannerSettings& settings);

  // The record; nullopt if none exists yet, or if it cannot be read.
  [[nodiscard]] const std::optional<FleetRecord>& record() const { return record_; }
  // The head of a baseline whose shards are being written: nothing is planned from it yet.
  [[nodiscard]] const std::optional<FleetRecord>& begun() const { return begun_; }
  // Which part cannot be read, and how to repair it; then the operator rolls out nothing. Empty: no problem.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  // The ConfigMap of `problem`.
  [[nodiscard]] const k8s::ObjectKey& problem_in() const { return problem_in_; }
  // Stops of policies that had been deleted by then are dropped: the annotation gpusharing.dev/forget-policies, but not
  // a time after the moment when the operator first saw it.
  [[nodiscard]] std::optional<k8s::WallTime> forget_until() const;
  // That annotation as it is written; empty: there is none.
  [[nodiscard]] const std::string& forget_text() const { return forget_text_; }

 private:
  using Text = std::shared_ptr<const std::string>;
  void assemble(const k8s::ObjectKey& state);
  void fail(const k8s::ObjectKey& config_map, std::string what);

  Text head_text_;
  std::array<Text, MachineRecords::kShards> shard_texts_;
  std::array<std::shared_ptr<const MachineRecords::Shard>, MachineRecords::kShards> shards_;
  k8s::WallTime shards_of_{};  // The baseline that `shards_` belong to.
  std::optional<FleetRecord> record_;
  std::optional<FleetRecord> begun_;
  std::string problem_;
  k8s::ObjectKey problem_in_;
  std::string forget_text_;
  bool first_ = true;
};

// The writes after which the ConfigMaps contain `next`; none if they already do. Only parts that differ are written. A
// large fleet needs several passes: a head that marks the baseline as begun, the shards, then the head that marks it as
// complete; an operator that is restarted in between continues with the remaining writes. `present`: the record as it
// is in these ConfigMaps, whose parts are not printed again if `next` shares them; null: unknown.
[[nodiscard]] std::vector<WriteConfigMap> record_writes(const FleetRecord& next, const World& world,
                                                        const PlannerSettings& settings, const FleetRecord* present);

// --- The record as text: JSON, sorted and without blanks, so that equal records give equal text.

// The head of the record. `inlined`: with the machines in it. `begun`: the baseline of a large fleet has begun, and its
// shards are not complete yet.
struct RecordHead {
  FleetRecord record;  // Without machines if they are in shards.
  bool sharded = false;
  bool begun = false;
};
[[nodiscard]] std::string print_head(const RecordHead& head);
// One shard; `recorded_at` ties it to its head.
[[nodiscard]] std::string print_shard(const MachineRecords::Shard& shard, std::size_t index, k8s::WallTime recorded_at);
// Errors (reason `decode`) say what is wrong. A record with a version that this release does not support is also an
// error: it is not changed, and the operator rolls out nothing.
[[nodiscard]] k8s::Result<RecordHead> parse_head(std::string_view text);
[[nodiscard]] k8s::Result<std::shared_ptr<const MachineRecords::Shard>> parse_shard(std::string_view text,
                                                                                    std::size_t index,
                                                                                    k8s::WallTime recorded_at);

}  // namespace gso
