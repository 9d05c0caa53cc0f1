#include "reconcilers/partitioning/partitioning.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <utility>
#include <variant>

#include "k8sclient/value/time.h"
#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/partitioning/slice_plan.h"
#include "reconcilers/reasons/names.h"

namespace gso {

std::optional<HomogeneousReplicas> nearest_replicas(const NodeSlices& slices, const std::vector<const SlicePod*>& pods,
                                                    const PartitioningSettings& settings) {
  // The MPS daemon of the official plugin refuses more. Source: cmd/mps-control-daemon/mps/device.go.
  constexpr std::int64_t kMostMpsClients = 48;
  std::int64_t capacity = 0;
  if (!slices.gpus.empty())
    capacity = capacity_of_gpu(std::ranges::min(slices.gpus, {}, &GpuSlices::memory_mib), settings);
  std::int64_t largest = 0;
  for (const SlicePod* pod : pods) {
    for (const std::int64_t gigabytes : pod->slices)
      if (2 * gigabytes <= capacity) largest = std::max(largest, gigabytes);
  }
  if (largest == 0) return std::nullopt;
  const std::int64_t replicas = std::min(capacity / largest, kMostMpsClients);
  return HomogeneousReplicas{replicas, capacity / replicas, largest};
}

namespace {

// For people: which plugin serves the node, the profile of it that is nearest to what pods wait for, and what else
// there is for slices of different sizes. Empty: no official plugin selects the node.
std::string official_alternative(const Discovery& discovery, const PartitionedNode& node,
                                 const std::vector<const SlicePod*>& pods, const PartitioningSettings& settings) {
  const auto serves = [&](const PluginInstallation& installation) {
    return installation.find(Component::plugin, *node.node) != nullptr;
  };
  const auto installation = std::ranges::find_if(discovery.installations, serves);
  if (installation == discovery.installations.end()) return {};
  const Operand* plugin = installation->find(Component::plugin, *node.node);
  std::string out =
      fmt::format(". DaemonSet {} of the official device plugin serves it, which has replicas of one size only",
                  k8s::to_string(plugin->key));
  std::vector<const SlicePod*> admitted;
  std::ranges::copy_if(pods, std::back_inserter(admitted),
                       [&](const SlicePod* pod) { return Admission(*pod).admits(node); });
  if (const auto replicas = nearest_replicas(node.slices, admitted, settings)) {
    out += fmt::format(
        ". The nearest profile for the pods that wait is sharing.mps.resources: [{{name: nvidia.com/gpu, replicas: "
        "{}}}], with {} GiB for each replica; it suits slices of up to {} GiB, whose pods then ask for nvidia.com/gpu",
        replicas->replicas, replicas->gigabytes, replicas->largest_asked);
  }
  return out +
         ". Other ways to slices of different sizes: KAI-Scheduler's memory fractions (NvFractions), or DRA with "
         "consumable capacity; docs/partitioning.md says what each needs";
}

// --- nos's gpu-partitioner, whose job node.partitioning has: two of them would undo each other's labels.

// Its holder renews the Lease every 2 s, and another one takes over after its duration (15 s): twice that, and at least
// this long, without a renewal means that none runs. Source: the defaults of controller-runtime's leader election.
constexpr Duration kLeastSilence = std::chrono::seconds(30);

bool is_renewed(PlanDraft& draft, const Lease& lease) {
  if (lease.holder.empty() || !lease.renewed) return false;
  const std::string when = k8s::format_time(*lease.renewed);
  const TimerKey timer{Timer::partitioner_lease, k8s::to_string(lease.meta.key()),
                       fmt::format("{}/{}", when, lease.meta.resource_version)};
  const Duration silence = std::max<Duration>(2 * std::chrono::seconds(lease.duration_seconds), kLeastSilence);
  // The stored time counts in the first look alone, when a Lease may have been left behind long ago; after that the
  // operator's own clock does.
  return !draft.ages.held_for(timer, silence, *lease.renewed);
}

// The Lease of nos's gpu-partitioner is being renewed, or it is not known yet whether it still is. Adds a finding that
// says so: then the operator only observes.
bool predecessor_runs(PlanDraft& draft) {
  bool runs = false;
  std::vector<const Lease*> leases;
  for (const auto& [key, lease] : draft.s.world.partitioning.leases.all()) leases.push_back(lease.get());
  std::ranges::sort(leases, {}, [](const Lease* lease) { return lease->meta.key(); });
  for (const Lease* lease : leases) {
    if (!is_renewed(draft, *lease)) continue;
    runs = true;
    const ObjectRef about{"coordination.k8s.io/v1", "Lease", std::string(lease->meta.ns.view()), lease->meta.name,
                          std::string(lease->meta.uid)};
    draft.finding(
        Severity::warning, about, kPartitioningObserves,
        fmt::format("nos's gpu-partitioner runs ({} renews Lease {}): the operator only observes. It partitions "
                    "GPUs once that Lease is no longer renewed",
                    lease->holder, k8s::to_string(lease->meta.key())));
  }
  return runs;
}

constexpr Timer kTimers[] = {Timer::slices_batch,      Timer::slices_batch_idle, Timer::slices_projecting,
                             Timer::slices_confirming, Timer::slices_idle,       Timer::partitioner_lease,
                             Timer::slices_moved,      Timer::slices_agent};

// A view with gaps proves nothing: what has been true until now is not taken as having ended.
void keep_timers(PlanDraft& draft) {
  for (const auto& [timer, since] : draft.s.timers)
    if (std::ranges::find(kTimers, timer.timer) != std::end(kTimers)) draft.keep(timer);
}

class Partitioning {
 public:
  Partitioning(PlanDraft& draft, const Discovery& discovery, const FleetSlots& slots, LabelledNodes labelled,
               PlanningCache& cache)
      : draft_(draft), discovery_(discovery), slots_(slots), cache_(cache), labelled_(std::move(labelled)) {}

