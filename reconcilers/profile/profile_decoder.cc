// Decoding of the document: members, settings (flags and imex), custom resources.
#include "reconcilers/profile/profile_decoder.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "k8sclient/value/time.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/go_text.h"

namespace gso {
namespace {

constexpr int kMostReported = 500;  // Of unknown fields: each costs a search for advice.

}  // namespace

void ProfileDecoder::wrong_type(const DocumentValue& value, std::string_view wanted) {
  std::string shown(kind_name(value.kind));
  if (value.is_string()) {
    shown = fmt::format("the string \"{}\"", shown_value(value.text));
  } else if (value.kind == DocumentValue::Kind::number || value.kind == DocumentValue::Kind::boolean) {
    shown = fmt::format("the {} {}", shown.substr(2), shown_value(value.text));  // "a number"
  }
  error("WrongType", value.at, fmt::format("expected {}, found {}", wanted, shown));
}

bool ProfileDecoder::expect_object(const DocumentValue& value) {
  if (!value.is_object()) wrong_type(value, "a mapping");
  return value.is_object();
}

void ProfileDecoder::unknown_field(const DocumentMember& member, ConfigFields fields) {
  if (++unknown_fields_ > kMostReported) return;
  const PathStep step(path_, member.key);
  if (const ConfigField* field = find_field(fields, member.key)) {
    return warning("WrongCase", member.key_at,
                   fmt::format("\"{}\" is ignored: the name is case-sensitive here; write \"{}\"",
                               shown_value(member.key), field->name));
  }
  warning(
      "UnknownField", member.key_at,
      fmt::format("\"{}\" is ignored: unknown field; {}", shown_value(member.key), field_advice(member.key, fields)));
}

std::string ProfileDecoder::misspelling_of(std::string_view field, const DocumentValue& object,
                                           ConfigFields fields) const {
  if (unknown_fields_ > kMostReported) return {};
  const std::vector<std::string_view> names = names_of(fields);
  const auto found = std::ranges::find_if(object.members, [&](const DocumentMember& member) {
    return std::ranges::find(names, member.key) == names.end() && nearest_word(member.key, names) == field;
  });
  return found == object.members.end() ? "" : fmt::format("; write \"{}\" for \"{}\"", field, shown_value(found->key));
}

void ProfileDecoder::missing(const DocumentValue& entry, std::string_view field, std::string_view code,
                             std::string message, ConfigFields fields) {
  if (entry.find(field) == nullptr) error(code, entry.at, message + misspelling_of(field, entry, fields));
}

void ProfileDecoder::members(const DocumentValue& object, ConfigFields fields, bool ignoring_case,
                             const std::function<void(const ConfigField&, const DocumentMember&)>& visit) {
  std::vector<const ConfigField*> seen;
  const bool top_level = path_.empty();
  for (const DocumentMember& member : object.members) {
    const ConfigField* field = find_field(fields, member.key);
    if (field == nullptr || (!ignoring_case && member.key != field->name)) {
      unknown_field(member, fields);
      continue;
    }
    if (member.key != field->name) {
      const PathStep step(path_, member.key);
      info("UnusualCase", member.key_at,
           fmt::format("\"{}\" is read as \"{}\"; use this spelling", shown_value(member.key), field->name));
    }
    if (std::ranges::find(seen, field) != seen.end()) {
      const PathStep step(path_, member.key);
      warning("DuplicateKey", member.key_at,
              fmt::format("\"{}\" appears more than once, in different case; one overwrites the other", field->name));
    }
    seen.push_back(field);
    if (top_level) {
      visit(*field, member);
    } else {
      const PathStep step(path_, field->name);
      visit(*field, member);
    }
  }
}

DecodedProfile ProfileDecoder::decode(const DocumentValue& document) {
  if (document.is_null() || !expect_object(document)) return {};
  reset_misplaced_flags(document);
  std::string version;
  members(document, kConfigFields, true, [&](const ConfigField& field, const DocumentMember& member) {
    const DocumentValue& value = member.value;
    if (field.name == "version") {
      if (value.is_string()) {
        version = value.text;
        out_.places["version"] = value.at;
      } else if (!value.is_null()) {
        wrong_type(value, "the string v1");
      }
      return;
    }
    if (value.is_null() || !expect_object(value)) return;  // null leaves every part as it is.
    const PathStep step(path_, field.name);
    if (field.name == "flags") {
      settings(value, kFlags);
    } else if (field.name == "resources") {
      out_.places["resources"] = member.key_at;
      resources(value);
    } else if (field.name == "sharing") {
      sharing(value);
    } else {
      settings(value, kImex);
    }
  });
  if (!version.empty() && version != "v1") {
    const PathStep step(path_, "version");
    error("UnknownVersion", out_.place("version"),
          fmt::format("version is \"{}\"; the only supported version is v1", shown_value(version)));
  }
  return std::move(out_);
}

void ProfileDecoder::settings(const DocumentValue& value, ConfigFields fields) {
  members(value, fields, true, [&](const ConfigField& field, const DocumentMember& member) {
    if (!member.value.is_null()) {
      setting(member.value, field);
    } else if (field.kind == FieldKind::section) {
      std::erase_if(out_.settings, [&](const auto& each) { return each.first.starts_with(path_ + "."); });
    } else if (field.kind != FieldKind::plain_boolean) {
      out_.settings.erase(path_);
    }
  });
}

void ProfileDecoder::setting(const DocumentValue& value, const ConfigField& field) {
  switch (field.kind) {
    case FieldKind::text:
    case FieldKind::boolean:
    case FieldKind::plain_boolean:
      return plain_setting(value, field);
    case FieldKind::duration:
      return duration_setting(value, field);
    case FieldKind::words:
      return device_list_setting(value, field);
    case FieldKind::numbers:
      return channel_ids_setting(value, field);
    case FieldKind::section:
      if (expect_object(value)) settings(value, field.settings);
  }
}

void ProfileDecoder::set(const ConfigField& field, Position at, std::string text,
                         std::optional<std::vector<std::string>> words) {
  out_.settings[path_] = {&field, std::move(text), "", std::move(words)};
  out_.places[path_] = at;
}

void ProfileDecoder::plain_setting(const DocumentValue& value, const ConfigField& field) {
  const bool text = field.kind == FieldKind::text;
  if (value.kind != (text ? DocumentValue::Kind::string : DocumentValue::Kind::boolean))
    return wrong_type(value, text ? "a string (quote it)" : "true or false (without quotes)");
  set(field, value.at, value.text);
}

void ProfileDecoder::device_list_setting(const DocumentValue& value, const ConfigField& field) {
  std::set<std::string> strategies;
  if (value.is_string()) {
    strategies.insert(value.text);
  } else if (!value.is_array()) {
    return wrong_type(value, "a string or a list of strings");
  }
  for (const DocumentValue& item : value.items) {
    if (!item.is_string() && !item.is_null()) return wrong_type(item, "a string");
    strategies.insert(item.text);
  }
  set(field, value.at, fmt::format("{}", fmt::join(strategies, ",")),
      std::vector(strategies.begin(), strategies.end()));
}

void ProfileDecoder::duration_setting(const DocumentValue& value, const ConfigField& field) {
  constexpr auto kForms = "a duration like \"60s\" or \"1h30m\", or \"infinite\"";
  if (value.is_string()) {
    const auto duration =
        value.text == "infinite" ? std::optional(k8s::Duration::max()) : k8s::parse_go_duration(value.text);
    if (duration) {
      set(field, value.at, std::to_string(duration->count()));
    } else {
      error("InvalidDuration", value.at,
            fmt::format("\"{}\" is not a duration; write {}", shown_value(value.text), kForms));
    }
  } else if (value.kind == DocumentValue::Kind::number) {
    const double number = parse_go_float(value.text).value_or(0);
    const bool fits = std::fabs(number) < 9.2e18;
    set(field, value.at, std::to_string(fits ? static_cast<std::int64_t>(number) : 0));
    warning("DurationWithoutUnit", value.at,
            fmt::format("a number without a unit counts nanoseconds; write {}", kForms));
  } else {
    wrong_type(value, kForms);
  }
}

void ProfileDecoder::channel_ids_setting(const DocumentValue& value, const ConfigField& field) {
  if (!value.is_array()) return wrong_type(value, "a list of channel IDs");
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    const PathStep step(path_, i);
    const DocumentValue& item = value.items[i];
    const auto id = item.kind == DocumentValue::Kind::number ? parse_go_int(item.text, 10) : std::nullopt;
    if (!id && !item.is_null()) wrong_type(item, "an integer");
    ids.push_back(id.value_or(0));
  }
  set(field, value.at, fmt::format("{}", fmt::join(ids, ",")));
}

