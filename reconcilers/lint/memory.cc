// Pods of inference servers against the MPS profiles beside them.
#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/checks/inference_memory.h"
#include "reconcilers/lint/lint.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/project.h"
#include "reconcilers/profile/document_value.h"

namespace gso {
namespace {

// A profile that shares GPUs by MPS.
struct Slices {
  std::string where;     // "key any of ConfigMap mps-config"
  std::string key;       // Of the ConfigMap; empty: of none.
  std::string resource;  // What pods ask for: nvidia.com/gpu, or its name with .shared.
  std::int64_t replicas = 0;
};

std::string resource_of(bool renamed) {
  return std::string(kGpuResource) + (renamed ? ".shared" : "");
}

std::optional<Slices> slices_of(const LintedDocument& document) {
  if (!document.profile || document.profile->strategy() != Strategy::mps) return std::nullopt;
  const Profile& profile = *document.profile;
  const std::string where = document.key.empty() ? fmt::format("the profile {}", document.source)
                                                 : fmt::format("key {} of ConfigMap {}", document.key, document.name);
  return Slices{where, document.key, resource_of(profile.mps->rename_by_default),
                profile.plugin_replicas(kGpuResource)};
}

std::optional<Slices> slices_of(const ClusterObject& object) {
  if (object.kind != "SharingPolicy") return std::nullopt;
  const auto policy = project_sharing_policy(object.json);
  if (!policy || !policy->inline_profile || policy->inline_profile->strategy != "mps") return std::nullopt;
  return Slices{fmt::format("SharingPolicy {}", object.name), "",
                resource_of(policy->inline_profile->rename_by_default), policy->inline_profile->replicas};
}

std::vector<Slices> all_slices(const std::vector<ClusterObject>& objects,
                               const std::vector<LintedDocument>& documents) {
  std::vector<Slices> out;
  for (const LintedDocument& document : documents) {
    if (auto slices = slices_of(document)) out.push_back(*std::move(slices));
  }
  for (const ClusterObject& object : objects) {
    if (auto slices = slices_of(object)) out.push_back(*std::move(slices));
  }
  return out;
}

std::vector<std::string> texts_of(const DocumentValue* list) {
  std::vector<std::string> out;
  for (std::size_t i = 0; list != nullptr && i < list->items.size(); ++i) out.push_back(list->items[i].text);
  return out;
}

bool asks_for(const DocumentValue& container, std::string_view resource) {
  const DocumentValue* resources = container.find("resources");
  const DocumentValue* limits = resources == nullptr ? nullptr : resources->find("limits");
  return limits != nullptr && limits->find(resource) != nullptr;
}

// What a label of the profile's nodes is; nullopt: unknown.
std::optional<std::string> label_under(const Slices& slices, std::string_view label) {
  if (label == kConfigLabel) return slices.key;
  if (label == kSharingStrategy) return "mps";
  if (label == kGpuReplicas) return std::to_string(slices.replicas);
  return std::nullopt;
}

// False: certainly not. Nodes under the plugin's default key have no label for it, so Exists proves nothing there.
bool can_match(const DocumentValue& requirement, const Slices& slices) {
  const auto value = label_under(slices, requirement.string_at("key"));
  const std::string_view op = requirement.string_at("operator");
  if (!value) return true;
  const std::vector<std::string> wanted = texts_of(requirement.find("values"));
  const bool listed = std::ranges::find(wanted, *value) != wanted.end();
  if (op == "In") return listed;
  if (op == "NotIn") return !listed;
  return op != "DoesNotExist" || requirement.string_at("key") == kConfigLabel;
}

const DocumentValue* find_path(const DocumentValue& from, std::initializer_list<std::string_view> path) {
  const DocumentValue* at = &from;
  for (const std::string_view field : path) {
    at = at == nullptr ? nullptr : at->find(field);
  }
  return at;
}

// Whether the pod's nodeSelector and required nodeAffinity admit nodes under that profile.
bool can_run_under(const Slices& slices, const DocumentValue& spec) {
  if (const DocumentValue* selector = spec.find("nodeSelector")) {
    const bool excluded = std::ranges::any_of(selector->members, [&](const DocumentMember& member) {
      const auto value = label_under(slices, member.key);
      return value && *value != member.value.text;
    });
    if (excluded) return false;
  }
  const DocumentValue* terms = find_path(
      spec, {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
  if (terms == nullptr || terms->items.empty()) return true;
  return std::ranges::any_of(terms->items, [&](const DocumentValue& term) {
    const DocumentValue* expressions = term.find("matchExpressions");
    return expressions == nullptr ||
           std::ranges::all_of(expressions->items, [&](const DocumentValue& each) { return can_match(each, slices); });
  });
}

// Of the profiles that can be active on the pod's node, the one with the smallest slice.
const Slices* smallest(const std::vector<Slices>& all, const DocumentValue& spec, const DocumentValue& container) {
  const Slices* out = nullptr;
  for (const Slices& slices : all) {
    const bool met = asks_for(container, slices.resource) && can_run_under(slices, spec);
    if (met && (out == nullptr || slices.replicas > out->replicas)) out = &slices;
  }
  return out;
}

ServerContainer server_of(const DocumentValue& container) {
  ServerContainer out;
  out.name = container.string_at("name");
  out.image = container.string_at("image");
  out.command = texts_of(container.find("command"));
  out.args = texts_of(container.find("args"));
  if (const DocumentValue* env = container.find("env")) {
    for (const DocumentValue& variable : env->items) {
      const bool elsewhere = variable.find("valueFrom") != nullptr;
      out.env[std::string(variable.string_at("name"))] =
          elsewhere ? std::nullopt : std::optional(std::string(variable.string_at("value")));
    }
  }
  const DocumentValue* from = container.find("envFrom");
  out.env_elsewhere = from != nullptr && !from->items.empty();
  return out;
}

void lint_container(const DocumentValue& spec, const DocumentValue& container, const std::string& path,
                    const std::vector<Slices>& all, std::vector<Diagnostic>& found) {
  const DocumentValue* args = container.find("args");
  const Slices* slices = smallest(all, spec, container);
  const auto reserved = slices == nullptr ? std::nullopt : memory_fraction_of(server_of(container));
  if (!reserved) return;
  MemoryProblem problem = memory_fraction_problem(*reserved, slices->replicas, slices->where);
  if (problem.message.empty()) return;
  const Position at = args != nullptr ? args->at : container.at;
  found.push_back({problem.severity, std::string(problem.code), path + (args != nullptr ? ".args" : ""), at.line,
                   at.column, std::move(problem.message)});
}

void lint_pod(const DocumentValue& pod, const std::vector<Slices>& all, std::vector<Diagnostic>& found) {
  const DocumentValue* spec = pod.find("spec");
  if (spec == nullptr) return;
  for (const std::string_view field : {"containers", "initContainers"}) {
    const DocumentValue* containers = spec->find(field);
    for (std::size_t i = 0; containers != nullptr && i < containers->items.size(); ++i) {
      const DocumentValue& container = containers->items[i];
      // Other init containers have ended before the servers start.
      if (field == "initContainers" && container.string_at("restartPolicy") != "Always") continue;
      lint_container(*spec, container, fmt::format("spec.{}[{}]", field, i), all, found);
    }
  }
}

}  // namespace

void lint_memory(const std::vector<ClusterObject>& objects, std::vector<LintedDocument>& documents) {
  const std::vector<Slices> all = all_slices(objects, documents);
  if (all.empty()) return;
  for (const ClusterObject& object : objects) {
    if (!object.pod) continue;
    const auto document = std::ranges::find_if(documents, [&](const LintedDocument& each) {
      return each.source == object.source && each.kind == "Pod" && each.name == object.name;
    });
    if (document != documents.end()) lint_pod(*object.pod, all, document->diagnostics);
  }
}

}  // namespace gso
