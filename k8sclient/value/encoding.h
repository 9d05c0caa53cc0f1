// Texts and their bytes: ASCII, UTF-8 and base64.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
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

[[nodiscard]] constexpr bool is_alphanumeric(char c) {
  return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'z');
}

[[nodiscard]] std::string lower(std::string_view text);

// Without blanks, tabs and line ends around it.
[[nodiscard]] constexpr std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// --- Text from outside that ends up in JSON, which must be UTF-8.

// Every byte that is not part of valid UTF-8 becomes U+FFFD, as Go's encoding/json writes it.
[[nodiscard]] std::string replace_invalid_utf8(std::string text);

// Bytes of the valid UTF-8 sequence at the front of a text that is not empty; 0: there is none.
[[nodiscard]] std::size_t utf8_sequence(std::string_view text);

// Such a text needs no replacement, and no copy of its own for that.
[[nodiscard]] bool is_valid_utf8(std::string_view text);

// The 32 bytes of its SHA-256.
[[nodiscard]] std::string sha256(std::string_view text);

// A text in 16 bytes of its SHA-256, for sets and maps of very many: nobody can make two texts with the same print.
struct Print {
  std::size_t first = 0;
  std::size_t second = 0;
  Print() = default;
  explicit Print(std::string_view text);
  friend bool operator==(const Print&, const Print&) = default;
};

// --- Base64, as kubeconfig's *-data fields carry it.

// Standard alphabet with padding; line breaks are ignored, as Go does. nullopt for anything else.
[[nodiscard]] std::optional<std::string> base64_decode(std::string_view text);
[[nodiscard]] std::string base64_encode(std::string_view bytes);

}  // namespace k8s

template <>
struct std::hash<k8s::Print> {
  std::size_t operator()(const k8s::Print& print) const noexcept { return print.first; }
};
