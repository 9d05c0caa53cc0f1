#include "k8sclient/api/discovery.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

namespace k8s {
namespace {

namespace dom = simdjson::dom;

std::string text_at(dom::element object, std::string_view key) {
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

// Parses `json` and checks its kind; `parser` owns what is returned.
Result<dom::element> parse_kind(dom::parser& parser, std::string_view json, std::string_view kind) {
  dom::element root;
  if (auto error = parser.parse(json.data(), json.size()).get(root)) {
    return fail(Reason::decode, fmt::format("discovery document is not JSON: {}", simdjson::error_message(error)));
  }
  const std::string found = text_at(root, "kind");
  if (found != kind) {
    return fail(Reason::decode, fmt::format("discovery document has kind \"{}\", expected {}", found, kind));
  }
  return root;
}

ApiResource aggregated_resource(dom::element item, const std::string& group, const std::string& version) {
  ApiResource resource;
  resource.gvr = {group, version, text_at(item, "resource")};
  dom::element kind;
  if (item["responseKind"].get(kind) == simdjson::SUCCESS) resource.kind = text_at(kind, "kind");
  resource.namespaced = text_at(item, "scope") == "Namespaced";
  resource.verbs = texts_at(item, "verbs");
  dom::array subresources;
  if (item["subresources"].get(subresources) == simdjson::SUCCESS) {
    for (dom::element sub : subresources) resource.subresources.push_back(text_at(sub, "subresource"));
  }
  return resource;
}

void add_aggregated_version(dom::element item, const std::string& group, Discovery* found) {
  const std::string version = text_at(item, "version");
  dom::array resources;
  if (item["resources"].get(resources) == simdjson::SUCCESS) {
    for (dom::element resource : resources) found->resources.push_back(aggregated_resource(resource, group, version));
  }
  if (text_at(item, "freshness") == "Stale") {
    const std::string name = group_version({group, version, ""});
    found->failed[name] =
        Error{Reason::unavailable, 0, fmt::format("discovery of {} is stale: its API server does not answer", name)};
  }
}

}  // namespace

std::string group_version(const Gvr& gvr) {
  return gvr.group.empty() ? gvr.version : gvr.group + "/" + gvr.version;
}

const ApiResource* Discovery::find(const Gvr& gvr) const {
  const auto it = std::find_if(resources.begin(), resources.end(), [&](const ApiResource& r) { return r.gvr == gvr; });
  return it == resources.end() ? nullptr : &*it;
}

Result<void> decode_aggregated(std::string_view json, Discovery* found) {
  dom::parser parser;
  const Result<dom::element> root = parse_kind(parser, json, "APIGroupDiscoveryList");
  if (!root) return std::unexpected(root.error());
  dom::array groups;
  if ((*root)["items"].get(groups) != simdjson::SUCCESS) return {};  // A server without groups sends null.
  for (dom::element item : groups) {
    dom::element metadata;
    const bool named = item["metadata"].get(metadata) == simdjson::SUCCESS;
    const std::string group = named ? text_at(metadata, "name") : std::string();
    dom::array versions;
    if (item["versions"].get(versions) != simdjson::SUCCESS) continue;
    for (dom::element version : versions) add_aggregated_version(version, group, found);
  }
  return {};
}

Result<void> decode_resource_list(std::string_view json, std::string_view group_version, Discovery* found) {
  dom::parser parser;
  const Result<dom::element> root = parse_kind(parser, json, "APIResourceList");
  if (!root) return std::unexpected(root.error());
  const std::size_t slash = group_version.find('/');
  const std::string group(slash == std::string_view::npos ? "" : group_version.substr(0, slash));
  const std::string version(slash == std::string_view::npos ? group_version : group_version.substr(slash + 1));
  dom::array resources;
  if ((*root)["resources"].get(resources) != simdjson::SUCCESS) return {};
  std::vector<std::string> subresources;
  for (dom::element item : resources) {
    const std::string name = text_at(item, "name");
    if (name.find('/') != std::string::npos) {
      subresources.push_back(name);
      continue;
    }
    ApiResource resource{{group, version, name}, text_at(item, "kind"), false, texts_at(item, "verbs"), {}};
    bool namespaced = false;
    if (item["namespaced"].get(namespaced) == simdjson::SUCCESS) resource.namespaced = namespaced;
    found->resources.push_back(std::move(resource));
  }
  for (const std::string& name : subresources) {
    const std::size_t at = name.find('/');
    for (ApiResource& resource : found->resources) {
      if (resource.gvr == Gvr{group, version, name.substr(0, at)}) resource.subresources.push_back(name.substr(at + 1));
    }
  }
  return {};
}

Result<std::vector<std::string>> decode_group_versions(std::string_view json) {
  dom::parser parser;
  std::vector<std::string> out;
  if (const auto core = parse_kind(parser, json, "APIVersions"); core) return texts_at(*core, "versions");
  const Result<dom::element> root = parse_kind(parser, json, "APIGroupList");
  if (!root) return std::unexpected(root.error());
  dom::array groups;
  if ((*root)["groups"].get(groups) != simdjson::SUCCESS) return out;
  for (dom::element group : groups) {
    dom::element preferred;
    const bool has = group["preferredVersion"].get(preferred) == simdjson::SUCCESS;
    const std::string first = has ? text_at(preferred, "groupVersion") : std::string();
    if (!first.empty()) out.push_back(first);
    dom::array versions;
    if (group["versions"].get(versions) != simdjson::SUCCESS) continue;
    for (dom::element version : versions) {
      if (const std::string name = text_at(version, "groupVersion"); name != first) out.push_back(name);
    }
  }
  return out;
}

}  // namespace k8s
