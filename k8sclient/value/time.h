// Two kinds of time that cannot be compared: the wall clock's, in Kubernetes' spelling (RFC 3339), and the time since
// boot. g++ 12 has no chrono parsing, so the two forms live here.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace k8s {

using Duration = std::chrono::nanoseconds;
// As Kubernetes writes it: milliseconds are enough for every timestamp in the API.
using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

// Time since boot, suspend included (CLOCK_BOOTTIME): what deadlines, the lease and the age of everything that this
// process has read are measured with, so that setting the wall clock changes none of them. A plain value.
struct MonoTime {
  Duration since_boot{0};
  friend auto operator<=>(const MonoTime&, const MonoTime&) = default;
  friend MonoTime operator+(MonoTime t, Duration d) { return {t.since_boot + d}; }
  friend MonoTime operator-(MonoTime t, Duration d) { return {t.since_boot - d}; }
  friend Duration operator-(MonoTime a, MonoTime b) { return a.since_boot - b.since_boot; }
  static MonoTime never() { return {Duration::max()}; }
};

// "2026-01-02T03:04:05Z", with optional fraction and "+hh:mm" offset. nullopt when it is anything else.
[[nodiscard]] std::optional<WallTime> parse_rfc3339(std::string_view text);
// HTTP's date (RFC 9110, IMF-fixdate): "Sun, 06 Nov 1994 08:49:37 GMT". nullopt when it is anything else.
[[nodiscard]] std::optional<WallTime> parse_http_date(std::string_view text);
// metav1.Time: whole seconds, "2026-01-02T03:04:05Z".
[[nodiscard]] std::string format_time(WallTime time);
// metav1.MicroTime: "2026-01-02T03:04:05.000000Z" (leases, events).
[[nodiscard]] std::string format_micro_time(WallTime time);

// A Go duration: "1h30m", "500ms", "10s", "0". Nanosecond range of std::chrono; nullopt when it is anything else.
// Go also takes "µs"; signs are accepted. Source: Go's time.ParseDuration, which Kubernetes objects use.
[[nodiscard]] std::optional<Duration> parse_go_duration(std::string_view text);
// The shortest Go spelling: "1h30m0s", "500ms", "0s".
[[nodiscard]] std::string format_go_duration(Duration duration);

}  // namespace k8s
