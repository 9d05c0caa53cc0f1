// What is no YAML, or no profile, because of how it is written: where lint points, and what it says.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "reconcilers/lint/lint.h"
#include "reconcilers/profile/document_value.h"
#include "tests/reconcilers/lint/linted.h"

namespace gso::lint_syntax_errors_test {
namespace {

using namespace lint_test;

TEST(LintSyntaxErrors, AMissingColonOrSpaceIsReportedWhereItIsMissing) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"sharing:\n  mps:\n    resources:\n    - name: nvidia.com/gpu\n      replicas:4\n",
       "f.yaml:5:16: error: put a space after the colon: `replicas: 4` [SyntaxError]\n"
       "    5 |       replicas:4\n"
       "      |                ^\n"},
      {"flags:\n  failOnInitError: true\n  migStrategy:none\nversion: v1\n",
       "f.yaml:3:15: error: put a space after the colon: `migStrategy: none` [SyntaxError]\n"
       "    3 |   migStrategy:none\n"
       "      |               ^\n"},
      // As a manual prints it.
      {"sharing:\n  mps:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 4\n    ...\n",
       "f.yaml:6:5: error: expected `key: value`, found `...` [SyntaxError]\n"
       "    6 |     ...\n"
       "      |     ^\n"},
      {"sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: ]}}}\n",
       "f.yaml:1:62: error: a value is missing before `]` [SyntaxError]\n"
       "    1 | sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: ]}}}\n"
       "      |                                                              ^\n"}};
  for (const auto& [text, expected] : table) EXPECT_EQ(lint_report(lint(text)[0], SourceLines(text)), expected);
}

TEST(LintSyntaxErrors, AProfileThatIsNotIndentedBelowItsKeyIsExplained) {
  const auto documents = lint(
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  any: |\n  version: v1\n  sharing:\n"
      "    timeSlicing: {}\n");
  ASSERT_EQ(documents.size(), 3u);
  EXPECT_EQ(documents[1].key, "sharing");
  ASSERT_EQ(codes(documents[1]), Codes{"WrongType"});
  EXPECT_NE(documents[1].diagnostics[0].message.find("indent it deeper than the profile's key"), std::string::npos)
      << documents[1].diagnostics[0].message;
}

TEST(LintSyntaxErrors, AProfileThatIsNoTextIsToldToBeginAsOne) {
  const auto documents = lint(
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  any:\n    version: v1\n    sharing:\n"
      "      timeSlicing: {}\n");
  ASSERT_EQ(documents.size(), 1u);
  ASSERT_EQ(codes(documents[0]), Codes{"WrongType"});
  EXPECT_TRUE(documents[0].diagnostics[0].message.ends_with("; begin it with \"|\""))
      << documents[0].diagnostics[0].message;
}

TEST(LintSyntaxErrors, AFoldedProfileIsNamedAsTheCauseOfItsError) {
  const std::string head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  any: ";
  const std::string rest = "\n    version: v1\n    sharing:\n      mps: null\n";
  const auto folded = lint(head + ">-" + rest);
  ASSERT_EQ(folded.size(), 1u);
  ASSERT_FALSE(folded[0].diagnostics.empty());
  EXPECT_EQ(folded[0].diagnostics[0].code, "SyntaxError");
  EXPECT_NE(folded[0].diagnostics[0].message.find("joins its lines: begin it with \"|\""), std::string::npos)
      << folded[0].diagnostics[0].message;
  EXPECT_TRUE(lint(head + "|-" + rest)[0].valid());
}

// As editors write settings. What YAML makes of a comment would be reported elsewhere, or lines later.
TEST(LintSyntaxErrors, ACommentInJsonIsReportedWhereItBegins) {
  const std::vector<std::pair<std::string, Position>> table{
      {"// a profile\n{\n  \"version\": \"v1\"\n}\n", {1, 1}},
      {"/* a profile\n*/\n{\n  \"version\": \"v1\"\n}\n", {1, 1}},
      {"{ // a profile\n  \"version\": \"v1\"\n}\n", {1, 3}},
      {"{\n  \"version\": \"v1\", // the only one\n  \"sharing\": {}\n}\n", {2, 20}},
      {"{\n  \"version\": \"v1\" // the only one\n}\n", {2, 19}},
      {"{\n  \"version\": \"v1\", // why?\n  \"sharing\": {}\n}\n", {2, 20}},
      {"{\n  // none\n  \"sharing\": {\"mps\": null}\n}\n", {2, 3}},
      {"a: b\n---\n{\n  \"version\": \"v1\", // the only one\n  \"sharing\": {}\n}\n", {4, 20}},
  };
  for (const auto& [text, at] : table) {
    const auto documents = lint(text);
    const auto found = std::ranges::find_if(documents, [](const LintedDocument& d) { return !d.valid(); });
    ASSERT_NE(found, documents.end()) << text;
    const Diagnostic& error = found->diagnostics[0];
    EXPECT_EQ(error.code, "UnsupportedYAML") << text;
    EXPECT_EQ(error.at.line, at.line) << text;
    EXPECT_EQ(error.at.column, at.column) << text;
    EXPECT_TRUE(error.message.starts_with("JSON has no comments; remove the comment that begins here with `/"))
        << error.message;
  }
}

// Two slashes in a string, or in a word of YAML, are no comment.
TEST(LintSyntaxErrors, SlashesThatBeginNoCommentAreNotBlamed) {
  for (const std::string text :
       {"{\n  \"version\": \"// v1\", \"a\": [\n", "{\n  version: // v1, a: [\n", "{\n  \"url\": http://x, a: [\n"}) {
    const auto documents = lint(text);
    ASSERT_FALSE(documents[0].diagnostics.empty()) << text;
    EXPECT_EQ(documents[0].diagnostics[0].message.find("comment"), std::string::npos)
        << documents[0].diagnostics[0].message;
  }
}

}  // namespace
}  // namespace gso::lint_syntax_errors_test
