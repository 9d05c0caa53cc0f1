// Objects in Kubernetes' protobuf. What an API server sends for one object is an envelope: the four bytes "k8s" and 0,
// then a runtime.Unknown with the kind and the object's message. JSON never begins so: one view can hold either.
//
// protozero reads the messages; it throws where bytes are no protobuf, so every reader of messages is called through
// read_protobuf(). Strings in protobuf are what some client once wrote: whoever puts one into JSON calls
// replace_invalid_utf8().
#pragma once

#include <optional>
#include <protozero/pbf_reader.hpp>
#include <string_view>

#include "k8sclient/value/object.h"

namespace k8s {

[[nodiscard]] bool is_protobuf(std::string_view object);

struct ProtobufObject {
  std::string_view kind;
  std::string_view message;
};
// What is in the envelope; nullopt: it is none, or not readable.
[[nodiscard]] std::optional<ProtobufObject> open_protobuf(std::string_view object);

// Calls read(), which reads protobuf messages; false if bytes were no protobuf.
template <class Read>
[[nodiscard]] bool read_protobuf(Read read) {
  try {
    read();
    return true;
  } catch (const protozero::exception&) {
    return false;
  }
}

namespace protobuf {

// A field's number with the wire type that it must have: one of another type is skipped, as an unknown field is.
constexpr std::uint32_t text(std::uint32_t field) {
  return protozero::tag_and_type(field, protozero::pbf_wire_type::length_delimited);
}
constexpr std::uint32_t number(std::uint32_t field) {
  return protozero::tag_and_type(field, protozero::pbf_wire_type::varint);
}

[[nodiscard]] inline std::string_view view(protozero::pbf_reader& reader) {
  const protozero::data_view bytes = reader.get_view();
  return {bytes.data(), bytes.size()};
}

// Calls read(field, value) for each field of a message, which reads the value of `value` and returns true, or returns
// false: then the field is skipped.
template <class Read>
void each_field(protozero::pbf_reader message, Read read) {
  while (message.next())
    if (!read(message.tag_and_type(), message)) message.skip();
}

// The text of a message that is read for this field alone (text(n)); empty: it has none.
[[nodiscard]] std::string_view only_text(protozero::pbf_reader message, std::uint32_t field);

// One entry of a map<string, …>: the value is a text, or a message.
struct MapEntry {
  std::string_view key;
  std::string_view value;
};
[[nodiscard]] MapEntry read_map_entry(protozero::pbf_reader entry);

// Which metadata is wanted, as json::MetaFilter says it; nullptr keeps no annotation.
using KeepsAnnotation = bool (*)(std::string_view key);
void read_meta(protozero::pbf_reader message, KeepsAnnotation keeps, ObjectMeta& meta);

// Name and namespace, of metadata.
[[nodiscard]] ObjectKey read_key(protozero::pbf_reader meta);

// metadata of any object's message: field 1 of all of them.
[[nodiscard]] protozero::pbf_reader meta_of(std::string_view message);

}  // namespace protobuf
}  // namespace k8s
