// Decoding of the document: members, flags, imex, custom resources.
#include "reconcilers/profile/profile_decoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reconcilers/model/foreign_text.h"
#include "reconcilers/profile/decode_members.h"
#include "reconcilers/profile/document_path.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/profile/go_numbers.h"
#include "reconcilers/profile/go_text.h"

namespace gso {

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
  if (value.kind == DocumentValue::Kind::number) {
    shown = fmt::format("the number {}", shown_value(value.text));
  } else if (value.is_string()) {
    shown = fmt::format("the string \"{}\"", shown_value(value.text));
  } else if (value.kind == DocumentValue::Kind::boolean) {
    shown = fmt::format("the boolean {}", value.boolean);
  }
  error("WrongType", value.at, fmt::format("expected {}, found {}", wanted, shown));
}

bool ProfileDecoder::expect_object(const DocumentValue& value) {
  if (!value.is_object()) {
    wrong_type(value, "a mapping");
  }
  return value.is_object();
}

namespace {

constexpr int kMostReported = 500;  // Of unknown fields: each costs a search for advice.

}  // namespace

void ProfileDecoder::unknown_field(const DocumentMember& member, Fields fields) {
  if (++unknown_fields_ > kMostReported) {
    return;
  }
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

RawProfile ProfileDecoder::decode(const DocumentValue& document) {
  if (document.is_null()) {
    return raw_;
  }
  if (!expect_object(document)) {
    return raw_;
  }
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
      flags(value);
    } else if (field == "resources") {
      raw_.resources_at = member.key_at;
      resources(value);
    } else if (field == "sharing") {
      sharing(value);
    } else {
      imex(value);
    }
  });
  if (!raw_.version.empty() && raw_.version != "v1") {
    const PathStep step(path_, "version");
    error("UnknownVersion", raw_.version_at,
          fmt::format("version is \"{}\"; the only supported version is v1", shown_value(raw_.version)));
  }
  return raw_;
}

void ProfileDecoder::drop_settings(std::string_view prefix) {
  std::erase_if(raw_.settings, [&](const auto& setting) { return setting.first.starts_with(prefix); });
}

void ProfileDecoder::string_setting(const DocumentValue& value) {
  if (value.is_null()) {
    raw_.settings.erase(path_);
  } else if (value.is_string()) {
    raw_.settings[path_] = {value.text, value.at, {}};
  } else {
    wrong_type(value, "a string (quote it)");
  }
}

void ProfileDecoder::boolean_setting(const DocumentValue& value) {
  if (value.is_null()) {
    raw_.settings.erase(path_);
  } else if (value.kind == DocumentValue::Kind::boolean) {
    raw_.settings[path_] = {value.boolean ? "true" : "false", value.at, {}};
  } else {
    wrong_type(value, "true or false (without quotes)");
  }
}

void ProfileDecoder::device_list_setting(const DocumentValue& value) {
  if (value.is_null()) {
    raw_.settings.erase(path_);
    return;
  }
  std::set<std::string> strategies;
  if (value.is_string()) {
    strategies.insert(value.text);
  } else if (!value.is_array()) {
    wrong_type(value, "a string or a list of strings");
    return;
  }
  for (const DocumentValue& item : value.items) {
    if (!item.is_string() && !item.is_null()) {
      wrong_type(item, "a string");
      return;
    }
    strategies.insert(item.text);
  }
  raw_.settings[path_] = {fmt::format("{}", fmt::join(strategies, ",")),
                          value.at,
                          {},
                          std::vector<std::string>(strategies.begin(), strategies.end())};
}

