// Content negotiation and the writing of objects and lists. Plain objects are copied as text.
#include "tests/sim/apiserver/representation.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/sim/apiserver/table.h"

namespace gso::sim {
namespace {

using nlohmann::json;

// One media range: "application/json;as=Table;v=v1;g=meta.k8s.io".
std::optional<Format> format_of(std::string_view range) {
  Format format;
  bool first = true;
  while (!range.empty()) {
    std::string_view part = range.substr(0, range.find(';'));
    range.remove_prefix(std::min(range.size(), part.size() + 1));
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (first && part == "application/yaml")
      format.yaml = true;
    else if (first && part != "application/json" && part != "*/*" && part != "application/*")
      return std::nullopt;
    first = false;
    if (part == "as=Table")
      format.as = Format::As::table;
    else if (part == "as=PartialObjectMetadata" || part == "as=PartialObjectMetadataList")
      format.as = Format::As::metadata;
    else if (part == "v=v1beta1")
      return std::nullopt;
    else if (part.starts_with("as="))
      return std::nullopt;
  }
  return format;
}

json partial_metadata(const json& object) {
  return {{"kind", "PartialObjectMetadata"}, {"apiVersion", "meta.k8s.io/v1"}, {"metadata", object["metadata"]}};
}

json table_row(const Resource& resource, const Object& object, const Format& format, k8s::WallTime now) {
  const json shown = served_json(resource, object);
  json row = {{"cells", table_cells(resource, shown, now)}};
  if (format.include_object == "None")
    row["object"] = nullptr;
  else if (format.include_object == "Object")
    row["object"] = shown;
  else
    row["object"] = partial_metadata(shown);
  return row;
}

json column_definitions(const Resource& resource) {
  json columns = json::array();
  for (const Column& column : resource.columns) {
    columns.push_back({{"name", column.name},
                       {"type", column.type},
                       {"format", column.name == "Name" ? "name" : ""},
                       {"description", column.description},
                       {"priority", column.priority}});
  }
  return columns;
}

// Typed lists leave apiVersion and kind of their items out, lists of custom resources do not.
std::string list_item(const Resource& resource, const Object& object) {
  if (resource.custom) return served_text(resource, object);
  if (!resource.from_storage) return object.body();
  json item = served_json(resource, object);
  item.erase("kind");
  item.erase("apiVersion");
  return item.dump();
}

std::string list_metadata(const ListPage& page, bool always_continue) {
  std::string text = fmt::format("{{\"resourceVersion\":\"{}\"", page.revision);
  if (!page.continue_token.empty() || always_continue) text += fmt::format(",\"continue\":\"{}\"", page.continue_token);
  if (page.remaining >= 0) text += fmt::format(",\"remainingItemCount\":{}", page.remaining);
  return text + "}";
}

}  // namespace

Outcome<Format> choose_format(std::string_view accept, std::string_view include_object) {
  if (accept.empty()) accept = "application/json";
  while (!accept.empty()) {
    std::string_view range = accept.substr(0, accept.find(','));
    accept.remove_prefix(std::min(accept.size(), range.size() + 1));
    while (range.starts_with(' ')) range.remove_prefix(1);
    if (auto format = format_of(range)) {
      if (format->as == Format::As::table && !include_object.empty() && include_object != "None" &&
          include_object != "Metadata" && include_object != "Object") {
        return std::unexpected(
            bad_request(fmt::format("Unable to convert to Table as requested: includeObject: Invalid value: "
                                    "\"{}\": must be 'Metadata', 'Object', 'None', or empty",
                                    include_object)));
      }
      if (!include_object.empty()) format->include_object = include_object;
      return *format;
    }
  }
  return std::unexpected(
      ApiError(406, "NotAcceptable",
               "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
               "application/vnd.kubernetes.protobuf, application/json;stream=watch, "
               "application/vnd.kubernetes.protobuf;stream=watch",
               json::object()));
}

std::string served_text(const Resource& resource, const Object& object) {
  if (!resource.from_storage && resource.api_version() == resource.storage_version) return object.text();
  return served_json(resource, object).dump();
}

json served_json(const Resource& resource, json stored) {
  if (resource.from_storage)
    resource.from_storage(stored);
  else
    stored["apiVersion"] = resource.api_version();
  return stored;
}

json served_json(const Resource& resource, const Object& object) {
  return served_json(resource, json(*object.parsed()));
}

std::string render_object(const Resource& resource, const Object& object, const Format& format, k8s::WallTime now,
                          bool with_columns) {
  switch (format.as) {
    case Format::As::object:
      return served_text(resource, object);
    case Format::As::metadata:
      return partial_metadata(*object.parsed()).dump();
    case Format::As::table:
      break;
  }
  json table = {{"kind", "Table"},
                {"apiVersion", "meta.k8s.io/v1"},
                {"metadata", {{"resourceVersion", std::to_string(object.revision())}}},
                {"columnDefinitions", with_columns ? column_definitions(resource) : json()},
                {"rows", {table_row(resource, object, format, now)}}};
  return table.dump();
}

std::string render_list(const Resource& resource, const ListPage& page, const Format& format, k8s::WallTime now) {
  const std::string metadata = list_metadata(page, resource.custom && format.as == Format::As::object);
  if (format.as == Format::As::table) {
    json rows = json::array();
    for (const auto& object : page.objects) rows.push_back(table_row(resource, *object, format, now));
    return fmt::format(
        "{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{},\"columnDefinitions\":{},"
        "\"rows\":{}}}",
        metadata, column_definitions(resource).dump(), rows.dump());
  }
  const bool partial = format.as == Format::As::metadata;
  std::string text = partial ? fmt::format(
                                   "{{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\","
                                   "\"metadata\":{},\"items\":[",
                                   metadata)
                             : fmt::format("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{},\"items\":[",
                                           resource.list_kind, resource.api_version(), metadata);
  std::size_t size = text.size() + 2;
  for (const auto& object : page.objects) size += object->body().size() + 60;
  text.reserve(size);
  bool first = true;
  for (const auto& object : page.objects) {
    if (!first) text += ',';
    first = false;
    text += partial ? partial_metadata(*object->parsed()).dump() : list_item(resource, *object);
  }
  return text + "]}";
}

}  // namespace gso::sim
