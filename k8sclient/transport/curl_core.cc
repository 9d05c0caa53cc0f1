// See curl_core.h.
#include "k8sclient/transport/curl_core.h"

#include <algorithm>

namespace k8s {

CurlCore::CurlCore(boost::asio::any_io_executor executor, Clock* clock, std::shared_ptr<const CurlTarget> target)
    : clock_(clock),
      target_(std::move(target)),
      executor_(std::move(executor)),
      tls_files_(target_->connection, clock->monotonic()),
      tls_(tls_files_.current(clock->monotonic())) {
  streams.sharing = CurlMulti::Sharing::one_connection_each;
  for (CurlRoute* route : {&unary, &lease, &streams})
    route->multi = CurlMulti::create(executor_, clock_, route->sharing);
}

void CurlCore::stop() {
  stopped_ = true;
  for (CurlRoute* route : {&unary, &lease, &streams}) route->multi->stop();
  for (const auto& weak : retired_) {
    if (const std::shared_ptr<CurlMulti> multi = weak.lock()) multi->stop();
  }
}

void CurlCore::retire(CurlRoute& route, const std::shared_ptr<CurlMulti>& multi) {
  if (stopped_ || route.multi != multi) return;
  std::erase_if(retired_, [](const auto& weak) { return weak.expired(); });
  retired_.push_back(route.multi);
  route.multi = CurlMulti::create(executor_, clock_, route.sharing);
  ++stats().connections_retired;
}

std::shared_ptr<const TlsTexts> CurlCore::tls() {
  std::shared_ptr<const TlsTexts> now = tls_files_.current(clock_->monotonic());
  if (now == tls_) return tls_;
  tls_ = std::move(now);
  retire(unary, unary.multi);
  retire(lease, lease.multi);
  return tls_;
}

bool CurlCore::tls_changed(const std::shared_ptr<const TlsTexts>& used) {
  if (stopped_) return false;
  tls_files_.reread(clock_->monotonic());
  return tls() != used;
}

void CurlCore::record(Method method, int status, Duration took) const {
  ++stats().requests[{method, status}];
  if (target_->options.observer) target_->options.observer->on_request(method, target_->authority, status, took);
}

}  // namespace k8s
