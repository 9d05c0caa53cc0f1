// What `rollout undo` means: which key of a ConfigMap goes back, and to which revision. Pure, over a World.
#pragma once

#include <string>
#include <vector>

#include "k8sclient/value/error.h"
#include "reconcilers/cluster/record.h"
#include "reconcilers/explain/revisions.h"
#include "reconcilers/fleet/fleet.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

// What goes back, and to what.
struct Undo {
  std::string config_map;  // "namespace/name"
  std::string key;
  // The rollout to the key's present text, else the last rollout of the key; null if none is recorded (the text was
  // invalid from the start, or its rollouts are pruned).
  const SharingRollout* rollout = nullptr;
  bool under_way = false;         // That rollout is, and is not paused.
  EarlierRevision to;             // Without a revision: nothing is known to go back to.
  std::string text;               // Of that revision; empty: not on record.
  bool is_last_verified = false;  // A rollout to it skips the canary (S11).
  // What else the key can go back to (--to-revision); the texts are on record.
  std::vector<EarlierRevision> others = {};
};

// `name`: as of RolloutChoice; `revision`: of --to-revision, or empty. Without a name: of the key whose rollout is
// under way; else of the key that does not hold what was verified last (an invalid text starts no rollout); else of the
// last rollout to what the nodes should run; with a revision alone: of the key whose history it is in. `record` may be
// null. Errors (`invalid`): several keys are meant and are named; none is; a revision that is not in the key's history
// (it may be one of another key: its text would mean something else there), or that the key already has; an undo that
// is complete already.
[[nodiscard]] k8s::Result<Undo> choose_undo(const World& world, const FleetIndex& index, const FleetRecord* record,
                                            const std::string& name, const std::string& revision);

}  // namespace gso
