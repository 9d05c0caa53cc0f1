// AdaptiveLimit: how many requests of one kind may be open at once, learnt from the server's answers. Additive
// increase, multiplicative decrease (AIMD), as TCP does for a network path: the limit grows by one for each round of
// good answers while it is used in full, and halves when the server refuses a round or becomes slow. After a refusal
// nothing is sent for a moment, at least for as long as the server asked (Retry-After).
//
// Pure: it gets the time with each call. Sources: Jacobson, "Congestion avoidance and control" (1988); the answers of
// an overloaded kube-apiserver (429 with Retry-After 1 to 32 s: API Priority and Fairness).
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "k8sclient/clock.h"

namespace k8s {

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

}  // namespace k8s
