// /api, /apis and below, in the legacy and the aggregated form, and the published OpenAPI.
#pragma once

#include <optional>
#include <string_view>

#include "k8sclient/transport/transport.h"
#include "tests/sim/apiserver/request.h"
#include "tests/sim/apiserver/resource.h"

namespace gso::sim {

// Answers a discovery path; nullopt when the path is none.
[[nodiscard]] std::optional<k8s::HttpResponse> discover(const Registry& registry, const RequestInfo& info,
                                                        std::string_view accept);

// Answers /openapi/v2 and /openapi/v3; nullopt for other paths.
[[nodiscard]] std::optional<k8s::HttpResponse> open_api(const Registry& registry, const RequestInfo& info,
                                                        std::string_view accept);

}  // namespace gso::sim
