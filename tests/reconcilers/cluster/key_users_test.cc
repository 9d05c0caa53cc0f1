// Who uses a key of the plugin's ConfigMap.
#include "reconcilers/cluster/config_maps.h"

#include <gtest/gtest.h>

#include "reconcilers/model/labels.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test::key_users_test {
namespace {

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
}  // namespace gso::test::key_users_test
