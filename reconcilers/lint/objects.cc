// See objects.h.
#include "reconcilers/lint/objects.h"

#include <algorithm>

namespace gso {
namespace {

constexpr std::string_view kSharingPolicyKind = "SharingPolicy";

// A kind that lint knows.
struct KnownKind {
  std::string_view kind;
  std::string_view group;  // Empty: the core group.
};
constexpr auto kKnownKinds = std::to_array<KnownKind>({{"Pod", ""},
                                                       {"ConfigMap", ""},
                                                       {"Node", ""},
                                                       {"List", ""},
                                                       {"PodTemplate", ""},
                                                       {"ReplicationController", ""},
                                                       {"Deployment", "apps"},
                                                       {"StatefulSet", "apps"},
                                                       {"DaemonSet", "apps"},
                                                       {"ReplicaSet", "apps"},
                                                       {"ControllerRevision", "apps"},
                                                       {"Job", "batch"},
                                                       {"CronJob", "batch"},
                                                       {"RuntimeClass", "node.k8s.io"},
                                                       {kSharingPolicyKind, "gpusharing.dev"},
                                                       {"SharingRollout", "gpusharing.dev"},
                                                       {"ClusterPolicy", "nvidia.com"}});

const KnownKind* find_known(std::string_view kind) {
  const auto found = std::ranges::find(kKnownKinds, kind, &KnownKind::kind);
  return found == kKnownKinds.end() ? nullptr : &*found;
}

}  // namespace

bool is_manifest(const DocumentValue& value) {
  const std::string_view kind = value.string_at("kind");
  return !kind.empty() &&
         (value.find("apiVersion") != nullptr || value.find("metadata") != nullptr || find_known(kind) != nullptr);
}

bool lacks_kind(const DocumentValue& value) {
  const DocumentValue* metadata = value.find("metadata");
  return value.find("kind") == nullptr && value.find("apiVersion") != nullptr && metadata != nullptr &&
         metadata->is_object();
}

Diagnostic kind_missing(const DocumentValue& object) {
  return {Severity::error, "KindMissing", "kind", object.at, "the object has no kind; write its kind"};
}

bool is_of_other_group(const DocumentValue& object) {
  const KnownKind* known = find_known(object.string_at("kind"));
  if (known == nullptr || known->kind == kSharingPolicyKind) return false;
  const std::string_view version = object.string_at("apiVersion");
  const std::string_view group = version.substr(0, version.contains('/') ? version.find('/') : 0);
  // Any owner can add kinds to a group with a domain of his own. The others are Kubernetes' own.
  return group != known->group && group.contains('.') && !group.ends_with(".k8s.io");
}

bool is_known_object(const DocumentValue& object, std::string_view kind) {
  return find_known(kind) != nullptr && !is_of_other_group(object);
}

LoadedManifests load_objects(const std::vector<ClusterObject>& objects, bool (*wanted)(std::string_view kind)) {
  std::vector<ManifestObject> read;
  for (const ClusterObject& each : objects)
    if (wanted(each.kind)) read.push_back({each.source, each.kind, each.api_version, each.name, each.json});
  std::vector<std::string> problems;
  return load_readable_objects(read, WallTime{}, problems);
}

DocumentIndex::DocumentIndex(std::vector<LintedDocument>& documents) {
  for (LintedDocument& each : documents)
    if (each.key.empty()) documents_.try_emplace({each.source, each.kind, each.name}, &each);
}

LintedDocument* DocumentIndex::find(const ClusterObject& object) const {
  const auto found = documents_.find({object.source, object.document_kind, object.name});
  return found == documents_.end() ? nullptr : found->second;
}

}  // namespace gso
