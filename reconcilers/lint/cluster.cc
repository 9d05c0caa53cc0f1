// Checks that need the objects of several documents.
#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>
#include <utility>

#include "reconcilers/cluster/manifests.h"
#include "reconcilers/lint/document_index.h"
#include "reconcilers/lint/lint.h"
#include "reconcilers/lint/whole_cluster.h"

namespace gso {
namespace {

using Name = std::tuple<std::string, std::string, std::string>;  // Kind, namespace, name.

// The check of the ConfigMap alone has reported it already, with a line.
bool is_said_of_the_config_map(const Finding& found) {
  return found.object.kind == "ConfigMap" && (found.reason == "KeyNoLabelValue" || found.reason == "NoProfiles");
}

// The field that the finding is about.
Position place_of(const ClusterObject& object, const Finding& found) {
  const Position field = found.reason == "DefaultKeyNotFound"    ? object.config_default_at
                         : found.reason.starts_with("ConfigMap") ? object.config_name_at
                                                                 : Position{};
  return field.line > 0 ? field : Position{object.line, object.column};
}

// Adds findings to the documents of their objects. An object without a document gets one, after the last document of
// its source.
class Reports {
 public:
  explicit Reports(std::vector<LintedDocument>& documents) : documents_(documents), index_(documents) {}

  void add(const ClusterObject& object, const Finding& found) {
    const Position at = place_of(object, found);
    document_of(object).diagnostics.push_back({found.severity, found.reason, "", at.line, at.column, found.message});
  }

  // Once all findings are added.
  void finish() {
    if (added_.empty()) return;
    std::map<std::string, std::size_t> last;
    for (std::size_t i = 0; i < documents_.size(); ++i) last[documents_[i].source] = i;
    std::multimap<std::size_t, LintedDocument> after;
    for (auto& [object, document] : added_) after.emplace(last[document.source], std::move(document));
    std::vector<LintedDocument> out;
    for (std::size_t i = 0; i < documents_.size(); ++i) {
      out.push_back(std::move(documents_[i]));
      const auto [from, to] = after.equal_range(i);
      for (auto at = from; at != to; ++at) out.push_back(std::move(at->second));
    }
    documents_ = std::move(out);
  }

 private:
  LintedDocument& document_of(const ClusterObject& object) {
    if (LintedDocument* found = index_.find(object)) return *found;
    LintedDocument& document = added_[&object];
    document.source = object.source;
    document.kind = object.kind;
    document.name = object.name;
    return document;
  }

  std::vector<LintedDocument>& documents_;
  DocumentIndex index_;
  std::map<const ClusterObject*, LintedDocument> added_;  // In the order of the objects.
};

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
  std::vector<ManifestObject> read;
  std::map<Name, const ClusterObject*> by_name;
  for (const ClusterObject& object : objects) {
    if (object.kind == "Pod" || object.kind == "Config" || object.kind == "RuntimeClass") {
      continue;  // lint_kai looks at these.
    }
    read.push_back({object.source, object.kind, object.api_version, object.name, object.json});
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
  const LoadedManifests loaded = load_readable_objects(read, WallTime{}, problems);
  Reports reports(documents);
  for (const Finding& found : check_cluster(loaded.world, {})) {
    const auto object = by_name.find(Name{found.object.kind, found.object.ns, found.object.name});
    if (object == by_name.end() || is_said_of_the_config_map(found)) {
      continue;
    }
    reports.add(*object->second, found);
  }
  reports.finish();
}

}  // namespace gso
