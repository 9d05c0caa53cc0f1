#include "k8sclient/api/discovery.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "k8sclient/api/client.h"

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

// --- ApiClient::served() and discover().

namespace {

namespace asio = boost::asio;

Error named(Error error, std::string_view what) {
  error.message = fmt::format("{}: {}", what, error.message);
  return error;
}

}  // namespace

asio::awaitable<Result<bool>> ApiClient::served(Gvr gvr, CallOptions options) {
  const std::string name = group_version(gvr);
  Result<std::string> document = co_await get_path(group_version_path(gvr), options);
  if (document) {
    const Result<bool> listed = lists_resource(*document, gvr.resource);
    if (!listed) co_return std::unexpected(named(listed.error(), "discovery of " + name));
    co_return *listed;
  }
  if (document.error().reason != Reason::not_found) co_return std::unexpected(document.error());

  // A 404 may come from anything on the way. Only a group list that does not name it says that it is absent.
  Result<std::string> groups = co_await get_path(gvr.group.empty() ? "/api" : "/apis", options);
  if (!groups) co_return std::unexpected(groups.error());
  Result<std::vector<std::string>> versions = decode_group_versions(*groups);
  if (!versions) co_return std::unexpected(named(versions.error(), "discovery of " + name));
  if (std::find(versions->begin(), versions->end(), name) == versions->end()) co_return false;
  co_return fail(Reason::unavailable, fmt::format("{} is named by discovery, but its document answers 404", name));
}

asio::awaitable<Result<ServedKinds>> ApiClient::discover(CallOptions options) {
  HttpRequest request;
  request.path = "/apis";
  request.accept =
      "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
      "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
  const Result<std::string> answer = co_await read("GET", "/apis", std::move(request), "get /apis", options);
  if (!answer) co_return std::unexpected(answer.error());
  Result<ServedKinds> kinds = decode_aggregated_discovery(*answer);
  if (!kinds) co_return std::unexpected(named(kinds.error(), "discovery"));
  co_return std::move(*kinds);
}

}  // namespace k8s