// Upstream's conversion to JSON looks up the fields of flags.plugin and flags.gfd among the fields of flags itself, and
// sets each one that it finds there to empty: `flags.plugin.migStrategy: single` makes flags.migStrategy empty.
void ProfileDecoder::reset_misplaced_flags(const DocumentValue& document) {
  for (const DocumentMember& flags : document.members) {
    const ConfigField* field = find_field(kConfigFields, flags.key);
    if (field == nullptr || field->name != "flags") continue;
    for (const DocumentMember& nested : flags.value.members) {
      if (find_field(kFlags, nested.key) != nullptr)
        reset_misplaced(nested.value, "flags." + nested.key, "flags.", kFlags);
    }
  }
}

void ProfileDecoder::reset_misplaced(const DocumentValue& value, const std::string& where, const std::string& owner,
                                     ConfigFields fields) {
  for (const DocumentMember& member : value.members) {
    const ConfigField* field = find_field(fields, member.key);
    if (field == nullptr) continue;
    const std::string path = owner + std::string(field->name);
    std::string place = fmt::format("{}.{}", where, member.key);
    if (field->kind == FieldKind::section) {
      reset_misplaced(member.value, place, path + ".", field->settings);
      continue;
    }
    const std::string_view empty = field->kind == FieldKind::duration  ? "0"
                                   : field->kind == FieldKind::boolean ? "false"
                                                                       : "";
    out_.settings[path] = {field, std::string(empty), std::move(place)};
    out_.places[path] = member.key_at;
  }
}

