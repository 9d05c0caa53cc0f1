#include "reconcilers/partitioning/node_moves.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string_view>
#include <tuple>
#include <utility>

#include "reconcilers/cluster/config_maps.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/reasons/names.h"

namespace gso {

namespace {

// The wait on the next node: the scheduler has been seen to leave this pod where it is.
constexpr Duration kNextWait = std::chrono::minutes(3);
constexpr Duration kRefusedFor = std::chrono::hours(1);

// The scope of a timer: what it says of a pod with that uid.
constexpr std::string_view kWaits = "for pod ";
constexpr std::string_view kRefused = "not for pod ";

TimerKey timer_of(std::string_view what, const PartitionedNode& node, const SlicePod& pod) {
  return {Timer::slices_idle, node.name, std::string(what) + pod.meta.uid.str()};
}

// The scheduler could bind the pod to the node now, as far as partitioning sees, but for the slices.
bool can_bind(const PartitionedNode& node, const NodeStanding& standing, const SlicePod& pod) {
  return standing.serves && !standing.moves && node.selected && node.confirmed() && node.has_room_for(pod);
}

// That the scheduler could give to any pod.
SliceCounts free_slices(const PartitionedNode& node) {
  SliceCounts out = node.slices.free();
  for (const auto& [gigabytes, count] : node.taken()) add_slices(out, gigabytes, -count);
  return out;
}

SliceCounts wanted_by(const SlicePod& pod) {
  SliceCounts out;
  add_slices(out, pod, 1);
  return out;
}

// What the timers say of pods and nodes that are still there.
class Refusals {
 public:
  Refusals(PlanDraft& draft, const std::vector<PartitionedNode>& nodes, const std::vector<NodeStanding>& standings,
           const std::vector<const SlicePod*>& pods)
      : draft_(draft), nodes_(nodes), standings_(standings), pods_(pods), places_(pods.size()) {
    for (std::size_t p = 0; p < pods.size(); ++p) pod_of_.emplace(pods[p]->meta.uid.str(), p);
  }

  RefusedPlaces run() {
    // A refusal shortens the wait on other nodes, so all of them come first.
    each(kRefused, [&](std::size_t node, std::size_t pod) {
      const TimerKey timer = timer_of(kRefused, nodes_[node], *pods_[pod]);
      const Duration age = draft_.s.now - draft_.since(timer);
      if (age >= kRefusedFor) return;
      draft_.run(timer);
      draft_.look_again_in(kRefusedFor - age);
      places_[pod].push_back(node);
    });
    const RefusedPlaces before = places_;
    each(kWaits, [&](std::size_t node, std::size_t pod) {
      if (!can_bind(nodes_[node], standings_[node], *pods_[pod])) return;
      if (!has_all(free_slices(nodes_[node]), wanted_by(*pods_[pod]))) return;
      const Duration wait = before[pod].empty() ? draft_.s.settings.partitioning.confirm_timeout : kNextWait;
      if (!draft_.held_for(timer_of(kWaits, nodes_[node], *pods_[pod]), wait)) return;
      draft_.renew(timer_of(kRefused, nodes_[node], *pods_[pod]), kRefusedFor);
      places_[pod].push_back(node);
    });
    for (std::vector<std::size_t>& nodes : places_) {
      std::ranges::sort(nodes);
      nodes.erase(std::ranges::unique(nodes).begin(), nodes.end());
    }
    return std::move(places_);
  }

 private:
  // Calls `use` with node and pod of each timer that says `what`.
  template <class Use>
  void each(std::string_view what, const Use& use) const {
    for (auto at = draft_.s.timers.lower_bound({Timer::slices_idle, "", ""});
         at != draft_.s.timers.end() && at->first.timer == Timer::slices_idle; ++at) {
      const std::string_view scope = at->first.scope;
      if (!scope.starts_with(what)) continue;
      const auto pod = pod_of_.find(scope.substr(what.size()));
      const auto node = std::ranges::lower_bound(nodes_, at->first.subject, {}, &PartitionedNode::name);
      if (pod == pod_of_.end() || node == nodes_.end() || node->name != at->first.subject) continue;
      use(static_cast<std::size_t>(node - nodes_.begin()), pod->second);
    }
  }

