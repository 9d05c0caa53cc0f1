// Go's rules for text where the plugin's parser depends on them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gso {

// encoding/json's comparison of a key with a field's (ASCII) name: case does not count, and U+017F and U+212A stand for
// s and k.
[[nodiscard]] bool equal_fold(std::string_view key, std::string_view field);

// strings.TrimSpace, of ASCII's blanks.
[[nodiscard]] std::string_view trim_space(std::string_view text);

// time.ParseDuration, in nanoseconds: "1h30m", "-1.5s", "0". nullopt on a syntax error, an unknown unit and overflow.
[[nodiscard]] std::optional<std::int64_t> parse_go_duration(std::string_view text);

// github.com/google/uuid's Parse: the 36 characters, also with "urn:uuid:" before or braces around, or 32 hex digits.
[[nodiscard]] bool is_uuid(std::string_view text);

// A DNS-1123 subdomain, as Kubernetes validates names: at most 253 characters, lower case, digits, '-' and '.', every
// part beginning and ending with a letter or digit.
[[nodiscard]] bool is_dns1123_subdomain(std::string_view text);

}  // namespace gso
