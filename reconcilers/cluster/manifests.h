// Kubernetes manifests (YAML or JSON, several documents, Lists) -> World: the cluster's state for `plan FILE…` and for
// tests. The same projections as the live watches.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"
#include "reconcilers/cluster/cluster_pods.h"
#include "reconcilers/model/snapshot.h"
#include "reconcilers/profile/document_value.h"

namespace gso {

struct LoadedManifests {
  World world;  // Every store synced; the CRDs count as installed if an object of them is among the manifests.
  std::map<std::string, NodeConsumers> consumers;  // By node: pods that use GPUs, listed at `now`.
  UnstartedPods unstarted;
  std::vector<std::string> ignored;  // "file.yaml#3: kind Deployment is not read", once for each kind
  std::vector<std::string> leases;   // The JSON of every Lease.
};

struct ManifestFile {
  std::string name;  // For messages; "-" for stdin.
  std::string text;
};

// Objects without a uid, resourceVersion or creationTimestamp get stable ones (kind/namespace/name, "1", the epoch), so
// that hand-written manifests work. DaemonSets outside the operand namespaces are foreign (discovery.h).
// Errors (reason `decode`) have a line for each wrong object, up to 20: file, line, column, the object, what is valid
// there and what was found.
[[nodiscard]] k8s::Result<LoadedManifests> load_manifests(const std::vector<ManifestFile>& files, WallTime now,
                                                          const PlannerSettings& settings = PlannerSettings());

// An object that has been read already, with the metadata that a server would have set (manifests.h).
struct ManifestObject {
  std::string_view where;  // "file.yaml#3"
  std::string_view kind;
  std::string_view api_version;
  std::string_view name;
  std::string_view json;
};
// Leaves out objects that cannot be read, and believes every DaemonSet; `problems` gets one reason for each of them.
// The views must outlive the call.
[[nodiscard]] LoadedManifests load_readable_objects(const std::vector<ManifestObject>& objects, WallTime now,
                                                    std::vector<std::string>& problems);

// One YAML or JSON document as JSON text (YAML 1.1, as kubectl reads manifests).
[[nodiscard]] k8s::Result<std::string> yaml_to_json(std::string_view text);

// --- One Kubernetes object of a manifest: from its YAML to the JSON text that projections read, and from an error of
// a projection back to the place in the file.

// The value as JSON.
[[nodiscard]] nlohmann::json to_json(const DocumentValue& value);

// Sets what a server would have set: the namespace `default` of a namespaced object, a uid ("kind/namespace/name"), the
// resourceVersion "1", the uids of owners.
void fill_metadata(const std::string& kind, nlohmann::json& object);

// The kind of the List that the text seems to be ("List", "NodeList"): what a line of the text claims, which only
// reading it can prove. nullopt: it is something else, or more than one document.
[[nodiscard]] std::optional<std::string> list_kind_of(std::string_view text);

// The kind of an item of that List that has none of its own: the items of a NodeList are Nodes.
[[nodiscard]] std::string item_kind(const DocumentValue& item, std::string_view list_kind);

struct ManifestProblem {
  Position at;
  std::string message;  // "Node n1: metadata.name must be a string, found the boolean false: put it in quotes"
};
// `error`: of a projection of the object. The place is that of the field which the error names.
[[nodiscard]] ManifestProblem locate(const k8s::Error& error, const DocumentValue& object);

// "the boolean false", "the number 4", "\"text\"", "a list": for messages. Long texts are cut.
[[nodiscard]] std::string found_there(const DocumentValue& value);

}  // namespace gso
