// Decoding of the document: its members, settings (flags and imex), custom resources, sharing.
#include "reconcilers/profile/profile_decoder.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "k8sclient/value/selectors.h"
#include "k8sclient/value/time.h"
#include "reconcilers/model/message_text.h"
#include "reconcilers/profile/go_text.h"

namespace gso {
namespace {

constexpr int kMostReported = 500;  // Of unknown fields: each costs a search for advice.

constexpr std::size_t kMaxNameLength = 63;

bool is_unsigned(std::string_view text) {
  return parse_go_uint(text, 10).has_value();
}

// A GPU index, "gpu:mig" indexes, or the UUID of a GPU or a MIG device.
bool is_device_reference(std::string_view text) {
  const auto is_gpu_uuid = [](std::string_view t) { return t.starts_with("GPU-") && is_uuid(t.substr(4)); };
  if (is_unsigned(text) || is_gpu_uuid(text)) return true;
  if (const auto colon = text.find(':'); colon != std::string_view::npos) {
    if (is_unsigned(text.substr(0, colon)) && is_unsigned(text.substr(colon + 1))) return true;
  }
  if (!text.starts_with("MIG-")) return false;
  text.remove_prefix(4);
  const auto first = text.find('/');
  const auto second = first == std::string_view::npos ? first : text.find('/', first + 1);
  return is_uuid(text) ||
         (second != std::string_view::npos && is_gpu_uuid(text.substr(0, first)) &&
          is_unsigned(text.substr(first + 1, second - first - 1)) && is_unsigned(text.substr(second + 1)));
}

class ProfileDecoder : DocumentCheck {
 public:
  explicit ProfileDecoder(std::vector<Diagnostic>& diagnostics) : DocumentCheck(diagnostics) {}

