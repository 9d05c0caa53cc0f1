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

void ProfileDecoder::error(std::string code, Position at, std::string message) {
  diagnostics_.push_back({Diagnostic::Severity::error, std::move(code), path_, at.line, at.column, std::move(message)});
}

void ProfileDecoder::warning(std::string code, Position at, std::string message) {
  diagnostics_.push_back(
      {Diagnostic::Severity::warning, std::move(code), path_, at.line, at.column, std::move(message)});
}

void ProfileDecoder::info(std::string code, Position at, std::string message) {
  diagnostics_.push_back({Diagnostic::Severity::info, std::move(code), path_, at.line, at.column, std::move(message)});
}

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

void ProfileDecoder::unknown_field(const DocumentMember& member, Fields fields) {
  if (++unknown_fields_ > kMostReported) return;
  const PathStep step(path_, member.key);
  for (const std::string_view field : fields) {
    if (equal_fold(member.key, field)) {
      warning("WrongCase", member.key_at,
              fmt::format("\"{}\" is ignored: the name is case-sensitive here; write \"{}\"", shown_value(member.key),
                          field));
      return;
    }
  }
  warning(
      "UnknownField", member.key_at,
      fmt::format("\"{}\" is ignored: unknown field; {}", shown_value(member.key), field_advice(member.key, fields)));
}

std::string ProfileDecoder::misspelling_of(std::string_view field, const DocumentValue& object, Fields fields) const {
  if (unknown_fields_ > kMostReported) return {};
  const auto found = std::ranges::find_if(object.members, [&](const DocumentMember& member) {
    return std::ranges::find(fields, member.key) == fields.end() && nearest_word(member.key, fields) == field;
  });
  return found == object.members.end() ? "" : fmt::format("; write \"{}\" for \"{}\"", field, shown_value(found->key));
}

void ProfileDecoder::missing(const DocumentValue& entry, std::string_view field, std::string code, std::string message,
                             Fields fields) {
  if (entry.find(field) == nullptr) error(std::move(code), entry.at, message + misspelling_of(field, entry, fields));
}

void ProfileDecoder::members(const DocumentValue& object, Fields fields, bool ignoring_case,
                             const std::function<void(std::string_view, const DocumentMember&)>& visit) {
  std::vector<std::string_view> seen;
  for (const DocumentMember& member : object.members) {
    auto field = std::find(fields.begin(), fields.end(), member.key);
    if (field == fields.end() && ignoring_case) {
      field = std::find_if(fields.begin(), fields.end(), [&](std::string_view f) { return equal_fold(member.key, f); });
    }
    if (field == fields.end()) {
      unknown_field(member, fields);
      continue;
    }
    if (member.key != *field) {
      const PathStep step(path_, member.key);
      info("UnusualCase", member.key_at,
           fmt::format("\"{}\" is read as \"{}\"; use this spelling", shown_value(member.key), *field));
    }
    if (std::find(seen.begin(), seen.end(), *field) != seen.end()) {
      const PathStep step(path_, member.key);
      warning("DuplicateKey", member.key_at,
              fmt::format("\"{}\" appears more than once, in different case; one overwrites the other", *field));
    }
    seen.push_back(*field);
    visit(*field, member);
  }
}

RawProfile ProfileDecoder::decode(const DocumentValue& document) {
  if (document.is_null()) return raw_;
  if (!expect_object(document)) return raw_;
  reset_misplaced_flags(document);
  members(document, kConfigFields, true, [this](std::string_view field, const DocumentMember& member) {
    const DocumentValue& value = member.value;
    if (field == "version") {
      if (value.is_string()) {
        raw_.version = value.text;
        raw_.version_at = value.at;
      } else if (!value.is_null()) {
        wrong_type(value, "the string v1");
      }
    } else if (value.is_null() || !expect_object(value)) {
      return;  // null leaves every part as it is.
    } else if (field == "flags") {
      const PathStep step(path_, field);
      settings(value, kFlags, kFlagFields);
    } else if (field == "resources") {
      raw_.resources_at = member.key_at;
      resources(value);
    } else if (field == "sharing") {
      sharing(value);
    } else {
      const PathStep step(path_, field);
      settings(value, kImex, kImexFields);
    }
  });
  if (!raw_.version.empty() && raw_.version != "v1") {
    const PathStep step(path_, "version");
    error("UnknownVersion", raw_.version_at,
          fmt::format("version is \"{}\"; the only supported version is v1", shown_value(raw_.version)));
  }
  return raw_;
}

void ProfileDecoder::settings(const DocumentValue& value, std::span<const SettingField> fields, Fields names) {
  members(value, names, true, [&](std::string_view field, const DocumentMember& member) {
    const PathStep step(path_, field);
    const SettingKind kind = std::ranges::find(fields, field, &SettingField::name)->kind;
    if (!member.value.is_null()) {
      setting(member.value, kind);
    } else if (kind == SettingKind::section) {
      std::erase_if(raw_.settings, [&](const auto& each) { return each.first.starts_with(path_ + "."); });
    } else if (kind != SettingKind::plain_boolean) {
      raw_.settings.erase(path_);
    }
  });
}

void ProfileDecoder::setting(const DocumentValue& value, SettingKind kind) {
  switch (kind) {
    case SettingKind::text:
      return plain_setting(value, DocumentValue::Kind::string, "a string (quote it)");
    case SettingKind::boolean:
    case SettingKind::plain_boolean:
      return plain_setting(value, DocumentValue::Kind::boolean, "true or false (without quotes)");
    case SettingKind::duration:
      return duration_setting(value);
    case SettingKind::words:
      return device_list_setting(value);
    case SettingKind::numbers:
      return channel_ids_setting(value);
    case SettingKind::section:
      break;
  }
  if (!expect_object(value)) return;
  path_.ends_with("gfd") ? settings(value, kGfdFlags, kGfdFields) : settings(value, kPluginFlags, kPluginFields);
}

