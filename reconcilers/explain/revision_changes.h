// What the revisions of a preview mean: fields of the profile and amounts of GPUs, instead of hashes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/record.h"
#include "reconcilers/explain/what_if.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/profile/profile.h"

namespace gso {

// Nodes that go from one revision to another.
struct RevisionChange {
  std::string profile, from, to;
  bool known = false;  // Both texts are known; else `fields` is empty.
  std::vector<FieldChange> fields;
  struct Amount {
    std::string resource;
    std::int64_t before = 0, after = 0;  // On one node.
    std::int64_t nodes = 0;
  };
  std::vector<Amount> amounts;  // That change, by resource.
};

// The texts that the cluster has of revisions: in ConfigMaps, in SharingRollouts and in the record (null: none).
void learn_texts(const World& world, const FleetRecord* record, ProfileCache& texts);

// Of nodes that would change and are not blocked, by profile.
[[nodiscard]] std::vector<RevisionChange> revision_changes(const World& world,
                                                           const std::vector<NodeDifference>& differences,
                                                           const ProfileCache& texts);

// "mps-config/any: sharing.mps.resources[nvidia.com/gpu].replicas 4 -> 6; nvidia.com/gpu 32 -> 48 on each of 11 nodes"
[[nodiscard]] std::string describe(const RevisionChange& change);

}  // namespace gso
