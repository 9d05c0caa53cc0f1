// An in-memory Transport that answers from a script, in order, or by a function, and remembers what was asked. Time is
// SimClock's. No sockets.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <concepts>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "k8sclient/clock.h"
#include "k8sclient/transport/transport.h"
#include "tests/sim/sim_clock.h"

namespace k8s::test {

// One thing that happens on a stream, `after` the one before it.
struct StreamAct {
  Duration after{0};
  std::string bytes;                          // Delivered as one chunk; empty with no error: the stream's end.
  std::optional<Error> error = std::nullopt;  // The connection breaks.
};

// The answer to one request.
struct Answer {
  int status = 200;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  std::optional<Error> error = std::nullopt;  // No answer at all.
  Duration takes{0};              // More than the request's timeout: no answer in time, but the script has gone on.
  std::vector<StreamAct> stream;  // For open(): what is read; afterwards it stays silent.

  [[nodiscard]] HttpResponse response() const { return {status, headers, body}; }

  static Answer ok(std::string body) { return {200, std::move(body), {}, {}, {}, {}}; }
  static Answer code(int status, std::string body = {}) { return {status, std::move(body), {}, {}, {}, {}}; }
  static Answer retry_after(int status, std::string seconds) {
    return {status, {}, {{"retry-after", std::move(seconds)}}, {}, {}, {}};
  }
  static Answer json(int status, std::string body, Duration takes = {}) {
    return {status, std::move(body), {{"content-type", "application/json"}}, {}, takes, {}};
  }
  static Answer broken(Reason reason = Reason::transport) {
    return {0, {}, {}, Error{reason, 0, "scripted failure"}, {}, {}};
  }
  static Answer streaming(std::vector<StreamAct> acts) { return {200, {}, {}, {}, {}, std::move(acts)}; }
  // A metav1.Status. `cause`: the reason of its one cause, if any.
  static Answer status_of(int code, const std::string& reason, const std::string& message = "said so",
                          const std::string& retry_after = {}, const std::string& cause = {});
  // A PodDisruptionBudget refuses an eviction.
  static Answer budget(const std::string& retry_after = {});
};

// A watch event line.
[[nodiscard]] std::string event(const std::string& type, const std::string& name, int resource_version,
                                const std::string& extra = {});
[[nodiscard]] std::string bookmark(int resource_version, bool initial_events_end = false);
// A list page of objects {name, resourceVersion}.
[[nodiscard]] std::string page(int resource_version, const std::vector<std::string>& names,
                               const std::string& continue_token = {});

class ScriptedTransport final : public Transport {
 public:
  using Handler = std::function<Answer(const HttpRequest&)>;
  explicit ScriptedTransport(Clock* clock, Handler handler = nullptr) : clock_(clock), handler_(std::move(handler)) {}

  // What is answered next, one after the other.
  void then(std::same_as<Answer> auto... answers) { (script_.push_back(std::move(answers)), ...); }
  // What is answered when the script has ended; without it, a request fails the test.
  void otherwise(Answer answer) { default_ = std::move(answer); }

  boost::asio::awaitable<Result<HttpResponse>> send(HttpRequest request) override;
  boost::asio::awaitable<Result<std::unique_ptr<ByteStream>>> open(HttpRequest request) override;

  std::vector<HttpRequest> requests;
  std::vector<MonoTime> times;  // When each request was sent.
  int open_streams = 0;
  int in_flight = 0;
  int most_in_flight = 0;
  // "PATCH /api/v1/nodes/n1" of every request so far, without the query.
  [[nodiscard]] std::vector<std::string> lines() const;
  [[nodiscard]] std::size_t left() const { return script_.size(); }

 private:
  Answer next(const HttpRequest& request);
  Clock* clock_;
  Handler handler_;
  std::deque<Answer> script_;
  std::optional<Answer> default_;
};

// The clock, its io_context and a scripted transport; await() runs one coroutine to its end in simulated time.
struct ClientFixture : testing::Test {
  boost::asio::io_context io;
  gso::sim::SimClock clock{io, *parse_rfc3339("2026-01-01T00:00:00Z")};
  ScriptedTransport transport{&clock};

  template <class T>
  T await(boost::asio::awaitable<T> operation) {
    std::optional<T> out;
    boost::asio::co_spawn(io, std::move(operation), [&out](std::exception_ptr thrown, T value) {
      if (thrown) std::rethrow_exception(thrown);
      out = std::move(value);
    });
    const bool done = clock.run_until([&out] { return out.has_value(); }, std::chrono::hours(24));
    if (!done) ADD_FAILURE() << "the coroutine did not end within a simulated day";
    return std::move(out).value_or(T{});
  }
  // Simulated seconds since the start.
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(clock.monotonic().since_boot).count(); }
};

}  // namespace k8s::test
