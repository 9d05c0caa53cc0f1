// See crd_patterns.h.
#include "reconcilers/lint/crd_patterns.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace gso {
namespace {

bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

}  // namespace

bool is_object_name(std::string_view name) {
  constexpr std::size_t kMost = 253;
  char before = '.';
  for (const char c : name) {
    if (!is_lower_or_digit(c) && c != '-' && c != '.') return false;
    if ((before == '.' && !is_lower_or_digit(c)) || (c == '.' && !is_lower_or_digit(before))) return false;
    before = c;
  }
  return !name.empty() && name.size() <= kMost && is_lower_or_digit(before);
}

bool is_dns_label(std::string_view name) {
  constexpr std::size_t kMost = 63;
  return is_object_name(name) && name.size() <= kMost && !name.contains('.');
}

bool is_crd_duration(std::string_view text) {
  constexpr std::size_t kMost = 32;
  static constexpr std::array<std::string_view, 6> kUnits{"ns", "us", "ms", "s", "m", "h"};
  constexpr std::string_view kDigits = "0123456789";
  if (text.empty() || text.size() > kMost) return false;
  const auto digits = [&] {
    const std::size_t end = std::min(text.find_first_not_of(kDigits), text.size());
    text.remove_prefix(end);
    return end > 0;
  };
  while (!text.empty()) {
    if (!digits()) return false;
    if (text.starts_with('.')) {
      text.remove_prefix(1);
      if (!digits()) return false;
    }
    const auto suffix = std::ranges::find_if(kUnits, [&](std::string_view each) { return text.starts_with(each); });
    if (suffix == kUnits.end()) return false;
    text.remove_prefix(suffix->size());
  }
  return true;
}

bool is_nvidia_resource(std::string_view name) {
  constexpr std::string_view kPrefix = "nvidia.com/";
  constexpr std::size_t kMost = 63;
  if (!name.starts_with(kPrefix) || name.size() > kMost) return false;
  name.remove_prefix(kPrefix.size());
  return !name.empty() && is_lower_or_digit(name.front()) && is_lower_or_digit(name.back()) &&
         std::ranges::all_of(name, [&](char c) { return is_lower_or_digit(c) || c == '.' || c == '-'; });
}

}  // namespace gso
