// Whoever reads a reason in a status, an Event or an alert finds it in the documentation: the list is read from the
// code.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/chart/source_files.h"

namespace gso::runbooks_test {
namespace {

// Part of reconcilers/reasons/names.h, from one headline to the next.
std::string section_of_names(const std::string& headline) {
  const std::string text = read("reconcilers/reasons/names.h");
  const std::size_t from = text.find("// --- " + headline);
  EXPECT_NE(from, std::string::npos) << headline;
  return from == std::string::npos ? "" : text.substr(from, text.find("// --- ", from + 1) - from);
}

// The first group of each match.
std::vector<std::string> matches(const std::string& text, const std::regex& wanted) {
  std::vector<std::string> out;
  for (std::sregex_iterator at(text.begin(), text.end(), wanted), end; at != end; ++at) out.push_back((*at)[1]);
  return out;
}

std::string sources() {
  std::string out;
  for (const char* room : {"reconcilers", "controller"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source_dir() / room))
      if (entry.path().extension() == ".cc") out += read(entry.path());
  }
  return out;
}

// In code type at the start of a table's row, alone or among others: "| `DriverUpgrade`, `MIGChange` | …".
bool has_row(const std::string& pages, const std::string& reason) {
  const std::string wanted = "`" + reason + "`";
  for (std::size_t at = pages.find(wanted); at != std::string::npos; at = pages.find(wanted, at + 1)) {
    const std::size_t line = pages.rfind('\n', at) + 1;
    if (pages[line] == '|' && pages.find('|', line + 1) > at) return true;
  }
  return false;
}

const std::regex kNamedConstant(R"re(string_view k\w+ = "(\w+)";)re");

TEST(Runbooks, EveryReasonOfABlockedNodeHasARow) {
  const std::string page = read("docs/codes.md");
  const std::size_t from = page.find("## Why a node is Blocked");
  ASSERT_NE(from, std::string::npos);
  const std::string table = page.substr(from, page.find("\n## ", from + 1) - from);
  const std::vector<std::string> reasons = matches(section_of_names("Why a node is Blocked"), kNamedConstant);
  ASSERT_GE(reasons.size(), 14U);
  for (const std::string& reason : reasons) EXPECT_TRUE(has_row(table, reason)) << reason;
}

TEST(Runbooks, EveryReasonOfAFindingHasARowSomewhere) {
  std::string pages;
  for (const char* page : {"codes", "kai", "rollouts", "looking"})
    pages += read(std::filesystem::path("docs") / (std::string(page) + ".md"));
  const std::string code = sources();
  std::set<std::string> reasons;
  const std::string named = section_of_names("Reasons of actions");
  const std::regex constant(R"re((k\w+) = "(\w+)";)re");
  for (std::sregex_iterator at(named.begin(), named.end(), constant), end; at != end; ++at)
    if (code.find((*at)[1].str()) != std::string::npos) reasons.insert((*at)[2]);
  // Written where they are found: `finding(Severity::warning, where, "Reason", …)` and its like.
  for (const std::string& reason :
       matches(code, std::regex(R"re(Severity::(?:error|warning),[^;"]*"([A-Z]\w*[a-z]\w*)")re"))) {
    reasons.insert(reason);
  }
  ASSERT_GE(reasons.size(), 80U);
  for (const std::string& reason : reasons) EXPECT_TRUE(has_row(pages, reason)) << reason << " has no row in docs/";
}

// What an alert selects by must be something that the code says.
TEST(Runbooks, ReasonsInAlertsExist) {
  const std::string code = sources() + read("reconcilers/reasons/names.h");
  const std::string alerts = read("charts/gpu-sharing-operator/files/alerts.yaml");
  const std::regex plain(R"re(reason=~?"([A-Za-z|]+)")re");
  std::set<std::string> reasons;
  for (const std::string& list : matches(alerts, plain))
    for (const std::string& reason : matches(list, std::regex("([A-Za-z]+)"))) reasons.insert(reason);
  ASSERT_GE(reasons.size(), 9U);
  for (const std::string& reason : reasons) EXPECT_NE(code.find('"' + reason + '"'), std::string::npos) << reason;
}

}  // namespace
}  // namespace gso::runbooks_test
