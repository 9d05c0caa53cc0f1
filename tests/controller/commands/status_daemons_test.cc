// What `status` shows of standalone MPS daemons.
#include "controller/commands/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace gso::status_daemons_test {
namespace {

const DaemonProgress kDaemon{"gso/mps", false, "7c9d", 4, 2, {"n03"}, {"n01"}, {}, {"n04"}};

TEST(StatusOfDaemons, NamesTheNodesThatAreNotDone) {
  std::ostringstream out;
  print_daemons({kDaemon}, 0, out);
  EXPECT_THAT(out.str(),
              testing::ContainsRegex("STANDALONE-MPS +MODE +TEMPLATE +PROGRESS\n"
                                     "gso/mps +run +7c9d +\\[.*\\] 2/4, in progress: n03, deferred: n01, pinning the "
                                     "driver: n04\n"));
}

TEST(StatusOfDaemons, IsSilentWithoutThem) {
  std::ostringstream out;
  print_daemons({}, 0, out);
  EXPECT_EQ(out.str(), "");
}

TEST(StatusOfDaemons, IsAListForPrograms) {
  EXPECT_EQ(daemons_json({kDaemon}).dump(),
            R"([{"daemonSet":"gso/mps","mode":"run","template":"7c9d","updated":2,"total":4,"inProgress":["n03"],)"
            R"("deferred":["n01"],"notReady":[],"pinsDriver":["n04"]}])");
}

}  // namespace
}  // namespace gso::status_daemons_test
