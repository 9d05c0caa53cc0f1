// The parts of the transport seam that every implementation shares.
#include "k8sclient/transport/transport.h"

#include <algorithm>

namespace k8s {

std::string_view to_string(Method method) {
  switch (method) {
    case Method::get:
      return "GET";
    case Method::post:
      return "POST";
    case Method::put:
      return "PUT";
    case Method::patch:
      return "PATCH";
    case Method::del:
      return "DELETE";
  }
  return "GET";
}

std::string_view HttpResponse::header(std::string_view name) const {
  const auto found =
      std::ranges::find(headers, name, [](const auto& entry) -> std::string_view { return entry.first; });
  return found == headers.end() ? std::string_view{} : std::string_view{found->second};
}

}  // namespace k8s
