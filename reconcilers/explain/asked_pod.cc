// The pod to explain: read once, with the name of its owner, which nodes it selects, and how it is changed.
#include "reconcilers/explain/pod_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reconcilers/cluster/facts.h"
#include "reconcilers/explain/commands.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/project.h"
#include "reconcilers/profile/go_text.h"

namespace gso {

using Json = nlohmann::json;

namespace {

// What a container's `limits` or `requests` have of the resource; nullopt: nothing, or no number. The API server writes
// amounts as strings; a manifest can have numbers.
std::optional<std::int64_t> amount_at(const Json& amounts, const std::string& resource) {
  const Json* amount = member_at(amounts, resource);
  if (amount != nullptr && amount->is_number_integer()) return amount->get<std::int64_t>();
  return parse_go_int(text_at(amounts, resource), 10);
}

// Main containers and sidecars: those that run as long as the pod does.
std::vector<ServerContainer> containers_of(const Json& spec) {
  std::vector<ServerContainer> out;
  for (const char* field : {"containers", "initContainers"}) {
    const bool init = std::string_view(field) == "initContainers";
    for (const Json& container : list_at(spec, field)) {
      if (!container.is_object() || (init && text_at(container, "restartPolicy") != "Always")) continue;
      ServerContainer& server = out.emplace_back();
      server.name = text_at(container, "name");
      server.image = text_at(container, "image");
      server.command = strings_at(container, "command");
      server.args = strings_at(container, "args");
      for (const Json& variable : list_at(container, "env")) {
        if (!variable.is_object()) continue;
        const bool elsewhere = variable.contains("valueFrom");
        server.env[text_at(variable, "name")] = elsewhere ? std::nullopt : std::optional(text_at(variable, "value"));
      }
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> strings_at(const Json& object, std::string_view field) {
  std::vector<std::string> out;
  for (const Json& item : list_at(object, field))
    if (item.is_string()) out.push_back(item.get<std::string>());
  return out;
}

std::string name_for_command(std::string_view name) {
  const bool fits = std::ranges::all_of(
      name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.'; });
  return fits && !name.starts_with('-') ? std::string(name) : std::string();
}

k8s::Result<AskedPod> read_pod(std::string_view json) {
  k8s::Result<Pod> pod = project_pod(json);
  if (!pod) return std::unexpected(pod.error());
  AskedPod out;
  out.pod = *std::move(pod);
  out.object = Json::parse(json, nullptr, false);
  if (!out.object.is_object()) return k8s::fail(k8s::Reason::decode, "a pod must be a JSON object");
  const Json spec = out.part("spec");
  // A DaemonSet's template has the same fields for the placement of its pods.
  const Json template_of{{"metadata", {{"name", out.pod.meta.name}}}, {"spec", {{"template", {{"spec", spec}}}}}};
  const k8s::Result<DaemonSet> like = project_daemonset(dump(template_of));
  if (!like) return std::unexpected(like.error());
  out.placement.node_selector = like->node_selector;
  out.placement.affinity_terms = like->affinity_terms;
  out.tolerations = like->tolerations;
  out.containers = containers_of(spec);
  out.fraction = out.pod.meta.annotations.contains(kai::kFraction) || out.pod.meta.annotations.contains(kai::kMemory);
  return out;
}

std::int64_t AskedPod::most_of_a_container(const std::string& resource) const {
  std::int64_t most = 0;
  for (const char* list : {"containers", "initContainers"}) {
    for (const Json& container : list_at(part("spec"), list)) {
      const Json resources = object_at(container, "resources");
      for (const char* amounts : {"limits", "requests"})
        most = std::max(most, amount_at(object_at(resources, amounts), resource).value_or(0));
    }
  }
  return most;
}

AskedPod::Workload AskedPod::workload() const {
  const Json metadata = part("metadata");
  Workload out;
  std::string api_version;
  for (const Json& owner : list_at(metadata, "ownerReferences")) {
    if (!flag_at(owner, "controller")) continue;
    out.kind = text_at(owner, "kind");
    out.name = text_at(owner, "name");
    api_version = text_at(owner, "apiVersion");
  }
  // The name of a Deployment's ReplicaSet is the Deployment's name and the template's hash.
  const std::string hash = "-" + text_at(object_at(metadata, "labels"), "pod-template-hash");
  if (out.kind == "ReplicaSet" && hash.size() > 1 && out.name.ends_with(hash)) {
    out.kind = "Deployment";
    out.name.resize(out.name.size() - hash.size());
  }
  out.changeable = out.kind == "Deployment" || out.kind == "StatefulSet" || out.kind == "DaemonSet";
  out.resource = kubectl_name(out.kind);
  const std::size_t slash = api_version.find('/');
  const std::string group = slash == std::string::npos ? std::string() : api_version.substr(0, slash);
  // Two APIs can have kinds of one name; those of Kubernetes itself are known by their short names.
  if (!group.empty() && group != "apps" && group != "batch") out.resource += "s." + group;
  // The API server does not check what a pod's author writes here, and it becomes part of commands.
  if (name_for_command(out.name).empty() || name_for_command(out.resource).empty()) return {};
  return out;
}

// --- Which nodes the pod selects, and by how much another one differs from what it requires.

namespace {

constexpr std::string_view kName = "metadata.name";
constexpr std::string_view kHostname = "kubernetes.io/hostname";

// How near a node's label is to a required one.
constexpr std::int64_t kMissing = 0;
constexpr std::int64_t kOtherValue = 1;
constexpr std::int64_t kSharedApart = 2;  // The same but for what sharing appends.

bool is_shared_of(std::string_view shared, std::string_view plain) {
  return shared.size() == plain.size() + kSharedProduct.size() && shared.starts_with(plain) &&
         shared.ends_with(kSharedProduct);
}

std::int64_t nearness(std::optional<std::string_view> actual, std::string_view required) {
  if (!actual) return kMissing;
  return is_shared_of(*actual, required) || is_shared_of(required, *actual) ? kSharedApart : kOtherValue;
}

// Each node has its own hostname: what it is says nothing.
std::string shown_label(std::string_view key, std::optional<std::string_view> actual) {
  if (actual && key == kHostname) return fmt::format("label {} differs", key);
  return fmt::format("label {} is {}", shown_value(key), actual ? shown_value(*actual) : "missing");
}

std::string names(const std::vector<Interned>& values) {
  std::vector<std::string> out;
  for (const Interned& value : values) out.push_back(shown_value(value.view()));
  return first_names(out);
}

// What follows "the pod's node affinity requires ".
std::string required_by(const NodeSelectorRequirement& requirement) {
  const std::string_view op = requirement.op.view();
  const std::string values = names(requirement.values);
  if (op == "In") return requirement.values.size() == 1 ? values : "one of " + values;
  if (op == "NotIn") return (requirement.values.size() == 1 ? "another one than " : "none of ") + values;
  if (op == "Gt") return "more than " + values;
  if (op == "Lt") return "less than " + values;
  if (op == "Exists") return "any value";
  if (op == "DoesNotExist") return "no such label";
  return fmt::format("{} {}", shown_value(op), values);
}

UnmetSelector unmet(const NodeSelectorRequirement& requirement, const Node& node, std::size_t other_terms) {
  const std::string key(requirement.key.view());
  const bool by_name = key == kName;
  const std::optional<std::string_view> actual =
      by_name ? std::optional<std::string_view>(node.meta.name) : node.meta.labels.get(key);
  std::int64_t near = actual ? kOtherValue : kMissing;
  for (const Interned& value : requirement.values) near = std::max(near, nearness(actual, value.view()));
  const std::string others =
      other_terms == 0 ? std::string() : fmt::format(" (or {})", counted(other_terms, "other term"));
  return {fmt::format("{}, the pod's node affinity requires {}{}",
                      by_name ? std::string("the name differs") : shown_label(key, actual), required_by(requirement),
                      others),
          by_name ? std::string() : key, near};
}

// One of the terms must hold: what the node lacks for the term that it comes nearest to.
std::optional<UnmetSelector> unmet_affinity(const std::vector<std::vector<NodeSelectorRequirement>>& terms,
                                            const Node& node) {
  if (matches_terms(terms, node)) return std::nullopt;
  std::optional<UnmetSelector> nearest;
  std::size_t fewest = 0;
  for (const std::vector<NodeSelectorRequirement>& term : terms) {
    std::optional<UnmetSelector> here;
    std::size_t count = 0;
    for (const NodeSelectorRequirement& requirement : term) {
      if (matches_terms({{requirement}}, node)) continue;
      ++count;
      UnmetSelector lacks = unmet(requirement, node, terms.size() - 1);
      if (!here || lacks.nearness > here->nearness) here = std::move(lacks);
    }
    if (!here || (nearest && count >= fewest)) continue;
    nearest = std::move(here);
    fewest = count;
  }
  if (nearest) return nearest;
  return UnmetSelector{"the pod's node affinity selects no node: it has no requirement"};
}

}  // namespace

std::optional<UnmetSelector> not_selected_by(const AskedPod& asked, const Node& node) {
  for (const auto& [key, value] : asked.placement.node_selector) {
    const auto actual = node.meta.labels.get(key);
    if (actual == value) continue;
    return UnmetSelector{fmt::format("{}, the pod requires {}", shown_label(key, actual), shown_value(value)), key,
                         nearness(actual, value)};
  }
  return unmet_affinity(asked.placement.affinity_terms, node);
}

// --- Commands that change a pod. A pod that its controller creates is changed in the controller's template: a pod
// that is edited or replaced beside it is lost with the next one, and some controllers create a second one at once.

namespace {

// The containers of that list that request the resource, each as its part of the patch.
Json resource_patches(const Json& containers, const std::string& resource, std::int64_t most,
                      const std::string& instead_of) {
  Json out = Json::array();
  for (const Json& container : containers) {
    const Json resources = object_at(container, "resources");
    const Json limits = object_at(resources, "limits");
    const Json requests = object_at(resources, "requests");
    const bool limited = limits.is_object() && limits.contains(instead_of);
    const bool requested = requests.is_object() && requests.contains(instead_of);
    if (!limited && !requested) continue;
    const std::int64_t asked = amount_at(limited ? limits : requests, instead_of).value_or(most);
    Json patch{{"limits", {{resource, std::to_string(std::min(asked, most))}}}};
    if (resource != instead_of) patch["limits"][instead_of] = nullptr;
    // Requests of an extended resource must equal its limits; without any the API server copies them.
    if (requested) patch["requests"][instead_of] = nullptr;
    out.push_back({{"name", text_at(container, "name")}, {"resources", std::move(patch)}});
  }
  return out;
}

// `what`: "set schedulerName to x". `patch`: a strategic merge patch of the pod's spec.
Cure change_template(const AskedPod& asked, const std::string& what, const Json& patch) {
  const AskedPod::Workload owner = asked.workload();
  if (owner.changeable) {
    const Json whole{{"spec", {{"template", {{"spec", patch}}}}}};
    return {changing(fmt::format("kubectl patch {} {} {} --patch {}", owner.resource, owner.name, asked.in_namespace(),
                                 shell_word(dump(whole))))};
  }
  std::string how = fmt::format("{} where {} {} defines its pods", what, owner.kind, owner.name);
  if (owner.kind.empty())
    how = fmt::format(
        "{}: nothing creates this pod anew: whoever created it deletes it, makes this change in its "
        "manifest, and creates it again",
        what);
  if (owner.kind == "Job")
    how = fmt::format(
        "{} in the template of Job {}, which Kubernetes does not let you change: its owner deletes the "
        "Job and creates it anew",
        what, owner.name);
  return {show_template(asked), {std::move(how)}};
}

}  // namespace

Command describe_pod(const AskedPod& asked) {
  return describe_pod_command(asked.pod.meta.key());
}

Command show_template(const AskedPod& asked) {
  const AskedPod::Workload owner = asked.workload();
  return {owner.kind.empty()
              ? fmt::format("kubectl get pod {} {} --output yaml", asked.pod.meta.name, asked.in_namespace())
              : fmt::format("kubectl get {} {} {} --output yaml", owner.resource, owner.name, asked.in_namespace())};
}

Cure ask_for(const AskedPod& asked, const std::string& resource, std::int64_t count, const std::string& instead_of) {
  Json patch = Json::object();
  for (const char* list : {"containers", "initContainers"}) {
    Json containers = resource_patches(list_at(asked.part("spec"), list), resource, count, instead_of);
    if (!containers.empty()) patch[list] = std::move(containers);
  }
  return change_template(asked, fmt::format("request {} of {}", count, resource), patch);
}

Cure schedule_by(const AskedPod& asked, std::string_view scheduler) {
  return change_template(asked, fmt::format("set schedulerName to {}", scheduler), {{"schedulerName", scheduler}});
}

Cure tolerate(const AskedPod& asked, const Taint& taint) {
  // The patch replaces the list as a whole: its present entries are kept, except those that the API server adds to
  // every pod.
  Json list = Json::array();
  for (const Json& present : list_at(asked.part("spec"), "tolerations"))
    if (!text_at(present, "key").starts_with("node.kubernetes.io/")) list.push_back(present);
  Json toleration{{"key", taint.key.view()}, {"operator", "Exists"}, {"effect", taint.effect.view()}};
  if (!taint.value.empty()) {
    toleration["operator"] = "Equal";
    toleration["value"] = taint.value.view();
  }
  list.push_back(std::move(toleration));
  return change_template(asked, fmt::format("tolerate {}", to_string(taint)), {{"tolerations", std::move(list)}});
}

}  // namespace gso
