// Characters: ASCII, and valid UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace k8s {

// --- Characters of ASCII, whatever the locale is.

[[nodiscard]] constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

[[nodiscard]] constexpr char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

[[nodiscard]] constexpr bool is_hex_digit(char c) {
  return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'f');
}

// --- Text from outside that ends up in JSON, which must be UTF-8.

// Every byte that is not part of valid UTF-8 becomes U+FFFD, as Go's encoding/json writes it.
[[nodiscard]] std::string replace_invalid_utf8(std::string text);

// Such a text needs no replacement, and no copy of its own for that.
[[nodiscard]] bool is_valid_utf8(std::string_view text);

}  // namespace k8s
