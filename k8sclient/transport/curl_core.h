// CurlCore: what all requests of one curl transport share (its routes to the server, its certificates), and the
// guards that release what a request holds of it. Not for use above curl_transport.h.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "k8sclient/rethrow.h"
#include "k8sclient/transport/curl_easy.h"
#include "k8sclient/transport/curl_multi.h"
#include "k8sclient/transport/tls_files.h"

namespace k8s {

// One of the three ways to the server: its CURLM may be replaced when its connection is no longer trusted.
struct CurlRoute {
  std::shared_ptr<CurlMulti> multi;
  CurlMulti::Sharing sharing = CurlMulti::Sharing::multiplexed;
};

class CurlCore {
 public:
  // `clock` must outlive it.
  CurlCore(boost::asio::any_io_executor executor, Clock* clock, std::shared_ptr<const CurlTarget> target);

  // Ends everything in flight with Reason::cancelled, and all that comes later.
  void stop();
  // The connection of `multi` timed out or broke: later requests get a new one, those in flight stay where they are.
  // The broken one goes when the last of them has ended.
  void retire(CurlRoute& route, const std::shared_ptr<CurlMulti>& multi);

  // The certificates to use now. Where their files have changed, the connections made with the old ones are retired.
  std::shared_ptr<const TlsTexts> tls();
  // After a refusal: true when the files hold something else than `used` by now.
  bool tls_changed(const std::shared_ptr<const TlsTexts>& used);

  [[nodiscard]] Clock& clock() const { return *clock_; }
  [[nodiscard]] const std::shared_ptr<const CurlTarget>& target() const { return target_; }
  [[nodiscard]] TransportStats& stats() const { return *target_->stats; }
  [[nodiscard]] bool stopped() const { return stopped_; }

  // One exchange has ended; `status` 0: without an answer.
  void record(Method method, int status, Duration took) const;

  CurlRoute unary;
  CurlRoute lease;
  CurlRoute streams;
  // Counts invalidations, so that many requests refused at once with one stale token re-read it once.
  std::uint64_t credential_generation = 0;

 private:
  Clock* clock_;
  std::shared_ptr<const CurlTarget> target_;
  boost::asio::any_io_executor executor_;
  TlsFiles tls_files_;
  std::shared_ptr<const TlsTexts> tls_;
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

}  // namespace k8s
