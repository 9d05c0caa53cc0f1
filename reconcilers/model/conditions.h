// Reads conditions in the statuses of SharingPolicies and SharingRollouts. status/ writes them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace gso {

// Of a SharingRollout; False once another revision has replaced it, and absent before.
inline constexpr std::string_view kCurrentCondition = "Current";
// Of a SharingRollout; True once spec.aborted has ended it, absent before.
inline constexpr std::string_view kAbortedCondition = "Aborted";

// A status from its text; an empty object if the text is none.
[[nodiscard]] nlohmann::json parse_status(std::string_view text);
// The condition of that type in a status; null if absent.
[[nodiscard]] nlohmann::json condition_in(const nlohmann::json& status, std::string_view type);
// The lastTransitionTime of the condition of that type in a status; empty if the status has no such condition.
[[nodiscard]] std::string since_when(const nlohmann::json& status, std::string_view type);
// The condition of that type in a status as "reason: message", or empty if it is absent or True.
[[nodiscard]] std::string false_condition(const nlohmann::json& status, std::string_view type);

}  // namespace gso
