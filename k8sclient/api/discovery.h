// The discovery documents of a server. Asio-free.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"

namespace k8s {

// "apps/v1", or "v1" for the core group.
[[nodiscard]] std::string group_version(const Gvr& gvr);

// The group versions that a metav1.APIGroupList (preferred first) or APIVersions names. Errors: `decode`.
[[nodiscard]] Result<std::vector<std::string>> decode_group_versions(std::string_view json);

// What one aggregated discovery document says of all groups.
struct ServedKinds {
  std::set<Gvr> kinds;
  std::set<std::string> stale;  // Group versions whose server did not answer the API server.
  bool aggregated = false;      // False: the server does not offer that document, and nothing is known.
  // Whether the kind is served; nullopt: the document does not say it.
  [[nodiscard]] std::optional<bool> serves(const Gvr& gvr) const;
};
// Of an apidiscovery.k8s.io APIGroupDiscoveryList; of an APIGroupList, which older servers answer with, nothing is
// known. Errors: `decode`.
[[nodiscard]] Result<ServedKinds> decode_aggregated_discovery(std::string_view json);

}  // namespace k8s
