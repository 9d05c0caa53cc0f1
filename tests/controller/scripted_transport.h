// ScriptedTransport: a Transport whose answers a test gives by a function, on simulated time. No sockets.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "k8sclient/clock.h"
#include "k8sclient/transport/transport.h"

namespace gso {

struct ScriptedAnswer {
  k8s::Result<k8s::HttpResponse> response;
  k8s::Duration delay{0};  // A delay beyond the request's timeout is a timeout; the handler has run all the same.

  static ScriptedAnswer json(int status, std::string body, k8s::Duration delay = {}) {
    k8s::HttpResponse response;
    response.status = status;
    response.headers = {{"content-type", "application/json"}};
    response.body = std::move(body);
    return {std::move(response), delay};
  }
  // A metav1.Status, as the API server sends it. `cause`: the reason of its one cause, if any.
  static ScriptedAnswer status(int code, const std::string& reason, const std::string& message,
                               const std::string& retry_after = {}, const std::string& cause = {}) {
    const std::string causes =
        cause.empty() ? std::string() : R"("details":{"causes":[{"reason":")" + cause + R"(","message":"why"}]},)";
    ScriptedAnswer out =
        json(code, R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":")" + message +
                       R"(","reason":")" + reason + R"(",)" + causes + R"("code":)" + std::to_string(code) + "}");
    if (!retry_after.empty()) out.response->headers.emplace_back("retry-after", retry_after);
    return out;
  }
  // A PodDisruptionBudget refuses an eviction.
  static ScriptedAnswer budget(const std::string& retry_after = {}) {
    return status(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.",
                  retry_after, "DisruptionBudget");
  }
  // No HTTP answer at all.
  static ScriptedAnswer broken() { return {k8s::fail(k8s::Reason::transport, "connection reset"), {}}; }
};

class ScriptedTransport final : public k8s::Transport {
 public:
  using Handler = std::function<ScriptedAnswer(const k8s::HttpRequest&)>;
  struct Seen {
    k8s::HttpRequest request;
    k8s::MonoTime at;
  };
  ScriptedTransport(k8s::Clock* clock, Handler handler) : clock_(clock), handler_(std::move(handler)) {}

  boost::asio::awaitable<k8s::Result<k8s::HttpResponse>> send(k8s::HttpRequest request) override {
    seen.push_back({request, clock_->monotonic()});
    ++in_flight;
    most_in_flight = std::max(most_in_flight, in_flight);
    ScriptedAnswer answer = handler_(request);
    const bool late = answer.delay > request.timeout;
    const k8s::Duration wait = late ? k8s::Duration(request.timeout) : answer.delay;
    if (wait > k8s::Duration::zero()) co_await clock_->sleep_for(wait);
    --in_flight;
    if (late) co_return k8s::fail(k8s::Reason::timeout, "no answer in time");
    co_return std::move(answer.response);
  }
  boost::asio::awaitable<k8s::Result<std::unique_ptr<k8s::ByteStream>>> open(k8s::HttpRequest request) override {
    seen.push_back({request, clock_->monotonic()});
    co_return k8s::fail(k8s::Reason::transport, "no streams here");
  }

  // "PATCH /api/v1/nodes/n1" of every request so far, without the query.
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> out;
    for (const Seen& one : seen) {
      out.push_back(std::string(k8s::to_string(one.request.method)) + " " +
                    one.request.path.substr(0, one.request.path.find('?')));
    }
    return out;
  }

  std::vector<Seen> seen;
  int in_flight = 0;
  int most_in_flight = 0;

 private:
  k8s::Clock* clock_;
  Handler handler_;
};

}  // namespace gso