  void run() {
    release_left(draft_, discovery_, labelled_.left);
    if (nodes_.empty() && discovery_.of_nos.empty()) return;
    if (!view_is_complete()) return keep_timers(draft_);
    waiting_ = pending_pods(draft_.s.world, draft_.s.settings.partitioning.mps_user);
    report_left_alone();
    if (predecessor_runs(draft_)) return;
    release_withdrawn(draft_, nodes_);
    draft_.plan.append(std::move(labelled_.said));
    sort_pods();
    await_reports();
    find_refusals(draft_, nodes_, pods_);
    plan();
    await_scheduler(draft_, nodes_, pods_, pending_, plan_);
    report_planned(draft_, nodes_, pods_, plan_);
    act();
  }

 private:
  bool view_is_complete() {
    const PartitioningWorld& world = draft_.s.world.partitioning;
    if (world.pending_known && world.leases_known && world.incomplete.empty()) return true;
    if (!world.incomplete.empty() && !nodes_.empty()) {
      draft_.finding(Severity::warning, node_ref(nodes_.front().name), kPartitioningSkipped,
                     fmt::format("no GPU is partitioned: {}", world.incomplete));
    }
    return false;
  }

  void report_left_alone() {
    for (const PartitionedNode& node : nodes_) {
      if (!node.left_alone) continue;
      std::string alternative;
      if (node.left_alone->code == kPartitioningNeedsFork)
        alternative = official_alternative(discovery_, node, waiting_.considered, draft_.s.settings.partitioning);
      draft_.finding(Severity::warning, node_ref(node.name), node.left_alone->code,
                     describe_left_alone(node) + alternative);
    }
  }

  // Refused pods and those that fit nowhere hear why; the others are planned for.
  void sort_pods() {
    report_refused(draft_, waiting_.refused);
    std::vector<const SlicePod*> too_large;
    std::map<std::vector<std::int64_t>, bool> fits;
    report_other_lacks(draft_, waiting_.lack_no_slice);
    for (const SlicePod* pod : waiting_.considered) {
      const auto [at, is_new] = fits.try_emplace({pod->slices.begin(), pod->slices.end()}, false);
      if (is_new) at->second = fits_somewhere(*pod);
      if (at->second || nodes_.empty())
        pods_.push_back({pod, {}, {}});
      else
        too_large.push_back(pod);
    }
    std::int64_t largest = 0;
    for (const PartitionedNode& node : nodes_)
      for (const GpuSlices& gpu : node.divisible ? node.slices.gpus : std::vector<GpuSlices>())
        largest = std::max(largest, capacity_of_gpu(gpu, draft_.s.settings.partitioning));
    report_too_large(draft_, too_large, largest);
  }

