// Reads fields of one JSON text in order with simdjson on demand: no DOM, no exceptions, errors that name the field.
// Only the project_*.cc files use it.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "k8sclient/value/error.h"
#include "k8sclient/value/json_access.h"
#include "k8sclient/value/object.h"

namespace gso::json {

using Value = simdjson::ondemand::value;

// The state of one decode: the first failure is kept, and every reader below returns false after it.
class Fields {
 public:
  // "spec.priority must be a number" becomes the error's text. Of the path of a row it is without "[]".
  bool fail(std::string_view field, std::string_view expected);
  bool invalid_json(std::string_view field, simdjson::error_code code);
  [[nodiscard]] bool ok() const { return failure_.empty(); }
  [[nodiscard]] const std::string& failure() const { return failure_; }
  // The field that fail() named, and what it must be.
  [[nodiscard]] const k8s::Cause& wrong() const { return wrong_; }

  // Calls on_field(key, value) for each field of an object, in the order of the text. null counts as absent.
  // The key is valid during the call.
  template <class OnField>
  bool object(Value value, std::string_view field, OnField on_field) {
    simdjson::ondemand::object fields;
    if (!open(value, field, simdjson::ondemand::json_type::object, "an object")) return ok();
    if (auto code = value.get_object().get(fields); code != simdjson::SUCCESS) return invalid_json(field, code);
    for (auto entry : fields) {
      std::string_view key;
      Value inner;
      if (auto code = entry.unescaped_key().get(key); code != simdjson::SUCCESS) return invalid_json(field, code);
      if (auto code = entry.value().get(inner); code != simdjson::SUCCESS) return invalid_json(field, code);
      if (!on_field(key, inner) || !ok()) return false;
    }
    return true;
  }
  // Calls on_item(value) for each item of an array. null counts as absent.
  template <class OnItem>
  bool array(Value value, std::string_view field, OnItem on_item) {
    simdjson::ondemand::array items;
    if (!open(value, field, simdjson::ondemand::json_type::array, "a list")) return ok();
    if (auto code = value.get_array().get(items); code != simdjson::SUCCESS) return invalid_json(field, code);
    for (auto item : items) {
      Value inner;
      if (auto code = item.get(inner); code != simdjson::SUCCESS) return invalid_json(field, code);
      if (!on_item(inner) || !ok()) return false;
    }
    return true;
  }

  // Scalars. null leaves `out` as it is; a wrong type fails and names the field.
  bool text(Value value, std::string_view field, std::string& out);
  bool text(Value value, std::string_view field, k8s::Interned& out);
  // Of a text that means nothing if it is longer than a name can be (kMostName): its beginning.
  bool name(Value value, std::string_view field, k8s::Interned& out);
  // The view is valid until the next object is decoded.
  bool view(Value value, std::string_view field, std::string_view& out);
  bool number(Value value, std::string_view field, std::int64_t& out);
  bool number(Value value, std::string_view field, std::int32_t& out);
  bool flag(Value value, std::string_view field, bool& out);
  bool time(Value value, std::string_view field, std::optional<k8s::WallTime>& out);
  bool time(Value value, std::string_view field, k8s::WallTime& out);
  // Does not consume the value.
  [[nodiscard]] static bool is_null(Value& value);
  // Of an amount that 64 bits cannot hold, which the API server accepts: it fails, or is the most that they can.
  enum class Beyond : std::uint8_t { fails, is_the_most };
  // A Kubernetes quantity as a whole number ("8", 8, "2k"); a fraction rounds up, as the scheduler does. With `parts`
  // of 1000 it counts thousandths: "500m" is 500.
  bool quantity(Value value, std::string_view field, std::int64_t& out, std::int64_t parts = 1,
                Beyond beyond = Beyond::fails);
  bool quantity(std::string_view text, std::string_view field, std::int64_t& out, std::int64_t parts = 1,
                Beyond beyond = Beyond::fails);
  bool string_map(Value value, std::string_view field, std::map<std::string, std::string>& out);

