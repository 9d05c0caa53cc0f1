#include "reconcilers/partitioning/node_moves.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/node/node_patch.h"
#include "reconcilers/reasons/names.h"

namespace gso {

namespace {

// After a move has failed, the node is left alone for so long, doubled with each failure in succession.
constexpr Duration kFirstPause = std::chrono::minutes(10);
constexpr Duration kLongestPause = std::chrono::hours(4);
// A node that showed its slices and has stopped to do so later was not harmed by the move: this is how late after the
// move the trouble can begin and still be the move's.
constexpr Duration kStartsAfterMove = std::chrono::minutes(2);
// By how much the operator's clock and that of the scheduler can differ.
constexpr Duration kClocksDiffer = std::chrono::minutes(1);
// How long somebody else's label stands before it is moved back: labels are away for moments, and reports are late.
constexpr Duration kLabelIsMoved = std::chrono::minutes(2);

Duration pause_after(std::int64_t failures) {
  Duration out = kFirstPause;
  for (std::int64_t i = 1; i < failures && out < kLongestPause; ++i) out *= 2;
  return std::min(out, kLongestPause);
}

// False: another machine has the node's name, or a GPU of it is gone.
bool has_gpus_of(const PartitionedNode& node, const Geometry& geometry) {
  return fits_gpus(node, geometry, most_cut_by_nos);
}

// The kubelet hands out the slices of the label's key, and the report does not show them.
bool is_registered_and_unreported(const PartitionedNode& node) {
  return node.named && *node.named != node.slices.all() && node.registered();
}

// The same as might_cut_bound_slices(), where the report does not say which slices are used: each pod can have any of
// its size that was reported, and a pod that came after the last move also one of the label's key.
bool might_cut_any_slices(const PartitionedNode& node, const Geometry& geometry) {
  SliceCounts all;
  SliceCounts after_move;
  for (const SlicePod* pod : node.pods) {
    add_slices(all, *pod, 1);
    if (!pod->bound || *pod->bound > node.mark.moved - kClocksDiffer) add_slices(after_move, *pod, 1);
  }
  for (const auto& [gigabytes, count] : total_of(node.slices.used())) all[gigabytes] = std::max(all[gigabytes], count);
  const Geometry reported = node.slices.all();
  for (const auto& [gigabytes, count] : all) {
    for (std::size_t g = 0; g < node.slices.gpus.size(); ++g) {
      const std::int64_t before = std::min(count_of(slices_on(reported, g), gigabytes), count);
      const std::int64_t named = node.named ? count_of(slices_on(*node.named, g), gigabytes) : 0;
      const std::int64_t most = std::max(before, std::min(named, before + count_of(after_move, gigabytes)));
      if (count_of(slices_on(geometry, g), gigabytes) < most) return true;
    }
  }
  return false;
}

// What pods that are bound to the node use beyond the slices that it reports. Empty: nothing.
std::string missing_slices(const PartitionedNode& node) {
  const SliceCounts free = node.slices.free();
  for (const auto& [gigabytes, count] : node.unreported)
    if (count_of(free, gigabytes) < count)
      return fmt::format("its pods use more slices of {} GiB than it reports", gigabytes);
  return {};
}

// What pods lose by a label that does not name the operator's key any more. Empty: nothing, or nothing that is certain:
// where the kubelet shows other slices than the agent reports, the report might be from before.
std::string slices_lost_to_others(const PartitionedNode& node) {
  if (node.mark.key.empty() || node.key == node.mark.key) return {};
  if (node.confirmed()) return missing_slices(node);
  const bool keeps = keeps_pods(node, *node.named) || node.registered();
  return keeps ? std::string() : "the kubelet does not show its slices, which lack some that pods use";
}

// To be asked in every pass in which the label that nos's plugin selects by is missing: it has been for two minutes.
// Nodes change labels for a moment, such as while a script sets all of them anew.
bool has_lost_label(PlanDraft& draft, const std::string& node) {
  return draft.held_for({Timer::leaving, node, kNosPartitioning}, std::chrono::minutes(2));
}

class Follower {
 public:
  Follower(PlanDraft& draft, PlanningCache& cache) : draft_(draft), cache_(cache) {}

