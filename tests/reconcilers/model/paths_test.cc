#include "reconcilers/model/foreign_names.h"

#include <gtest/gtest.h>

namespace gso::paths_test {
namespace {

TEST(CleanPath, HasOneSpellingForOnePath) {
  EXPECT_EQ(clean_path("/run//nvidia/./mps/"), "/run/nvidia/mps");
  EXPECT_EQ(clean_path("run/nvidia"), "run/nvidia");
  EXPECT_EQ(clean_path("//"), "/");
  EXPECT_EQ(clean_path(""), "");
}

TEST(IsAtOrBelow, ComparesWholeParts) {
  EXPECT_TRUE(is_at_or_below("/tmp/nvidia-mps", "/tmp/nvidia-mps"));
  EXPECT_TRUE(is_at_or_below("/tmp/nvidia-mps/pipe", "/tmp/nvidia-mps"));
  EXPECT_TRUE(is_at_or_below("/tmp", "/"));
  EXPECT_FALSE(is_at_or_below("/tmp/nvidia-mps-logs", "/tmp/nvidia-mps"));
  EXPECT_FALSE(is_at_or_below("/tmp", "/tmp/nvidia-mps"));
}

}  // namespace
}  // namespace gso::paths_test
