// One Combination (tests/reconcilers/combinations/combinations.h) on the simulated API server with the whole operator:
// executor, expectations, queue, leader election and Events, in virtual time, the invariants judged on every write.
#pragma once

#include <cstdint>
#include <string>

#include "k8sclient/value/time.h"
#include "tests/reconcilers/combinations/combinations.h"

namespace gso::sim {

struct CombinedRollout {
  test::Combination what;
  // How long a node has been in progress when it is lost, or when the superseding edit comes.
  k8s::Duration disturbed_after = std::chrono::seconds(3);
  // From the edit on the operator sees so much later what changes of nodes and pods; everything else comes at once, and
  // makes it plan.
  k8s::Duration watch_lag{0};
  // What changes of policies and rollouts, too: the operator's own statuses are most of that.
  bool records_lag = false;
  // From then on the server refuses those watches repeatedly, because their versions are too old, and they list anew.
  bool relists = false;
  // From the edit on, one write of five meets the end of its connection, unread.
  bool refused_writes = false;
};

// Of the operator, from the edit on.
struct CombinedTrace {
  std::uint64_t kills = 0;
  std::size_t deletions = 0;    // Of pods, on a node's way to a revision.
  std::size_t idle_writes = 0;  // That changed nothing, from installation on.
  std::string idle_write = {};  // The last of them.
};

// From installation to rest; then what stood in the way goes, and every node must arrive (after a fault: at another
// edit). Failures are reported to GoogleTest.
CombinedTrace play_on_server(const CombinedRollout& rollout);

}  // namespace gso::sim
