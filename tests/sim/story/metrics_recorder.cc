#include "tests/sim/story/metrics_recorder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

namespace gso::sim {

namespace {

// What alerts ask for; buckets of histograms are most of a page, and none of it.
bool is_recorded(const std::string& series) {
  return (series.starts_with("gpusharing_") || series.starts_with("leader_election_")) &&
         series.find("_bucket{") == std::string::npos;
}

// As Prometheus adds the labels of a target.
std::string with_pod(const std::string& series) {
  const std::size_t labels = series.find('{');
  if (labels == std::string::npos) return series + R"({pod="a"})";
  return series.substr(0, labels + 1) + (series[labels + 1] == '}' ? "" : R"(pod="a",)") + series.substr(labels + 1);
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

}  // namespace

void MetricsRecorder::scrape(const std::optional<std::string>& page) {
  std::map<std::string, std::string> values;
  std::istringstream lines(page.value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = line.rfind(' ');
    if (line.empty() || line.front() == '#' || end == std::string::npos || !is_recorded(line)) continue;
    values[with_pod(line.substr(0, end))] = line.substr(end + 1);
  }
  for (const auto& [series, value] : values) series_[series].resize(scrapes_, "_");
  for (auto& [series, past] : series_) {
    const auto now = values.find(series);
    // A series that is gone from a page, or whose target does not answer, ends at once.
    const bool ends = now == values.end() && !past.empty() && past.back() != "_" && past.back() != "stale";
    past.push_back(now != values.end() ? now->second : ends ? "stale" : "_");
  }
  ++scrapes_;
}

std::string MetricsRecorder::promtool_test(const std::string& name, const std::string& rule_file, int interval,
                                           const std::set<std::string>& fires) const {
  std::string out =
      fmt::format("rule_files: [{}]\nevaluation_interval: 1m\ntests:\n- name: {}\n  interval: {}s\n  input_series:\n",
                  quoted(rule_file), name, interval);
  for (const auto& [series, values] : series_)
    out += fmt::format("  - {{series: {}, values: '{}'}}\n", quoted(series), fmt::join(values, " "));
  const std::size_t minutes = scrapes_ * static_cast<std::size_t>(interval) / 60;
  out += fmt::format(
      "  promql_expr_test:\n  - expr: max by (alertname) (max_over_time(ALERTS{{alertstate=\"firing\"}}[2d]))\n"
      "    eval_time: {}m\n    exp_samples:{}\n",
      minutes, fires.empty() ? " []" : "");
  for (const std::string& alert : fires)
    out += fmt::format("    - {{labels: '{{alertname=\"{}\"}}', value: 1}}\n", alert);
  return out;
}

}  // namespace gso::sim
