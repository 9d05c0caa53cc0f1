// ApiClient::served() and discover().
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "k8sclient/api/client.h"
#include "k8sclient/api/discovery.h"
#include "k8sclient/value/paths.h"

namespace k8s {
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
  Call call;
  call.request.path = "/apis";
  call.request.accept =
      "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
      "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
  call.request.channel = options.channel;
  call.verb = "GET";
  call.resource = call.request.path;
  call.what = "get /apis";
  call.deadline = options.deadline;
  call.max_retries = options_.max_retries;
  Result<HttpResponse> answer = co_await execute(std::move(call));
  if (!answer) co_return std::unexpected(answer.error());
  Result<ServedKinds> kinds = decode_aggregated_discovery(answer->body);
  if (!kinds) co_return std::unexpected(named(kinds.error(), "discovery"));
  co_return std::move(*kinds);
}

}  // namespace k8s
