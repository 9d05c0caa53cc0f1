// Exchanges and streams in process, with faults applied at both ends of the way.
#include "tests/sim/apiserver/in_process_transport.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <deque>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

namespace gso::sim {
namespace {

namespace asio = boost::asio;
using k8s::HttpRequest;
using k8s::HttpResponse;
using k8s::Reason;
using k8s::Result;

RequestContext context_of(const ClientIdentity& identity) {
  return {identity.user, identity.user_agent, 0};
}

std::string http_date(k8s::WallTime time) {
  const std::time_t seconds = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
  std::tm parts{};
  std::array<char, 32> out{};
  const std::size_t length =
      std::strftime(out.data(), out.size(), "%a, %d %b %Y %H:%M:%S GMT", ::gmtime_r(&seconds, &parts));
  return {out.data(), length};
}

HttpResponse bad_gateway(int status) {
  return {status, {{"content-type", "text/html"}}, "<html><body><h1>Bad Gateway</h1></body></html>\n"};
}

HttpResponse fault_response(const FaultRule& rule, const RequestInfo& info) {
  const Noun noun{info.group, info.plural, info.plural};
  switch (rule.fault) {
    case Fault::conflict:
      return stale_write(noun, info.key.name).response();
    case Fault::throttle:
      return ApiError(429, "TooManyRequests",
                      "the server has received too many requests and has asked us to try again later")
          .retry_after(rule.retry_after)
          .response();
    case Fault::forbidden:
      return forbidden(noun, info.key.name, "injected fault").response();
    case Fault::gone:
      return expired("The resourceVersion for the provided list is too old.").response();
    case Fault::bad_gateway:
      return bad_gateway(rule.status);
    default:
      break;
  }
  return ApiError(rule.status,
                  rule.status == 504   ? "Timeout"
                  : rule.status == 503 ? "ServiceUnavailable"
                                       : "InternalError",
                  "injected fault")
      .response();
}

constexpr Fault kRefusals[] = {Fault::bad_gateway, Fault::server_error, Fault::conflict,
                               Fault::throttle,    Fault::forbidden,    Fault::gone};
// What happens around an exchange, with its answer.
constexpr Fault kWithTheAnswer[] = {Fault::crash_answered, Fault::suspend,      Fault::wall_step, Fault::cut_off,
                                    Fault::server_away,    Fault::history_lost, Fault::strangers};

}  // namespace

struct InProcessTransport::State {
  ApiServer& server;
  ClientIdentity identity;
  Faults faults;
  bool connected = true;
  std::uint64_t requests = 0;
  std::function<void(const HttpRequest&)> listener;
  std::vector<std::weak_ptr<WatchStream>> streams;

  void note(const HttpRequest& request) {
    ++requests;
    if (listener) listener(request);
  }
  [[nodiscard]] std::optional<FaultRule> pick(Fault fault, const RequestInfo& info) {
    return faults.pick(fault, info.verb, info.plural, info.key.name);
  }
  // True where a fault of the process or of the world applies, which has then struck.
  bool strikes(Fault fault, const RequestInfo& info) {
    const auto rule = pick(fault, info);
    if (rule && faults.strike) faults.strike(*rule);
    return rule.has_value();
  }
  void strike_with_the_answer(const RequestInfo& info) {
    for (const Fault fault : kWithTheAnswer) (void)strikes(fault, info);
  }
};

std::unexpected<k8s::Error> crashed() {
  return k8s::fail(Reason::cancelled, "the client crashed here (injected)");
}

namespace {

// The bytes of a watch, or of the answer that refused it.
class InProcessStream final : public k8s::ByteStream {
 public:
  InProcessStream(k8s::Clock& clock, const ApiServer& server, HttpResponse answer)
      : clock_(clock), server_(server), answer_(std::move(answer)), pending_(answer_.body) {}
  // `lag`: asked for when events are there, how much later they arrive.
  InProcessStream(k8s::Clock& clock, const ApiServer& server, std::shared_ptr<WatchStream> watch,
                  std::function<k8s::Duration()> lag)
      : clock_(clock), server_(server), watch_(std::move(watch)), lag_(std::move(lag)), signal_(clock.make_signal()) {
    answer_.status = 200;
    answer_.headers.emplace_back("content-type", "application/json");
    watch_->set_wakeup([signal = signal_.get()] { signal->notify(); });
  }
  ~InProcessStream() override {
    if (watch_ == nullptr) return;
    watch_->set_wakeup(nullptr);
    watch_->reset();
  }

