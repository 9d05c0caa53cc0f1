// Pods against the MPS profiles beside them: inference servers that reserve more memory than a client has, and requests
// for several GPUs.
#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/checks/inference_memory.h"
#include "reconcilers/lint/checks.h"
#include "reconcilers/lint/document_index.h"
#include "reconcilers/lint/lint.h"
#include "reconcilers/model/foreign_text.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/project.h"
#include "reconcilers/profile/document_value.h"
#include "reconcilers/profile/go_numbers.h"

namespace gso {
namespace {

// A profile that shares GPUs by MPS.
struct Slices {
  std::string where;     // "key any of ConfigMap mps-config"
  std::string key;       // Of the ConfigMap; empty: of none.
  std::string resource;  // What pods ask for: nvidia.com/gpu, or its name with .shared.
  std::int64_t replicas = 0;
  bool several = false;  // failRequestsGreaterThanOne: false, which plugins obey from v0.20.0 on.
};

std::string resource_of(bool renamed) {
  return std::string(kGpuResource) + (renamed ? ".shared" : "");
}

std::optional<Slices> slices_of(const LintedDocument& document) {
  if (!document.profile || document.profile->strategy() != Strategy::mps) return std::nullopt;
  const Profile& profile = *document.profile;
  // The values of a chart need not name the ConfigMap.
  const std::string where =
      document.key.empty() ? fmt::format("the profile {}", document.source)
      : document.name.empty()
          ? fmt::format("key {} in {}", shown_value(document.key), document.source)
          : fmt::format("key {} of ConfigMap {}", shown_value(document.key), shown_value(document.name));
  return Slices{where, document.key, resource_of(profile.mps->rename_by_default), profile.plugin_replicas(kGpuResource),
                profile.mps->fail_requests_greater_than_one == false};
}

std::optional<Slices> slices_of(const ClusterObject& object) {
  if (object.kind != "SharingPolicy") return std::nullopt;
  const auto policy = project_sharing_policy(object.json);
  if (!policy || !policy->inline_profile || policy->inline_profile->strategy != "mps") return std::nullopt;
  return Slices{fmt::format("SharingPolicy {}", shown_value(object.name)), "",
                resource_of(policy->inline_profile->rename_by_default), policy->inline_profile->replicas,
                policy->inline_profile->fail_requests_greater_than_one == false};
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

// How many of that resource the container asks for; 0: none.
std::int64_t asked_of(const DocumentValue& container, std::string_view resource) {
  const DocumentValue* limit = find_path(container, {"resources", "limits", resource});
  return limit == nullptr ? 0 : parse_go_int(limit->text, 10).value_or(0);
}

// A replica is all that a client gets: MPS does not join two of them.
void lint_several(const DocumentValue& spec, const DocumentValue& container, const std::string& path,
                  const std::vector<Slices>& all, std::vector<Diagnostic>& found) {
  const Slices* slices = smallest(all, spec, container);
  const std::int64_t asked = slices == nullptr ? 0 : asked_of(container, slices->resource);
  // The check of the Pod alone reports these.
  if (asked < 2 || slices->resource.ends_with(".shared") || selects_mps(spec)) return;
  const Position at = find_path(container, {"resources", "limits", slices->resource})->at;
  found.push_back(
      {Severity::warning, "SeveralReplicas", fmt::format("{}.resources.limits[{}]", path, slices->resource), at.line,
       at.column,
       fmt::format("{} shares GPUs by MPS, and a container asks for {} of {}: {}; ask for 1", slices->where, asked,
                   slices->resource,
                   slices->several ? "it gets one client's share of memory and threads all the same"
                                   : "the device plugin refuses more than one, and the kubelet rejects the pod")});
}

// Visits every container that runs as long as the pod does: visit(spec, container, path).
template <class Visit>
void each_container(const DocumentValue& pod, Visit visit) {
  const DocumentValue* spec = pod.find("spec");
  if (spec == nullptr) return;
  for (const std::string_view field : {"containers", "initContainers"}) {
    const DocumentValue* containers = spec->find(field);
    for (std::size_t i = 0; containers != nullptr && i < containers->items.size(); ++i) {
      const DocumentValue& container = containers->items[i];
      // Other init containers have ended before the servers start.
      if (field == "initContainers" && container.string_at("restartPolicy") != "Always") continue;
      visit(*spec, container, fmt::format("spec.{}[{}]", field, i));
    }
  }
}

void lint_pod(const DocumentValue& pod, const std::vector<Slices>& all, std::vector<Diagnostic>& found) {
  each_container(pod, [&](const DocumentValue& spec, const DocumentValue& container, const std::string& path) {
    lint_container(spec, container, path, all, found);
    lint_several(spec, container, path, all, found);
  });
}

}  // namespace

bool reserves_memory(const DocumentValue& pod) {
  bool found = false;
  each_container(pod, [&](const DocumentValue&, const DocumentValue& container, const std::string&) {
    found = found || memory_fraction_of(server_of(container)).has_value();
  });
  return found;
}

bool asks_for_several(const DocumentValue& pod) {
  bool found = false;
  each_container(pod, [&](const DocumentValue&, const DocumentValue& container, const std::string&) {
    found = found || asked_of(container, kGpuResource) > 1;
  });
  return found;
}

bool selects_mps(const DocumentValue& spec) {
  const DocumentValue* strategy = find_path(spec, {"nodeSelector", kSharingStrategy});
  return strategy != nullptr && strategy->text == "mps";
}

void lint_pods(const std::vector<ClusterObject>& objects, std::vector<LintedDocument>& documents) {
  const std::vector<Slices> all = all_slices(objects, documents);
  if (all.empty()) return;
  DocumentIndex index(documents);
  for (const ClusterObject& object : objects) {
    LintedDocument* document = object.pod ? index.find(object) : nullptr;
    if (document == nullptr) continue;
    std::vector<Diagnostic> found;
    lint_pod(*object.pod, all, found);
    for (Diagnostic& d : found) {
      d.path = object.pod_path + d.path;
      document->diagnostics.push_back(std::move(d));
    }
  }
}

}  // namespace gso
