#include "reconcilers/cluster/record_fields.h"

namespace gso::record_json {

bool read_time(const Json& root, const char* field, std::optional<k8s::WallTime>& out) {
  const Json* member = member_at(root, field);
  if (member == nullptr) return true;
  if (!member->is_string()) return false;
  out = k8s::parse_rfc3339(member->get_ref<const std::string&>());
  return out.has_value();
}

bool read_flag(const Json& root, const char* field, bool& out) {
  const Json* member = member_at(root, field);
  if (member == nullptr) return true;
  if (!member->is_boolean()) return false;
  out = member->get<bool>();
  return true;
}

bool read_text(const Json& root, const char* field, std::string& out) {
  const Json* member = member_at(root, field);
  if (member == nullptr || !member->is_string()) return false;
  out = member->get<std::string>();
  return true;
}

bool read_value(const Json& value, std::string& out) {
  if (!value.is_string()) return false;
  out = value.get<std::string>();
  return true;
}

bool read_value(const Json& value, std::int64_t& out) {
  if (!value.is_number_integer()) return false;
  out = value.get<std::int64_t>();
  return true;
}

}  // namespace gso::record_json
