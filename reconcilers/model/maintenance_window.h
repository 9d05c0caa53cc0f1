// Maintenance windows: five-field cron expressions in time zones of the tz database.
//
// Fields: minute 0-59, hour 0-23, day of month 1-31, month 1-12 or JAN-DEC, day of week 0-7 or SUN-SAT (0 and 7 are
// Sunday); `*`, `a-b`, `a,b`, `*/n`, `a-b/n`, `a/n` (from a to the end). As in POSIX: if day of month and day of week
// are both restricted, a day that matches either one counts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "k8sclient/value/time.h"
#include "reconcilers/model/rollout_spec.h"

namespace gso {

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

}  // namespace gso
