// Node, pods and ConfigMap -> PartitionedNode.
#include "reconcilers/partitioning/partitioned_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "k8sclient/value/time.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/other_systems.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/reasons/names.h"

namespace gso {

namespace {

bool is_of(const SlicePod& pod, std::string_view daemonset) {
  return !daemonset.empty() &&
         std::ranges::any_of(pod.meta.owners, [&](const auto& owner) { return owner.uid.view() == daemonset; });
}

// The one that has been ready for longest; a time that is not known is long ago.
bool is_better(const SliceAgent& agent, const SliceAgent& than) {
  if (agent.ready != than.ready) return agent.ready;
  return agent.ready && agent.since < than.since;
}

// A time in the future is that of a node whose clock is ahead: the first look at it counts.
bool has_just_started(PlanDraft& draft, const PartitionedNode& node, const SliceAgent& agent) {
  if (!agent.since) return false;
  return !draft.ages.held_for({Timer::slices_agent, node.name, k8s::format_time(*agent.since)}, kReportDelay,
                              *agent.since);
}

}  // namespace

AgentView view_agent(const std::vector<const SlicePod*>& pods, std::string_view plugin, bool seen) {
  AgentView out;
  bool sees_plugin = false;
  for (const SlicePod* pod : pods) {
    sees_plugin = sees_plugin || is_of(*pod, plugin);
    if (pod->agent && (out.pod == nullptr || is_better(*pod->agent, *out.pod->agent))) out.pod = pod;
  }
  out.missing = out.pod == nullptr && (seen || sees_plugin);
  return out;
}

std::string doubt_about_report(PlanDraft& draft, const PartitionedNode& node) {
  constexpr std::string_view kFromBefore = "so its slice report might be outdated";
  const SlicePod* pod = node.agent.pod;
  if (pod == nullptr)
    return node.agent.missing ? fmt::format("no pod of nos's gpu-agent runs there, {}", kFromBefore) : std::string();
  if (pod->agent->ready && !has_just_started(draft, node, *pod->agent)) return {};
  return fmt::format("nos's gpu-agent there (pod {}) {}, {}", k8s::to_string(pod->meta.key()),
                     pod->agent->ready ? "has just started" : "is not ready", kFromBefore);
}

const Packing& PlanningCache::packing(PackInput input) {
  // A pass packs up to four times: with and without what is in progress, and as if nothing could be changed.
  constexpr std::size_t kMost = 8;
  const auto found = std::ranges::find(packings_, input, &std::pair<PackInput, Packing>::first);
  if (found != packings_.end()) {
    packings_.splice(packings_.begin(), packings_, found);
    return packings_.front().second;
  }
  Packing answer = pack(input);
  packings_.emplace_front(std::move(input), std::move(answer));
  if (packings_.size() > kMost) packings_.pop_back();
  return packings_.front().second;
}

const std::optional<Geometry>& PlanningCache::profile(const std::shared_ptr<const std::string>& text) {
  constexpr std::size_t kMost = 20'000;
  if (const auto found = profiles_.find(text); found != profiles_.end()) return found->second;
  if (profiles_.size() >= kMost)
    std::erase_if(profiles_, [](const auto& entry) { return entry.first.use_count() == 1; });
  return profiles_.emplace(text, read_profile(*text)).first->second;
}

SliceCounts slices_of(const SlicePod& pod) {
  SliceCounts out;
  add_slices(out, pod, 1);
  return out;
}

void add_slices(SliceCounts& slices, const SlicePod& pod, std::int64_t by) {
  for (const std::int64_t gigabytes : pod.slices) add_slices(slices, gigabytes, by);
}

namespace {

struct PodsOfNode {
  std::vector<const SlicePod*> bound;
  std::vector<const SlicePod*> nominated;
};
struct PodsByNode {
  std::unordered_map<std::string_view, PodsOfNode> of;
  bool agents = false;  // Pods of nos's gpu-agent can be seen.
};

PodsByNode pods_by_node(const World& world) {
  PodsByNode out;
  for (const auto& [key, pod] : world.partitioning.pods.all()) {
    out.agents = out.agents || pod->agent;
    if (pod->phase == "Succeeded" || pod->phase == "Failed") continue;
    if (!pod->node_name.empty())
      out.of[pod->node_name.view()].bound.push_back(pod.get());
    else if (!pod->nominated_node.empty() && !pod->meta.deletion_timestamp)
      out.of[pod->nominated_node.view()].nominated.push_back(pod.get());
  }
  const auto by_name = [](const SlicePod* pod) { return std::tuple(pod->meta.ns.view(), pod->meta.name); };
  for (auto& [node, pods] : out.of) {
    std::ranges::sort(pods.bound, {}, by_name);
    std::ranges::sort(pods.nominated, {}, by_name);
  }
  return out;
}

SliceCounts unreported_of(const PartitionedNode& node) {
  SliceCounts out;
  for (const SlicePod* pod : node.pods) add_slices(out, *pod, 1);
  add_slices(out, total_of(node.slices.used()), -1);
  return out;
}

// A time in the future is that of a clock that is ahead: the pod is certainly new.
void find_just_bound(PartitionedNode& node, WallTime now) {
  for (const SlicePod* pod : node.pods) {
    if (!pod->bound || pod->slices.empty()) continue;
    const Duration left = kReportDelay - (now - *pod->bound);
    if (left <= Duration::zero()) continue;
    add_slices(node.just_bound, *pod, 1);
    node.report_due = std::max(node.report_due, left);
  }
}

// CUDA's MPS with memory limits needs Volta (compute capability 7.0) or newer. A missing label is fine.
bool is_before_volta(const Node& node) {
  return whole_number(node.meta.labels.get(kComputeMajor)).value_or(7) < 7;
}

Reason skipped(std::string why) {
  return {kPartitioningSkipped, std::move(why)};
}

// What is wrong with the ConfigMap of the plugin that serves the node.
std::optional<Reason> config_map_obstacle(const World& world, const PartitionedNode& node) {
  const ObjectKey where = node.nos.installation->config_map_key();
  const std::string map = k8s::to_string(where);
  if (node.nos.installation->config_map.empty()) {
    return skipped(
        fmt::format("its device plugin in namespace {} mounts no ConfigMap of profiles (available-configs)", where.ns));
  }
  if (world.unsynced_namespaces.contains(where.ns))
    return skipped(fmt::format("ConfigMap {} has not been read yet", map));
  if (node.config_map == nullptr) return skipped(fmt::format("ConfigMap {} does not exist", map));
  if (node.config_map->immutable) return skipped(fmt::format("ConfigMap {} is immutable", map));
  if (is_switched_on(node.config_map->meta.annotations.get(kPausedAnnotation)))
    return skipped(fmt::format("ConfigMap {} is paused (annotation {})", map, kPausedAnnotation));
  return std::nullopt;
}

// Why the plugins that select the node offer no slices of several sizes; nullopt: they do.
std::optional<Reason> plugin_obstacle(const Discovery& discovery, const PartitionedNode& node) {
  const auto needs_fork = [](std::string why) { return Reason(kPartitioningNeedsFork, std::move(why)); };
  if (node.nos.installation == nullptr)
    return needs_fork("no DaemonSet of nos's device plugin selects it, and slices of several sizes need that plugin");
  const Operand* plugin = node.nos.plugin;
  // nos's plugin ended with 0.13. The official one has MPS from 0.15 on, and ends at nos's profiles.
  if (plugin->version.known && !plugin->version.known_below(0, 15, 0)) {
    return needs_fork(fmt::format(
        "DaemonSet {} selects it and runs {} of the device plugin, which is not nos's (0.13), and slices of several "
        "sizes need that one",
        k8s::to_string(plugin->key), plugin->version.to_string()));
  }
  for (const PluginInstallation& other : discovery.installations) {
    if (const Operand* official = other.find(Component::plugin, *node.node)) {
      return needs_fork(fmt::format(
          "DaemonSet {} of another device plugin selects it beside nos's, and both read the label {}. Keep one of "
          "them away from the node",
          k8s::to_string(official->key), kConfigLabel));
    }
  }
  return std::nullopt;
}

std::optional<Reason> obstacle_of(const World& world, const Discovery& discovery, const PartitionedNode& a) {
  const Node& node = *a.node;
  if (!a.slices.problem.empty()) return skipped(a.slices.problem);
  if (is_before_volta(node)) {
    return skipped(fmt::format("its GPUs are older than Volta ({}={}), and MPS cannot limit memory there",
                               kComputeMajor, node.meta.labels.get(kComputeMajor).value_or("")));
  }
  if (!a.readable) {
    return skipped(
        "MIG is enabled on its GPUs, where nos's gpu-agent does not run: disable MIG there, or remove the label");
  }
  if (!a.mark.problem.empty()) return skipped(unreadable_mark_text(a.name, a.mark.problem));
  if (is_withdrawn(node, a.mark)) {
    return Reason(kPartitioningReleased,
                  fmt::format("its owner has removed the label {}. The operator removes {}, which it had set beside "
                              "it, once no pod uses slices there",
                              kNosPartitioningBefore, kNosPartitioning));
  }
  if (auto obstacle = plugin_obstacle(discovery, a)) return obstacle;
  if (auto obstacle = config_map_obstacle(world, a)) return obstacle;
  if (const auto holder = holder_of(node, *a.nos.installation); !holder.empty())
    return Reason(kHeld, describe_holder(holder, node));
  if (node.meta.annotations.contains(kChangeAnnotation))
    return skipped(fmt::format("a change of its profile is in progress (annotation {})", kChangeAnnotation));
  if (!world.partitioning.nodes_known.contains(a.name)) return skipped("its pods have not been read yet");
  const auto user = std::ranges::find_if(a.pods, [](const SlicePod* pod) { return pod->uses_whole_gpus; });
  if (user == a.pods.end()) return std::nullopt;
  return skipped(
      fmt::format("pod {} uses whole GPUs there (nvidia.com/gpu), and no GPU of it can be divided without "
                  "knowing which ones",
                  k8s::to_string((*user)->meta.key())));
}

void read_key(PartitionedNode& out, PlanningCache& cache) {
  out.key = out.node->meta.labels.get(kConfigLabel).value_or("");
  const auto text = key_text(out.config_map, out.key);
  if (!text) return;
  out.named = cache.profile(text);
  out.key_of_operator = out.key == profile_key(out.name, *text);
}

PartitionedNode read_node(const World& world, WallTime now, const Discovery& discovery, const Node& node,
                          const PodsByNode& pods, PlanningCache& cache) {
  PartitionedNode out;
  out.name = node.meta.name;
  out.node = &node;
  out.slices = read_slices(node);
  out.nos = nos_plugin_of(discovery, node);
  if (out.nos.installation != nullptr) out.config_map = world.configmaps.find(out.nos.installation->config_map_key());
  read_key(out, cache);
  out.mark = mark_of(node);
  if (const auto at = pods.of.find(out.name); at != pods.of.end()) {
    out.pods = at->second.bound;
    out.nominated = at->second.nominated;
  }
  // Plugin and agent select by the same label.
  if (out.nos.selected) out.agent = view_agent(out.pods, out.nos.plugin->uid, pods.agents);
  if (out.slices.problem.empty()) {
    out.unreported = unreported_of(out);
    find_just_bound(out, now);
  }
  out.divisible = !is_before_volta(node) && !facts_of(node).mig_enabled;
  out.readable = out.divisible && out.slices.problem.empty();
  out.left_alone = obstacle_of(world, discovery, out);
  return out;
}

}  // namespace

// Of each size at least one: a plugin that has just stopped leaves its resources behind with nothing to hand out, and
// one unhealthy GPU is no sign of another profile.
bool PartitionedNode::registered() const {
  return named && std::ranges::all_of(total_of(*named), [&](const auto& wanted) {
           const Interned resource(slice_resource(wanted.first));
           const auto capacity = node->capacity.find(resource);
           const auto allocatable = node->allocatable.find(resource);
           return capacity != node->capacity.end() && capacity->second == wanted.second &&
                  allocatable != node->allocatable.end() && allocatable->second > 0;
         });
}

bool PartitionedNode::confirmed() const {
  return !named || (*named == slices.all() && (!key_of_operator || registered()));
}

bool PartitionedNode::awaits_label() const {
  return !nos.selected && lacks_present_label(*node);
}

SliceCounts PartitionedNode::taken() const {
  SliceCounts out = unreported;
  for (const SlicePod* pod : nominated) add_slices(out, *pod, 1);
  return out;
}

std::int64_t PartitionedNode::bound_slices(std::int64_t gigabytes) const {
  return count_of(taken(), gigabytes) + count_of(just_bound, gigabytes);
}

bool PartitionedNode::has_room_for(const SlicePod& pod) const {
  PodNeeds needs = pod.needs;
  std::int64_t count = 1;
  for (const auto* list : {&pods, &nominated}) {
    for (const SlicePod* other : *list) {
      if (other->priority < pod.priority) continue;
      needs.cpu += other->needs.cpu;
      needs.memory += other->needs.memory;
      ++count;
    }
  }
  const auto fits = [](std::int64_t wanted, std::int64_t there) { return there == 0 || wanted <= there; };
  // As the scheduler, which looks at no resource that the pod does not ask for.
  return (pod.needs.cpu == 0 || fits(needs.cpu, node->room.cpu)) &&
         (pod.needs.memory == 0 || fits(needs.memory, node->room.memory)) && fits(count, node->room.pods);
}

bool PartitionedNode::schedulable() const {
  return node->ready && !node->unschedulable && !node->meta.deletion_timestamp;
}

NosPlugin nos_plugin_of(const Discovery& discovery, const Node& node) {
  // The plugin selects by the present name of the label, which a node with the former one gets with its first profile.
  std::optional<Node> labelled;
  if (node.meta.labels.get(kNosPartitioning) != "mps") {
    labelled = node;
    labelled->meta.labels.set(kNosPartitioning, "mps");
  }
  for (const PluginInstallation& installation : discovery.of_nos) {
    const Operand* plugin = installation.find(Component::plugin, labelled ? *labelled : node);
    if (plugin == nullptr) continue;
    return {&installation, plugin, !labelled || installation.find(Component::plugin, node) != nullptr};
  }
  return {};
}

bool lacks_present_label(const Node& node) {
  return !node.meta.labels.contains(kNosPartitioning) && is_partitioned_by_nos(node);
}

std::vector<PartitionedNode> read_partitioned_nodes(const World& world, WallTime now, const Discovery& discovery,
                                                    const std::set<std::string>& names, PlanningCache& cache) {
  std::vector<PartitionedNode> out;
  if (names.empty()) return out;
  const PodsByNode pods = pods_by_node(world);
  for (const std::string& name : names)
    if (const Node* node = world.nodes.find(name)) out.push_back(read_node(world, now, discovery, *node, pods, cache));
  return out;
}

}  // namespace gso
