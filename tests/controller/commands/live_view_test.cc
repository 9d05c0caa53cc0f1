// A live view without a terminal: which node is selected, what is on the screen, and what the keys do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "controller/commands/live/view.h"

namespace gso::live_view_test {
namespace {

using testing::HasSubstr;
using testing::Not;

// A line for each word: "a" is about node a, "a@r" about node a under rollout r, "-" is text.
std::vector<LiveLine> tree(const std::string& words) {
  std::vector<LiveLine> out;
  std::istringstream all(words);
  for (std::string word; all >> word;) {
    if (word == "-") {
      out.push_back({"text"});
      continue;
    }
    const std::size_t at = word.find('@');
    out.push_back({"line of " + word, word.substr(0, at), at == std::string::npos ? "" : word.substr(at + 1)});
  }
  return out;
}

Key key_of(char letter) {
  switch (letter) {
    case 'k':
      return Key::up;
    case 'j':
      return Key::down;
    case 'u':
      return Key::page_up;
    case 'd':
      return Key::page_down;
    case 'g':
      return Key::first;
    default:
      return Key::last;
  }
}

// "b 2": node b is selected, and the third line is the first one on the screen.
std::string state_of(const Selection& selection) {
  return (selection.node() == nullptr ? "none" : *selection.node()) + " " + std::to_string(selection.top());
}

TEST(Selection, FollowsTheKeys) {
  struct Row {
    std::string what, lines;
    std::size_t rows;
    std::string keys;  // k up, j down, u page up, d page down, g first, G last
    std::string state;
  };
  const Row rows[] = {
      {"the first node at first", "- a b", 9, "", "a 0"},
      {"down and up", "a b c", 9, "jjk", "b 0"},
      {"text between nodes is passed over", "a - - b", 9, "j", "b 0"},
      {"not beyond the ends", "a b", 9, "kkjjj", "b 0"},
      {"first and last", "a b c d", 9, "Gg", "a 0"},
      {"the screen scrolls with it", "a b c d e", 3, "jjj", "d 1"},
      {"and back, one line at a time", "a b c d e", 3, "jjjjkk", "c 2"},
      {"above the screen", "a b c d e", 3, "jjjjkkk", "b 1"},
      {"pages overlap by one line", "a b c d e f g h", 4, "d", "d 0"},
      {"two pages", "a b c d e f g h", 4, "dd", "g 3"},
      {"pages end at the last node", "a b c d e f g h", 4, "ddddd", "h 4"},
      {"and at the first one", "a b c d e f g h", 4, "ddduuuu", "a 0"},
      {"the heading of the first node comes back", "- - a b c d e", 4, "Gkkkk", "a 0"},
      {"text after the last node is scrolled to", "a b - - - -", 3, "jjj", "b 2"},
      {"until its end", "a b - - - -", 3, "jjjjjjjjj", "b 3"},
      {"up shows the selection again", "a b - - - -", 3, "jjjjjjk", "a 0"},
      {"last shows the end of the text", "a b - - - -", 3, "G", "b 3"},
      {"without nodes keys scroll", "- - - - -", 3, "jjj", "none 2"},
      {"by pages", "- - - - - - - -", 3, "d", "none 2"},
      {"to the end and the beginning", "- - - - -", 3, "GGk", "none 1"},
      {"nothing", "", 3, "jkudgG", "none 0"},
      {"a screen of one row", "a b c", 1, "jd", "c 2"},
  };
  for (const Row& row : rows) {
    Selection selection;
    selection.follow(tree(row.lines), row.rows);
    for (const char letter : row.keys) selection.move(key_of(letter));
    EXPECT_EQ(state_of(selection), row.state) << row.what;
  }
}

TEST(Selection, StaysOnItsNodeWhenTheTreeChanges) {
  struct Row {
    std::string what, before;
    std::size_t rows;
    std::string keys, after, state;
  };
  const Row rows[] = {
      {"a node joins before it", "a b", 9, "j", "a aa b", "b 0"},
      {"nodes are sorted anew", "a b c", 9, "j", "b c a", "b 0"},
      {"it leaves: the one that came after it", "a b c", 9, "j", "a c", "c 0"},
      {"also where that has another place", "a b c", 9, "j", "c d a", "c 0"},
      {"the last one leaves: the one before it", "a b c", 9, "jj", "a b", "b 0"},
      {"it leaves with the one after it", "a b c d", 9, "j", "a d", "d 0"},
      {"all leave, others come", "a b", 9, "j", "x y", "x 0"},
      {"all leave", "a b", 9, "j", "-", "none 0"},
      {"nodes come at last", "-", 9, "", "- a", "a 0"},
      {"it moves to another rollout", "a@r b@r", 9, "j", "b@s a@r", "b 0"},
      {"it stays on the screen", "a b c d e", 3, "j", "a x y z b c", "b 2"},
      {"the tree becomes shorter than what was scrolled", "a b c d e f", 3, "G", "f", "f 0"},
      {"what was scrolled while it is on the screen stays", "- a - - - -", 3, "j", "- a - - - -", "a 1"},
      {"text that was scrolled to stays", "a b - - - -", 3, "G", "a b - - - - -", "b 3"},
  };
  for (const Row& row : rows) {
    Selection selection;
    selection.follow(tree(row.before), row.rows);
    for (const char letter : row.keys) selection.move(key_of(letter));
    selection.follow(tree(row.after), row.rows);
    EXPECT_EQ(state_of(selection), row.state) << row.what;
  }
}

// A node under two rollouts has two lines, and neither key stops between them.
TEST(Selection, TellsTheLinesOfANodeUnderTwoRolloutsApart) {
  Selection selection;
  const std::vector<LiveLine> lines = tree("- a@r - a@s b@s");
  selection.follow(lines, 9);
  selection.move(Key::down);
  EXPECT_EQ(selection.line(), 3U);
  selection.follow(lines, 9);
  EXPECT_EQ(selection.line(), 3U);
  selection.move(Key::down);
  EXPECT_EQ(state_of(selection), "b 0");
}

TEST(LiveLines, KeepTheTextAsItIs) {
  std::vector<LiveLine> lines;
  append_text(lines, "a\n\nb\nc\n", "node", "rollout");
  EXPECT_EQ(lines, (std::vector<LiveLine>{{"a", "node", "rollout"}, {""}, {"b"}, {"c"}}));
  EXPECT_EQ(text_of(lines), "a\n\nb\nc\n");
}

TEST(LiveLines, AreWrappedBetweenWords) {
  const auto text = [](std::string_view of, std::size_t columns) { return wrapped(of, columns); };
  EXPECT_EQ(text("one two three\n", 0), "one two three\n");
  EXPECT_EQ(text("one two three\n", 13), "one two three\n");
  EXPECT_EQ(text("one two three\n", 8), "one two\n  three\n");
  EXPECT_EQ(text("  - one two three\n", 10), "  - one\n    two\n    three\n") << "below the text";
  EXPECT_EQ(text("abcdefghij\n", 6), "abcdef\n  ghij\n") << "a word that has no room";
  EXPECT_EQ(text("ääääää ä\n", 7), "ääääää\n  ä\n") << "columns, not bytes";
  EXPECT_EQ(text("one \n", 3), "one\n");
  EXPECT_EQ(text("a\tb\n\nc\n", 9), "a b\n\nc\n");
  EXPECT_EQ(text("abc\n", 1), "a\nb\nc\n");
  EXPECT_EQ(text("a   Draining   it waits for pods\n", 24), "a   Draining   it waits\n  for pods\n") << "no room below";
  EXPECT_EQ(text("  a   -   it waits for pods\n", 20), "  a   -   it waits\n          for pods\n") << "below the cell";
}

// A broken command cannot be pasted: the terminal breaks it.
TEST(LiveLines, AreNotWrappedWhereTheyAreCommands) {
  const std::string commands =
      "  next: kubectl logs plugin-1 --previous\n    gpu-sharing-operator rollout start default\nhelm list --namespace "
      "a\n";
  EXPECT_EQ(wrapped_prose("one two three\n" + commands, 8), "one two\n  three\n" + commands);
}

TEST(LiveLines, AreNotWrappedWithinACommandThatASentenceQuotes) {
  EXPECT_EQ(wrapped_prose("remove it: `kubectl label node n1 a-`, or wait\n", 24),
            "remove it:\n  `kubectl label node n1 a-`,\n  or wait\n");
  EXPECT_EQ(wrapped_prose("set `workloads: Evict` (for pods `rollout.x: true`)\n", 22),
            "set `workloads: Evict`\n  (for pods\n  `rollout.x: true`)\n");
  EXPECT_EQ(wrapped_prose("`kubectl get pods --namespace a` says why\n", 12),
            "`kubectl get pods --namespace a`\n  says why\n");
  EXPECT_EQ(wrapped_prose("no leader. Run: kubectl get pods --namespace gpu-sharing-operator\n", 30),
            "no leader. Run:\n  kubectl get pods --namespace gpu-sharing-operator\n");
  EXPECT_EQ(wrapped_prose("  a   it`s what it is, so\n", 16), "  a   it`s what\n      it is, so\n") << "no quote";
  EXPECT_EQ(wrapped("see `kubectl get pods`\n", 12), "see `kubectl\n  get pods`\n") << "a page has no longer lines";
}

struct LiveViewTest : testing::Test {
  LiveView view{{.columns = 60, .rows = 5, .colour = false, .utf8 = false}};

