// The options of writes: query parameters and DeleteOptions.
#pragma once

#include "k8sclient/transport/transport.h"
#include "tests/sim/apiserver/request.h"
#include "tests/sim/apiserver/status.h"
#include "tests/sim/apiserver/writer.h"

namespace gso::sim {

[[nodiscard]] bool is_apply(const k8s::HttpRequest& request);
// What is wrong with the options of a create, update or patch.
[[nodiscard]] FieldErrors write_option_errors(const k8s::HttpRequest& request, const RequestInfo& info);
// The DeleteOptions of a body and of the query.
[[nodiscard]] Outcome<DeleteOptions> delete_options(const k8s::HttpRequest& request, const RequestInfo& info);

}  // namespace gso::sim
