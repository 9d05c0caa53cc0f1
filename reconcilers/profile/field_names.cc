// Did-you-mean for field names: by edit distance, by meaning, and by the place a known field belongs to.
#include "reconcilers/profile/field_names.h"

#include <algorithm>
#include <array>
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

namespace {

// The characters that count, at most 64 of the text.
class Folded {
 public:
  Folded(std::string_view text, std::string_view ignored) {
    for (const char c : text.substr(0, kMost)) {
      if (ignored.find(c) == std::string_view::npos) text_[size_++] = folded(c);
    }
  }
  [[nodiscard]] std::string_view view() const { return {text_.data(), size_}; }

 private:
  static constexpr std::size_t kMost = 64;
  std::array<char, kMost> text_{};
  std::size_t size_ = 0;
};

// What both begin and end with takes no edit.
void drop_common_ends(std::string_view& a, std::string_view& b) {
  while (!a.empty() && !b.empty() && a.front() == b.front()) {
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  while (!a.empty() && !b.empty() && a.back() == b.back()) {
    a.remove_suffix(1);
    b.remove_suffix(1);
  }
}

}  // namespace

bool within_edits(std::string_view left, std::string_view right, std::size_t most, std::string_view ignored) {
  const Folded folded_left(left, ignored);
  const Folded folded_right(right, ignored);
  std::string_view a = folded_left.view();
  std::string_view b = folded_right.view();
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) > most) return false;
  drop_common_ends(a, b);
  std::array<std::array<std::size_t, 65>, 3> rows{};  // Of edit_distance(), the last three.
  std::iota(rows[0].begin(), rows[0].end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& back = rows[(i - 1) % 3];
    const auto& two_back = rows[(i + 1) % 3];
    row[0] = i;
    std::size_t least = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({back[j] + 1, row[j - 1] + 1, back[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], two_back[j - 2] + 1);
      least = std::min(least, row[j]);
    }
    if (least > most) return false;  // No later row has less.
  }
  return rows[a.size() % 3][b.size()] <= most;
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
  const auto& all = places();
  const auto here = std::ranges::find(all, fields.data(), [](const Place& place) { return place.fields.data(); });
  // The form of a SharingPolicy's inline profile.
  if (key == "strategy" && fields.data() == kSharingFields.data())
    return "the strategy is the name of a section: write timeSlicing or mps, with resources below it";
  // What is nested deeper comes first: a section is left out more often than written too much.
  std::vector<Place> in_order(here == all.end() ? all.begin() : here, all.end());
  in_order.insert(in_order.end(), all.begin(), here == all.end() ? all.begin() : here);
  for (const Place& place : in_order) {
    if (std::find(place.fields.begin(), place.fields.end(), key) != place.fields.end()) {
      return fmt::format("it belongs under {}", place.where);
    }
  }
  return fmt::format("known fields: {}", fmt::join(fields, ", "));
}

}  // namespace gso
