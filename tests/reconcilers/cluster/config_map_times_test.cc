// A ConfigMap without managedFields proves no change time: only what the operator has watched counts.
#include "reconcilers/cluster/config_maps.h"

#include <gtest/gtest.h>

#include "reconcilers/model/project.h"

namespace gso::test::config_map_times_test {
namespace {

using std::chrono::seconds;

constexpr const char* kHidden =
    R"({"metadata":{"name":"m","namespace":"ns","resourceVersion":"%","creationTimestamp":"2026-01-01T00:00:00Z"},"data":{"any":"$"}})";

ConfigMap hidden(const std::string& version, const std::string& text) {
  std::string json = kHidden;
  json.replace(json.find('%'), 1, version);
  json.replace(json.find('$'), 1, text);
  return *project_configmap(json);
}

TEST(ConfigMapTimes, TheTimeOfManagedFieldsIsKnown) {
  const auto read = project_configmap(
      R"({"metadata":{"name":"m","namespace":"ns","creationTimestamp":"2026-01-01T00:00:00Z","managedFields":[
          {"manager":"kubectl-edit","time":"2026-01-02T00:00:00Z","fieldsV1":{"f:data":{"f:any":{}}}}]},"data":{"any":"x"}})");
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->data_time_known);
  EXPECT_EQ(data_known_since(World(), *read), k8s::parse_rfc3339("2026-01-02T00:00:00Z"));
}

TEST(ConfigMapTimes, WithoutThemNothingIsKnown) {
  const ConfigMap read = hidden("1", "x");
  EXPECT_FALSE(read.data_time_known);
  EXPECT_EQ(data_known_since(World(), read), std::nullopt);
}

TEST(ConfigMapTimes, AManifestThatWasWrittenByHandHasAlwaysBeenSo) {
  const auto read = project_configmap(R"({"metadata":{"name":"m","namespace":"ns"},"data":{"any":"x"}})");
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->data_time_known);
}

TEST(ConfigMapTimes, AProcessCountsFromWhenItFirstSawTheData) {
  World world;
  WallTime now = *k8s::parse_rfc3339("2026-03-01T00:00:00Z");
  follow_config_map_times(world, [&] { return now; });
  world.configmaps.apply(hidden("1", "x"));
  const ObjectKey key{"ns", "m"};
  EXPECT_EQ(data_known_since(world, *world.configmaps.find(key)), now);
  const WallTime first = now;
  now += seconds(60);
  ConfigMap annotated = hidden("2", "x");
  annotated.meta.annotations.set("gpusharing.dev/paused", "true");
  world.configmaps.apply(annotated);
  EXPECT_EQ(data_known_since(world, *world.configmaps.find(key)), first) << "its data is the same";
  world.configmaps.apply(hidden("3", "y"));
  EXPECT_EQ(data_known_since(world, *world.configmaps.find(key)), now);
  world.configmaps.erase(key);
  EXPECT_TRUE(world.data_seen_since.empty());
}

}  // namespace
}  // namespace gso::test::config_map_times_test
