// Metrics, their documentation, alerts, dashboard and runbooks: what one names, the others must have.
// GSO_UPDATE_DOCS=1 writes the table of docs/metrics.md anew.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "controller/serving/metrics.h"
#include "reconcilers/cluster/manifests.h"
#include "tests/chart/source_files.h"

namespace gso::monitoring_test {
namespace {

using nlohmann::json;

std::string table() {
  std::string out = "| name | type | labels | |\n|---|---|---|---|\n";
  for (const Metrics::Family& family : metrics_catalog()) {
    std::string labels;
    for (const std::string& label : family.label_names())
      labels += fmt::format("{}`{}`", labels.empty() ? "" : ", ", label);
    out += fmt::format("| `{}` | {} | {} | {} |\n", family.name, Metrics::type_name(family.type), labels, family.help);
  }
  return out;
}

TEST(Monitoring, TheDocumentationListsEveryMetric) {
  const std::filesystem::path path = "docs/metrics.md";
  const std::string begin = "<!-- metrics: begin -->\n";
  const std::string end = "<!-- metrics: end -->";
  const std::string text = read(path);
  const std::size_t from = text.find(begin);
  const std::size_t to = text.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  const std::string wanted = text.substr(0, from + begin.size()) + table() + text.substr(to);
  if (std::getenv("GSO_UPDATE_DOCS") != nullptr) std::ofstream(source_dir() / path) << wanted;
  EXPECT_EQ(read(path), wanted) << "GSO_UPDATE_DOCS=1 writes the table";
}

// What identifies one object of the cluster has no place in a label: with 50,000 nodes it would be 50,000 series.
TEST(Monitoring, NoLabelNamesANodeOrAPod) {
  const std::set<std::string> bounded{"controller", "result",  "name",     "priority", "code",   "method",
                                      "host",       "verb",    "version",  "compiler", "state",  "reason",
                                      "phase",      "rollout", "severity", "kind",     "cause",  "resource",
                                      "decision",   "mode",    "profile",  "lane",     "policy", "server"};
  for (const Metrics::Family& family : metrics_catalog()) {
    // Five objects for each reason, however many there are (FleetMetricsTest).
    if (family.name == "gpusharing_affected_objects") continue;
    for (const std::string& label : family.label_names())
      EXPECT_TRUE(bounded.contains(label)) << family.name << " " << label;
  }
}

// Names of series that a query may use: histograms have three.
std::set<std::string> series_names() {
  std::set<std::string> out;
  for (const Metrics::Family& family : metrics_catalog()) {
    if (family.type != Metrics::Type::histogram) {
      out.emplace(family.name);
      continue;
    }
    for (const char* suffix : {"_bucket", "_sum", "_count"}) out.insert(std::string(family.name) + suffix);
  }
  return out;
}

void expect_known_series(const std::string& query, const std::string& where) {
  static const std::regex name("(gpusharing|controller_runtime|workqueue|rest_client|leader_election|process)_[a-z_]+");
  const std::set<std::string> known = series_names();
  int found = 0;
  for (std::sregex_iterator at(query.begin(), query.end(), name); at != std::sregex_iterator(); ++at, ++found)
    EXPECT_TRUE(known.contains(at->str())) << where << ": " << at->str();
  EXPECT_GT(found, 0) << where << ": " << query;
}

json alerts() {
  const k8s::Result<std::string> text = yaml_to_json(read("charts/gpu-sharing-operator/files/alerts.yaml"));
  EXPECT_TRUE(text.has_value());
  const json rules = text ? json::parse(*text) : json::object();
  json out = json::array();
  const json groups = rules.value("groups", json::array());
  for (const json& group : groups)
    for (const json& rule : group["rules"]) out.push_back(rule);
  return out;
}

TEST(Monitoring, AlertsAskForMetricsThatExist) {
  const json list = alerts();
  ASSERT_GE(list.size(), 10U);
  for (const json& alert : list) expect_known_series(alert["expr"], alert["alert"]);
}

TEST(Monitoring, EveryAlertHasARunbookAndATest) {
  const std::string runbooks = read("docs/runbooks.md");
  const std::string tests = read("tests/chart/alerts_test.yaml");
  const json list = alerts();
  ASSERT_GE(list.size(), 10U);
  for (const json& alert : list) {
    const std::string name = alert["alert"];
    EXPECT_NE(runbooks.find("### " + name + "\n"), std::string::npos) << name << " has no section in docs/runbooks.md";
    std::string anchor = name;
    std::transform(anchor.begin(), anchor.end(), anchor.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const std::string url = alert["annotations"]["runbook_url"];
    EXPECT_TRUE(url.ends_with("/runbooks#" + anchor)) << url;
    EXPECT_FALSE(alert["annotations"]["summary"].get<std::string>().empty());
    EXPECT_NE(tests.find("alertname: " + name), std::string::npos) << name << " has no rule test";
    EXPECT_NE(tests.find(url), std::string::npos) << name << " has no rule test that makes it fire";
  }
}

TEST(Monitoring, TheDashboardAsksForMetricsThatExist) {
  const json dashboard = json::parse(read("charts/gpu-sharing-operator/files/dashboard.json"));
  ASSERT_GE(dashboard["panels"].size(), 10U);
  std::set<int> ids;
  for (const json& panel : dashboard["panels"]) {
    EXPECT_TRUE(ids.insert(panel["id"].get<int>()).second) << panel["title"];
    for (const json& target : panel["targets"]) expect_known_series(target["expr"], panel["title"]);
  }
}

// Series come and go: in a healthy fleet no node is Blocked. Grafana's "No data" looks like a broken panel then.
TEST(Monitoring, APanelWithoutSeriesShowsZeroOrSaysWhatIsMissing) {
  const json dashboard = json::parse(read("charts/gpu-sharing-operator/files/dashboard.json"));
  for (const json& panel : dashboard["panels"]) {
    if (!panel["fieldConfig"]["defaults"].value("noValue", "").empty()) continue;
    for (const json& target : panel["targets"])
      EXPECT_NE(target["expr"].get<std::string>().find(" or vector(0)"), std::string::npos) << panel["title"];
  }
}

// A metric that nobody can see is of no use to anybody on call.
TEST(Monitoring, EveryMetricOfTheOperatorIsOnTheDashboard) {
  const std::string dashboard = read("charts/gpu-sharing-operator/files/dashboard.json");
  for (const Metrics::Family& family : metrics_catalog()) {
    if (!family.name.starts_with("gpusharing_")) continue;
    const std::regex whole(std::string(family.name) + "(_bucket)?\\b");
    EXPECT_TRUE(std::regex_search(dashboard, whole)) << family.name;
  }
}

}  // namespace
}  // namespace gso::monitoring_test
