// What /readyz answers: whether this replica could plan now, and what it waits for or works without.
#pragma once

#include <string_view>

#include "controller/runtime/leader_election.h"
#include "controller/serving/routes.h"
#include "controller/watches/cluster_watches.h"
#include "controller/watches/daemonset_search.h"
#include "controller/watches/dynamic_watches.h"

namespace gso {

struct ReadinessParts {
  const ClusterWatches* cluster = nullptr;
  const DaemonSetSearch* search = nullptr;
  const DynamicWatches* dynamic = nullptr;
  const World* world = nullptr;            // Its stale views.
  const LeaderElector* elector = nullptr;  // Null: this replica leads without a Lease.
  bool leads = false;
  std::string_view waits_for;  // RuntimeView::waits_for.
  std::string_view operator_namespace;
};

// Not ready while a store has not synced or is outdated, while the record or, for a new leader, the nodes in a change
// cannot be read, and while the Lease cannot be read or written for a reason that no retry ends. Whether it leads says
// nothing about that: standbys are ready. What the operator works without is named in the answer, and so are the views
// whose watches do not deliver.
[[nodiscard]] ProbeAnswer readiness(const ReadinessParts& parts);

}  // namespace gso
