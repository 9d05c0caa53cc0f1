// What a profile means: strategy, replicas, revision, the key a node resolves to, what the release makes of it, and
// what differs.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "reconcilers/cluster/plugin_settings.h"
#include "reconcilers/profile/field_names.h"
#include "reconcilers/profile/profile.h"

namespace gso::profile_meaning_test {
namespace {

Profile profile(const std::string& text) {
  const ParsedProfile parsed = parse_profile(text);
  EXPECT_TRUE(parsed.accepted) << parsed.first_error();
  return parsed.profile;
}

Profile mps(int replicas, const std::string& more = "") {
  return profile("sharing: {mps: {" + more + "resources: [{name: gpu, replicas: " + std::to_string(replicas) + "}]}}");
}

TEST(ProfileMeaning, MpsWinsWhereverItStands) {
  const Profile both = profile(
      "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}]}, mps: {resources: [{name: mig-1g.5gb, replicas: "
      "3}]}}");
  EXPECT_EQ(both.strategy(), Strategy::mps);
  EXPECT_EQ(both.plugin_replicas("nvidia.com/gpu"), 1);
  EXPECT_EQ(both.plugin_replicas("nvidia.com/mig-1g.5gb"), 3);
  EXPECT_EQ(profile("").strategy(), Strategy::none);
  EXPECT_EQ(profile("").active(), nullptr);
}

TEST(ProfileMeaning, OfDuplicateEntriesThePluginTakesTheLargestAndGfdTheFirst) {
  const Profile twice = profile(
      "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 3}, {name: gpu, replicas: 9}, {name: gpu, replicas: "
      "5}]}}");
  EXPECT_EQ(twice.plugin_replicas("nvidia.com/gpu"), 9);
  EXPECT_EQ(twice.gfd_replicas("nvidia.com/gpu"), 3);
}

TEST(ProfileMeaning, EqualMeaningGivesAnEqualRevision) {
  const std::string plain =
      "version: v1\nsharing:\n  mps:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 8\n";
  const std::vector<std::string> same{
      plain,
      "{\"sharing\":{\"mps\":{\"failRequestsGreaterThanOne\":true,\"resources\":[{\"name\":\"gpu\",\"replicas\":010,"
      "\"rename\":\"x\"}]}}}",
      "# why\nunknown: 1\n" + plain,
      "flags: {migStrategy: none, failOnInitError: true, plugin: {deviceListStrategy: [envvar]}, gfd: {sleepInterval: "
      "60s}}\n" +
          plain,
      "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}]}, mps: {resources: [{name: gpu, replicas: 8}]}}"};
  for (const std::string& text : same) EXPECT_EQ(revision_of(profile(text)), revision_of(profile(plain))) << text;
  const std::vector<std::string> different{
      "",
      "sharing: {mps: {resources: [{name: gpu, replicas: 9}]}}",
      "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 8}]}}",
      "sharing: {mps: {renameByDefault: true, resources: [{name: gpu, replicas: 8}]}}",
      "sharing: {mps: {failRequestsGreaterThanOne: false, resources: [{name: gpu, replicas: 8}]}}",
      "flags: {migStrategy: single}\n" + plain,
      "flags: {gfd: {noTimestamp: true}}\n" + plain,
      "sharing: {mps: {resources: [{name: gpu, replicas: 8}, {name: gpu, replicas: 9}]}}"};
  for (const std::string& text : different) EXPECT_NE(revision_of(profile(text)), revision_of(profile(plain))) << text;
}

TEST(ProfileMeaning, RevisionsCarryAVersionAndAreTheSameOnEveryCluster) {
  EXPECT_EQ(revision_of(profile("")), revision_of(Profile{}));
  EXPECT_TRUE(known_revision_format(revision_of(mps(4))));
  EXPECT_EQ(revision_of(Profile{}).size(), 19u);
  for (const std::string text :
       {"", "v1-", "v1-00", "v2-0000000000000000", "v1-000000000000000g", "v1-00000000000000000"}) {
    EXPECT_FALSE(known_revision_format(text)) << text;
  }
}

TEST(ProfileMeaning, AKeyIsResolvedInConfigManagersOrder) {
  using Source = EffectiveKey::Source;
  const struct {
    std::string label, default_key;
    std::vector<std::string> fallbacks, keys;
    Source source;
    std::string key;
  } cases[] = {{"a", "b", {}, {"a", "b"}, Source::label, "a"},
               {"x", "b", {"empty"}, {"a", "b"}, Source::error, ""},
               {"", "b", {}, {"a", "b"}, Source::default_key, "b"},
               {"", "x", {"named", "single", "empty"}, {"a", "default"}, Source::error, ""},
               {"", "", {"named", "single"}, {"a", "default"}, Source::fallback_named, "default"},
               {"", "", {"named", "single"}, {"a"}, Source::fallback_single, "a"},
               {"", "", {"single", "named"}, {"default"}, Source::fallback_single, "default"},
               {"", "", {"named", "single"}, {"a", "b"}, Source::error, ""},
               {"", "", {"named", "single", "empty"}, {"a", "b"}, Source::fallback_empty, ""},
               {"", "", {"empty", "named"}, {"default"}, Source::fallback_empty, ""},
               {"", "", {"named", "bogus", "empty"}, {"a"}, Source::error, ""},
               {"", "", {"empty"}, {}, Source::error, ""},
               {"", "", {}, {"a"}, Source::error, ""}};
  for (std::size_t row = 0; const auto& c : cases) {
    SCOPED_TRACE(row++);
    const EffectiveKey found = resolve_effective_key(c.label, c.default_key, c.fallbacks, c.keys);
    EXPECT_EQ(found.source, c.source) << found.error;
    EXPECT_EQ(found.key, c.key);
    EXPECT_EQ(found.error.empty(), c.source != Source::error);
  }
}

TEST(ProfileMeaning, AMisspeltKeyIsAnsweredWithTheKeyThatIsMeant) {
  const std::vector<std::string> keys{"any", "mps-4", "t4-shared", "gso-team-6091b26975"};
  const std::pair<std::string, std::string> table[] = {
      {"t4-shred", " (did you mean \"t4-shared\"?)"},
      {"T4_Shared", " (did you mean \"t4-shared\"?)"},
      {"msp-4", " (did you mean \"mps-4\"?)"},
      {"mps4", " (did you mean \"mps-4\"?)"},
      {"ayn", " (did you mean \"any\"?)"},
      {"mps-8", ""},  // Another profile.
      {"gso-team-6091b26976", ""},
      {"research", ""},
      {"", ""},
  };
  for (const auto& [name, advice] : table) EXPECT_EQ(key_advice(name, keys), advice) << name;
  EXPECT_EQ(resolve_effective_key("msp-4", "", {}, keys).error,
            "the node's label names the key \"msp-4\", which the ConfigMap does not have (did you mean \"mps-4\"?); it "
            "has any, mps-4, t4-shared, gso-team-6091b26975");
  EXPECT_EQ(resolve_effective_key("", "ayn", {}, {"any"}).error,
            "the default key \"ayn\" is not in the ConfigMap (did you mean \"any\"?); it has any");
}

PluginVersion release(const std::string& tag) {
  return PluginVersion::of_image("nvcr.io/nvidia/k8s-device-plugin:" + tag);
}

TEST(ProfileMeaning, RequestsAboveOneAreRefusedByStrategySettingAndRelease) {
  const Profile slices = profile("sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}]}}");
  const Profile strict =
      profile("sharing: {timeSlicing: {failRequestsGreaterThanOne: true, resources: [{name: gpu, replicas: 4}]}}");
  const Profile relaxed = mps(4, "failRequestsGreaterThanOne: false, ");
  EXPECT_FALSE(refuses_requests_above_one(profile(""), release("v0.20.0")));
  EXPECT_FALSE(refuses_requests_above_one(slices, release("v0.20.0")));
  EXPECT_TRUE(refuses_requests_above_one(strict, release("v0.15.0")));
  EXPECT_TRUE(refuses_requests_above_one(mps(4), release("v0.20.0")));
  EXPECT_FALSE(refuses_requests_above_one(relaxed, release("v0.20.0")));
  for (const char* older : {"v0.19.3", "latest"}) EXPECT_TRUE(refuses_requests_above_one(relaxed, release(older)));
  EXPECT_TRUE(request_refusal(mps(4), release("v0.20.0"), "nvidia.com/gpu", 2).has_value());
  EXPECT_FALSE(request_refusal(mps(4), release("v0.20.0"), "nvidia.com/gpu", 1).has_value());
  EXPECT_FALSE(request_refusal(mps(4), release("v0.20.0"), "nvidia.com/mig-1g.5gb", 2).has_value());
}

TEST(ProfileChanges, AreFieldsThatComponentsRead) {
  const std::string entry = "sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}";
  const std::string replicas = "sharing.mps.resources[nvidia.com/gpu].replicas";
  const struct {
    std::string after;
    std::vector<FieldChange> changes;
  } rows[] = {
      {"version: v1\nsharing:\n  mps:\n    resources:\n    - {replicas: 4, name: nvidia.com/gpu}\n", {}},
      {"sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 6}]}}", {{replicas, "4", "6"}}},
      {"sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}",
       {{replicas, "4", ""}, {"sharing.timeSlicing.resources[nvidia.com/gpu].replicas", "", "4"}}},
      {"version: v1", {{replicas, "4", ""}}},
      {"{flags: {migStrategy: single}, sharing: {mps: {renameByDefault: true, resources: [{name: gpu, replicas: 4}]}}}",
       {{"flags.migStrategy", "", "single"}, {"sharing.mps.renameByDefault", "", "true"}}},
  };
  for (const auto& row : rows) EXPECT_EQ(profile_changes(profile(entry), profile(row.after)), row.changes) << row.after;
}

}  // namespace
}  // namespace gso::profile_meaning_test
