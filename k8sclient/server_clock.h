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

  // `own` must outlive this object.
  explicit ServerClock(Clock* own) : own_(own) {}

  // An answer of the server has just arrived, with that header ("Sun, 06 Nov 1994 08:49:37 GMT"); anything else is
  // ignored.
  void answered(std::string_view date);

  // The machine's own time, unless the server's differs from it by more than kClocksDiffer: then the server's, to a
  // second or two.
  [[nodiscard]] WallTime now() const override;
  [[nodiscard]] MonoTime monotonic() const override { return own_->monotonic(); }
  boost::asio::awaitable<void> sleep_until(MonoTime deadline) override { return own_->sleep_until(deadline); }
  [[nodiscard]] std::unique_ptr<Signal> make_signal() override { return own_->make_signal(); }

 private:
  // The server's time now, by its last answers and the time since boot.
  [[nodiscard]] std::optional<WallTime> servers() const;

  Clock* own_;
  struct Heard {
    WallTime date{};
    MonoTime at{};
  };
  std::optional<Heard> heard_;
};

}  // namespace k8s
