// The order of restarts within a node, by the difference between two profiles. The table is replace_order.md.
// Where it comes from: what the device plugin's components read of a profile, and when their pods exist (api/config/v1,
// cmd/mps-control-daemon and the charts of the device plugin v0.20.0).
#include "reconcilers/node/replace_order.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>

#include "reconcilers/node/assess.h"
#include "tests/reconcilers/source_files.h"

namespace gso::replace_order_test {
namespace {

std::string shared(std::string_view section, int replicas, std::string_view more = {}) {
  return fmt::format("version: v1\nsharing:\n  {}:\n{}    resources:\n    - name: nvidia.com/gpu\n      replicas: {}\n",
                     section, more, replicas);
}

std::string with_flags(std::string_view flags, std::string text) {
  return fmt::format("{}flags:\n{}", text, flags);
}

// What people would write, by what it is called in the table.
std::string text_of(std::string_view name) {
  constexpr std::string_view kRename = "    renameByDefault: true\n";
  const std::map<std::string_view, std::string> texts{
      {"no sharing", "version: v1\n"},
      {"no sharing, migStrategy single", with_flags("  migStrategy: single\n", "version: v1\n")},
      {"ts 2", shared("timeSlicing", 2)},
      {"ts 4", shared("timeSlicing", 4)},
      {"ts 2 renamed", shared("timeSlicing", 2, kRename)},
      {"ts 2, requests above 1 refused", shared("timeSlicing", 2, "    failRequestsGreaterThanOne: true\n")},
      {"ts 2, a flag of the plugin", with_flags("  plugin:\n    passDeviceSpecs: true\n", shared("timeSlicing", 2))},
      {"ts 2, a flag of GFD", with_flags("  gfd:\n    noTimestamp: true\n", shared("timeSlicing", 2))},
      {"mps 4", shared("mps", 4)},
      {"mps 8", shared("mps", 8)},
      {"mps 4 renamed", shared("mps", 4, kRename)},
      {"mps 4, requests above 1 served", shared("mps", 4, "    failRequestsGreaterThanOne: false\n")},
      {"mps 4, a flag of GFD", with_flags("  gfd:\n    noTimestamp: true\n", shared("mps", 4))},
      {"mps 4, migStrategy single", with_flags("  migStrategy: single\n", shared("mps", 4))},
  };
  return texts.at(name);
}

Profile profile(std::string_view name) {
  ParsedProfile parsed = parse_profile(text_of(name));
  EXPECT_TRUE(parsed.accepted && parsed.valid()) << name << ": " << parsed.first_error();
  return parsed.profile;
}

constexpr std::pair<std::string_view, std::string_view> kEdits[] = {
    {"no sharing", "no sharing"},
    // Not under MPS.
    {"no sharing", "ts 2"},
    {"ts 2", "ts 4"},
    {"ts 4", "ts 2"},
    {"ts 2", "ts 2 renamed"},
    {"ts 2", "no sharing"},
    {"ts 2", "ts 2, requests above 1 refused"},
    {"ts 2", "ts 2, a flag of the plugin"},
    {"ts 2", "ts 2, a flag of GFD"},
    {"no sharing", "no sharing, migStrategy single"},
    // Into MPS, within it, out of it.
    {"no sharing", "mps 4"},
    {"ts 2", "mps 4"},
    {"mps 4", "mps 8"},
    {"mps 8", "mps 4"},
    {"mps 4", "mps 4 renamed"},
    {"mps 4 renamed", "mps 4"},
    {"mps 4", "mps 4, migStrategy single"},
    {"mps 4", "mps 4, requests above 1 served"},
    {"mps 4", "mps 4, a flag of GFD"},
    {"mps 4", "ts 2"},
    {"mps 4 renamed", "no sharing"},
};

std::string names(const std::vector<Component>& components) {
  std::set<std::string_view> sorted;  // They are deleted at once.
  for (const Component component : components) sorted.insert(to_string(component));
  return fmt::format("{}", fmt::join(sorted, ", "));
}

std::string row(std::string_view from, std::string_view to, Transition transition) {
  constexpr std::string_view kWaits[] = {"", "the new MPS daemon is Ready", "the MPS daemon is gone"};
  const Steps steps = steps_for(transition);
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", from, to, to_string(transition), names(steps.first),
                     kWaits[static_cast<int>(steps.wait)], names(steps.last), steps.disruptive ? "break" : "",
                     steps.touches_mps ? "yes" : "");
}

TEST(ReplaceOrder, IsTheTableForEveryTransition) {
  std::string table =
      "| from | to | transition | first, at once | then wait until | last | CUDA clients of MPS | MPS pods |\n"
      "|---|---|---|---|---|---|---|---|\n";
  std::set<Transition> met;
  for (const auto& [from, to] : kEdits) {
    const Transition transition = transition_between(profile(from), profile(to));
    met.insert(transition);
    table += row(from, to, transition);
  }
  EXPECT_EQ(met.size(), 6U) << "a transition that no edit leads to";
  const auto golden = testing::source_dir() / "tests/reconcilers/node/replace_order.md";
  if (std::getenv("GSO_UPDATE_GOLDEN") != nullptr) std::ofstream(golden) << table;
  EXPECT_EQ(table, testing::read_file(golden)) << "GSO_UPDATE_GOLDEN=1 takes this as the new answer";
}

// A node whose loaded text is not known is compared by what it shows: plugin and GFD are replaced in any case, and an
// MPS daemon as well: it reads migStrategy, which the node does not show.
TEST(ReplaceOrder, WithoutATextGoesByWhatTheNodeShows) {
  const auto from = [](std::string_view shown, std::string_view wanted) {
    return to_string(transition_from(shape_of(profile(shown)), profile(wanted)));
  };
  for (const char* mps : {"mps 4", "mps 8", "mps 4 renamed"}) EXPECT_EQ(from(mps, "mps 4"), "change-mps") << mps;
  for (const char* other : {"ts 4", "no sharing"}) {
    EXPECT_EQ(from(other, "mps 4"), "enter-mps") << other;
    EXPECT_EQ(from("mps 4", other), "leave-mps") << other;
    EXPECT_EQ(from(other, other), "reshare") << other;
  }
  EXPECT_EQ(from("ts 2", "ts 4"), "reshare");
}

// The daemon's profile can be known although the node's text is not: the daemon stays if it would be the same.
TEST(ReplaceOrder, KeepsADaemonThatCertainlyRunsWhatIsWanted) {
  const auto with_daemon = [](std::string_view shown, std::string_view daemon, std::string_view wanted) {
    const auto runs = std::make_shared<CompiledProfile>();
    runs->parsed = parse_profile(text_of(daemon));
    const Shape shape = shape_of(profile(shown));
    const Profile after = profile(wanted);
    return std::string(to_string(keep_daemon(transition_from(shape, after), shape, runs, after)));
  };
  EXPECT_EQ(with_daemon("mps 4", "mps 4", "mps 4"), "reshare");
  EXPECT_EQ(with_daemon("mps 4", "mps 4, requests above 1 served", "mps 4"), "reshare");
  EXPECT_EQ(with_daemon("mps 4", "mps 4", "mps 4, migStrategy single"), "change-mps");
  EXPECT_EQ(with_daemon("mps 4", "mps 4, migStrategy single", "mps 4"), "change-mps");
  EXPECT_EQ(with_daemon("mps 8", "mps 4", "mps 4"), "change-mps") << "it shows something else";
  EXPECT_EQ(with_daemon("ts 4", "ts 4", "ts 2"), "reshare");
}

// A node on which nothing is shared shows one thing; its loaded text says another. Whichever of the two touches the MPS
// daemon counts.
TEST(ReplaceOrder, TakesTheStrongerOfTextAndSight) {
  const auto on_node = [](std::int64_t replicas, bool mps_pod, std::string_view text, std::string_view wanted) {
    Node node;
    if (replicas > 1) node.meta.labels.set("nvidia.com/gpu.replicas", fmt::format("{}", replicas));
    node.allocatable[Interned("nvidia.com/gpu")] = 2 * replicas;
    const Profile before = profile(text);
    return std::string(to_string(transition_on(node, mps_pod, &before, profile(wanted))));
  };
  EXPECT_EQ(on_node(2, false, "ts 2", "ts 2, requests above 1 refused"), "plugin-only") << "it shows its text";
  EXPECT_EQ(on_node(4, false, "ts 2", "ts 2, requests above 1 refused"), "reshare") << "it shows other replicas";
  EXPECT_EQ(on_node(4, true, "ts 4", "ts 4"), "leave-mps") << "an MPS daemon runs there";
  EXPECT_EQ(on_node(4, false, "ts 4", "mps 4"), "enter-mps");
  EXPECT_EQ(on_node(4, true, "ts 4", "mps 4"), "change-mps") << "a daemon with older settings runs there already";
  EXPECT_EQ(on_node(1, false, "mps 4", "mps 8"), "enter-mps") << "its MPS daemon has gone";
  EXPECT_EQ(on_node(2, false, "mps 4", "ts 2"), "leave-mps") << "it has been relabelled, and may still go back";
}

}  // namespace
}  // namespace gso::replace_order_test
