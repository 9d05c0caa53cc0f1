// How far two words are apart, as far as advice needs to know.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "reconcilers/profile/field_names.h"

namespace gso::edits_test {
namespace {

TEST(Edits, AreCountedAlikeInFullAndUpToABound) {
  std::mt19937 random(7);  // NOLINT: the same words in every run.
  const auto word = [&random] {
    std::string out;
    for (auto letters = random() % 9; letters > 0; --letters) out += "abAB-_"[random() % 6];
    return out;
  };
  for (int i = 0; i < 20000; ++i) {
    const std::string left = word();
    const std::string right = word();
    const std::size_t distance = edit_distance(left, right);
    for (std::size_t most = 0; most < 5; ++most)
      ASSERT_EQ(within_edits(left, right, most), distance <= most) << left << " " << right << " " << most;
  }
}

TEST(Edits, OfLongWordsAndOfNoneAreCountedToo) {
  const std::string longest(200, 'x');
  EXPECT_TRUE(within_edits(longest, longest + "y", 0)) << "only the first 64 characters count";
  EXPECT_FALSE(within_edits(longest, "", 63));
  EXPECT_TRUE(within_edits("", "", 0));
  EXPECT_TRUE(within_edits("gpu.fraction", "gpu-fraction", 0, "-_."));
  EXPECT_FALSE(within_edits("gpu.fraction", "gpu-fraction", 0));
}

}  // namespace
}  // namespace gso::edits_test
