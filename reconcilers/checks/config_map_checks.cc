// See config_map_checks.h.
#include "reconcilers/checks/config_map_checks.h"

#include <algorithm>

#include <fmt/format.h>

#include "reconcilers/model/foreign_text.h"
#include "reconcilers/profile/expected.h"

namespace gso {

std::string key_label_problem(std::string_view key) {
  if (is_label_value(key)) return {};
  return fmt::format(
      "the key \"{}\" cannot be chosen by a node label: a label value has at most 63 letters, digits, '-', '_' and "
      "'.', with a letter or digit at both ends",
      shown_value(key));
}

std::string volume_name_problem(std::string_view name) {
  constexpr std::size_t kMaxVolumeName = 63;
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const bool fits = !name.empty() && name.size() <= kMaxVolumeName && plain(name.front()) && plain(name.back()) &&
                    std::ranges::all_of(name, [&](char c) { return plain(c) || c == '-'; });
  if (fits) return {};
  return "a volume name has at most 63 lower case letters, digits and '-', with a letter or digit at both ends";
}

}  // namespace gso
