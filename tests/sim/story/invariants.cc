#include "tests/sim/story/invariants.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "reconcilers/model/labels.h"
#include "tests/change_words/change_words.h"
#include "tests/sim/fleet/json_view.h"
#include "tests/sim/fleet/kinds.h"

namespace gso::sim {

using nlohmann::json;

namespace {

// Keys whose value differs between two string maps.
std::vector<std::string> differing(const json& before, const json& after) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : after.items())
    if (!before.contains(key) || before[key] != value) keys.push_back(key);
  for (const auto& [key, value] : before.items())
    if (!after.contains(key)) keys.push_back(key);
  return keys;
}

bool nfd_owns(const json& node, const std::string& key) {
  const std::string list = "," + annotations(node).value(kFeatureLabels, "") + ",";
  return list.find("," + key + ",") != std::string::npos;
}

bool serves_gpus(const json& node) {
  const json& allocatable = member(member(node, "status"), "allocatable");
  const auto entries = allocatable.items();
  return std::ranges::any_of(
      entries, [](const auto& entry) { return entry.key().starts_with("nvidia.com/") && entry.value() != "0"; });
}

bool is_operand(const json& pod) {
  static constexpr std::array<std::string_view, 6> kContainers{"nvidia-device-plugin",   "nvidia-device-plugin-ctr",
                                                               "gpu-feature-discovery",  "gpu-feature-discovery-ctr",
                                                               "mps-control-daemon-ctr", "mps-control-daemon"};
  for (const json& container : member(pod, "spec").value("containers", json::array()))
    if (std::ranges::find(kContainers, container.value("name", "")) != kContainers.end()) return true;
  return false;
}

}  // namespace

Invariants::Invariants(ApiServer* server, InvariantOptions options) : server_(server), options_(std::move(options)) {
  server_->add_audit_listener([this](const AuditEntry& entry) { on_write(entry); });
}

void Invariants::excuse_for(k8s::Duration length) {
  excused_until_ = server_->clock().now() + std::chrono::duration_cast<std::chrono::milliseconds>(length);
  // A cordon that had been taken back already is there again.
  for (const auto& node : server_->view(kNodes))
    if (member(*node, "spec").value("unschedulable", false) && test::read_change(*node).cordoned)
      cordoned_by_operator_.insert(name_of(*node));
}

void Invariants::violated(const std::string& what) {
  if (violation_.empty() && server_->clock().now() >= excused_until_) violation_ = what;
}

void Invariants::note_serving(const AuditEntry& entry) {
  if (entry.gvr.resource != "nodes" || entry.after == nullptr || !serves_gpus(*entry.after)) return;
  served_.insert(uid_of(*entry.after));
}

void Invariants::on_write(const AuditEntry& entry) {
  note_serving(entry);
  if (entry.user != options_.operator_user || entry.dry_run) return;
  if (entry.subresource == "eviction") judge_repeated_eviction(entry);
  if (entry.status >= 300) return;
  if (entry.gvr.resource == "leases") return;
  if (entry.verb == "patch" && !entry.changed()) {
    violated("S6: the operator wrote what was there: " + entry.gvr.resource + " " + k8s::to_string(entry.key) + " " +
             entry.subresource);
  }
  ++writes_;
  last_write_ =
      entry.verb + " " + entry.gvr.resource + " " + k8s::to_string(entry.key) + ": " + entry.body.substr(0, 400);
  if (entry.gvr.resource == "pods" && entry.subresource == "eviction")
    judge_eviction(entry);
  else if (entry.gvr.resource == "pods")
    judge_pod_deletion(entry);
  if (entry.gvr.resource == "nodes") judge_node_patch(entry);
  if (entry.gvr.resource == "daemonsets") judge_daemonset_patch(entry);
  if (entry.gvr.resource == "clusterpolicies") violated("S2: the operator wrote ClusterPolicy " + entry.key.name);
}

