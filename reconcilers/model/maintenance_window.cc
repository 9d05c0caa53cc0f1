// Cron fields, local days, and the tz database (libhowardhinnant-date).
#include "reconcilers/model/rollout_spec.h"

#include "k8sclient/value/error.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/message_text.h"

#include <date/tz.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <exception>
#include <ranges>
#include <span>

namespace gso {

namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

struct CronExpression {
  std::bitset<60> minutes;
  std::bitset<24> hours;
  std::bitset<32> days;     // 1-31
  std::bitset<13> months;   // 1-12
  std::bitset<7> weekdays;  // 0 is Sunday.
  bool any_day = true;      // Day of month is `*` (or `*/n`).
  bool any_weekday = true;
};

constexpr std::array<std::string_view, 12> kMonths{"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                                   "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
constexpr std::array<std::string_view, 7> kWeekdays{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};
constexpr k8s::Duration kLongest = hours(168);

struct Field {
  std::string_view name;
  int least, most;
  std::span<const std::string_view> words;  // Names of the values from `least` on.
};
constexpr Field kMinute{"minute", 0, 59, {}};
constexpr Field kHour{"hour", 0, 23, {}};
constexpr Field kDay{"day of month", 1, 31, {}};
constexpr Field kMonth{"month", 1, 12, kMonths};
constexpr Field kWeekday{"day of week", 0, 7, kWeekdays};

bool same_word(std::string_view text, std::string_view word) {
  return std::ranges::equal(text, word, [](char a, char b) { return (a >= 'a' && a <= 'z' ? a - 32 : a) == b; });
}

std::optional<int> parse_value(std::string_view text, const Field& field) {
  for (std::size_t i = 0; i < field.words.size(); ++i)
    if (same_word(text, field.words[i])) return field.least + static_cast<int>(i);
  const auto value = whole_number(text);
  return value && *value >= field.least && *value <= field.most ? std::optional(static_cast<int>(*value))
                                                                : std::nullopt;
}

// The values that one item between commas names. False if the item is invalid.
template <class Set>
bool add_item(std::string_view item, const Field& field, Set set) {
  const auto slash = item.find('/');
  const std::string_view range = item.substr(0, slash);
  int step = 1;
  if (slash != std::string_view::npos) {
    const auto number = whole_number(item.substr(slash + 1));
    if (!number || *number < 1 || *number > field.most) return false;
    step = static_cast<int>(*number);
  }
  int first = field.least;
  int last = field.most;
  if (range != "*") {
    const auto dash = range.find('-');
    const auto from = parse_value(range.substr(0, dash), field);
    if (!from) return false;
    first = *from;
    if (dash != std::string_view::npos) {
      const auto to = parse_value(range.substr(dash + 1), field);
      if (!to || *to < first) return false;
      last = *to;
    } else if (slash == std::string_view::npos) {
      last = first;
    }
  }
  for (int value = first; value <= last; value += step) set(value);
  return true;
}

template <class Set>
k8s::Result<void> parse_field(std::string_view text, const Field& field, Set set) {
  for (const auto item : std::views::split(text, ',')) {
    if (add_item(std::string_view(item.begin(), item.end()), field, set)) continue;
    return k8s::fail(k8s::Reason::invalid,
                     fmt::format("{} \"{}\" must be values from {} to {} such as *, 2, 1-5, */15 or 1,3", field.name,
                                 shown_value(text), field.least, field.most));
  }
  return {};
}

std::vector<std::string_view> split_fields(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const auto space = text.find_first_of(" \t");
    if (space != 0) out.push_back(text.substr(0, space));
    text = space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
  }
  return out;
}

const date::time_zone* find_zone(const std::string& name) {
  if (name.contains('.')) return nullptr;  // A table beside the zones: the library would take it for one.
  try {
    const date::time_zone* zone = date::locate_zone(name);
    (void)zone->get_info(date::sys_seconds{});  // Reads its file.
    return zone;
  } catch (const std::exception&) {
    return nullptr;  // The library throws if the zone does not exist or cannot be read, or none exists.
  }
}

bool matches_day(const CronExpression& cron, date::local_days day) {
  const date::year_month_day ymd{day};
  if (!cron.months[static_cast<unsigned>(ymd.month())]) return false;
  const bool by_day = cron.days[static_cast<unsigned>(ymd.day())];
  const bool by_weekday = cron.weekdays[date::weekday{day}.c_encoding()];
  // `*` has every value, and `*/n` restricts like any list, but never makes it either-or.
  return cron.any_day || cron.any_weekday ? by_day && by_weekday : by_day || by_weekday;
}

k8s::WallTime to_sys(const date::time_zone& zone, date::local_seconds local) {
  const date::local_info info = zone.get_info(local);
  if (info.result == date::local_info::nonexistent) return info.second.begin;
  return date::sys_seconds{local.time_since_epoch()} - info.first.offset;
}

struct Opening {
  CronExpression cron;
  const date::time_zone* zone = nullptr;
  k8s::Duration duration{0};