  NodeStanding follow(const PartitionedNode& node) {
    NodeStanding standing;
    moved_ = node.mark.key.empty() ? node.mark.moved : draft_.ages.stored(moved_timer(node), node.mark.moved);
    // Without the plugin nobody offers the free slices of a report: it is left from a time when it ran there.
    standing.carries = node.nos.selected ? node.slices.all() : node.slices.used();
    standing.serves = node.readable && node.schedulable();
    const std::string doubt = node.readable ? doubt_about_report(draft_, node) : std::string();
    standing.why = why_unchangeable(node, doubt);
    if (!node.readable) return standing;
    behind_ = !doubt.empty() || is_registered_and_unreported(node);
    // A pod can be bound to a free slice in the moment in which the label gives it up.
    const bool harms = node.named && node.mark.key == node.key && is_recent() && !keeps_pods(node, *node.named);
    if (harms && !node.left_alone && has_way_back(node)) {
      take_back(node, fmt::format("pods of node {} use slices that key {} does not have", node.name, node.key));
    } else if (node.awaits_label()) {
      follow_unlabelled(node, standing);
    } else if (const std::string lost = slices_lost_to_others(node);
               !lost.empty() && !node.left_alone && can_return_to(node, node.mark.key)) {
      standing.carries = node.slices.used();
      standing.why = lost;
      return_label(node, lost);
    } else if (node.named && !has_gpus_of(node, *node.named)) {
      report_other_gpus(node);
    } else if (!node.confirmed()) {
      follow_move(node, doubt, standing);
    } else if (!node.left_alone && node.schedulable() && doubt.empty() && !standing.why.empty()) {
      report_missing(node, standing.why);
    } else if (standing.why.empty()) {
      standing.why = pause_of(node);
    }
    if (!doubt.empty()) hold(node, doubt, standing);
    standing.changeable = standing.serves && standing.why.empty();
    return standing;
  }

 private:
  static std::string why_unchangeable(const PartitionedNode& node, const std::string& doubt) {
    if (node.left_alone) return node.left_alone->message;
    if (!node.schedulable()) return "it is cordoned or not Ready";
    return doubt.empty() ? missing_slices(node) : doubt;
  }

  // The label can be set to that key again: it exists, keeps what pods use, and the node has its GPUs.
  [[nodiscard]] bool can_return_to(const PartitionedNode& node, const std::string& key) {
    const auto text = key_text(node.config_map, key);
    if (!text) return false;
    const std::optional<Geometry>& slices = cache_.profile(text);
    if (!slices || !keeps_pods(node, *slices) || !has_gpus_of(node, *slices)) return false;
    return behind_ ? !might_cut_any_slices(node, *slices) : !might_cut_bound_slices(node, *slices);
  }

  // There is a key to which a failed move returns.
  [[nodiscard]] bool has_way_back(const PartitionedNode& node) {
    return node.mark.key == node.key && can_return_to(node, node.mark.good);
  }

  // The report can be from before (`doubt`): a slice that it calls free might be in use, and no GPU is cut.
  void hold(const PartitionedNode& node, const std::string& doubt, NodeStanding& standing) {
    // A move takes its time in any case: with it, plugin and agent can come to a node for the first time.
    if (node.left_alone || !node.schedulable() || standing.moves) return;
    standing.why = doubt;
    if (node.agent.pod != nullptr && node.agent.pod->agent->ready) return;  // That ends by itself.
    draft_.finding(
        Severity::warning, node_ref(node.name), kPartitioningReportStale,
        fmt::format("node {} is not planned for: {}, and slices that it calls free might be in use. They stay "
                    "until the agent reports again: see its DaemonSet and the logs of its pod",
                    node.name, doubt));
  }

  void follow_move(const PartitionedNode& node, const std::string& doubt, NodeStanding& standing) {
    const TimerKey timer{Timer::slices_confirming, node.name, node.key};
    const bool by_operator = node.mark.key == node.key;
    // What the agent reports has been registered: the move was well, and its time is no start of the trouble.
    const bool shown = *node.named == node.slices.all();
    const bool recent = by_operator && is_recent() && !shown;
    const std::optional<WallTime> stored = recent ? std::optional(moved_) : std::nullopt;
    const bool overdue = draft_.ages.held_for(timer, draft_.s.settings.partitioning.confirm_timeout, stored);
    const bool since_move = by_operator && draft_.ages.since(timer, stored) <= moved_ + kStartsAfterMove;
    standing.why = fmt::format("its label names the key {}, and it does not report those slices yet", node.key);
    // The kubelet shows the slices, and it is the agent that does not: that is no fault of the move.
    const bool may_be_well = !doubt.empty() && node.registered();
    if (overdue && !may_be_well && since_move && !node.left_alone && has_way_back(node))
      return take_back(node, fmt::format("node {} did not show the slices of key {} in time", node.name, node.key));
    if (overdue && !may_be_well) return report_overdue(node, by_operator);
    standing.carries = *node.named;
    if (overdue) return;
    standing.moves = true;
    standing.in_progress = by_operator || node.key_of_operator;
  }

