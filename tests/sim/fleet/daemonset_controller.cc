#include "tests/sim/fleet/daemonset_controller.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"

namespace gso::sim {

using nlohmann::json;

namespace {

constexpr const char* kHashLabel = "controller-revision-hash";

const json* controller_of(const json& object) {
  for (const json& owner : items(metadata(object), "ownerReferences"))
    if (owner.value("controller", false)) return &owner;
  return nullptr;
}

bool owned_by(const json& object, const std::string& uid) {
  const json* owner = controller_of(object);
  return owner != nullptr && text(*owner, "uid") == uid;
}

const std::string& hash_of_pod(const json& pod) {
  return text(labels(pod), kHashLabel);
}

bool pod_ready(const json& pod) {
  if (being_deleted(pod)) return false;
  for (const json& condition : items(member(pod, "status"), "conditions"))
    if (text(condition, "type") == "Ready") return text(condition, "status") == "True";
  return false;
}

const std::string& phase_of(const json& pod) {
  return text(member(pod, "status"), "phase");
}

json owner_reference(const json& daemonset) {
  return json::array({{{"apiVersion", "apps/v1"},
                       {"kind", "DaemonSet"},
                       {"name", name_of(daemonset)},
                       {"uid", uid_of(daemonset)},
                       {"controller", true},
                       {"blockOwnerDeletion", true}}});
}

std::int64_t max_unavailable(const json& daemonset, std::int64_t desired) {
  const json& rolling = member(member(member(daemonset, "spec"), "updateStrategy"), "rollingUpdate");
  auto value = rolling.find("maxUnavailable");
  if (value == rolling.end()) return 1;
  if (value->is_number_integer()) return std::max<std::int64_t>(value->get<std::int64_t>(), 1);
  const double percent = std::strtod(text(rolling, "maxUnavailable").c_str(), nullptr);
  return std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(percent * static_cast<double>(desired) / 100.0)),
                                1);
}

// What decides whether a DaemonSet selects the node; heartbeats and allocatable do not.
bool selection_differs(const json& before, const json& after) {
  return labels(before) != labels(after) || member(before, "spec") != member(after, "spec");
}

}  // namespace

void DaemonSetController::on_node(const JsonPtr& before, const JsonPtr& after) {
  if (before != nullptr && after != nullptr && !selection_differs(*before, *after)) return;
  for (const auto& [key, daemonset] : site_->daemonsets.all()) dirty(key);
}

void DaemonSetController::on_pod(const JsonPtr& before, const JsonPtr& after) {
  const json* owner = controller_of(after != nullptr ? *after : *before);
  if (owner == nullptr || text(*owner, "kind") != "DaemonSet") return;
  const json& pod = after != nullptr ? *after : *before;
  if (after == nullptr)
    deleting_.erase(uid_of(*before));
  else
    creating_.erase(text(*owner, "uid") + "/" + node_of(*after));
  dirty({namespace_of(pod), text(*owner, "name")});
}

void DaemonSetController::dirty(const k8s::ObjectKey& key) {
  if (!dirty_.insert(key).second) return;
  site_->after(site_->pace.timing().daemonset_sync, life_, [this, key] {
    dirty_.erase(key);
    sync(key);
  });
}

void DaemonSetController::sync(const k8s::ObjectKey& key) {
  if (!site_->nodes.synced() || !site_->pods.synced() || !site_->daemonsets.synced() || !site_->revisions.synced())
    return dirty(key);
  const JsonPtr daemonset = site_->daemonsets.find(key);
  if (daemonset == nullptr) return collect_garbage(to_string(key));
  if (being_deleted(*daemonset)) return;
  const std::string hash = template_hash(*daemonset);
  ensure_revision(*daemonset, hash);
  const PodsByNode pods = pods_of(*daemonset);
  std::int64_t desired = 0;
  place(*daemonset, hash, pods, &desired);
  if (text(member(member(*daemonset, "spec"), "updateStrategy"), "type") != "OnDelete")
    roll(*daemonset, hash, pods, desired);
  publish_status(*daemonset, hash, pods, desired);
}

