// How far the replacement of standalone MPS daemons is, for people.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reconcilers/fleet/fleet.h"
#include "reconcilers/fleet/fleet_index.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/node/assess.h"

namespace gso {

// The nodes of one DaemonSet of such daemons.
struct DaemonProgress {
  std::string daemonset;      // "namespace/name"
  bool watches_host = false;  // Its pods only watch a daemon that the host runs.
  std::string revision;       // controller-revision-hash of the newest template; empty: unknown.
  std::int64_t total = 0;
  std::int64_t updated = 0;              // Serve with that template.
  std::vector<std::string> in_progress;  // Nodes whose daemon is being replaced,
  std::vector<std::string> deferred;     // whose replacement is deferred,
  std::vector<std::string> not_ready;    // and others whose pod does not serve.
};
// Sorted by DaemonSet; those without a node are included. `index` is up to date with `world`.
[[nodiscard]] std::vector<DaemonProgress> daemon_progress(const World& world, const FleetIndex& index);

// Where the nodes of such a rollout are in the change of their daemon, by name, in the words for changes of profiles.
// Without the nodes that need none.
[[nodiscard]] std::map<std::string, Phase> daemon_phases(const World& world, const FleetIndex::Impl& index,
                                                         const RolloutKey& rollout);

}  // namespace gso
