// See curl_transport.h. Coroutines here hold the shared core and their exchange by shared_ptr, so that the transport,
// a stream or a waiting coroutine may be destroyed at any suspension point; guards take exchanges out of libcurl.
#include "k8sclient/transport/curl_transport.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "k8sclient/transport/curl_easy.h"
#include "k8sclient/transport/curl_multi.h"
#include "k8sclient/transport/curl_target.h"
#include "k8sclient/value/error.h"

namespace k8s {
namespace {

// --- CurlCore: what all requests of one curl transport share (its routes to the server, its certificates), and the
// guards that release what a request holds of it. Not for use above curl_transport.h.

// One of the three ways to the server: its CURLM may be replaced when its connection is no longer trusted.
struct CurlRoute {
  std::shared_ptr<CurlMulti> multi;
  CurlMulti::Sharing sharing = CurlMulti::Sharing::multiplexed;
};

class CurlCore {
 public:
  // `clock` must outlive it.
  CurlCore(boost::asio::any_io_executor executor, Clock* clock, std::shared_ptr<const CurlTarget> target)
      : clock_(clock), target_(std::move(target)), executor_(std::move(executor)), tls_read_at_(clock->monotonic()) {
    const Connection& from = target_->connection;
    tls_ = std::make_shared<const TlsTexts>(TlsTexts{from.ca_pem, from.client_cert_pem, from.client_key_pem});
    streams.sharing = CurlMulti::Sharing::one_connection_each;
    for (CurlRoute* route : {&unary, &lease, &streams})
      route->multi = CurlMulti::create(executor_, clock_, route->sharing);
  }

  // Ends everything in flight with Reason::cancelled, and all that comes later.
  void stop() {
    stopped_ = true;
    for (CurlRoute* route : {&unary, &lease, &streams}) route->multi->stop();
    for (const auto& weak : retired_)
      if (const std::shared_ptr<CurlMulti> multi = weak.lock()) multi->stop();
  }
  // The connection of `multi` timed out or broke: later requests get a new one, those in flight stay where they are.
  // The broken one goes when the last of them has ended.
  void retire(CurlRoute& route, const std::shared_ptr<CurlMulti>& multi) {
    if (stopped_ || route.multi != multi) return;
    std::erase_if(retired_, [](const auto& weak) { return weak.expired(); });
    retired_.push_back(route.multi);
    route.multi = CurlMulti::create(executor_, clock_, route.sharing);
    ++stats().connections_retired;
  }

  // The certificates to use now. Where their files have changed, the connections made with the old ones are retired.
  std::shared_ptr<const TlsTexts> tls() {
    if (clock_->monotonic() - tls_read_at_ >= kTlsFilePeriod) reread_tls();
    return tls_;
  }
  // After a refusal: true when the files hold something else than `used` by now.
  bool tls_changed(const std::shared_ptr<const TlsTexts>& used) {
    if (stopped_) return false;
    reread_tls();
    return tls_ != used;
  }

  [[nodiscard]] Clock& clock() const { return *clock_; }
  [[nodiscard]] const std::shared_ptr<const CurlTarget>& target() const { return target_; }
  [[nodiscard]] TransportStats& stats() const { return *target_->stats; }
  [[nodiscard]] bool stopped() const { return stopped_; }

  CurlRoute unary;
  CurlRoute lease;
  CurlRoute streams;
  // Counts invalidations, so that many requests refused at once with one stale token re-read it once.
  std::uint64_t credential_generation = 0;

 private:
  void reread_tls() {
    tls_read_at_ = clock_->monotonic();
    TlsTexts now = reread(target_->connection, *tls_);
    if (now == *tls_) return;
    tls_ = std::make_shared<const TlsTexts>(std::move(now));
    retire(unary, unary.multi);
    retire(lease, lease.multi);
  }