// The garbage collector's part: pods and revisions whose DaemonSet is gone.
void DaemonSetController::collect_garbage(const std::string& gone) {
  const auto orphan = [&](const json& object) {
    const json* owner = controller_of(object);
    if (owner == nullptr || text(*owner, "kind") != "DaemonSet") return false;
    return k8s::to_string(k8s::ObjectKey{namespace_of(object), text(*owner, "name")}) == gone;
  };
  for (const auto& [key, pod] : site_->pods.all())
    if (orphan(*pod)) delete_pod(*pod);
  for (const auto& [key, revision] : site_->revisions.all())
    if (orphan(*revision)) outbox_.push({.verb = Write::Verb::remove, .gvr = kControllerRevisions, .key = key});
}

void DaemonSetController::ensure_revision(const json& daemonset, const std::string& hash) {
  std::int64_t newest = 0;
  JsonPtr same;
  for (const auto& [key, revision] : site_->revisions.all()) {
    if (!owned_by(*revision, uid_of(daemonset))) continue;
    newest = std::max(newest, revision->value("revision", std::int64_t{0}));
    if (text(labels(*revision), kHashLabel) == hash) same = revision;
  }
  if (same != nullptr && same->value("revision", std::int64_t{0}) == newest) return;
  const k8s::ObjectKey key{namespace_of(daemonset), name_of(daemonset) + "-" + hash};
  if (!revising_.insert(key.name).second) return;
  auto done = [this, key](const k8s::Result<std::string>&) { revising_.erase(key.name); };
  if (same != nullptr) {  // A template that came back: its revision becomes the newest.
    outbox_.push(
        {.gvr = kControllerRevisions, .key = key, .body = json{{"revision", newest + 1}}.dump(), .done = done});
    return;
  }
  json all_labels = labels(daemonset["spec"]["template"]);
  all_labels[kHashLabel] = hash;
  const json revision{{"apiVersion", "apps/v1"},
                      {"kind", "ControllerRevision"},
                      {"metadata",
                       {{"name", key.name},
                        {"namespace", key.ns},
                        {"labels", all_labels},
                        {"ownerReferences", owner_reference(daemonset)}}},
                      {"data", {{"spec", {{"template", daemonset["spec"]["template"]}}}}},
                      {"revision", newest + 1}};
  outbox_.push(
      {.verb = Write::Verb::create, .gvr = kControllerRevisions, .key = key, .body = revision.dump(), .done = done});
}

DaemonSetController::PodsByNode DaemonSetController::pods_of(const json& daemonset) const {
  PodsByNode pods;
  const std::string& uid = uid_of(daemonset);
  for (const auto& [key, pod] : site_->pods.all())
    if (owned_by(*pod, uid)) pods[node_of(*pod)].push_back(pod);
  return pods;
}

// One pod on each selected node; elsewhere none comes, and those that must not stay are deleted. A pod that is going
// away still occupies its node.
void DaemonSetController::place(const json& daemonset, const std::string& hash, const PodsByNode& pods,
                                std::int64_t* desired) {
  for (const auto& [key, node] : site_->nodes.all()) {
    const bool selected = daemonset_selects(daemonset, *node);
    if (selected) ++*desired;
    auto here = pods.find(key.name);
    if (here == pods.end()) {
      if (selected) create_pod(daemonset, hash, key.name);
      continue;
    }
    for (const JsonPtr& pod : here->second)
      if (!daemonset_keeps(daemonset, *node) || phase_of(*pod) == "Failed" || phase_of(*pod) == "Succeeded")
        delete_pod(*pod);
  }
  for (const auto& [node, list] : pods) {
    if (site_->nodes.find({"", node}) != nullptr) continue;
    // The node is gone, and its kubelet with it: the pod garbage collector removes what was bound there.
    for (const JsonPtr& pod : list) outbox_.push(removal(kPods, {namespace_of(*pod), name_of(*pod)}, uid_of(*pod), 0));
  }
}

