// What is no YAML, or no profile, because of how it is written: where lint points, and what it says.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

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

const std::string kMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  any:";

TEST(LintSyntaxErrors, AProfileThatIsNotIndentedBelowItsKeyIsExplained) {
  const auto documents = lint(kMap + " |\n  version: v1\n  sharing:\n    timeSlicing: {}\n");
  ASSERT_EQ(documents.size(), 3u);
  EXPECT_EQ(documents[1].key, "sharing");
  ASSERT_EQ(codes(documents[1]), Codes{"WrongType"});
  EXPECT_TRUE(documents[1].diagnostics[0].message.contains("indent it deeper than the profile's key"));
}

TEST(LintSyntaxErrors, AProfileThatIsNoTextIsToldToBeginAsOne) {
  const std::string text = kMap + "\n    version: v1\n    sharing:\n      timeSlicing: {}\n";
  EXPECT_EQ(codes_of(text), Codes{"WrongType"});
  EXPECT_TRUE(first_message(text).ends_with("; begin it with \"|\"")) << first_message(text);
}

TEST(LintSyntaxErrors, AFoldedProfileIsNamedAsTheCauseOfItsError) {
  const std::string rest = "\n    version: v1\n    sharing:\n      mps: null\n";
  EXPECT_EQ(codes_of(kMap + " >-" + rest), Codes{"SyntaxError"});
  EXPECT_TRUE(first_message(kMap + " >-" + rest).contains("joins its lines: begin it with \"|\""));
  EXPECT_TRUE(lint(kMap + " |-" + rest)[0].valid());
}

// As editors write settings. What YAML makes of a comment would be reported elsewhere, or lines later.
TEST(LintSyntaxErrors, ACommentInJsonIsReportedWhereItBegins) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"// a profile\n{\n  \"version\": \"v1\"\n}\n", "1:1"},
      {"/* a profile\n*/\n{\n  \"version\": \"v1\"\n}\n", "1:1"},
      {"{ // a profile\n  \"version\": \"v1\"\n}\n", "1:3"},
      {"{\n  \"version\": \"v1\", // the only one\n  \"sharing\": {}\n}\n", "2:20"},
      {"{\n  \"version\": \"v1\" // the only one\n}\n", "2:19"},
      {"{\n  \"version\": \"v1\", // why?\n  \"sharing\": {}\n}\n", "2:20"},
      {"{\n  // none\n  \"sharing\": {\"mps\": null}\n}\n", "2:3"},
      {"a: b\n---\n{\n  \"version\": \"v1\", // the only one\n  \"sharing\": {}\n}\n", "4:20"},
      {"{\"apiVersion\": \"v1\",\n // it swallows the kind\n \"kind\":\"Node\", \"metadata\": {\"name\": \"a\"}}\n",
       "2:2"},
  };
  for (const auto& [text, at] : table) {
    const LintedDocument last = lint(text).back();
    EXPECT_TRUE(told({last})[0].ends_with(" Profile: error UnsupportedYAML " + at)) << text << told({last})[0];
    EXPECT_TRUE(
        last.diagnostics.at(0).message.starts_with("JSON has no comments; remove the comment that begins here with `/"))
        << text;
  }
}

// Two slashes in a string, or in a word of YAML, are no comment.
TEST(LintSyntaxErrors, SlashesThatBeginNoCommentAreNotBlamed) {
  for (const std::string text :
       {"{\n  \"version\": \"// v1\", \"a\": [\n", "{\n  version: // v1, a: [\n", "{\n  \"url\": http://x, a: [\n"})
    EXPECT_FALSE(first_message(text).empty() || first_message(text).contains("comment")) << first_message(text);
}

}  // namespace
}  // namespace gso::lint_syntax_errors_test
