// Did-you-mean: by edit distance, by meaning, and by the place a known field belongs to.
#include "reconcilers/profile/field_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <ranges>
#include <utility>

#include "k8sclient/value/encoding.h"
#include "k8sclient/value/selectors.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/go_text.h"

namespace gso {

namespace {

struct Place {
  std::string_view where;
  ProfileFields fields;
};
constexpr std::array<Place, 9> kPlaces{
    {{"the top level", kConfigFields},
     {"sharing", kSharingFields},
     {"sharing.timeSlicing or sharing.mps", kSectionFields},
     {"an entry of sharing.timeSlicing.resources or sharing.mps.resources", kEntryFields},
     {"flags", kFlags},
     {"flags.plugin", kPluginFlags},
     {"flags.gfd", kGfdFlags},
     {"resources", kResourcesFields},
     {"imex", kImex}}};

constexpr std::size_t kMostCounted = 64;

// The characters that count.
class Folded {
 public:
  Folded(std::string_view text, std::string_view ignored) {
    for (const char c : text.substr(0, kMostCounted))
      if (ignored.find(c) == std::string_view::npos) text_[size_++] = k8s::to_lower(c);
  }
  [[nodiscard]] std::string_view view() const { return {text_.data(), size_}; }

 private:
  std::array<char, kMostCounted> text_{};
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

// --- Resources.
constexpr std::string_view kDomain = "nvidia.com";
constexpr std::string_view kShortDomain = "nvidia";
constexpr std::string_view kPunctuation = "-_.";  // People confuse these.
constexpr std::size_t kMostEdits = 2;

struct Spelling {
  std::string_view plain;  // Without the domain.
  std::string_view meant;
  std::size_t most_edits;  // Names one edit from "gpu" belong to other plugins.
};
constexpr std::array<Spelling, 3> kSpellings{
    {{"gpu", "nvidia.com/gpu", 0}, {"gpus", "nvidia.com/gpu", 0}, {"gpu.shared", "nvidia.com/gpu.shared", kMostEdits}}};

}  // namespace

std::size_t edit_distance(std::string_view left, std::string_view right, std::size_t most, std::string_view ignored) {
  const Folded folded_left(left, ignored);
  const Folded folded_right(right, ignored);
  std::string_view a = folded_left.view();
  std::string_view b = folded_right.view();
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) > most) return most + 1;
  drop_common_ends(a, b);
  std::array<std::array<std::size_t, kMostCounted + 1>, 3> rows{};  // Of the table of distances, the last three.
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
    if (least > most) return most + 1;  // No later row has less.
  }
  return std::min(rows[a.size() % 3][b.size()], most + 1);
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

std::string word_advice(std::string_view word, std::span<const std::string_view> words, std::string_view otherwise) {
  const std::string_view near = nearest_word(word, words);
  return near.empty() ? fmt::format("{} {}", otherwise, fmt::join(words, ", "))
                      : fmt::format("did you mean \"{}\"?", near);
}

const ProfileField* find_field(ProfileFields fields, std::string_view key) {
  auto found = std::ranges::find(fields, key, &ProfileField::name);
  if (found == fields.end())
    found = std::ranges::find_if(fields, [&](const ProfileField& field) { return equal_fold(key, field.name); });
  return found == fields.end() ? nullptr : &*found;
}

std::string complaint_about(const SettingWords& allowed, std::string_view word) {
  const auto end = std::ranges::find(allowed.words, std::string_view());
  const std::span words(allowed.words.begin(), end);
  return std::ranges::find(words, word) != words.end() ? "" : word_advice(word, words);
}

std::vector<std::string_view> names_of(ProfileFields fields) {
  const auto names = fields | std::views::transform(&ProfileField::name);
  return {names.begin(), names.end()};
}

std::string field_advice(std::string_view key, ProfileFields fields) {
  constexpr std::string_view kAll = "known fields:";
  const std::vector<std::string_view> names = names_of(fields);
  if (!nearest_word(key, names).empty()) return word_advice(key, names, kAll);
  // The form of a SharingPolicy's inline profile.
  if (key == "strategy" && fields.data() == kSharingFields.data())
    return "the strategy is the name of a section: write timeSlicing or mps, with resources below it";
  // What is nested deeper comes first: a section is left out more often than written too much.
  std::array<Place, kPlaces.size()> in_order = kPlaces;
  const auto here = std::ranges::find(in_order, fields.data(), [](const Place& place) { return place.fields.data(); });
  std::rotate(in_order.begin(), here == in_order.end() ? in_order.begin() : here, in_order.end());
  for (const Place& place : in_order)
    if (std::ranges::find(place.fields, key, &ProfileField::name) != place.fields.end())
      return fmt::format("it belongs under {}", place.where);
  return word_advice(key, names, kAll);
}

