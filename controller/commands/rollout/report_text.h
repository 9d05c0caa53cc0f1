// What `rollout status` and its like print of a FleetReport: text for people, lines for a log, and JSON.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/report/report.h"

namespace gso {

// "[######..................]"
[[nodiscard]] std::string progress_bar(std::int64_t done, std::int64_t total);
// "[####----] 7/12 up to date, 1 in progress, 4 pending, 0 blocked, 0 failed": progress_bar() and the counts. Nodes
// that failed come first: "[####----] 7/12 up to date, 1 failed, 1 in progress, 3 pending, 0 blocked".
[[nodiscard]] std::string counts_text(const RolloutFacts& facts);

// For people, line by line. Without an operator messages are the last that one wrote.
void print_report(const FleetReport& report, k8s::WallTime now, std::ostream& out);
// "policy default waits (OutsideWindow): …": in one line, also where it is one of many.
[[nodiscard]] std::string wait_line(const PolicyWait& wait);
// One line for each rollout in progress and each policy that waits without one, without times: what a log shows when it
// changes.
[[nodiscard]] std::vector<std::string> progress_lines(const FleetReport& report);
// "rollout x", "policy y", "all rollouts": what somebody waits for who has given that name.
[[nodiscard]] std::string waited_for(const std::string& name);

// Of the JSON documents (docs/json.md): it changes when a field changes its meaning or goes, not when one comes.
inline constexpr int kRolloutJsonVersion = 1;
[[nodiscard]] nlohmann::ordered_json rollout_json(const RolloutFacts& facts);
// `operator_field`: NoOperator::field(), or empty.
[[nodiscard]] nlohmann::ordered_json report_json(const FleetReport& report, const std::string& operator_field,
                                                 const std::vector<std::string>& incomplete);

}  // namespace gso
