// Keys of a terminal: bytes to keys, however reads cut them.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "controller/commands/live/view.h"

namespace gso::live_keys_test {
namespace {

using Keys = std::vector<Key>;

struct Row {
  std::string_view what;
  std::string_view bytes;
  Keys keys;
};
// What xterm, the Linux console, rxvt, tmux and screen send, from their manuals.
const Row kRows[] = {
    {"letters",
     "jkgGer?q",
     {Key::down, Key::up, Key::first, Key::last, Key::open, Key::read_again, Key::help, Key::quit}},
    {"Enter, as it is and as a newline", "\r\n", {Key::open, Key::open}},
    {"cursor keys", "\x1b[A\x1b[B", {Key::up, Key::down}},
    {"cursor keys in application mode", "\x1bOA\x1bOB", {Key::up, Key::down}},
    {"Enter of the keypad in application mode", "\x1bOM", {Key::open}},
    {"Page Up and Page Down", "\x1b[5~\x1b[6~", {Key::page_up, Key::page_down}},
    {"Home and End of xterm", "\x1b[H\x1b[F\x1bOH\x1bOF", {Key::first, Key::last, Key::first, Key::last}},
    {"Home and End of tmux and the console", "\x1b[1~\x1b[4~", {Key::first, Key::last}},
    {"Home and End of rxvt", "\x1b[7~\x1b[8~", {Key::first, Key::last}},
    {"keys without a meaning", "xJ \t\x01\x7f", {}},
    {"other function keys", "\x1b[C\x1b[D\x1b[2~\x1b[3~\x1b[15~\x1bOP\x1b[Z", {}},
    {"cursor keys with Ctrl or Shift", "\x1b[1;5A\x1b[1;2Bj", {Key::down}},
    {"F1 of the console is not its last letter", "\x1b[[Aj", {Key::down}},
    {"a report of the mouse", "\x1b[<0;10;5Mk", {Key::up}},
    {"letters of other alphabets", "\xc3\xa4\xd0\xb9\xe2\x82\xacj", {Key::down}},
    {"Escape, and a letter that came with it", "\x1bq", {Key::back, Key::quit}},
    {"Escape twice, the second one open", "\x1b\x1b", {Key::back}},
    {"a sequence that another one interrupts", "\x1b[1\x1b[B", {Key::down}},
    {"a sequence without an end", "\x1b[1111111111111111111111111111111111111111111111111111111j", {Key::down}},
};

TEST(KeyDecoder, KnowsTheKeysOfTerminals) {
  for (const Row& row : kRows) {
    KeyDecoder decoder;
    EXPECT_EQ(decoder.decode(row.bytes), row.keys) << row.what;
  }
}

TEST(KeyDecoder, FindsTheSameKeysWhereverTheReadsEnd) {
  for (const Row& row : kRows) {
    for (std::size_t cut = 0; cut <= row.bytes.size(); ++cut) {
      KeyDecoder decoder;
      Keys keys = decoder.decode(row.bytes.substr(0, cut));
      for (const Key key : decoder.decode(row.bytes.substr(cut))) keys.push_back(key);
      EXPECT_EQ(keys, row.keys) << row.what << ", cut at " << cut;
    }
    KeyDecoder decoder;
    Keys keys;
    for (const char byte : row.bytes)
      for (const Key key : decoder.decode({&byte, 1})) keys.push_back(key);
    EXPECT_EQ(keys, row.keys) << row.what << ", byte by byte";
  }
}

TEST(KeyDecoder, AnEscapeIsAKeyOnceNothingFollows) {
  KeyDecoder decoder;
  EXPECT_EQ(decoder.decode("j\x1b"), Keys{Key::down});
  EXPECT_TRUE(decoder.escape_is_open());
  EXPECT_EQ(decoder.end_escape(), Keys{Key::back});
  EXPECT_FALSE(decoder.escape_is_open());
  EXPECT_EQ(decoder.end_escape(), Keys{});
  EXPECT_EQ(decoder.decode("j"), Keys{Key::down});
}

// Slow lines cut sequences: their end comes later than any wait.
TEST(KeyDecoder, ASequenceThatHasBegunIsNoEscape) {
  KeyDecoder decoder;
  EXPECT_EQ(decoder.decode("\x1b["), Keys{});
  EXPECT_FALSE(decoder.escape_is_open());
  EXPECT_EQ(decoder.end_escape(), Keys{});
  EXPECT_EQ(decoder.decode("B"), Keys{Key::down});
}

}  // namespace
}  // namespace gso::live_keys_test