  // Or might: there is a node whose GPUs are not known.
  [[nodiscard]] bool fits_somewhere(const SlicePod& pod) const {
    return std::ranges::any_of(nodes_, [&](const PartitionedNode& node) {
      return node.divisible &&
             (node.slices.gpus.empty() || fits_when_empty(node.slices, pod, draft_.s.settings.partitioning));
    });
  }

  // Slices that pods have just taken are spared by this look. The next one, once they are reported, might need them.
  void await_reports() {
    if (pods_.empty()) return;
    for (const PartitionedNode& node : nodes_)
      if (!node.just_bound.empty()) draft_.look_again_in(node.report_due);
  }

  // First with the keys that are on their way, then without those that have become useless.
  void plan() {
    pending_ = pending_keys(draft_.s, nodes_, cache_);
    std::erase_if(pending_, [&](const auto& entry) { return !nodes_[entry.first].standing.changeable; });
    plan_with_useful_keys();
    give_way();
  }

  [[nodiscard]] SlicePlan plan_with(const PendingKeys& pending) {
    return plan_slices(nodes_, pods_, pending, draft_.s.settings.partitioning, cache_);
  }

  void plan_with_useful_keys() {
    do {
      plan_ = plan_with(pending_);
    } while (std::erase_if(pending_, [&](const auto& entry) { return !serves_more(entry.first); }) > 0);
  }

  // Without the keys that serve only pods which come after one that waits, if that serves more of those that come
  // first. A key that is dropped for nothing would be written again, and its wait would begin anew.
  void give_way() {
    const std::optional<std::int32_t> waiting = priority_of(std::nullopt);
    if (!waiting) return;
    PendingKeys kept = pending_;
    std::int32_t lowest = *waiting;
    std::erase_if(kept, [&](const auto& entry) {
      const std::int32_t priority = priority_of(entry.first).value_or(*waiting);
      lowest = std::min(lowest, priority);
      return priority < *waiting;
    });
    if (kept.size() == pending_.size()) return;
    if (served_above(lowest, plan_with(kept)) <= served_above(lowest, plan_)) return;
    pending_ = std::move(kept);
    plan_with_useful_keys();
  }

  // How many pods of each higher priority get slices, the highest first.
  [[nodiscard]] std::map<std::int32_t, std::int64_t, std::greater<>> served_above(std::int32_t priority,
                                                                                  const SlicePlan& plan) const {
    std::map<std::int32_t, std::int64_t, std::greater<>> out;
    for (std::size_t p = 0; p < pods_.size(); ++p)
      if (pods_[p].pod->priority > priority) out[pods_[p].pod->priority] += plan.node_of[p] ? 1 : 0;
    return out;
  }

  [[nodiscard]] bool serves_more(std::size_t node) const {
    const PackNode packed =
        pack_node_of(nodes_[node], nodes_[node].standing.carries, false, plan_.sizes, draft_.s.settings.partitioning);
    return !pack_node(plan_.sizes, packed, plan_.demand[node]).has_value();
  }

  // The highest priority of the pods that are put on the node; nullopt: of those that are put on none.
  [[nodiscard]] std::optional<std::int32_t> priority_of(std::optional<std::size_t> node) const {
    std::optional<std::int32_t> out;
    for (std::size_t p = 0; p < pods_.size(); ++p)
      if (plan_.node_of[p] == node) out = std::max(out.value_or(pods_[p].pod->priority), pods_[p].pod->priority);
    return out;
  }

  void act() {
    std::vector<WantedSlices> wanted;
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      if (pending_.contains(n) || plan_.packing[n].changed())
        wanted.push_back(
            {&nodes_[n], plan_.geometry[n], priority_of(n).value_or(0), pods_of_move(nodes_[n], n, pods_, plan_)});
      else if (auto smaller = without_idle_slices(n))
        wanted.push_back({&nodes_[n], *std::move(smaller), std::numeric_limits<std::int32_t>::min(),
                          pods_of_move(nodes_[n], n, pods_, plan_)});
    actuate(draft_, discovery_, nodes_, std::move(wanted), slots_, batch());
  }

