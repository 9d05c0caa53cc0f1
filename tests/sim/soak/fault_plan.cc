#include "tests/sim/soak/fault_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <utility>

namespace gso::sim {

using namespace std::chrono_literals;

namespace {

enum class At { write, request, opening, event };

// One way to fail: where, how often it is chosen, and its amounts (drawn between them).
struct FaultRow {
  Fault fault;
  const char* name;
  At at;
  int weight;
  k8s::Duration least{0}, most{0};  // Of FaultRule::delay.
  int times = 1;
  int status = 503;
};

constexpr std::array kRows{
    FaultRow{Fault::crash_unsent, "crash_unsent", At::write, 4},
    FaultRow{Fault::crash_unanswered, "crash_unanswered", At::write, 4},
    FaultRow{Fault::crash_answered, "crash_answered", At::request, 4, 0ms, 40ms},
    FaultRow{Fault::crash_answered, "crash_answered", At::opening, 1, 0ms, 5ms},
    FaultRow{Fault::ambiguous, "ambiguous", At::write, 3},
    FaultRow{Fault::unconfirmed, "unconfirmed", At::write, 3},
    FaultRow{Fault::conflict, "conflict", At::write, 1},
    FaultRow{Fault::server_error, "server_error", At::request, 1, 0ms, 0ms, 3, 500},
    FaultRow{Fault::bad_gateway, "bad_gateway", At::request, 1, 0ms, 0ms, 1, 502},
    FaultRow{Fault::throttle, "throttle", At::request, 1},
    FaultRow{Fault::forbidden, "forbidden", At::request, 1},
    FaultRow{Fault::transport_error, "transport_error", At::request, 1},
    FaultRow{Fault::refused, "refused", At::write, 1},
    FaultRow{Fault::truncated, "truncated", At::request, 2},
    FaultRow{Fault::hang, "hang", At::request, 2},
    FaultRow{Fault::latency, "latency", At::request, 2, 1s, 45s},
    FaultRow{Fault::stale, "stale", At::opening, 2, 0ms, 0ms, 40},
    FaultRow{Fault::gone, "gone", At::event, 2},
    FaultRow{Fault::drop_event, "drop_event", At::event, 3},
    FaultRow{Fault::reset_watch, "reset_watch", At::event, 2},
    FaultRow{Fault::latency, "latency", At::event, 3, 2s, 100s, 20},
    FaultRow{Fault::latency, "latency", At::event, 1, 1h, 1h},  // The stream hangs.
    FaultRow{Fault::suspend, "suspend", At::request, 3, 4s, 3min},
    FaultRow{Fault::wall_step, "wall_step", At::request, 1, 1h, 1h},
    FaultRow{Fault::wall_step, "wall_step", At::request, 1, -1h, -1h},
    FaultRow{Fault::cut_off, "cut_off", At::request, 2, 10s, 10min},
    FaultRow{Fault::server_away, "server_away", At::request, 1, 1h, 1h},
    FaultRow{Fault::history_lost, "history_lost", At::request, 2, 1s, 1s},
    FaultRow{Fault::strangers, "strangers", At::request, 2, 2min, 20min},
};

bool is_write(const std::string& verb) {
  return verb == "create" || verb == "update" || verb == "patch" || verb == "delete";
}

bool fits(At at, const std::string& verb) {
  switch (at) {
    case At::write:
      return is_write(verb);
    case At::request:
      return verb != "watch" && verb != "event";
    case At::opening:
      return verb == "watch";
    case At::event:
      return verb == "event";
  }
  return false;
}

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15U + 1) {}
  // 0 <= x < n
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  k8s::Duration between(k8s::Duration least, k8s::Duration most) {
    if (most <= least) return least;
    const auto steps = static_cast<std::uint64_t>((most - least) / 1ms);
    return least + std::chrono::milliseconds(random_() % (steps + 1));
  }

 private:
  std::mt19937_64 random_;
};

const FaultRow& draw_row(Draw& draw) {
  int all = 0;
  for (const FaultRow& row : kRows) all += row.weight;
  int left = draw.below(all);
  for (const FaultRow& row : kRows) {
    if (left < row.weight) return row;
    left -= row.weight;
  }
  return kRows.front();
}

// Leases are half of all requests, and few of their faults differ.
int weight_of(const FaultPlace& place) {
  return place.resource == "leases" ? std::min(place.count, 3) : place.count;
}