void DaemonSetController::roll(const json& daemonset, const std::string& hash, const PodsByNode& pods,
                               std::int64_t desired) {
  std::int64_t unavailable = 0;
  std::vector<JsonPtr> broken, candidates;
  for (const auto& [key, node] : site_->nodes.all()) {
    auto here = pods.find(key.name);
    if (here == pods.end()) {
      if (daemonset_selects(daemonset, *node)) ++unavailable;
      continue;
    }
    for (const JsonPtr& pod : here->second) {
      const bool going = being_deleted(*pod) || deleting_.contains(uid_of(*pod));
      const bool available = pod_ready(*pod) && !going;
      if (!available) ++unavailable;
      if (hash_of_pod(*pod) == hash || going) continue;
      (available ? candidates : broken).push_back(pod);
    }
  }
  for (const JsonPtr& pod : broken) delete_pod(*pod);
  for (const JsonPtr& pod : candidates) {
    if (unavailable++ >= max_unavailable(daemonset, desired)) return;
    delete_pod(*pod);
  }
}

void DaemonSetController::publish_status(const json& daemonset, const std::string& hash, const PodsByNode& pods,
                                         std::int64_t desired) {
  std::int64_t current = 0, misscheduled = 0, ready = 0, updated = 0;
  for (const auto& [name, list] : pods) {
    const JsonPtr node = site_->nodes.find({"", name});
    if (node == nullptr) continue;
    if (!daemonset_selects(daemonset, *node)) {
      ++misscheduled;
      continue;
    }
    ++current;
    ready += std::ranges::any_of(list, [](const JsonPtr& pod) { return pod_ready(*pod); }) ? 1 : 0;
    updated += std::ranges::any_of(list, [&](const JsonPtr& pod) { return hash_of_pod(*pod) == hash; }) ? 1 : 0;
  }
  const json status{{"currentNumberScheduled", current},
                    {"desiredNumberScheduled", desired},
                    {"numberAvailable", ready},
                    {"numberMisscheduled", misscheduled},
                    {"numberReady", ready},
                    {"numberUnavailable", std::max<std::int64_t>(desired - ready, 0)},
                    {"observedGeneration", daemonset["metadata"].value("generation", std::int64_t{0})},
                    {"updatedNumberScheduled", updated}};
  const json& live = member(daemonset, "status");
  bool differs = false;
  for (const auto& [name, value] : status.items()) differs = differs || live.value(name, std::int64_t{0}) != value;
  if (!differs) return;
  outbox_.push({.gvr = kDaemonSets,
                .key = {namespace_of(daemonset), name_of(daemonset)},
                .body = json{{"status", status}}.dump(),
                .subresource = "status"});
}

void DaemonSetController::create_pod(const json& daemonset, const std::string& hash, const std::string& node) {
  const std::string ticket = uid_of(daemonset) + "/" + node;
  if (!creating_.insert(ticket).second) return;
  json pod = daemonset["spec"]["template"];
  static constexpr char kAlphabet[] = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix;
  for (std::uint64_t n = ++names_ * 2654435761U, i = 0; i < 5; ++i, n /= 27) suffix += kAlphabet[n % 27];
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  pod["metadata"]["name"] = name_of(daemonset) + "-" + suffix;
  pod["metadata"]["namespace"] = namespace_of(daemonset);
  pod["metadata"]["labels"][kHashLabel] = hash;
  pod["metadata"]["labels"]["pod-template-generation"] =
      std::to_string(daemonset["metadata"].value("generation", std::int64_t{1}));
  pod["metadata"]["ownerReferences"] = owner_reference(daemonset);
  pod["metadata"].erase("creationTimestamp");
  pod["spec"]["nodeName"] = node;
  const k8s::ObjectKey key{namespace_of(daemonset), name_of(daemonset)};
  outbox_.push({.verb = Write::Verb::create,
                .gvr = kPods,
                .key = {key.ns, pod["metadata"]["name"]},
                .body = pod.dump(),
                .done = [this, ticket, key](const k8s::Result<std::string>& answer) {
                  if (answer) return;
                  creating_.erase(ticket);
                  dirty(key);
                }});
}

void DaemonSetController::delete_pod(const json& pod) {
  const std::string uid = uid_of(pod);
  if (being_deleted(pod) || !deleting_.insert(uid).second) return;
  Write write = removal(kPods, {namespace_of(pod), name_of(pod)}, uid);
  write.done = [this, uid](const k8s::Result<std::string>& answer) {
    if (!answer) deleting_.erase(uid);
  };
  outbox_.push(std::move(write));
}

}  // namespace gso::sim