  // The plugin selects by a label that is missing, so no report will come. Where the operator had set that label, and
  // its owner's is still there, somebody took it away under the plugin: it is set again. Elsewhere it comes with the
  // first profile.
  void follow_unlabelled(const PartitionedNode& node, NodeStanding& standing) {
    if (!node.mark.labelled) return;
    standing.why = fmt::format("the label {}, by which its device plugin selects, was removed", kNosPartitioning);
    if (node.left_alone) return;
    if (!has_lost_label(draft_, node.name) || !draft_.takes_more()) return;
    PatchNode patch = patch_of(*node.node);
    patch.set.emplace(kNosPartitioning, "mps");
    draft_.add(std::move(patch), "Partitioned",
               fmt::format("node {} gets the label {} again, by which its device plugin selects: {} is still there",
                           node.name, kNosPartitioning, kNosPartitioningBefore),
               false, node.name);
  }

  // True once pods have used slices for a while that the node's label does not give them.
  bool have_lacked_slices(const PartitionedNode& node) {
    return draft_.held_for({Timer::slices_confirming, node.name, node.key + " lacks slices"}, kLabelIsMoved);
  }

  // For people: what the label is, and what is wrong with it.
  static std::string describe_label(const PartitionedNode& node, const std::string& why) {
    const std::string label =
        node.key.empty() ? fmt::format("has no label {}", kConfigLabel) : fmt::format("names key {}", node.key);
    return fmt::format("node {} {}, and {}", node.name, label, why);
  }

  // Pods use slices that the node does not report, and no other key has them.
  void report_missing(const PartitionedNode& node, const std::string& why) {
    if (!have_lacked_slices(node)) return;
    draft_.finding(Severity::warning, node_ref(node.name), kPartitioningUnconfirmed,
                   fmt::format("{}. It is not planned for. See the device plugin and nos's gpu-agent there",
                               describe_label(node, why)));
  }

  // Somebody has let the label name another key, or none, under pods whose slices the operator's key has: it names that
  // one again, also on a node that is cordoned.
  void return_label(const PartitionedNode& node, const std::string& why) {
    if (!have_lacked_slices(node) || !draft_.takes_more()) return;
    PartitioningMark mark = node.mark;
    PatchNode patch = naming_patch(node, mark, draft_.s.now);
    const std::string note = fmt::format(
        "{}: the label {} names {} again, whose slices they have. To end partitioning there, remove the label {}",
        describe_label(node, why), kConfigLabel, mark.key, kNosPartitioning);
    draft_.add(std::move(patch), kPartitioningRolledBack, note, false, node.name);
    draft_.event(node_ref(node.name), true, kPartitioningRolledBack, "Partition", note);
  }

  // Its report cannot become what the key holds, so the node is planned for as it reports itself.
  void report_other_gpus(const PartitionedNode& node) {
    draft_.finding(
        Severity::warning, node_ref(node.name), kPartitioningUnconfirmed,
        fmt::format("node {} has {}, and key {}, which its label {} names, has slices of others: {}. The "
                    "key is replaced with the node's next change",
                    node.name, describe_gpus(node.slices), node.key, kConfigLabel, describe(total_of(*node.named))));
  }

  // The node can still be in the move that its annotation reports. That a move has succeeded is written nowhere; one
  // that failed has been taken back by then, unless no operator ran all the time.
  [[nodiscard]] bool is_recent() const {
    return draft_.s.now - moved_ < 2 * draft_.s.settings.partitioning.confirm_timeout;
  }

