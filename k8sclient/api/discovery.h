// What a server serves: the values of API discovery, and the decoding of its documents. Asio-free.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"

namespace k8s {

struct ApiResource {
  Gvr gvr;
  std::string kind;
  bool namespaced = false;
  std::vector<std::string> verbs;
  std::vector<std::string> subresources;  // "status", "scale", …
  friend bool operator==(const ApiResource&, const ApiResource&) = default;
};

struct Discovery {
  std::vector<ApiResource> resources;   // In the server's order.
  std::map<std::string, Error> failed;  // "group/version" ("v1" for core), or "group" alone -> why.

  [[nodiscard]] const ApiResource* find(const Gvr& gvr) const;
};

// "apps/v1", or "v1" for the core group.
[[nodiscard]] std::string group_version(const Gvr& gvr);

// Decoders; each adds to `found`. Errors: `decode`.
// apidiscovery.k8s.io APIGroupDiscoveryList. A version marked Stale goes to Discovery::failed.
[[nodiscard]] Result<void> decode_aggregated(std::string_view json, Discovery* found);
// metav1.APIResourceList of one group version.
[[nodiscard]] Result<void> decode_resource_list(std::string_view json, std::string_view group_version,
                                                Discovery* found);
// The group versions that a metav1.APIGroupList (preferred first) or APIVersions names.
[[nodiscard]] Result<std::vector<std::string>> decode_group_versions(std::string_view json);

}  // namespace k8s
