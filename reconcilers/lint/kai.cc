// KAI's fraction pods against the objects beside them. The same causes as for pods that wait in a cluster.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "reconcilers/cluster/kai_view.h"
#include "reconcilers/cluster/manifests.h"
#include "reconcilers/cluster/node_match.h"
#include "reconcilers/kai/waiting.h"
#include "reconcilers/lint/checks.h"
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

LintedDocument* document_of(const ClusterObject& pod, std::vector<LintedDocument>& documents) {
  const auto found = std::ranges::find_if(documents, [&](const LintedDocument& each) {
    return each.source == pod.source && each.kind == "Pod" && each.name == pod.name;
  });
  return found == documents.end() ? nullptr : &*found;
}

// kai-config names another scheduler than the one that the Pods were checked by.
void check_pods_again(const std::vector<ClusterObject>& objects, KaiPodRules rules, const std::string& scheduler,
                      std::vector<LintedDocument>& documents) {
  rules.kai_scheduler = scheduler;
  for (const ClusterObject& object : objects) {
    LintedDocument* document = object.pod ? document_of(object, documents) : nullptr;
    if (document == nullptr) {
      continue;
    }
    document->diagnostics.clear();
    check_pod(*object.pod, rules, document->diagnostics);
    sort_and_limit(document->diagnostics);
  }
}

}  // namespace

void lint_kai(const std::vector<ClusterObject>& objects, const KaiPodRules& rules,
              std::vector<LintedDocument>& documents) {
  std::vector<ManifestFile> files;
  for (const ClusterObject& object : objects) {
    if (belongs_to_kai(object)) {
      files.push_back({object.source, object.json});
    }
  }
  const bool pods_alone = std::ranges::none_of(
      objects, [](const ClusterObject& object) { return object.kind != "Pod" && belongs_to_kai(object); });
  if (files.empty() || pods_alone) {
    return;
  }
  std::vector<std::string> problems;  // Documents have errors of their own.
  const LoadedManifests loaded = load_readable_manifests(files, WallTime{}, problems);
  const KaiView view = view_kai(loaded.world.kai, KaiSettings{});
  if (view.configured && view.scheduler_name != rules.kai_scheduler) {
    check_pods_again(objects, rules, view.scheduler_name, documents);
  }
  const std::vector<WaitingPod>& waiting = loaded.world.kai.lookups.waiting->pods;
  const WaitingCauses causes(loaded.world, view, waiting);
  for (const ClusterObject& object : objects) {
    const auto pod = std::ranges::find_if(waiting, [&](const WaitingPod& each) {
      return object.kind == "Pod" && each.pod.meta.name == object.name &&
             each.pod.meta.ns.view() == (object.ns.empty() ? "default" : object.ns);
    });
    LintedDocument* const document = pod == waiting.end() ? nullptr : document_of(object, documents);
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
  }
}

}  // namespace gso
