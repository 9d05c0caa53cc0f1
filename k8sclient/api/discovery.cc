#include "k8sclient/api/discovery.h"

#include <fmt/format.h>
#include <simdjson.h>

namespace k8s {
namespace {

namespace dom = simdjson::dom;

std::string element_text_at(dom::element object, std::string_view key) {
  std::string_view text;
  return object[key].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

std::vector<std::string> texts_at(dom::element object, std::string_view key) {
  std::vector<std::string> out;
  dom::array array;
  if (object[key].get(array) != simdjson::SUCCESS) return out;
  for (dom::element item : array) {
    std::string_view text;
    if (item.get(text) == simdjson::SUCCESS) out.emplace_back(text);
  }
  return out;
}

// Parses `json` and checks that it is of the kind, or of the other one; `parser` owns what is returned.
Result<dom::element> parse_kind(dom::parser& parser, std::string_view json, std::string_view kind,
                                std::string_view other = {}) {
  dom::element root;
  // The parser copies from the address of a text, and an empty one may have none.
  if (json.empty()) return fail(Reason::decode, "discovery document is empty");
  if (auto error = parser.parse(json.data(), json.size()).get(root)) {
    return fail(Reason::decode, fmt::format("discovery document is not JSON: {}", simdjson::error_message(error)));
  }
  const std::string found = element_text_at(root, "kind");
  if (found != kind && (other.empty() || found != other)) {
    return fail(Reason::decode, fmt::format("discovery document has kind \"{}\", expected {}", found, kind));
  }
  return root;
}

}  // namespace

std::string group_version(const Gvr& gvr) {
  return gvr.group.empty() ? gvr.version : gvr.group + "/" + gvr.version;
}

Result<bool> lists_resource(std::string_view json, std::string_view resource) {
  dom::parser parser;
  const Result<dom::element> root = parse_kind(parser, json, "APIResourceList");
  if (!root) return std::unexpected(root.error());
  dom::array resources;
  if ((*root)["resources"].get(resources) != simdjson::SUCCESS) return false;  // A group without resources sends null.
  for (dom::element item : resources) {
    if (element_text_at(item, "name") == resource) return true;
  }
  return false;
}

std::optional<bool> ServedKinds::serves(const Gvr& gvr) const {
  if (kinds.contains(gvr)) return true;
  // The document of /apis has no core group.
  if (!aggregated || gvr.group.empty() || stale.contains(group_version(gvr))) return std::nullopt;
  return false;
}

Result<ServedKinds> decode_aggregated_discovery(std::string_view json) {
  dom::parser parser;
  ServedKinds out;
  const Result<dom::element> root = parse_kind(parser, json, "APIGroupDiscoveryList", "APIGroupList");
  if (!root) return std::unexpected(root.error());
  if (element_text_at(*root, "kind") == "APIGroupList") return out;
  out.aggregated = true;
  dom::array groups;
  if ((*root)["items"].get(groups) != simdjson::SUCCESS) return out;
  for (dom::element group : groups) {
    dom::element metadata;
    const bool named = group["metadata"].get(metadata) == simdjson::SUCCESS;
    const std::string name = named ? element_text_at(metadata, "name") : std::string();
    dom::array versions;
    if (group["versions"].get(versions) != simdjson::SUCCESS) continue;
    for (dom::element version : versions) {
      const std::string number = element_text_at(version, "version");
      if (element_text_at(version, "freshness") == "Stale") out.stale.insert(group_version(Gvr(name, number, "")));
      dom::array resources;
      if (version["resources"].get(resources) != simdjson::SUCCESS) continue;
      for (dom::element resource : resources) out.kinds.emplace(name, number, element_text_at(resource, "resource"));
    }
  }
  return out;
}

Result<std::vector<std::string>> decode_group_versions(std::string_view json) {
  dom::parser parser;
  std::vector<std::string> out;
  const Result<dom::element> root = parse_kind(parser, json, "APIGroupList", "APIVersions");
  if (!root) return std::unexpected(root.error());
  if (element_text_at(*root, "kind") == "APIVersions") return texts_at(*root, "versions");
  dom::array groups;
  if ((*root)["groups"].get(groups) != simdjson::SUCCESS) return out;
  for (dom::element group : groups) {
    dom::element preferred;
    const bool has = group["preferredVersion"].get(preferred) == simdjson::SUCCESS;
    const std::string first = has ? element_text_at(preferred, "groupVersion") : std::string();
    if (!first.empty()) out.push_back(first);
    dom::array versions;
    if (group["versions"].get(versions) != simdjson::SUCCESS) continue;
    for (dom::element version : versions) {
      if (const std::string name = element_text_at(version, "groupVersion"); name != first) out.push_back(name);
    }
  }
  return out;
}

}  // namespace k8s
