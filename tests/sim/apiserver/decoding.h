// What the real server's decoders say about bodies.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "tests/sim/apiserver/resource.h"

namespace gso::sim {

// "apps/v1, Kind=DaemonSet"
[[nodiscard]] std::string group_version_kind(const nlohmann::json& object);
// What is wrong with apiVersion and kind, for the decoders of built-in kinds and of custom resources.
[[nodiscard]] std::optional<std::string> type_problem(const Resource& resource, const nlohmann::json& object);
[[nodiscard]] bool is_json_or_yaml(std::string_view content_type);
// As the decoder prints a body that it cannot read.
[[nodiscard]] std::string summary(std::string_view body);
// Why a parsed body (discarded: none) is no object.
[[nodiscard]] std::string decoder_complaint(const nlohmann::json& parsed);

}  // namespace gso::sim
