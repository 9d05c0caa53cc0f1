// Plans: joining them, and their two printed forms.
#include "reconcilers/model/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <ranges>
#include <utility>

#include "k8sclient/value/overloaded.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/object_refs.h"
#include "reconcilers/model/policy.h"

namespace gso {

using OrderedJson = nlohmann::ordered_json;

namespace {

// One write for each ConfigMap: a later part of the plan adds its keys to the earlier one.
bool joins_earlier_write(std::vector<PlannedAction>& actions, const PlannedAction& planned) {
  const auto* write = std::get_if<WriteConfigMap>(&planned.action);
  if (write == nullptr) return false;
  for (PlannedAction& earlier : actions) {
    auto* into = std::get_if<WriteConfigMap>(&earlier.action);
    if (into == nullptr || into->config_map != write->config_map) continue;
    for (const auto& [key, text] : write->set) into->set[key] = text;
    into->remove.insert(write->remove.begin(), write->remove.end());
    return true;
  }
  return false;
}

}  // namespace

void Plan::append(Plan other) {
  std::erase_if(other.actions, [&](const PlannedAction& planned) { return joins_earlier_write(actions, planned); });
  std::move(other.actions.begin(), other.actions.end(), std::back_inserter(actions));
  std::move(other.findings.begin(), other.findings.end(), std::back_inserter(findings));
  std::move(other.timers.begin(), other.timers.end(), std::back_inserter(timers));
  timer_starts.merge(other.timer_starts);
  timers_complete = timers_complete && other.timers_complete;
  if (other.requeue_after)
    requeue_after = requeue_after ? std::min(*requeue_after, *other.requeue_after) : *other.requeue_after;
  consumers_wanted.merge(std::move(other.consumers_wanted));
  kai_wanted.merge(std::move(other.kai_wanted));
}

void Plan::drop_repeated_findings() {
  std::vector<std::size_t> sorted(findings.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::ranges::stable_sort(sorted, [&](std::size_t a, std::size_t b) { return findings[a] < findings[b]; });
  std::vector<bool> repeated(findings.size());
  for (std::size_t i = 1; i < sorted.size(); ++i) repeated[sorted[i]] = findings[sorted[i]] == findings[sorted[i - 1]];
  std::size_t at = 0;
  std::erase_if(findings, [&](const Finding&) { return repeated[at++]; });
}

namespace {

using k8s::Overloaded;

std::string path_of(const ObjectRef& object) {
  return fmt::format("{} {}", object.kind, k8s::to_string(k8s::ObjectKey{object.ns, object.name}));
}

std::string joined(const std::set<std::string>& items) {
  return fmt::format("{}", fmt::join(items, ","));
}

std::string joined(const std::map<std::string, std::string>& items) {
  std::vector<std::string> out;
  for (const auto& [key, value] : items) out.push_back(fmt::format("{}={}", key, value));
  return fmt::format("{}", fmt::join(out, ","));
}

std::string keys_of(const std::map<std::string, std::string>& items) {
  return fmt::format("{}", fmt::join(std::views::keys(items), ","));
}

// In the order of Action.
constexpr std::string_view kActions[] = {"PatchNode",       "DeletePod",        "EvictPod",    "WriteConfigMap",
                                         "PatchConfigMap",  "CreateObject",     "PatchStatus", "DeleteObject",
                                         "PatchFinalizers", "RestartDaemonSet", "RecordEvent"};
static_assert(std::size(kActions) == std::variant_size_v<Action>);

std::string describe(const Action& action) {
  const ObjectRef target = target_of(action);
  // Of these the kind of action does not say the kind of object.
  const bool any_kind = std::holds_alternative<CreateObject>(action) || std::holds_alternative<PatchStatus>(action) ||
                        std::holds_alternative<DeleteObject>(action) || std::holds_alternative<PatchFinalizers>(action);
  std::string line = fmt::format("{} {}", kActions[action.index()],
                                 any_kind ? path_of(target) : k8s::to_string(k8s::ObjectKey{target.ns, target.name}));
  const auto field = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) line += fmt::format(" {}={}", name, value);
  };
  const auto keys = [&](const auto& write) {
    field("set", keys_of(write.set));
    field("remove", joined(write.remove));
  };
  std::visit(Overloaded{
                 [&](const PatchNode& patch) {
                   field("set", joined(patch.set));
                   field("remove", joined(patch.remove));
                   field("annotate", joined(patch.set_annotations));
                   field("unannotate", joined(patch.remove_annotations));
                   if (patch.unschedulable) field("unschedulable", *patch.unschedulable ? "true" : "false");
                   field("resourceVersion", patch.resource_version.value_or(""));
                 },
                 [&](const DeletePod& pod) {
                   line += fmt::format(" uid={}", pod.uid);
                   field("resourceVersion", pod.resource_version.value_or(""));
                   if (pod.grace_period_seconds) field("grace", fmt::format("{}s", *pod.grace_period_seconds));
                 },
                 [&](const EvictPod& pod) { line += fmt::format(" uid={}", pod.uid); },
                 [&](const WriteConfigMap& write) { keys(write); },
                 [&](const PatchConfigMap& patch) { keys(patch); },
                 [&](const CreateObject&) {},
                 [&](const PatchStatus& status) { line += " " + status.status_json; },
                 [&](const DeleteObject& gone) { line += fmt::format(" uid={}", gone.object.uid); },
                 [&](const PatchFinalizers& patch) {
                   line += fmt::format(" to=[{}] resourceVersion={}", fmt::join(patch.finalizers, ","),
                                       patch.resource_version);
                 },
                 [&](const RestartDaemonSet& restart) { line += fmt::format(" for={}", restart.restarted_for); },
                 [&](const RecordEvent& event) {
                   line = fmt::format("RecordEvent {} {} {}/{}: {}", event.warning ? "Warning" : "Normal",
                                      path_of(target), event.why.code, event.verb, event.why.message);
                 },
             },
             action);
  return line;
}

OrderedJson target_json(const ObjectRef& object) {
  OrderedJson out = {{"kind", object.kind}};
  if (!object.ns.empty()) out["namespace"] = object.ns;
  out["name"] = object.name;
  return out;
}

// An empty map as an object.
OrderedJson object_json(const std::map<std::string, std::string>& items) {
  return items.empty() ? OrderedJson::object() : OrderedJson(items);
}

// The value that the text is, or the text.
OrderedJson parsed(const std::string& text) {
  OrderedJson out = OrderedJson::parse(text, nullptr, false);
  return out.is_discarded() ? OrderedJson(text) : std::move(out);
}

void fill(OrderedJson& out, const PatchNode& patch) {
  if (patch.resource_version) out["preconditions"] = {{"resourceVersion", *patch.resource_version}};
  out["set"] = object_json(patch.set);
  out["remove"] = patch.remove;
  if (!patch.set_annotations.empty() || !patch.remove_annotations.empty())
    out["annotations"] = {{"set", object_json(patch.set_annotations)}, {"remove", patch.remove_annotations}};
  if (patch.unschedulable) out["unschedulable"] = *patch.unschedulable;
}

void fill(OrderedJson& out, const DeletePod& pod) {
  out["preconditions"] = {{"uid", pod.uid}};
  if (pod.resource_version) out["preconditions"]["resourceVersion"] = *pod.resource_version;
  if (pod.grace_period_seconds) out["gracePeriodSeconds"] = *pod.grace_period_seconds;
}

void fill(OrderedJson& out, const EvictPod& pod) {
  out["preconditions"] = {{"uid", pod.uid}};
}

template <class Write>
  requires std::is_same_v<Write, WriteConfigMap> || std::is_same_v<Write, PatchConfigMap>
void fill(OrderedJson& out, const Write& write) {
  out["set"] = object_json(write.set);
  out["remove"] = write.remove;
}

void fill(OrderedJson& out, const CreateObject& create) {
  out["object"] = parsed(create.json);
}

void fill(OrderedJson& out, const PatchStatus& status) {
  out["status"] = parsed(status.status_json);
}

void fill(OrderedJson& out, const DeleteObject& gone) {
  out["preconditions"] = {{"uid", gone.object.uid}};
  if (!gone.resource_version.empty()) out["preconditions"]["resourceVersion"] = gone.resource_version;
}

void fill(OrderedJson& out, const PatchFinalizers& patch) {
  out["preconditions"] = {{"resourceVersion", patch.resource_version}};
  out["finalizers"] = patch.finalizers;
}

void fill(OrderedJson& out, const RestartDaemonSet& restart) {
  out["preconditions"] = {{"resourceVersion", restart.resource_version}};
  out["restartedFor"] = restart.restarted_for;
}

void fill(OrderedJson& out, const RecordEvent& event) {
  out["event"] = {{"type", event.warning ? "Warning" : "Normal"},
                  {"reason", event.why.code},
                  {"action", event.verb},
                  {"note", event.why.message}};
}

}  // namespace