void ProfileDecoder::resources(const DocumentValue& value) {
  members(value, kResourcesFields, true, [this](const ConfigField&, const DocumentMember& member) {
    if (member.value.is_null()) return;
    if (!member.value.is_array()) return wrong_type(member.value, "a list of {pattern, name}");
    out_.custom_resources = out_.custom_resources || !member.value.items.empty();
    for (std::size_t i = 0; i < member.value.items.size(); ++i) {
      const PathStep item(path_, i);
      pattern_entry(member.value.items[i]);
    }
  });
}

void ProfileDecoder::pattern_entry(const DocumentValue& value) {
  if (!value.is_null() && !expect_object(value)) return;
  members(value, kPatternFields, false, [&](const ConfigField& field, const DocumentMember& member) {
    if (field.name == "name") {
      static_cast<void>(resource_name(member.value));
    } else if (!member.value.is_string() && !member.value.is_null()) {
      wrong_type(member.value, "a string, for example '*'");
    }
  });
  missing(value, "pattern", "PatternMissing", "an entry needs a \"pattern\", for example '*'", kPatternFields);
  missing(value, "name", "NameMissing", "an entry needs a \"name\"", kPatternFields);
}

Position DecodedProfile::place(std::string_view path) const {
  for (auto found = places.find(path); found == places.end(); found = places.find(path)) {
    const auto end = path.find_last_of(".[");
    if (end == std::string_view::npos) return {};
    path = path.substr(0, end);
  }
  return places.find(path)->second;
}

}  // namespace gso
