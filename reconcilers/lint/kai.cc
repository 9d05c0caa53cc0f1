// KAI's fraction pods against the objects beside them. The same causes as for pods that wait in a cluster.
#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/cluster/manifests.h"
#include "reconcilers/cluster/node_match.h"
#include "reconcilers/kai/waiting.h"
#include "reconcilers/lint/checks.h"
#include "reconcilers/lint/document_index.h"
#include "reconcilers/lint/lint.h"
#include "reconcilers/profile/profile_document.h"

namespace gso {
namespace {

// A node's NoExecute taint that evicts KAI's reservation but not this pod.
std::string evicting_taint(const World& world, const WaitingPod& waiting) {
  for (const auto& [key, node] : world.nodes.all()) {
    for (const Taint& taint : node->taints) {
      if (taint.effect == "NoExecute" && tolerates(waiting.tolerations, taint)) {
        return fmt::format("{}:NoExecute of node {}", taint.key.view(), key.name);
      }
    }
  }
  return {};
}

bool belongs_to_kai(const ClusterObject& object) {
  return object.kind == "Pod" || object.kind == "Node" || object.kind == "Config" || object.kind == "RuntimeClass";
}

// kai-config names another scheduler than the one that the Pods were checked by.
void check_pods_again(const std::vector<ClusterObject>& objects, const KaiPodRules& rules, const std::string& scheduler,
                      DocumentIndex& documents) {
  KaiPodRules right = rules;
  right.kai_scheduler = scheduler;
  for (const ClusterObject& object : objects) {
    LintedDocument* document = object.pod ? documents.find(object) : nullptr;
    if (document == nullptr) {
      continue;
    }
    // What other checks have found of the object stays.
    std::vector<Diagnostic> former;
    check_pod_at(*object.pod, object.pod_path, rules, former);
    std::erase_if(document->diagnostics,
                  [&](const Diagnostic& d) { return std::ranges::find(former, d) != former.end(); });
    check_pod_at(*object.pod, object.pod_path, right, document->diagnostics);
    sort_and_limit(document->diagnostics);
  }
}

}  // namespace

void lint_kai(const std::vector<ClusterObject>& objects, const KaiPodRules& rules,
              std::vector<LintedDocument>& documents) {
  std::vector<ManifestObject> read;
  for (const ClusterObject& object : objects) {
    if (belongs_to_kai(object)) {
      read.push_back({object.source, object.kind, object.api_version, object.name, object.json});
    }
  }
  const bool pods_alone = std::ranges::none_of(
      objects, [](const ClusterObject& object) { return object.kind != "Pod" && belongs_to_kai(object); });
  if (read.empty() || pods_alone) {
    return;
  }
  std::vector<std::string> problems;  // Documents have errors of their own.
  const LoadedManifests loaded = load_readable_objects(read, WallTime{}, problems);
  const KaiView view = view_kai(loaded.world.kai, KaiSettings{});
  DocumentIndex index(documents);
  if (view.configured && view.scheduler_name != rules.kai_scheduler) {
    check_pods_again(objects, rules, view.scheduler_name, index);
  }
  const std::vector<WaitingPod>& waiting = loaded.world.kai.lookups.waiting->pods;
  const WaitingCauses causes(loaded.world, view, waiting);
  std::map<ObjectKey, const WaitingPod*> by_name;
  for (const WaitingPod& each : waiting) by_name.try_emplace(each.pod.meta.key(), &each);
  for (const ClusterObject& object : objects) {
    if (object.kind != "Pod") continue;
    const auto found = by_name.find(ObjectKey{object.ns.empty() ? "default" : object.ns, object.name});
    const WaitingPod* pod = found == by_name.end() ? nullptr : found->second;
    LintedDocument* const document = pod == nullptr ? nullptr : index.find(object);
    if (document == nullptr || !causes.is_of_kai(*pod)) {
      continue;
    }
    const auto add = [&](Diagnostic::Severity severity, const char* code, std::string message) {
      document->diagnostics.push_back({severity, code, "", object.line, object.column, std::move(message)});
    };
    if (const auto cause = causes.impossible(*pod)) {
      if (cause->code != kSharingOff) {
        add(Diagnostic::Severity::warning, "KAICannotPlace",
            "KAI cannot place the pod with the objects in the input: " + cause->text);
      } else if (!rules.kai_gpu_sharing) {
        add(Diagnostic::Severity::error, "KAISharingDisabled", cause->text);
      }
    }
    if (const std::string taint = evicting_taint(loaded.world, *pod); !taint.empty()) {
      add(Diagnostic::Severity::warning, "KAIReservationWithoutToleration",
          fmt::format("the pod tolerates the taint {}; the reservation pods of older KAI releases do not: they are "
                      "evicted from the node, and the pod is deleted or never bound",
                      taint));
    }
    sort_and_limit(document->diagnostics);
  }
}

}  // namespace gso
