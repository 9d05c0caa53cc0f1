#include "reconcilers/partitioning/predecessor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "k8sclient/value/time.h"
#include "reconcilers/model/labels.h"

namespace gso {

namespace {

// Its holder renews the Lease every 2 s, and another one takes over after its duration (15 s): twice that, and at least
// this long, without a renewal means that none runs. Source: the defaults of controller-runtime's leader election.
constexpr Duration kLeastSilence = std::chrono::seconds(30);

bool is_renewed(PlanDraft& draft, const PartitionerLease& lease) {
  if (lease.holder.empty() || !lease.renewed) return false;
  const std::string when = k8s::format_time(*lease.renewed);
  const TimerKey timer{Timer::partitioner_lease, k8s::to_string(lease.meta.key()),
                       fmt::format("{}/{}", when, lease.meta.resource_version)};
  const Duration silence = std::max<Duration>(2 * std::chrono::seconds(lease.duration_seconds), kLeastSilence);
  // The stored time counts in the first look alone, when a Lease may have been left behind long ago; after that the
  // operator's own clock does.
  return !draft.ages.held_for(timer, silence, *lease.renewed);
}

}  // namespace

bool predecessor_runs(PlanDraft& draft) {
  bool runs = false;
  std::vector<const PartitionerLease*> leases;
  for (const auto& [key, lease] : draft.s.world.partitioning.leases.all()) leases.push_back(lease.get());
  std::ranges::sort(leases, {}, [](const PartitionerLease* lease) { return lease->meta.key(); });
  for (const PartitionerLease* lease : leases) {
    if (!is_renewed(draft, *lease)) continue;
    runs = true;
    const ObjectRef about{"coordination.k8s.io/v1", "Lease", std::string(lease->meta.ns.view()), lease->meta.name,
                          std::string(lease->meta.uid)};
    draft.finding(
        Severity::warning, about, kPartitioningObserves,
        fmt::format("nos's gpu-partitioner runs ({} renews Lease {}): the operator only observes. It partitions "
                    "GPUs once that Lease is not renewed any more",
                    lease->holder, k8s::to_string(lease->meta.key())));
  }
  return runs;
}

}  // namespace gso
