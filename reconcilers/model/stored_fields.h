// JSON that the operator writes and reads again: the record, and its annotations on nodes. Each kind of entry has one
// table of fields, from which it is printed and read.
#pragma once

#include <fmt/format.h>
#include <simdjson.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "k8sclient/value/json_access.h"
#include "k8sclient/value/time.h"
#include "reconcilers/model/message_text.h"

namespace gso::stored {

using Json = nlohmann::json;
using Element = simdjson::dom::element;
// What is wrong with a value, as it follows the name of its field: " must be a string". Empty: nothing is.
using Wrong = std::string;

// How values of a type are read and printed: `static Wrong read(Element, T&)` and `static Json print(const T&)`.
// Nothing here throws, because people can edit what is stored.
template <class T>
struct Stored;

enum class When : std::uint8_t {
  needed,  // An entry without it is wrong.
  always,  // Printed always; absent in what an earlier release wrote.
  if_set,  // Printed only if it differs from its default.
};

// A field of an entry.
template <class Entry>
struct Field {
  std::string_view name;
  When when = When::always;
  Wrong (*read)(Element, Entry&) = nullptr;
  std::optional<Json> (*print)(const Entry&) = nullptr;  // nullopt: left out.
  std::string_view wrong{};  // Said instead of what read() returns: "must be a list of names".
};

// Of that member, as its type is stored.
template <class Entry, auto kMember>
[[nodiscard]] constexpr Field<Entry> field(std::string_view name, When when = When::always,
                                           std::string_view wrong = {}) {
  using Member = std::remove_cvref_t<decltype(std::declval<Entry>().*kMember)>;
  Field<Entry> out{name, when, [](Element value, Entry& entry) { return Stored<Member>::read(value, entry.*kMember); },
                   [](const Entry& entry) { return std::optional(Stored<Member>::print(entry.*kMember)); }, wrong};
  if (when == When::if_set) {
    out.print = [](const Entry& entry) {
      return entry.*kMember == Member{} ? std::nullopt : std::optional(Stored<Member>::print(entry.*kMember));
    };
  }
  return out;
}

// Of a text that holds a JSON object of another table.
template <class Entry, auto kMember>
[[nodiscard]] constexpr Field<Entry> object_field(std::string_view name, When when) {
  return {name, when,
          [](Element value, Entry& entry) -> Wrong {
            if (!value.is_object()) return " must be an object";
            entry.*kMember = simdjson::minify(value);
            return {};
          },
          [](const Entry& entry) -> std::optional<Json> {
            Json out = Json::parse(entry.*kMember, nullptr, false);
            if (out.is_object()) return out;
            return (entry.*kMember).empty() ? std::nullopt : std::optional(Json::object());
          }};
}

// Of a value that these words have, such as a table of PolicyWord.
template <class Entry, auto kMember, const auto& kWords>
[[nodiscard]] constexpr Field<Entry> word_field(std::string_view name) {
  return {name, When::needed,
          [](Element value, Entry& entry) -> Wrong {
            std::string_view text;
            if (value.get(text) != simdjson::SUCCESS) return " must be a string";
            for (const auto& word : kWords) {
              if (word.text != text) continue;
              entry.*kMember = word.value;
              return {};
            }
            return fmt::format(" has the unknown value \"{}\"", shown_value(text));
          },
          [](const Entry& entry) { return std::optional<Json>(word_of(kWords, entry.*kMember)); }};
}

// "to is missing", of the first field that is wrong; empty: the entry was read.
template <class Entry>
[[nodiscard]] std::string read_fields(simdjson::dom::object object, std::span<const Field<Entry>> fields, Entry& out) {
  for (const Field<Entry>& field : fields) {
    Element value;
    Wrong wrong;
    if (object.at_key(field.name).get(value) == simdjson::SUCCESS)
      wrong = field.read(value, out);
    else if (field.when == When::needed)
      wrong = " is missing";
    if (wrong.empty()) continue;
    return field.wrong.empty() ? fmt::format("{}{}", field.name, wrong) : fmt::format("{} {}", field.name, field.wrong);
  }
  return {};
}

// Sets the fields of `out`, in the order of the table where `out` keeps one.
template <class Entry, class Object>
void print_fields(const Entry& entry, std::span<const Field<Entry>> fields, Object& out) {
  for (const Field<Entry>& field : fields)
    if (auto value = field.print(entry)) out[std::string(field.name)] = *std::move(value);
}

// The root object of a text; nullopt: it is none. Valid until `parser` reads another text.
[[nodiscard]] inline std::optional<simdjson::dom::object> open(std::string_view text, simdjson::dom::parser& parser) {
  simdjson::dom::object out;
  if (text.empty()) return std::nullopt;  // The parser copies from its address, and an empty text may have none.
  if (parser.parse(text.data(), text.size()).get(out) != simdjson::SUCCESS) return std::nullopt;
  return out;
}

// Why this release cannot read the object: its field v is not `known`. Empty: it can. `does`: "reads".
[[nodiscard]] inline std::string version_problem(simdjson::dom::object root, int known, std::string_view does) {
  std::int64_t number = 0;
  if (root.at_key("v").get(number) != simdjson::SUCCESS) return "v must be a number";
  if (number == known) return {};
  return fmt::format("version {} was written by another release; this release {} version {}", number, does, known);
}

// Reads an object of the version Entry::kVersion. What is wrong with it; empty: nothing.
template <class Entry>
[[nodiscard]] std::string read_versioned(std::string_view text, std::span<const Field<Entry>> fields, Entry& out) {
  static simdjson::dom::parser parser;  // Its buffers are used again. Planners run on one thread.
  const auto root = open(text, parser);
  if (!root) return "must be a JSON object";
  std::string problem = version_problem(*root, Entry::kVersion, "reads");
  return problem.empty() ? read_fields(*root, fields, out) : problem;
}

// The text of such an object. `Object`: Json, which sorts the fields, or nlohmann::ordered_json.
template <class Entry, class Object = Json>
[[nodiscard]] std::string print_versioned(const Entry& entry, std::span<const Field<Entry>> fields) {
  Object out = Object::object();
  out["v"] = Entry::kVersion;
  print_fields(entry, fields, out);
  return k8s::dump(out);
}

// --- The types.

template <class T>
struct Plain {  // That JSON has as well.
  static Json print(const T& value) { return value; }
};

template <>
struct Stored<std::string> : Plain<std::string> {
  static Wrong read(Element value, std::string& out) {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS) return " must be a string";
    out = text;
    return {};
  }
};

