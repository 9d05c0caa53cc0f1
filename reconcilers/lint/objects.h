// The Kubernetes objects among documents: which documents are objects, and where those stand that are judged together.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

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

// The pods of a workload.
struct PodTemplate {
  const DocumentValue* pod = nullptr;  // With metadata and spec, as a Pod has them.
  std::string path;                    // What comes before the paths within it: "spec.template."
};

// Of a Deployment, StatefulSet, DaemonSet, Job, CronJob, and of any other object that has templates of pods. The
// pointers are into `object`.
[[nodiscard]] std::vector<PodTemplate> pod_templates(const DocumentValue& object);

// The objects of a text that affect which profile reaches which node, and the pods that need other objects to be
// judged: lint_cluster, lint_kai and lint_pods look at those of all files together.
class ObjectCollector {
 public:
  // `objects` gets what is collected; null: nothing is.
  explicit ObjectCollector(std::vector<ClusterObject>* objects) : objects_(objects) {}

  // `source`: of the object's document.
  void add(const DocumentValue& value, std::string_view kind, const std::string& source);
  // The pods of a workload, as a Pod of its name.
  void add_template(const DocumentValue& workload, std::string_view kind, const PodTemplate& of,
                    const std::string& source);

 private:
  // The name of an object; null: it has none, or nothing is collected.
  [[nodiscard]] const DocumentValue* name_of(const DocumentValue& value) const;
  ClusterObject& append(std::string_view kind, std::string_view document_kind, const DocumentValue& metadata,
                        nlohmann::json json, const std::string& source);

  std::vector<ClusterObject>* objects_;
};

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
