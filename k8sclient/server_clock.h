// The wall clock as the API server has it: creation times, the times of edits and what the operator stores beside them
// are compared with it, so that a machine whose clock is wrong neither sees objects from the future nor takes new ones
// for old. It is known from the header Date of the server's answers.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "k8sclient/clock.h"

namespace k8s {

class ServerClock final : public Clock {
 public:
  // Clocks of one cluster may differ by that much, and creation times are whole seconds: beyond it, one of them is
  // wrong.
  static constexpr Duration kClocksDiffer = std::chrono::seconds(10);
  // For so long every answer must contradict the time in use, and agree with the others, before it is given up: one of
  // several servers, or a proxy, can have a wrong clock.
  static constexpr Duration kPersuades = std::chrono::minutes(1);
  // The same of a machine's clock that a server has agreed with, and that has not been set since: connections and
  // watches reach the other servers meanwhile.
  static constexpr Duration kPersuadesOtherwise = std::chrono::hours(1);

  // `own` must outlive this object. `on_switch` hears by how much the time in use is ahead of the machine's from now
  // on; it can be empty.
  explicit ServerClock(Clock* own, std::function<void(Duration ahead)> on_switch = {})
      : own_(own), on_switch_(std::move(on_switch)) {}

  // An answer of the server has just arrived, with that header ("Sun, 06 Nov 1994 08:49:37 GMT"); anything else is
  // ignored. One that agrees with the machine's clock proves that one right.
  void answered(std::string_view date);

  // The machine's own time, unless it differs by more than kClocksDiffer from the time that the servers' answers agree
  // with: then that time, to a second or two. So setting the machine's clock moves it only where a server agrees.
  [[nodiscard]] WallTime now() const override;
  // No server has agreed with the machine's clock yet, and one has contradicted it, for at most kPersuades: nothing
  // should be decided by the time.
  [[nodiscard]] bool in_doubt() const;
  [[nodiscard]] MonoTime monotonic() const override { return own_->monotonic(); }
  boost::asio::awaitable<void> sleep_until(MonoTime deadline) override { return own_->sleep_until(deadline); }
  [[nodiscard]] std::unique_ptr<Signal> make_signal() override { return own_->make_signal(); }

 private:
  // A wall clock that showed `time` at `since`, and has not been set since then.
  struct Line {
    WallTime time{};
    MonoTime since{};
    [[nodiscard]] WallTime at(MonoTime now) const;
  };

  [[nodiscard]] WallTime believed_or(WallTime own) const;

  Clock* own_;
  std::function<void(Duration)> on_switch_;
  std::optional<MonoTime> doubted_since_;  // The first answer that contradicted, before anything was believed.
  std::optional<Line> believed_;
  std::optional<Line> rival_;  // What has contradicted it ever since, or nothing has been believed yet.
};

}  // namespace k8s
