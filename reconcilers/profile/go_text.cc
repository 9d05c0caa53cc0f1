// Go's rules for keys, UUIDs, Kubernetes names and numbers.
#include "reconcilers/profile/go_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

#include "k8sclient/value/encoding.h"

namespace gso {
namespace {

using k8s::to_lower;

std::string_view without_sign(std::string_view text) {
  return text.substr(text.starts_with('-') || text.starts_with('+') ? 1 : 0);
}

// The letter after the 0 of 0x1f, 0o17 and 0b101, in lower case; 0: the text begins otherwise.
char base_letter(std::string_view text) {
  const char letter = text.size() > 2 && text[0] == '0' ? to_lower(text[1]) : '\0';
  return letter == 'x' || letter == 'o' || letter == 'b' ? letter : '\0';
}

}  // namespace

bool equal_fold(std::string_view key, std::string_view field) {
  return std::ranges::equal(key, field, {}, to_lower, to_lower);
}

bool is_uuid(std::string_view text) {
  constexpr std::string_view kUrn = "urn:uuid:";
  if (text.size() == 32) return std::ranges::all_of(text, k8s::is_hex_digit);
  if (text.size() == 36 + kUrn.size() && equal_fold(text.substr(0, kUrn.size()), kUrn))
    text.remove_prefix(kUrn.size());
  else if (text.size() == 38)
    text = text.substr(1, 36);  // Upstream does not look at the two characters around it.
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : !k8s::is_hex_digit(text[i])) return false;
  }
  return true;
}

std::optional<std::uint64_t> parse_go_uint(std::string_view text, int base) {
  if (base == 0) {
    const char letter = base_letter(text);
    base = letter == 'x' ? 16 : letter == 'b' ? 2 : text.starts_with('0') ? 8 : 10;
    text.remove_prefix(letter != '\0' ? 2 : 0);
  }
  std::uint64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value, base);
  return error == std::errc() && end == last ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> parse_go_int(std::string_view text, int base) {
  const bool negative = text.starts_with('-');
  const auto magnitude = parse_go_uint(without_sign(text), base);
  constexpr auto kLimit = std::uint64_t{1} << 63;
  if (!magnitude || *magnitude > kLimit || (!negative && *magnitude == kLimit)) return std::nullopt;
  return static_cast<std::int64_t>(negative ? std::uint64_t{0} - *magnitude : *magnitude);
}

std::optional<double> parse_go_float(std::string_view text) {
  std::string_view digits = without_sign(text);
  const bool hex = base_letter(digits) == 'x';
  digits.remove_prefix(hex ? 2 : 0);
  // std::from_chars reads more: another sign, a NaN with a sign or a payload, hexadecimal ones without an exponent.
  const bool is_nan = digits.starts_with('n') || digits.starts_with('N');
  const bool of_go = !digits.starts_with('-') && (!is_nan || text.size() == 3) &&
                     (!hex || digits.find_first_of("pP") != std::string_view::npos);
  double value = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] =
      std::from_chars(digits.data(), last, value, hex ? std::chars_format::hex : std::chars_format::general);
  if (!of_go || end != last) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // Too small gives 0, too large is an error; for such texts only the exponent's sign distinguishes them.
    if (!k8s::lower(digits).contains(hex ? "p-" : "e-")) return std::nullopt;
    value = 0;
  } else if (error != std::errc()) {
    return std::nullopt;
  }
  return text.starts_with('-') ? -value : value;
}

std::string json_number(double value) {
  const double size = std::fabs(value);
  const bool plain = size == 0 || (size >= 1e-6 && size < 1e21);
  std::array<char, 40> buffer{};
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format).ptr};
}

}  // namespace gso