std::optional<FaultRule> at_some_place(Draw& draw, const FaultRow& row, const std::vector<FaultPlace>& places) {
  int all = 0;
  for (const FaultPlace& place : places) all += fits(row.at, place.verb) ? weight_of(place) : 0;
  if (all == 0) return std::nullopt;
  int left = draw.below(all);
  for (const FaultPlace& place : places) {
    if (!fits(row.at, place.verb)) continue;
    if (left >= weight_of(place)) {
      left -= weight_of(place);
      continue;
    }
    FaultRule rule{
        .fault = row.fault, .verb = place.verb == "event" ? "watch" : place.verb, .resource = place.resource};
    // A restarted operator opens its watches anew: the first of them see the past.
    rule.skip = row.fault == Fault::stale ? 0 : draw.below(place.count);
    rule.times = row.times > 1 ? 1 + draw.below(row.times) : 1;
    rule.delay = draw.between(row.least, row.most);
    rule.status = row.status;
    rule.retry_after = 1 + draw.below(32);
    rule.revisions = 1 + static_cast<std::uint64_t>(draw.below(60));
    return rule;
  }
  return std::nullopt;
}

}  // namespace

std::string describe(const FaultRule& rule) {
  const FaultRow& known = *std::ranges::find(kRows, rule.fault, &FaultRow::fault);
  const bool on_events = rule.verb == "watch" && rule.fault != Fault::stale && rule.fault != Fault::crash_answered;
  std::string text = on_events ? "events" : rule.verb;
  text += fmt::format(" of {} #{}: {}", rule.resource, rule.skip + 1, known.name);
  if (rule.delay != k8s::Duration(0)) text += " " + k8s::format_go_duration(rule.delay);
  if (rule.fault == Fault::stale) text += fmt::format(" by {} revisions", rule.revisions);
  if (rule.fault == Fault::throttle) text += fmt::format(" for {} s", rule.retry_after);
  if (rule.times > 1) text += fmt::format(", {} times", rule.times);
  return text;
}

FaultPlan make_plan(std::uint64_t seed, const std::vector<FaultPlace>& places) {
  Draw draw(seed);
  const int count = 1 + draw.below(3) + draw.below(3);
  FaultPlan plan;
  while (static_cast<int>(plan.size()) < count) {
    const FaultRow& row = draw_row(draw);
    const std::optional<FaultRule> rule = at_some_place(draw, row, places);
    if (!rule) continue;
    plan.push_back(*rule);
    if (rule->fault != Fault::stale) continue;
    // Nobody lists anew without a reason.
    constexpr FaultRow kRestart{Fault::crash_answered, "crash_answered", At::request, 1, 0ms, 40ms};
    if (const auto restart = at_some_place(draw, kRestart, places)) plan.push_back(*restart);
  }
  return plan;
}

std::vector<FaultPlan> every_crash(const std::vector<FaultPlace>& places) {
  std::vector<FaultPlan> plans;
  for (const FaultPlace& place : places) {
    if (!is_write(place.verb) || place.resource == "leases") continue;
    for (int skip = 0; skip < place.count; ++skip) {
      for (const Fault fault : {Fault::crash_unsent, Fault::crash_unanswered, Fault::crash_answered}) {
        plans.push_back({{.fault = fault,
                          .verb = place.verb,
                          .resource = place.resource,
                          .skip = skip,
                          .times = 1,
                          .delay = k8s::Duration(5ms)}});
      }
    }
  }
  return plans;
}

FaultPlan shrink(const FaultPlan& plan, const std::function<bool(const FaultPlan&)>& fails) {
  FaultPlan least = plan;
  std::size_t parts = 2;
  while (least.size() >= 2) {
    const std::size_t size = (least.size() + parts - 1) / parts;
    bool smaller = false;
    for (std::size_t from = 0; from < least.size() && !smaller; from += size) {
      FaultPlan rest = least;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(from),
                 rest.begin() + static_cast<std::ptrdiff_t>(std::min(from + size, least.size())));
      if (rest.empty() || !fails(rest)) continue;
      least = std::move(rest);
      parts = std::max<std::size_t>(parts - 1, 2);
      smaller = true;
    }
    if (smaller) continue;
    if (size == 1) break;
    parts = std::min(parts * 2, least.size());
  }
  return least;
}

}  // namespace gso::sim
