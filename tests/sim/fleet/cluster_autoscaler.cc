#include "tests/sim/fleet/cluster_autoscaler.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"

namespace gso::sim {

using nlohmann::json;

namespace {

constexpr const char *kDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled",
                     *kSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict";

bool is_of(const json& pod, const char* kind) {
  return std::ranges::any_of(items(metadata(pod), "ownerReferences"),
                             [kind](const json& owner) { return text(owner, "kind") == kind; });
}

// Somebody would make it again elsewhere, or its owner says that it is not needed.
bool is_movable(const json& pod) {
  const std::string& safe = text(annotations(pod), kSafeToEvict);
  if (!safe.empty()) return safe == "true";
  return !items(metadata(pod), "ownerReferences").empty();
}

std::int64_t count_of(const json& amounts) {
  std::int64_t sum = 0;
  for (const auto& [resource, count] : amounts.items()) {
    if (!resource.starts_with("nvidia.com/")) continue;
    sum += std::strtoll(count.is_string() ? count.get_ref<const std::string&>().c_str() : "0", nullptr, 10);
  }
  return sum;
}

std::int64_t requested_by(const json& pod) {
  std::int64_t sum = 0;
  for (const json& container : items(member(pod, "spec"), "containers"))
    sum += count_of(member(member(container, "resources"), "requests"));
  return sum;
}

std::int64_t allocatable_of(const json& node) {
  return count_of(member(member(node, "status"), "allocatable"));
}

// A GPU node without GPUs counts as one that has not come up yet.
bool is_up(const json& node) {
  const json& conditions = items(member(node, "status"), "conditions");
  const bool ready = std::ranges::any_of(conditions, [](const json& condition) {
    return text(condition, "type") == "Ready" && text(condition, "status") == "True";
  });
  return ready && allocatable_of(node) > 0;
}

}  // namespace

ClusterAutoscaler::ClusterAutoscaler(Site* site, Cloud cloud) : Actor(site), cloud_(std::move(cloud)) {}

void ClusterAutoscaler::manage(NodeGroup group) {
  const std::string name = group.machine.name;
  groups_.insert_or_assign(name, std::move(group));
  if (!std::exchange(scanning_, true)) scan();
}

void ClusterAutoscaler::on_node(const JsonPtr& before, const JsonPtr& after) {
  if (before == nullptr && after != nullptr) booting_.erase(name_of(*after));
  if (after != nullptr || before == nullptr) return;
  const std::string& name = name_of(*before);
  unneeded_since_.erase(name);
  leaving_.erase(name);
  // The pod garbage collector's part: what was bound there is gone with the machine.
  for (const JsonPtr& pod : workloads_on(name))
    outbox_.push(removal(kPods, {namespace_of(*pod), name_of(*pod)}, uid_of(*pod), 0));
}

void ClusterAutoscaler::scan() {
  const std::map<std::string, NodeGroup> groups = groups_;
  for (const auto& [name, group] : groups) {
    scale_up(group);
    scale_down(group);
  }
  site_->after(site_->pace.timing().autoscaler_scan, life_, [this] { scan(); });
}

void ClusterAutoscaler::scale_up(const NodeGroup& group) {
  const std::string& name = group.machine.name;
  const std::vector<JsonPtr> members = members_of(name);
  const auto coming = static_cast<std::size_t>(
      std::ranges::count_if(booting_, [&name](const auto& machine) { return machine.second == name; }));
  const std::size_t size = members.size() + coming;
  const bool all_up = coming == 0 && std::ranges::all_of(members, [](const JsonPtr& node) { return is_up(*node); });
  if (size >= group.least && (size >= group.most || !all_up || !some_pod_fits_nowhere())) return;
  NodeSpec machine = group.machine;
  machine.name = name + "-x" + std::to_string(++names_);
  machine.labels[kNodeGroupLabel] = name;
  booting_[machine.name] = name;
  added_.push_back(machine.name);
  site_->after(site_->pace.timing().machine_boot, life_, [this, machine] { cloud_.boot(machine); });
}

void ClusterAutoscaler::scale_down(const NodeGroup& group) {
  const std::vector<JsonPtr> members = members_of(group.machine.name);
  std::size_t size = members.size();
  const k8s::MonoTime now = site_->clock->monotonic();
  for (const JsonPtr& node : members) {
    if (!is_unneeded(*node)) {
      unneeded_since_.erase(name_of(*node));
      continue;
    }
    const k8s::MonoTime since = unneeded_since_.try_emplace(name_of(*node), now).first->second;
    if (size <= group.least || now - since < site_->pace.exact(site_->pace.timing().autoscaler_unneeded)) continue;
    begin_removal(*node);
    --size;
  }
}

bool ClusterAutoscaler::is_unneeded(const json& node) const {
  if (!is_up(node) || text(annotations(node), kDisabled) == "true") return false;
  std::int64_t used = 0;
  for (const JsonPtr& pod : workloads_on(name_of(node))) {
    if (!is_movable(*pod)) return false;
    used += requested_by(*pod);
  }
  return 2 * used < allocatable_of(node);
}

// The taint, and what is left there evicted. Nobody looks at the Node's annotations again.
void ClusterAutoscaler::begin_removal(const json& node) {
  const std::string& name = name_of(node);
  leaving_[name] = uid_of(node);
  json patch;
  patch["metadata"]["uid"] = uid_of(node);
  patch["spec"]["taints"] = items(member(node, "spec"), "taints");
  patch["spec"]["taints"].push_back({{"key", kToBeDeleted}, {"effect", "NoSchedule"}, {"value", "0"}});
  outbox_.push({.gvr = kNodes, .key = {"", name}, .body = patch.dump()});
  for (const JsonPtr& pod : workloads_on(name)) {
    json eviction{{"apiVersion", "policy/v1"}, {"kind", "Eviction"}};
    eviction["metadata"] = {{"name", name_of(*pod)}, {"namespace", namespace_of(*pod)}};
    outbox_.push({.verb = Write::Verb::create,
                  .gvr = kPods,
                  .key = {namespace_of(*pod), name_of(*pod)},
                  .body = eviction.dump(),
                  .subresource = "eviction"});
  }
  site_->after(site_->pace.timing().machine_removal, life_, [this, name] { end_removal(name); });
}

// A node that could not be emptied is let go again.
void ClusterAutoscaler::end_removal(const std::string& name) {
  const JsonPtr node = site_->nodes.find({"", name});
  const auto leaving = leaving_.find(name);
  if (node == nullptr || leaving == leaving_.end()) return;
  if (workloads_on(name).empty()) {
    removed_.push_back(name);
    cloud_.shut_down(name);
    outbox_.push(removal(kNodes, {"", name}, leaving->second, 0));
    return;
  }
  json patch;
  patch["spec"]["taints"] = json::array();
  for (const json& taint : items(member(*node, "spec"), "taints"))
    if (text(taint, "key") != kToBeDeleted) patch["spec"]["taints"].push_back(taint);
  outbox_.push({.gvr = kNodes, .key = {"", name}, .body = patch.dump()});
  leaving_.erase(leaving);
  unneeded_since_.erase(name);
}

// Those that are not on their way out.
std::vector<JsonPtr> ClusterAutoscaler::members_of(const std::string& group) const {
  std::vector<JsonPtr> out;
  for (const auto& [key, node] : site_->nodes.all())
    if (text(labels(*node), kNodeGroupLabel) == group && !leaving_.contains(key.name)) out.push_back(node);
  return out;
}

std::vector<JsonPtr> ClusterAutoscaler::workloads_on(const std::string& node) const {
  std::vector<JsonPtr> out;
  for (const auto& [key, pod] : site_->pods.all())
    if (node_of(*pod) == node && !has_ended(*pod) && !is_of(*pod, "DaemonSet")) out.push_back(pod);
  return out;
}

bool ClusterAutoscaler::some_pod_fits_nowhere() const {
  return std::ranges::any_of(site_->pods.all(), [](const auto& entry) {
    const json& conditions = items(member(*entry.second, "status"), "conditions");
    return node_of(*entry.second).empty() && !being_deleted(*entry.second) &&
           std::ranges::any_of(conditions, [](const json& condition) {
             return text(condition, "type") == "PodScheduled" && text(condition, "reason") == "Unschedulable";
           });
  });
}

}  // namespace gso::sim
