#include "reconcilers/model/timer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <utility>

namespace gso {

namespace {

struct Name {
  Timer timer;
  std::string_view text;
};

// In the order of the enumerators.
constexpr auto kNames = std::to_array<Name>({
    {Timer::draining, "draining"},
    {Timer::not_ready, "not-ready"},
    {Timer::busy, "busy"},
    {Timer::gang_waits, "gang-waits"},
    {Timer::retargeting, "retargeting"},
    {Timer::unchanged, "unchanged"},
    {Timer::verifying, "verifying"},
    {Timer::shown, "shown"},
    {Timer::reloading, "reloading"},
    {Timer::loading, "loading"},
    {Timer::serving, "serving"},
    {Timer::drifting, "drifting"},
    {Timer::changing, "changing"},
    {Timer::held, "held"},
    {Timer::released, "released"},
    {Timer::leaving, "leaving"},
    {Timer::abandoned, "abandoned"},
    {Timer::pod_fault, "pod-fault"},
    {Timer::mps_ready, "mps-ready"},
    {Timer::mps_gone, "mps-gone"},
    {Timer::kai_mismatch, "kai-mismatch"},
    {Timer::kai_turn, "kai-turn"},
    {Timer::mps_draining, "mps-draining"},
    {Timer::mps_starting, "mps-starting"},
    {Timer::labelling, "labelling"},
    {Timer::settled, "settled"},
    {Timer::key_text, "key-text"},
    {Timer::projecting, "projecting"},
    {Timer::key_unused, "key-unused"},
    {Timer::left_behind, "left-behind"},
    {Timer::daemonset_stalls, "daemonset-stalls"},
    {Timer::differing, "differing"},
    {Timer::mixed_config, "mixed-config"},
    {Timer::soaking, "soaking"},
    {Timer::unsettled, "unsettled"},
    {Timer::kai_orphan, "kai-orphan"},
    {Timer::kai_duplicate, "kai-duplicate"},
    {Timer::kai_stable, "kai-stable"},
    {Timer::slices_batch, "slices-batch"},
    {Timer::slices_batch_idle, "slices-batch-idle"},
    {Timer::slices_projecting, "slices-projecting"},
    {Timer::slices_confirming, "slices-confirming"},
    {Timer::slices_idle, "slices-idle"},
    {Timer::partitioner_lease, "partitioner-lease"},
    {Timer::slices_moved, "slices-moved"},
    {Timer::slices_agent, "slices-agent"},
    {Timer::stored_time, "stored-time"},
});
static_assert(std::ranges::all_of(kNames, [](const Name& name) {
  return &name == &kNames.at(std::to_underlying(name.timer));
}));

}  // namespace

std::string_view to_string(Timer timer) {
  const auto index = std::to_underlying(timer);
  return index < kNames.size() ? kNames.at(index).text : "unknown";
}

std::string to_string(const TimerKey& key) {
  std::string out(to_string(key.timer));
  for (const k8s::Interned* part : {&key.subject, &key.scope})
    if (!part->empty()) out += fmt::format("/{}", part->view());
  return out;
}

namespace {

// The text before the next '/', which is removed from `rest` with it.
std::string next_part(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('/'), rest.size());
  std::string part(rest.substr(0, end));
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

}  // namespace

std::optional<TimerKey> parse_timer_key(std::string_view text) {
  const auto name = std::ranges::find(kNames, next_part(text), &Name::text);
  if (name == kNames.end()) return std::nullopt;
  std::string subject = next_part(text);
  if (name->timer == Timer::daemonset_stalls) subject += "/" + next_part(text);  // namespace/name
  return TimerKey{name->timer, subject, text};
}

TimerKey stored_time(std::string_view subject, std::string_view what, k8s::WallTime time) {
  return {Timer::stored_time, subject, fmt::format("{} {}", what, k8s::format_time(time))};
}

// With another length the same end is another wait.
StoredWait stored_wait(std::string_view subject, std::string_view what, k8s::WallTime end, k8s::Duration length) {
  const auto whole = std::chrono::ceil<k8s::WallTime::duration>(length);
  const std::string name = fmt::format("{} of {} until", what, k8s::format_go_duration(length));
  return {stored_time(subject, name, end), end - whole, whole};
}

bool is_of_stored_time(Timer timer) {
  return timer == Timer::slices_moved || timer == Timer::slices_agent || timer == Timer::stored_time;
}

bool shows_progress(Timer timer) {
  return timer != Timer::settled && timer != Timer::key_text && timer != Timer::unchanged &&
         timer != Timer::labelling && timer != Timer::slices_idle && timer != Timer::partitioner_lease &&
         !is_of_stored_time(timer);
}

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
