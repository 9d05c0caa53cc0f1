#include "controller/config/did_you_mean.h"

#include <fmt/format.h>

#include <cstddef>

#include "reconcilers/profile/field_names.h"

namespace gso {
namespace {

// More edits than this are another word, not a typing error.
std::size_t most_edits(std::string_view word) {
  return word.size() < 4 ? 1 : word.size() < 8 ? 2 : 3;
}

}  // namespace

std::string did_you_mean(std::string_view mistyped, const std::vector<std::string>& words) {
  const std::string* found = nullptr;
  std::size_t best = most_edits(mistyped) + 1;
  constexpr std::size_t kBeginning = 3;
  for (const std::string& word : words) {
    // The beginning of a word is that word, cut off, rather than another one with an error in it.
    const bool begins = mistyped.size() >= kBeginning && word.starts_with(mistyped);
    const std::size_t edits = begins ? 0 : edit_distance(mistyped, word);
    if (edits < best) {
      best = edits;
      found = &word;
    }
  }
  return found == nullptr ? "" : fmt::format("; did you mean '{}'?", *found);
}

}  // namespace gso
