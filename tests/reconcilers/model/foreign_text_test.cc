// What others have written, within a line of ours.
#include "reconcilers/model/message_text.h"

#include <gtest/gtest.h>

namespace gso::foreign_text_test {
namespace {

TEST(ForeignText, NeverBeginsALine) {
  EXPECT_EQ(one_line("a\nb\tc"), "a\\nb\\tc");
  EXPECT_EQ(one_line("a\r\n\x1b[2J"), "a\\x0d\\n\\x1b[2J");
  EXPECT_EQ(one_line("a\xe2\x80\xa8"
                     "b\xe2\x80\xa9"
                     "c"),
            "a\\u2028b\\u2029c");
  EXPECT_EQ(one_line("a\u0085b"), "a\\x85b") << "NEL, which some terminals take for a line end";
  const std::string fine = "Grüße, 日本 … “quoted”";
  EXPECT_EQ(one_line(fine), fine);
  EXPECT_EQ(one_line(one_line("a\nb")), one_line("a\nb"));
}

TEST(ForeignText, IsCutAtTwoHundredAndFiftySixCharacters) {
  const std::string just(256, 'a');
  EXPECT_EQ(shown_value(just), just);
  EXPECT_EQ(shown_value(just + "b"), just + "...");
  EXPECT_EQ(shown_value(std::string(1 << 20, 'a')), just + "...");
  // Characters, not bytes, and never half of one.
  std::string wide;
  for (int i = 0; i < 256; ++i) wide += "ü";
  EXPECT_EQ(shown_value(wide), wide);
  EXPECT_EQ(shown_value(wide + "ü"), wide + "...");
}

TEST(ForeignText, IsCutBeforeItIsEscaped) {
  std::string escaped;
  for (int i = 0; i < 256; ++i) escaped += "\\n";
  EXPECT_EQ(shown_value(std::string(300, '\n')), escaped + "...") << "no escape is cut in two";
}

// Bytes that only continue a character count as no character at all.
TEST(ForeignText, IsCutAlsoWhereItIsNotUtf8) {
  EXPECT_LE(shown_value(std::string(1 << 20, '\x80')).size(), 4 * 4 * kMostValueCharacters + 3);
}

TEST(ForeignText, MessagesAndConditionsAreOneLine) {
  EXPECT_EQ(cut_message("the plugin said:\nAll is well"), "the plugin said:\\nAll is well");
  EXPECT_EQ(shown_message(std::string(1 << 20, 'a')).size(), kMostMessageCharacters + 3);
}

TEST(ForeignText, IsOneWordOfAShell) {
  EXPECT_EQ(shell_word("nvidia.com/gpu.product=A100-SXM4"), "nvidia.com/gpu.product=A100-SXM4");
  EXPECT_EQ(shell_word("x; reboot"), "'x; reboot'");
  EXPECT_EQ(shell_word("$(reboot)"), "'$(reboot)'");
  EXPECT_EQ(shell_word("it's `x`"), "'it'\\''s `x`'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(ForeignText, NamesInAListAreCut) {
  EXPECT_EQ(first_names({"a\nb", std::string(300, 'x')}), "a\\nb, " + std::string(256, 'x') + "...");
}

}  // namespace
}  // namespace gso::foreign_text_test
