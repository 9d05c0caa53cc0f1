// What a document says it is: objects without a kind, and kinds that lint does not check.
#include <gtest/gtest.h>

#include <string>
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
  EXPECT_EQ(codes_of(text), Codes{"UnsupportedYAML"});
  EXPECT_TRUE(first_message(text).ends_with("JSON has no comments; remove the comment that begins here with `//`"))
      << first_message(text);
}

// What the API server says of a misspelt one, it says better.
TEST(LintKinds, AKindThatLintDoesNotKnowIsNotChecked) {
  for (const std::string head :
       {"apiVersion: example.com/v1\nkind: Pods\n", "apiVersion: v1\nkind: Configmap\n",
        "apiVersion: v1\nkind: Service\n", "apiVersion: gpusharing.dev/v1alpha1\nkind: sharingpolicies\n"}) {
    EXPECT_EQ(codes_of(head + "metadata: {name: x}\n"), Codes{"NotChecked"}) << head;
  }
}

TEST(LintKinds, AnObjectWithoutAKindIsNamed) {
  const auto documents = lint("Kind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\ndata: {any: x}\n");
  ASSERT_EQ(documents.size(), 1U);
  EXPECT_EQ(codes(documents[0]), Codes{"KindMissing"});
  EXPECT_FALSE(documents[0].valid());
  EXPECT_EQ(codes_of("apiVersion: v1\nkind: List\nitems: [{metadata: {name: x}}]\n"), Codes{"KindMissing"});
  EXPECT_EQ(codes_of("version: v1\napiVersion: v1\n"), Codes{"UnknownField"}) << "a profile";
}

// Volcano and OpenKruise have kinds of these names, with templates of pods.
TEST(LintKinds, ThePodsOfAWorkloadAreCheckedWhateverItsGroup) {
  const std::string rest =
      "metadata: {name: x}\nspec: {template: {metadata: {annotations: {gpu-fraction: '2'}}, spec: {schedulerName: "
      "kai-scheduler, containers: [{name: c, image: i}]}}}\n";
  for (const std::string head :
       {"apiVersion: apps/v1\nkind: Deployment\n", "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n",
        "apiVersion: apps.kruise.io/v1alpha1\nkind: DaemonSet\n", "kind: Deployment\n"}) {
    EXPECT_EQ(codes_of(head + rest), Codes{"GPUFractionInvalid"}) << head;
  }
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

// What else the API server refuses in a List, it says better.
TEST(LintKinds, OfAListOnlyTheObjectsAreChecked) {
  const std::string item = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {url: x}}";
  for (const std::string kind : {"List", "PodList", "NodeList"}) {
    const std::string head = "apiVersion: v1\nkind: " + kind + "\nitems:";
    for (const std::string items : {" {}", " {a: b}", " x", " []", " [x]", "", "\n- null\n"})
      EXPECT_EQ(codes_of(head + items + "\n"), Codes{"NotChecked"}) << kind << items;
    EXPECT_EQ(codes_of(head + "\n- x\n- " + item + "\n-\n"), Codes{}) << kind;
  }
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
