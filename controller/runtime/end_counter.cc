#include "controller/runtime/end_counter.h"

namespace gso {

EndCounter::EndCounter(k8s::Clock* clock) : clock_(clock), changed_(clock->make_signal()) {}

void EndCounter::note() {
  ++ended_;
  changed_->notify();
}

boost::asio::awaitable<bool> EndCounter::one_more(k8s::Duration patience) {
  const std::uint64_t before = ended_;
  const k8s::MonoTime deadline = clock_->monotonic() + patience;
  while (ended_ == before && clock_->monotonic() < deadline) co_await changed_->wait_until(deadline);
  co_return ended_ > before;
}

}  // namespace gso
