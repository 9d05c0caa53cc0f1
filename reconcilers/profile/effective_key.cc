#include "reconcilers/profile/effective_key.h"

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/field_names.h"

namespace gso {
namespace {

using Source = EffectiveKey::Source;

// The file that the fallback "named" looks for.
constexpr std::string_view kNamedFallback = "default";

EffectiveKey failed(std::string why) {
  return {Source::error, "", std::move(why)};
}

bool has_same_digits(std::string_view left, std::string_view right) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return std::ranges::equal(left | std::views::filter(is_digit), right | std::views::filter(is_digit));
}

}  // namespace

std::string key_advice(std::string_view name, const std::vector<std::string>& keys) {
  constexpr std::size_t kShortest = 3;  // One edit makes any two shorter words of each other.
  std::vector<std::string_view> candidates;
  for (const std::string& key : keys) {
    if (key.size() >= kShortest && has_same_digits(key, name)) candidates.emplace_back(key);
  }
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
    if (fallback == "named") {
      if (has(kNamedFallback)) {
        return {Source::fallback_named, std::string(kNamedFallback), ""};
      }
    } else if (fallback == "single") {
      if (keys.size() == 1) {
        return {Source::fallback_single, keys.front(), ""};
      }
    } else if (fallback == "empty") {
      return {Source::fallback_empty, "", ""};
    } else {
      return failed(fmt::format("unknown fallback strategy \"{}\"; use named, single or empty", shown_value(fallback)));
    }
  }
  return failed("the node has no label, no default key is set, and no fallback strategy resolves");
}

}  // namespace gso
