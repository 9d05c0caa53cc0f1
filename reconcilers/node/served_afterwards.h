// What a node will certainly serve once it shows its target.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "reconcilers/node/assess.h"

namespace gso {

// How many of a resource. If the number of the node's GPUs is not known, as many as its capacity proves, else one
// GPU's. nullopt: the target says nothing about that resource.
[[nodiscard]] std::optional<std::int64_t> served_afterwards(const NodeAssessment& assessment,
                                                            std::string_view resource);
// The same of every resource that the target is about. Empty without a target.
[[nodiscard]] std::map<std::string, std::int64_t> served_afterwards(const NodeAssessment& assessment);
// The number is exact.
[[nodiscard]] bool is_count_known(const NodeAssessment& assessment, const std::string& resource);

}  // namespace gso