void ProfileDecoder::duration_setting(const DocumentValue& value) {
  constexpr auto kForms = "a duration like \"60s\" or \"1h30m\", or \"infinite\"";
  if (value.is_null()) {
    raw_.settings.erase(path_);
  } else if (value.is_string()) {
    const auto duration = value.text == "infinite" ? std::optional(std::numeric_limits<std::int64_t>::max())
                                                   : parse_go_duration(value.text);
    if (duration) {
      raw_.settings[path_] = {std::to_string(*duration), value.at, {}};
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

// Upstream's conversion to JSON looks up the fields of flags.plugin and flags.gfd among the fields of flags itself, and
// sets each one that it finds there to empty: `flags.plugin.migStrategy: single` makes flags.migStrategy empty.
void ProfileDecoder::reset_misplaced_flags(const DocumentValue& document) {
  for (const DocumentMember& flags : document.members) {
    if (find_field(kConfigFields, flags.key) == kConfigFields.begin() + 1) {
      for (const DocumentMember& nested : flags.value.members) {
        if (find_field(kFlagFields, nested.key) != kFlagFields.end()) {
          reset_misplaced(nested.value, "flags." + nested.key, "flags.", kFlagFields);
        }
      }
    }
  }
}

void ProfileDecoder::reset_misplaced(const DocumentValue& value, std::string_view where, std::string_view owner,
                                     Fields fields) {
  for (const DocumentMember& member : value.members) {
    const auto field = std::find_if(fields.begin(), fields.end(), [&](auto f) { return equal_fold(member.key, f); });
    if (field == fields.end()) {
      continue;
    }
    const std::string path = fmt::format("{}{}", owner, *field);
    if (*field == "plugin" || *field == "gfd") {
      const Fields inner = *field == "gfd" ? Fields(kGfdFields) : Fields(kPluginFields);
      reset_misplaced(member.value, fmt::format("{}.{}", where, member.key), path + ".", inner);
      continue;
    }
    const bool text = path.ends_with("Root") || path.ends_with("Strategy") || path.ends_with("Path") ||
                      path.ends_with("Prefix") || path.ends_with("Policy") || path.ends_with("File");
    raw_.settings[path] = {path.ends_with("sleepInterval") ? "0"
                           : text                          ? ""
                                                           : "false",
                           member.key_at, fmt::format("{}.{}", where, member.key)};
  }
}

void ProfileDecoder::flags(const DocumentValue& value) {
  const PathStep step(path_, "flags");
  members(value, kFlagFields, true, [this](std::string_view field, const DocumentMember& member) {
    const PathStep inner(path_, field);
    const bool nested = field == "plugin" || field == "gfd";
    if (nested && member.value.is_null()) {
      drop_settings(path_ + ".");
    } else if (nested) {
      if (expect_object(member.value)) {
        field == "gfd" ? gfd_flags(member.value) : plugin_flags(member.value);
      }
    } else if (field == "migStrategy" || field == "mpsRoot" || field == "nvidiaDriverRoot" ||
               field == "nvidiaDevRoot" || field == "deviceDiscoveryStrategy") {
      string_setting(member.value);
    } else {
      boolean_setting(member.value);
    }
  });
}

void ProfileDecoder::plugin_flags(const DocumentValue& value) {
  members(value, kPluginFields, true, [this](std::string_view field, const DocumentMember& member) {
    const PathStep inner(path_, field);
    if (field == "passDeviceSpecs") {
      boolean_setting(member.value);
    } else if (field == "deviceListStrategy") {
      device_list_setting(member.value);
    } else {
      string_setting(member.value);
    }
  });
}

void ProfileDecoder::gfd_flags(const DocumentValue& value) {
  members(value, kGfdFields, true, [this](std::string_view field, const DocumentMember& member) {
    const PathStep inner(path_, field);
    if (field == "oneshot" || field == "noTimestamp") {
      boolean_setting(member.value);
    } else if (field == "sleepInterval") {
      duration_setting(member.value);
    } else {
      string_setting(member.value);
    }
  });
}

void ProfileDecoder::channel_ids_setting(const DocumentValue& value) {
  if (value.is_null()) {
    raw_.settings.erase(path_);
    return;
  }
  if (!value.is_array()) {
    wrong_type(value, "a list of channel IDs");
    return;
  }
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    const PathStep step(path_, i);
    const DocumentValue& item = value.items[i];
    const auto id = item.kind == DocumentValue::Kind::number ? parse_go_int(item.text, 10) : std::nullopt;
    if (!id && !item.is_null()) {
      wrong_type(item, "an integer");
    }
    ids.push_back(id.value_or(0));
  }
  raw_.settings[path_] = {fmt::format("{}", fmt::join(ids, ",")), value.at, {}};
}

void ProfileDecoder::imex(const DocumentValue& value) {
  const PathStep step(path_, "imex");
  members(value, kImexFields, true, [this](std::string_view field, const DocumentMember& member) {
    const PathStep inner(path_, field);
    if (field == "channelIDs") {
      channel_ids_setting(member.value);
    } else if (!member.value.is_null()) {  // A plain bool: null leaves it as it is.
      boolean_setting(member.value);
    }
  });
}

void ProfileDecoder::resources(const DocumentValue& value) {
  const PathStep step(path_, "resources");
  members(value, kResourcesFields, true, [this](std::string_view field, const DocumentMember& member) {
    const PathStep inner(path_, field);
    if (member.value.is_null()) {
      return;
    }
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
  if (!value.is_null() && !expect_object(value)) {
    return;
  }
  bool pattern = false;
  bool name = false;
  members(value, kPatternFields, false, [&](std::string_view field, const DocumentMember& member) {
    const PathStep inner(path_, field);
    if (field == "name") {
      name = true;
      static_cast<void>(resource_name(member.value));
    } else {
      pattern = true;
      if (!member.value.is_string() && !member.value.is_null()) {
        wrong_type(member.value, "a string, for example '*'");
      }
    }
  });
  if (!pattern) {
    error("PatternMissing", value.at,
          "an entry needs a \"pattern\", for example '*'" + misspelling_of("pattern", value, kPatternFields));
  }
  if (!name) {
    error("NameMissing", value.at, "an entry needs a \"name\"" + misspelling_of("name", value, kPatternFields));
  }
}

}  // namespace gso
