#include "tests/sim/fleet/scheduler.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/sim/fleet/daemonset_controller.h"
#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"
#include "tests/sim/fleet/pod_spec.h"

namespace gso::sim {

using nlohmann::json;

namespace {

std::int64_t priority_of(const json& pod) {
  return member(pod, "spec").value("priority", std::int64_t{0});
}

// Its selector, required affinity and taints, by the DaemonSet controller's rules, which let a cordon pass.
bool admits(const json& node, const json& pod) {
  if (member(node, "spec").value("unschedulable", false)) return false;
  json wrapped;
  wrapped["spec"]["template"]["spec"] = member(pod, "spec");
  return daemonset_selects(wrapped, node);
}

// The first resource that the node has too little of, or empty.
std::string missing(const json& node, const std::map<std::string, std::int64_t>& used,
                    const std::map<std::string, std::int64_t>& wanted) {
  const json& allocatable = member(member(node, "status"), "allocatable");
  for (const auto& [resource, count] : wanted) {
    const auto taken = used.find(resource);
    const std::int64_t all = std::strtoll(text(allocatable, resource).c_str(), nullptr, 10);
    if (count > all - (taken == used.end() ? 0 : taken->second)) return resource;
  }
  return {};
}

const json& scheduled_condition(const json& pod) {
  static const json kNone = json::object();
  for (const json& condition : items(member(pod, "status"), "conditions"))
    if (text(condition, "type") == "PodScheduled") return condition;
  return kNone;
}

}  // namespace

void Scheduler::wake() {
  if (!up_ || std::exchange(due_, true)) return;
  site_->after(site_->pace.timing().scheduler_cycle, life_, [this] {
    due_ = false;
    if (up_) cycle();
  });
}

void Scheduler::set_up(bool up) {
  up_ = up;
  wake();
}

// Higher priority first, then those that have waited longest.
std::vector<JsonPtr> Scheduler::pending() const {
  std::vector<JsonPtr> pods;
  for (const auto& [key, pod] : site_->pods.all()) {
    const std::string& name = text(member(*pod, "spec"), "schedulerName");
    const bool ours = name.empty() || name == "default-scheduler";
    const bool gated = !items(member(*pod, "spec"), "schedulingGates").empty();
    if (!ours || gated || !node_of(*pod).empty() || being_deleted(*pod) || has_ended(*pod)) continue;
    if (!bound_.contains(uid_of(*pod))) pods.push_back(pod);
  }
  std::ranges::stable_sort(pods, [](const JsonPtr& a, const JsonPtr& b) {
    const std::int64_t first = priority_of(*a);
    const std::int64_t second = priority_of(*b);
    if (first != second) return first > second;
    return text(metadata(*a), "creationTimestamp") < text(metadata(*b), "creationTimestamp");
  });
  return pods;
}

std::map<std::string, Scheduler::Devices> Scheduler::in_use() const {
  std::map<std::string, Devices> used;
  for (const auto& [key, pod] : site_->pods.all()) {
    if (has_ended(*pod)) continue;
    const auto assumed = bound_.find(uid_of(*pod));
    const std::string& node = node_of(*pod).empty() && assumed != bound_.end() ? assumed->second : node_of(*pod);
    if (node.empty()) continue;
    for (const auto& [resource, count] : read_pod_spec(*pod).gpus) used[node][resource] += count;
  }
  return used;
}

void Scheduler::cycle() {
  std::map<std::string, Devices> used = in_use();
  for (const JsonPtr& pod : pending()) {
    const Devices wanted = read_pod_spec(*pod).gpus;
    std::map<std::string, std::size_t> reasons;
    std::string chosen;
    for (const auto& [key, node] : site_->nodes.all()) {
      if (!admits(*node, *pod)) {
        ++reasons["node(s) didn't match Pod's node affinity/selector or had untolerated taint(s)"];
        continue;
      }
      const std::string lacks = missing(*node, used[key.name], wanted);
      if (!lacks.empty()) {
        ++reasons["Insufficient " + lacks];
        continue;
      }
      chosen = key.name;
      break;
    }
    if (!chosen.empty()) {
      for (const auto& [resource, count] : wanted) used[chosen][resource] += count;
      bind(*pod, chosen);
      continue;
    }
    std::string message = "0/" + std::to_string(site_->nodes.all().size()) + " nodes are available:";
    const char* separator = " ";
    for (const auto& [reason, nodes] : reasons)
      message += std::exchange(separator, ", ") + std::to_string(nodes) + " " + reason;
    reject(*pod, message + ".");
  }
}

void Scheduler::bind(const json& pod, const std::string& node) {
  const k8s::ObjectKey key{namespace_of(pod), name_of(pod)};
  const std::string uid = uid_of(pod);
  bound_[uid] = node;
  const json binding{{"apiVersion", "v1"},
                     {"kind", "Binding"},
                     {"metadata", {{"name", key.name}, {"namespace", key.ns}, {"uid", uid}}},
                     {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}}}};
  outbox_.push({.verb = Write::Verb::create,
                .gvr = kPods,
                .key = key,
                .body = binding.dump(),
                .subresource = "binding",
                .done = [this, uid](const k8s::Result<std::string>& answer) {
                  if (answer) return;
                  bound_.erase(uid);
                  wake();
                }});
}

void Scheduler::reject(const json& pod, const std::string& message) {
  const json& condition = scheduled_condition(pod);
  if (text(condition, "reason") == "Unschedulable" && text(condition, "message") == message) return;
  if (!rejecting_.insert(uid_of(pod)).second) return;
  json conditions = json::array();
  for (const json& other : items(member(pod, "status"), "conditions"))
    if (text(other, "type") != "PodScheduled") conditions.push_back(other);
  const bool was_rejected = text(condition, "status") == "False";
  conditions.push_back({{"type", "PodScheduled"},
                        {"status", "False"},
                        {"reason", "Unschedulable"},
                        {"message", message},
                        {"lastTransitionTime", was_rejected ? text(condition, "lastTransitionTime")
                                                            : k8s::format_time(site_->clock->now())}});
  json patch;
  patch["metadata"]["uid"] = uid_of(pod);
  patch["status"]["conditions"] = conditions;
  outbox_.push({.gvr = kPods,
                .key = {namespace_of(pod), name_of(pod)},
                .body = patch.dump(),
                .subresource = "status",
                .done = [this, uid = uid_of(pod)](const k8s::Result<std::string>&) { rejecting_.erase(uid); }});
}

}  // namespace gso::sim
