#include "reconcilers/model/slice_resource.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace gso {

namespace {
constexpr std::string_view kPrefix = "nvidia.com/gpu-";
constexpr std::string_view kSuffix = "gb";
constexpr std::size_t kMostDigits = 5;
}  // namespace

std::optional<std::int64_t> slice_gigabytes(std::string_view resource) {
  if (!resource.starts_with(kPrefix) || !resource.ends_with(kSuffix)) return std::nullopt;
  if (resource.size() <= kPrefix.size() + kSuffix.size()) return std::nullopt;
  const std::string_view digits = resource.substr(kPrefix.size(), resource.size() - kPrefix.size() - kSuffix.size());
  const bool number = std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  if (!number || digits.front() == '0' || digits.size() > kMostDigits) return std::nullopt;
  std::int64_t gigabytes = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), gigabytes);
  return gigabytes;
}

std::string slice_resource(std::int64_t gigabytes) {
  return fmt::format("{}{}{}", kPrefix, gigabytes, kSuffix);
}

}  // namespace gso
