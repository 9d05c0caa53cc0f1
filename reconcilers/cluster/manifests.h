// Kubernetes manifests (YAML or JSON, several documents, Lists) -> World: the cluster's state for `plan FILE…` and for
// tests. The same projections as the live watches.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"
#include "reconcilers/model/snapshot.h"

namespace gso {

struct LoadedManifests {
  World world;  // Every store synced; the CRDs count as installed if an object of them is among the manifests.
  std::map<std::string, NodeConsumers> consumers;  // By node: pods that use GPUs, listed at `now`.
  std::vector<std::string> ignored;                // "file.yaml#3: kind Deployment is not read", once for each kind
  std::vector<std::string> leases;                 // The JSON of every Lease.
};

struct ManifestFile {
  std::string name;  // For messages; "-" for stdin.
  std::string text;
};

// Objects without a uid, resourceVersion or creationTimestamp get stable ones (kind/namespace/name, "1", the epoch), so
// that hand-written manifests work. DaemonSets outside the operand namespaces are foreign (operand_namespaces.h).
// Errors (reason `decode`) have a line for each wrong object, up to 20: file, line, column, the object, what is valid
// there and what was found.
[[nodiscard]] k8s::Result<LoadedManifests> load_manifests(const std::vector<ManifestFile>& files, WallTime now,
                                                          const PlannerSettings& settings = PlannerSettings());

// Leaves out objects that cannot be read, and believes every DaemonSet; `problems` gets one reason for each such file.
[[nodiscard]] LoadedManifests load_readable_manifests(const std::vector<ManifestFile>& files, WallTime now,
                                                      std::vector<std::string>& problems);

// An object that has been read already, with the metadata that a server would have set (manifest_object.h).
struct ManifestObject {
  std::string_view where;  // "file.yaml#3"
  std::string_view kind;
  std::string_view api_version;
  std::string_view name;
  std::string_view json;
};
// The same as load_readable_manifests() for these objects. The views must outlive the call.
[[nodiscard]] LoadedManifests load_readable_objects(const std::vector<ManifestObject>& objects, WallTime now,
                                                    std::vector<std::string>& problems);

// One YAML or JSON document as JSON text (YAML 1.1, as kubectl reads manifests).
[[nodiscard]] k8s::Result<std::string> yaml_to_json(std::string_view text);

}  // namespace gso
