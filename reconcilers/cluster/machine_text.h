// The record's text: its fields, and the machines.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "k8sclient/value/time.h"
#include "reconcilers/cluster/record.h"
#include "reconcilers/model/json_access.h"

namespace gso {

// --- Fields of the record's JSON. Each function that reads returns false if the field has a wrong type. An absent
// field leaves `out` as it is; only a text must be there.

}  // namespace gso

namespace gso::record_json {

using Json = nlohmann::json;

[[nodiscard]] bool read_time(const Json& root, const char* field, std::optional<k8s::WallTime>& out);
[[nodiscard]] bool read_flag(const Json& root, const char* field, bool& out);
[[nodiscard]] bool read_text(const Json& root, const char* field, std::string& out);
[[nodiscard]] bool read_value(const Json& value, std::string& out);
[[nodiscard]] bool read_value(const Json& value, std::int64_t& out);

// A list of texts.
template <class List>
bool read_names(const Json& root, const char* field, List& out) {
  const Json* member = member_at(root, field);
  if (member == nullptr) return true;
  if (!member->is_array()) return false;
  for (const Json& name : *member) {
    if (!name.is_string()) return false;
    out.insert(out.end(), name.get<std::string>());
  }
  return true;
}

template <class Value>
bool read_map(const Json& root, const char* field, std::map<std::string, Value>& out) {
  const Json* member = member_at(root, field);
  if (member == nullptr) return true;
  if (!member->is_object()) return false;
  for (const auto& [key, value] : member->items()) {
    if (!read_value(value, out[key])) return false;
  }
  return true;
}

// The entries of a list of objects.
template <class Read>
bool read_list(const Json& root, const char* field, Read read) {
  const Json* member = member_at(root, field);
  if (member == nullptr) return true;
  if (!member->is_array()) return false;
  for (const Json& entry : *member) {
    if (!entry.is_object() || !read(entry)) return false;
  }
  return true;
}

// Policy, ConfigMap, key and revision, which several lists have in common.
template <class Entry>
bool read_subject(const Json& json, Entry& out) {
  return read_text(json, "policy", out.policy) && read_text(json, "configMap", out.config_map) &&
         read_text(json, "key", out.key) && read_text(json, "revision", out.revision);
}

template <class Entry>
Json print_subject(const Entry& entry) {
  return {{"policy", entry.policy}, {"configMap", entry.config_map}, {"key", entry.key}, {"revision", entry.revision}};
}

}  // namespace gso::record_json

namespace gso {

// --- The machines of the record <-> JSON. Both the head and the shards of the record contain such a part: "profiles":
// [[configMap, key, revision], …], "machines": {"<id>": [profile, devices, flags], …} where profile is an index into
// the list, or -1.

// 16 hexadecimal digits.
[[nodiscard]] std::string print_machine(MachineId machine);
// False: the text is not such a number, and `out` is undefined.
[[nodiscard]] bool read_machine_id(std::string_view text, MachineId& out);

// A whole number from -1 to 10^9: every number of an entry is one, whatever a person has written into the record.
[[nodiscard]] bool is_number(const nlohmann::json& json);

// Collects machines, and names each profile once.
class MachinePrinter {
 public:
  void add(MachineId machine, const MachineRecord& entry);
  // Sets `profiles` and `machines`, and leaves this empty.
  void print_into(nlohmann::json& root);

 private:
  std::map<std::tuple<k8s::Interned, k8s::Interned, k8s::Interned>, std::int64_t> profiles_;
  nlohmann::json list_ = nlohmann::json::array();
  nlohmann::json machines_ = nlohmann::json::object();
};

// Calls `take` for each machine of the part. False: `wrong` has the error, and some machines might have been taken.
[[nodiscard]] bool read_machines(const nlohmann::json& root, std::string& wrong,
                                 const std::function<void(MachineId, const MachineRecord&)>& take);

}  // namespace gso
