// Members of JSON that can have any type, and the memory for reading JSON on demand.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace k8s {

// --- Reading and printing JSON that comes from the cluster: a member that is missing, or of another type than
// expected, reads as empty. nlohmann's value() and at() throw on a wrong type, and JSON from a person or another
// release can have any type; a test (tests/reconcilers/model/json_access_test.cc) fails if code that reads such JSON
// uses them.

// The member of that name, or nullptr if `object` is no object or has no such member.
template <class Json>
[[nodiscard]] const Json* member_at(const Json& object, std::string_view field) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(std::string(field));
  return it == object.end() ? nullptr : &*it;
}
template <class Json>
const Json* member_at(const Json&& temporary, std::string_view field) = delete;  // The member would outlive it.

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

// --- Reading JSON on demand: simdjson throws where a text cannot be read, which leaves nested readers at once.

// Calls read(), which reads on demand. What is wrong with the text; SUCCESS: nothing.
template <class Read>
[[nodiscard]] simdjson::error_code read_json(Read read) {
  try {
    read();
    return simdjson::SUCCESS;
  } catch (const simdjson::simdjson_error& error) {
    return error.error();
  }
}

// For a reader that has seen the whole value of a document: nothing may follow it.
inline void must_end(simdjson::ondemand::document& document) {
  if (document.current_location().error() != simdjson::OUT_OF_BOUNDS)
    throw simdjson::simdjson_error(simdjson::TRAILING_CONTENT);
}

// --- JsonScratch: the memory of a thread for reading one JSON object after the other on demand. A parser needs about
// six times the size of its text, so every decoder of single objects shares this one: watch events, object keys and
// projections. After a text beyond kKept the memory is returned with the next smaller one.
// simdjson::ondemand::document document; auto error = JsonScratch::of_thread().open(text, document); The document
// and what it lends out are valid until the next open(), by whomever: read it to the end, copy what stays, and call no
// other decoder meanwhile. (Pages of a list have a parser of their own, since their items are decoded while the page
// is read.)

class JsonScratch {
 public:
  static constexpr std::size_t kKept = std::size_t{256} << 10;  // Most text for which memory is kept.

  static JsonScratch& of_thread();

  // `text` is followed by simdjson's padding of readable bytes.
  simdjson::error_code open(std::string_view text, simdjson::ondemand::document& document);
  // The same for a text that nothing readable may follow: it is copied first.
  simdjson::error_code open_copy(std::string_view text, simdjson::ondemand::document& document);

  // Returns the memory of a text beyond kKept now. Ends what open() lent out, if it was such a text.
  void release_large();

  // The longest text that could be read without more memory.
  [[nodiscard]] std::size_t held() const { return parser_.capacity(); }

 private:
  void make_room(std::size_t length);

  simdjson::ondemand::parser parser_;
  std::string copy_;
  std::size_t longest_ = 0;  // Text since the memory was returned last.
};

}  // namespace k8s