  Clock* clock_;
  std::shared_ptr<const CurlTarget> target_;
  boost::asio::any_io_executor executor_;
  std::shared_ptr<const TlsTexts> tls_;
  MonoTime tls_read_at_;
  std::vector<std::weak_ptr<CurlMulti>> retired_;
  bool stopped_ = false;
};

// An exchange within libcurl; taken out of it when this goes first.
class ExchangeGuard {
 public:
  ExchangeGuard(std::shared_ptr<CurlMulti> multi, std::shared_ptr<CurlExchange> exchange)
      : multi_(std::move(multi)), exchange_(std::move(exchange)) {
    multi_->add(exchange_);
  }
  ~ExchangeGuard() {
    never_throw([this] { remove(); });
  }
  ExchangeGuard(const ExchangeGuard&) = delete;
  ExchangeGuard& operator=(const ExchangeGuard&) = delete;
  void remove() { multi_->remove(exchange_); }
  [[nodiscard]] CurlExchange& exchange() const { return *exchange_; }
  [[nodiscard]] const std::shared_ptr<CurlMulti>& multi() const { return multi_; }

 private:
  std::shared_ptr<CurlMulti> multi_;
  std::shared_ptr<CurlExchange> exchange_;
};

namespace asio = boost::asio;
using Milliseconds = std::chrono::milliseconds;
using CorePtr = std::shared_ptr<CurlCore>;

struct Credential {
  std::string token;
  std::shared_ptr<const TlsTexts> files;  // Of the connection.
  std::shared_ptr<const TlsTexts> tls;    // The same, with the credential's own certificate where it supplies one.
  std::uint64_t generation = 0;
};

asio::awaitable<Result<Credential>> fetch_credential(CorePtr core, MonoTime deadline) {
  Credential credential;
  credential.generation = core->credential_generation;
  credential.files = core->tls();
  credential.tls = credential.files;
  const std::shared_ptr<CredentialSource> source = core->target()->connection.credentials;
  if (source == nullptr) co_return credential;
  auto token = co_await source->token(deadline);
  if (!token) co_return std::unexpected(token.error());
  credential.token = *std::move(token);
  std::string own_cert = source->client_cert_pem();
  if (!own_cert.empty()) {
    credential.tls = std::make_shared<const TlsTexts>(
        TlsTexts{credential.files->ca_pem, std::move(own_cert), source->client_key_pem()});
  }
  co_return credential;
}

// After a 401. False when there is nothing to try again with.
bool refresh_credential(CurlCore& core, const Credential& refused) {
  const auto& source = core.target()->connection.credentials;
  const bool new_certificate = core.tls_changed(refused.files);
  if (core.stopped()) return false;
  if (source == nullptr) return new_certificate;
  if (core.credential_generation == refused.generation) {
    ++core.credential_generation;
    source->invalidate();
  }
  return true;
}

// Waits until the exchange has arrived, or the deadline passes; then it is out of libcurl, with an error.
asio::awaitable<void> wait_for(CorePtr core, std::shared_ptr<ExchangeGuard> guard, MonoTime deadline,
                               Milliseconds allowed) {
  CurlExchange& exchange = guard->exchange();
  while (!exchange.arrived()) {
    const bool notified = co_await exchange.signal().wait_until(deadline);
    if (notified || exchange.arrived()) continue;
    if (core->clock().monotonic() >= deadline)
      exchange.fail_overdue(allowed);
    else
      exchange.on_abandoned({Reason::cancelled, 0, "the caller has given up"});
    guard->remove();
  }
}

// One request on the wire, once: to its end, or a stream's to its headers. The exchange may carry an error.
asio::awaitable<Result<std::shared_ptr<ExchangeGuard>>> exchange_once(CorePtr core,
                                                                      std::shared_ptr<const HttpRequest> request,
                                                                      Credential credential, CurlExchange::Kind kind,
                                                                      MonoTime deadline) {
  auto exchange = CurlExchange::create(core->target(), *request, credential.token, credential.tls, kind,
                                       core->clock().make_signal());
  if (!exchange) co_return std::unexpected(exchange.error());
  CurlRoute& route = kind == CurlExchange::Kind::stream   ? core->streams
                     : request->channel == Channel::lease ? core->lease
                                                          : core->unary;
  const auto guard = std::make_shared<ExchangeGuard>(route.multi, *exchange);
  co_await wait_for(core, guard, deadline, request->timeout);
  if (guard->exchange().connection_suspect()) core->retire(route, guard->multi());
  co_return guard;
}

// Each write that travels a second time asks its sender once more.
Result<void> allow_another_exchange(const CurlCore& core, const HttpRequest& request) {
  if (!request.before_resend) return {};
  Result<void> allowed = request.before_resend();
  if (!allowed)
    allowed.error().message = describe(*core.target(), request.method, request.path, allowed.error().message);
  return allowed;
}

// An attempt without an answer. `sent`: this one or an earlier one may have reached the server.
std::unexpected<Error> without_answer(Error error, bool sent) {
  error.never_sent = !sent;
  return std::unexpected(std::move(error));
}

// As exchange_once, with a credential; again with a fresh one after a 401, again on a new connection when a read met
// the end of a kept one, or when certificates that did not serve have been replaced in their files. An error only if
// there is no answer (for a stream: no headers).
asio::awaitable<Result<std::shared_ptr<ExchangeGuard>>> exchange_authorised(CorePtr core,
                                                                            std::shared_ptr<const HttpRequest> request,
                                                                            CurlExchange::Kind kind,
                                                                            MonoTime deadline) {
  bool refreshed = false;
  bool reconnected = false;
  bool sent = false;
  while (true) {
    if (core->stopped()) {
      co_return fail(Reason::cancelled,
                     describe(*core->target(), request->method, request->path, "the transport is closed"));
    }
    auto credential = co_await fetch_credential(core, deadline);
    if (core->clock().monotonic() >= deadline) {
      const std::string why = credential ? std::string() : ": " + credential.error().message;
      Error late{Reason::timeout, 0,
                 describe(*core->target(), request->method, request->path,
                          fmt::format("no credential within {}{}", request->timeout, why))};
      co_return without_answer(std::move(late), sent);
    }
    if (!credential) co_return without_answer(credential.error(), sent);
    if (sent) {
      const Result<void> allowed = allow_another_exchange(*core, *request);
      if (!allowed) co_return std::unexpected(allowed.error());
    }
    auto guard = co_await exchange_once(core, request, *credential, kind, deadline);
    if (!guard) co_return guard;
    const CurlExchange& exchange = (*guard)->exchange();
    sent = sent || !exchange.never_sent();
    const bool answered = !exchange.error() || (kind == CurlExchange::Kind::stream && exchange.headers_complete());
    if (answered) {
      if (exchange.status() != 401 || refreshed || !refresh_credential(*core, *credential)) co_return guard;
      refreshed = true;
    } else {
      const bool new_certificate = core->tls_changed(credential->files) && exchange.never_sent();
      const bool again = !reconnected && (new_certificate || exchange.worth_a_new_connection());
      if (!again) co_return without_answer(*exchange.error(), sent);
      reconnected = true;
    }
    ++core->stats().retries;
  }
}

asio::awaitable<Result<HttpResponse>> send_request(CorePtr core, HttpRequest request) {
  const MonoTime deadline = core->clock().monotonic() + request.timeout;
  const auto shared = std::make_shared<const HttpRequest>(std::move(request));
  auto guard = co_await exchange_authorised(core, shared, CurlExchange::Kind::unary, deadline);
  if (!guard) co_return std::unexpected(guard.error());
  co_return (*guard)->exchange().take_response();
}

// What a stream and its pending read share.
struct StreamState {
  CorePtr core;
  std::shared_ptr<ExchangeGuard> guard;
  bool ended = false;  // The end or the error has been handed out.
};

// The stream's last word, once all its bytes are read.
Result<std::string> finish_stream(StreamState& state) {
  const CurlExchange& exchange = state.guard->exchange();
  if (std::exchange(state.ended, true))
    return fail(Reason::transport, exchange.describe("the stream has ended; open a new one"));
  if (exchange.error()) return std::unexpected(*exchange.error());
  return std::string();
}

asio::awaitable<Result<std::string>> read_stream(std::shared_ptr<StreamState> state, Milliseconds idle) {
  CurlExchange& exchange = state->guard->exchange();
  Clock& clock = state->core->clock();
  const MonoTime deadline = clock.monotonic() + idle;
  while (!exchange.has_unread() && !exchange.done()) {
    const bool notified = co_await exchange.signal().wait_until(deadline);
    if (notified || exchange.has_unread() || exchange.done()) continue;
    if (clock.monotonic() < deadline) co_return fail(Reason::cancelled, exchange.describe("the reader has given up"));
    state->guard->remove();
    exchange.on_abandoned({Reason::timeout, 0, fmt::format("no bytes for {}", idle)});
  }
  if (exchange.has_unread()) co_return exchange.take_unread();
  co_return finish_stream(*state);
}

class CurlStream final : public ByteStream {
 public:
  explicit CurlStream(std::shared_ptr<StreamState> state) : state_(std::move(state)) {}
  ~CurlStream() override {
    // A read in progress elsewhere ends with `cancelled`.
    never_throw([this] {
      state_->guard->remove();
      exchange().on_abandoned({Reason::cancelled, 0, "the stream was closed"});
    });
  }
  CurlStream(const CurlStream&) = delete;
  CurlStream& operator=(const CurlStream&) = delete;

