// In doubt a switch that stops the operator is on.
#include "reconcilers/model/policy.h"

#include <gtest/gtest.h>

namespace gso::switch_value_test {
namespace {

TEST(SwitchValue, IsOffOnlyWhereItSaysSo) {
  EXPECT_FALSE(is_switched_on(std::nullopt));
  for (const char* off : {"", "false", "False", "FALSE", "0", "no", "No", "off", "OFF"})
    EXPECT_FALSE(is_switched_on(off)) << off;
  for (const char* on : {"true", "True", "TRUE", "1", "yes", "on", "treu", "10m", " ", "00", "falsee", "n"})
    EXPECT_TRUE(is_switched_on(on)) << on;
}

TEST(SwitchValue, SaysNoInAnyCase) {
  for (const char* no : {"false", "False", "0", "NO", "Off"}) EXPECT_TRUE(says_no(no)) << no;
  for (const char* other : {"", "true", "1", "never"}) EXPECT_FALSE(says_no(other)) << other;
}

}  // namespace
}  // namespace gso::switch_value_test
