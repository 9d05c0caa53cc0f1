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
  for (const std::string head :
       {"Kind: ConfigMap\napiVersion: v1\n", "KIND: Pod\napiVersion: v1\n", "apiVersion: v1\n"}) {
    const auto documents = lint(head + "metadata: {name: x}\ndata: {any: x}\n");
    ASSERT_EQ(documents.size(), 1U) << head;
    EXPECT_EQ(codes(documents[0]), Codes{"KindMissing"}) << head;
    EXPECT_FALSE(documents[0].valid()) << head;
  }
  EXPECT_EQ(lint("apiVersion: v1\nKind: Pod\n")[0].diagnostics[0].line, 2);
  EXPECT_EQ(first_message("apiVersion: v1\nKind: Pod\n"), "the object has no kind; write \"kind\" for \"Kind\"");
  // A profile: no object has `version`.
  EXPECT_EQ(codes_of("version: v1\napiVersion: v1\n"), Codes{"UnknownField"});
}

TEST(LintKinds, AnItemOfAListThatIsNullIsNoObject) {
  const std::string item = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {url: x}}";
  for (const std::string kind : {"List", "ConfigMapList"}) {
    const std::string head = "apiVersion: v1\nkind: " + kind + "\nitems:\n";
    EXPECT_EQ(codes_of(head + "- null\n"), Codes{"WrongType"}) << kind;
    EXPECT_EQ(codes_of(head + "- " + item + "\n-\n"), Codes{"WrongType"}) << kind;
    EXPECT_EQ(codes_of(head + "- x\n- " + item + "\n"), Codes{"WrongType"}) << kind;
    EXPECT_EQ(codes_of(head + "- " + item + "\n"), Codes{}) << kind;
  }
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
