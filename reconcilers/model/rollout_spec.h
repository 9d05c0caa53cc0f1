// How a change is rolled out: what a SharingPolicy says of it (spec.rollout), and what the operator's settings say
// where no policy does.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/value/time.h"

namespace gso {

// A count, or a percentage that rounds up. At least 1 for a positive percentage of a non-empty set.
struct IntOrPercent {
  std::int64_t value = 0;
  bool percent = false;
  [[nodiscard]] std::int64_t of(std::int64_t total) const;
  // "3" or "10%" (0 to 100); nullopt for any other text.
  [[nodiscard]] static std::optional<IntOrPercent> parse(std::string_view text);
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const IntOrPercent&, const IntOrPercent&) = default;
};

enum class PolicyMode { enforce, approve, observe };  // From the freest to the strictest.
enum class WorkloadMode { wait_for_idle, evict, interrupt };
enum class OnFailure { pause, rollback };
enum class Mechanism { node_by_node, daemonset_restart };

// When nodes may start: opens at the times that `cron` names in `time_zone` (of the tz database), and stays open for
// `duration`.
struct MaintenanceWindow {
  // Five fields: minute 0-59, hour 0-23, day of month 1-31, month 1-12 or JAN-DEC, day of week 0-7 or SUN-SAT (0 and 7
  // are Sunday); `*`, `a-b`, `a,b`, `*/n`, `a-b/n`, `a/n` (from a to the end). As in POSIX: if day of month and day of
  // week are both restricted, a day that matches either one counts.
  std::string cron;
  k8s::Duration duration{0};
  std::string time_zone = "UTC";
  friend bool operator==(const MaintenanceWindow&, const MaintenanceWindow&) = default;
};

// Defaults are those of the CRD, the chart and the flags (kept equal by a test).
struct RolloutSpec {
  Mechanism mechanism = Mechanism::node_by_node;
  IntOrPercent max_unavailable{10, true};
  IntOrPercent max_unavailable_per_group{25, true};
  std::int64_t canary_nodes_per_group = 1;
  k8s::Duration canary_soak = std::chrono::seconds(60);
  WorkloadMode workloads = WorkloadMode::wait_for_idle;
  std::optional<bool> cordon;    // Absent: cordon if clients would break.
  bool evict_bare_pods = false;  // Under Evict: also pods without a controller, which are not created again.
  k8s::Duration idle_timeout = std::chrono::hours(1);
  k8s::Duration verify_timeout = std::chrono::minutes(10);
  std::int64_t max_failures = 3;  // After the canary; in the canary one failure is enough.
  OnFailure on_failure = OnFailure::pause;
  std::vector<MaintenanceWindow> windows;  // Empty: always.
  bool paused = false;                     // Stops new rollouts only.
  friend bool operator==(const RolloutSpec&, const RolloutSpec&) = default;
};

// The error in a window's cron expression, duration or time zone. Empty: none.
[[nodiscard]] std::string window_problem(const MaintenanceWindow& window);

struct WindowState {
  bool open = false;
  // Open: when the last of the open ones closes. Closed: when the next one opens; absent: no window opens in the next
  // five years.
  std::optional<k8s::WallTime> until;
  std::string problem;  // The first window that cannot be read; such a window never opens.
};
// Without windows: always open. A start that a change to summer time skips opens at that change; a start time that
// occurs twice opens once, the first time.
[[nodiscard]] WindowState windows_at(const std::vector<MaintenanceWindow>& windows, k8s::WallTime now);

// --- The words of a SharingPolicy's closed lists, each beside its value: what is read, checked, printed and offered
// as a flag.

template <class E>
struct PolicyWord {
  std::string_view text;
  E value;
};

inline constexpr PolicyWord<PolicyMode> kPolicyModeWords[] = {
    {"Enforce", PolicyMode::enforce}, {"Approve", PolicyMode::approve}, {"Observe", PolicyMode::observe}};
inline constexpr PolicyWord<WorkloadMode> kWorkloadModeWords[] = {{"WaitForIdle", WorkloadMode::wait_for_idle},
                                                                  {"Evict", WorkloadMode::evict},
                                                                  {"Interrupt", WorkloadMode::interrupt}};
inline constexpr PolicyWord<OnFailure> kOnFailureWords[] = {{"Pause", OnFailure::pause},
                                                            {"Rollback", OnFailure::rollback}};
inline constexpr PolicyWord<Mechanism> kMechanismWords[] = {{"NodeByNode", Mechanism::node_by_node},
                                                            {"DaemonSetRestart", Mechanism::daemonset_restart}};

// The word of the value; `words`: its table, which has each value.
template <class E, std::size_t N>
[[nodiscard]] constexpr std::string_view word_of(const PolicyWord<E> (&words)[N], E value) {
  for (const PolicyWord<E>& word : words)
    if (word.value == value) return word.text;
  return {};
}

// The words alone.
template <class E, std::size_t N>
[[nodiscard]] constexpr std::array<std::string_view, N> texts_of(const PolicyWord<E> (&words)[N]) {
  std::array<std::string_view, N> out{};
  for (std::size_t i = 0; i < N; ++i) out[i] = words[i].text;
  return out;
}

}  // namespace gso
