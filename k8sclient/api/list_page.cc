#include "k8sclient/api/list_page.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <string_view>
#include <utility>

#include "k8sclient/api/object_json.h"

namespace k8s {
namespace {

namespace ondemand = simdjson::ondemand;
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
