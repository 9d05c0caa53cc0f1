// The grammars of names, label keys and label values. Each returns what is wrong, in the real server's words, or
// nullopt.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gso::sim {

[[nodiscard]] std::optional<std::string> dns_subdomain_problem(std::string_view name);  // RFC 1123, at most 253
[[nodiscard]] std::optional<std::string> dns_label_problem(std::string_view name);      // RFC 1123, at most 63
[[nodiscard]] std::optional<std::string> path_segment_problem(std::string_view name);   // RBAC names
[[nodiscard]] std::optional<std::string> label_key_problem(std::string_view key);       // "[prefix/]name"
[[nodiscard]] std::optional<std::string> label_value_problem(std::string_view value);   // at most 63
[[nodiscard]] std::optional<std::string> config_map_key_problem(std::string_view key);

// ASCII letters in lower case.
[[nodiscard]] std::string lower(std::string text);

}  // namespace gso::sim
