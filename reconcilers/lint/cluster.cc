// Checks that need the objects of several documents.
#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>

#include "reconcilers/cluster/manifests.h"
#include "reconcilers/lint/lint.h"
#include "reconcilers/lint/whole_cluster.h"

namespace gso {
namespace {

using Name = std::tuple<std::string, std::string, std::string>;  // Kind, namespace, name.

// The check of the ConfigMap alone has reported it already, with a line.
bool is_said_of_the_config_map(const Finding& found) {
  return found.object.kind == "ConfigMap" && (found.reason == "KeyNoLabelValue" || found.reason == "NoProfiles");
}

// The document of that object; if it has none, a new one after the last document of its source.
LintedDocument& document_of(const ClusterObject& object, std::vector<LintedDocument>& documents) {
  const auto found = std::find_if(documents.begin(), documents.end(), [&](const LintedDocument& document) {
    return document.source == object.source && document.kind == object.kind && document.name == object.name &&
           document.key.empty();
  });
  if (found != documents.end()) {
    return *found;
  }
  const auto last = std::find_if(documents.rbegin(), documents.rend(),
                                 [&](const LintedDocument& document) { return document.source == object.source; });
  const auto added = documents.insert(last.base(), LintedDocument{});
  added->source = object.source;
  added->kind = object.kind;
  added->name = object.name;
  return *added;
}

}  // namespace

void lint_cluster(const std::vector<ClusterObject>& objects, std::vector<LintedDocument>& documents) {
  const auto has = [&](std::string_view kind) {
    return std::any_of(objects.begin(), objects.end(),
                       [&](const ClusterObject& object) { return object.kind == kind; });
  };
  const bool offers = has("DeviceClass") && has("ResourceSlice");
  const bool whole = has("DaemonSet") || has("ClusterPolicy");
  if (!whole && !offers && !has("SharingPolicy")) {
    return;
  }
  std::vector<ManifestFile> files;
  std::map<Name, const ClusterObject*> by_name;
  for (const ClusterObject& object : objects) {
    if (object.kind == "Pod" || object.kind == "Config" || object.kind == "RuntimeClass") {
      continue;  // lint_kai looks at these.
    }
    files.push_back({object.source, object.json});
    by_name.emplace(Name{object.kind, object.ns, object.name}, &object);
  }
  for (LintedDocument& document : documents) {
    const bool of_offers =
        document.kind == "Node" || document.kind == "DeviceClass" || document.kind == "ResourceSlice";
    const bool of_whole = document.kind == "Node" || document.kind == "DaemonSet" || document.kind == "ClusterPolicy";
    if ((offers && of_offers) || (whole && of_whole)) {
      std::erase_if(document.diagnostics, [](const Diagnostic& d) { return d.code == kNotChecked; });
    }
  }
  std::vector<std::string>
      problems;  // Of objects that this check does not read, or that have diagnostics of their own.
  const LoadedManifests loaded = load_readable_manifests(files, WallTime{}, problems);
  for (const Finding& found : check_cluster(loaded.world, {})) {
    const auto object = by_name.find(Name{found.object.kind, found.object.ns, found.object.name});
    if (object == by_name.end() || is_said_of_the_config_map(found)) {
      continue;
    }
    const ClusterObject& at = *object->second;
    document_of(at, documents)
        .diagnostics.push_back({found.severity, found.reason, "", at.line, at.column, found.message});
  }
}

}  // namespace gso
