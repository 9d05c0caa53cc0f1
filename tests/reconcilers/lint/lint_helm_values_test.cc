// Helm values that hold profiles: their keys are judged like those of a ConfigMap.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "reconcilers/lint/lint.h"
#include "tests/reconcilers/lint/linted.h"

namespace gso::lint_helm_values_test {
namespace {

using namespace lint_test;

const std::string kOne = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 1}]}}";
const std::string kFour = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}";

// The profile as a literal block below its key.
std::string key(const std::string& name, const std::string& profile, const std::string& indent) {
  const std::size_t line = profile.find('\n');
  return indent + name + ": |-\n" + indent + "  " + profile.substr(0, line) + "\n" + indent + "  " +
         profile.substr(line + 1) + "\n";
}

TEST(LintHelmValues, KeysOfTheMapAreProfilesAtTheirPlaceInTheFile) {
  const std::string text = "image: {tag: v0.20.0}\nconfig:\n  default: four\n  map:\n" + key("four", kFour, "    ") +
                           key("one", kOne, "    ") + "gfd: {enabled: true}\n";
  const auto documents = lint(text);
  EXPECT_EQ(told(documents), (Codes{"#0 HelmValues: info HelmValues 5:5", "#0 Profile.four",
                                    "#0 Profile.one: error ReplicasBelowMinimum 2:70"}));
  EXPECT_TRUE(first_message(text).contains("2 profiles here (four, one)")) << first_message(text);
  EXPECT_EQ(documents[2].line_before, 8) << "\"one: |-\" is the eighth line of the file";
}

TEST(LintHelmValues, EachChartAndSubchartHasItsOwnPlace) {
  const std::vector<std::pair<std::string, Codes>> table{
      {"config:\n  map:\n" + key("a", kFour, "    "), {}},
      {"nvidia-device-plugin:\n  config:\n    map:\n" + key("a", kFour, "      "), {}},
      {"config:\n  name: mine\n  map:\n" + key("a", kFour, "    "), {"HelmValuesRefused"}},
      {"config:\n  name: ''\n  map:\n" + key("a", kFour, "    "), {}},
      {"config:\n  default: b\n  map:\n" + key("a", kFour, "    "), {"DefaultKeyNotFound"}},
      {"config:\n  map:\n" + key("a b", kFour, "    "), {"KeyRefused"}},
      {"config:\n  map:\n    old: null\n" + key("a", kFour, "    "), {}},
      {"devicePlugin:\n  config:\n    name: c\n    create: true\n    data:\n" + key("a", kFour, "      "), {}},
      {"devicePlugin:\n  config:\n    name: c\n    create: true\n    default: b\n    data:\n" +
           key("a", kFour, "      "),
       {"DefaultKeyNotFound"}},
      {"devicePlugin:\n  config:\n    name: c\n    data:\n" + key("a", kFour, "      "), {"HelmValuesIncomplete"}},
      {"gpu-operator:\n  devicePlugin:\n    config:\n      create: true\n      data:\n" + key("a", kFour, "        "),
       {}},
  };
  for (const auto& [values, expected] : table) {
    SCOPED_TRACE(values);
    const auto documents = lint(values);
    ASSERT_EQ(documents.size(), 2u);
    EXPECT_EQ(documents[0].kind, "HelmValues");
    EXPECT_EQ(codes(documents[0]), expected);
    EXPECT_EQ(documents[1].kind, "Profile");
  }
}

// The install that NVIDIA documents: `--set devicePlugin.config.name=mps-config`, and somebody else's ConfigMap.
TEST(LintHelmValues, ValuesThatOnlyNameAConfigMapAreNoProfile) {
  const std::vector<std::pair<std::string, Codes>> table{
      {"devicePlugin:\n  config:\n    name: mps-config\n", {}},
      {"devicePlugin:\n  config:\n    name: mps-config\n    default: any\n", {}},
      {"devicePlugin:\n  config:\n    default: any\n", {"HelmValuesIncomplete"}},
      {"gpu-operator:\n  devicePlugin:\n    config:\n      name: mps-config\n", {}},
      {"devicePlugin:\n  config:\n    name: mps-config\n    defualt: any\n", {"UnknownField"}},
      {"config:\n  name: mps-config\n  default: any\n", {}},  // Of the device plugin's own chart.
      {"config:\n  default: any\n", {"HelmValuesIncomplete"}},
  };
  for (const auto& [values, expected] : table) {
    SCOPED_TRACE(values);
    const auto documents = lint(values);
    ASSERT_EQ(documents.size(), 1u);
    EXPECT_EQ(documents[0].kind, "HelmValues");
    EXPECT_EQ(codes(documents[0]), expected);
    EXPECT_EQ(codes(documents[0], true).front(), "HelmValues");
  }
}

TEST(LintHelmValues, ReleasesInAClusterHaveValuesToo) {
  const std::string application =
      "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: nvdp}\nspec:\n";
  const std::vector<std::string> releases{
      "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: nvdp}\nspec:\n  values:\n"
      "    config:\n      map:\n" +
          key("one", kOne, "        "),
      application + "  source:\n    helm:\n      valuesObject:\n        config:\n          map:\n" +
          key("one", kOne, "            "),
      application +
          "  sources:\n  - helm:\n      valuesObject:\n        gpu-operator:\n          devicePlugin:\n"
          "            config:\n              create: true\n              data:\n" +
          key("one", kOne, "                ")};
  for (const std::string& text : releases) {
    SCOPED_TRACE(text);
    const auto documents = lint(text);
    ASSERT_EQ(documents.size(), 2u);
    EXPECT_EQ(documents[0].name, "nvdp");
    EXPECT_EQ(codes(documents[0], true), Codes{"HelmValues"});
    EXPECT_EQ(documents[1].key, "one");
    EXPECT_EQ(codes(documents[1]), Codes{"ReplicasBelowMinimum"});
  }
  EXPECT_EQ(codes_of("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a}\nspec: {values: "
                     "{replicas: 1}}\n"),
            Codes{"NotChecked"});
}

TEST(LintHelmValues, AProfileWithoutItsBlockIsNoText) {
  const auto documents = lint("config:\n  map:\n    any:\n      version: v1\n      sharing: {}\n");
  ASSERT_EQ(documents.size(), 2u);
  ASSERT_EQ(codes(documents[1]), Codes{"WrongType"});
  EXPECT_EQ(documents[1].diagnostics[0].path, "config.map.any");
}

TEST(LintHelmValues, OtherValuesAndProfilesAreReadAsBefore) {
  const std::vector<std::string> texts{"replicaCount: 2\nimage: {tag: v1}\n",
                                       "config: {map: {}}\n",
                                       "config: {map: {a: text}}\n",
                                       "config: {log-level: debug}\n",
                                       "config: {name: a, log-level: debug}\n",
                                       "config: {map: {a: 'sharing:'}}\nsharing: {}\n"};
  for (const std::string& text : texts) {
    const auto documents = told(lint(text));
    ASSERT_EQ(documents.size(), 1u);
    EXPECT_TRUE(documents[0].starts_with("#0 Profile: warning UnknownField ")) << documents[0];
  }
}

}  // namespace
}  // namespace gso::lint_helm_values_test
