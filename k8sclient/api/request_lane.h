// How many requests are on their way: the lanes, and the limit that follows the server's load.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"

namespace k8s {

// --- AdaptiveLimit: how many requests of one kind may be open at once, learnt from the server's answers. Additive
// increase, multiplicative decrease (AIMD), as TCP does for a network path: the limit grows by one for each round of
// good answers while it is used in full, and halves when the server refuses a round or becomes slow. After a refusal
// nothing is sent for a moment, at least for as long as the server asked (Retry-After). Pure: it gets the time with
// each call. Sources: Jacobson, "Congestion avoidance and control" (1988); the answers of an overloaded kube-apiserver
// (429 with Retry-After 1 to 32 s: API Priority and Fairness).

struct AdaptiveLimitSettings {
  double start = 16;
  double least = 1;
  double most = 64;
  double decrease = 0.5;                                    // The limit after a refused round is this much of before.
  Duration first_pause = std::chrono::milliseconds(200);    // After a refused round; doubled for each further one…
  Duration longest_pause = std::chrono::seconds(8);         // …up to this,
  Duration longest_retry_after = std::chrono::seconds(30);  // or as long as the server asks, up to this.
  // Slow: the median of the last answers took longer than `slow_factor` times the best median seen and than
  // `slow_least`.
  double slow_factor = 4;
  Duration slow_least = std::chrono::milliseconds(500);
};

class AdaptiveLimit {
 public:
  explicit AdaptiveLimit(AdaptiveLimitSettings settings) : settings_(settings), limit_(settings.start) {}

  // Between `least` and `most`.
  [[nodiscard]] std::size_t limit() const { return static_cast<std::size_t>(limit_); }
  // Nothing may be sent before.
  [[nodiscard]] MonoTime paused_until() const { return paused_until_; }

  // The server has done a request that was sent at `begun`. `full`: the limit was reached when it was sent; only then
  // does its success say that more would be possible.
  void served(MonoTime begun, MonoTime now, bool full);
  // The server refused a request for its own state (429, 5xx), or did not answer in time. Requests that were sent
  // before the last decrease count as the same round: one overload halves the limit once, however many requests it
  // refuses.
  void refused(MonoTime begun, MonoTime now, std::optional<Duration> retry_after);

 private:
  void shrink(MonoTime now);
  [[nodiscard]] bool is_slow(Duration took);

  AdaptiveLimitSettings settings_;
  double limit_;
  MonoTime shrunk_at_;
  MonoTime paused_until_;
  int refused_rounds_ = 0;       // Since the last request that was served.
  std::vector<Duration> round_;  // How long the answers since the last median took.
  std::optional<Duration> best_median_;
};

// --- RequestLane: the line in which the requests of one kind wait for their turn, so that at most as many are open as
// the server bears (request_lane.h). Reads and each kind of writes have a lane each: what hangs in one delays no
// other. The Lease and watches have none: the operator cannot delay those by its own requests. auto place =
// std::make_shared<RequestLane::Place>(lane); Result<void> turn = co_await lane->enter(place, deadline); ... one
// exchange ... place->served();  // Or refused(); without either it leaves no trace. A request that is sent again
// waits outside of its lane, and lines up anew. One thread only.

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
    void served() { lane_->limit_.served(begun_, lane_->clock_->monotonic(), full_); }
    // The server is overloaded or broken.
    void refused(std::optional<Duration> retry_after) {
      lane_->limit_.refused(begun_, lane_->clock_->monotonic(), retry_after);
    }

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
  void close() {
    closed_ = true;
    line_.clear();
  }

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
