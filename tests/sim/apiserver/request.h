// A request as the API understands it: who asks, which verb, which resource, which options.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/transport/transport.h"
#include "k8sclient/value/object.h"
#include "tests/sim/apiserver/resource.h"

namespace gso::sim {

// Who sends a request.
struct RequestContext {
  std::string user = "system:admin";
  std::string user_agent = "unknown/v0";
  // A fault: reads see the state of this many revisions ago.
  std::uint64_t stale_revisions = 0;
};

struct RequestInfo {
  enum class Path { other, resource };  // other: health, version, discovery, OpenAPI.
  Path kind = Path::other;
  std::string path;  // Without the query, decoded.
  std::vector<std::string> segments;
  std::map<std::string, std::string> query;
  std::string verb;  // get, list, watch, create, update, patch, delete, deletecollection
  std::string group;
  std::string version;
  std::string plural;
  k8s::ObjectKey key;  // Namespace, and name where there is one.
  std::string subresource;

  // A query parameter, or empty.
  [[nodiscard]] std::string option(const std::string& name) const;
  [[nodiscard]] bool flag(const std::string& name) const;  // "true", "1"
};

[[nodiscard]] RequestInfo parse_request(const k8s::HttpRequest& request);

[[nodiscard]] std::string percent_decode(std::string_view text);

}  // namespace gso::sim
