#include "k8sclient/value/time.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace k8s {
namespace {

using namespace std::chrono;

// Reads exactly `digits` decimal digits and advances.
std::optional<int> take_number(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int value = 0;
  for (char c : text.substr(0, digits)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  text.remove_prefix(digits);
  return value;
}

bool take_char(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

// ".123456" -> milliseconds, truncated. Absent is zero; "." without digits is an error.
std::optional<milliseconds> take_fraction(std::string_view& text) {
  if (!take_char(text, '.')) return milliseconds(0);
  int value = 0;
  int digits = 0;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    if (digits < 3) value = value * 10 + (text.front() - '0');
    ++digits;
    text.remove_prefix(1);
  }
  if (digits == 0) return std::nullopt;
  for (int i = digits; i < 3; ++i) value *= 10;
  return milliseconds(value);
}

std::optional<minutes> take_offset(std::string_view& text) {
  if (take_char(text, 'Z') || take_char(text, 'z')) return minutes(0);
  const bool negative = !text.empty() && text.front() == '-';
  if (!take_char(text, '+') && !take_char(text, '-')) return std::nullopt;
  const auto hh = take_number(text, 2);
  if (!hh || *hh > 23 || !take_char(text, ':')) return std::nullopt;
  const auto mm = take_number(text, 2);
  if (!mm || *mm > 59) return std::nullopt;
  const minutes offset = hours(*hh) + minutes(*mm);
  return negative ? -offset : offset;
}

}  // namespace

std::optional<WallTime> parse_rfc3339(std::string_view text) {
  const auto y = take_number(text, 4);
  if (!y || !take_char(text, '-')) return std::nullopt;
  const auto mo = take_number(text, 2);
  if (!mo || !take_char(text, '-')) return std::nullopt;
  const auto d = take_number(text, 2);
  if (!d || !(take_char(text, 'T') || take_char(text, 't'))) return std::nullopt;
  const auto h = take_number(text, 2);
  if (!h || *h > 23 || !take_char(text, ':')) return std::nullopt;
  const auto mi = take_number(text, 2);
  if (!mi || *mi > 59 || !take_char(text, ':')) return std::nullopt;
  const auto s = take_number(text, 2);
  if (!s || *s > 60) return std::nullopt;  // 60: a leap second, read as the next minute's start.
  const auto fraction = take_fraction(text);
  if (!fraction) return std::nullopt;
  const auto offset = take_offset(text);
  const year_month_day date{year(*y), month(static_cast<unsigned>(*mo)), day(static_cast<unsigned>(*d))};
  if (!offset || !text.empty() || !date.ok()) return std::nullopt;
  return WallTime(sys_days(date)) + hours(*h) + minutes(*mi) + seconds(*s) + *fraction - *offset;
}

namespace {

constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

}  // namespace

std::optional<WallTime> parse_http_date(std::string_view text) {
  if (text.size() != 29 || text.substr(3, 2) != ", " || text[7] != ' ' || text[11] != ' ') return std::nullopt;
  const auto name = std::ranges::find(kMonths, text.substr(8, 3));
  if (name == kMonths.end()) return std::nullopt;
  const auto month = static_cast<int>(name - kMonths.begin()) + 1;
  if (!text.ends_with(" GMT") || text[16] != ' ') return std::nullopt;
  return parse_rfc3339(
      fmt::format("{}-{:02}-{}T{}Z", text.substr(12, 4), month, text.substr(5, 2), text.substr(17, 8)));
}

namespace {
std::string format_with(WallTime time, bool micro) {
  const auto day_point = floor<days>(time);
  const year_month_day date(day_point);
  const hh_mm_ss<milliseconds> clock(time - day_point);
  const std::string base =
      fmt::format(FMT_COMPILE("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}"), static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                  clock.minutes().count(), clock.seconds().count());
  return micro ? fmt::format("{}.{:03}000Z", base, clock.subseconds().count()) : base + "Z";
}
}  // namespace

std::string format_time(WallTime time) {
  return format_with(time, false);
}
std::string format_micro_time(WallTime time) {
  return format_with(time, true);
}

namespace {

struct Unit {
  std::string_view name;
  double nanos;
};
constexpr std::array<Unit, 8> kUnits{
    {{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"μs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}}};

// One "<number><unit>" term in nanoseconds.
std::optional<long double> take_term(std::string_view& text) {
  std::size_t end = 0;
  int dots = 0;
  while (end < text.size() && ((text[end] >= '0' && text[end] <= '9') || text[end] == '.')) {
    dots += text[end] == '.' ? 1 : 0;
    ++end;
  }
  if (end == 0 || dots > 1 || (end == 1 && dots == 1)) return std::nullopt;
  const std::string_view digits = text.substr(0, end);
  const std::size_t dot = std::min(digits.find('.'), end);
  long double whole = 0;
  for (const char c : digits.substr(0, dot)) whole = whole * 10 + (c - '0');
  // Apart, so that nothing is rounded away; what is beyond 18 places is less than a nanosecond.
  long double fraction = 0;
  long double scale = 1;
  for (const char c : digits.substr(std::min(dot + 1, end)).substr(0, 18)) {
    fraction = fraction * 10 + (c - '0');
    scale *= 10;
  }
  text.remove_prefix(end);
  std::size_t unit_end = 0;
  while (unit_end < text.size() && text[unit_end] != '.' && (text[unit_end] < '0' || text[unit_end] > '9')) ++unit_end;
  for (const Unit& unit : kUnits) {
    if (text.substr(0, unit_end) == unit.name) {
      text.remove_prefix(unit_end);
      const auto nanos = static_cast<long double>(unit.nanos);
      return whole * nanos + std::floor(fraction * (nanos / scale));
    }
  }
  return std::nullopt;
}

// `value` / 10^`digits`, without zeros at the end.
std::string decimal(std::int64_t value, int digits) {
  std::string text = fmt::format("{:0{}}", value, digits + 1);
  text.insert(text.size() - static_cast<std::size_t>(digits), ".");
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

std::optional<Duration> parse_go_duration(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (!take_char(text, '-')) take_char(text, '+');
  if (text == "0") return Duration(0);
  if (text.empty()) return std::nullopt;
  long double total = 0;
  while (!text.empty()) {
    const auto term = take_term(text);
    if (!term) return std::nullopt;
    total += *term;
  }
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  if (total > static_cast<long double>(kMost) + (negative ? 1 : 0)) return std::nullopt;
  return Duration(static_cast<std::int64_t>(negative ? -total : total));
}

std::string format_go_duration(Duration duration) {
  if (duration == Duration::zero()) return "0s";
  if (duration == Duration::min()) return "-2562047h47m16.854775808s";  // Which has no positive.
  const std::string sign = duration < Duration::zero() ? "-" : "";
  if (duration < Duration::zero()) duration = -duration;
  const auto nanos = duration.count();
  if (nanos < 1'000) return fmt::format("{}{}ns", sign, nanos);
  if (nanos < 1'000'000) return fmt::format("{}{}µs", sign, decimal(nanos, 3));
  if (nanos < 1'000'000'000) return fmt::format("{}{}ms", sign, decimal(nanos, 6));
  const hh_mm_ss<nanoseconds> parts(duration);
  const std::string secs = decimal(nanos % 60'000'000'000, 9);
  if (duration < minutes(1)) return fmt::format("{}{}s", sign, secs);
  if (duration < hours(1)) return fmt::format("{}{}m{}s", sign, parts.minutes().count(), secs);
  return fmt::format("{}{}h{}m{}s", sign, parts.hours().count(), parts.minutes().count(), secs);
}

}  // namespace k8s
