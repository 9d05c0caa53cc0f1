// Rules that all kinds share: metadata, labels, enumerations.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tests/sim/apiserver/status.h"

namespace gso::sim {

struct Resource;

// Name, labels, annotations (256 KiB together), owner references and finalizers of a new object.
void validate_metadata(const Resource& resource, const nlohmann::json& object, FieldErrors& errors);
// The same, and what must not change: name, namespace, uid, creation and deletion times.
void validate_metadata_update(const Resource& resource, const nlohmann::json& object, const nlohmann::json& old,
                              FieldErrors& errors);
void check_labels(const nlohmann::json& labels, const std::string& path, FieldErrors& errors);
// Reports a string member that is set to none of the supported values.
void check_enum(const nlohmann::json& object, const char* member, const std::vector<std::string>& supported,
                const std::string& path, FieldErrors& errors);
// The values at paths that differ, one "path: before -> after" a line.
[[nodiscard]] std::string difference(const nlohmann::json& before, const nlohmann::json& after);

}  // namespace gso::sim
