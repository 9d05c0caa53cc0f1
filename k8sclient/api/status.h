// Errors in answers: a Status as JSON or protobuf, or a page of HTML by something in between.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "k8sclient/value/error.h"

namespace k8s {

// --- What is quoted of an HTML page: proxies and load balancers answer with one where the API server sends a Status.
// Status.

[[nodiscard]] bool is_html(std::string_view body);

// The title of the page, else its first heading, else its words without tags, scripts and styles. Empty: it has none.
[[nodiscard]] std::string words_of_html(std::string_view page);

// --- metav1.Status from protobuf, as an API server answers who has asked for protobuf.

// The same as JSON, with the fields that error_from_answer() reads; null if `object` is no Status in protobuf.
[[nodiscard]] nlohmann::json read_protobuf_status(std::string_view object);

// --- metav1.Status and HTTP answers -> Error. Asio-free.

// The reason that a caller acts on, from metav1.Status.reason where known, else from the HTTP code. A status reason
// that contradicts nothing wins: 409 is `already_exists` or `conflict` by its reason.
[[nodiscard]] Reason reason_of(int http_status, std::string_view status_reason);

// The error in a body of an answer >= 300, or in the object of a watch's ERROR event (`http_status` 0: taken from
// Status.code), in JSON or in protobuf. `what` names the attempt ("patch nodes n1") and leads the message.
// `retry_after_header` is the Retry-After value in seconds or empty; Status.details.retryAfterSeconds is the fallback.
// A body that is no Status is quoted, shortened; of an HTML page its title or first words (status.h). Causes beyond
// kMostCauses are left out. Never fails.
[[nodiscard]] Error error_from_answer(int http_status, std::string_view body, std::string_view retry_after_header,
                                      std::string_view what);

}  // namespace k8s