  void take_back(const PartitionedNode& node, const std::string& why) {
    PartitioningMark mark = node.mark;
    mark.key = std::exchange(mark.good, {});
    mark.failed = node.key;
    ++mark.failures;
    draft_.add(naming_patch(node, mark, draft_.s.now), kPartitioningRolledBack,
               fmt::format("{}: its label is set back to {}, the previous key", why, mark.key), false, node.name);
    draft_.event(node_ref(node.name), true, kPartitioningRolledBack, "Partition",
                 fmt::format("{}: the label {} is set back to {}. See the logs of the device plugin there", why,
                             kConfigLabel, mark.key));
  }

  void report_overdue(const PartitionedNode& node, bool by_operator) {
    draft_.finding(
        Severity::warning, node_ref(node.name), kPartitioningUnconfirmed,
        fmt::format(
            "node {} does not report the slices of key {}, which its label {} names: it reports {}, and the key "
            "has {}. It is not planned for{}. See the device plugin and nos's gpu-agent there",
            node.name, node.key, kConfigLabel, describe(total_of(node.slices.all())), describe(total_of(*node.named)),
            by_operator ? ", and there is no earlier key that keeps what its pods use" : ""));
  }

  // Why the node is not changed again after a move that failed; empty: it can be.
  std::string pause_of(const PartitionedNode& node) {
    if (node.mark.failed.empty() || node.mark.key != node.key) return {};
    const Duration pause = pause_after(node.mark.failures);
    WallTime begun = moved_;
    if (node.mark.moved > draft_.s.now) {
      // The clock that wrote the time was ahead: the pause begins no later than when that is seen.
      const TimerKey timer{Timer::slices_confirming, node.name, node.mark.failed + " has failed"};
      draft_.run(timer);
      begun = std::min(begun, draft_.since(timer));
    }
    const Duration passed = draft_.s.now - begun;
    if (passed >= pause) return {};
    draft_.look_again_in(pause - passed);
    const std::string why = fmt::format("key {} failed there, and it is not changed again before {}", node.mark.failed,
                                        k8s::format_time(std::chrono::ceil<std::chrono::seconds>(begun + pause)));
    draft_.finding(Severity::warning, node_ref(node.name), kPartitioningRolledBack,
                   fmt::format("node {} runs its former slices: {}", node.name, why));
    return why;
  }

