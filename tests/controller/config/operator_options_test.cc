// What commands learn of the running operator's options from its state ConfigMap.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "controller/config/options.h"

namespace gso::operator_options_test {
namespace {

using namespace std::chrono_literals;

World world_that_says(const std::string& text) {
  World world;
  ConfigMap state;
  state.meta.ns = k8s::Interned("gpu-sharing-operator");
  state.meta.name = "gpu-sharing-operator-state";
  state.data["options.json"] = std::make_shared<const std::string>(text);
  world.configmaps.apply(std::move(state));
  return world;
}

TEST(OperatorOptions, NameWhatDiffersFromTheDefaultsAndChangesPlans) {
  Options options;
  EXPECT_EQ(print_operator_options(options), "");
  options.settle = 1min;
  options.cluster_max_unavailable = {3, false};
  options.identity = "pod-1";
  options.kubeconfig = "/secret/path";
  options.max_in_flight = 4;
  EXPECT_EQ(print_operator_options(options), R"({"cluster-max-unavailable":"3","settle-period":"1m0s"})");
}

TEST(OperatorOptions, AreThoseByWhichCommandsJudge) {
  PlannerSettings own;
  own.operator_namespace = "gpu-sharing-operator";
  own.adopt_drift = true;
  own.kai.explain_all = true;
  const PlannerSettings read = settings_of_operator(
      world_that_says(R"({"cluster-max-unavailable":"3","settle-period":"1m0s","label-mode":"verify"})"), own);
  EXPECT_EQ(read.cluster_max_unavailable.of(1000), 3);
  EXPECT_EQ(read.settle, 1min);
  EXPECT_EQ(read.label_mode, PlannerSettings::LabelMode::verify);
  EXPECT_TRUE(read.adopt_drift) << "what only a command asks for";
  EXPECT_TRUE(read.kai.explain_all) << "what only a command asks for";
}

TEST(OperatorOptions, ThatCannotBeReadLeaveTheCommandItsOwn) {
  PlannerSettings own;
  own.settle = 7s;
  for (const char* text : {"", "{", "[]", "null"})
    EXPECT_EQ(settings_of_operator(world_that_says(text), own).settle, 7s);
  EXPECT_EQ(settings_of_operator(World(), own).settle, 7s);
  // Of a newer release: what this one knows counts.
  const PlannerSettings read = settings_of_operator(
      world_that_says(R"({"settle-period":"30s","no-such-option":"1","label-mode":"sometimes","kubeconfig":"/x"})"),
      own);
  EXPECT_EQ(read.settle, 30s);
  EXPECT_EQ(read.label_mode, PlannerSettings::LabelMode::automatic);
}

}  // namespace
}  // namespace gso::operator_options_test
