#include "reconcilers/partitioning/node_moves.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/reasons/names.h"

namespace gso {

namespace {

// The wait on the next node: the scheduler has been seen to leave this pod where it is.
constexpr Duration kNextWait = std::chrono::minutes(3);
constexpr Duration kRefusedFor = std::chrono::hours(1);
// How long the move of a label for a pod counts against it (PodToPlace::kMostNodes).
constexpr Duration kCutCounts = std::chrono::hours(1);

// The scope of a timer: what it says of a pod with that uid.
constexpr std::string_view kWaits = "for pod ";
constexpr std::string_view kRefused = "not for pod ";

TimerKey timer_of(std::string_view what, const PartitionedNode& node, const SlicePod& pod) {
  return {Timer::slices_idle, node.name, std::string(what) + pod.meta.uid.str()};
}

// The scheduler could bind the pod to the node now, as far as partitioning sees, but for the slices.
bool can_bind(const PartitionedNode& node, const SlicePod& pod) {
  return node.standing.serves && !node.standing.moves && node.nos.selected && node.confirmed() &&
         node.has_room_for(pod);
}

// That the scheduler could give to any pod.
SliceCounts free_slices(const PartitionedNode& node) {
  SliceCounts out = node.slices.free();
  add_slices(out, node.taken(), -1);
  return out;
}

// Calls `use` with the index of the node, the scope and the beginning of each timer of that kind whose node is there.
template <class Use>
void each_timer(const Snapshot& snapshot, Timer kind, const std::vector<PartitionedNode>& nodes, const Use& use) {
  for (auto at = snapshot.timers.lower_bound({kind, "", ""}); at != snapshot.timers.end() && at->first.timer == kind;
       ++at) {
    const auto node = std::ranges::lower_bound(nodes, at->first.subject.view(), {}, &PartitionedNode::name);
    if (node == nodes.end() || node->name != at->first.subject.view()) continue;
    use(static_cast<std::size_t>(node - nodes.begin()), at->first.scope.view(), at->second);
  }
}

std::string mark_of_pod(const SlicePod& pod) {
  constexpr std::size_t kDigits = 10;
  return short_hash(pod.meta.uid.str()).substr(0, kDigits);
}

// One of PartitioningMark::pods, and when the label was moved for it.
struct Cut {
  std::string_view pod;
  WallTime at{};
};

std::vector<Cut> cuts_of(const PartitioningMark& mark) {
  std::vector<Cut> out;
  const std::chrono::seconds moved = std::chrono::floor<std::chrono::seconds>(mark.moved.time_since_epoch());
  for (const auto part : std::views::split(mark.pods, ' ')) {
    const std::string_view text(part.begin(), part.end());
    const std::size_t at = text.find('@');
    std::chrono::seconds since = moved;
    if (at != std::string_view::npos)
      since = std::clamp(std::chrono::seconds(whole_number(text.substr(at + 1)).value_or(0)), {}, std::max(moved, {}));
    out.push_back({text.substr(0, at), WallTime(since)});
  }
  return out;
}

// Which of the pods the nodes were cut for, as their annotations say: a new leader knows it as well.
void find_cuts(PlanDraft& draft, const std::vector<PartitionedNode>& nodes, std::vector<PodToPlace>& pods) {
  std::map<std::string, PodToPlace*, std::less<>> by_hash;
  for (PodToPlace& each : pods) by_hash.emplace(mark_of_pod(*each.pod), &each);
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const PartitioningMark& mark = nodes[n].mark;
    if (mark.pods.empty()) continue;
    for (const Cut& cut : cuts_of(mark)) {
      const auto pod = by_hash.find(cut.pod);
      if (pod == by_hash.end()) continue;
      const WallTime since = draft.ages.stored(stored_time(nodes[n].name, pod->first, cut.at), cut.at);
      const Duration left = kCutCounts - (draft.s.now - since);
      if (left <= Duration::zero()) continue;
      pod->second->cut_for.insert(n);
      draft.look_again_in(left);
    }
  }
}

}  // namespace