// S3: one annotation of the template, where a policy says so.
void Invariants::judge_daemonset_patch(const AuditEntry& entry) {
  const std::string name = k8s::to_string(entry.key);
  if (!options_.daemonset_restarts) return violated("S2: the operator wrote DaemonSet " + name);
  if (entry.before == nullptr || entry.after == nullptr) return violated("S2: the operator made or removed " + name);
  json before = member(*entry.before, "spec");
  json after = member(*entry.after, "spec");
  for (json* spec : {&before, &after}) {
    json& metadata = (*spec)["template"]["metadata"];
    if (metadata.contains("annotations")) metadata["annotations"].erase(std::string(kRestartedForAnnotation));
    if (metadata.value("annotations", json::object()).empty()) metadata.erase("annotations");
  }
  if (before != after) violated("S3: the operator changed more of DaemonSet " + name + " than its annotation");
}

// S6: a pod that was evicted is ending, or gone: asking again changes nothing. One request may come as several entries.
void Invariants::judge_repeated_eviction(const AuditEntry& entry) {
  const json body = json::parse(entry.body, nullptr, false);
  if (!body.is_object() || entry.gvr.resource != "pods") return;
  const std::string uid = member(member(body, "deleteOptions"), "preconditions").value("uid", "");
  const bool is_ending = entry.before != nullptr && being_deleted(*entry.before);
  const bool is_gone = entry.status >= 300 && evicted_.contains(uid);
  if (is_ending || is_gone) violated("S6: the operator evicted pod " + k8s::to_string(entry.key) + " again");
  if (entry.status < 300) evicted_.insert(uid);
}

// S2: consumers leave the nodes in a change by eviction, where a policy says so; operands never do, nor pods of the
// system's namespaces.
void Invariants::judge_eviction(const AuditEntry& entry) {
  const std::string name = k8s::to_string(entry.key);
  if (!options_.evictions) violated("S2: the operator evicted pod " + name + ", and no policy says Evict");
  for (const char* ns : {"kube-system", "gpu-operator", "gpu-sharing-operator"})
    if (entry.key.ns == ns) violated("S2: the operator evicted pod " + name + " of a protected namespace");
  if (entry.before == nullptr) return;
  if (is_operand(*entry.before)) violated("S2: the operator evicted operand pod " + name);
  const std::string node = node_of(*entry.before);
  for (const auto& there : server_->view(kNodes)) {
    if (name_of(*there) != node) continue;
    if (labels(*there).value("gpusharing.dev/state", "") != "Updating")
      violated("S2: the operator evicted pod " + name + " of node " + node + ", which is in no change");
  }
}

// S2: only operand pods, by DELETE with a uid.
void Invariants::judge_pod_deletion(const AuditEntry& entry) {
  const std::string name = k8s::to_string(entry.key);
  if (entry.verb != "delete") return violated("S2: the operator did '" + entry.verb + "' to pod " + name);
  if (entry.before == nullptr) return;
  if (!is_operand(*entry.before)) return violated("S2: the operator deleted pod " + name + ", which is no operand");
  const json options = json::parse(entry.body, nullptr, false);
  const bool has_uid = options.is_object() && !member(options, "preconditions").value("uid", "").empty();
  if (!has_uid) violated("S2: pod " + name + " was deleted without a uid precondition");
  const std::string node = node_of(*entry.before);
  if (!out_of_service().contains(node)) judge_budget(node);
}

