// The two steps from the JSON value of a profile document to a Profile: it is decoded as encoding/json and the plugin's
// own unmarshalers do, with what is refused and what is silently ignored; then the components look at it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/profile/document_value.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/profile/profile.h"

namespace gso {

// One entry of resources[] as upstream holds it in memory while decoding.
struct RawEntry {
  std::string name;
  std::int64_t replicas = 0;
  Position at;
  Position name_at;
  Position replicas_at;
};

struct RawSection {
  bool rename_by_default = false;
  std::optional<bool> fail_requests_greater_than_one;
  std::vector<RawEntry> resources;
  Position at;  // Of the section's key.
};

struct RawSetting {
  std::string text;  // Canonical.
  Position at;
  std::string misplaced;  // Path of a nested field of this name, if upstream made the setting empty because of it.
  // The items of a list, possibly empty; nullopt if the setting is not a list.
  std::optional<std::vector<std::string>> words = std::nullopt;
};

// The document after decoding, before the components look at it.
struct RawProfile {
  std::string version;
  Position version_at;
  std::map<std::string, RawSetting> settings;  // flags.* and imex.*, as written; null removes.
  RawSection time_slicing;
  std::optional<RawSection> mps;
  bool custom_resources = false;  // A non-empty list in resources.gpus or resources.mig.
  Position resources_at;
};

class ProfileDecoder {
 public:
  explicit ProfileDecoder(std::vector<Diagnostic>& diagnostics) : diagnostics_(diagnostics) {}

  [[nodiscard]] RawProfile decode(const DocumentValue& document);

 private:
  using Fields = std::span<const std::string_view>;

  void error(std::string code, Position at, std::string message);
  void warning(std::string code, Position at, std::string message);
  void info(std::string code, Position at, std::string message);
  void wrong_type(const DocumentValue& value, std::string_view wanted);

  // Calls visit(field, member) for every member that upstream decodes into one of `fields`, in upstream's order; the
  // others are reported. `ignoring_case`: encoding/json's own structs; otherwise the plugin's unmarshalers.
  void members(const DocumentValue& object, Fields fields, bool ignoring_case,
               const std::function<void(std::string_view, const DocumentMember&)>& visit);
  void unknown_field(const DocumentMember& member, Fields fields);
  // "; write "replicas" for "replica"" for a field that the object lacks, if a member that is ignored was probably
  // meant to be it; else empty.
  [[nodiscard]] std::string misspelling_of(std::string_view field, const DocumentValue& object, Fields fields) const;
  // An error with that sentence if the entry lacks the field.
  void missing(const DocumentValue& entry, std::string_view field, std::string code, std::string message,
               Fields fields);
  bool expect_object(const DocumentValue& value);

  void reset_misplaced_flags(const DocumentValue& document);
  void reset_misplaced(const DocumentValue& value, const std::string& where, const std::string& owner,
                       std::span<const SettingField> fields);
  void settings(const DocumentValue& value, std::span<const SettingField> fields, Fields names);
  void setting(const DocumentValue& value, SettingKind kind);
  void resources(const DocumentValue& value);
  void pattern_entry(const DocumentValue& value);
  void sharing(const DocumentValue& value);
  void section(const DocumentValue& value, RawSection& section);
  void entry(const DocumentValue& value, RawEntry& entry, bool rename_by_default);
  void replica_count(const DocumentValue& value, RawEntry& entry);
  void rename(const DocumentValue& value, const RawEntry& entry, bool rename_by_default);
  void devices(const DocumentValue& value);
  bool device_reference(const DocumentValue& value);

  std::optional<std::string> resource_name(const DocumentValue& value);
  void plain_setting(const DocumentValue& value, DocumentValue::Kind kind, std::string_view wanted);
  void device_list_setting(const DocumentValue& value);
  void duration_setting(const DocumentValue& value);
  void channel_ids_setting(const DocumentValue& value);

  std::vector<Diagnostic>& diagnostics_;
  std::string path_;
  int unknown_fields_ = 0;
  RawProfile raw_;
};

// What the components make of a decoded document: adds to `diagnostics` what they exit on whatever the hardware, and
// what they drop, and returns the profile as upstream holds it in memory, with `rename`, `devices` and `resources`
// dropped.
[[nodiscard]] Profile check_profile(const RawProfile& raw, std::vector<Diagnostic>& diagnostics);

}  // namespace gso