std::string pods_of_move(const PartitionedNode& node, std::size_t index, const std::vector<PodToPlace>& pods,
                         const SlicePlan& plan) {
  std::vector<std::string> out;
  SliceCounts free = free_slices(node);
  const std::vector<Cut> before = cuts_of(node.mark);
  for (std::size_t p = 0; p < pods.size() && out.size() < PartitioningMark::kMostPods; ++p) {
    const SliceCounts wanted = slices_of(*pods[p].pod);
    const bool is_placed = plan.node_of[p] == index;
    const bool is_served = is_placed && has_all(free, wanted);
    if (is_served) add_slices(free, wanted, -1);
    if (is_placed && !is_served) {
      out.push_back(mark_of_pod(*pods[p].pod));
    } else if (pods[p].cut_for.contains(index)) {
      const std::string mark = mark_of_pod(*pods[p].pod);
      const auto cut = std::ranges::find(before, mark, &Cut::pod);
      out.push_back(fmt::format("{}@{}", mark, cut->at.time_since_epoch() / std::chrono::seconds(1)));
    }
  }
  return fmt::format("{}", fmt::join(out, " "));
}

void find_refusals(PlanDraft& draft, const std::vector<PartitionedNode>& nodes, std::vector<PodToPlace>& pods) {
  find_cuts(draft, nodes, pods);
  std::map<std::string, PodToPlace*, std::less<>> by_uid;
  for (PodToPlace& each : pods) by_uid.emplace(each.pod->meta.uid.str(), &each);
  const auto each = [&](std::string_view what, const auto& use) {
    each_timer(draft.s, Timer::slices_idle, nodes, [&](std::size_t node, std::string_view scope, WallTime) {
      const auto pod = scope.starts_with(what) ? by_uid.find(scope.substr(what.size())) : by_uid.end();
      if (pod != by_uid.end()) use(node, *pod->second);
    });
  };
  // A refusal shortens the wait on other nodes, so all of those that are known come first.
  each(kRefused, [&](std::size_t n, PodToPlace& to_place) {
    const TimerKey timer = timer_of(kRefused, nodes[n], *to_place.pod);
    const Duration age = draft.s.now - draft.since(timer);
    if (age >= kRefusedFor) return;
    draft.run(timer);
    draft.look_again_in(kRefusedFor - age);
    to_place.refused_by.insert(n);
  });
  std::vector<std::pair<PodToPlace*, std::size_t>> found;
  each(kWaits, [&](std::size_t n, PodToPlace& to_place) {
    const SlicePod& pod = *to_place.pod;
    if (!can_bind(nodes[n], pod) || !has_all(free_slices(nodes[n]), slices_of(pod))) return;
    const Duration wait = to_place.refused_by.empty() ? draft.s.settings.partitioning.confirm_timeout : kNextWait;
    if (!draft.held_for(timer_of(kWaits, nodes[n], pod), wait)) return;
    draft.renew(timer_of(kRefused, nodes[n], pod), kRefusedFor);
    found.emplace_back(&to_place, n);
  });
  for (const auto& [pod, node] : found) pod->refused_by.insert(node);
}

void await_scheduler(PlanDraft& draft, const std::vector<PartitionedNode>& nodes, const std::vector<PodToPlace>& pods,
                     const PendingKeys& pending, const SlicePlan& plan) {
  std::map<std::size_t, SliceCounts> left;  // By node: free slices that no pod before has.
  for (std::size_t p = 0; p < pods.size(); ++p) {
    if (!plan.node_of[p]) continue;
    const std::size_t n = *plan.node_of[p];
    if (plan.packing[n].changed() || pending.contains(n) || !can_bind(nodes[n], *pods[p].pod)) continue;
    const auto [free, is_new] = left.try_emplace(n);
    if (is_new) free->second = free_slices(nodes[n]);
    const SliceCounts wanted = slices_of(*pods[p].pod);
    if (!has_all(free->second, wanted)) continue;
    add_slices(free->second, wanted, -1);
    const TimerKey timer = timer_of(kWaits, nodes[n], *pods[p].pod);
    // A new leader goes on where the last one was.
    const bool cut = pods[p].cut_for.contains(n);
    draft.ages.run(timer, cut ? std::optional(nodes[n].mark.moved) : std::nullopt);
    if (!draft.s.timers.contains(timer)) draft.look_again_in(kNextWait);
  }
}