void ProfileDecoder::plain_setting(const DocumentValue& value, DocumentValue::Kind kind, std::string_view wanted) {
  if (value.kind != kind) return wrong_type(value, wanted);
  raw_.settings[path_] = {value.text, value.at, {}};
}

void ProfileDecoder::device_list_setting(const DocumentValue& value) {
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
  raw_.settings[path_] = {fmt::format("{}", fmt::join(strategies, ",")),
                          value.at,
                          {},
                          std::vector<std::string>(strategies.begin(), strategies.end())};
}

void ProfileDecoder::duration_setting(const DocumentValue& value) {
  constexpr auto kForms = "a duration like \"60s\" or \"1h30m\", or \"infinite\"";
  if (value.is_string()) {
    const auto duration =
        value.text == "infinite" ? std::optional(k8s::Duration::max()) : k8s::parse_go_duration(value.text);
    if (duration) {
      raw_.settings[path_] = {std::to_string(duration->count()), value.at, {}};
    } else {
      error("InvalidDuration", value.at,
            fmt::format("\"{}\" is not a duration; write {}", shown_value(value.text), kForms));
    }
  } else if (value.kind == DocumentValue::Kind::number) {
    const double number = parse_go_float(value.text).value_or(0);
    const bool fits = std::fabs(number) < 9.2e18;
    raw_.settings[path_] = {std::to_string(fits ? static_cast<std::int64_t>(number) : 0), value.at, {}};
    warning("DurationWithoutUnit", value.at,
            fmt::format("a number without a unit counts nanoseconds; write {}", kForms));
  } else {
    wrong_type(value, kForms);
  }
}

void ProfileDecoder::channel_ids_setting(const DocumentValue& value) {
  if (!value.is_array()) return wrong_type(value, "a list of channel IDs");
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    const PathStep step(path_, i);
    const DocumentValue& item = value.items[i];
    const auto id = item.kind == DocumentValue::Kind::number ? parse_go_int(item.text, 10) : std::nullopt;
    if (!id && !item.is_null()) wrong_type(item, "an integer");
    ids.push_back(id.value_or(0));
  }
  raw_.settings[path_] = {fmt::format("{}", fmt::join(ids, ",")), value.at, {}};
}

// Upstream's conversion to JSON looks up the fields of flags.plugin and flags.gfd among the fields of flags itself, and
// sets each one that it finds there to empty: `flags.plugin.migStrategy: single` makes flags.migStrategy empty.
void ProfileDecoder::reset_misplaced_flags(const DocumentValue& document) {
  for (const DocumentMember& flags : document.members) {
    if (find_field(kConfigFields, flags.key) != std::ranges::find(kConfigFields, "flags")) continue;
    for (const DocumentMember& nested : flags.value.members) {
      if (find_field(kFlagFields, nested.key) != kFlagFields.end())
        reset_misplaced(nested.value, "flags." + nested.key, "flags.", kFlags);
    }
  }
}

void ProfileDecoder::reset_misplaced(const DocumentValue& value, const std::string& where, const std::string& owner,
                                     std::span<const SettingField> fields) {
  for (const DocumentMember& member : value.members) {
    const auto field =
        std::ranges::find_if(fields, [&](const SettingField& f) { return equal_fold(member.key, f.name); });
    if (field == fields.end()) continue;
    const std::string path = owner + std::string(field->name);
    std::string place = fmt::format("{}.{}", where, member.key);
    if (field->kind == SettingKind::section) {
      using Inner = std::span<const SettingField>;
      reset_misplaced(member.value, place, path + ".", field->name == "gfd" ? Inner(kGfdFlags) : Inner(kPluginFlags));
      continue;
    }
    const std::string_view empty = field->kind == SettingKind::duration  ? "0"
                                   : field->kind == SettingKind::boolean ? "false"
                                                                         : "";
    raw_.settings[path] = {std::string(empty), member.key_at, std::move(place)};
  }
}

void ProfileDecoder::resources(const DocumentValue& value) {
  const PathStep step(path_, "resources");
  members(value, kResourcesFields, true, [this](std::string_view field, const DocumentMember& member) {
    const PathStep inner(path_, field);
    if (member.value.is_null()) return;
    if (!member.value.is_array()) {
      wrong_type(member.value, "a list of {pattern, name}");
      return;
    }
    raw_.custom_resources = raw_.custom_resources || !member.value.items.empty();
    for (std::size_t i = 0; i < member.value.items.size(); ++i) {
      const PathStep item(path_, i);
      pattern_entry(member.value.items[i]);
    }
  });
}

void ProfileDecoder::pattern_entry(const DocumentValue& value) {
  if (!value.is_null() && !expect_object(value)) return;
  members(value, kPatternFields, false, [&](std::string_view field, const DocumentMember& member) {
    const PathStep inner(path_, field);
    if (field == "name") {
      static_cast<void>(resource_name(member.value));
    } else if (!member.value.is_string() && !member.value.is_null()) {
      wrong_type(member.value, "a string, for example '*'");
    }
  });
  missing(value, "pattern", "PatternMissing", "an entry needs a \"pattern\", for example '*'", kPatternFields);
  missing(value, "name", "NameMissing", "an entry needs a \"name\"", kPatternFields);
}

}  // namespace gso
