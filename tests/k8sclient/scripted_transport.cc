#include "tests/k8sclient/scripted_transport.h"

#include <fmt/format.h>

#include <algorithm>

namespace k8s::test {
namespace {

namespace asio = boost::asio;

class ScriptedStream final : public ByteStream {
 public:
  ScriptedStream(Clock* clock, Answer answer, int* open) : clock_(clock), answer_(std::move(answer)), open_(open) {
    ++*open_;
    if (answer_.status < 300) return;
    if (!answer_.body.empty()) answer_.stream.push_back({{}, answer_.body});
    answer_.stream.push_back({});
  }
  ~ScriptedStream() override { --*open_; }

  int status() const override { return answer_.status; }
  std::string_view header(std::string_view name) const override {
    for (const auto& [key, value] : answer_.headers)
      if (key == name) return value;
    return {};
  }
  asio::awaitable<Result<std::string>> read(std::chrono::milliseconds idle) override {
    if (at_ >= answer_.stream.size() || answer_.stream[at_].after > idle) {
      co_await clock_->sleep_for(idle);
      co_return fail(Reason::timeout, "silent stream");
    }
    const StreamAct act = answer_.stream[at_++];
    if (act.after > Duration::zero()) co_await clock_->sleep_for(act.after);
    if (act.error) co_return std::unexpected(*act.error);
    co_return act.bytes;
  }

 private:
  Clock* clock_;
  Answer answer_;
  int* open_;
  std::size_t at_ = 0;
};

}  // namespace

Answer Answer::status_of(int code, const std::string& reason, const std::string& message,
                         const std::string& retry_after, const std::string& cause) {
  const std::string causes = cause.empty()
                                 ? std::string()
                                 : fmt::format(R"("details":{{"causes":[{{"reason":"{}","message":"why"}}]}},)", cause);
  Answer out = Answer::json(
      code, fmt::format(R"({{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{}",)"
                        R"("reason":"{}",{}"code":{}}})",
                        message, reason, causes, code));
  if (!retry_after.empty()) out.headers.emplace_back("retry-after", retry_after);
  return out;
}

Answer Answer::budget(const std::string& retry_after) {
  return status_of(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.",
                   retry_after, "DisruptionBudget");
}

std::string event(const std::string& type, const std::string& name, int resource_version, const std::string& extra) {
  return fmt::format(R"({{"type":"{}","object":{{"kind":"Node","apiVersion":"v1","metadata":{{"name":"{}",)"
                     R"("resourceVersion":"{}"}}{}}}}})"
                     "\n",
                     type, name, resource_version, extra);
}

std::string bookmark(int resource_version, bool initial_events_end) {
  return fmt::format(R"({{"type":"BOOKMARK","object":{{"kind":"Node","apiVersion":"v1","metadata":{{)"
                     R"("resourceVersion":"{}"{}}}}}}})"
                     "\n",
                     resource_version,
                     initial_events_end ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : "");
}

std::string page(int resource_version, const std::vector<std::string>& names, const std::string& continue_token) {
  std::string items;
  for (const std::string& name : names) {
    items += fmt::format(R"({}{{"metadata":{{"name":"{}","resourceVersion":"{}"}}}})", items.empty() ? "" : ",", name,
                         resource_version);
  }
  return fmt::format(R"({{"kind":"NodeList","apiVersion":"v1","metadata":{{"resourceVersion":"{}","continue":"{}"}},)"
                     R"("items":[{}]}})",
                     resource_version, continue_token, items);
}

Answer ScriptedTransport::next(const HttpRequest& request) {
  requests.push_back(request);
  times.push_back(clock_->monotonic());
  if (handler_) return handler_(request);
  if (!script_.empty()) {
    Answer answer = std::move(script_.front());
    script_.pop_front();
    return answer;
  }
  if (default_) return *default_;
  ADD_FAILURE() << "unexpected request: " << to_string(request.method) << ' ' << request.path;
  return Answer::code(500);
}

std::vector<std::string> ScriptedTransport::lines() const {
  std::vector<std::string> out;
  for (const HttpRequest& request : requests)
    out.push_back(fmt::format("{} {}", to_string(request.method), request.path.substr(0, request.path.find('?'))));
  return out;
}

asio::awaitable<Result<HttpResponse>> ScriptedTransport::send(HttpRequest request) {
  most_in_flight = std::max(most_in_flight, ++in_flight);
  const Answer answer = next(request);
  const bool late = answer.takes > request.timeout;
  const Duration takes = late ? Duration(request.timeout) : answer.takes;
  if (takes > Duration::zero()) co_await clock_->sleep_for(takes);
  --in_flight;
  if (late) co_return fail(Reason::timeout, "no answer in time");
  if (answer.error) co_return std::unexpected(*answer.error);
  co_return answer.response();
}

asio::awaitable<Result<std::unique_ptr<ByteStream>>> ScriptedTransport::open(HttpRequest request) {
  const Answer answer = next(request);
  if (answer.takes > Duration::zero()) co_await clock_->sleep_for(answer.takes);
  if (answer.error) co_return std::unexpected(*answer.error);
  co_return std::make_unique<ScriptedStream>(clock_, answer, &open_streams);
}

}  // namespace k8s::test
