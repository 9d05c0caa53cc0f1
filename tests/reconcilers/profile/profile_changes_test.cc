// What differs between two profiles, in fields.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reconcilers/profile/profile.h"

namespace gso::profile_changes_test {
namespace {

struct Row {
  const char* name;
  const char* before;
  const char* after;
  std::vector<FieldChange> changes;
};

constexpr const char* kMps4 =
    "version: v1\nsharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 4}\n";

TEST(ProfileChanges, AreFieldsThatComponentsRead) {
  const std::string replicas = "sharing.mps.resources[nvidia.com/gpu].replicas";
  const Row rows[] = {
      {"the same, written in another way",
       kMps4,
       "{version: v1, sharing: {mps: {resources: [{replicas: 4, name: nvidia.com/gpu}]}}}",
       {}},
      {"replicas",
       kMps4,
       "version: v1\nsharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 6}\n",
       {{replicas, "4", "6"}}},
      {"another strategy",
       kMps4,
       "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 4}\n",
       {{replicas, "4", ""}, {"sharing.timeSlicing.resources[nvidia.com/gpu].replicas", "", "4"}}},
      {"no sharing", kMps4, "version: v1\n", {{replicas, "4", ""}}},
      {"renamed and a flag",
       kMps4,
       "version: v1\nflags: {migStrategy: single}\nsharing:\n  mps:\n    renameByDefault: true\n    resources:\n    - "
       "{name: nvidia.com/gpu, replicas: 4}\n",
       {{"flags.migStrategy", "", "single"}, {"sharing.mps.renameByDefault", "", "true"}}},
  };
  for (const Row& row : rows) {
    const ParsedProfile before = parse_profile(row.before);
    const ParsedProfile after = parse_profile(row.after);
    ASSERT_TRUE(before.accepted && after.accepted) << row.name;
    EXPECT_THAT(profile_changes(before.profile, after.profile), ::testing::ElementsAreArray(row.changes)) << row.name;
  }
}

}  // namespace
}  // namespace gso::profile_changes_test
