// The health checks that the chart ships for Flux (files/flux.yaml), evaluated as its kustomize-controller does: an
// object whose status is of an older generation is in progress, then `failed` is asked, then `current`; otherwise it is
// in progress. Source: fluxcd/pkg at 62d235c, runtime/cel/status_evaluator.go.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "tests/chart/source_files.h"
#include "tests/sim/apiserver/cel.h"
#include "tests/sim/apiserver/yaml.h"

namespace gso::flux_test {
namespace {

using nlohmann::json;

struct Condition {
  const char* type;
  const char* status;
};

struct Case {
  const char* title;
  std::vector<Condition> conditions;
  const char* health;
  int observed = 2;
};

json policy(const Case& about) {
  json conditions = json::array();
  for (const Condition& condition : about.conditions)
    conditions.push_back({{"type", condition.type}, {"status", condition.status}, {"reason", "Why"}});
  return {{"apiVersion", "gpusharing.dev/v1alpha1"},
          {"kind", "SharingPolicy"},
          {"metadata", {{"name", "p"}, {"generation", 2}}},
          {"status", {{"observedGeneration", about.observed}, {"conditions", conditions}}}};
}

// Flux gives the object's fields as variables, and the API server the object as `self`.
bool holds(const std::string& expression, const json& object) {
  const std::string rule =
      std::regex_replace(expression, std::regex("\\bstatus\\.conditions"), "self.status.conditions");
  const sim::CelResult result = sim::evaluate_cel(rule, object, nullptr);
  EXPECT_NE(result, sim::CelResult::not_evaluated) << rule;
  return result == sim::CelResult::holds;
}

std::string health_of(const json& checks, const json& object) {
  if (object["status"]["observedGeneration"] != object["metadata"]["generation"]) return "InProgress";
  if (holds(checks["failed"], object)) return "Failed";
  return holds(checks["current"], object) ? "Current" : "InProgress";
}

TEST(Flux, HealthOfAPolicyFollowsItsConditions) {
  const json file = sim::yaml_to_json(read("charts/gpu-sharing-operator/files/flux.yaml"));
  ASSERT_EQ(file["healthCheckExprs"].size(), 1U);
  const json& checks = file["healthCheckExprs"][0];
  EXPECT_EQ(checks["apiVersion"], "gpusharing.dev/v1alpha1");
  EXPECT_EQ(checks["kind"], "SharingPolicy");
  const Case cases[] = {
      {"no conditions yet", {}, "InProgress"},
      {"the status of an older generation", {{"Ready", "True"}}, "InProgress", 1},
      {"every node runs its profile", {{"Ready", "True"}, {"ConfigValid", "True"}, {"Degraded", "False"}}, "Current"},
      {"a rollout in progress", {{"Ready", "False"}, {"Progressing", "True"}}, "InProgress"},
      {"nodes have failed", {{"Degraded", "True"}, {"Ready", "False"}, {"Progressing", "True"}}, "Failed"},
      {"an invalid profile", {{"ConfigValid", "False"}, {"Ready", "True"}}, "Failed"},
      {"stopped by a person", {{"Ready", "False"}, {"Progressing", "False"}, {"ConfigValid", "True"}}, "Current"},
      {"the operator was removed", {{"Ready", "Unknown"}}, "Current"},
      {"a condition that is not known", {{"Other", "True"}}, "InProgress"},
  };
  for (const Case& about : cases) EXPECT_EQ(health_of(checks, policy(about)), about.health) << about.title;
}

}  // namespace
}  // namespace gso::flux_test