ObjectRef target_of(const Action& action) {
  const auto pod = [](const k8s::ObjectKey& key, const std::string& uid) {
    return ObjectRef{"v1", "Pod", key.ns, key.name, uid};
  };
  return std::visit(Overloaded{
                        [](const PatchNode& a) { return node_ref(a.name); },
                        [&](const DeletePod& a) { return pod(a.pod, a.uid); },
                        [&](const EvictPod& a) { return pod(a.pod, a.uid); },
                        [](const WriteConfigMap& a) { return config_map_ref(a.config_map); },
                        [](const PatchConfigMap& a) { return config_map_ref(a.config_map); },
                        [](const RestartDaemonSet& a) { return daemonset_ref(a.daemonset); },
                        [](const RecordEvent& a) { return a.regarding; },
                        [](const auto& a) { return a.object; },
                    },
                    action);
}

std::string print(const PlannedAction& action) {
  std::string line = fmt::format("[{}] {}", action.reconciler, describe(action.action));
  if (!action.why.code.empty()) line += fmt::format(" ({})", action.why.code);
  if (action.disruptive) line += " disruptive";
  return one_line(line);
}

std::string print(const Finding& finding) {
  return one_line(fmt::format("{} {} {}: {}", to_string(finding.severity), path_of(finding.object), finding.why.code,
                              finding.why.message));
}