  int status() const override { return exchange().status(); }
  std::string_view header(std::string_view name) const override { return exchange().response().header(name); }
  asio::awaitable<Result<std::string>> read(Milliseconds idle) override { return read_stream(state_, idle); }
  void reuse(std::string read) override { exchange().reuse(std::move(read)); }

 private:
  [[nodiscard]] CurlExchange& exchange() const { return state_->guard->exchange(); }
  std::shared_ptr<StreamState> state_;
};

asio::awaitable<Result<std::unique_ptr<ByteStream>>> open_stream(CorePtr core, HttpRequest request) {
  const MonoTime deadline = core->clock().monotonic() + request.timeout;
  const auto shared = std::make_shared<const HttpRequest>(std::move(request));
  auto guard = co_await exchange_authorised(core, shared, CurlExchange::Kind::stream, deadline);
  if (!guard) co_return std::unexpected(guard.error());
  co_return std::make_unique<CurlStream>(std::make_shared<StreamState>(core, *std::move(guard)));
}

// What an unusable address or proxy leaves of a transport: every request says so.
template <class T>
asio::awaitable<Result<T>> refuse(Error error) {
  co_return std::unexpected(std::move(error));
}

class CurlTransport final : public Transport {
 public:
  explicit CurlTransport(Result<CorePtr> core) : core_(std::move(core)) {}
  ~CurlTransport() override {
    never_throw([this] {
      if (core_) (*core_)->stop();
    });
  }
  CurlTransport(const CurlTransport&) = delete;
  CurlTransport& operator=(const CurlTransport&) = delete;

  asio::awaitable<Result<HttpResponse>> send(HttpRequest request) override {
    return core_ ? send_request(*core_, std::move(request)) : refuse<HttpResponse>(core_.error());
  }
  asio::awaitable<Result<std::unique_ptr<ByteStream>>> open(HttpRequest request) override {
    return core_ ? open_stream(*core_, std::move(request)) : refuse<std::unique_ptr<ByteStream>>(core_.error());
  }

 private:
  Result<CorePtr> core_;
};

}  // namespace

std::unique_ptr<Transport> make_curl_transport(asio::any_io_executor executor, Connection connection, Clock* clock,
                                               CurlTransportOptions options) {
  auto target = make_curl_target(std::move(connection), std::move(options));
  if (!target) return std::make_unique<CurlTransport>(std::unexpected(target.error()));
  return std::make_unique<CurlTransport>(std::make_shared<CurlCore>(std::move(executor), clock, *std::move(target)));
}

}  // namespace k8s
