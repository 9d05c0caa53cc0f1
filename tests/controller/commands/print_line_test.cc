// What commands print of texts that others have written: lines and cells of tables stay one line each.
#include "controller/commands/shared/print.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "controller/commands/rollout/rollout.h"

namespace gso::print_line_test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kForged = "x\nnext: rm -rf /\ty";

TEST(PrintLine, EndsTheLineItselfAndNowhereElse) {
  std::ostringstream out;
  print_line(out, "{}: {}", "node", kForged);
  EXPECT_EQ(out.str(), "node: x\\nnext: rm -rf /\\ty\n");
}

TEST(PrintLine, ARowOfATableIsOneLine) {
  std::ostringstream out;
  print_table({{"NODE", "MESSAGE"}, {kForged, kForged}}, out);
  EXPECT_THAT(out.str(), Not(HasSubstr("\nnext:")));
  EXPECT_EQ(table_lines({{"A"}, {std::string(1 << 20, 'x')}})[1].size(), kMostMessageCharacters + 3);
}

TEST(PrintLine, ARolloutsStatusAndAPolicysStayOnTheirLines) {
  SharingRollout rollout;
  rollout.meta.name = "default-any";
  rollout.policy = "default";
  rollout.key = "any";
  RolloutFacts facts;
  facts.rollout = &rollout;
  facts.phase = "Paused";
  facts.ready = {kForged, kForged};
  facts.nodes = {{"n1", "Failed", {kForged, kForged}}};
  std::ostringstream out;
  print_rollout_history({HistoryEntry{.facts = facts}}, 0, out);
  FleetReport report;
  report.rollouts.push_back({.facts = facts, .rows = facts.nodes});
  report.waiting.push_back({"default", {kForged, kForged}});
  report.notes.push_back({kForged, {kForged}});
  print_report(report, {}, out);
  EXPECT_THAT(out.str(), HasSubstr("x\\nnext: rm -rf /\\ty"));
  EXPECT_THAT(out.str(), Not(HasSubstr("\nnext:")));
  EXPECT_THAT(out.str(), Not(HasSubstr("\t")));
}

TEST(PrintLine, TheProgressOfARolloutIsOneLineEach) {
  const World world;
  FleetIndex index;
  const PlannerSettings settings;
  index.refresh(world, settings);
  const FleetView view = watch_of_rollouts({}, {}, settings).show({world, index, settings, {}, {kForged}}, Screen());
  EXPECT_EQ(view.lines.front().text, "incomplete: x\\nnext: rm -rf /\\ty");
}

}  // namespace
}  // namespace gso::print_line_test
