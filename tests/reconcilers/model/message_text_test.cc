// Messages are cut where people stop reading and the API server refuses.
#include "reconcilers/model/message_text.h"

#include <gtest/gtest.h>

namespace gso {
namespace {

TEST(MessageText, IsCutAtALimitAndNeverWithinACharacter) {
  EXPECT_EQ(cut_message("short"), "short");
  const std::string just(1024, 'a');
  EXPECT_EQ(cut_message(just), just);
  const std::string cut = cut_message(just + "b");
  EXPECT_EQ(cut, std::string(1021, 'a') + "...");
  // "ü" has two bytes: the cut would be between them.
  const std::string wide = std::string(1020, 'a') + "\u00fc" + std::string(100, 'b');
  EXPECT_EQ(cut_message(wide), std::string(1020, 'a') + "...");
}

TEST(MessageText, NamesFiveAndCountsTheRest) {
  EXPECT_EQ(first_names({}), "");
  EXPECT_EQ(first_names({"a"}), "a");
  EXPECT_EQ(first_names({"a", "b", "c", "d", "e"}), "a, b, c, d, e");
  EXPECT_EQ(first_names({"a", "b", "c", "d", "e", "f", "g"}), "a, b, c, d, e and 2 more");
  EXPECT_EQ(first_names({"a", "b"}, 10), "a, b and 8 more") << "the others are not at hand";
}

}  // namespace
}  // namespace gso
