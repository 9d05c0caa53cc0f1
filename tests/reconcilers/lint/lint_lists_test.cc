// Lists are read item by item: what is found in them must be what each item alone would give.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reconcilers/lint/lint.h"
#include "tests/reconcilers/lint/linted.h"

namespace gso::lint_lists_test {
namespace {

using namespace lint_test;

const std::string kPod =
    "{kind: Pod, apiVersion: v1, metadata: {name: p}, spec: {nodeSelector: {a: 1}, containers: [{name: c, image: i}]}}";
const std::string kMap =
    "{kind: ConfigMap, apiVersion: v1, metadata: {name: c}, data: {k: \"version: v2\\nsharing: {}\"}}";

std::vector<std::string> said(const std::string& text) {
  std::vector<std::string> out;
  for (const LintedDocument& document : lint(text))
    for (const std::string& code : codes(document, true))
      out.push_back(document.source + " " + document.kind + "/" + document.name + document.key + " " + code);
  return out;
}

TEST(LintLists, ItemsAreReportedWhereverTheListNamesItsKind) {
  const std::vector<std::string> expected{"f.yaml#0 Pod/p SelectorNoString", "f.yaml#1 Profile/ck UnknownVersion"};
  const std::string items = "items:\n- " + kPod + "\n- " + kMap + "\n";
  EXPECT_EQ(said("apiVersion: v1\n" + items + "kind: List\n"), expected);
  EXPECT_EQ(said("kind: List\napiVersion: v1\n" + items), expected);
  EXPECT_EQ(said("# kubectl\n---\nkind: List\napiVersion: v1\n" + items), expected);
  EXPECT_EQ(said("kind: List\napiVersion: v1\n" + items + "---\nkind: List\napiVersion: v1\nitems: []\n"), expected);
  const std::string json =
      R"({"apiVersion":"v1","items":[{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"},"spec":{"nodeSelector":{"a":1},"containers":[{"name":"c","image":"i"}]}},)"
      R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c"},"data":{"k":"version: v2\nsharing: {}"}}],"kind":"List"})";
  EXPECT_EQ(said(json), expected);
}

TEST(LintLists, ItemsOfATypedListHaveItsKind) {
  EXPECT_EQ(said("kind: PodList\napiVersion: v1\nitems:\n- {metadata: {name: p}, spec: {nodeSelector: {a: 1}, "
                 "containers: [{name: c, image: i}]}}\n"),
            std::vector<std::string>{"f.yaml#0 Pod/p SelectorNoString"});
}

TEST(LintLists, AnAnchorOfOneItemServesTheNext) {
  EXPECT_EQ(said("kind: List\napiVersion: v1\nitems:\n- {kind: Pod, apiVersion: v1, metadata: {name: p}, spec: &s "
                 "{nodeSelector: {a: 1}, containers: [{name: c, image: i}]}}\n- {kind: Pod, apiVersion: v1, metadata: "
                 "{name: q}, spec: *s}\n"),
            (std::vector<std::string>{"f.yaml#0 Pod/p SelectorNoString", "f.yaml#1 Pod/q SelectorNoString"}));
}

TEST(LintLists, ASyntaxErrorKeepsTheItemsBeforeIt) {
  const auto found = said("kind: List\napiVersion: v1\nitems:\n- " + kPod + "\n- {kind: [\n");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], "f.yaml#0 Pod/p SelectorNoString");
  EXPECT_EQ(found[1], "f.yaml#1 Profile/ SyntaxError");
}

TEST(LintLists, UnsupportedYamlKeepsTheItemsBeforeIt) {
  EXPECT_EQ(said("kind: List\napiVersion: v1\nitems:\n- " + kPod + "\n- {kind: Pod, x: [a:,b]}\n"),
            (std::vector<std::string>{"f.yaml#0 Pod/p SelectorNoString", "f.yaml#1 Profile/ UnsupportedYAML"}));
}

TEST(LintLists, EachBrokenDocumentIsReportedOnceAndTheOthersAreRead) {
  std::string text;
  for (int i = 0; i < 3; ++i) text += "a: [\n---\nversion: v2\n---\n";
  std::vector<std::string> found;
  for (const LintedDocument& document : lint(text))
    for (const Diagnostic& d : document.diagnostics) found.push_back(d.code + ":" + std::to_string(d.at.line));
  EXPECT_EQ(found, (std::vector<std::string>{"SyntaxError:1", "UnknownVersion:3", "SyntaxError:5", "UnknownVersion:7",
                                             "SyntaxError:9", "UnknownVersion:11"}));
}

}  // namespace
}  // namespace gso::lint_lists_test
