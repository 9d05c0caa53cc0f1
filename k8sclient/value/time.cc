#include "k8sclient/value/time.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>

#include "k8sclient/value/encoding.h"

namespace k8s {
namespace {

using namespace std::chrono;

// In a shape, 'd' is a digit, and everything else itself.
bool has_shape(std::string_view text, std::string_view shape) {
  return std::ranges::equal(text, shape, [](char c, char wanted) { return wanted == 'd' ? is_digit(c) : c == wanted; });
}

int number(std::string_view digits) {
  int value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
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
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0) return std::nullopt;
  const std::string thousandths = (std::string(text.substr(0, digits)) + "00").substr(0, 3);
  text.remove_prefix(digits);
  return milliseconds(number(thousandths));
}

// "Z", or "+hh:mm".
std::optional<minutes> offset_in(std::string_view text) {
  if (text == "Z" || text == "z") return minutes(0);
  if (!has_shape(text, "+dd:dd") && !has_shape(text, "-dd:dd")) return std::nullopt;
  const int hh = number(text.substr(1, 2));
  const int mm = number(text.substr(4));
  if (hh > 23 || mm > 59) return std::nullopt;
  const minutes offset = hours(hh) + minutes(mm);
  return text.front() == '-' ? -offset : offset;
}

}  // namespace

std::optional<WallTime> parse_rfc3339(std::string_view text) {
  constexpr std::string_view kTo = "dddd-dd-ddTdd:dd:dd";
  const std::string_view begin = text.substr(0, kTo.size());
  if (!has_shape(begin, kTo) && !has_shape(begin, "dddd-dd-ddtdd:dd:dd")) return std::nullopt;
  text.remove_prefix(kTo.size());
  const auto two = [begin](std::size_t at) { return number(begin.substr(at, 2)); };
  const year_month_day date{year(number(begin.substr(0, 4))), month(static_cast<unsigned>(two(5))),
                            day(static_cast<unsigned>(two(8)))};
  const auto fraction = take_fraction(text);
  const auto offset = offset_in(text);
  if (!fraction || !offset || !date.ok()) return std::nullopt;
  if (two(11) > 23 || two(14) > 59 || two(17) > 60) return std::nullopt;  // 60: a leap second, as the next minute.
  return WallTime(sys_days(date)) + hours(two(11)) + minutes(two(14)) + seconds(two(17)) + *fraction - *offset;
}

std::optional<WallTime> parse_http_date(std::string_view text) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (text.size() != 29 || !has_shape(text.substr(3, 5), ", dd ") || !has_shape(text.substr(11), " dddd dd:dd:dd GMT"))
    return std::nullopt;
  const std::size_t month = kMonths.find(text.substr(8, 3));
  if (month == std::string_view::npos || month % 3 != 0) return std::nullopt;
  return parse_rfc3339(
      fmt::format("{}-{:02}-{}T{}Z", text.substr(12, 4), month / 3 + 1, text.substr(5, 2), text.substr(17, 8)));
}

std::string format_time(WallTime time) {
  return fmt::format("{:%FT%TZ}", fmt::gmtime(floor<seconds>(time).time_since_epoch().count()));
}

std::string format_micro_time(WallTime time) {
  const auto whole = floor<seconds>(time);
  return fmt::format("{:%FT%T}.{:03}000Z", fmt::gmtime(whole.time_since_epoch().count()), (time - whole).count());
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
  const std::string_view digits = text.substr(0, text.find_first_not_of("0123456789."));
  const std::size_t dot = std::min(digits.find('.'), digits.size());
  const std::string_view behind = digits.substr(std::min(dot + 1, digits.size()));
  if (digits.empty() || digits == "." || behind.find('.') != std::string_view::npos) return std::nullopt;
  text.remove_prefix(digits.size());
  long double whole = 0;
  for (const char c : digits.substr(0, dot)) whole = whole * 10 + (c - '0');
  // Apart, so that nothing is rounded away; what is beyond 18 places is less than a nanosecond.
  long double fraction = 0;
  long double scale = 1;
  for (const char c : behind.substr(0, 18)) {
    fraction = fraction * 10 + (c - '0');
    scale *= 10;
  }
  const std::string_view name = text.substr(0, text.find_first_of("0123456789."));
  const auto* const unit = std::ranges::find(kUnits, name, &Unit::name);
  if (unit == kUnits.end()) return std::nullopt;
  text.remove_prefix(name.size());
  const auto nanos = static_cast<long double>(unit->nanos);
  return whole * nanos + std::floor(fraction * (nanos / scale));
}

// `value` / 10^`digits`, without zeros at the end.
std::string decimal(std::uint64_t value, int digits) {
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
  const bool negative = duration < Duration::zero();
  const char* const sign = negative ? "-" : "";
  const auto count = static_cast<std::uint64_t>(duration.count());
  const std::uint64_t nanos = negative ? 0 - count : count;  // The longest negative one has no positive.
  if (nanos == 0) return "0s";
  if (nanos < 1'000) return fmt::format("{}{}ns", sign, nanos);
  if (nanos < 1'000'000) return fmt::format("{}{}µs", sign, decimal(nanos, 3));
  if (nanos < 1'000'000'000) return fmt::format("{}{}ms", sign, decimal(nanos, 6));
  constexpr std::uint64_t kMinute = 60'000'000'000;
  const std::string secs = decimal(nanos % kMinute, 9);
  const std::uint64_t mins = nanos / kMinute;
  if (mins == 0) return fmt::format("{}{}s", sign, secs);
  if (mins < 60) return fmt::format("{}{}m{}s", sign, mins, secs);
  return fmt::format("{}{}h{}m{}s", sign, mins / 60, mins % 60, secs);
}

}  // namespace k8s
