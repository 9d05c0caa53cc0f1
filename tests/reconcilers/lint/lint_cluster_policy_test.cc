// The fields of a ClusterPolicy that choose the plugin's ConfigMap and default key.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/reconcilers/lint/linted.h"

namespace gso::lint_cluster_policy_test {
namespace {

using lint_test::codes;
using lint_test::Codes;
using lint_test::lint;

std::vector<LintedDocument> policy(const std::string& spec) {
  return lint("apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: cluster-policy}\nspec: " + spec + "\n");
}

TEST(LintClusterPolicy, AMisspeltFieldThatChoosesTheProfilesIsNamed) {
  struct Case {
    std::string spec;
    std::string path;
    std::string advice;
  };
  const std::vector<Case> cases{
      {"{devicePlugin: {config: {nam: mps-config}}}", "spec.devicePlugin.config.nam", "Did you mean \"name\"?"},
      {"{devicePlugin: {config: {name: a, defualt: b}}}", "spec.devicePlugin.config.defualt",
       "Did you mean \"default\"?"},
      {"{devicePlugin: {config: {name: a, namespace: b}}}", "spec.devicePlugin.config.namespace",
       "Known fields: name, default"},
      {"{devicePlugin: {confg: {name: a}}}", "spec.devicePlugin.confg", "Did you mean \"config\"?"},
      {"{deviceplugin: {config: {name: a}}}", "spec.deviceplugin", "Did you mean \"devicePlugin\"?"}};
  for (const auto& [spec, path, advice] : cases) {
    SCOPED_TRACE(spec);
    const auto documents = policy(spec);
    ASSERT_EQ(documents.size(), 1U);
    ASSERT_EQ(codes(documents[0]), Codes{"UnknownField"});
    EXPECT_EQ(documents[0].diagnostics[0].severity, Diagnostic::Severity::warning);
    EXPECT_EQ(documents[0].diagnostics[0].path, path);
    EXPECT_EQ(documents[0].diagnostics[0].message, "unknown field; the API server drops it. " + advice);
  }
}

TEST(LintClusterPolicy, OtherFieldsAreTheGpuOperatorsOwn) {
  for (const char* spec : {"{devicePlugin: {enabled: true, version: v1, image: i, mps: {root: /run/nvidia/mps}, "
                           "config: {name: a, default: "
                           "''}}, sandboxDevicePlugin: {enabled: false}, dcgm: {confg: x}}",
                           "{devicePlugin: {config: null}}", "{}"}) {
    SCOPED_TRACE(spec);
    const auto documents = policy(spec);
    ASSERT_EQ(documents.size(), 1U);
    EXPECT_EQ(codes(documents[0]), Codes{});
  }
}

}  // namespace
}  // namespace gso::lint_cluster_policy_test
