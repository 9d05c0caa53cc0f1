// What a document says it is: objects without a kind, kinds that lint does not check, and Lists, which are read item by
// item: what is found in them must be what each item alone would give.
#include <gtest/gtest.h>

#include <string>

#include "tests/reconcilers/lint/linted.h"

namespace gso::lint_kinds_test {
namespace {

using namespace lint_test;

// What the API server says of a misspelt one, it says better.
TEST(LintKinds, AKindThatLintDoesNotKnowIsNotChecked) {
  for (const std::string head :
       {"apiVersion: example.com/v1\nkind: Pods\n", "apiVersion: v1\nkind: Configmap\n",
        "apiVersion: v1\nkind: Service\n", "apiVersion: gpusharing.dev/v1alpha1\nkind: sharingpolicies\n"})
    EXPECT_EQ(codes_of(head + "metadata: {name: x}\n"), Codes{"NotChecked"}) << head;
}

TEST(LintKinds, AnObjectWithoutAKindIsNamed) {
  EXPECT_EQ(told(lint("Kind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\ndata: {any: x}\n")),
            Codes{"#0 Profile: error KindMissing 1:1"});
  EXPECT_EQ(codes_of("apiVersion: v1\nkind: List\nitems: [{metadata: {name: x}}]\n"), Codes{"KindMissing"});
  EXPECT_EQ(codes_of("version: v1\napiVersion: v1\n"), Codes{"UnknownField"}) << "a profile";
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

const std::string kSpec = "{nodeSelector: {a: 1}, containers: [{name: c, image: i}]}";
const std::string kPod = "{kind: Pod, apiVersion: v1, metadata: {name: p}, spec: " + kSpec + "}";
const std::string kList = "kind: List\napiVersion: v1\n";

// Without places: a List in JSON is one line.
Codes found(const std::string& text) {
  Codes out = told(lint(text));
  for (std::string& line : out) line.erase(std::min(line.rfind(' '), line.size()));
  return out;
}

TEST(LintLists, ItemsAreReportedWhereverTheListNamesItsKind) {
  const Codes expected{"#0 Pod p: error SelectorNoString", "#1 Profile c.k: error UnknownVersion"};
  const std::string map =
      R"({kind: ConfigMap, apiVersion: v1, metadata: {name: c}, data: {k: "version: v2\nsharing: {}"}})";
  const std::string items = "items:\n- " + kPod + "\n- " + map + "\n";
  for (const std::string& text : {"apiVersion: v1\n" + items + "kind: List\n", kList + items,
                                  "# kubectl\n---\n" + kList + items, kList + items + "---\n" + kList + "items: []\n"})
    EXPECT_EQ(found(text), expected) << text;
  const std::string json =
      R"({"apiVersion":"v1","items":[{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"},"spec":{"nodeSelector":{"a":1},"containers":[{"name":"c","image":"i"}]}},)"
      R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c"},"data":{"k":"version: v2\nsharing: {}"}}],"kind":"List"})";
  EXPECT_EQ(found(json), expected);
}

TEST(LintLists, ItemsOfATypedListHaveItsKind) {
  EXPECT_EQ(found("kind: PodList\napiVersion: v1\nitems:\n- {metadata: {name: p}, spec: " + kSpec + "}\n"),
            Codes{"#0 Pod p: error SelectorNoString"});
}

TEST(LintLists, AnAnchorOfOneItemServesTheNext) {
  EXPECT_EQ(found(kList + "items:\n- {kind: Pod, apiVersion: v1, metadata: {name: p}, spec: &s " + kSpec +
                  "}\n- {kind: Pod, apiVersion: v1, metadata: {name: q}, spec: *s}\n"),
            (Codes{"#0 Pod p: error SelectorNoString", "#1 Pod q: error SelectorNoString"}));
}

TEST(LintLists, ASyntaxErrorKeepsTheItemsBeforeIt) {
  for (const auto& [text, code] :
       {std::pair("{kind: [\n", "SyntaxError"), std::pair("{kind: Pod, x: [a:,b]}\n", "UnsupportedYAML")})
    EXPECT_EQ(found(kList + "items:\n- " + kPod + "\n- " + text),
              (Codes{"#0 Pod p: error SelectorNoString", std::string("#1 Profile: error ") + code}));
}

TEST(LintLists, EachBrokenDocumentIsReportedOnceAndTheOthersAreRead) {
  const std::string text = "a: [\n---\nversion: v2\n---\n";
  EXPECT_EQ(told(lint(text + text)),
            (Codes{"#0 Profile: error SyntaxError 1:5", "#1 Profile: error UnknownVersion 3:10",
                   "#2 Profile: error SyntaxError 5:5", "#3 Profile: error UnknownVersion 7:10"}));
}

}  // namespace
}  // namespace gso::lint_kinds_test