  PlanDraft& draft_;
  PlanningCache& cache_;
  WallTime moved_{};     // Of the present node: moved_timer().
  bool behind_ = false;  // Of the present node: its report does not say which slices are used.
};

}  // namespace

PatchNode naming_patch(const PartitionedNode& node, PartitioningMark mark, WallTime now) {
  mark.moved = std::chrono::floor<std::chrono::seconds>(now);
  PatchNode out = patch_of(*node.node);
  out.set.emplace(kConfigLabel, mark.key);
  out.set_annotations.emplace(kPartitioningAnnotation, print_mark(mark));
  return out;
}

TimerKey moved_timer(const PartitionedNode& node) {
  return {Timer::slices_moved, node.name, k8s::format_time(node.mark.moved)};
}

void follow_moves(PlanDraft& draft, std::vector<PartitionedNode>& nodes, PlanningCache& cache) {
  Follower follower(draft, cache);
  for (PartitionedNode& node : nodes) node.standing = follower.follow(node);
}

bool keeps_pods(const PartitionedNode& node, const Geometry& geometry) {
  if (!contains(geometry, node.slices.used())) return false;
  SliceCounts wanted = total_of(node.slices.used());
  add_slices(wanted, node.unreported);
  return has_all(total_of(geometry), wanted);
}

bool might_cut_bound_slices(const PartitionedNode& node, const Geometry& geometry) {
  for (std::size_t g = 0; g < node.slices.gpus.size(); ++g) {
    const GpuSlices& gpu = node.slices.gpus[g];
    for (const auto& [gigabytes, free] : gpu.free) {
      const std::int64_t kept = count_of(gpu.used, gigabytes) + std::min(free, node.bound_slices(gigabytes));
      if (count_of(slices_on(geometry, g), gigabytes) < kept) return true;
    }
  }
  return false;
}

bool fits_gpus(const PartitionedNode& node, const Geometry& geometry,
               const std::function<std::int64_t(const GpuSlices&)>& most) {
  return std::ranges::all_of(geometry, [&](const auto& gpu) {
    const auto index = static_cast<std::size_t>(gpu.first);
    return index < node.slices.gpus.size() && gigabytes_of(gpu.second) <= most(node.slices.gpus[index]);
  });
}

namespace {

// nos names its keys after the node and the second of its plan.
// Source: nebuly-ai/nos at 12e0a72, internal/partitioning/mps/partitioner.go.
bool is_key_of_nos(std::string_view node, std::string_view key) {
  if (!key.starts_with(node) || key.size() < node.size() + 2 || key[node.size()] != '-') return false;
  return std::ranges::all_of(key.substr(node.size() + 1), [](char c) { return c >= '0' && c <= '9'; });
}

void add_release(PlanDraft& draft, PatchNode patch, const std::string& why) {
  const auto label = patch.set.find(std::string(kConfigLabel));
  const std::string what = label != patch.set.end() ? fmt::format("{}={} is restored", kConfigLabel, label->second)
                           : patch.remove.contains(std::string(kConfigLabel))
                               ? fmt::format("{} is removed", kConfigLabel)
                               : fmt::format("{} stays as it is", kConfigLabel);
  const std::string name = patch.name;
  const std::string note = fmt::format(
      "{}: its GPUs are no longer partitioned, and the label {}. The MPS server of nos's device plugin can leave them "
      "in compute mode EXCLUSIVE_PROCESS, where one process at a time gets a context: nvidia-smi -q -d COMPUTE on the "
      "node shows it, and nvidia-smi -c DEFAULT ends it",
      why, what);
  draft.add(std::move(patch), kPartitioningReleased, fmt::format("node {}: {}", name, note), false, name);
  draft.event(node_ref(name), false, kPartitioningReleased, "Release", note);
}

}  // namespace

PatchNode restoring_patch(const Node& node) {
  const PartitioningMark mark = mark_of(node);
  const bool labelled = is_partitioned_by_nos(node) && !is_withdrawn(node, mark);
  const bool known = !mark.before.empty() && (labelled || !is_key_of_nos(node.meta.name, mark.before));
  PatchNode patch = patch_of(node);
  const bool names_key_of_operator = !mark.key.empty() && node.meta.labels.get(kConfigLabel) == mark.key;
  if (names_key_of_operator && !known)
    patch.remove.insert(std::string(kConfigLabel));
  else if (names_key_of_operator && mark.before != mark.key)
    patch.set.emplace(kConfigLabel, mark.before);
  if (mark.labelled && node.meta.labels.get(kNosPartitioning) == "mps")
    patch.remove.insert(std::string(kNosPartitioning));
  patch.remove_annotations.insert(std::string(kPartitioningAnnotation));
  return patch;
}

void release_left(PlanDraft& draft, const Discovery& discovery, const std::set<std::string>& left) {
  for (const std::string& name : left) {
    const Node* node = draft.s.world.nodes.find(name);
    if (node == nullptr) continue;
    if (const PartitioningMark mark = mark_of(*node); !mark.problem.empty()) {
      draft.finding(Severity::warning, node_ref(name), kPartitioningSkipped, unreadable_mark_text(name, mark.problem));
      continue;
    }
    const PluginInstallation* installation = nos_plugin_of(discovery, *node).installation;
    const std::string_view holder = installation != nullptr ? holder_of(*node, *installation)
                                    : is_held(*node)        ? std::string_view(kHeld)
                                                            : std::string_view();
    if (!holder.empty()) {
      draft.finding(Severity::info, node_ref(name), kHeld,
                    fmt::format("node {} keeps its slices although its label {} was removed: {}", name,
                                kNosPartitioning, describe_holder(holder, *node)));
      continue;
    }
    if (!has_lost_label(draft, name)) continue;
    if (!draft.takes_more()) return;
    add_release(draft, restoring_patch(*node), fmt::format("the label {} was removed", kNosPartitioning));
  }
}

void release_withdrawn(PlanDraft& draft, const std::vector<PartitionedNode>& nodes) {
  for (const PartitionedNode& node : nodes) {
    if (!is_withdrawn(*node.node, node.mark)) continue;
    const bool known = draft.s.world.partitioning.nodes_known.contains(node.name) && node.slices.problem.empty();
    const bool used = std::ranges::any_of(node.pods, [](const SlicePod* pod) { return !pod->slices.empty(); });
    if (!known || used || !node.slices.used().empty()) continue;
    add_release(draft, restoring_patch(*node.node), fmt::format("the label {} was removed", kNosPartitioningBefore));
  }
}

}  // namespace gso