  DecodedProfile decode(const DocumentValue& document) {
    if (document.is_null() || !expect_object(document)) return {};
    reset_misplaced_flags(document);
    std::string version;
    members(document, kConfigFields, true, [&](const ProfileField& field, const DocumentMember& member) {
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

 private:
  void wrong_type(const DocumentValue& value, std::string_view wanted) {
    std::string shown(kind_name(value.kind));
    if (value.is_string())
      shown = fmt::format("the string \"{}\"", shown_value(value.text));
    else if (value.kind == DocumentValue::Kind::number || value.kind == DocumentValue::Kind::boolean)
      shown = fmt::format("the {} {}", shown.substr(2), shown_value(value.text));  // "a number"
    error("WrongType", value.at, fmt::format("expected {}, found {}", wanted, shown));
  }

  bool expect_object(const DocumentValue& value) {
    if (!value.is_object()) wrong_type(value, "a mapping");
    return value.is_object();
  }

  // Calls visit(field, member) for every member that upstream decodes into one of `fields`, in upstream's order; the
  // others are reported. `ignoring_case`: encoding/json's own structs; otherwise the plugin's unmarshalers. While a
  // member is visited, the path is that of its field, but at the top level.
  void members(const DocumentValue& object, ProfileFields fields, bool ignoring_case,
               const std::function<void(const ProfileField&, const DocumentMember&)>& visit) {
    std::vector<const ProfileField*> seen;
    const bool top_level = path_.empty();
    for (const DocumentMember& member : object.members) {
      const ProfileField* field = find_field(fields, member.key);
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

  void unknown_field(const DocumentMember& member, ProfileFields fields) {
    if (++unknown_fields_ > kMostReported) return;
    const PathStep step(path_, member.key);
    if (const ProfileField* field = find_field(fields, member.key)) {
      return warning("WrongCase", member.key_at,
                     fmt::format("\"{}\" is ignored: the name is case-sensitive here; write \"{}\"",
                                 shown_value(member.key), field->name));
    }
    warning(
        "UnknownField", member.key_at,
        fmt::format("\"{}\" is ignored: unknown field; {}", shown_value(member.key), field_advice(member.key, fields)));
  }

  // "; write "replicas" for "replica"" for a field that the object lacks, if a member that is ignored was probably
  // meant to be it; else empty.
  std::string misspelling_of(std::string_view field, const DocumentValue& object, ProfileFields fields) const {
    if (unknown_fields_ > kMostReported) return {};
    const std::vector<std::string_view> names = names_of(fields);
    const auto found = std::ranges::find_if(object.members, [&](const DocumentMember& member) {
      return std::ranges::find(names, member.key) == names.end() && nearest_word(member.key, names) == field;
    });
    return found == object.members.end() ? ""
                                         : fmt::format("; write \"{}\" for \"{}\"", field, shown_value(found->key));
  }

  // An error with that sentence if the entry lacks the field.
  void missing(const DocumentValue& entry, std::string_view field, std::string_view code, std::string message,
               ProfileFields fields) {
    if (entry.find(field) == nullptr) error(code, entry.at, message + misspelling_of(field, entry, fields));
  }

  // Upstream's conversion to JSON looks up the fields of flags.plugin and flags.gfd among the fields of flags itself,
  // and sets each one that it finds there to empty: `flags.plugin.migStrategy: single` makes flags.migStrategy empty.
  void reset_misplaced_flags(const DocumentValue& document) {
    for (const DocumentMember& flags : document.members) {
      const ProfileField* field = find_field(kConfigFields, flags.key);
      if (field == nullptr || field->name != "flags") continue;
      for (const DocumentMember& nested : flags.value.members)
        if (find_field(kFlags, nested.key) != nullptr)
          reset_misplaced(nested.value, "flags." + nested.key, "flags.", kFlags);
    }
  }

  void reset_misplaced(const DocumentValue& value, const std::string& where, const std::string& owner,
                       ProfileFields fields) {
    for (const DocumentMember& member : value.members) {
      const ProfileField* field = find_field(fields, member.key);
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

  void settings(const DocumentValue& value, ProfileFields fields) {
    members(value, fields, true, [&](const ProfileField& field, const DocumentMember& member) {
      if (!member.value.is_null())
        setting(member.value, field);
      else if (field.kind == FieldKind::section)
        std::erase_if(out_.settings, [&](const auto& each) { return each.first.starts_with(path_ + "."); });
      else if (field.kind != FieldKind::plain_boolean)
        out_.settings.erase(path_);
    });
  }

  void setting(const DocumentValue& value, const ProfileField& field) {
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

  // The field at the path has that value.
  void set(const ProfileField& field, Position at, std::string text,
           std::optional<std::vector<std::string>> words = std::nullopt) {
    out_.settings[path_] = {&field, std::move(text), "", std::move(words)};
    out_.places[path_] = at;
  }

  void plain_setting(const DocumentValue& value, const ProfileField& field) {
    const bool text = field.kind == FieldKind::text;
    if (value.kind != (text ? DocumentValue::Kind::string : DocumentValue::Kind::boolean))
      return wrong_type(value, text ? "a string (quote it)" : "true or false (without quotes)");
    set(field, value.at, value.text);
  }

  void device_list_setting(const DocumentValue& value, const ProfileField& field) {
    std::set<std::string> strategies;
    if (value.is_string())
      strategies.insert(value.text);
    else if (!value.is_array())
      return wrong_type(value, "a string or a list of strings");
    for (const DocumentValue& item : value.items) {
      if (!item.is_string() && !item.is_null()) return wrong_type(item, "a string");
      strategies.insert(item.text);
    }
    set(field, value.at, fmt::format("{}", fmt::join(strategies, ",")),
        std::vector(strategies.begin(), strategies.end()));
  }

  void duration_setting(const DocumentValue& value, const ProfileField& field) {
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

  void channel_ids_setting(const DocumentValue& value, const ProfileField& field) {
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

  void resources(const DocumentValue& value) {
    members(value, kResourcesFields, true, [this](const ProfileField&, const DocumentMember& member) {
      if (member.value.is_null()) return;
      if (!member.value.is_array()) return wrong_type(member.value, "a list of {pattern, name}");
      out_.custom_resources = out_.custom_resources || !member.value.items.empty();
      for (std::size_t i = 0; i < member.value.items.size(); ++i) {
        const PathStep item(path_, i);
        pattern_entry(member.value.items[i]);
      }
    });
  }

  void pattern_entry(const DocumentValue& value) {
    if (!value.is_null() && !expect_object(value)) return;
    members(value, kPatternFields, false, [&](const ProfileField& field, const DocumentMember& member) {
      if (field.name == "name")
        static_cast<void>(resource_name(member.value));
      else if (!member.value.is_string() && !member.value.is_null())
        wrong_type(member.value, "a string, for example '*'");
    });
    missing(value, "pattern", "PatternMissing", "an entry needs a \"pattern\", for example '*'", kPatternFields);
    missing(value, "name", "NameMissing", "an entry needs a \"name\"", kPatternFields);
  }

  void sharing(const DocumentValue& value) {
    members(value, kSharingFields, true, [this](const ProfileField& field, const DocumentMember& member) {
      if (field.name == "timeSlicing") {
        section(member, out_.time_slicing);
      } else if (member.value.is_null()) {
        info("EmptySection", member.key_at, "\"mps\" is empty, which means no MPS");
        out_.mps.reset();
      } else {
        section(member, out_.mps ? *out_.mps : out_.mps.emplace());
      }
    });
  }

  void section(const DocumentMember& member, SharingSection& section) {
    const DocumentValue& value = member.value;
    out_.places[path_] = member.key_at;
    if (!value.is_null() && !expect_object(value)) return;
    bool listed = false;
    section.rename_by_default = section.rename_by_default && value.find("renameByDefault") != nullptr;
    members(value, kSectionFields, false, [&](const ProfileField& field, const DocumentMember& part) {
      const DocumentValue& v = part.value;
      if (field.name != "resources") {
        if (v.kind != DocumentValue::Kind::boolean && !v.is_null()) wrong_type(v, "true or false (without quotes)");
        if (field.name == "failRequestsGreaterThanOne")
          section.fail_requests_greater_than_one = v.is_null() ? std::nullopt : std::optional(v.boolean);
        else
          section.rename_by_default = v.is_null() ? section.rename_by_default : v.boolean;
      } else if (!v.is_null() && !v.is_array()) {
        listed = true;
        wrong_type(v, "a list of {name, replicas}");
      } else {
        listed = !v.items.empty();
        section.resources.resize(v.items.size());
        for (std::size_t i = 0; i < v.items.size(); ++i) {
          const PathStep item(path_, i);
          entry(v.items[i], section.resources[i], section.rename_by_default);
        }
      }
    });
    if (!listed) {
      const PathStep inner(path_, "resources");
      const auto* empty = value.find("resources");
      const std::string misspelt = misspelling_of("resources", value, kSectionFields);
      error("NoResources", empty != nullptr ? empty->at : value.at,
            !misspelt.empty() ? "at least one resource is required" + misspelt
                              : std::string("at least one resource is required, for example {name: nvidia.com/gpu, "
                                            "replicas: 4}; to disable sharing, remove the whole section"));
    }
  }

  void entry(const DocumentValue& value, ReplicatedResource& entry, bool rename_by_default) {
    if (!value.is_null() && !expect_object(value)) return;
    members(value, kEntryFields, false, [&](const ProfileField& field, const DocumentMember& member) {
      const DocumentValue& v = member.value;
      out_.places[path_] = v.at;
      if (field.name == "name")
        entry.name = resource_name(v).value_or("");
      else if (field.name == "rename")
        rename(v, entry, rename_by_default);
      else if (field.name == "devices")
        devices(v);
      else
        replica_count(v, entry);
    });
    missing(value, "name", "NameMissing", "an entry needs a \"name\", for example nvidia.com/gpu", kEntryFields);
    missing(value, "replicas", "ReplicasMissing", "an entry needs \"replicas\", an integer of 2 or more", kEntryFields);
  }

  void replica_count(const DocumentValue& value, ReplicatedResource& entry) {
    if (!value.is_null()) {  // null leaves what an earlier spelling of the section has set.
      const auto count = value.kind == DocumentValue::Kind::number ? parse_go_int(value.text, 10) : std::nullopt;
      if (!count && value.kind == DocumentValue::Kind::number) {
        error("ReplicasNotInteger", value.at,
              fmt::format("replicas is {}; it must be a whole number from 2 to 9223372036854775807",
                          shown_value(value.text)));
        return;
      }
      if (!count) {
        wrong_type(value, "an integer of 2 or more (without quotes)");
        return;
      }
      entry.replicas = *count;
    }
    if (entry.replicas < 2) {
      const std::string shown = value.is_null() ? "empty" : std::to_string(entry.replicas);
      error(
          "ReplicasBelowMinimum", value.at,
          fmt::format("replicas is {}; it must be 2 or more (to disable sharing, remove the sharing section)", shown));
    }
  }

  void rename(const DocumentValue& value, const ReplicatedResource& entry, bool rename_by_default) {
    const auto name = resource_name(value);
    if (!name || (rename_by_default && *name == entry.name + ".shared")) return;
    warning(
        "RenameIgnored", value.at,
        rename_by_default
            ? fmt::format("rename is not supported and is ignored; renameByDefault makes it {}.shared",
                          shown_value(entry.name))
            : std::string("rename is not supported and is ignored; the resource keeps its name (renameByDefault: true "
                          "appends .shared)"));
  }

  std::optional<std::string> resource_name(const DocumentValue& value) {
    if (!value.is_string() && !value.is_null()) {
      wrong_type(value, "a resource name like nvidia.com/gpu (quote it)");
      return std::nullopt;
    }
    std::string name = value.text.starts_with(kDomainPrefix) ? value.text : std::string(kDomainPrefix) + value.text;
    if (name.size() > kMaxNameLength) {
      error("NameTooLong", value.at,
            fmt::format("\"{}\" has {} characters; at most {} are allowed, nvidia.com/ included", shown_value(name),
                        name.size(), kMaxNameLength));
      return std::nullopt;
    }
    if (!k8s::is_dns_subdomain(std::string_view(name).substr(kDomainPrefix.size()))) {
      const std::string repaired = repaired_name(value.text);
      const auto slash = value.text.find('/');
      std::string advice =
          "after nvidia.com/ use lower case letters, digits, '-' and '.', with a letter or digit at both ends";
      if (!repaired.empty())
        advice += fmt::format("; did you mean {}?", shown_value(repaired));
      else if (slash != std::string::npos && !value.text.starts_with(kDomainPrefix))
        advice = "only resources of nvidia.com can be shared, for example nvidia.com/gpu";
      error("NameInvalid", value.at, fmt::format("\"{}\" is not a resource name: {}", shown_value(value.text), advice));
      return std::nullopt;
    }
    return name;
  }

  void devices(const DocumentValue& value) {
    constexpr auto kForms = "leave \"devices\" out, or write all: sharing only some of the GPUs is not supported";
    const auto ignored = [&] {
      warning("DevicesIgnored", value.at,
              "devices is not supported and is ignored: all GPUs of the resource are shared");
    };
    if (value.is_string() || value.is_null()) {
      if (value.text != "all")
        error("DevicesInvalid", value.at, fmt::format("devices is \"{}\"; {}", shown_value(value.text), kForms));
    } else if (value.kind == DocumentValue::Kind::number && parse_go_int(value.text, 10)) {
      if (*parse_go_int(value.text, 10) > 0)
        ignored();
      else
        error("DevicesInvalid", value.at, fmt::format("devices is {}; {}", shown_value(value.text), kForms));
    } else if (value.is_array()) {
      for (std::size_t i = 0; i < value.items.size(); ++i) {
        const PathStep step(path_, i);
        if (!device_reference(value.items[i])) return;
      }
      ignored();
    } else {
      error("DevicesInvalid", value.at, fmt::format("devices is {}; {}", kind_name(value.kind), kForms));
    }
  }

  bool device_reference(const DocumentValue& value) {
    const bool fits = value.is_null() || (value.kind == DocumentValue::Kind::number && is_unsigned(value.text)) ||
                      (value.is_string() && is_device_reference(value.text));
    if (!fits) {
      error(
          "DevicesInvalid", value.at,
          fmt::format("{} is not a device; use an index (0), a MIG index (0:1) or a UUID (GPU-…), although the plugin "
                      "ignores all of them",
                      value.is_string() ? '"' + shown_value(value.text) + '"' : std::string(kind_name(value.kind))));
    }
    return fits;
  }

  int unknown_fields_ = 0;
  DecodedProfile out_;
};

}  // namespace

DecodedProfile decode_profile(const DocumentValue& document, std::vector<Diagnostic>& diagnostics) {
  return ProfileDecoder(diagnostics).decode(document);
}

}  // namespace gso
