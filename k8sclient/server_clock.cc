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
  const bool was_own = is_same(believed_or(own), own);
  if (is_same(*time, own)) believed_ = Line{own, now};
  if (!was_own && is_same(*time, own) && on_switch_) on_switch_(Duration::zero());
  if (believed_ && is_same(*time, believed_->at(now))) {
    rival_.reset();
    return;
  }
  if (!rival_ || !is_same(*time, rival_->at(now))) rival_ = Line{*time, now};
  if (!believed_ && !doubted_since_) doubted_since_ = now;
  if (now - rival_->since < (believed_ && was_own ? kPersuadesOtherwise : kPersuades)) return;
  believed_ = rival_;
  rival_.reset();
  if (on_switch_) on_switch_(std::chrono::duration_cast<Duration>(believed_or(own) - own));
}

bool ServerClock::in_doubt() const {
  return !believed_ && doubted_since_ && monotonic() - *doubted_since_ <= kPersuades;
}

WallTime ServerClock::believed_or(WallTime own) const {
  if (!believed_) return own;
  const WallTime believed = believed_->at(monotonic());
  return is_same(own, believed) ? own : believed;
}

WallTime ServerClock::now() const {
  return believed_or(own_->now());
}

}  // namespace k8s
