// Go's rules for keys, UUIDs, Kubernetes names and numbers.
#include "reconcilers/profile/go_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include "k8sclient/value/encoding.h"

namespace gso {
namespace {

using k8s::is_digit;
using k8s::is_hex_digit;
using k8s::to_lower;

bool is_lower_alnum(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z');
}

// --- Numbers.
bool starts_with_ignoring_case(std::string_view text, std::string_view word) {
  if (text.size() < word.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (to_lower(text[i]) != word[i]) return false;
  }
  return true;
}

std::string_view without_sign(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return text;
}

bool has_base_prefix(std::string_view text) {
  return text.size() >= 2 && text[0] == '0' &&
         (to_lower(text[1]) == 'b' || to_lower(text[1]) == 'o' || to_lower(text[1]) == 'x');
}

// Underscores are allowed between digits, and between a base prefix and a digit.
bool underscores_fit(std::string_view text) {
  text = without_sign(text);
  char before = '^';
  std::size_t i = 0;
  const bool hex = has_base_prefix(text) && to_lower(text[1]) == 'x';
  if (has_base_prefix(text)) {
    i = 2;
    before = '0';
  }
  for (; i < text.size(); ++i) {
    if (is_digit(text[i]) || (hex && is_hex_digit(text[i]))) {
      before = '0';
    } else if (text[i] == '_') {
      if (before != '0') return false;
      before = '_';
    } else if (before == '_') {
      return false;
    } else {
      before = '!';
    }
  }
  return before != '_';
}

// The digits and the base of a text whose prefix names the base; nullopt for a prefix without digits.
struct Digits {
  std::string text;
  int base = 10;
};

std::optional<Digits> digits_by_prefix(std::string_view text) {
  Digits digits;
  if (has_base_prefix(text) && text.size() >= 3) {
    digits.base = to_lower(text[1]) == 'b' ? 2 : to_lower(text[1]) == 'o' ? 8 : 16;
    text.remove_prefix(2);
  } else if (text.starts_with('0')) {
    digits.base = 8;
    text.remove_prefix(1);
    if (text.empty()) text = "0";
  }
  bool any = false;
  for (const char c : text) {
    if (c == '_') {
      any = true;
    } else {
      digits.text += c;
    }
  }
  if (digits.text.empty() && !any) return std::nullopt;
  return digits;
}

struct FloatShape {
  bool ok = false;
  bool hex = false;
  bool any_nonzero = false;
  bool negative_exponent = false;
  bool underscores = false;
};

FloatShape float_shape(std::string_view text) {
  FloatShape shape;
  text = without_sign(text);
  std::size_t i = 0;
  if (text.size() > 2 && has_base_prefix(text) && to_lower(text[1]) == 'x') {
    shape.hex = true;
    i = 2;
  }
  bool dot = false;
  bool digits = false;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '_') {
      shape.underscores = true;
    } else if (c == '.' && !dot) {
      dot = true;
    } else if (shape.hex ? is_hex_digit(c) : is_digit(c)) {
      digits = true;
      shape.any_nonzero = shape.any_nonzero || c != '0';
    } else {
      break;
    }
  }
  if (!digits) return shape;
  if (i < text.size() && to_lower(text[i]) == (shape.hex ? 'p' : 'e')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) {
      shape.negative_exponent = text[i] == '-';
      ++i;
    }
    if (i >= text.size() || !is_digit(text[i])) return shape;
    for (; i < text.size() && (is_digit(text[i]) || text[i] == '_'); ++i) {
      shape.underscores = shape.underscores || text[i] == '_';
    }
  } else if (shape.hex) {
    return shape;
  }
  shape.ok = i == text.size();
  return shape;
}

}  // namespace

bool equal_fold(std::string_view key, std::string_view field) {
  std::size_t at = 0;
  for (const char wanted : field) {
    const std::string_view rest = key.substr(std::min(at, key.size()));
    if (rest.empty()) return false;
    if (to_lower(rest[0]) == to_lower(wanted)) {
      at += 1;
    } else if (to_lower(wanted) == 's' && rest.starts_with("\u017f")) {
      at += 2;
    } else if (to_lower(wanted) == 'k' && rest.starts_with("\u212a")) {
      at += 3;
    } else {
      return false;
    }
  }
  return at == key.size();
}

