#include "k8sclient/server_clock.h"

namespace k8s {

namespace {

bool is_same(WallTime a, WallTime b) {
  return std::chrono::abs(a - b) <= ServerClock::kClocksDiffer;
}

}  // namespace

WallTime ServerClock::Line::at(MonoTime now) const {
  return time + std::chrono::floor<WallTime::duration>(now - since);
}

void ServerClock::answered(std::string_view date) {
  const std::optional<WallTime> time = parse_http_date(date);
  if (!time) return;
  const MonoTime now = monotonic();
  const WallTime own = own_->now();
  if (is_same(*time, own)) believed_ = Line{own, now};
  if (believed_ && is_same(*time, believed_->at(now))) {
    rival_.reset();
    return;
  }
  if (!rival_ || !is_same(*time, rival_->at(now))) rival_ = Line{*time, now};
  if (now - rival_->since < kPersuades) return;
  believed_ = rival_;
  rival_.reset();
}

WallTime ServerClock::now() const {
  const WallTime own = own_->now();
  if (!believed_) return own;
  const WallTime believed = believed_->at(monotonic());
  return is_same(own, believed) ? own : believed;
}

}  // namespace k8s
