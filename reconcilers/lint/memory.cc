// Pods of inference servers against the MPS profiles beside them.
#include <algorithm>
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

// The key that the pod's nodes carry as their label; empty: it may run anywhere.
std::string_view pinned_key(const DocumentValue& spec) {
  const DocumentValue* selector = spec.find("nodeSelector");
  return selector == nullptr ? std::string_view() : selector->string_at(kConfigLabel);
}

// Of the profiles that can be active on the pod's node, the one with the smallest slice.
const Slices* smallest(const std::vector<Slices>& all, const DocumentValue& spec, const DocumentValue& container) {
  const std::string_view pinned = pinned_key(spec);
  const Slices* out = nullptr;
  for (const Slices& slices : all) {
    const bool met = (pinned.empty() || slices.key == pinned) && asks_for(container, slices.resource);
    if (met && (out == nullptr || slices.replicas > out->replicas)) out = &slices;
  }
  return out;
}

void lint_pod(const DocumentValue& pod, const std::vector<Slices>& all, std::vector<Diagnostic>& found) {
  const DocumentValue* spec = pod.find("spec");
  const DocumentValue* containers = spec == nullptr ? nullptr : spec->find("containers");
  for (std::size_t i = 0; containers != nullptr && i < containers->items.size(); ++i) {
    const DocumentValue& container = containers->items[i];
    const DocumentValue* args = container.find("args");
    const Slices* slices = smallest(all, *spec, container);
    const auto reserved =
        memory_fraction_of({std::string(container.string_at("name")), std::string(container.string_at("image")),
                            texts_of(container.find("command")), texts_of(args)});
    if (slices == nullptr || !reserved) continue;
    std::string problem = memory_fraction_problem(*reserved, slices->replicas, slices->where);
    if (problem.empty()) continue;
    const Position at = args != nullptr ? args->at : container.at;
    found.push_back({Severity::warning, std::string(kMemoryFractionAboveSlice),
                     fmt::format("spec.containers[{}]{}", i, args != nullptr ? ".args" : ""), at.line, at.column,
                     std::move(problem)});
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
