// The record as text: JSON, sorted and without blanks, so that equal records give equal text.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "k8sclient/value/error.h"
#include "reconcilers/cluster/record.h"

namespace gso {

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
