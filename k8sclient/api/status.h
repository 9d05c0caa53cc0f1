// Errors in answers: a Status as JSON or protobuf, or a page of HTML by something in between.
#pragma once

#include <string>
#include <string_view>

#include "k8sclient/value/error.h"

namespace k8s {

// --- metav1.Status and HTTP answers -> Error. Asio-free.

// The reason that a caller acts on, from metav1.Status.reason where known, else from the HTTP code. A status reason
// that contradicts nothing wins: 409 is `already_exists` or `conflict` by its reason.
[[nodiscard]] Reason reason_of(int http_status, std::string_view status_reason);

// The error in a body of an answer >= 300, or in the object of a watch's ERROR event (`http_status` 0: taken from
// Status.code), in JSON or in protobuf. `what` names the attempt ("patch nodes n1") and leads the message.
// `retry_after_header` is the Retry-After value in seconds or empty; Status.details.retryAfterSeconds is the fallback.
// A body that is no Status is quoted, shortened; of an HTML page, with which proxies and load balancers answer, its
// title or first words. Causes beyond kMostCauses are left out. Never fails.
[[nodiscard]] Error error_from_answer(int http_status, std::string_view body, std::string_view retry_after_header,
                                      std::string_view what);

// What a page of HTML says, and that it is none of the API server's; empty: the body is none.
[[nodiscard]] std::string quoted_html(int http_status, std::string_view body);

}  // namespace k8s