OrderedJson to_json(const PlannedAction& action) {
  OrderedJson out = {{"reconciler", action.reconciler},
                     {"action", kActions[action.action.index()]},
                     {"target", target_json(target_of(action.action))}};
  std::visit([&](const auto& value) { fill(out, value); }, action.action);
  out["reason"] = action.why.code;
  out["message"] = action.why.message;
  return out;
}

OrderedJson to_json(const Finding& finding) {
  return {{"severity", to_string(finding.severity)},
          {"object", target_json(finding.object)},
          {"reason", finding.why.code},
          {"message", finding.why.message}};
}

Node patched(Node node, const PatchNode& patch) {
  for (const auto& [key, value] : patch.set) node.meta.labels.set(key, value);
  for (const std::string& key : patch.remove) node.meta.labels.erase(key);
  for (const auto& [key, value] : patch.set_annotations) node.meta.annotations.set(key, value);
  for (const std::string& key : patch.remove_annotations) node.meta.annotations.erase(key);
  if (patch.unschedulable) node.unschedulable = *patch.unschedulable;
  return node;
}

bool shows(const Node& node, const PatchNode& patch) {
  return patched(node, patch) == node;
}

bool writes_change(const PatchNode& patch) {
  if (patch.set_annotations.contains(std::string(kChangeAnnotation))) return true;
  const auto daemon = patch.set_annotations.find(std::string(kMpsDaemonChangeAnnotation));
  // A replacement that is deferred has ended.
  return daemon != patch.set_annotations.end() &&
         !nlohmann::json::parse(daemon->second, nullptr, false).contains("deferredUntil");
}

std::optional<Node> with_change_being_written(const World& world, const Node& stored) {
  const auto written = world.nodes_being_written.find(stored.meta.name);
  if (written == world.nodes_being_written.end() || written->second == nullptr) return std::nullopt;
  Node out = patched(stored, *written->second);
  if (out == stored) return std::nullopt;
  return out;
}

ConfigMap written(const ConfigMap* present, const WriteConfigMap& write) {
  ConfigMap out = present == nullptr ? ConfigMap() : *present;
  out.meta.ns = k8s::Interned(write.config_map.ns);
  out.meta.name = write.config_map.name;
  out.meta.resource_version.clear();
  for (const auto& [key, text] : write.set) out.data[key] = std::make_shared<const std::string>(text);
  for (const std::string& key : write.remove) out.data.erase(key);
  return out;
}

// --- object_refs.h

ObjectRef node_ref(const std::string& name) {
  return {"v1", "Node", "", name, ""};
}
ObjectRef config_map_ref(const k8s::ObjectKey& key) {
  return {"v1", "ConfigMap", key.ns, key.name, ""};
}
ObjectRef daemonset_ref(const k8s::ObjectKey& key) {
  return {"apps/v1", "DaemonSet", key.ns, key.name, ""};
}
ObjectRef pod_ref(const k8s::ObjectMeta& meta) {
  return {"v1", "Pod", std::string(meta.ns.view()), meta.name, meta.uid};
}
ObjectRef policy_ref(const SharingPolicy& policy) {
  return {std::string(kApiVersion), "SharingPolicy", "", policy.meta.name, policy.meta.uid};
}

ObjectRef cluster_policy_ref(const std::string& name) {
  return {"nvidia.com/v1", "ClusterPolicy", "", name, ""};
}

}  // namespace gso
