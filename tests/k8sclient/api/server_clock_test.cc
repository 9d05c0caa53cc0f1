#include "k8sclient/server_clock.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

#include "tests/sim/sim_clock.h"

namespace k8s::server_clock_test {
namespace {

using namespace std::chrono_literals;

constexpr const char* kNoon = "Thu, 01 Jan 2026 12:00:00 GMT";

class ServerClockTest : public testing::Test {
 protected:
  boost::asio::io_context io;
  gso::sim::SimClock own{io, *parse_http_date(kNoon)};
  ServerClock clock{&own};
};

TEST_F(ServerClockTest, IsTheMachinesOwnUntilAServerHasAnswered) {
  own.jump_wall_clock(-1h);
  EXPECT_EQ(clock.now(), own.now());
  clock.answered("");
  clock.answered("yesterday");
  EXPECT_EQ(clock.now(), own.now());
}

TEST_F(ServerClockTest, IsTheMachinesOwnWhereBothDifferBySeconds) {
  clock.answered("Thu, 01 Jan 2026 12:00:07 GMT");
  EXPECT_EQ(clock.now(), own.now());
}

TEST_F(ServerClockTest, IsTheServersWhereTheMachinesIsWrong) {
  own.jump_wall_clock(-1h);
  clock.answered(kNoon);
  EXPECT_EQ(clock.now(), *parse_http_date(kNoon));
  own.run_for(90s);
  EXPECT_EQ(clock.now(), *parse_http_date(kNoon) + 90s);
}

TEST_F(ServerClockTest, GoesOnWhenTheMachinesClockIsSet) {
  clock.answered(kNoon);
  own.run_for(60s);
  own.jump_wall_clock(1h);
  EXPECT_EQ(clock.now(), *parse_http_date(kNoon) + 60s);
  own.jump_wall_clock(-1h);
  EXPECT_EQ(clock.now(), own.now());
}

TEST_F(ServerClockTest, DoesNotJumpWithTheSecondsOfEachAnswer) {
  own.jump_wall_clock(-1h);
  clock.answered(kNoon);
  own.run_for(1500ms);
  clock.answered("Thu, 01 Jan 2026 12:00:01 GMT");
  EXPECT_EQ(clock.now(), *parse_http_date(kNoon) + 1500ms);
}

TEST_F(ServerClockTest, FollowsAServerWhoseClockIsSet) {
  clock.answered(kNoon);
  own.run_for(60s);
  clock.answered("Thu, 01 Jan 2026 11:01:00 GMT");
  EXPECT_EQ(clock.now(), *parse_http_date(kNoon) - 1h + 60s);
}

}  // namespace
}  // namespace k8s::server_clock_test
