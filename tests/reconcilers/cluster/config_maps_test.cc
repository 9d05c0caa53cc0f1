// A ConfigMap without managedFields proves no change time: only what the operator has watched counts. And who uses a
// key of the plugin's ConfigMap.
#include "reconcilers/cluster/config_maps.h"

#include <gtest/gtest.h>

#include "reconcilers/model/labels.h"
#include "reconcilers/model/project.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test::config_maps_test {
namespace {

using std::chrono::seconds;

ConfigMap read(const std::string& metadata, const std::string& text = "x") {
  const auto out = project_configmap(R"({"metadata":{"name":"m","namespace":"ns")" + metadata + R"(},"data":{"any":")" +
                                     text + R"("}})");
  EXPECT_TRUE(out.has_value());
  return *out;
}

ConfigMap hidden(const std::string& version, const std::string& text) {
  return read(R"(,"creationTimestamp":"2026-01-01T00:00:00Z","resourceVersion":")" + version + '"', text);
}

TEST(ConfigMapTimes, TheTimeOfManagedFieldsIsKnown) {
  const ConfigMap map = read(R"(,"creationTimestamp":"2026-01-01T00:00:00Z","managedFields":[{"manager":"kubectl-edit",
      "time":"2026-01-02T00:00:00Z","fieldsV1":{"f:data":{"f:any":{}}}}])");
  EXPECT_TRUE(map.data_time_known);
  EXPECT_EQ(data_known_since(World(), map), k8s::parse_rfc3339("2026-01-02T00:00:00Z"));
}

TEST(ConfigMapTimes, WithoutThemNothingIsKnown) {
  EXPECT_FALSE(hidden("1", "x").data_time_known);
  EXPECT_EQ(data_known_since(World(), hidden("1", "x")), std::nullopt);
}

TEST(ConfigMapTimes, AManifestThatWasWrittenByHandHasAlwaysBeenSo) {
  EXPECT_TRUE(read("").data_time_known);
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

TEST(KeyUsers, AreLabelledNodesDefaultsAndPolicies) {
  FleetSpec spec;
  spec.profiles = {{"any", "mps-4"}, {"team", "ts-4"}, {"free", "none"}};
  spec.nodes = alike_nodes(3);
  FleetModel fleet(spec);
  for (const char* node : {"n01", "n03"}) fleet.label(node, std::string(kConfigLabel), "team");
  fleet.policy(
      "apiVersion: gpusharing.dev/v1alpha1\nkind: SharingPolicy\nmetadata: {name: p}\nspec: {nodeSelector: "
      "{matchLabels: {team: a}}, profile: {configMapKey: team}}\n");
  const ObjectKey config_map{"gpu-operator", "mps-config"};
  const KeyUsers users(fleet.world, config_map);
  EXPECT_EQ(users.of("team"), "nodes n01, n03 and policy p");
  EXPECT_EQ(users.of("any"), "DaemonSet gpu-operator/nvidia-device-plugin-daemonset (DEFAULT_CONFIG)");
  EXPECT_EQ(users.of("free"), "");
  EXPECT_EQ(KeyUsers(fleet.world, {"gpu-operator", "other"}).of("any"), "");
}

}  // namespace
}  // namespace gso::test::config_maps_test
