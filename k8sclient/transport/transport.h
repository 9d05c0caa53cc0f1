// The seam between the Kubernetes client and HTTP: nothing above it knows libcurl. The simulated API server
// implements the same interface in process; curl_transport.h implements it over TLS and HTTP/2.
#pragma once

#include <algorithm>
#include <array>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "k8sclient/value/error.h"

namespace k8s {

enum class Method { get, post, put, patch, del };
[[nodiscard]] inline std::string_view to_string(Method method) {
  constexpr std::array<std::string_view, 5> kNames{"GET", "POST", "PUT", "PATCH", "DELETE"};
  return kNames.at(static_cast<std::size_t>(method));
}

// Which connection a request travels on. Lease renewals never queue behind writes (performance facts: one flow's
// PATCH flood can starve its own lease).
enum class Channel { unary, lease };

struct HttpRequest {
  HttpRequest() = default;  // No aggregate: see object.h.
  Method method = Method::get;
  std::string path;  // Path and query, percent-encoded: "/api/v1/nodes?limit=100". Never a host.
  std::string body;
  std::string content_type;  // Empty without a body.
  std::string accept = "application/json";
  std::chrono::milliseconds timeout{30'000};  // For the whole answer; for a stream: until its headers arrived.
  Channel channel = Channel::unary;
  std::size_t max_body_bytes =
      0;  // Of an unary answer: `too_large` beyond. 0: the transport's own limit, which holds too.
  // Asked before the transport sends the request a second time by itself: with new credentials, or because the server
  // has refused it unread. Its error ends the request. It must not use the transport. Empty: no objection.
  std::function<Result<void>()> before_resend;
};

struct HttpResponse {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // Names in lower case.
  std::string body;

  // The first header of that (lower case) name, or empty.
  [[nodiscard]] std::string_view header(std::string_view name) const {
    const auto found =
        std::ranges::find(headers, name, [](const auto& entry) -> std::string_view { return entry.first; });
    return found == headers.end() ? std::string_view() : std::string_view(found->second);
  }
};

// One streamed answer (a watch). Destroying it closes the stream.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  [[nodiscard]] virtual int status() const = 0;
  [[nodiscard]] virtual std::string_view header(std::string_view name) const = 0;
  // The next bytes, at least one; an empty string is the end of the stream (which proves nothing: HTTP/2 reports a
  // reset with NO_ERROR the same way). Fails with `timeout` when nothing came for `idle`, with `transport` when the
  // connection broke. After an end or an error every further read fails.
  virtual boost::asio::awaitable<Result<std::string>> read(std::chrono::milliseconds idle) = 0;
  // Gives back what was read, for its memory: each event of a busy watch would otherwise grow a text of its own.
  virtual void reuse(std::string /*read*/) {}
};

class Transport {
 public:
  virtual ~Transport() = default;
  // One exchange. Any HTTP status is a success here; an error means that there was no (complete) answer. A write that
  // the server can have read is sent once; one whose stream the server refuses unread (GOAWAY, REFUSED_STREAM) is sent
  // again unless it is a POST.
  virtual boost::asio::awaitable<Result<HttpResponse>> send(HttpRequest request) = 0;
  // Opens a streamed answer and returns once its status and headers are there. The body of an error status (>= 300)
  // is delivered through read() too. Each stream has a connection of its own.
  virtual boost::asio::awaitable<Result<std::unique_ptr<ByteStream>>> open(HttpRequest request) = 0;
};

}  // namespace k8s
