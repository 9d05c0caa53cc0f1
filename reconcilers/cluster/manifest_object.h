// One Kubernetes object of a manifest: from its YAML to the JSON text that projections read, and from an error of a
// projection back to the place in the file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "k8sclient/value/error.h"
#include "reconcilers/profile/document_value.h"

namespace gso {

// The value as JSON.
[[nodiscard]] nlohmann::json to_json(const DocumentValue& value);
// The same as text.
[[nodiscard]] std::string json_of(const DocumentValue& value);

// Sets what a server would have set: the namespace `default` of a namespaced object, a uid ("kind/namespace/name"), the
// resourceVersion "1", the uids of owners.
void fill_metadata(const std::string& kind, nlohmann::json& object);

// The kind of the List that the text seems to be ("List", "NodeList"): what a line of the text claims, which only
// reading it can prove. nullopt: it is something else, or more than one document.
[[nodiscard]] std::optional<std::string> list_kind_of(std::string_view text);

// The kind of an item of that List that has none of its own: the items of a NodeList are Nodes.
[[nodiscard]] std::string item_kind(const DocumentValue& item, std::string_view list_kind);

struct ManifestProblem {
  Position at;
  std::string message;  // "Node n1: metadata.name must be a string, found the boolean false: put it in quotes"
};
// `error`: of a projection of the object. The place is that of the field which the error names.
[[nodiscard]] ManifestProblem locate(const k8s::Error& error, const DocumentValue& object);

// "the boolean false", "the number 4", "\"text\"", "a list": for messages. Long texts are cut.
[[nodiscard]] std::string found_there(const DocumentValue& value);

}  // namespace gso