 private:
  // False for null (which is no failure) and for a wrong type (which is one).
  bool open(Value& value, std::string_view field, simdjson::ondemand::json_type wanted, std::string_view expected);
  std::string failure_;
  k8s::Cause wrong_;
};

// What is kept of a list or a text that a tenant can write, so that one object costs little memory and time whatever is
// in it. What is beyond is dropped: it concerns that object alone.
inline constexpr std::size_t kMostEntries = 64;
inline constexpr std::size_t kMostLabels = 128;
inline constexpr std::size_t kMostBytes = 4096;  // More than any path has.
inline constexpr std::size_t kMostName = 253;    // Of an object. No annotation of a pod that is read is longer, either.

// Which metadata a projection keeps.
struct MetaFilter {
  bool labels = true;
  bool (*annotation)(std::string_view key) = nullptr;  // nullptr keeps none.
  // Of an object that a tenant can write: at most kMostLabels labels and kMostEntries annotations, and of a value the
  // first `longest` bytes. Nothing that is read has more.
  bool bounded = false;
  bool (*label)(std::string_view key) = nullptr;  // nullptr keeps all.
  std::size_t longest = kMostBytes;
};

// For MetaFilter::annotation: keeps the annotations of our own domain.
[[nodiscard]] inline bool keeps_own_annotation(std::string_view key) {
  return key.starts_with("gpusharing.dev/");
}

// One field of metadata; one that ObjectMeta does not keep is left to the caller.
bool read_meta_field(Fields& fields, std::string_view key, Value value, const MetaFilter& filter,
                     k8s::ObjectMeta& meta);

// The error of a projection: the first failure, or that the object has no name.
k8s::Result<void> finish(std::string_view kind, const Fields& fields, const k8s::ObjectMeta& meta);

// --- Tables of fields: which members of an object's JSON go where.

// A field, by its path from the root of the object. "[]" follows the name of a list of objects: "spec.taints[].key".
template <class Object>
struct Row {
  std::string_view path;
  // Null: of an object or a list whose fields have rows.
  bool (*read)(Fields&, Value, std::string_view path, Object&) = nullptr;
  void (*begin)(Object&) = nullptr;  // Of a list: before each of its items. Of an object: if it is there.
};

template <class Pointer>
struct Member;
template <class T, class Class>
struct Member<T Class::*> {
  using Object = Class;
};

// The member of the object, of that member, and so on: of a list its last item, of an optional its value.
template <auto kMember, auto... kInner, class Object>
[[nodiscard]] auto& member_of(Object& object) {
  auto& member = object.*kMember;
  if constexpr (sizeof...(kInner) == 0)
    return member;
  else if constexpr (requires { member.back(); })
    return member_of<kInner...>(member.back());
  else if constexpr (requires { member.value(); })
    return member_of<kInner...>(member.value());
  else
    return member_of<kInner...>(member);
}

// By the type of the member.
template <class T>
bool read_value(Fields& fields, Value value, std::string_view path, T& out) {
  if constexpr (requires { fields.text(value, path, out); }) {
    return fields.text(value, path, out);
  } else if constexpr (requires { fields.number(value, path, out); }) {
    return fields.number(value, path, out);
  } else if constexpr (requires { fields.flag(value, path, out); }) {
    return fields.flag(value, path, out);
  } else if constexpr (requires { fields.time(value, path, out); }) {
    return fields.time(value, path, out);
  } else if constexpr (requires { out.has_value(); }) {
    return Fields::is_null(value) || read_value(fields, value, path, out.emplace());
  } else if constexpr (std::is_assignable_v<T&, std::string_view>) {
    std::string_view text;
    if (!fields.view(value, path, text)) return false;
    out = text;
    return true;
  } else if constexpr (requires { out.emplace_back(); }) {
    return fields.array(value, path, [&](Value item) { return read_value(fields, item, path, out.emplace_back()); });
  } else {
    return fields.string_map(value, path, out);
  }
}

// `kRead` reads the member; by default as its type says.
template <auto kRead, auto kMember, auto... kInner>
[[nodiscard]] constexpr auto row_by(std::string_view path) {
  using Object = typename Member<decltype(kMember)>::Object;
  return Row<Object>{path, [](Fields& fields, Value value, std::string_view at, Object& out) {
                       return kRead(fields, value, at, member_of<kMember, kInner...>(out));
                     }};
}
template <auto kMember, auto... kInner>
[[nodiscard]] constexpr auto row(std::string_view path) {
  using Object = typename Member<decltype(kMember)>::Object;
  return Row<Object>{path, [](Fields& fields, Value value, std::string_view at, Object& out) {
                       return read_value(fields, value, at, member_of<kMember, kInner...>(out));
                     }};
}

// A list of objects, whose fields have rows: one item for each.
template <auto kMember, auto... kInner>
[[nodiscard]] constexpr auto list(std::string_view path) {
  using Object = typename Member<decltype(kMember)>::Object;
  return Row<Object>{path, nullptr, [](Object& out) { member_of<kMember, kInner...>(out).emplace_back(); }};
}

template <class Rows, class Object>
bool read_rows(Fields& fields, Value value, std::string_view at, const Rows& rows, Object& out);

// The field `key` of the object at `at` ("", "spec.", "spec.taints[]."). A field without a row is ignored.
template <class Rows, class Object>
bool read_row(Fields& fields, Value value, std::string_view at, std::string_view key, const Rows& rows, Object& out) {
  void (*begin)(Object&) = nullptr;
  if (key.empty() || key.contains('.')) return true;  // No row's name has one.
  for (const auto& row : rows) {
    // Most rows differ in the first byte.
    if (row.path.size() <= at.size() || row.path[at.size()] != key.front()) continue;
    if (!row.path.starts_with(at) || !row.path.substr(at.size()).starts_with(key)) continue;
    const std::size_t size = at.size() + key.size();
    const std::string_view rest = row.path.substr(size);
    if (rest.empty() && row.read != nullptr) return row.read(fields, value, row.path, out);
    if (rest.empty()) begin = row.begin;
    if (rest.starts_with("[].")) {
      return fields.array(value, row.path.substr(0, size), [&](Value item) {
        if (begin != nullptr) begin(out);
        return read_rows(fields, item, row.path.substr(0, size + 3), rows, out);
      });
    }
    if (!rest.starts_with('.')) continue;
    if (begin != nullptr && !Fields::is_null(value)) begin(out);
    return read_rows(fields, value, row.path.substr(0, size + 1), rows, out);
  }
  return true;
}

// The fields of the object at `at`.
template <class Rows, class Object>
bool read_rows(Fields& fields, Value value, std::string_view at, const Rows& rows, Object& out) {
  return fields.object(value, at,
                       [&](std::string_view key, Value inner) { return read_row(fields, inner, at, key, rows, out); });
}

// Calls on_item(item) for each object of a list, whose fields have rows at `at` ("spec.taints[].").
template <class Item, class Rows, class OnItem>
bool read_each(Fields& fields, Value value, std::string_view at, const Rows& rows, OnItem on_item) {
  return fields.array(value, at, [&](Value inner) {
    Item item;
    if (!read_rows(fields, inner, at, rows, item)) return false;
    on_item(item);
    return true;
  });
}

// --- Readers for row_by().

// Of a DaemonSet's updateStrategy: its type is OnDelete.
bool read_on_delete(Fields& fields, Value value, std::string_view path, bool& out);
// The JSON of an object as a whole; discarded if it is invalid.
bool read_json(Fields& fields, Value value, std::string_view path, nlohmann::json& out);
// Whether the value is there.
bool read_presence(Fields& fields, Value value, std::string_view path, bool& out);
// Sets `out` if the list has items.
bool read_has_items(Fields& fields, Value value, std::string_view path, bool& out);
// Fields::name().
bool read_name(Fields& fields, Value value, std::string_view path, k8s::Interned& out);

// One of status.conditions. Its texts are valid while the object is read.
struct Condition {
  std::string_view type;
  std::string_view status;
  std::string_view reason;
  std::string_view note;               // message
  std::optional<k8s::WallTime> since;  // lastTransitionTime
};
inline constexpr Row<Condition> kCondition[] = {
    row<&Condition::type>("status.conditions[].type"),
    row<&Condition::status>("status.conditions[].status"),
    row<&Condition::reason>("status.conditions[].reason"),
    row<&Condition::note>("status.conditions[].message"),
    row<&Condition::since>("status.conditions[].lastTransitionTime"),
};
// Calls on_condition(condition) for each.
template <class OnCondition>
bool read_conditions(Fields& fields, Value value, std::string_view /*path*/, OnCondition on_condition) {
  return read_each<Condition>(fields, value, "status.conditions[].", kCondition, on_condition);
}
// Sets `ready` to whether the condition Ready is True.
bool read_ready(Fields& fields, Value conditions, std::string_view path, bool& ready);

// A whole object: the metadata that every object has, and the rows, which can name further fields of it. The text is
// copied into the thread's JsonScratch: none is read while another one is.
template <class Object, class Rows>
[[nodiscard]] k8s::Result<void> read_object(std::string_view kind, std::string_view text, const MetaFilter& filter,
                                            const Rows& rows, k8s::ObjectMeta& meta, Object& out) {
  Fields fields;
  simdjson::ondemand::document document;
  Value root;
  if (auto code = k8s::JsonScratch::of_thread().open_copy(text, document); code != simdjson::SUCCESS) {
    fields.invalid_json("", code);
  } else if (document.get_value().get(root) != simdjson::SUCCESS) {
    fields.fail("the document", "an object");  // A scalar document has no value to open.
  } else {
    fields.object(root, "the document", [&](std::string_view key, Value value) {
      if (key != "metadata") return read_row(fields, value, "", key, rows, out);
      return fields.object(value, key, [&](std::string_view field, Value inner) {
        return read_meta_field(fields, field, inner, filter, meta) &&
               read_row(fields, inner, "metadata.", field, rows, out);
      });
    });
    // With out-of-bounds simdjson reports that the text is used up.
    if (fields.ok() && document.current_location().error() != simdjson::OUT_OF_BOUNDS)
      fields.fail("the document", "one object and nothing after it");
  }
  return finish(kind, fields, meta);
}
template <class Object, class Rows>
[[nodiscard]] k8s::Result<Object> project(std::string_view kind, std::string_view text, const MetaFilter& filter,
                                          const Rows& rows) {
  Object out;
  if (auto read = read_object(kind, text, filter, rows, out.meta, out); !read) return std::unexpected(read.error());
  return out;
}

}  // namespace gso::json
