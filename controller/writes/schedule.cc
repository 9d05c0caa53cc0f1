// Arranging and merging the actions of one pass.
#include "controller/writes/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>
#include <variant>

#include "k8sclient/value/encoding.h"
#include "reconcilers/model/json_access.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/resources.h"
#include "reconcilers/node/node_change.h"
#include "reconcilers/registry.h"

namespace gso {
namespace {

using Json = nlohmann::json;

std::string chain_subject_of(const PlannedAction& planned) {
  if (is_reservation_deletion(planned)) return std::string(kReservations);
  if (!planned.node.empty()) return "node/" + planned.node;
  if (const auto* patch = std::get_if<PatchNode>(&planned.action)) return "node/" + patch->name;
  const ObjectRef target = target_of(planned.action);
  return fmt::format("{}/{}/{}", target.kind, target.ns, target.name);
}

Chain& chain_for(std::vector<Chain>& chains, std::unordered_map<std::string, std::size_t>& index,
                 const PlannedAction& planned) {
  const std::string subject = chain_subject_of(planned);
  auto [it, fresh] = index.try_emplace(subject, chains.size());
  if (fresh) {
    const auto* patch = std::get_if<PatchNode>(&planned.action);
    chains.push_back({subject, patch != nullptr ? patch->name : planned.node, {}});
  }
  return chains[it->second];
}

// Adds one map's entries to another's; names the keys whose value differs.
void merge_values(std::map<std::string, std::string>& into, std::set<std::string>& removed,
                  const std::map<std::string, std::string>& from, std::vector<std::string>& clashes) {
  for (const auto& [key, value] : from) {
    auto it = into.find(key);
    if ((it != into.end() && it->second != value) || removed.erase(key) > 0) clashes.push_back(key);
    into[key] = value;
  }
}

void merge_removals(std::set<std::string>& into, std::map<std::string, std::string>& set,
                    const std::set<std::string>& from, std::vector<std::string>& clashes) {
  for (const std::string& key : from) {
    if (set.erase(key) > 0) clashes.push_back(key);
    into.insert(key);
  }
}

// Folds `part` into `whole`; returns the keys on which they disagree.
std::vector<std::string> merge(PatchNode& whole, const PatchNode& part) {
  std::vector<std::string> clashes;
  merge_values(whole.set, whole.remove, part.set, clashes);
  merge_removals(whole.remove, whole.set, part.remove, clashes);
  merge_values(whole.set_annotations, whole.remove_annotations, part.set_annotations, clashes);
  merge_removals(whole.remove_annotations, whole.set_annotations, part.remove_annotations, clashes);
  if (part.unschedulable) {
    if (whole.unschedulable && whole.unschedulable != part.unschedulable) clashes.emplace_back("spec.unschedulable");
    whole.unschedulable = part.unschedulable;
  }
  // Parts of one pass come from one view, so a second resourceVersion can only be the same one.
  if (part.resource_version) whole.resource_version = part.resource_version;
  return clashes;
}

void add_patch(Chain& chain, const PlannedAction& planned, std::vector<Finding>& findings) {
  const auto& part = std::get<PatchNode>(planned.action);
  auto it = std::find_if(chain.steps.begin(), chain.steps.end(),
                         [](const PlannedAction& step) { return std::holds_alternative<PatchNode>(step.action); });
  if (it == chain.steps.end()) {
    chain.steps.push_back(planned);
    chain.steps.back().node = part.name;
    return;
  }
  const std::vector<std::string> clashes = merge(std::get<PatchNode>(it->action), part);
  it->disruptive = it->disruptive || planned.disruptive;
  for (const std::string& key : clashes) {
    findings.push_back(
        {Severity::error,
         {"v1", "Node", "", part.name, ""},
         {"ConflictingWrites", fmt::format("{} and {} want different values for {}; {} wins", it->reconciler,
                                           planned.reconciler, key, planned.reconciler)}});
  }
  if (it->reconciler != planned.reconciler) it->reconciler += "+" + planned.reconciler;
  Reason& why = it->why;
  if (why.code != planned.why.code) why.code += "+" + planned.why.code;
  if (!planned.why.message.empty() && why.message != planned.why.message)
    why.message += (why.message.empty() ? "" : "; ") + planned.why.message;
}

Json diff(const Json& before, const Json& after) {
  Json patch = Json::object();
  for (const auto& [key, value] : after.items()) {
    auto it = before.find(key);
    if (it != before.end() && it->is_object() && value.is_object()) {
      Json inner = diff(*it, value);
      if (!inner.empty()) patch[key] = std::move(inner);
    } else if (it == before.end() || *it != value) {
      patch[key] = value;
    }
  }
  for (const auto& [key, value] : before.items())
    if (!after.contains(key)) patch[key] = nullptr;
  return patch;
}

Json values_json(const std::map<std::string, std::string>& set, const std::set<std::string>& remove) {
  Json out = Json::object();
  for (const auto& [key, value] : set) out[key] = value;
  for (const std::string& key : remove) out[key] = nullptr;
  return out;
}

}  // namespace

const ActionTraits& traits_of(const Action& action) {
  using enum k8s::WriteKind;
  // In the order of Action.
  static constexpr std::array<ActionTraits, std::variant_size_v<Action>> kTraits{{
      {},                                                                        // PatchNode
      {.verb = "delete", .deletes = true},                                       // DeletePod
      {.verb = "create", .subresource = "/eviction", .deletes = true},           // EvictPod
      {.kind = record, .is_record = true},                                       // WriteConfigMap
      {.kind = record},                                                          // PatchConfigMap
      {.kind = record, .verb = "create", .is_record = true},                     // CreateObject
      {.kind = status, .subresource = "/status", .is_known_from_answer = true},  // PatchStatus
      {.kind = status, .verb = "delete", .deletes = true},                       // DeleteObject
      {.kind = record, .is_record = true, .is_known_from_answer = true},         // PatchFinalizers
      {},                                                                        // RestartDaemonSet
      {.kind = event, .verb = "create"},                                         // RecordEvent
  }};
  return kTraits.at(action.index());
}

bool is_reservation_deletion(const PlannedAction& planned) {
  return std::holds_alternative<DeletePod>(planned.action) && planned.reconciler == kReservationGc;
}

bool Chain::disruptive() const {
  return std::any_of(steps.begin(), steps.end(), [](const PlannedAction& step) { return step.disruptive; });
}

bool Chain::is_preconditioned() const {
  const auto first = std::ranges::find_if(steps, &PlannedAction::disruptive);
  const auto* patch = first == steps.end() ? nullptr : std::get_if<PatchNode>(&first->action);
  return patch != nullptr && patch->resource_version.has_value();
}

Schedule arrange(const std::vector<PlannedAction>& actions) {
  using k8s::WriteKind;
  Schedule out;
  std::map<WriteKind, std::unordered_map<std::string, std::size_t>> places;
  for (const PlannedAction& planned : actions) {
    const WriteKind kind = traits_of(planned.action).kind;
    if (kind == WriteKind::event) {
      out.events.push_back(std::get<RecordEvent>(planned.action));
      continue;
    }
    std::vector<Chain>& chains = kind == WriteKind::record   ? out.records
                                 : kind == WriteKind::status ? out.statuses
                                                             : out.subjects;
    Chain& chain = chain_for(chains, places[kind], planned);
    if (std::holds_alternative<PatchNode>(planned.action))
      add_patch(chain, planned, out.findings);
    else
      chain.steps.push_back(planned);
  }
  // The last look has a place before nodes take all of them.
  std::ranges::stable_partition(out.subjects, [](const Chain& chain) { return chain.subject == kReservations; });
  return out;
}

std::vector<PlannedAction> in_execution_order(std::vector<PlannedAction> actions) {
  std::ranges::stable_sort(actions, {}, [](const PlannedAction& planned) {
    const k8s::WriteKind kind = traits_of(planned.action).kind;
    return kind == k8s::WriteKind::event ? k8s::WriteKind::object : kind;
  });
  return actions;
}

namespace {

// spec.policy of a SharingRollout; empty if it cannot be read.
std::string policy_in(const std::string& rollout_json) {
  return text_at(object_at(Json::parse(rollout_json, nullptr, false), "spec"), "policy");
}

// The policy that the record belongs to; empty: none, or unknown.
std::string policy_of(const PlannedAction& record) {
  if (const auto* finalizers = std::get_if<PatchFinalizers>(&record.action)) return finalizers->object.name;
  const auto* create = std::get_if<CreateObject>(&record.action);
  if (create == nullptr) return {};
  return create->object.kind == "SharingPolicy" ? create->object.name : policy_in(create->json);
}

// The policy of the change that the chain begins or continues; empty: none, or unknown.
std::string policy_of(const Chain& chain, const Node* node) {
  for (const PlannedAction& step : chain.steps) {
    const auto* patch = std::get_if<PatchNode>(&step.action);
    if (patch == nullptr) continue;
    const auto begun = patch->set_annotations.find(std::string(kChangeAnnotation));
    if (begun == patch->set_annotations.end()) continue;
    const k8s::Result<NodeChange> change = parse_change(begun->second);
    return change ? change->policy : std::string();
  }
  const std::shared_ptr<const NodeChange> change = node == nullptr ? nullptr : change_of(*node);
  return change == nullptr ? std::string() : change->policy;
}

}  // namespace

void UnwrittenRecords::add(const PlannedAction& record) {
  if (!traits_of(record.action).is_record) return;
  std::string policy = policy_of(record);
  if (policy.empty())
    all_ = true;
  else
    policies_.insert(std::move(policy));
}

bool UnwrittenRecords::hold(const Chain& chain, const Node* node) const {
  if (!chain.disruptive()) return false;
  if (all_ || policies_.empty()) return all_;
  const std::string policy = policy_of(chain, node);
  return policy.empty() || policies_.contains(policy);
}

Verb verb_of(const Action& action) {
  const ActionTraits& traits = traits_of(action);
  const bool event = traits.kind == k8s::WriteKind::event;  // Its target is the object that it is about.
  const std::string resource = event ? resources::events.resource : resource_of(target_of(action)).resource;
  return {std::string(traits.verb), resource + std::string(traits.subresource)};
}

k8s::Gvr resource_of(const ObjectRef& object) {
  k8s::Gvr out;
  const std::size_t slash = object.api_version.find('/');
  if (slash != std::string::npos) out.group = object.api_version.substr(0, slash);
  out.version = object.api_version.substr(slash + 1);  // Of "v1", which has no group, the whole text.
  out.resource = k8s::lower(object.kind);
  if (out.resource.ends_with('y'))
    out.resource.replace(out.resource.size() - 1, 1, "ies");
  else
    out.resource += out.resource.ends_with('s') ? "es" : "s";
  return out;
}

std::string merge_patch_of(const PatchNode& patch) {
  Json out = Json::object();
  Json labels = values_json(patch.set, patch.remove);
  Json annotations = values_json(patch.set_annotations, patch.remove_annotations);
  if (!labels.empty()) out["metadata"]["labels"] = std::move(labels);
  if (!annotations.empty()) out["metadata"]["annotations"] = std::move(annotations);
  if (patch.resource_version) out["metadata"]["resourceVersion"] = *patch.resource_version;
  // As kubectl uncordon does: the field goes away instead of becoming false.
  if (patch.unschedulable) out["spec"]["unschedulable"] = *patch.unschedulable ? Json(true) : Json(nullptr);
  return dump(out);
}

std::string merge_patch_of(const PatchConfigMap& patch) {
  const Json out{{"data", values_json(patch.set, patch.remove)}};
  return dump(out);
}

std::string merge_patch_between(const std::string& before, const std::string& after) {
  Json from = Json::parse(before, nullptr, false);
  if (!from.is_object()) from = Json::object();
  const Json to = Json::parse(after, nullptr, false);
  if (!to.is_object()) return "{}";
  return diff(from, to).dump();
}

}  // namespace gso
