// JSON patch, JSON merge patch and strategic merge patch.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tests/sim/apiserver/schema.h"
#include "tests/sim/apiserver/status.h"

namespace gso::sim {

// `patch` applied to `object` in place, by the content type: "application/json-patch+json",
// "application/merge-patch+json" or "application/strategic-merge-patch+json" (built-in kinds only).
// Errors: 415 for another type, 400 for a patch that is no JSON, 422 for a JSON patch that does not fit.
[[nodiscard]] Outcome<void> apply_patch(std::string_view content_type, std::string_view patch, const Schema* schema,
                                        bool custom, nlohmann::json& object);

// One level of a strategic merge: `patch` into `target`, both of type `schema` (nullptr: unknown, merged as JSON).
void strategic_merge(const Schema* schema, nlohmann::json& target, const nlohmann::json& patch);

}  // namespace gso::sim
