#include "reconcilers/model/timer_order.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace gso {
namespace {

using Keys = std::vector<TimerKey>;

// Keys of one kind. A walk that began in the middle of its nodes, and several planners one after the other, leave a few
// runs that are in order.
void sort_runs(Keys& keys) {
  constexpr std::size_t kFew = 8;
  std::vector<Keys::iterator> ends;
  for (auto at = keys.begin(); at != keys.end() && ends.size() <= kFew;) {
    at = std::is_sorted_until(at, keys.end());
    ends.push_back(at);
  }
  if (ends.size() > kFew) {
    std::ranges::sort(keys);
    return;
  }
  for (std::size_t i = 1; i < ends.size(); ++i) std::inplace_merge(keys.begin(), ends[i - 1], ends[i]);
}

}  // namespace

void put_in_order(Keys& timers) {
  std::vector<Keys> by_kind;
  for (TimerKey& key : timers) {
    const auto kind = static_cast<std::size_t>(key.timer);
    if (by_kind.size() <= kind) by_kind.resize(kind + 1);
    by_kind[kind].push_back(std::move(key));
  }
  timers.clear();
  for (Keys& keys : by_kind) {
    sort_runs(keys);
    const auto repeated = std::ranges::unique(keys);
    std::move(keys.begin(), repeated.begin(), std::back_inserter(timers));
  }
}

}  // namespace gso
