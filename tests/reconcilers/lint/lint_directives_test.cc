// Directives (%YAML, %TAG) belong to the document that follows them.
#include <gtest/gtest.h>

#include <string>

#include "tests/reconcilers/lint/linted.h"

namespace gso::lint_test::lint_directives_test {
namespace {

const std::string kProfile =
    "version: v1\nsharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 4}\n";

TEST(LintDirectives, AreNoDocumentOfTheirOwn) {
  const auto documents = lint("%YAML 1.2\n---\n" + kProfile);
  ASSERT_EQ(documents.size(), 1U);
  EXPECT_EQ(codes(documents[0]), Codes{"SyntaxError"});
  EXPECT_EQ(documents[0].diagnostics[0].line, 1);
  EXPECT_FALSE(documents[0].profile) << "the plugin refuses the whole document";
}

TEST(LintDirectives, HideNoOtherMistakeOfTheirDocument) {
  const auto documents = lint("# a comment\n%YAML 1.2\n\n---\nversion: v1\nsharings: {}\n");
  ASSERT_EQ(documents.size(), 1U);
  EXPECT_EQ(codes(documents[0]), (Codes{"SyntaxError", "UnknownField"}));
  EXPECT_EQ(documents[0].diagnostics[0].line, 2);
  EXPECT_EQ(documents[0].diagnostics[1].line, 6);
}

TEST(LintDirectives, OfAManifestAreItsOwn) {
  const auto documents = lint("%YAML 1.2\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {}\n");
  ASSERT_EQ(documents.size(), 1U);
  EXPECT_EQ(documents[0].kind, "Pod");
  EXPECT_EQ(codes(documents[0])[0], "SyntaxError");
}

TEST(LintDirectives, OfALaterDocumentLeaveTheFirstAlone) {
  const auto documents = lint(kProfile + "...\n%YAML 1.2\n---\n" + kProfile);
  ASSERT_EQ(documents.size(), 2U);
  EXPECT_EQ(codes(documents[0]), Codes{"FurtherDocumentIgnored"});
  EXPECT_EQ(codes(documents[1]), Codes{"SyntaxError"});
}

TEST(LintDirectives, BeforeNothingAreADocument) {
  for (const char* text : {"%YAML 1.2\n---\n", "%YAML 1.2\n--- # nothing\n"}) {
    const auto documents = lint(text);
    ASSERT_EQ(documents.size(), 1U) << text;
    EXPECT_EQ(codes(documents[0]), Codes{"SyntaxError"}) << text;
  }
}

// A line of content that begins with '%' is none, and what follows its document has no part in it.
TEST(LintDirectives, AreNotLinesOfContent) {
  const auto documents = lint("version: v1\n%YAML 1.2\n---\n" + kProfile);
  ASSERT_EQ(documents.size(), 2U);
  EXPECT_EQ(codes(documents[0]), Codes{"FurtherTextIgnored"});
  EXPECT_EQ(codes(documents[1]), Codes{});
}

TEST(LintDirectives, CostNoMoreTheMoreThereAre) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "%YAML 1.2\n---\n" + kProfile + "...\n";
  const auto documents = lint(text);
  ASSERT_EQ(documents.size(), 300U);
  for (const LintedDocument& document : documents) EXPECT_EQ(codes(document)[0], "SyntaxError");
}

}  // namespace
}  // namespace gso::lint_test::lint_directives_test
