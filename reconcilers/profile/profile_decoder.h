// The two steps from the JSON value of a profile document to a Profile: it is decoded as encoding/json and the plugin's
// own unmarshalers do, with what is refused and what is silently ignored; then the components look at it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/profile/document_value.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/profile/profile.h"

namespace gso {

struct DecodedSetting {
  const ConfigField* field = nullptr;
  std::string text = {};       // Canonical.
  std::string misplaced = {};  // Path of a nested field of this name, if upstream made the setting empty because of it.
  // The items of a list, possibly empty; nullopt if the setting is not a list.
  std::optional<std::vector<std::string>> words = std::nullopt;
};

// The document as upstream holds it in memory, before the components look at it.
struct DecodedProfile {
  std::map<std::string, DecodedSetting> settings;  // flags.* and imex.*, as written; null removes.
  SharingSection time_slicing;
  std::optional<SharingSection> mps;
  bool custom_resources = false;                        // A non-empty list in resources.gpus or resources.mig.
  std::map<std::string, Position, std::less<>> places;  // By path: settings, sections, names and replicas.

  // Of the value at the path, or of what it stands in.
  [[nodiscard]] Position place(std::string_view path) const;
};

class ProfileDecoder : DocumentCheck {
 public:
  explicit ProfileDecoder(std::vector<Diagnostic>& diagnostics) : DocumentCheck(diagnostics) {}

  [[nodiscard]] DecodedProfile decode(const DocumentValue& document);

 private:
  void wrong_type(const DocumentValue& value, std::string_view wanted);

  // Calls visit(field, member) for every member that upstream decodes into one of `fields`, in upstream's order; the
  // others are reported. `ignoring_case`: encoding/json's own structs; otherwise the plugin's unmarshalers. While a
  // member is visited, the path is that of its field, but at the top level.
  void members(const DocumentValue& object, ConfigFields fields, bool ignoring_case,
               const std::function<void(const ConfigField&, const DocumentMember&)>& visit);
  void unknown_field(const DocumentMember& member, ConfigFields fields);
  // "; write "replicas" for "replica"" for a field that the object lacks, if a member that is ignored was probably
  // meant to be it; else empty.
  [[nodiscard]] std::string misspelling_of(std::string_view field, const DocumentValue& object,
                                           ConfigFields fields) const;
  // An error with that sentence if the entry lacks the field.
  void missing(const DocumentValue& entry, std::string_view field, std::string_view code, std::string message,
               ConfigFields fields);
  bool expect_object(const DocumentValue& value);

  void reset_misplaced_flags(const DocumentValue& document);
  void reset_misplaced(const DocumentValue& value, const std::string& where, const std::string& owner,
                       ConfigFields fields);
  void settings(const DocumentValue& value, ConfigFields fields);
  void setting(const DocumentValue& value, const ConfigField& field);
  void resources(const DocumentValue& value);
  void pattern_entry(const DocumentValue& value);
  void sharing(const DocumentValue& value);
  void section(const DocumentMember& member, SharingSection& section);
  void entry(const DocumentValue& value, ReplicatedResource& entry, bool rename_by_default);
  void replica_count(const DocumentValue& value, ReplicatedResource& entry);
  void rename(const DocumentValue& value, const ReplicatedResource& entry, bool rename_by_default);
  void devices(const DocumentValue& value);
  bool device_reference(const DocumentValue& value);

  std::optional<std::string> resource_name(const DocumentValue& value);
  // The field at the path has that value.
  void set(const ConfigField& field, Position at, std::string text,
           std::optional<std::vector<std::string>> words = std::nullopt);
  void plain_setting(const DocumentValue& value, const ConfigField& field);
  void device_list_setting(const DocumentValue& value, const ConfigField& field);
  void duration_setting(const DocumentValue& value, const ConfigField& field);
  void channel_ids_setting(const DocumentValue& value, const ConfigField& field);

  int unknown_fields_ = 0;
  DecodedProfile out_;
};

// What the components make of a decoded document: adds to `diagnostics` what they exit on whatever the hardware, and
// what they drop, and returns the profile as upstream holds it in memory, with `rename`, `devices` and `resources`
// dropped.
[[nodiscard]] Profile check_profile(const DecodedProfile& decoded, std::vector<Diagnostic>& diagnostics);

}  // namespace gso
