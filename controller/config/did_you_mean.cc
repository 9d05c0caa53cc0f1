#include "controller/config/did_you_mean.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace gso {
namespace {

// Edits between two words (Levenshtein).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

// More edits than this are another word, not a typing error.
std::size_t most_edits(std::string_view word) {
  return word.size() < 4 ? 1 : word.size() < 8 ? 2 : 3;
}

}  // namespace

std::string did_you_mean(std::string_view mistyped, const std::vector<std::string>& words) {
  const std::string* found = nullptr;
  std::size_t best = most_edits(mistyped) + 1;
  for (const std::string& word : words) {
    const std::size_t edits = distance(mistyped, word);
    if (edits < best) {
      best = edits;
      found = &word;
    }
  }
  return found == nullptr ? "" : fmt::format("; did you mean '{}'?", *found);
}

}  // namespace gso
