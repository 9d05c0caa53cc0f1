// One page of a LIST answer, read item by item without a DOM. Pure.
#pragma once

#include <string>

#include "k8sclient/api/client.h"

namespace k8s {

// Hands each item's raw JSON to `sink`. Errors: `decode` for a body that is not a Kubernetes list (what was delivered
// before is incomplete), or the sink's own.
[[nodiscard]] Result<ListPage> decode_list_page(std::string body, ItemSink* sink);

}  // namespace k8s
