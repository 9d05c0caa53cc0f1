#include "k8sclient/server_clock.h"

namespace k8s {

void ServerClock::answered(std::string_view date) {
  const std::optional<WallTime> time = parse_http_date(date);
  if (!time) return;
  // A date is a second and its answer's way too old; the first one stays, so that the clock does not jump with each.
  constexpr Duration kSame = std::chrono::seconds(2);
  const std::optional<WallTime> expected = servers();
  if (!expected || std::chrono::abs(*expected - *time) > kSame) heard_ = Heard{*time, monotonic()};
}

std::optional<WallTime> ServerClock::servers() const {
  if (!heard_) return std::nullopt;
  return heard_->date + std::chrono::floor<WallTime::duration>(monotonic() - heard_->at);
}

WallTime ServerClock::now() const {
  const WallTime own = own_->now();
  const std::optional<WallTime> servers_now = servers();
  return servers_now && std::chrono::abs(*servers_now - own) > kClocksDiffer ? *servers_now : own;
}

}  // namespace k8s
