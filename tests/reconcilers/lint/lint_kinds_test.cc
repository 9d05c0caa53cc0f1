// What a document says it is: kinds and API versions that the API server refuses, and those that lint does not know.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "reconcilers/lint/lint.h"
#include "tests/reconcilers/lint/linted.h"

namespace gso::lint_kinds_test {
namespace {

using namespace lint_test;

Codes codes_of(const std::string& text) {
  Codes out;
  for (const LintedDocument& document : lint(text)) {
    const Codes found = codes(document, true);
    out.insert(out.end(), found.begin(), found.end());
  }
  return out;
}

std::string first_message(const std::string& text) {
  const auto documents = lint(text);
  return documents.empty() || documents[0].diagnostics.empty() ? "" : documents[0].diagnostics[0].message;
}

TEST(LintKinds, ACommentOfJsonThatSwallowsTheKindIsNamed) {
  const std::string text =
      "{\"apiVersion\": \"v1\",\n // a node\n \"kind\":\"Node\", \"metadata\": {\"name\": \"a\"}}\n";
  EXPECT_EQ(codes_of(text), Codes{"KindMissing"});
  EXPECT_TRUE(first_message(text).ends_with("JSON has no comments: remove the comment that begins here with `//`"))
      << first_message(text);
}

TEST(LintKinds, AMisspeltKindIsAnErrorThatNamesTheRightOne) {
  const std::vector<std::tuple<std::string, std::string, std::string>> table{
      {"Configmap", "v1", "ConfigMap"},
      {"configmap", "v1", "ConfigMap"},
      {"pod", "v1", "Pod"},
      {"Pods", "v1", "Pod"},
      {"Podd", "v1", "Pod"},
      {"Daemonset", "apps/v1", "DaemonSet"},
      {"Deploymnet", "apps/v1", "Deployment"},
      {"StatefullSet", "apps/v1", "StatefulSet"},
      {"Cronjob", "batch/v1", "CronJob"},
      {"Sharingpolicy", "gpusharing.dev/v1alpha1", "SharingPolicy"},
      {"SharingPolcy", "gpusharing.dev/v1alpha1", "SharingPolicy"},
  };
  for (const auto& [kind, version, right] : table) {
    const std::string text =
        fmt::format("apiVersion: {}\nkind: {}\nmetadata: {{name: x}}\nspec: {{}}\n", version, kind);
    const auto documents = lint(text);
    ASSERT_EQ(documents.size(), 1U) << kind;
    EXPECT_EQ(codes(documents[0]), Codes{"KindMisspelt"}) << kind;
    EXPECT_FALSE(documents[0].valid()) << kind;
    EXPECT_EQ(documents[0].diagnostics[0].line, 2) << kind;
    EXPECT_EQ(documents[0].diagnostics[0].message,
              fmt::format("the API server knows no kind \"{}\"; did you mean {}?", kind, right));
  }
}

TEST(LintKinds, AnotherOwnersKindIsNoMisspeltOne) {
  for (const std::string head :
       {"apiVersion: example.com/v1\nkind: Pods\n", "apiVersion: example.com/v1\nkind: Node2\n",
        "apiVersion: v1\nkind: Service\n", "apiVersion: v1\nkind: Secret\n"}) {
    EXPECT_EQ(codes_of(head + "metadata: {name: x}\n"), Codes{"NotChecked"}) << head;
  }
}

TEST(LintKinds, AKnownKindNeedsItsApiVersion) {
  const std::string rest = "metadata: {name: x}\nspec: {containers: [{name: c, image: i}]}\n";
  EXPECT_EQ(codes_of("kind: Pod\n" + rest), Codes{"APIVersionMissing"});
  EXPECT_EQ(codes_of("kind: Pod\nspec: {containers: [{name: c, image: i}]}\n"),
            (Codes{"APIVersionMissing", "NameMissing"}));
  EXPECT_EQ(codes_of("apiVersion: ''\nkind: Pod\n" + rest), Codes{"APIVersionMissing"});
  for (const std::string version : {"v2", "apps/v1", "V1", "core/v1", "v1beta1", "1"}) {
    EXPECT_EQ(codes_of("apiVersion: " + version + "\nkind: Pod\n" + rest), Codes{"APIVersionWrong"}) << version;
  }
  EXPECT_EQ(first_message("apiVersion: apps/v1\nkind: Pod\n" + rest),
            "the API server has no Pod in apiVersion apps/v1; write v1");
  EXPECT_EQ(codes_of("apiVersion: v1\nkind: Pod\n" + rest), Codes{});
}

TEST(LintKinds, AWorkloadNeedsItsApiVersion) {
  const std::string rest =
      "metadata: {name: x}\nspec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: "
      "{containers: [{name: c, image: i}]}}}\n";
  EXPECT_EQ(codes_of("kind: Deployment\n" + rest), Codes{"APIVersionMissing"});
  EXPECT_EQ(codes_of("apiVersion: extensions/v1beta1\nkind: Deployment\n" + rest), Codes{"APIVersionWrong"});
  EXPECT_EQ(codes_of("apiVersion: batch/v1\nkind: Deployment\n" + rest), Codes{"APIVersionWrong"});
  EXPECT_EQ(codes_of("apiVersion: apps/v1\nkind: Deployment\n" + rest), Codes{});
  // Volcano and OpenKruise have kinds of these names.
  EXPECT_EQ(codes_of("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n" + rest), Codes{});
  EXPECT_EQ(codes_of("apiVersion: apps.kruise.io/v1alpha1\nkind: DaemonSet\n" + rest), Codes{});
}

TEST(LintKinds, AConfigMapNeedsItsApiVersionAndItsProfilesAreCheckedAllTheSame) {
  const auto documents = lint("kind: ConfigMap\nmetadata: {name: c}\ndata: {a: 'version: v2'}\n");
  ASSERT_EQ(documents.size(), 2U);
  EXPECT_EQ(codes(documents[0]), Codes{"APIVersionMissing"});
  EXPECT_EQ(codes(documents[1]), Codes{"UnknownVersion"});
}

TEST(LintKinds, AnObjectOfAnotherGroupWithAKnownNameIsNotChecked) {
  EXPECT_EQ(codes_of("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: x}\nspec: {rules: []}\n"),
            Codes{"NotChecked"});
  EXPECT_EQ(codes_of("apiVersion: config.openshift.io/v1\nkind: Node\nmetadata: {name: cluster}\n"),
            Codes{"NotChecked"});
  // A group that somebody has misspelt: the kind is the operator's alone.
  EXPECT_EQ(codes_of("apiVersion: gpusharing.io/v1alpha1\nkind: SharingPolicy\nmetadata: {name: x}\nspec: {}\n"),
            Codes{"UnknownValue"});
}

TEST(LintKinds, TheItemsOfAListMustBeAListOfObjects) {
  for (const std::string items : {"{}", "{a: b}", "x", "4", "true"}) {
    for (const std::string kind : {"List", "PodList", "NodeList"}) {
      const auto documents = lint("apiVersion: v1\nkind: " + kind + "\nitems: " + items + "\n");
      ASSERT_EQ(documents.size(), 1U) << kind << items;
      EXPECT_EQ(codes(documents[0]), Codes{"WrongType"}) << kind << items;
      EXPECT_EQ(documents[0].diagnostics[0].line, 3) << kind << items;
    }
  }
  EXPECT_EQ(first_message("apiVersion: v1\nkind: List\nitems: {}\n"),
            "items of a List must be a list, found a mapping");
  EXPECT_EQ(codes_of("{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": {}}"), Codes{"WrongType"});
  EXPECT_EQ(codes_of("apiVersion: v1\nkind: List\nitems: [x]\n"), Codes{"WrongType"});
  EXPECT_EQ(codes_of("apiVersion: v1\nkind: List\nitems: [{metadata: {name: x}}]\n"), Codes{"KindMissing"});
  // Null and nothing are empty lists for the API server.
  EXPECT_EQ(codes_of("apiVersion: v1\nkind: List\nitems: []\n"), Codes{"NotChecked"});
  EXPECT_EQ(codes_of("apiVersion: v1\nkind: List\nitems:\n"), Codes{"NotChecked"});
}

// As the API server prints them.
TEST(LintKinds, TheItemsOfAListOfOneKindNeedNotSayIt) {
  EXPECT_EQ(
      codes_of(
          "apiVersion: v1\nkind: PodList\nitems: [{metadata: {name: x}, spec: {containers: [{name: c, image: i}]}}]\n"),
      Codes{});
}

}  // namespace
}  // namespace gso::lint_kinds_test
