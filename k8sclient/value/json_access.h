// Reading and printing JSON that comes from the cluster: a member that is missing, or of another type than expected,
// reads as empty. nlohmann's value() and at() throw on a wrong type, and JSON from a person or another release can have
// any type; a test (tests/reconcilers/model/json_access_test.cc) fails if code that reads such JSON uses them.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace k8s {

// The member of that name, or nullptr if `object` is no object or has no such member.
template <class Json>
[[nodiscard]] const Json* member_at(const Json& object, std::string_view field) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(std::string(field));
  return it == object.end() ? nullptr : &*it;
}

// The text of a member, or `otherwise`.
template <class Json>
[[nodiscard]] std::string text_at(const Json& object, std::string_view field, std::string_view otherwise = {}) {
  const Json* member = member_at(object, field);
  return member != nullptr && member->is_string() ? member->template get<std::string>() : std::string(otherwise);
}

// The whole number in a member, or 0.
template <class Json>
[[nodiscard]] std::int64_t number_at(const Json& object, std::string_view field) {
  const Json* member = member_at(object, field);
  return member != nullptr && member->is_number_integer() ? member->template get<std::int64_t>() : 0;
}

// True only if the member is true.
template <class Json>
[[nodiscard]] bool flag_at(const Json& object, std::string_view field) {
  const Json* member = member_at(object, field);
  return member != nullptr && member->is_boolean() && member->template get<bool>();
}

// The member if it is an object, else an empty object.
template <class Json>
[[nodiscard]] Json object_at(const Json& object, std::string_view field) {
  const Json* member = member_at(object, field);
  return member != nullptr && member->is_object() ? *member : Json::object();
}

// The member if it is a list, else an empty list.
template <class Json>
[[nodiscard]] Json list_at(const Json& object, std::string_view field) {
  const Json* member = member_at(object, field);
  return member != nullptr && member->is_array() ? *member : Json::array();
}

// The JSON on one line. Bytes that are no UTF-8 become U+FFFD: nothing throws on text from outside.
template <class Json>
[[nodiscard]] std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace k8s