namespace {

// In progress, cordoned, NotReady, or without a GPU to give.
bool is_out_of_service(const json& node) {
  if (labels(node).value("gpusharing.dev/state", "") == "Updating") return true;
  if (member(node, "spec").value("unschedulable", false)) return true;
  const json& status = member(node, "status");
  const json conditions = status.value("conditions", json::array());
  const bool ready = std::ranges::any_of(conditions, [](const json& condition) {
    return condition.value("type", "") == "Ready" && condition.value("status", "") == "True";
  });
  return !ready || !serves_gpus(node);
}

// What keeps autoscalers off a node in progress: set where nobody has set it, and taken back by whoever set it.
bool is_our_guard(const json& before, const json& after, const std::string& key) {
  if (key != "cluster-autoscaler.kubernetes.io/scale-down-disabled" && key != "karpenter.sh/do-not-disrupt")
    return false;
  const std::string word = key.starts_with("karpenter") ? "karpenter" : "cluster-autoscaler";
  const json& was = annotations(before);
  const json& is = annotations(after);
  const bool set = !was.contains(key) && is.value(key, "") == "true";
  return (set || !is.contains(key)) && test::read_change(set ? after : before).guards.contains(word);
}

// The label nvidia.mps/enabled, where the annotation beside it says that it is ours.
bool is_our_mark(const json& before, const json& after) {
  const std::string mark(kMpsMarkAnnotation);
  return annotations(before).value(mark, "") == "true" || annotations(after).value(mark, "") == "true";
}

}  // namespace

// S3: nobody else's labels and annotations. S7: only our own cordon is taken back.
void Invariants::judge_node_patch(const AuditEntry& entry) {
  ++node_patches_[entry.key.name];
  if (entry.before == nullptr || entry.after == nullptr)
    return violated("S3: the operator created or deleted node " + entry.key.name);
  for (const std::string& key : differing(labels(*entry.before), labels(*entry.after))) {
    if (key.starts_with("gpusharing.dev/")) continue;
    if (nfd_owns(*entry.before, key)) violated("S3: label " + key + " of " + entry.key.name + " is NFD's");
    if (key.starts_with("nvidia.com/gpu.deploy."))
      violated("S3: label " + key + " of " + entry.key.name + " is the GPU Operator's");
    const bool ours =
        key.starts_with("nvidia.com/") || (key == kMpsEnabled && is_our_mark(*entry.before, *entry.after));
    if (!ours) violated("S3: label " + key + " of " + entry.key.name + " is none of ours");
  }
  for (const std::string& key : differing(annotations(*entry.before), annotations(*entry.after)))
    if (!key.starts_with("gpusharing.dev/") && !is_our_guard(*entry.before, *entry.after, key))
      violated("S3: annotation " + key + " of " + entry.key.name + " is not ours");
  const bool was = member(*entry.before, "spec").value("unschedulable", false);
  const bool is = member(*entry.after, "spec").value("unschedulable", false);
  if (!was && is) cordoned_by_operator_.insert(entry.key.name);
  // What is out already needs no slot: a fleet that a bad profile took down can be repaired.
  if (!is_out_of_service(*entry.before) && is_out_of_service(*entry.after)) judge_budget(entry.key.name);
  if (was && !is && cordoned_by_operator_.erase(entry.key.name) == 0)
    violated("S7: " + entry.key.name + " was uncordoned, but somebody else had cordoned it");
}

std::set<std::string> Invariants::out_of_service() const {
  std::set<std::string> nodes;
  for (const auto& node : server_->view(kNodes)) {
    if (served_.contains(uid_of(*node)) && is_out_of_service(*node)) nodes.insert(name_of(*node));
  }
  return nodes;
}

// S1: with this node there are at most `budget` out of service, and no more of a group than its own.
void Invariants::judge_budget(const std::string& node) {
  std::set<std::string> out = out_of_service();
  out.insert(node);
  judge_budget({"the fleet", out, options_.budget}, out);
  for (const NodeBudget& group : options_.groups)
    if (group.nodes.contains(node)) judge_budget(group, out);
}

void Invariants::judge_budget(const NodeBudget& budget, const std::set<std::string>& out) {
  std::string names;
  std::size_t count = 0;
  for (const std::string& name : out) {
    if (!budget.nodes.contains(name)) continue;
    names += " " + name;
    ++count;
  }
  if (count <= budget.most) return;
  violated("S1: " + std::to_string(count) + " nodes of " + budget.name + " are out of service with a budget of " +
           std::to_string(budget.most) + ":" + names);
}

}  // namespace gso::sim
