#include "k8sclient/api/object_json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <string_view>
#include <utility>

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

namespace {

using simdjson::error_code;

error_code read_metadata(ondemand::value value, ListPage* page) {
  ondemand::object metadata;
  if (auto error = value.get_object().get(metadata)) return error;
  for (auto field : metadata) {
    std::string_view key;
    if (auto error = field.unescaped_key().get(key)) return error;
    if (key != "resourceVersion" && key != "continue") continue;
    std::string_view text;
    if (auto error = field.value().get_string().get(text)) return error;
    (key == "continue" ? page->continue_token : page->resource_version) = std::string(text);
  }
  return simdjson::SUCCESS;
}

// `refused` is set when the sink ended the list.
error_code read_items(ondemand::value value, ItemSink* sink, Result<void>* refused) {
  bool null = false;
  if (auto error = value.is_null().get(null)) return error;
  if (null) return simdjson::SUCCESS;  // How Go writes an empty list that was never allocated.
  ondemand::array items;
  if (auto error = value.get_array().get(items)) return error;
  for (auto element : items) {
    ondemand::object object;
    std::string_view json;
    if (auto error = element.get_object().get(object)) return error;
    if (auto error = object.raw_json().get(json)) return error;
    *refused = sink->item(json);
    if (!*refused) return simdjson::SUCCESS;
  }
  return simdjson::SUCCESS;
}

error_code read_page(ondemand::document& document, ItemSink* sink, ListPage* page, Result<void>* refused) {
  ondemand::object root;
  if (auto error = document.get_object().get(root)) return error;
  for (auto field : root) {
    std::string_view key;
    ondemand::value value;
    if (auto error = field.unescaped_key().get(key)) return error;
    if (auto error = field.value().get(value)) return error;
    if (key == "metadata") {
      if (auto error = read_metadata(value, page)) return error;
    } else if (key == "items") {
      if (auto error = read_items(value, sink, refused)) return error;
      if (!*refused) return simdjson::SUCCESS;
    }
  }
  const bool at_end = document.current_location().error() == simdjson::OUT_OF_BOUNDS;
  return at_end ? simdjson::SUCCESS : simdjson::TRAILING_CONTENT;
}

}  // namespace

Result<ListPage> decode_list_page(std::string body, ItemSink* sink) {
  body.reserve(body.size() + kJsonPadding);
  ondemand::parser parser;  // Not shared: its index is as large as the page, and goes with it.
  ondemand::document document;
  ListPage page;
  Result<void> refused;
  auto error =
      parser.iterate(simdjson::padded_string_view(body.data(), body.size(), body.size() + kJsonPadding)).get(document);
  if (error == simdjson::SUCCESS) error = read_page(document, sink, &page, &refused);
  if (!refused) return std::unexpected(refused.error());
  if (error != simdjson::SUCCESS) {
    return fail(Reason::decode, fmt::format("the answer is not a complete list: {} ({} bytes)",
                                            simdjson::error_message(error), body.size()));
  }
  if (page.resource_version.empty()) {
    return fail(Reason::decode, "the answer is not a Kubernetes list: it has no metadata.resourceVersion");
  }
  return page;
}

}  // namespace k8s