  [[nodiscard]] int status() const override { return answer_.status; }
  [[nodiscard]] std::string_view header(std::string_view name) const override { return answer_.header(name); }

  asio::awaitable<Result<std::string>> read(std::chrono::milliseconds idle) override {
    if (done_) co_return k8s::fail(Reason::transport, "the stream has ended");
    if (watch_ == nullptr) {
      if (pending_.empty()) done_ = true;
      co_return std::exchange(pending_, {});
    }
    const k8s::MonoTime deadline = clock_.monotonic() + idle;
    while (!watch_->has_data() && !watch_->ended()) {
      const k8s::MonoTime until = std::min(deadline, watch_->next_timer());
      const bool woken = co_await signal_->wait_until(until);
      if (woken) continue;
      if (clock_.monotonic() >= watch_->next_timer()) {
        watch_->on_timer(server_.revision());
      } else if (clock_.monotonic() >= deadline) {
        done_ = true;
        co_return k8s::fail(Reason::timeout, "the watch was silent for too long");
      }
    }
    std::string bytes = watch_->take();
    const k8s::Duration late = bytes.empty() ? k8s::Duration(0) : lag_();
    if (late > k8s::Duration(0)) co_await clock_.sleep_for(std::min<k8s::Duration>(late, idle));
    if (late > idle) {
      done_ = true;
      co_return k8s::fail(Reason::timeout, "the watch was silent for too long");
    }
    if (bytes.empty()) {
      done_ = true;
      if (watch_->was_reset()) co_return k8s::fail(Reason::transport, "connection reset by peer");
    }
    co_return bytes;
  }

