#include "reconcilers/model/timer.h"

#include <fmt/format.h>

namespace gso {

std::string_view to_string(Timer timer) {
  switch (timer) {
    case Timer::not_ready:
      return "not-ready";
    case Timer::draining:
      return "draining";
    case Timer::busy:
      return "busy";
    case Timer::gang_waits:
      return "gang-waits";
    case Timer::retargeting:
      return "retargeting";
    case Timer::unchanged:
      return "unchanged";
    case Timer::verifying:
      return "verifying";
    case Timer::shown:
      return "shown";
    case Timer::reloading:
      return "reloading";
    case Timer::serving:
      return "serving";
    case Timer::loading:
      return "loading";
    case Timer::drifting:
      return "drifting";
    case Timer::changing:
      return "changing";
    case Timer::leaving:
      return "leaving";
    case Timer::abandoned:
      return "abandoned";
    case Timer::pod_fault:
      return "pod-fault";
    case Timer::mps_ready:
      return "mps-ready";
    case Timer::mps_gone:
      return "mps-gone";
    case Timer::kai_mismatch:
      return "kai-mismatch";
    case Timer::kai_turn:
      return "kai-turn";
    case Timer::settled:
      return "settled";
    case Timer::key_text:
      return "key-text";
    case Timer::projecting:
      return "projecting";
    case Timer::key_unused:
      return "key-unused";
    case Timer::left_behind:
      return "left-behind";
    case Timer::daemonset_stalls:
      return "daemonset-stalls";
    case Timer::differing:
      return "differing";
    case Timer::mixed_config:
      return "mixed-config";
    case Timer::soaking:
      return "soaking";
    case Timer::unsettled:
      return "unsettled";
    case Timer::kai_orphan:
      return "kai-orphan";
    case Timer::kai_duplicate:
      return "kai-duplicate";
    case Timer::kai_stable:
      return "kai-stable";
  }
  return "unknown";
}

std::string to_string(const TimerKey& key) {
  std::string out(to_string(key.timer));
  for (const std::string* part : {&key.subject, &key.scope}) {
    if (!part->empty()) out += fmt::format("/{}", *part);
  }
  return out;
}

bool shows_progress(Timer timer) {
  return timer != Timer::settled && timer != Timer::key_text && timer != Timer::unchanged;
}

}  // namespace gso
