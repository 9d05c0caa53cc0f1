// What the client itself reads from answers: the items of a list, and a few fields of an object, without projecting or
// materialising the rest.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "k8sclient/api/reader.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"

namespace k8s {

// Every JSON view that the client hands out (list items, watch events) may be read this many bytes past its end: what
// simdjson's on-demand parser needs, so that projecting an object copies nothing.
inline constexpr std::size_t kJsonPadding = 64;

// metadata.namespace and metadata.name of an object in JSON or protobuf, which must be followed by kJsonPadding
// readable bytes. Errors: `decode`.
[[nodiscard]] Result<ObjectKey> read_object_key(std::string_view object);

// metadata.resourceVersion of an object, or of a PartialObjectMetadata; empty if it cannot be read.
[[nodiscard]] std::string read_resource_version(std::string_view json);

// --- One page of a LIST answer, read item by item without a DOM. Pure.

// Hands each item's raw JSON to `sink`. Errors: `decode` for a body that is not a Kubernetes list (what was delivered
// before is incomplete), or the sink's own.
[[nodiscard]] Result<ListPage> decode_list_page(std::string body, ItemSink* sink);

}  // namespace k8s
