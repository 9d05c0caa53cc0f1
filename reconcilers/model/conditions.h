// Reading conditions in the status texts of our objects. status/ writes them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace gso {

// Of a SharingRollout; False from when another revision takes its place, and absent before.
inline constexpr std::string_view kCurrentCondition = "Current";
// The same; True from when spec.aborted has ended it, and absent before.
inline constexpr std::string_view kAbortedCondition = "Aborted";

// The condition of that type in a status; null where there is none.
[[nodiscard]] nlohmann::json condition_in(const nlohmann::json& status, std::string_view type);
// The lastTransitionTime of the condition of that type in a status; empty when there is none.
[[nodiscard]] std::string since_when(const nlohmann::json& status, std::string_view type);
// The condition of that type in a status text as "reason: message", or empty when there is none or it is True.
[[nodiscard]] std::string false_condition(std::string_view status, std::string_view type);

}  // namespace gso
