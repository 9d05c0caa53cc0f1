// The revisions of a key: which one came before its present text, and what the way from one to another means in fields
// of the profile and amounts of GPUs. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/record.h"
#include "reconcilers/explain/what_if.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/profile/profile.h"

namespace gso {

// --- Which revision of a key came before its present text, as far as that is on record: what `rollout undo` restores,
// and whether a remedy can propose it. Pure functions.

// Of "namespace/name", as rollouts and the record name a plugin's ConfigMap.
[[nodiscard]] ObjectKey config_map_key(std::string_view id);

// By when they began, the newest first.
[[nodiscard]] std::vector<const SharingRollout*> newest_rollouts(const World& world);

// Of the text that the key holds now; empty: it holds none. `config_map`: "namespace/name", of an installation.
[[nodiscard]] std::string present_revision(const World& world, const FleetIndex::Impl& index,
                                           const std::string& config_map, const std::string& key);

// The text of a revision, from the record or a SharingRollout of that ConfigMap; empty: neither has it.
[[nodiscard]] std::string text_on_record(const World& world, const FleetRecord* record, const std::string& config_map,
                                         const std::string& revision);

struct EarlierRevision {
  std::string revision;  // Empty: none is known.
  std::string why;       // Of the choice, for people.
};
// The revision other than `from` that the key was verified with last; before anything was verified, the one that every
// node showed at the installation; else that of the last rollout that completed. `record` may be null.
[[nodiscard]] EarlierRevision earlier_revision(const World& world, const FleetRecord* record,
                                               const std::string& config_map, const std::string& key,
                                               const std::string& from);

// The profile before the policy's own inline profile, which this rollout is of: that of its last other rollout that
// completed; empty: none is on record.
[[nodiscard]] std::string inline_text_before(const World& world, const SharingRollout& rollout);

// An earlier revision of the key is known, and its text is on record.
[[nodiscard]] bool has_earlier_text(const World& world, const FleetIndex::Impl& index, const std::string& config_map,
                                    const std::string& key);

// --- What the revisions of a preview mean: fields of the profile and amounts of GPUs, instead of hashes.

// Nodes that go from one revision to another.
struct RevisionChange {
  std::string profile, from, to;
  bool known = false;  // Both texts are known; else `fields` is empty.
  std::vector<FieldChange> fields;
  AmountChanges amounts;
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
