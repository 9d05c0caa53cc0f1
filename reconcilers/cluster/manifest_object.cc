// --- Objects of manifests.
#include "reconcilers/cluster/manifests.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reconcilers/model/json_access.h"
#include "reconcilers/model/message_text.h"

namespace gso {
namespace {

using Json = nlohmann::json;

bool is_cluster_scoped(std::string_view kind) {
  constexpr std::string_view kKinds[] = {"Node",
                                         "ClusterPolicy",
                                         "SharingPolicy",
                                         "SharingRollout",
                                         "Config",
                                         "RuntimeClass",
                                         "GPUCluster",
                                         "DeviceClass",
                                         "ResourceSlice",
                                         "Namespace",
                                         "CustomResourceDefinition"};
  return std::ranges::find(kKinds, kind) != std::end(kKinds);
}

// The value of a root member `kind` in a text of one document, as its line has it: "List" of `kind: "List"`.
std::string_view plain_value(std::string_view line) {
  constexpr std::string_view kAround = " \t\r\"',";
  const auto first = line.find_first_not_of(kAround);
  if (first == std::string_view::npos) return {};
  line.remove_prefix(first);
  return line.substr(0, line.find_first_of(kAround));
}

std::optional<std::string> list_kind_of_json(std::string_view text) {
  constexpr std::string_view kKind = "\"kind\"";
  const std::size_t items = text.find("\"items\"");
  if (items == std::string_view::npos) return std::nullopt;
  // kubectl prints the kind after the items, and the API server before them.
  const std::size_t before = text.substr(0, items).find(kKind);
  const std::size_t at = before != std::string_view::npos ? before : text.rfind(kKind);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(at + kKind.size());
  const auto colon = rest.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view kind = plain_value(rest.substr(colon + 1, 256));
  return kind.ends_with("List") ? std::optional(std::string(kind)) : std::nullopt;
}

std::optional<std::string> list_kind_of_yaml(std::string_view text) {
  std::optional<std::string> kind;
  bool items = false;
  bool content = false;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (line.starts_with("---") && content) return std::nullopt;
    if (line.starts_with("items:")) items = true;
    if (line.starts_with("kind:")) kind = plain_value(line.substr(5));
    content = content || (!line.empty() && line.front() != '#' && line.front() != '-' && line.front() != '%');
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return items && kind && kind->ends_with("List") ? kind : std::nullopt;
}

bool is_expected(const DocumentValue& value, std::string_view expected) {
  using Kind = DocumentValue::Kind;
  if (expected == "a string") return value.kind == Kind::string;
  if (expected == "an object") return value.kind == Kind::object;
  if (expected == "a list") return value.kind == Kind::array;
  if (expected == "true or false") return value.kind == Kind::boolean;
  return false;  // What a value says can be wrong as well as its type.
}

// The first value at that path which is not what it must be. Lists on the way are searched item by item, and below the
// path the values of a mapping: an error names labels as a whole. nullptr: none.
const DocumentValue* wrong_value(const DocumentValue& value, std::string_view path, std::string_view expected) {
  if (value.is_array() && expected != "a list") {
    for (const DocumentValue& item : value.items)
      if (const DocumentValue* found = wrong_value(item, path, expected)) return found;
    return nullptr;
  }
  if (path.empty()) {
    if (value.is_object() && expected != "an object") {
      for (const DocumentMember& member : value.members)
        if (const DocumentValue* found = wrong_value(member.value, path, expected)) return found;
      return value.members.empty() ? &value : nullptr;
    }
    return value.is_null() || is_expected(value, expected) ? nullptr : &value;
  }
  const std::size_t dot = path.find('.');
  const DocumentValue* member = value.find(path.substr(0, dot));
  if (member == nullptr) return nullptr;
  return wrong_value(*member, dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1), expected);
}

// A projection that fails before it has read the name says only "Node: ".
std::string with_name(const std::string& message, const DocumentValue& object) {
  const std::string kind = std::string(object.string_at("kind")) + ": ";
  const DocumentValue* metadata = object.find("metadata");
  const std::string_view name = metadata == nullptr ? std::string_view() : metadata->string_at("name");
  if (name.empty() || !message.starts_with(kind)) return message;
  return fmt::format("{} {}: {}", object.string_at("kind"), shown_value(name), message.substr(kind.size()));
}

}  // namespace

