#include "reconcilers/model/switch_value.h"

#include <algorithm>

namespace gso {

namespace {

// `word` is in lower case.
bool is_word(std::string_view value, std::string_view word) {
  return std::ranges::equal(value, word, [](char given, char wanted) {
    const bool upper = given >= 'A' && given <= 'Z';
    return (upper ? static_cast<char>(given - 'A' + 'a') : given) == wanted;
  });
}

}  // namespace

bool says_no(std::string_view value) {
  constexpr std::string_view kNo[] = {"false", "0", "no", "off"};
  return std::ranges::any_of(kNo, [&](std::string_view word) { return is_word(value, word); });
}

bool is_switched_on(std::optional<std::string_view> value) {
  return value && !value->empty() && !says_no(*value);
}

}  // namespace gso
