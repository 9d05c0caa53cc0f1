#include "k8sclient/api/status.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "k8sclient/api/html_page.h"
#include "k8sclient/api/protobuf_status.h"
#include "k8sclient/value/json_access.h"
#include "k8sclient/value/protobuf_object.h"
#include "k8sclient/value/utf8.h"

namespace k8s {
namespace {

using Json = nlohmann::json;

// metav1.StatusReason. ServerTimeout means "busy, ask again" (code 500), Timeout that the request itself ran out (504).
constexpr std::array<std::pair<std::string_view, Reason>, 20> kStatusReasons{{
    {"NotFound", Reason::not_found},
    {"AlreadyExists", Reason::already_exists},
    {"Conflict", Reason::conflict},
    {"Gone", Reason::expired},
    {"Expired", Reason::expired},
    {"Invalid", Reason::invalid},
    {"BadRequest", Reason::invalid},
    {"MethodNotAllowed", Reason::invalid},
    {"NotAcceptable", Reason::invalid},
    {"UnsupportedMediaType", Reason::invalid},
    {"RequestEntityTooLarge", Reason::invalid},
    {"Forbidden", Reason::forbidden},
    {"Unauthorized", Reason::unauthorized},
    {"TooManyRequests", Reason::too_many_requests},
    {"Timeout", Reason::timeout},
    {"ServerTimeout", Reason::unavailable},
    {"InternalError", Reason::unavailable},
    {"ServiceUnavailable", Reason::unavailable},
    {"StorageReadError", Reason::unavailable},
    {"StoreReadError", Reason::unavailable},
}};

Reason reason_of_code(int http_status) {
  switch (http_status) {
    case 401:
      return Reason::unauthorized;
    case 403:
      return Reason::forbidden;
    case 404:
      return Reason::not_found;
    case 408:
    case 504:
      return Reason::timeout;
    case 409:
      return Reason::conflict;
    case 410:
      return Reason::expired;
    case 429:
      return Reason::too_many_requests;
    default:
      return http_status >= 500 ? Reason::unavailable : Reason::invalid;
  }
}

std::optional<std::chrono::milliseconds> seconds_text(std::string_view text) {
  std::int64_t seconds = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  // An HTTP date is also allowed there; API servers send seconds only. A day is more than any server means.
  if (ec != std::errc() || end != text.data() + text.size() || seconds < 0 || seconds > 86'400) return std::nullopt;
  return std::chrono::seconds(seconds);
}

// A body that is no Status, on one line and about 200 bytes. It can be anything, and the message must be UTF-8.
std::string excerpt(std::string_view body) {
  constexpr std::size_t kShown = 200;
  std::string out;
  for (const char c : body) {
    const bool continues = (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;  // A character is not cut.
    if (out.size() >= kShown + 4 || (out.size() >= kShown && !continues)) return replace_invalid_utf8(out) + "…";
    const bool space = static_cast<unsigned char>(c) <= ' ';
    if (space && (out.empty() || out.back() == ' ')) continue;
    out += space ? ' ' : c;
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return replace_invalid_utf8(std::move(out));
}

// The end of a message about an answer that is no Status. A page of a proxy is no answer of the API server.
std::string words_of_body(int http_status, std::string_view body) {
  if (!is_html(body)) return excerpt(body);
  std::string words = words_of_html(body);
  const std::string number = fmt::format("{} ", http_status);  // "502 Bad Gateway"
  if (words.starts_with(number)) words.erase(0, number.size());
  return fmt::format("{}{}(an HTML page: of a proxy or load balancer, not of the API server)", excerpt(words),
                     words.empty() ? "" : " ");
}

// A server can send anything: the text of a field name or a type is short.
std::string short_text_at(const Json& object, const char* key) {
  constexpr std::size_t kMost = 256;
  const std::string text = text_at(object, key);
  return text.size() <= kMost ? text : excerpt(text);
}

std::vector<Cause> causes_in(const Json& details) {
  std::vector<Cause> out;
  const auto causes = details.find("causes");
  if (causes == details.end() || !causes->is_array()) return out;
  for (const Json& cause : *causes) {
    if (out.size() == kMostCauses) break;
    if (cause.is_object())
      out.push_back({short_text_at(cause, "reason"), short_text_at(cause, "field"), text_at(cause, "message")});
  }
  return out;
}

// Those that the message does not contain already, as "field: message".
std::string causes_text(const std::vector<Cause>& causes, std::string_view message) {
  std::string out;
  for (const Cause& cause : causes) {
    if (cause.message.empty() || message.find(cause.message) != std::string_view::npos) continue;
    out +=
        fmt::format("{}{}{}{}", out.empty() ? "" : "; ", cause.field, cause.field.empty() ? "" : ": ", cause.message);
  }
  return out;
}

}  // namespace

Reason reason_of(int http_status, std::string_view status_reason) {
  for (const auto& [name, reason] : kStatusReasons) {
    if (name == status_reason) return reason;
  }
  return reason_of_code(http_status);
}

Error error_from_answer(int http_status, std::string_view body, std::string_view retry_after_header,
                        std::string_view what) {
  Error error;
  error.http_status = http_status;
  error.retry_after = seconds_text(retry_after_header);
  const Json status =
      is_protobuf(body) ? read_protobuf_status(body) : Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!status.is_object() || text_at(status, "kind") != "Status") {
    error.reason = reason_of_code(http_status);
    const std::string quoted = words_of_body(http_status, body);
    error.message = quoted.empty() ? fmt::format("{}: HTTP {}", what, http_status)
                                   : fmt::format("{}: HTTP {}: {}", what, http_status, quoted);
    return error;
  }
  if (http_status == 0) {
    const auto code = status.find("code");
    if (code != status.end() && code->is_number_integer()) error.http_status = code->get<int>();
  }
  const std::string reason = text_at(status, "reason");
  error.reason = reason_of(error.http_status, reason);
  std::string message = text_at(status, "message");
  const auto details = status.find("details");
  if (details != status.end() && details->is_object()) {
    error.causes = causes_in(*details);
    const std::string causes = causes_text(error.causes, message);
    if (!causes.empty()) message += fmt::format(" ({})", causes);
    const auto seconds = details->find("retryAfterSeconds");
    if (!error.retry_after && seconds != details->end() && seconds->is_number_unsigned() &&
        seconds->get<std::uint64_t>() > 0) {
      error.retry_after = seconds_text(std::to_string(seconds->get<std::uint64_t>()));
    }
  }
  if (message.empty()) message = reason.empty() ? "no message" : reason;
  error.message = fmt::format("{}: {} (HTTP {})", what, message, error.http_status);
  return error;
}

}  // namespace k8s