namespace {

TimerKey projecting(const std::string& node, const std::string& key) {
  return {Timer::slices_projecting, node, key};
}

// How long a key that no node names is kept where another one finds no room. A Node object can be gone for a moment.
constexpr Duration kUnusedWhereFull = std::chrono::minutes(5);

// Which keys nodes need.
struct KeysInUse {
  std::set<std::string> named;           // By the labels and the marks of all nodes.
  std::vector<std::string> any_of_node;  // Nodes whose mark cannot be read: each key that was made for them.
  [[nodiscard]] bool contains(const std::string& key, const std::string& text) const {
    return named.contains(key) ||
           std::ranges::any_of(any_of_node, [&](const std::string& node) { return key == profile_key(node, text); });
  }
};

// A label of a node other than `except` names the key.
bool is_named_elsewhere(const World& world, const std::string& key, const std::string& except) {
  return std::ranges::any_of(world.nodes.all(), [&](const auto& entry) {
    return entry.first.name != except && entry.second->meta.labels.get(kConfigLabel) == key;
  });
}

// `settled`: nodes that need no key to return to.
KeysInUse keys_in_use(const World& world, const std::set<std::string>& settled) {
  KeysInUse out;
  for (const auto& [name, node] : world.nodes.all()) {
    if (const auto key = node->meta.labels.get(kConfigLabel)) out.named.emplace(*key);
    if (!node->meta.annotations.contains(kPartitioningAnnotation)) continue;
    const PartitioningMark mark = mark_of(*node);
    if (!mark.problem.empty()) out.any_of_node.push_back(name.name);
    out.named.insert({mark.key, mark.before});
    if (!settled.contains(name.name)) out.named.insert(mark.good);
  }
  return out;
}

// The move of a node's label to the key of the slices that it should carry.
struct LabelMove {
  const PartitionedNode& node;
  std::string text;
  std::string key;
  std::string slices;  // For people.
  std::string pods;    // PartitioningMark::pods.
  explicit LabelMove(const WantedSlices& wanted)
      : node(*wanted.node),
        text(profile_text(wanted.geometry)),
        key(profile_key(node.name, text)),
        slices(describe(total_of(wanted.geometry))),
        pods(wanted.pods) {}
};

class Actuation {
 public:
  Actuation(PlanDraft& draft, const std::vector<PartitionedNode>& nodes, const FleetSlots& slots)
      : draft_(draft), nodes_(nodes), moves_left_(slots.free), why_none_(slots.why_none) {}

  void restore_keys() {
    for (const PartitionedNode& node : nodes_) {
      if (node.left_alone || node.key.empty() || node.config_map == nullptr) continue;
      if (node.config_map->data.contains(node.key)) continue;
      const std::string text = profile_text(node.slices.all());
      if (profile_key(node.name, text) == node.key) {
        add_key(node, node.key, text,
                fmt::format("key {} of node {} was gone and is written again", node.key, node.name));
        continue;
      }
      warn(node,
           fmt::format("the label {} of node {} names key {}, which ConfigMap {} does not have: its device plugin "
                       "keeps the slices that it has loaded until it restarts. Restore the key, or remove the label",
                       kConfigLabel, node.name, node.key, where_of(node)));
    }
  }

  void carry_out(std::vector<WantedSlices> wanted, const std::string& batch) {
    std::ranges::sort(wanted, {}, [](const WantedSlices& w) {
      return std::tuple(-std::int64_t{w.priority}, std::string_view(w.node->name));
    });
    for (const WantedSlices& each : wanted) {
      const LabelMove move(each);
      wanted_keys_[move.node.config_map->meta.key()].insert(move.key);
      const auto there = key_text(move.node.config_map, move.key);
      const bool is_written = there && *there == move.text;
      if (there && move.key == move.node.key && !move.node.awaits_label()) {
        warn(move.node, fmt::format("node {} is not changed: key {} of ConfigMap {} was edited by hand, and its label "
                                    "names it. Restore the text, or point the label at another key",
                                    move.node.name, move.key, where_of(move.node)));
      } else if (there && !is_written && is_named_elsewhere(draft_.s.world, move.key, move.node.name)) {
        warn(move.node,
             fmt::format("node {} is not changed: it needs key {} of ConfigMap {}, which was edited by hand, "
                         "and the label of another node names it. Point that label at another key",
                         move.node.name, move.key, where_of(move.node)));
      } else if (!is_written) {
        write_key(move, batch);
      } else if (draft_.held_for(projecting(move.node.name, move.key), draft_.s.settings.projection)) {
        if (!draft_.s.world.nodes_being_written.contains(move.node.name)) move_label(move);
      }
    }
  }