std::string did_you_mean(std::string_view mistyped, const std::vector<std::string>& words) {
  const std::string* found = nullptr;
  // More edits than this are another word, not a typing error.
  std::size_t best = (mistyped.size() < 4 ? 1 : mistyped.size() < 8 ? 2 : 3) + 1;
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

std::string_view meant_resource(std::string_view resource) {
  const std::size_t slash = resource.find('/');
  if (slash == std::string_view::npos) return {};
  const std::string_view domain = resource.substr(0, slash);
  const std::string_view plain = resource.substr(slash + 1);
  if (!within_edits(domain, kDomain, kMostEdits, kPunctuation) && !equal_fold(domain, kShortDomain)) return {};
  for (const Spelling& each : kSpellings) {
    if (resource == each.meant) return {};
    if (within_edits(plain, each.plain, each.most_edits, kPunctuation)) return each.meant;
  }
  return {};
}

std::string repaired_name(std::string_view name) {
  std::string out;
  for (const char c : name.substr(name.starts_with(kDomainPrefix) ? kDomainPrefix.size() : 0))
    if (c >= 'A' && c <= 'Z')
      out += static_cast<char>(c - 'A' + 'a');
    else if (c == '+')
      out += '.';
    else if (c == '_')
      out += '-';
    else if (c != ' ')
      out += c;
  while (!out.empty() && (out.back() == '-' || out.back() == '.')) out.pop_back();
  return k8s::is_dns_subdomain(out) ? std::string(kDomainPrefix) + out : std::string();
}

namespace {

using Source = EffectiveKey::Source;

// The file that the fallback "named" looks for.
constexpr std::string_view kNamedFallback = "default";

EffectiveKey failed(std::string why) {
  return {Source::error, "", std::move(why)};
}

bool has_same_digits(std::string_view left, std::string_view right) {
  return std::ranges::equal(left | std::views::filter(k8s::is_digit), right | std::views::filter(k8s::is_digit));
}

}  // namespace

std::string key_advice(std::string_view name, const std::vector<std::string>& keys) {
  constexpr std::size_t kShortest = 3;  // One edit makes any two shorter words of each other.
  std::vector<std::string_view> candidates;
  for (const std::string& key : keys)
    if (key.size() >= kShortest && has_same_digits(key, name)) candidates.emplace_back(key);
  const std::string_view near = nearest_word(name, candidates);
  return near.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", shown_value(near));
}

EffectiveKey resolve_effective_key(std::string_view label_value, std::string_view default_key,
                                   const std::vector<std::string>& fallbacks, const std::vector<std::string>& keys) {
  // Kubelet's own entries ("..data") and other dot files are no keys for config-manager, as they are none of a
  // ConfigMap.
  const auto has = [&](std::string_view key) { return std::find(keys.begin(), keys.end(), key) != keys.end(); };
  if (keys.empty()) return failed("the ConfigMap has no key; config-manager exits, even with the fallback \"empty\"");
  if (!label_value.empty()) {
    return has(label_value)
               ? EffectiveKey{Source::label, std::string(label_value), ""}
               : failed(fmt::format("the node's label names the key \"{}\", which the ConfigMap does not have{}; "
                                    "it has {}",
                                    shown_value(label_value), key_advice(label_value, keys), first_names(keys)));
  }
  if (!default_key.empty()) {
    return has(default_key)
               ? EffectiveKey{Source::default_key, std::string(default_key), ""}
               : failed(fmt::format("the default key \"{}\" is not in the ConfigMap{}; it has {}",
                                    shown_value(default_key), key_advice(default_key, keys), first_names(keys)));
  }
  for (const std::string& fallback : fallbacks) {
    if (fallback == "empty") return {Source::fallback_empty, "", ""};
    if (fallback == "named" && has(kNamedFallback)) return {Source::fallback_named, std::string(kNamedFallback), ""};
    if (fallback == "single" && keys.size() == 1) return {Source::fallback_single, keys.front(), ""};
    if (fallback != "named" && fallback != "single")
      return failed(fmt::format("unknown fallback strategy \"{}\"; use named, single or empty", shown_value(fallback)));
  }
  return failed("the node has no label, no default key is set, and no fallback strategy resolves");
}

}  // namespace gso