  // The rows of the page as a person sees them.
  std::vector<std::string> rows() const {
    std::string page = view.page();
    EXPECT_THAT(page, testing::StartsWith("\x1b[H"));
    EXPECT_THAT(page, testing::EndsWith("\x1b[K\x1b[J"));
    page.erase(0, 3);
    page.erase(page.size() - 6);
    std::vector<std::string> out;
    std::size_t at = 0;
    for (std::size_t end = 0; (end = page.find("\x1b[K\n", at)) != std::string::npos; at = end + 4)
      out.push_back(page.substr(at, end - at));
    out.push_back(page.substr(at));
    EXPECT_THAT(out, testing::Each(Not(HasSubstr("\x1b"))));
    return out;
  }
};

TEST_F(LiveViewTest, MarksTheSelectedNodeAndNamesTheKeysInTheLastRow) {
  view.show(tree("- a b"));
  EXPECT_EQ(view.press(Key::down), LiveView::Ask::nothing);
  EXPECT_THAT(rows(), testing::ElementsAre("  text", "  line of a", "> line of b", "",
                                           "?: keys  q: quit  Up/Down: select  Enter: explain b"));
  view.show(tree("- a b c d e"));
  EXPECT_EQ(rows().back(), "?: keys  q: quit  Up/Down: select  Enter: explain b  line...");
  view.show({{"nothing"}});
  EXPECT_EQ(rows().back(), "?: keys  q: quit");
  EXPECT_EQ(view.press(Key::open), LiveView::Ask::nothing) << "no node is selected";
}

TEST_F(LiveViewTest, WithColourTheSelectedLineIsReversed) {
  view.resize({.columns = 40, .rows = 5, .colour = true, .utf8 = false});
  view.show({{"\x1b[31mred\x1b[0m", "a"}, {"\x1b[31mred\x1b[0m", "b"}});
  EXPECT_THAT(view.page(), HasSubstr("\x1b[H\x1b[7m> red\x1b[0m\x1b[K\n  \x1b[31mred\x1b[0m\x1b[K\n"));
}

TEST_F(LiveViewTest, OpensAnExplanationAndGoesBackToTheSameNode) {
  view.show(tree("a b c"));
  EXPECT_EQ(view.press(Key::down), LiveView::Ask::nothing);
  EXPECT_EQ(view.press(Key::open), LiveView::Ask::explain);
  EXPECT_EQ(view.asked_node(), "b");
  EXPECT_EQ(rows().front(), "Reading the cluster to explain node b ...");
  view.show_explanation("node b: Pending\n1\n2\n3\n4\n5\n", "08:00");
  EXPECT_THAT(rows(), testing::ElementsAre("node b: Pending", "1", "2", "3",
                                           "?: keys  q: back  r: read again  Up/Down: scroll  read at..."));
  EXPECT_EQ(view.press(Key::down), LiveView::Ask::nothing);
  EXPECT_EQ(rows().front(), "1");
  view.show(tree("b c"));
  EXPECT_EQ(rows().front(), "1") << "the tree changes behind it";
  EXPECT_EQ(view.press(Key::open), LiveView::Ask::nothing);
  EXPECT_EQ(view.press(Key::last), LiveView::Ask::nothing);
  EXPECT_EQ(rows()[3], "5");
  for (const Key back : {Key::quit, Key::back}) {
    EXPECT_EQ(view.press(back), LiveView::Ask::forget);
    EXPECT_EQ(rows().front(), "> line of b");
    EXPECT_EQ(view.press(Key::open), LiveView::Ask::explain);
  }
}

TEST_F(LiveViewTest, ReadsTheClusterAgainAndKeepsThePlaceInTheText) {
  view.resize({.columns = 80, .rows = 5, .colour = false, .utf8 = false});
  view.show(tree("a"));
  EXPECT_EQ(view.press(Key::open), LiveView::Ask::explain);
  view.show_explanation("1\n2\n3\n4\n5\n6\n", "08:00");
  EXPECT_EQ(view.press(Key::down), LiveView::Ask::nothing);
  EXPECT_EQ(view.press(Key::read_again), LiveView::Ask::explain);
  EXPECT_EQ(rows().front(), "2");
  EXPECT_THAT(rows().back(), HasSubstr("  reading  lines 2-5 of 6"));
  view.show_explanation("1\ntwo\n3\n4\n5\n6\n", "08:01");
  EXPECT_EQ(rows().front(), "two");
  EXPECT_THAT(rows().back(), HasSubstr("  read at 08:01  lines 2-5 of 6"));
}

TEST_F(LiveViewTest, AnAnswerThatNobodyWaitsForIsNotShown) {
  view.show(tree("a"));
  view.show_explanation("node a: Pending\n", "08:00");
  EXPECT_EQ(rows().front(), "> line of a");
}

TEST_F(LiveViewTest, TheKeysAreShownAboveEverything) {
  view.resize({.columns = 90, .rows = 25, .colour = false, .utf8 = false});
  view.show(tree("a"));
  EXPECT_EQ(view.press(Key::help), LiveView::Ask::nothing);
  EXPECT_EQ(rows().front(), "In the list of nodes");
  EXPECT_EQ(view.press(Key::open), LiveView::Ask::nothing);
  EXPECT_EQ(view.press(Key::quit), LiveView::Ask::nothing) << "it leaves the keys";
  EXPECT_EQ(rows().front(), "> line of a");
  EXPECT_EQ(view.press(Key::open), LiveView::Ask::explain);
  EXPECT_EQ(view.press(Key::help), LiveView::Ask::nothing);
  view.show_explanation("node a: Pending\n", "08:00");
  EXPECT_EQ(rows().front(), "In the list of nodes");
  EXPECT_EQ(view.press(Key::help), LiveView::Ask::nothing);
  EXPECT_EQ(rows().front(), "node a: Pending");
}

TEST_F(LiveViewTest, EndsByItsKeyInTheTreeOnly) {
  view.show(tree("a"));
  EXPECT_EQ(view.press(Key::back), LiveView::Ask::nothing) << "one Escape too many";
  EXPECT_EQ(view.press(Key::quit), LiveView::Ask::quit);
}

TEST_F(LiveViewTest, FitsAnotherSizeOfTheScreen) {
  view.show(tree("a b c d e f"));
  EXPECT_EQ(view.press(Key::last), LiveView::Ask::nothing);
  view.resize({.columns = 8, .rows = 3, .colour = false, .utf8 = false});
  EXPECT_THAT(rows(), testing::ElementsAre("  lin...", "> lin...", "?: ke..."));
  EXPECT_EQ(view.room().columns, 6U);
  view.resize({});
  EXPECT_EQ(rows().size(), 3U) << "a terminal that is gone has no other size";
}

// A node can have any text as its name where an API server does not check it.
TEST_F(LiveViewTest, NamesAreEscaped) {
  view.show({{"x", "a\x1b[2J"}});
  EXPECT_THAT(rows().back(), HasSubstr("Enter: explain a\\x1b[2J"));
  EXPECT_EQ(view.press(Key::open), LiveView::Ask::explain);
  EXPECT_EQ(rows().front(), "Reading the cluster to explain node a\\x1b[2J ...");
}

}  // namespace
}  // namespace gso::live_view_test
