// A request as a test or an actor of the simulation hands it to the simulated API server directly.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "k8sclient/transport/transport.h"

namespace gso::sim {

// Without a body no content type is sent.
inline k8s::HttpRequest local_request(k8s::Method method, std::string_view path, std::string body = {},
                                      std::string_view content_type = "application/json") {
  k8s::HttpRequest request;
  request.method = method;
  request.path = path;
  if (!body.empty()) request.content_type = content_type;
  request.body = std::move(body);
  return request;
}

}  // namespace gso::sim