  // Scale-down, if it is switched on: what the node should carry; nullopt: what it has.
  [[nodiscard]] std::optional<Geometry> without_idle_slices(std::size_t n) {
    const Duration wait = draft_.s.settings.partitioning.remove_idle_after;
    if (wait <= Duration::zero() || !nodes_[n].standing.changeable) return std::nullopt;
    SliceCounts idle = idle_slices(nodes_[n], plan_, n);
    // A pod that the scheduler does not bind there waits for them all the same.
    for (const PodToPlace& each : pods_)
      if (each.refused_by.contains(n)) add_slices(idle, *each.pod, -1);
    if (idle.empty()) return std::nullopt;
    if (!draft_.held_for({Timer::slices_idle, nodes_[n].name, describe(idle)}, wait)) return std::nullopt;
    Geometry out = without_idle(nodes_[n], plan_.geometry[n], idle);
    return out == plan_.geometry[n] ? std::nullopt : std::optional(std::move(out));
  }

  // Differs once other pods wait.
  [[nodiscard]] std::string batch() const {
    std::vector<std::string> uids;
    for (const PodToPlace& each : pods_) uids.emplace_back(each.pod->meta.uid.str());
    std::ranges::sort(uids);
    return short_hash(fmt::format("{}\n", fmt::join(uids, "\n")));
  }

  PlanDraft& draft_;
  const Discovery& discovery_;
  const FleetSlots& slots_;
  PlanningCache& cache_;
  LabelledNodes labelled_;
  const std::vector<PartitionedNode>& nodes_ = labelled_.nodes;
  PendingPods waiting_;
  std::vector<PodToPlace> pods_;
  PendingKeys pending_;
  SlicePlan plan_;
};

}  // namespace

LabelledNodes read_labelled_nodes(const Snapshot& s, const Discovery& discovery, const std::set<std::string>& nodes,
                                  PlanningCache& cache) {
  LabelledNodes out;
  std::set<std::string> labelled;
  for (const std::string& name : nodes) {
    const Node* node = s.world.nodes.find(name);
    if (node != nullptr) (is_partitioned_by_nos(*node) ? labelled : out.left).insert(name);
  }
  out.nodes = read_partitioned_nodes(s.world, s.now, discovery, labelled, cache);
  PlanDraft draft(s, kNodePartitioning);
  follow_moves(draft, out.nodes, cache);
  out.said = std::move(draft.plan);
  return out;
}

void plan_partitioning(PlanDraft& draft, const Discovery& discovery, const FleetSlots& slots, LabelledNodes labelled,
                       PlanningCache& cache) {
  Partitioning(draft, discovery, slots, std::move(labelled), cache).run();
}

PartitioningMode effective_mode(PartitioningMode mode, const PlannerSettings& settings) {
  return settings.rollouts == PolicyMode::observe ? std::max(mode, PartitioningMode::observe) : mode;
}

Plan observed(Plan plan) {
  std::vector<PlannedAction> events;
  for (PlannedAction& planned : plan.actions) {
    if (auto* event = std::get_if<RecordEvent>(&planned.action)) {
      if (event->regarding.kind == "Node") continue;  // It reports a write.
      if (event->why.code == kSlicePlanned)
        event->why.message += "; partitioning is only observed, and no node is changed";
      events.push_back(std::move(planned));
      continue;
    }
    plan.findings.push_back(
        {Severity::info,
         target_of(planned.action),
         {kPartitioningObserves,
          fmt::format("partitioning is only observed (setting partitioning-mode, or max-mode). It would change: {}",
                      planned.why.message)}});
  }
  plan.actions = std::move(events);
  return plan;
}

Plan switched_off(const World& world, const std::set<std::string>& labelled) {
  Plan out;
  const auto first = std::ranges::find_if(labelled, [&](const std::string& name) {
    const Node* node = world.nodes.find(name);
    return node != nullptr && is_partitioned_by_nos(*node);
  });
  if (first == labelled.end()) return out;
  out.findings.push_back({Severity::info,
                          node_ref(*first),
                          {kPartitioningOff,
                           "the node is labelled for partitioning, and partitioning is switched off (setting "
                           "partitioning-mode, chart value modes.partitioning): the operator leaves its GPUs alone"}});
  return out;
}

}  // namespace gso