Json to_json(const DocumentValue& value) {
  switch (value.kind) {
    case DocumentValue::Kind::null:
      return nullptr;
    case DocumentValue::Kind::boolean:
      return value.boolean;
    case DocumentValue::Kind::string:
      return value.text;
    case DocumentValue::Kind::number: {
      Json number = Json::parse(value.text, nullptr, false);
      return number.is_discarded() ? Json(value.text) : number;
    }
    case DocumentValue::Kind::array: {
      Json out = Json::array();
      for (const DocumentValue& item : value.items) out.push_back(to_json(item));
      return out;
    }
    case DocumentValue::Kind::object: {
      Json out = Json::object();
      auto& members = out.get_ref<Json::object_t&>();
      for (const DocumentMember& member : value.members)
        members.emplace_hint(members.end(), member.key, to_json(member.value));  // They are sorted.
      return out;
    }
  }
  return nullptr;
}

void fill_metadata(const std::string& kind, Json& object) {
  Json& meta = object["metadata"];
  if (!meta.is_object()) return;
  if (!is_cluster_scoped(kind) && text_at(meta, "namespace").empty()) meta["namespace"] = "default";
  const std::string ns = text_at(meta, "namespace");
  const auto uid = [](const std::string& of, const std::string& in, const std::string& name) {
    return fmt::format("{}/{}/{}", of, in, name);
  };
  if (text_at(meta, "uid").empty()) meta["uid"] = uid(kind, ns, text_at(meta, "name"));
  if (!meta.contains("resourceVersion")) meta["resourceVersion"] = "1";
  const auto owners = meta.find("ownerReferences");
  if (owners == meta.end() || !owners->is_array()) return;
  for (Json& owner : *owners) {
    if (!owner.is_object() || !text_at(owner, "uid").empty()) continue;
    const bool cluster_scoped = text_at(owner, "kind") == "ClusterPolicy";
    owner["uid"] = uid(text_at(owner, "kind"), cluster_scoped ? "" : ns, text_at(owner, "name"));
  }
}

std::optional<std::string> list_kind_of(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  text.remove_prefix(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return std::nullopt;
  return text[first] == '{' ? list_kind_of_json(text) : list_kind_of_yaml(text);
}

std::string item_kind(const DocumentValue& item, std::string_view list_kind) {
  constexpr std::string_view kList = "List";
  const std::string_view own = item.string_at("kind");
  if (!own.empty() || !list_kind.ends_with(kList)) return std::string(own);
  return std::string(list_kind.substr(0, list_kind.size() - kList.size()));
}

std::string found_there(const DocumentValue& value) {
  switch (value.kind) {
    case DocumentValue::Kind::boolean:
      return fmt::format("the boolean {}", value.boolean);
    case DocumentValue::Kind::number:
      return fmt::format("the number {}", shown_value(value.text));
    case DocumentValue::Kind::string:
      return fmt::format("\"{}\"", shown_value(value.text));
    case DocumentValue::Kind::null:
    case DocumentValue::Kind::array:
    case DocumentValue::Kind::object:
      break;
  }
  return std::string(kind_name(value.kind));
}

ManifestProblem locate(const k8s::Error& error, const DocumentValue& object) {
  const std::string message = with_name(error.message, object);
  if (error.causes.empty()) return {object.at, message};
  const k8s::Cause& wrong = error.causes.front();
  const DocumentValue* value = nullptr;
  for (const std::string_view above : {"", "spec.", "spec.template.spec."})  // Where pods stand in objects.
    if (value == nullptr) value = wrong_value(object, fmt::format("{}{}", above, wrong.field), wrong.message);
  if (value != nullptr) {
    const bool quotes = wrong.message.ends_with("string") &&
                        (value->kind == DocumentValue::Kind::boolean || value->kind == DocumentValue::Kind::number);
    const std::string_view cure = !quotes ? ""
                                  : value->kind == DocumentValue::Kind::boolean
                                      ? " (in YAML yes, no, on, off, y and n are booleans): put it in quotes"
                                      : ": put it in quotes";
    return {value->at, fmt::format("{}, found {}{}", message, found_there(*value), cure)};
  }
  const DocumentValue* metadata = object.find("metadata");
  const bool missing = metadata != nullptr && wrong.field.starts_with("metadata.");
  return {missing ? metadata->at : object.at, message};
}

}  // namespace gso
