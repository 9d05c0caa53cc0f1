// One HTTP request and its answer, as the handlers of HttpServer see them.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gso {

// The subject of a client certificate that the TLS handshake has verified, read as Kubernetes reads it: the common name
// is the user, each organization a group (kubernetes.io/docs/reference/access-authn-authz/authentication).
struct ClientSubject {
  ClientSubject() = default;  // No aggregate: see k8sclient/value/object.h.
  std::string user;           // Never empty.
  std::vector<std::string> groups;
  friend bool operator==(const ClientSubject&, const ClientSubject&) = default;
};

struct HttpRequest {
  HttpRequest() = default;    // No aggregate: see k8sclient/value/object.h.
  std::string method;         // "GET"
  std::string path;           // Without the query.
  std::string accept;         // The header of that name; empty if absent, as the next two.
  std::string authorization;  // Secret: never logged, never in an answer.
  std::string content_type;
  std::string body;                     // At most HttpServerOptions::body_kept bytes.
  std::uint64_t body_size = 0;          // Of the whole body: more than `body` has, if its end was not read.
  std::optional<ClientSubject> client;  // Empty: plain HTTP, or no client certificate.
};

struct HttpAnswer {
  HttpAnswer() = default;  // No aggregate: see k8sclient/value/object.h.
  HttpAnswer(int the_status, std::string_view type, std::string text)
      : status(the_status), content_type(type), body(std::move(text)) {}
  int status = 200;
  std::string content_type;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // Further ones, such as Allow.
};
// UTF-8 for people; `text` ends with a line feed.
[[nodiscard]] inline HttpAnswer text_answer(int status, std::string text) {
  return {status, "text/plain; charset=utf-8", std::move(text)};
}

// Called once per request. May wait, for an answer of the API server for example; must not throw.
using HttpHandler = std::function<boost::asio::awaitable<HttpAnswer>(HttpRequest)>;
// What answers below /debug at once, from memory: GET, HEAD and PUT.
using DebugHandler = std::function<HttpAnswer(const HttpRequest&)>;

}  // namespace gso
