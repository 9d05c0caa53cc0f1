#include "k8sclient/api/object_json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include "k8sclient/value/json_access.h"
#include "k8sclient/value/protobuf_object.h"

namespace k8s {
namespace {

namespace ondemand = simdjson::ondemand;

// The texts of metadata that are asked for; null: not wanted.
struct Wanted {
  std::string* name = nullptr;
  std::string* ns = nullptr;
  std::string* resource_version = nullptr;

  [[nodiscard]] std::string* of(std::string_view field) const {
    if (field == "name") return name;
    if (field == "namespace") return ns;
    return field == "resourceVersion" ? resource_version : nullptr;
  }
};

simdjson::error_code read_metadata(ondemand::object metadata, const Wanted& wanted) {
  for (auto field : metadata) {
    std::string_view name;
    ondemand::value value;
    if (auto error = field.unescaped_key().get(name)) return error;
    if (auto error = field.value().get(value)) return error;
    std::string* const target = wanted.of(name);
    if (target == nullptr) continue;
    std::string_view text;
    if (auto error = value.get_string().get(text)) return error;
    *target = std::string(text);
  }
  return simdjson::SUCCESS;
}

simdjson::error_code read_object(ondemand::document& document, const Wanted& wanted) {
  ondemand::object root;
  if (auto error = document.get_object().get(root)) return error;
  ondemand::value metadata;
  if (auto error = root.find_field("metadata").get(metadata)) return error;
  ondemand::object fields;
  if (auto error = metadata.get_object().get(fields)) return error;
  return read_metadata(fields, wanted);
}

Result<ObjectKey> key_of_protobuf(std::string_view text) {
  const auto object = open_protobuf(text);
  ObjectMeta meta;
  if (!object || !read_protobuf([&] { protobuf::read_meta(protobuf::meta_of(object->message), nullptr, meta); })) {
    return fail(Reason::decode, "object metadata is not readable: no protobuf");
  }
  if (meta.name.empty()) return fail(Reason::decode, "object has no metadata.name");
  return meta.key();
}

}  // namespace

Result<ObjectKey> read_object_key(std::string_view object) {
  if (is_protobuf(object)) return key_of_protobuf(object);
  ondemand::document document;
  ObjectKey key;
  auto error = JsonScratch::of_thread().open(
      simdjson::padded_string_view(object.data(), object.size(), object.size() + kJsonPadding), document);
  if (error == simdjson::SUCCESS) error = read_object(document, {.name = &key.name, .ns = &key.ns});
  if (error != simdjson::SUCCESS) {
    return fail(Reason::decode, fmt::format("object metadata is not readable: {}", simdjson::error_message(error)));
  }
  if (key.name.empty()) return fail(Reason::decode, "object has no metadata.name");
  return key;
}

std::string read_resource_version(std::string_view json) {
  ondemand::document document;
  std::string version;
  auto error = JsonScratch::of_thread().open_copy(json, document);
  if (error == simdjson::SUCCESS) error = read_object(document, {.resource_version = &version});
  return error == simdjson::SUCCESS ? version : std::string();
}

}  // namespace k8s