  void collect_keys(const Discovery& discovery) {
    std::set<ObjectKey> config_maps;
    for (const PluginInstallation& installation : discovery.of_nos) config_maps.insert(installation.config_map_key());
    std::optional<KeysInUse> used;
    std::optional<KeysInUse> used_at_least;  // Where there is no room.
    for (const ObjectKey& where : config_maps) {
      const ConfigMap* config_map = draft_.s.world.configmaps.find(where);
      if (config_map == nullptr || config_map->immutable || draft_.s.world.unsynced_namespaces.contains(where.ns))
        continue;
      if (is_switched_on(config_map->meta.annotations.get(kPausedAnnotation))) continue;
      const bool full = full_.contains(where);
      const Duration wait =
          full ? std::min(kUnusedWhereFull, draft_.s.settings.keep_unused_keys) : draft_.s.settings.keep_unused_keys;
      std::set<std::string> spare;  // Keys to return to that no node needs.
      std::set<std::string>& removed = patches_[where].remove;
      for (const auto& [key, text] : config_map->data) {
        if (!text || !is_profile_key(key, *text) || wanted_keys_[where].contains(key)) continue;
        if (!used) used = keys_in_use(draft_.s.world, {});
        if (!used->contains(key, *text)) {
          if (draft_.held_for({Timer::key_unused, k8s::to_string(where), key}, wait)) removed.insert(key);
        } else if (full) {
          if (!used_at_least) used_at_least = keys_in_use(draft_.s.world, settled_nodes());
          if (!used_at_least->contains(key, *text)) spare.insert(key);
        }
      }
      if (removed.empty()) removed = std::move(spare);
    }
  }

  // Adds the patches of ConfigMaps to the plan.
  void finish() {
    for (auto& [where, patch] : patches_) {
      if (patch.set.empty() && patch.remove.empty()) continue;
      patch.config_map = where;
      std::string message = written_[where];
      if (!patch.remove.empty()) {
        message += fmt::format("{}{} that no node needs {} removed", message.empty() ? "" : "; ",
                               counted(patch.remove.size(), "key"), patch.remove.size() == 1 ? "is" : "are");
      }
      draft_.add(std::move(patch), "Partitioned", std::move(message));
    }
  }

 private:
  static std::string where_of(const PartitionedNode& node) { return k8s::to_string(node.config_map->meta.key()); }

  void warn(const PartitionedNode& node, std::string message) {
    draft_.finding(Severity::warning, node_ref(node.name), kPartitioningSkipped, std::move(message));
  }

  // Writes the key into the node's ConfigMap, if that has room for it; `what`: for people.
  void add_key(const PartitionedNode& node, const std::string& key, const std::string& text, const std::string& what) {
    const ObjectKey where = node.config_map->meta.key();
    PatchConfigMap& patch = patches_[where];
    std::size_t bytes = 0;
    for (const auto& [other, content] : patch.set) bytes += other.size() + content.size();
    if (has_room(*node.config_map, key, text, bytes)) {
      patch.set.emplace(key, text);
      std::string& written = written_[where];
      written += (written.empty() ? "" : ", ") + what;
      return;
    }
    full_.insert(where);
    draft_.finding(Severity::warning, config_map_ref(where), kPartitioningSkipped,
                   fmt::format("ConfigMap {} has no room for further keys (1 MiB): node {} and others wait until old "
                               "keys are removed",
                               k8s::to_string(where), node.name));
  }

  // Once no further pods have come for a while, or they have come for long.
  void write_key(const LabelMove& move, const std::string& batch) {
    const PartitioningSettings& settings = draft_.s.settings.partitioning;
    const std::string where = where_of(move.node);
    const bool idle = draft_.held_for({Timer::slices_batch_idle, where, batch}, settings.batch_idle);
    const bool waited = draft_.held_for({Timer::slices_batch, where, ""}, settings.batch_timeout);
    if (!idle && !waited) return;
    add_key(move.node, move.key, move.text,
            fmt::format("node {} gets {} ({} before)", move.node.name, move.slices,
                        describe(total_of(move.node.slices.all()))));
  }

