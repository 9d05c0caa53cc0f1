// Pods against the objects beside them: what KAI cannot place there, with the same causes as for pods that wait in a
// cluster; under MPS profiles, inference servers that reserve more memory than a client has, and requests for several
// GPUs.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "reconcilers/checks/inference_memory.h"
#include "reconcilers/cluster/facts.h"
#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/kai/pod_annotations.h"
#include "reconcilers/kai/waiting.h"
#include "reconcilers/lint/checks.h"
#include "reconcilers/lint/lint.h"
#include "reconcilers/lint/objects.h"
#include "reconcilers/model/kai_objects.h"
#include "reconcilers/model/labels.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/model/policy.h"
#include "reconcilers/model/project.h"
#include "reconcilers/profile/document_value.h"
#include "reconcilers/profile/go_text.h"
#include "reconcilers/profile/profile.h"

namespace gso {
namespace {

// A node's NoExecute taint that evicts KAI's reservation but not this pod.
std::string evicting_taint(const World& world, const WaitingPod& waiting) {
  for (const auto& [key, node] : world.nodes.all()) {
    for (const Taint& taint : node->taints)
      if (taint.effect == "NoExecute" && tolerates(waiting.tolerations, taint))
        return fmt::format("{}:NoExecute of node {}", taint.key.view(), key.name);
  }
  return {};
}

bool belongs_to_kai(std::string_view kind) {
  return kind == "Pod" || kind == "Node" || kind == "Config" || kind == "RuntimeClass";
}

// kai-config names another scheduler than the one that the Pods were checked by.
void check_pods_again(const std::vector<ClusterObject>& objects, const PodRules& rules, const std::string& scheduler,
                      const DocumentIndex& documents) {
  PodRules right = rules;
  right.kai_scheduler = scheduler;
  for (const ClusterObject& object : objects) {
    LintedDocument* document = object.pod ? documents.find(object) : nullptr;
    if (document == nullptr) continue;
    // What other checks have found of the object stays.
    std::vector<Diagnostic> former;
    check_pod_at(*object.pod, object.pod_path, rules, former);
    std::erase_if(document->diagnostics,
                  [&](const Diagnostic& d) { return std::ranges::find(former, d) != former.end(); });
    check_pod_at(*object.pod, object.pod_path, right, document->diagnostics);
    sort_and_limit(document->diagnostics);
  }
}

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
  for (const LintedDocument& document : documents)
    if (auto slices = slices_of(document)) out.push_back(*std::move(slices));
  for (const ClusterObject& object : objects)
    if (auto slices = slices_of(object)) out.push_back(*std::move(slices));
  return out;
}

std::vector<std::string> texts_of(const DocumentValue* list) {
  std::vector<std::string> out;
  for (const DocumentValue& item : items_of(list)) out.push_back(item.text);
  return out;
}

bool asks_for(const DocumentValue& container, std::string_view resource) {
  return find_path(container, {"resources", "limits", resource}) != nullptr;
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
  for (const DocumentMember& member : members_of(spec.find("nodeSelector"))) {
    const auto value = label_under(slices, member.key);
    if (value && *value != member.value.text) return false;
  }
  const DocumentValue* terms = find_path(
      spec, {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
  if (terms == nullptr || terms->items.empty()) return true;
  return std::ranges::any_of(terms->items, [&](const DocumentValue& term) {
    return std::ranges::all_of(items_of(term.find("matchExpressions")),
                               [&](const DocumentValue& each) { return can_match(each, slices); });
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
  for (const DocumentValue& variable : items_of(container.find("env"))) {
    const bool elsewhere = variable.find("valueFrom") != nullptr;
    out.env[std::string(variable.string_at("name"))] =
        elsewhere ? std::nullopt : std::optional(std::string(variable.string_at("value")));
  }
  return out;
}

void lint_memory(const DocumentValue& container, const std::string& path, const Slices& slices,
                 std::vector<Diagnostic>& found) {
  const DocumentValue* args = container.find("args");
  auto problem = memory_problem(server_of(container), slices.replicas, slices.where);
  if (!problem) return;
  const Position at = args != nullptr ? args->at : container.at;
  problem->path = path + (args != nullptr ? ".args" : "");
  problem->at = at;
  found.push_back(*std::move(problem));
}

// How many of that resource the container asks for; 0: none.
std::int64_t asked_of(const DocumentValue& container, std::string_view resource) {
  const DocumentValue* limit = find_path(container, {"resources", "limits", resource});
  return limit == nullptr ? 0 : parse_go_int(limit->text, 10).value_or(0);
}

// A replica is all that a client gets: MPS does not join two of them.
void lint_several(const DocumentValue& spec, const DocumentValue& container, const std::string& path,
                  const Slices& slices, std::vector<Diagnostic>& found) {
  const std::int64_t asked = asked_of(container, slices.resource);
  // The check of the Pod alone reports these.
  if (asked < 2 || slices.resource.ends_with(".shared") || selects_mps(spec)) return;
  const Position at = find_path(container, {"resources", "limits", slices.resource})->at;
  found.push_back(
      {Severity::warning, "SeveralReplicas", fmt::format("{}.resources.limits[{}]", path, slices.resource), at,
       fmt::format("{} shares GPUs by MPS, and a container asks for {} of {}: {}; ask for 1", slices.where, asked,
                   slices.resource,
                   slices.several ? "it gets one client's share of memory and threads all the same"
                                  : "the device plugin refuses more than one, and the kubelet rejects the pod")});
}

// Visits every container that runs as long as the pod does: visit(spec, container, path).
template <class Visit>
void each_lasting_container(const DocumentValue& pod, Visit visit) {
  const DocumentValue* spec = pod.find("spec");
  if (spec == nullptr) return;
  each_container(*spec, [&](const DocumentValue& container, const std::string& path) {
    // Other init containers have ended before the servers start.
    const bool ends = path.starts_with("spec.initContainers") && container.string_at("restartPolicy") != "Always";
    if (!ends) visit(*spec, container, path);
  });
}

void lint_pod(const DocumentValue& pod, const std::vector<Slices>& all, std::vector<Diagnostic>& found) {
  each_lasting_container(pod, [&](const DocumentValue& spec, const DocumentValue& container, const std::string& path) {
    const Slices* slices = smallest(all, spec, container);
    if (slices == nullptr) return;
    lint_memory(container, path, *slices, found);
    lint_several(spec, container, path, *slices, found);
  });
}

// An annotation by which a Pod asks KAI for a share of a GPU.
bool asks_kai(std::string_view annotation) {
  return annotation == "mps" || annotation == kai::kFraction || annotation == kai::kMemory ||
         annotation == kai::kDeviceCount || annotation == kai::kContainerName || kai::names_nv_fraction(annotation);
}

}  // namespace

bool needs_other_objects(const DocumentValue& pod) {
  const auto annotations = members_of(find_path(pod, {"metadata", "annotations"}));
  if (std::ranges::any_of(annotations, [](const DocumentMember& each) { return asks_kai(each.key); })) return true;
  bool found = false;
  each_lasting_container(pod, [&](const DocumentValue&, const DocumentValue& container, const std::string&) {
    found = found || asked_of(container, kGpuResource) > 1 || reserves_memory(server_of(container));
  });
  return found;
}

void lint_kai(const std::vector<ClusterObject>& objects, const PodRules& rules,
              std::vector<LintedDocument>& documents) {
  const bool pods_alone = std::ranges::none_of(
      objects, [](const ClusterObject& object) { return object.kind != "Pod" && belongs_to_kai(object.kind); });
  if (pods_alone) return;
  const LoadedManifests loaded = load_objects(objects, belongs_to_kai);
  const KaiView view = view_kai(loaded.world.kai, KaiSettings{});
  DocumentIndex index(documents);
  if (view.configured && view.scheduler_name != rules.kai_scheduler)
    check_pods_again(objects, rules, view.scheduler_name, index);
  const std::vector<WaitingPod>& waiting = loaded.world.kai.lookups.waiting->pods;
  const WaitingCauses causes(loaded.world, view, waiting);
  std::map<ObjectKey, const WaitingPod*> by_name;
  for (const WaitingPod& each : waiting) by_name.try_emplace(each.pod.meta.key(), &each);
  for (const ClusterObject& object : objects) {
    if (object.kind != "Pod") continue;
    const auto found = by_name.find(ObjectKey{object.ns.empty() ? "default" : object.ns, object.name});
    const WaitingPod* pod = found == by_name.end() ? nullptr : found->second;
    LintedDocument* const document = pod == nullptr ? nullptr : index.find(object);
    if (document == nullptr || !causes.is_of_kai(*pod)) continue;
    const auto add = [&](Diagnostic::Severity severity, const char* code, std::string message) {
      document->diagnostics.push_back({severity, code, "", object.at, std::move(message)});
    };
    if (const auto cause = causes.impossible(*pod)) {
      if (cause->code != kSharingOff) {
        add(Diagnostic::Severity::warning, "KAICannotPlace",
            "KAI cannot place the pod with the objects in the input: " + cause->message);
      } else if (!rules.kai_gpu_sharing) {
        add(Diagnostic::Severity::error, "KAISharingDisabled", cause->message);
      }
    }
    const StringMap& annotations = pod->pod.meta.annotations;
    if (view.sharing.mode == kNvFractions &&
        (annotations.contains(kai::kFraction) || annotations.contains(kai::kMemory)))
      add(Diagnostic::Severity::warning, "FractionOfOlderMode", std::string(kAsksNvFractions));
    if (const std::string taint = evicting_taint(loaded.world, *pod); !taint.empty()) {
      add(Diagnostic::Severity::warning, "KAIReservationWithoutToleration",
          fmt::format("the pod tolerates the taint {}; the reservation pods of older KAI releases do not: they are "
                      "evicted from the node, and the pod is deleted or never bound",
                      taint));
    }
    sort_and_limit(document->diagnostics);
  }
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
