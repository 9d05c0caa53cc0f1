// Go's rules for keys, durations, UUIDs and Kubernetes names.
#include "reconcilers/profile/go_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "k8sclient/value/ascii.h"

namespace gso {
namespace {

using k8s::is_digit;
using k8s::is_hex_digit;
using k8s::to_lower;

bool is_lower_alnum(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z');
}
constexpr std::uint64_t kDurationLimit = std::uint64_t{1} << 63;

// The digits at the front of `text`; nullopt on overflow.
std::optional<std::uint64_t> leading_int(std::string_view& text) {
  std::uint64_t value = 0;
  while (!text.empty() && is_digit(text[0])) {
    if (value > kDurationLimit / 10) {
      return std::nullopt;
    }
    value = value * 10 + static_cast<std::uint64_t>(text[0] - '0');
    if (value > kDurationLimit) {
      return std::nullopt;
    }
    text.remove_prefix(1);
  }
  return value;
}

struct Fraction {
  std::uint64_t digits = 0;
  double scale = 1;
};

// The digits after the point; those beyond the precision are dropped.
Fraction leading_fraction(std::string_view& text) {
  Fraction fraction;
  bool full = false;
  for (; !text.empty() && is_digit(text[0]); text.remove_prefix(1)) {
    const auto digit = static_cast<std::uint64_t>(text[0] - '0');
    full = full || fraction.digits > (kDurationLimit - 1) / 10 || fraction.digits * 10 + digit > kDurationLimit;
    if (!full) {
      fraction.digits = fraction.digits * 10 + digit;
      fraction.scale *= 10;
    }
  }
  return fraction;
}

std::uint64_t nanoseconds_of(std::string_view unit) {
  static constexpr std::array<std::pair<std::string_view, std::uint64_t>, 8> kUnits{{{"ns", 1},
                                                                                     {"us", 1'000},
                                                                                     {"\u00b5s", 1'000},
                                                                                     {"\u03bcs", 1'000},
                                                                                     {"ms", 1'000'000},
                                                                                     {"s", 1'000'000'000},
                                                                                     {"m", 60'000'000'000},
                                                                                     {"h", 3'600'000'000'000}}};
  const auto found = std::find_if(kUnits.begin(), kUnits.end(), [&](const auto& u) { return u.first == unit; });
  return found == kUnits.end() ? 0 : found->second;
}

// One number with its unit, in nanoseconds.
std::optional<std::uint64_t> duration_part(std::string_view& text) {
  const auto before = text.size();
  const auto whole = leading_int(text);
  if (!whole) {
    return std::nullopt;
  }
  bool digits = text.size() != before;
  Fraction fraction;
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    const auto after_point = text.size();
    fraction = leading_fraction(text);
    digits = digits || text.size() != after_point;
  }
  const auto unit_end = std::find_if(text.begin(), text.end(), [](char c) { return c == '.' || is_digit(c); });
  const auto unit_length = static_cast<std::size_t>(unit_end - text.begin());
  const std::uint64_t unit = nanoseconds_of(text.substr(0, unit_length));
  text.remove_prefix(unit_length);
  if (!digits || unit == 0 || *whole > kDurationLimit / unit) {
    return std::nullopt;
  }
  std::uint64_t value = *whole * unit;
  if (fraction.digits > 0) {
    value +=
        static_cast<std::uint64_t>(static_cast<double>(fraction.digits) * (static_cast<double>(unit) / fraction.scale));
  }
  return value > kDurationLimit ? std::nullopt : std::optional(value);
}

}  // namespace

bool equal_fold(std::string_view key, std::string_view field) {
  std::size_t at = 0;
  for (const char wanted : field) {
    const std::string_view rest = key.substr(std::min(at, key.size()));
    if (rest.empty()) {
      return false;
    }
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

std::optional<std::int64_t> parse_go_duration(std::string_view text) {
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    text.remove_prefix(1);
  }
  if (text == "0") {
    return 0;
  }
  if (text.empty()) {
    return std::nullopt;
  }
  std::uint64_t total = 0;
  while (!text.empty()) {
    if (text[0] != '.' && !is_digit(text[0])) {
      return std::nullopt;
    }
    const auto part = duration_part(text);
    if (!part) {
      return std::nullopt;
    }
    total += *part;
    if (total > kDurationLimit) {
      return std::nullopt;
    }
  }
  if (negative) {
    return static_cast<std::int64_t>(std::uint64_t{0} - total);
  }
  return total > kDurationLimit - 1 ? std::nullopt : std::optional(static_cast<std::int64_t>(total));
}

bool is_uuid(std::string_view text) {
  constexpr std::string_view kUrn = "urn:uuid:";
  if (text.size() == 32) {
    return std::all_of(text.begin(), text.end(), is_hex_digit);
  }
  if (text.size() == 36 + kUrn.size()) {
    for (std::size_t i = 0; i < kUrn.size(); ++i) {
      if (to_lower(text[i]) != kUrn[i]) {
        return false;
      }
    }
    text.remove_prefix(kUrn.size());
  } else if (text.size() == 38) {
    text = text.substr(1, 36);  // Upstream does not look at the two characters around it.
  }
  if (text.size() != 36) {
    return false;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : !is_hex_digit(text[i])) {
      return false;
    }
  }
  return true;
}

bool is_dns1123_subdomain(std::string_view text) {
  if (text.empty() || text.size() > 253) {
    return false;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool edge = i == 0 || i + 1 == text.size() || text[i - 1] == '.' || text[i + 1] == '.';
    if (!is_lower_alnum(text[i]) && (edge || (text[i] != '-' && text[i] != '.'))) {
      return false;
    }
    if (text[i] == '.' && edge) {
      return false;
    }
  }
  return true;
}

}  // namespace gso
