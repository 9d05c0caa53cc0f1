// URL paths of the Kubernetes API, and query encoding. Asio-free.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "k8sclient/value/object.h"

namespace k8s {

// RFC 3986: everything but unreserved characters becomes %XX.
[[nodiscard]] std::string percent_encode(std::string_view text);

// "/api/v1" or "/apis/apps/v1".
[[nodiscard]] std::string group_version_path(const Gvr& gvr);
// The collection: "/apis/apps/v1/namespaces/ns/daemonsets", or without namespace "/api/v1/nodes" (for a namespaced
// resource: of all namespaces).
[[nodiscard]] std::string collection_path(const Gvr& gvr, std::string_view ns = {});
// One object, and optionally its subresource: "/api/v1/namespaces/ns/pods/name/eviction".
[[nodiscard]] std::string object_path(const Gvr& gvr, const ObjectKey& key, std::string_view subresource = {});

// Appends "?key=value&key=value" in call order; an empty value is left out.
class Query {
 public:
  Query& add(std::string_view key, std::string_view value);
  Query& add(std::string_view key, std::int64_t value);
  Query& add_flag(std::string_view key, bool value);  // "true" when set, left out otherwise.
  // Empty without parameters, else with the leading '?'.
  [[nodiscard]] const std::string& str() const { return text_; }

 private:
  std::string text_;
};

}  // namespace k8s
