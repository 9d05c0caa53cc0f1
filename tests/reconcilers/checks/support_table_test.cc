// Which strategies work: strategy x who installed the plugin x cause of change x plugin release x MIG x GFD x
// --mps-root, as the planner and preflight answer for one node each. The table is in docs/compatibility.md.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "reconcilers/model/labels.h"
#include "reconcilers/node/assess.h"
#include "reconcilers/reasons/names.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"
#include "tests/reconcilers/source_files.h"

namespace gso::test::support_table_test {
namespace {

constexpr std::size_t kDimensions = 7;
using Row = std::array<std::string, kDimensions>;
constexpr std::string_view kAny = "any";

const std::array<std::vector<std::string>, kDimensions>& values() {
  static const std::array<std::vector<std::string>, kDimensions> kValues{{
      {"none", "time-slicing", "mps"},
      {"GPU Operator", "chart", "manifest", "manifest without profiles", "DRA", "nos"},
      {"default", "label", "policy"},
      {"v0.17.1", "v0.18.1", "v0.18.2", "v0.20.0", "unknown"},
      {"off", "single", "mixed"},
      {"yes", "no"},
      {"set", "missing"},
  }};
  return kValues;
}

std::string verdict(const NodeAssessment& a) {
  if (a.phase == Phase::unmanaged) return "Unmanaged";
  std::set<std::string> codes;
  for (const Diagnostic& d : *a.setup)
    if (d.severity == Severity::error) codes.insert(d.code);
  const bool blocked = a.is_blocked();
  // Nothing that could be corrected: the GPUs are handed out by claims.
  if (codes.contains("GPUClusterServes")) return fmt::format("Refused({})", a.obstacle.code);
  const bool setup = a.obstacle.code == kProviderUnsupported || a.obstacle.code == kConfigInvalid;
  for (const std::string_view hopeless : {kMigEnabled, kMpsByLabelUnsupported})
    if (codes.contains(std::string(hopeless)) || (blocked && a.obstacle.code == hopeless))
      return fmt::format("Refused({})", hopeless);
  if (blocked && !setup) return fmt::format("Refused({})", a.obstacle.code);
  if (blocked && codes.empty()) codes.insert(std::string(a.obstacle.code));
  if (codes.empty()) return "Supported";
  return fmt::format("NeedsFix({})", fmt::join(codes, ", "));
}

Installed installed_by(const std::string& provider) {
  static const std::map<std::string, Installed> kInstalled{
      {"GPU Operator", Installed::by_gpu_operator},
      {"chart", Installed::by_chart},
      {"manifest", Installed::by_manifest},
      {"manifest without profiles", Installed::by_manifest_without_profiles},
      {"DRA", Installed::for_dra},
      {"nos", Installed::by_nos}};
  return kInstalled.at(provider);
}

// Six nodes with other profiles, which must share in three ways, with GFD and without.
void answer(const std::string& strategy, const std::string& provider, const std::string& version,
            const std::string& mig, const std::string& mps_root, std::map<Row, std::string>& answers) {
  const std::string wanted = strategy == "mps" ? "mps-4" : strategy == "time-slicing" ? "ts-4" : "none";
  FleetSpec spec;
  spec.installed = installed_by(provider);
  spec.plugin = version == "unknown" ? "latest" : version;
  spec.profiles = {{"any", strategy == "none" ? "ts-2" : "none"}, {"wanted", wanted}};
  spec.mig_strategy = mig == "mixed" ? "mixed" : "";
  spec.mps_root = mps_root == "set";
  for (const std::string& way : values()[2]) {
    for (const std::string& gfd : values()[5]) {
      NodeSpec node;
      node.name = way + "-" + gfd;
      node.gfd = gfd == "yes";
      node.mig = mig == "single";
      node.labels = {{"way", way}};
      if (provider == "nos") node.labels.emplace(kNosPartitioning, "mps");
      // MIG devices as the MIG manager creates them, with GFD or without.
      if (node.mig)
        node.labels.insert({{"nvidia.com/mig.config", "all-1g.5gb"}, {"nvidia.com/mig.config.state", "success"}});
      spec.nodes.push_back(std::move(node));
    }
  }
  FleetModel fleet(spec);
  EXPECT_TRUE(fleet.settle());
  for (const std::string& gfd : values()[5]) fleet.label("label-" + gfd, std::string(kConfigLabel), "wanted");
  fleet.policy(
      "apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: {name: p}\n"
      "spec: {nodeSelector: {matchLabels: {way: policy}}, profile: {configMapKey: wanted}}\n");
  // Pods that mount no ConfigMap never read this one.
  if (spec.installed != Installed::by_manifest_without_profiles) fleet.edit("any", wanted);
  (void)fleet.plan();
  for (const std::string& way : values()[2]) {
    for (const std::string& gfd : values()[5]) {
      const NodeAssessment* a = fleet.index.assessment(way + "-" + gfd);
      answers[{strategy, provider, way, version, mig, gfd, mps_root}] = a == nullptr ? "no answer" : verdict(*a);
    }
  }
}

// Rows that differ in one dimension only and have the same answer are joined.
void fold(std::size_t dimension, std::map<Row, std::string>& answers) {
  std::map<std::pair<Row, std::string>, std::set<std::string>> families;
  for (const auto& [row, answer] : answers) {
    Row family = row;
    family[dimension].clear();
    families[{family, answer}].insert(row[dimension]);
  }
  answers.clear();
  for (const auto& [family, members] : families) {
    std::vector<std::string> ordered;
    for (const std::string& value : values()[dimension])
      if (members.contains(value)) ordered.push_back(value);
    Row row = family.first;
    row[dimension] = ordered.size() == values()[dimension].size() ? kAny : fmt::format("{}", fmt::join(ordered, ", "));
    answers[row] = family.second;
  }
}

std::string print_table(const std::map<Row, std::string>& answers) {
  std::string out =
      "| strategy | plugin of | profile by | plugin | MIG | GFD | `--mps-root` | answer "
      "|\n|---|---|---|---|---|---|---|---|\n";
  for (const auto& [row, answer] : answers) {
    for (const std::string& value : row) out += fmt::format("| {} ", value);
    out += fmt::format("| {} |\n", answer);
  }
  return out;
}

TEST(SupportTable, IsWhatThePlannerAndPreflightAnswer) {
  std::map<Row, std::string> answers;
  for (const std::string& strategy : values()[0])
    for (const std::string& provider : values()[1])
      for (const std::string& version : values()[3])
        for (const std::string& mig : values()[4])
          for (const std::string& mps_root : values()[6]) answer(strategy, provider, version, mig, mps_root, answers);
  EXPECT_EQ(answers.size(), 3240U);
  for (std::size_t dimension = kDimensions; dimension-- > 0;) fold(dimension, answers);
  const std::string table = print_table(answers);
  const auto page = testing::source_dir() / "docs/compatibility.md";
  constexpr std::string_view kBegin = "<!-- support table: begin -->\n";
  std::string text = testing::read_file(page);
  ASSERT_NE(text.find(kBegin), std::string::npos);
  const std::size_t first = text.find(kBegin) + kBegin.size();
  const std::size_t to = text.find("<!-- support table: end -->");
  ASSERT_NE(to, std::string::npos);
  ASSERT_LT(first, to);
  if (std::getenv("GSO_UPDATE_GOLDEN") == nullptr) {
    EXPECT_EQ(table, text.substr(first, to - first)) << "GSO_UPDATE_GOLDEN=1 takes this as the new answer";
    return;
  }
  std::ofstream(page) << text.replace(first, to - first, table);
}

}  // namespace
}  // namespace gso::test::support_table_test