template <>
struct Stored<bool> : Plain<bool> {
  static Wrong read(Element value, bool& out) {
    return value.get(out) == simdjson::SUCCESS ? "" : " must be true or false";
  }
};

template <>
struct Stored<std::int64_t> : Plain<std::int64_t> {
  static Wrong read(Element value, std::int64_t& out) {
    return value.get(out) == simdjson::SUCCESS ? "" : " must be a whole number";
  }
};

template <>
struct Stored<k8s::WallTime> {
  static Wrong read(Element value, k8s::WallTime& out) {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS) return " must be a string";
    const auto time = k8s::parse_rfc3339(text);
    if (!time) return " must be a time as in 2026-01-02T03:04:05Z";
    out = *time;
    return {};
  }
  static Json print(const k8s::WallTime& time) { return k8s::format_time(time); }
};

template <class T>
struct Stored<std::optional<T>> {
  static Wrong read(Element value, std::optional<T>& out) {
    T read{};
    Wrong wrong = Stored<T>::read(value, read);
    out = std::move(read);
    return wrong;
  }
  static Json print(const std::optional<T>& value) { return value ? Stored<T>::print(*value) : Json(); }
};

template <class List>
struct Texts : Plain<List> {
  static Wrong read(Element value, List& out) {
    simdjson::dom::array items;
    if (value.get(items) != simdjson::SUCCESS) return " must be a list of strings";
    for (const Element item : items) {
      std::string_view text;
      if (item.get(text) != simdjson::SUCCESS) return " must be a list of strings";
      out.insert(out.end(), std::string(text));
    }
    return {};
  }
};
template <>
struct Stored<std::set<std::string>> : Texts<std::set<std::string>> {};
template <>
struct Stored<std::vector<std::string>> : Texts<std::vector<std::string>> {};

template <class T>
struct Stored<std::vector<T>> {
  static Wrong read(Element value, std::vector<T>& out) {
    simdjson::dom::array items;
    if (value.get(items) != simdjson::SUCCESS) return " must be a list";
    for (const Element item : items)
      if (Wrong wrong = Stored<T>::read(item, out.emplace_back()); !wrong.empty()) return wrong;
    return {};
  }
  static Json print(const std::vector<T>& list) {
    Json out = Json::array();
    for (const T& item : list) out.push_back(Stored<T>::print(item));
    return out;
  }
};

// A key that is no text has Stored<Key>::key(text) and name(key).
template <class Key, class T>
struct Stored<std::map<Key, T>> {
  static Wrong read(Element value, std::map<Key, T>& out) {
    simdjson::dom::object members;
    if (value.get(members) != simdjson::SUCCESS) return " must be an object";
    for (const auto [name, inner] : members) {
      Wrong wrong;
      if constexpr (std::is_same_v<Key, std::string>) {
        wrong = Stored<T>::read(inner, out[std::string(name)]);
      } else {
        const std::optional<Key> key = Stored<Key>::key(name);
        wrong =
            key ? Stored<T>::read(inner, out[*key]) : fmt::format(" has the unknown name \"{}\"", shown_value(name));
      }
      if (!wrong.empty()) return wrong;
    }
    return {};
  }
  static Json print(const std::map<Key, T>& map) {
    Json out = Json::object();
    for (const auto& [key, value] : map)
      if constexpr (std::is_same_v<Key, std::string>)
        out[key] = Stored<T>::print(value);
      else
        out[Stored<Key>::name(key)] = Stored<T>::print(value);
    return out;
  }
};

// An entry with a table: `template <> struct Stored<Entry> : EntryOf<Entry, kTable> {};`
template <class Entry, const auto& kTable>
struct EntryOf {
  static Wrong read(Element value, Entry& out) {
    simdjson::dom::object object;
    if (value.get(object) != simdjson::SUCCESS) return " must be an object";
    const std::string wrong = read_fields<Entry>(object, kTable, out);
    return wrong.empty() ? wrong : ": " + wrong;
  }
  static Json print(const Entry& entry) {
    Json out = Json::object();
    print_fields<Entry>(entry, kTable, out);
    return out;
  }
};

}  // namespace gso::stored
