// Texts of ours and of others within a line: cut where people stop reading and the API server refuses.
#include "reconcilers/model/message_text.h"

#include <gtest/gtest.h>

namespace gso::message_text_test {
namespace {

// So many times the character, and what follows.
std::string many(std::size_t count, char character, std::string_view then = {}) {
  std::string out(count, character);
  out.append(then);
  return out;
}

TEST(MessageText, IsCutAtALimitAndNeverWithinACharacter) {
  EXPECT_EQ(cut_message("short"), "short");
  const std::string just = many(1024, 'a');
  EXPECT_EQ(cut_message(just), just);
  const std::string cut = cut_message(many(1024, 'a', "b"));
  EXPECT_EQ(cut, many(1021, 'a', "..."));
  // "ü" has two bytes: the cut would be between them.
  const std::string wide = many(1020, 'a', "\u00fc") + many(100, 'b');
  EXPECT_EQ(cut_message(wide), many(1020, 'a', "..."));
}

TEST(MessageText, BeginsWithWholeCharacters) {
  EXPECT_EQ(first_bytes("aé€", 8), "aé€");
  EXPECT_EQ(first_bytes("aé€", 5), "aé") << "the euro sign has three bytes";
  EXPECT_EQ(first_bytes("aé€", 2), "a");
  EXPECT_EQ(first_bytes("aé€", 0), "");
  EXPECT_EQ(first_characters("aé€", 3), "aé€");
  EXPECT_EQ(first_characters("aé€", 2), "aé");
  EXPECT_EQ(first_characters("aé€", 0), "");
}

TEST(MessageText, EndsWithWholeCharacters) {
  EXPECT_EQ(last_bytes("abc", 5), "abc");
  EXPECT_EQ(last_bytes("abc", 2), "bc");
  EXPECT_EQ(last_bytes("a\u20ac!", 4), "\u20ac!");
  EXPECT_EQ(last_bytes("a\u20ac!", 3), "!") << "not the end of a character";
  EXPECT_EQ(last_bytes("", 3), "");
}

TEST(MessageText, HasNoControlCharacters) {
  const std::string fine = "a\tb\nGr\u00fc\u00dfe \u65e5\u672c \U0001f600 \\x1b \u2026 \u2065";
  EXPECT_EQ(printable(fine), fine) << "UTF-8 stays as it is";
  EXPECT_EQ(printable("\x1b[31mred\x07\x7f\r"), "\\x1b[31mred\\x07\\x7f\\x0d");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\u009b31m and \x9b"), "\\x9b31m and \\x9b") << "C1, in UTF-8 and alone";
  EXPECT_EQ(printable("\xe2\x80\xae!\xe2\x80\xaa\xe2\x81\xa6\xe2\x81\xa9"), "\\u202e!\\u202a\\u2066\\u2069");
  EXPECT_EQ(printable("in\u200bvisible \u200e\u200f \u061c \u2060 \u00ad \ufeff"),
            "in\\u200bvisible \\u200e\\u200f \\u061c \\u2060 \\xad \\ufeff");
  EXPECT_EQ(printable(printable("\x1b")), printable("\x1b"));
  EXPECT_EQ(printable("cut \xe2\x80"), "cut \xe2\x80") << "half a character is the other end's business";
  EXPECT_EQ(cut_message("\x1b"), "\\x1b");
  EXPECT_EQ(cut_message(many(1023, 'a', "\x1b")), many(1021, 'a', "...")) << "escaped, then cut";
}

TEST(MessageText, NamesFiveAndCountsTheRest) {
  EXPECT_EQ(first_names({}), "");
  EXPECT_EQ(first_names({"a"}), "a");
  EXPECT_EQ(first_names({"a", "b", "c", "d", "e"}), "a, b, c, d, e");
  EXPECT_EQ(first_names({"a", "b", "c", "d", "e", "f", "g"}), "a, b, c, d, e and 2 more");
  EXPECT_EQ(first_names({"a", "b"}, 10), "a, b and 8 more") << "the others are not at hand";
}

TEST(MessageText, CountsOneThingAndSeveral) {
  EXPECT_EQ(counted(1, "node"), "1 node");
  EXPECT_EQ(counted(0, "GPU"), "0 GPUs");
  EXPECT_EQ(counted(std::size_t{2}, "more node"), "2 more nodes");
}

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
}  // namespace gso::message_text_test