std::string_view trim_space(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  const auto first = text.find_first_not_of(kBlanks);
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool is_uuid(std::string_view text) {
  constexpr std::string_view kUrn = "urn:uuid:";
  if (text.size() == 32) return std::all_of(text.begin(), text.end(), is_hex_digit);
  if (text.size() == 36 + kUrn.size()) {
    for (std::size_t i = 0; i < kUrn.size(); ++i) {
      if (to_lower(text[i]) != kUrn[i]) return false;
    }
    text.remove_prefix(kUrn.size());
  } else if (text.size() == 38) {
    text = text.substr(1, 36);  // Upstream does not look at the two characters around it.
  }
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : !is_hex_digit(text[i])) return false;
  }
  return true;
}

bool is_dns1123_subdomain(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool edge = i == 0 || i + 1 == text.size() || text[i - 1] == '.' || text[i + 1] == '.';
    if (!is_lower_alnum(text[i]) && (edge || (text[i] != '-' && text[i] != '.'))) return false;
    if (text[i] == '.' && edge) return false;
  }
  return true;
}

std::optional<std::uint64_t> parse_go_uint(std::string_view text, int base) {
  if (text.empty()) return std::nullopt;
  Digits digits{std::string(text), base};
  if (base == 0) {
    if (text.find('_') != std::string_view::npos && !underscores_fit(text)) return std::nullopt;
    auto by_prefix = digits_by_prefix(text);
    if (!by_prefix) return std::nullopt;
    digits = std::move(*by_prefix);
  }
  std::uint64_t value = 0;
  const char* const last = digits.text.data() + digits.text.size();
  const auto [end, error] = std::from_chars(digits.text.data(), last, value, digits.base);
  if (error != std::errc() || end != last) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_go_int(std::string_view text, int base) {
  const bool negative = !text.empty() && text[0] == '-';
  const auto magnitude = parse_go_uint(without_sign(text), base);
  constexpr auto kLimit = std::uint64_t{1} << 63;
  if (!magnitude || *magnitude > kLimit || (!negative && *magnitude == kLimit)) return std::nullopt;
  return static_cast<std::int64_t>(negative ? std::uint64_t{0} - *magnitude : *magnitude);
}

std::optional<double> parse_go_float(std::string_view text) {
  const bool negative = !text.empty() && text[0] == '-';
  const std::string_view unsigned_text = without_sign(text);
  if (starts_with_ignoring_case(unsigned_text, "inf")) {
    if (unsigned_text.size() == 3 ||
        (unsigned_text.size() == 8 && starts_with_ignoring_case(unsigned_text, "infinity"))) {
      return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    }
    return std::nullopt;
  }
  if (text.size() == 3 && starts_with_ignoring_case(text, "nan")) return std::numeric_limits<double>::quiet_NaN();
  const FloatShape shape = float_shape(text);
  if (!shape.ok || (shape.underscores && !underscores_fit(text))) return std::nullopt;
  std::string digits;
  for (const char c : shape.hex ? unsigned_text.substr(2) : unsigned_text) {
    if (c != '_') digits += c;
  }
  double value = 0;
  const char* const last = digits.data() + digits.size();
  const auto format = shape.hex ? std::chars_format::hex : std::chars_format::general;
  const auto [end, error] = std::from_chars(digits.data(), last, value, format);
  if (error == std::errc::result_out_of_range) {
    // Too small gives 0, too large is an error; for such texts only the exponent's sign distinguishes them.
    if (shape.any_nonzero && !shape.negative_exponent) return std::nullopt;
    value = 0;
  } else if (error != std::errc() || end != last) {
    return std::nullopt;
  }
  return negative ? -value : value;
}

std::string json_number(double value) {
  const double size = std::fabs(value);
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), size, std::chars_format::scientific).ptr;
  const std::string_view scientific(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const auto e = scientific.find('e');
  std::string digits;
  for (const char c : scientific.substr(0, e)) {
    if (c != '.') digits += c;
  }
  int exponent = 0;
  const auto exponent_text = scientific.substr(scientific[e + 1] == '+' ? e + 2 : e + 1);
  std::from_chars(exponent_text.data(), exponent_text.data() + exponent_text.size(), exponent);
  std::string out = std::signbit(value) ? "-" : "";
  if (size != 0 && (size < 1e-6 || size >= 1e21)) {
    out += digits[0];
    if (digits.size() > 1) {
      out += '.';
      out += std::string_view(digits).substr(1);
    }
    return out + 'e' + (exponent < 0 ? "-" : "+") + std::to_string(std::abs(exponent));
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0');
  return out + digits.substr(0, whole) + '.' + digits.substr(whole);
}

}  // namespace gso
