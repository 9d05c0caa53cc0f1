// metadata.managedFields: who owns which field, for updates and for server-side apply.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "k8sclient/value/time.h"
#include "tests/sim/apiserver/resource.h"
#include "tests/sim/apiserver/status.h"

namespace gso::sim {

struct FieldManager {
  std::string name;
  std::string subresource;  // "status", or empty.
  k8s::WallTime now;
};

// After a create, update or patch: gives `after` the managed fields that follow from what changed since `before`
// (an empty object for a create), starting from those that `managed` (the stored ones, or what the writer sent) has.
void track_update(const Resource& resource, const FieldManager& manager, const nlohmann::json& before,
                  nlohmann::json& after);

// Server-side apply of `config` to `live` (an empty object when it does not exist). Returns the new object with its
// managed fields, or the conflict.
[[nodiscard]] Outcome<nlohmann::json> apply_configuration(const Resource& resource, const FieldManager& manager,
                                                          bool force, const nlohmann::json& live,
                                                          const nlohmann::json& config);

}  // namespace gso::sim
