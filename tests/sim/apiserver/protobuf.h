// Kubernetes objects in protobuf: what typed clients send for built-in kinds, kubectl's generators (`create namespace`)
// and evictions (`drain`) among them. A real server takes it and client-go has no fallback to JSON (its retry after a
// 415 is for CBOR alone), so it is read here. Answers are JSON, which every client accepts beside it.
#pragma once

#include <expected>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tests/sim/apiserver/schema.h"

namespace gso::sim {

[[nodiscard]] bool is_protobuf(std::string_view content_type);

// Reads "k8s\0" and its envelope: an object of the kind that `schema` describes, or DeleteOptions, an Eviction or a
// Binding by their kind. The result has apiVersion and kind of the envelope. Errors: what is wrong with the bytes.
[[nodiscard]] std::expected<nlohmann::json, std::string> decode_protobuf(std::string_view body, const Schema* schema);

}  // namespace gso::sim
