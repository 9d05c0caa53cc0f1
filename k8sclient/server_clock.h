// The wall clock as the API server has it: creation times, the times of edits and what the operator stores beside them
// are compared with it, so that a machine whose clock is wrong neither sees objects from the future nor takes new ones
// for old. It is known from the header Date of the server's answers.
#pragma once

#include <optional>
#include <string_view>

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

  // `own` must outlive this object.
  explicit ServerClock(Clock* own) : own_(own) {}

  // An answer of the server has just arrived, with that header ("Sun, 06 Nov 1994 08:49:37 GMT"); anything else is
  // ignored. One that agrees with the machine's clock proves that one right.
  void answered(std::string_view date);

  // The machine's own time, unless it differs by more than kClocksDiffer from the time that the servers' answers agree
  // with: then that time, to a second or two. So setting the machine's clock moves it only where a server agrees.
  [[nodiscard]] WallTime now() const override;
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

  Clock* own_;
  std::optional<Line> believed_;
  std::optional<Line> rival_;  // What has contradicted it ever since, or nothing has been believed yet.
};

}  // namespace k8s
