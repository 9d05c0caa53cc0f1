// The discovery of ApiClient: aggregated where the server offers it, document by document where not.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "k8sclient/api/client.h"
#include "k8sclient/value/paths.h"

namespace k8s {
namespace {

namespace asio = boost::asio;

constexpr std::string_view kAggregated =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

Gvr split_group_version(std::string_view group_version) {
  const std::size_t slash = group_version.find('/');
  if (slash == std::string_view::npos) return {"", std::string(group_version), ""};
  return {std::string(group_version.substr(0, slash)), std::string(group_version.substr(slash + 1)), ""};
}

Error named(Error error, std::string_view what) {
  error.message = fmt::format("{}: {}", what, error.message);
  return error;
}

}  // namespace

// One group version's own document; a failure is noted in `found`, and so is a 404: the group list names it.
asio::awaitable<void> ApiClient::discover_version(std::string name, Discovery* found, CallOptions options) {
  Result<std::string> document = co_await get_path(group_version_path(split_group_version(name)), options);
  if (!document) {
    found->failed[name] = document.error();
    co_return;
  }
  if (Result<void> decoded = decode_resource_list(*document, name, found); !decoded) {
    found->failed[name] = named(decoded.error(), "discovery of " + name);
  }
}

// "/api" (core) or "/apis" (groups).
asio::awaitable<Result<void>> ApiClient::discover_root(std::string path, Discovery* found, CallOptions options) {
  Result<HttpResponse> answer = co_await read("GET", path, path, "discover " + path, std::string(kAggregated), options);
  if (!answer) {
    // A server of extension APIs alone has no core group.
    if (path == "/api" && answer.error().reason == Reason::not_found) co_return Result<void>{};
    co_return std::unexpected(answer.error());
  }
  if (Result<void> aggregated = decode_aggregated(answer->body, found); aggregated) co_return aggregated;
  Result<std::vector<std::string>> versions = decode_group_versions(answer->body);
  if (!versions) co_return std::unexpected(named(versions.error(), "discover " + path));
  for (std::size_t i = 0; i < versions->size(); ++i) {
    co_await discover_version((*versions)[i], found, options);
  }
  co_return Result<void>{};
}

asio::awaitable<Result<Discovery>> ApiClient::discover(CallOptions options) {
  Discovery found;
  Result<void> core = co_await discover_root("/api", &found, options);
  if (!core) co_return std::unexpected(core.error());
  Result<void> groups = co_await discover_root("/apis", &found, options);
  if (!groups) co_return std::unexpected(groups.error());
  co_return found;
}

asio::awaitable<Result<bool>> ApiClient::served(Gvr gvr, CallOptions options) {
  const std::string name = group_version(gvr);
  Result<std::string> document = co_await get_path(group_version_path(gvr), options);
  if (document) {
    Discovery found;
    if (Result<void> decoded = decode_resource_list(*document, name, &found); !decoded) {
      co_return std::unexpected(named(decoded.error(), "discovery of " + name));
    }
    co_return found.find(gvr) != nullptr;
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

}  // namespace k8s
