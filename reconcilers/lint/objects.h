// The Kubernetes objects among documents: which documents are objects, and those that are judged together.
#pragma once

#include <array>
#include <map>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/manifests.h"
#include "reconcilers/lint/lint.h"
#include "reconcilers/profile/document_value.h"

namespace gso {

// A Kubernetes object, or what is meant to be one: it has a kind, and an apiVersion or metadata, or a kind that lint
// knows.
[[nodiscard]] bool is_manifest(const DocumentValue& value);

// Meant to be an object and without a kind: it has apiVersion and metadata. An item of a List always is an object.
[[nodiscard]] bool lacks_kind(const DocumentValue& value);
// The error about such an object.
[[nodiscard]] Diagnostic kind_missing(const DocumentValue& object);

// A kind that lint knows, in its own API group.
[[nodiscard]] bool is_known_object(const DocumentValue& object, std::string_view kind);
// The object is of another owner's API group, which has a kind of the same name: the Job of Volcano, the ClusterPolicy
// of Kyverno. Never true of a SharingPolicy.
[[nodiscard]] bool is_of_other_group(const DocumentValue& object);

// The objects for whose kind `wanted` says so, as the stores would show them. Those that cannot be read are left out:
// they have errors of their own.
[[nodiscard]] LoadedManifests load_objects(const std::vector<ClusterObject>& objects,
                                           bool (*wanted)(std::string_view kind));

// Finds the document of an object among all that were read, without a walk over them: a cluster has many of both. Valid
// until the list of documents changes.
class DocumentIndex {
 public:
  // Keys of ConfigMaps are left out.
  explicit DocumentIndex(std::vector<LintedDocument>& documents);

  // nullptr: the object has no document of its own, which is so for ConfigMaps whose keys have their own.
  [[nodiscard]] LintedDocument* find(const ClusterObject& object) const;

 private:
  std::map<std::array<std::string_view, 3>, LintedDocument*> documents_;  // By source, kind and name.
};

}  // namespace gso
