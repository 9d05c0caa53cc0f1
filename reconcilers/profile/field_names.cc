// Did-you-mean for field names: by edit distance, by meaning, and by the place a known field belongs to.
#include "reconcilers/profile/field_names.h"

#include <cctype>
#include <cstddef>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gso {
namespace {

char folded(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

struct Place {
  std::string_view where;
  std::span<const std::string_view> fields;
};

const std::array<Place, 9>& places() {
  static const std::array<Place, 9> kPlaces{
      {{"the top level", kConfigFields},
       {"sharing", kSharingFields},
       {"sharing.timeSlicing or sharing.mps", kSectionFields},
       {"an entry of sharing.timeSlicing.resources or sharing.mps.resources", kEntryFields},
       {"flags", kFlagFields},
       {"flags.plugin", kPluginFields},
       {"flags.gfd", kGfdFields},
       {"resources", kResourcesFields},
       {"imex", kImexFields}}};
  return kPlaces;
}

}  // namespace

std::size_t edit_distance(std::string_view left, std::string_view right) {
  const auto strip = [](std::string_view text) {
    std::string out;
    for (const char c : text.substr(0, 64)) {
      if (c != '-' && c != '_') {
        out += folded(c);
      }
    }
    return out;
  };
  const std::string a = strip(left);
  const std::string b = strip(right);
  std::vector<std::size_t> two_back(b.size() + 1);
  std::vector<std::size_t> back(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(back.begin(), back.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({back[j] + 1, row[j - 1] + 1, back[j - 1] + cost});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], two_back[j - 2] + 1);
      }
    }
    two_back.swap(back);
    back.swap(row);
  }
  return back[b.size()];
}

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::size_t best_distance = 0;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (best.empty() || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  const std::size_t allowed = best.size() <= 3 ? 1 : best.size() <= 6 ? 2 : best.size() / 3;
  return best_distance <= allowed ? best : std::string_view();
}

std::string field_advice(std::string_view key, std::span<const std::string_view> fields) {
  if (const auto near = nearest_word(key, fields); !near.empty()) {
    return fmt::format("did you mean \"{}\"?", near);
  }
  for (const Place& place : places()) {
    if (std::find(place.fields.begin(), place.fields.end(), key) != place.fields.end()) {
      return fmt::format("it belongs under {}", place.where);
    }
  }
  return fmt::format("known fields: {}", fmt::join(fields, ", "));
}

}  // namespace gso
