// Any bytes as the body of an answer >= 300, or as the object of an ERROR event: no crash, a message that begins with
// the attempt and is UTF-8 whatever a proxy sent, the code of the answer, and a Retry-After of a day at most. The first
// byte chooses the code; the Retry-After header is what precedes the first newline.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "k8sclient/api/status.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static constexpr std::array kCodes{0, 301, 400, 401, 403, 404, 409, 410, 422, 429, 500, 502, 503, 504};
  if (size < 1) return 0;
  const int code = kCodes.at(data[0] % kCodes.size());
  std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string_view retry_after;
  if (const std::size_t end = body.substr(0, 20).find('\n'); end != std::string_view::npos) {
    retry_after = body.substr(0, end);
    body.remove_prefix(end + 1);
  }
  const k8s::Error error = k8s::error_from_answer(code, body, retry_after, "get nodes n1");
  if (!error.message.starts_with("get nodes n1: ")) std::abort();
  if (code != 0 && error.http_status != code) std::abort();
  if (error.retry_after && (error.retry_after->count() < 0 || *error.retry_after > std::chrono::hours(24)))
    std::abort();
  static_cast<void>(nlohmann::json(error.message).dump());  // Throws where it is not UTF-8.
  return 0;
}