  void move_label(const LabelMove& move) {
    if (moves_left_ <= 0) return report_full_budget(move);
    if (!draft_.takes_more()) return;
    --moves_left_;
    const PartitionedNode& node = move.node;
    PartitioningMark mark;
    mark.key = move.key;
    if (node.named && node.key != move.key) mark.good = node.key;
    const bool first = node.mark.key.empty();
    // Where a person removed the operator's annotation, the label can name a key of the operator: no one else set it.
    mark.before = first ? (node.key_of_operator ? std::string() : node.key) : node.mark.before;
    // A move that failed counts until one has succeeded since.
    mark.failures = node.mark.failed.empty() ? 0 : node.mark.failures;
    mark.labelled = node.mark.labelled || lacks_present_label(*node.node);
    mark.pods = move.pods;
    PatchNode patch = naming_patch(node, mark, draft_.s.now);
    if (lacks_present_label(*node.node)) patch.set.emplace(kNosPartitioning, "mps");
    draft_.add(std::move(patch), "Partitioned",
               fmt::format("node {} gets {} ({} before), for pending pods; slices that pods use stay", node.name,
                           move.slices, describe(total_of(node.slices.all()))),
               false, node.name);
  }

  void report_full_budget(const LabelMove& move) {
    if (why_none_.empty() || std::exchange(reported_full_, true)) return;
    draft_.finding(Severity::info, node_ref(move.node.name), kBudgetExhausted,
                   fmt::format("node {} waits to get {} for pending pods: {}", move.node.name, move.slices, why_none_));
  }

  // Nodes whose key to return to is not needed any more: their last move was well, and is long ago.
  [[nodiscard]] std::set<std::string> settled_nodes() const {
    const Duration longest = 2 * draft_.s.settings.partitioning.confirm_timeout;
    std::set<std::string> out;
    for (const PartitionedNode& node : nodes_) {
      const bool well = !node.left_alone && node.confirmed() && node.mark.key == node.key;
      if (well && draft_.s.now - draft_.ages.since(moved_timer(node), node.mark.moved) > longest) out.insert(node.name);
    }
    return out;
  }

  PlanDraft& draft_;
  const std::vector<PartitionedNode>& nodes_;
  std::int64_t moves_left_;
  const std::string& why_none_;
  bool reported_full_ = false;
  std::map<ObjectKey, PatchConfigMap> patches_;
  std::map<ObjectKey, std::string> written_;  // Which slices the new keys are for; for people.
  std::map<ObjectKey, std::set<std::string>> wanted_keys_;
  std::set<ObjectKey> full_;  // A key found no room there.
};

}  // namespace

PendingKeys pending_keys(const Snapshot& snapshot, const std::vector<PartitionedNode>& nodes, PlanningCache& cache) {
  PendingKeys out;
  std::map<std::size_t, WallTime> oldest;
  // Slices in use stay, also where they are more than the memory that is left for slices.
  const auto most = [&](const GpuSlices& gpu) {
    return std::max(capacity_of_gpu(gpu, snapshot.settings.partitioning), gigabytes_of(gpu.used));
  };
  const auto consider = [&](std::size_t index, std::string_view key, WallTime since) {
    const PartitionedNode& node = nodes[index];
    const auto text = key_text(node.config_map, key);
    if (!text || key == node.key || key != profile_key(node.name, *text)) return;
    const std::optional<Geometry>& geometry = cache.profile(text);
    if (!geometry || !keeps_pods(node, *geometry) || might_cut_bound_slices(node, *geometry) ||
        !fits_gpus(node, *geometry, most))
      return;
    const auto [known, is_new] = oldest.try_emplace(index, since);
    if (!is_new && known->second <= since) return;
    known->second = since;
    out[index] = *geometry;
  };
  each_timer(snapshot, Timer::slices_projecting, nodes, consider);
  return out;
}

void actuate(PlanDraft& draft, const Discovery& discovery, const std::vector<PartitionedNode>& nodes,
             std::vector<WantedSlices> wanted, const FleetSlots& slots, const std::string& batch) {
  Actuation actuation(draft, nodes, slots);
  actuation.restore_keys();
  actuation.carry_out(std::move(wanted), batch);
  actuation.collect_keys(discovery);
  actuation.finish();
}

}  // namespace gso