  // Calls visit(start) for the starts of that day in order, until it returns true.
  template <class Visit>
  bool starts_of(date::local_days day, Visit visit) const {
    if (!matches_day(cron, day)) return false;
    for (int hour = 0; hour < 24; ++hour) {
      if (!cron.hours[static_cast<std::size_t>(hour)]) continue;
      for (int minute = 0; minute < 60; ++minute) {
        if (!cron.minutes[static_cast<std::size_t>(minute)]) continue;
        if (visit(to_sys(*zone, day + hours(hour) + minutes(minute)))) return true;
      }
    }
    return false;
  }

  [[nodiscard]] date::local_days day_of(k8s::WallTime time) const {
    return date::floor<date::days>(zone->to_local(std::chrono::floor<seconds>(time)));
  }

  // When the newest start at or before `now` ends, if that is later than now.
  [[nodiscard]] std::optional<k8s::WallTime> closes(k8s::WallTime now) const {
    std::optional<k8s::WallTime> newest;
    const date::local_days today = day_of(now);
    for (date::local_days day = day_of(now - std::chrono::ceil<seconds>(duration)); day <= today;
         day += date::days(1)) {
      starts_of(day, [&](k8s::WallTime start) {
        if (start <= now) newest = start;
        return start > now;
      });
    }
    if (!newest) return std::nullopt;
    const k8s::WallTime end = *newest + std::chrono::floor<seconds>(duration);
    return end > now ? std::optional(end) : std::nullopt;
  }

  [[nodiscard]] std::optional<k8s::WallTime> opens_after(k8s::WallTime now) const {
    constexpr int kDays = 5 * 366;  // A 29th of February is in it.
    std::optional<k8s::WallTime> found;
    date::local_days day = day_of(now);
    for (int i = 0; i < kDays && !found; ++i, day += date::days(1)) {
      starts_of(day, [&](k8s::WallTime start) {
        if (start <= now) return false;
        found = start;
        return true;
      });
    }
    return found;
  }
};

// Errors (reason `invalid`) name the field and its valid values.
k8s::Result<CronExpression> parse_cron(std::string_view text) {
  const auto fields = split_fields(text);
  if (fields.size() != 5) {
    return k8s::fail(
        k8s::Reason::invalid,
        fmt::format("\"{}\" must have five fields: minute, hour, day of month, month, day of week", shown_value(text)));
  }
  CronExpression out;
  auto into = [](auto& bits) { return [&bits](int value) { bits.set(static_cast<std::size_t>(value)); }; };
  k8s::Result<void> read = parse_field(fields[0], kMinute, into(out.minutes));
  if (read) read = parse_field(fields[1], kHour, into(out.hours));
  if (read) read = parse_field(fields[2], kDay, into(out.days));
  if (read) read = parse_field(fields[3], kMonth, into(out.months));
  if (read)
    read = parse_field(fields[4], kWeekday, [&](int value) { out.weekdays.set(static_cast<std::size_t>(value % 7)); });
  if (!read) return std::unexpected(read.error());
  out.any_day = fields[2].starts_with('*');
  out.any_weekday = fields[4].starts_with('*');
  return out;
}

}  // namespace

std::string window_problem(const MaintenanceWindow& window) {
  if (auto cron = parse_cron(window.cron); !cron) return "cron " + cron.error().message;
  if (window.duration < minutes(1) || window.duration > kLongest)
    return fmt::format("duration {} must be from 1m to 168h", k8s::format_go_duration(window.duration));
  if (find_zone(window.time_zone) == nullptr) {
    return fmt::format("time zone \"{}\" {}", shown_value(window.time_zone),
                       find_zone("UTC") != nullptr
                           ? "is not in the tz database; use a name such as Europe/Berlin or UTC"
                           : "cannot be looked up: /usr/share/zoneinfo has no tz database here; install the package "
                             "tzdata, or use the operator's image, which has it");
  }
  return {};
}

WindowState windows_at(const std::vector<MaintenanceWindow>& windows, k8s::WallTime now) {
  WindowState out;
  if (windows.empty()) {
    out.open = true;
    return out;
  }
  std::optional<k8s::WallTime> closes;
  std::optional<k8s::WallTime> opens;
  for (const MaintenanceWindow& window : windows) {
    if (std::string problem = window_problem(window); !problem.empty()) {
      if (out.problem.empty()) out.problem = std::move(problem);
      continue;
    }
    const Opening opening{*parse_cron(window.cron), find_zone(window.time_zone), window.duration};
    if (const auto end = opening.closes(now)) closes = closes ? std::max(*closes, *end) : *end;
    if (closes) continue;
    if (const auto start = opening.opens_after(now)) opens = opens ? std::min(*opens, *start) : *start;
  }
  out.open = closes.has_value();
  out.until = out.open ? closes : opens;
  return out;
}

}  // namespace gso
