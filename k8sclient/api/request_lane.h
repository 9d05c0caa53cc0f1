// RequestLane: the line in which the requests of one kind wait for their turn, so that at most as many are open as the
// server bears (adaptive_limit.h). Reads and each kind of writes have a lane each: what hangs in one delays no other.
// The Lease and watches have none: the operator cannot delay those by its own requests.
//
//   auto place = std::make_shared<RequestLane::Place>(lane);
//   Result<void> turn = co_await lane->enter(place, deadline);
//   ... one exchange ...
//   place->served();  // Or refused(); without either it leaves no trace.
//
// A request that is sent again waits outside of its lane, and lines up anew. One thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "k8sclient/api/adaptive_limit.h"
#include "k8sclient/clock.h"
#include "k8sclient/rethrow.h"
#include "k8sclient/value/error.h"

namespace k8s {

class RequestLane {
 public:
  // Requests that may wait. A plan hands over what finds a place, so a longer line is a fault of the program; it must
  // not end in a process without memory.
  static constexpr std::size_t kMostWaiting = 4096;

  // `clock` must live until close(). Made with make_shared: its places keep it.
  RequestLane(Clock* clock, AdaptiveLimitSettings settings) : clock_(clock), limit_(settings) {}
  RequestLane(const RequestLane&) = delete;
  RequestLane& operator=(const RequestLane&) = delete;

  // In the line, or on the way; leaves when it goes.
  class Place {
   public:
    explicit Place(std::shared_ptr<RequestLane> lane) : lane_(std::move(lane)) {}
    ~Place() {
      never_throw([this] { lane_->leave(*this); });
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    // The server has done what was asked, or refused it for the request's own fault.
    void served();
    // The server is overloaded or broken.
    void refused(std::optional<Duration> retry_after);

   private:
    friend class RequestLane;
    std::shared_ptr<RequestLane> lane_;
    std::unique_ptr<Signal> signal_;
    bool waits_ = false;
    bool granted_ = false;
    bool full_ = false;  // The limit was reached with it.
    MonoTime begun_;
  };

  // Returns when the request may be sent. Errors: `too_many_requests` if the deadline passes before, or if kMostWaiting
  // wait already, with the time to wait; nothing was sent then. `cancelled` when the waiting coroutine is cancelled.
  // Call once for each place.
  boost::asio::awaitable<Result<void>> enter(std::shared_ptr<Place> place, MonoTime deadline);

  // Nobody gets a turn any more, and the places that are left may go after the clock: an io_context destroys suspended
  // requests after everything that they use.
  void close();

  [[nodiscard]] std::size_t limit() const { return limit_.limit(); }
  [[nodiscard]] std::size_t open() const { return open_; }
  [[nodiscard]] std::size_t waiting() const { return line_.size(); }

 private:
  [[nodiscard]] Error not_sent(MonoTime now) const;
  void grant_next();
  void leave(Place& place);

  Clock* clock_;
  AdaptiveLimit limit_;
  std::size_t open_ = 0;
  std::deque<Place*> line_;
  bool closed_ = false;
};

}  // namespace k8s
