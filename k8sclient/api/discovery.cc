#include "k8sclient/api/discovery.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "k8sclient/api/client.h"

namespace k8s {

namespace {

namespace dom = simdjson::dom;

// The text that a JSON pointer leads to; empty: there is none.
std::string text_behind(dom::element object, std::string_view pointer) {
  std::string_view text;
  return object.at_pointer(pointer).get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

// Calls read(element) for each element of that list; none where there is no such list: Go sends null for an empty one.
template <class Read>
void each_at(dom::element object, std::string_view key, Read read) {
  dom::array list;
  if (object[key].get(list) != simdjson::SUCCESS) return;
  for (dom::element element : list) read(element);
}

// Parses `json` and checks that it is of the kind, or of the other one; `parser` owns what is returned.
Result<dom::element> parse_kind(dom::parser& parser, std::string_view json, std::string_view kind,
                                std::string_view other = {}) {
  dom::element root;
  // The parser copies from the address of a text, and an empty one may have none.
  if (json.empty()) return fail(Reason::decode, "discovery document is empty");
  if (auto error = parser.parse(json.data(), json.size()).get(root))
    return fail(Reason::decode, fmt::format("discovery document is not JSON: {}", simdjson::error_message(error)));
  const std::string found = text_behind(root, "/kind");
  if (found != kind && (other.empty() || found != other))
    return fail(Reason::decode, fmt::format("discovery document has kind \"{}\", expected {}", found, kind));
  return root;
}

// Whether a metav1.APIResourceList names the resource. Errors: `decode`.
Result<bool> lists_resource(std::string_view json, std::string_view resource) {
  dom::parser parser;
  const Result<dom::element> root = parse_kind(parser, json, "APIResourceList");
  if (!root) return std::unexpected(root.error());
  bool listed = false;
  each_at(*root, "resources", [&](dom::element item) { listed |= text_behind(item, "/name") == resource; });
  return listed;
}

}  // namespace

std::string group_version(const Gvr& gvr) {
  return gvr.group.empty() ? gvr.version : gvr.group + "/" + gvr.version;
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
  if (text_behind(*root, "/kind") == "APIGroupList") return out;
  out.aggregated = true;
  each_at(*root, "items", [&out](dom::element group) {
    const std::string name = text_behind(group, "/metadata/name");
    each_at(group, "versions", [&](dom::element version) {
      const std::string number = text_behind(version, "/version");
      if (text_behind(version, "/freshness") == "Stale") out.stale.insert(group_version(Gvr(name, number, "")));
      each_at(version, "resources",
              [&](dom::element resource) { out.kinds.emplace(name, number, text_behind(resource, "/resource")); });
    });
  });
  return out;
}

Result<std::vector<std::string>> decode_group_versions(std::string_view json) {
  dom::parser parser;
  std::vector<std::string> out;
  const Result<dom::element> root = parse_kind(parser, json, "APIGroupList", "APIVersions");
  if (!root) return std::unexpected(root.error());
  each_at(*root, "versions", [&out](dom::element version) {  // Of APIVersions.
    std::string_view text;
    if (version.get(text) == simdjson::SUCCESS) out.emplace_back(text);
  });
  each_at(*root, "groups", [&out](dom::element group) {
    const std::string first = text_behind(group, "/preferredVersion/groupVersion");
    if (!first.empty()) out.push_back(first);
    each_at(group, "versions", [&](dom::element version) {
      if (const std::string name = text_behind(version, "/groupVersion"); name != first) out.push_back(name);
    });
  });
  return out;
}

// --- ApiClient::served() and discover().

boost::asio::awaitable<Result<bool>> ApiClient::served(Gvr gvr, CallOptions options) {
  const std::string name = group_version(gvr);
  Result<std::string> document = co_await get_path(group_version_path(gvr), options);
  if (document) {
    const Result<bool> listed = lists_resource(*document, gvr.resource);
    if (!listed) co_return std::unexpected(prefixed("discovery of " + name, listed.error()));
    co_return *listed;
  }
  if (document.error().reason != Reason::not_found) co_return std::unexpected(document.error());

  // A 404 may come from anything on the way. Only a group list that does not name it says that it is absent.
  Result<std::string> groups = co_await get_path(gvr.group.empty() ? "/api" : "/apis", options);
  if (!groups) co_return std::unexpected(groups.error());
  Result<std::vector<std::string>> versions = decode_group_versions(*groups);
  if (!versions) co_return std::unexpected(prefixed("discovery of " + name, versions.error()));
  if (std::find(versions->begin(), versions->end(), name) == versions->end()) co_return false;
  co_return fail(Reason::unavailable, fmt::format("{} is named by discovery, but its document answers 404", name));
}

boost::asio::awaitable<Result<ServedKinds>> ApiClient::discover(CallOptions options) {
  HttpRequest request;
  request.path = "/apis";
  request.accept =
      "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
      "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
  const Result<std::string> answer = co_await read("GET", "/apis", std::move(request), "get /apis", options);
  if (!answer) co_return std::unexpected(answer.error());
  Result<ServedKinds> kinds = decode_aggregated_discovery(*answer);
  if (!kinds) co_return std::unexpected(prefixed("discovery", kinds.error()));
  co_return std::move(*kinds);
}

}  // namespace k8s