  PlanDraft& draft_;
  const std::vector<PartitionedNode>& nodes_;
  const std::vector<NodeStanding>& standings_;
  const std::vector<const SlicePod*>& pods_;
  std::map<std::string, std::size_t, std::less<>> pod_of_;
  RefusedPlaces places_;
};

}  // namespace

RefusedPlaces refused_places(PlanDraft& draft, const std::vector<PartitionedNode>& nodes,
                             const std::vector<NodeStanding>& standings, const std::vector<const SlicePod*>& pods) {
  return Refusals(draft, nodes, standings, pods).run();
}

void await_scheduler(PlanDraft& draft, const std::vector<PartitionedNode>& nodes,
                     const std::vector<NodeStanding>& standings, const std::vector<const SlicePod*>& pods,
                     const std::vector<bool>& changing, const SlicePlan& plan) {
  std::map<std::size_t, SliceCounts> left;  // By node: free slices that no pod before has.
  for (std::size_t p = 0; p < pods.size(); ++p) {
    if (!plan.node_of[p]) continue;
    const std::size_t n = *plan.node_of[p];
    if (changing[n] || !can_bind(nodes[n], standings[n], *pods[p])) continue;
    const auto [free, is_new] = left.try_emplace(n);
    if (is_new) free->second = free_slices(nodes[n]);
    const SliceCounts wanted = wanted_by(*pods[p]);
    if (!has_all(free->second, wanted)) continue;
    for (const auto& [gigabytes, count] : wanted) add_slices(free->second, gigabytes, -count);
    const TimerKey timer = timer_of(kWaits, nodes[n], *pods[p]);
    draft.run(timer);
    if (!draft.s.timers.contains(timer)) draft.look_again_in(kNextWait);
  }
}

namespace {

TimerKey projecting(const std::string& node, const std::string& key) {
  return {Timer::slices_projecting, node, key};
}

// Which keys nodes need.
struct KeysInUse {
  std::set<std::string> named;           // By the labels and the marks of all nodes.
  std::vector<std::string> any_of_node;  // Nodes whose mark cannot be read: each key that was made for them.
  [[nodiscard]] bool contains(const std::string& key, const std::string& text) const {
    return named.contains(key) || std::ranges::any_of(any_of_node, [&](const std::string& node) {
             return is_profile_key_of(node, key, text);
           });
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

}  // namespace

std::map<std::size_t, PendingKey> pending_keys(const Snapshot& snapshot, const std::vector<PartitionedNode>& nodes,
                                               PlanningCache& cache) {
  std::map<std::size_t, PendingKey> out;
  std::map<std::size_t, WallTime> oldest;
  for (auto at = snapshot.timers.lower_bound({Timer::slices_projecting, "", ""});
       at != snapshot.timers.end() && at->first.timer == Timer::slices_projecting; ++at) {
    const auto node = std::ranges::lower_bound(nodes, at->first.subject, {}, &PartitionedNode::name);
    if (node == nodes.end() || node->name != at->first.subject || node->config_map == nullptr) continue;
    const std::string& key = at->first.scope;
    const auto text = node->config_map->data.find(key);
    if (key == node->key || text == node->config_map->data.end() || !text->second) continue;
    if (!is_profile_key_of(node->name, key, *text->second)) continue;
    const std::optional<Geometry>& geometry = cache.profile(text->second);
    const auto index = static_cast<std::size_t>(node - nodes.begin());
    if (!geometry || !keeps_pods(*node, *geometry) || might_cut_bound_slices(*node, *geometry) ||
        !fits_gpus(*node, *geometry, capacity_of_gpu(node->slices, snapshot.settings.partitioning)))
      continue;
    if (const auto known = oldest.find(index); known != oldest.end() && known->second <= at->second) continue;
    oldest[index] = at->second;
    out[index] = {key, *geometry};
  }
  return out;
}

Actuation::Move Actuation::move_to(const WantedSlices& wanted) const {
  const PartitionedNode& node = nodes_[wanted.node];
  std::string text = profile_text(wanted.geometry);
  std::string key = profile_key(node.name, text);
  return {&node, std::move(key), std::move(text), describe(total_of(wanted.geometry))};
}

bool Actuation::is_being_written(const WantedSlices& wanted) const {
  return draft_.s.world.nodes_being_written.contains(nodes_[wanted.node].name);
}

void Actuation::carry_out(std::vector<WantedSlices> wanted, const std::string& batch) {
  std::ranges::sort(wanted, {}, [&](const WantedSlices& w) { return std::tuple(-std::int64_t{w.priority}, w.node); });
  std::vector<Move> missing;
  for (const WantedSlices& each : wanted) {
    const Move move = move_to(each);
    wanted_keys_[move.node->config_map->meta.key()].insert(move.key);
    const auto at = move.node->config_map->data.find(move.key);
    const bool there = at != move.node->config_map->data.end() && at->second;
    if (there && move.key == move.node->key && !move.node->awaits_label()) {
      draft_.finding(
          Severity::warning, node_ref(move.node->name), kPartitioningSkipped,
          fmt::format("node {} is not changed: somebody edited key {} of ConfigMap {}, which its label names. "
                      "Restore the text, or let the label name another key",
                      move.node->name, move.key, k8s::to_string(move.node->config_map->meta.key())));
      continue;
    }
    if (there && *at->second != move.text && is_named_elsewhere(draft_.s.world, move.key, move.node->name)) {
      draft_.finding(
          Severity::warning, node_ref(move.node->name), kPartitioningSkipped,
          fmt::format("node {} is not changed: it needs key {} of ConfigMap {}, somebody edited that key, and "
                      "the label of another node names it. Let that label name another key",
                      move.node->name, move.key, k8s::to_string(move.node->config_map->meta.key())));
    } else if (!there || *at->second != move.text) {
      missing.push_back(move);
    } else if (draft_.held_for(projecting(move.node->name, move.key), draft_.s.settings.projection)) {
      if (!is_being_written(each)) move_label(move);
    }
  }
  if (!missing.empty()) write_keys(missing, batch);
}

void Actuation::report_full_budget(const Move& move) {
  if (why_none_.empty() || reported_full_) return;
  reported_full_ = true;
  draft_.finding(Severity::info, node_ref(move.node->name), kBudgetExhausted,
                 fmt::format("node {} waits to get {} for pending pods: {}", move.node->name, move.slices, why_none_));
}

void Actuation::move_label(const Move& move) {
  if (moves_left_ <= 0) return report_full_budget(move);
  if (!draft_.takes_more()) return;
  --moves_left_;
  const PartitionedNode& node = *move.node;
  PartitioningMark mark;
  mark.key = move.key;
  if (node.named && node.key != move.key) mark.good = node.key;
  const bool first = node.mark.key.empty();
  // Where a person removed the operator's annotation, the label can name a key of the operator: no one else set it.
  mark.before = first ? (node.key_of_operator ? std::string() : node.key) : node.mark.before;
  // A move that failed counts until one has succeeded since.
  mark.failures = node.mark.failed.empty() ? 0 : node.mark.failures;
  mark.labelled = node.mark.labelled || lacks_present_label(*node.node);
  PatchNode patch = naming_patch(node, mark, draft_.s.now);
  if (lacks_present_label(*node.node)) patch.set.emplace(kNosPartitioning, "mps");
  draft_.add(std::move(patch), "Partitioned",
             fmt::format("node {} gets {} ({} before), for pending pods; slices that pods use stay", node.name,
                         move.slices, describe(total_of(node.slices.all()))),
             false, node.name);
}

void Actuation::add_key(const PartitionedNode& node, const std::string& key, const std::string& text,
                        const std::string& what) {
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

void Actuation::restore_keys() {
  for (const PartitionedNode& node : nodes_) {
    if (!node.left_alone.empty() || node.key.empty() || node.config_map == nullptr) continue;
    if (node.config_map->data.contains(node.key)) continue;
    const ObjectKey where = node.config_map->meta.key();
    const std::string text = profile_text(node.slices.all());
    if (profile_key(node.name, text) != node.key) {
      draft_.finding(
          Severity::warning, node_ref(node.name), kPartitioningSkipped,
          fmt::format("the label {} of node {} names key {}, which ConfigMap {} does not have: its device plugin "
                      "keeps the slices that it has loaded until it restarts. Restore the key, or remove the label",
                      kConfigLabel, node.name, node.key, k8s::to_string(where)));
      continue;
    }
    add_key(node, node.key, text, fmt::format("key {} of node {} was gone and is written again", node.key, node.name));
  }
}

void Actuation::write_keys(const std::vector<Move>& missing, const std::string& batch) {
  const PartitioningSettings& settings = draft_.s.settings.partitioning;
  std::map<ObjectKey, bool> closed;
  for (const Move& move : missing) {
    const ObjectKey where = move.node->config_map->meta.key();
    if (!closed.contains(where)) {
      const std::string subject = k8s::to_string(where);
      const bool idle = draft_.held_for({Timer::slices_batch_idle, subject, batch}, settings.batch_idle);
      const bool waited = draft_.held_for({Timer::slices_batch, subject, ""}, settings.batch_timeout);
      closed[where] = idle || waited;
    }
    if (!closed[where]) continue;
    add_key(*move.node, move.key, move.text,
            fmt::format("node {} gets {} ({} before)", move.node->name, move.slices,
                        describe(total_of(move.node->slices.all()))));
  }
}

std::set<std::string> Actuation::settled_nodes() const {
  const Duration longest = 2 * draft_.s.settings.partitioning.confirm_timeout;
  std::set<std::string> out;
  for (const PartitionedNode& node : nodes_) {
    const bool well = node.left_alone.empty() && node.confirmed() && node.mark.key == node.key;
    if (well && draft_.s.now - draft_.ages.since(moved_timer(node), node.mark.moved) > longest) out.insert(node.name);
  }
  return out;
}

void Actuation::collect_keys(const Discovery& discovery) {
  std::set<ObjectKey> config_maps;
  for (const PluginInstallation& installation : discovery.of_nos) config_maps.insert(installation.config_map_key());
  std::optional<KeysInUse> used;
  const std::set<std::string> none;
  std::optional<KeysInUse> used_at_least;  // Where there is no room.
  for (const ObjectKey& where : config_maps) {
    const ConfigMap* config_map = draft_.s.world.configmaps.find(where);
    if (config_map == nullptr || config_map->immutable || draft_.s.world.unsynced_namespaces.contains(where.ns))
      continue;
    if (is_switched_on(config_map->meta.annotations.get(kPausedAnnotation))) continue;
    const bool full = full_.contains(where);
    if (full && !used_at_least) used_at_least = keys_in_use(draft_.s.world, settled_nodes());
    for (const auto& [key, text] : config_map->data) {
      if (!text || !is_profile_key(key, *text) || wanted_keys_[where].contains(key)) continue;
      if (!used) used = keys_in_use(draft_.s.world, none);
      const bool spare = used->contains(key, *text);  // If it can go at all.
      if (spare && (!full || used_at_least->contains(key, *text))) continue;
      if (spare ||
          draft_.held_for({Timer::key_unused, k8s::to_string(where), key}, draft_.s.settings.keep_unused_keys)) {
        patches_[where].remove.insert(key);
      }
    }
  }
}

void Actuation::finish() {
  for (auto& [where, patch] : patches_) {
    if (patch.set.empty() && patch.remove.empty()) continue;
    patch.config_map = where;
    std::string message = written_[where];
    if (!patch.remove.empty()) {
      message += fmt::format("{}{} {} that no node needs any more {} removed", message.empty() ? "" : "; ",
                             patch.remove.size(), patch.remove.size() == 1 ? "key" : "keys",
                             patch.remove.size() == 1 ? "is" : "are");
    }
    draft_.add(std::move(patch), "Partitioned", std::move(message));
  }
  patches_.clear();
}

}  // namespace gso
