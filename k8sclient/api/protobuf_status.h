// metav1.Status from protobuf, as an API server answers who has asked for protobuf.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace k8s {

// The same as JSON, with the fields that error_from_answer() reads; null if `object` is no Status in protobuf.
[[nodiscard]] nlohmann::json read_protobuf_status(std::string_view object);

}  // namespace k8s
