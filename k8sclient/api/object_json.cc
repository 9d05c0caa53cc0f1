#include "k8sclient/api/object_json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <utility>

#include "k8sclient/api/status.h"
#include "k8sclient/value/json_access.h"
#include "k8sclient/value/protobuf_object.h"

namespace k8s {

namespace {

namespace ondemand = simdjson::ondemand;

// The texts of these fields; empty: there is none. For read_json().
template <std::size_t N>
std::array<std::string, N> texts_of(ondemand::object object, const std::array<std::string_view, N>& names) {
  std::array<std::string, N> out;
  for (auto field : object) {
    const std::string_view key = field.unescaped_key();
    const auto at = static_cast<std::size_t>(std::ranges::find(names, key) - names.begin());
    if (at < N) out[at] = field.value().get_string().value();
  }
  return out;
}

// The same of an object's metadata.
template <std::size_t N>
std::array<std::string, N> metadata_texts(ondemand::document& object, const std::array<std::string_view, N>& names) {
  return texts_of(object.get_object().find_field("metadata").get_object(), names);
}

Result<ObjectKey> key_of_protobuf(std::string_view text) {
  const auto object = open_protobuf(text);
  ObjectKey key;
  if (!object || !read_protobuf([&] { key = protobuf::read_key(protobuf::meta_of(object->message)); }))
    return fail(Reason::decode, "object metadata is not readable: no protobuf");
  if (key.name.empty()) return fail(Reason::decode, "object has no metadata.name");
  return key;
}

}  // namespace

Result<ObjectKey> read_object_key(std::string_view object) {
  if (is_protobuf(object)) return key_of_protobuf(object);
  ondemand::document document;
  ObjectKey key;
  auto error = JsonScratch::of_thread().open(object, document);
  if (error == simdjson::SUCCESS) {
    error = read_json([&] {
      auto [ns, name] = metadata_texts<2>(document, {"namespace", "name"});
      key = {std::move(ns), std::move(name)};
    });
  }
  if (error != simdjson::SUCCESS)
    return fail(Reason::decode, fmt::format("object metadata is not readable: {}", simdjson::error_message(error)));
  if (key.name.empty()) return fail(Reason::decode, "object has no metadata.name");
  return key;
}

std::string read_resource_version(std::string_view json) {
  ondemand::document document;
  std::string version;
  if (JsonScratch::of_thread().open_copy(json, document) != simdjson::SUCCESS) return version;
  const auto error = read_json([&] { version = metadata_texts<1>(document, {"resourceVersion"})[0]; });
  return error == simdjson::SUCCESS ? version : std::string();
}

namespace {

// The sink's error ends the list.
Result<void> read_items(ondemand::value value, ItemSink* sink) {
  if (value.is_null().value()) return {};  // How Go writes an empty list that was never allocated.
  ondemand::array items = value.get_array();
  for (auto item : items) {
    ondemand::object object = item.get_object();
    Result<void> taken = sink->item(object.raw_json());
    if (!taken) return taken;
  }
  return {};
}

// `page` and what the sink said. For read_json().
Result<void> read_page(ondemand::document& document, ItemSink* sink, ListPage* page) {
  ondemand::object root = document.get_object();
  for (auto field : root) {
    const std::string_view key = field.unescaped_key();
    if (key == "metadata") {
      auto [version, token] = texts_of<2>(field.value().get_object(), {"resourceVersion", "continue"});
      *page = {std::move(version), std::move(token)};
    } else if (key == "items") {
      Result<void> taken = read_items(field.value(), sink);
      if (!taken) return taken;
    }
  }
  must_end(document);
  return {};
}

}  // namespace

Result<ListPage> decode_list_page(std::string body, ItemSink* sink) {
  body.reserve(body.size() + kJsonPadding);  // Which simdjson relies on.
  ondemand::parser parser;                   // Not shared: its index is as large as the page, and goes with it.
  ListPage page;
  Result<void> taken;
  const auto error = read_json([&] {
    ondemand::document document = parser.iterate(body);
    taken = read_page(document, sink, &page);
  });
  if (!taken) return std::unexpected(taken.error());
  if (error != simdjson::SUCCESS) {
    if (const std::string html = quoted_html(200, body); !html.empty())
      return fail(Reason::decode,
                  fmt::format("HTTP 200: {}: check the address of the server, which `kubectl cluster-info` "
                              "prints",
                              html));
    return fail(Reason::decode, fmt::format("the answer is not a complete list: {} ({} bytes)",
                                            simdjson::error_message(error), body.size()));
  }
  if (page.resource_version.empty())
    return fail(Reason::decode, "the answer is not a Kubernetes list: it has no metadata.resourceVersion");
  return page;
}

}  // namespace k8s
