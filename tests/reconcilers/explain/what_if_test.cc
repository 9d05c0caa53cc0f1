// A text for a ConfigMap that nobody mounts; tests/transcripts has what `diff` says of others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reconcilers/explain/what_if.h"
#include "tests/reconcilers/fleet_model/fleet_model.h"

namespace gso::test::what_if_test {
namespace {

TEST(WhatIf, AConfigMapThatNobodyMountsIsRefusedWithTheNamesOfTheOthers) {
  FleetSpec spec;
  spec.profiles = {{"any", "ts-4"}};
  spec.nodes = alike_nodes(2);
  FleetModel fleet(spec);
  GivenText text;
  text.config_map = {"gpu-operator", "elsewhere"};
  const auto applied = apply_given(fleet.world, fleet.settings, text, fleet.now);
  ASSERT_FALSE(applied);
  EXPECT_THAT(applied.error().message, testing::HasSubstr("they mount gpu-operator/mps-config"));
}

}  // namespace
}  // namespace gso::test::what_if_test