 private:
  k8s::Clock& clock_;
  const ApiServer& server_;
  std::shared_ptr<WatchStream> watch_;
  std::function<k8s::Duration()> lag_;
  HttpResponse answer_;
  std::string pending_;
  std::unique_ptr<k8s::Signal> signal_;
  bool done_ = false;
};

}  // namespace

InProcessTransport::InProcessTransport(ApiServer& server, ClientIdentity identity)
    : state_(std::make_shared<State>(State{server, identity, Faults(identity.fault_seed), true, 0, {}, {}})) {}
InProcessTransport::~InProcessTransport() = default;

Faults& InProcessTransport::faults() {
  return state_->faults;
}
std::uint64_t InProcessTransport::requests() const {
  return state_->requests;
}

void InProcessTransport::set_request_listener(std::function<void(const HttpRequest&)> listener) {
  state_->listener = std::move(listener);
}

void InProcessTransport::reset_streams() {
  for (const auto& weak : std::exchange(state_->streams, {}))
    if (auto stream = weak.lock()) stream->reset();
}

void InProcessTransport::set_connected(bool connected) {
  state_->connected = connected;
  if (!connected) reset_streams();
}

asio::awaitable<Result<HttpResponse>> InProcessTransport::send(HttpRequest request) {
  const std::shared_ptr<State> state = state_;
  k8s::Clock& clock = state->server.clock();
  state->note(request);
  const RequestInfo info = parse_request(request);
  const auto pick = [&](Fault fault) { return state->pick(fault, info); };
  if (state->strikes(Fault::crash_unsent, info)) co_return crashed();
  k8s::Duration delay = state->identity.latency;
  if (const auto slow = pick(Fault::latency)) delay += slow->delay;
  const auto webhook = pick(Fault::webhook);
  if (webhook) delay += webhook->delay;
  const bool late = delay > request.timeout;
  const bool hang = pick(Fault::hang).has_value() || (webhook && late);
  co_await clock.sleep_for(hang || late ? k8s::Duration(request.timeout) : delay);
  if (hang) co_return k8s::fail(Reason::timeout, "no answer in time (injected)");
  if (!state->connected) co_return k8s::fail(Reason::transport, "connection refused (injected)");
  if (pick(Fault::transport_error)) co_return k8s::fail(Reason::transport, "connection reset by peer (injected)");
  if (pick(Fault::refused)) {
    if (request.method == k8s::Method::post) co_return k8s::fail(Reason::transport, "it is not sent again (injected)");
    const Result<void> allowed = request.before_resend ? request.before_resend() : Result<void>();
    if (!allowed) co_return std::unexpected(allowed.error());
    state->note(request);
  }
  for (const Fault refusal : kRefusals)
    if (const auto rule = pick(refusal)) co_return fault_response(*rule, info);
  RequestContext context = context_of(state->identity);
  if (const auto rule = pick(Fault::stale)) context.stale_revisions = rule->revisions;
  HttpResponse response = state->server.handle(request, context);
  response.headers.emplace_back("date", http_date(clock.now()));
  if (state->strikes(Fault::crash_unanswered, info)) co_return crashed();
  state->strike_with_the_answer(info);
  // A slow answer comes after the client gave up: committed all the same.
  if (late) co_return k8s::fail(Reason::timeout, "no answer in time (injected)");
  const bool write = request.method != k8s::Method::get && response.status < 300;
  if (write && pick(Fault::ambiguous)) co_return k8s::fail(Reason::transport, "connection reset by peer (injected)");
  if (write && pick(Fault::unconfirmed)) co_return bad_gateway(504);
  if (pick(Fault::truncated)) response.body.resize(response.body.size() / 2);
  co_return response;
}

asio::awaitable<Result<std::unique_ptr<k8s::ByteStream>>> InProcessTransport::open(HttpRequest request) {
  const std::shared_ptr<State> state = state_;
  k8s::Clock& clock = state->server.clock();
  state->note(request);
  const RequestInfo info = parse_request(request);
  const auto pick = [&](Fault fault) { return state->pick(fault, info); };
  if (state->strikes(Fault::crash_unsent, info)) co_return crashed();
  k8s::Duration delay = state->identity.latency;
  if (const auto slow = pick(Fault::latency)) delay += slow->delay;
  const bool hang = pick(Fault::hang).has_value() || delay > request.timeout;
  co_await clock.sleep_for(hang ? k8s::Duration(request.timeout) : delay);
  if (hang) co_return k8s::fail(Reason::timeout, "no answer in time (injected)");
  if (!state->connected) co_return k8s::fail(Reason::transport, "connection refused (injected)");
  if (pick(Fault::transport_error)) co_return k8s::fail(Reason::transport, "connection reset by peer (injected)");
  for (const Fault refusal : kRefusals) {
    if (refusal == Fault::gone) continue;  // A watch is answered with 200 and an ERROR event.
    if (const auto rule = pick(refusal))
      co_return std::make_unique<InProcessStream>(clock, state->server, fault_response(*rule, info));
  }
  if (!ApiServer::is_watch(request)) {
    co_return std::make_unique<InProcessStream>(clock, state->server,
                                                state->server.handle(request, context_of(state->identity)));
  }
  RequestContext context = context_of(state->identity);
  if (const auto rule = pick(Fault::stale)) context.stale_revisions = rule->revisions;
  auto answer = state->server.watch(request, context);
  if (auto* refused = std::get_if<HttpResponse>(&answer))
    co_return std::make_unique<InProcessStream>(clock, state->server, std::move(*refused));
  if (state->strikes(Fault::crash_unanswered, info)) co_return crashed();
  state->strike_with_the_answer(info);
  auto watch = std::get<std::shared_ptr<WatchStream>>(std::move(answer));
  const std::string resource = info.plural;
  watch->set_filter([weak = std::weak_ptr<State>(state), stream = watch.get(), resource](const StoredEvent& event) {
    const auto alive = weak.lock();
    if (alive == nullptr) return true;
    const Object& object = event.after != nullptr ? *event.after : *event.before;
    const std::string& name = object.key().name;
    if (alive->faults.pick(Fault::drop_event, "watch", resource, name)) return false;
    if (alive->faults.pick(Fault::reset_watch, "watch", resource, name)) {
      stream->reset();
      return false;
    }
    if (alive->faults.pick(Fault::gone, "watch", resource, name)) {
      stream->expire();
      return false;
    }
    return true;
  });
  std::erase_if(state->streams, [](const auto& weak) { return weak.expired(); });
  state->streams.push_back(watch);
  auto lag = [weak = std::weak_ptr<State>(state), resource] {
    const auto alive = weak.lock();
    const auto slow = alive == nullptr ? std::nullopt : alive->faults.pick(Fault::latency, "watch", resource, "");
    return slow ? slow->delay : k8s::Duration(0);
  };
  co_return std::make_unique<InProcessStream>(clock, state->server, std::move(watch), std::move(lag));
}

}  // namespace gso::sim
