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

TEST_F(ServerClockTest, IsTheServersOnceAllAnswersOfAMinuteContradictTheMachines) {
  own.jump_wall_clock(-1h);
  const WallTime wrong = own.now();
  clock.answered(kNoon);
  own.run_for(59s);
  clock.answered("Thu, 01 Jan 2026 12:00:59 GMT");
  EXPECT_EQ(clock.now(), wrong + 59s);
  own.run_for(1s);
  clock.answered("Thu, 01 Jan 2026 12:01:00 GMT");
  EXPECT_EQ(clock.now(), *parse_http_date(kNoon) + 60s);
  own.run_for(90s);
  EXPECT_EQ(clock.now(), *parse_http_date(kNoon) + 150s);
}

TEST_F(ServerClockTest, GoesOnWhenTheMachinesClockIsSet) {
  clock.answered(kNoon);
  own.run_for(60s);
  own.jump_wall_clock(1h);
  EXPECT_EQ(clock.now(), *parse_http_date(kNoon) + 60s);
  own.jump_wall_clock(-1h);
  EXPECT_EQ(clock.now(), own.now());
}

TEST_F(ServerClockTest, FollowsAMachineThatIsSetRight) {
  own.jump_wall_clock(-1h);
  clock.answered(kNoon);
  own.run_for(60s);
  clock.answered("Thu, 01 Jan 2026 12:01:00 GMT");
  own.jump_wall_clock(1h);
  own.run_for(1500ms);
  clock.answered("Thu, 01 Jan 2026 12:01:01 GMT");
  EXPECT_EQ(clock.now(), own.now());
}

TEST_F(ServerClockTest, IsTheMachinesOwnWhileOneOfSeveralServersAgrees) {
  const char* const hour_ahead[] = {"Thu, 01 Jan 2026 13:00:00 GMT", "Thu, 01 Jan 2026 13:00:50 GMT",
                                    "Thu, 01 Jan 2026 13:01:40 GMT", "Thu, 01 Jan 2026 13:02:30 GMT"};
  const char* const right[] = {kNoon, "Thu, 01 Jan 2026 12:00:50 GMT", "Thu, 01 Jan 2026 12:01:40 GMT",
                               "Thu, 01 Jan 2026 12:02:30 GMT"};
  for (std::size_t i = 0; i < 4; ++i) {
    clock.answered(hour_ahead[i]);
    EXPECT_EQ(clock.now(), own.now()) << i;
    clock.answered(right[i]);
    EXPECT_EQ(clock.now(), own.now()) << i;
    own.run_for(50s);
  }
}

TEST_F(ServerClockTest, DoesNotJumpWithTheSecondsOfEachAnswer) {
  own.jump_wall_clock(-1h);
  clock.answered(kNoon);
  own.run_for(60s);
  clock.answered("Thu, 01 Jan 2026 12:01:00 GMT");
  own.run_for(1500ms);
  clock.answered("Thu, 01 Jan 2026 12:01:01 GMT");
  EXPECT_EQ(clock.now(), *parse_http_date(kNoon) + 61500ms);
}

TEST_F(ServerClockTest, FollowsServersWhoseClocksAreSet) {
  clock.answered(kNoon);
  for (const char* date : {"Thu, 01 Jan 2026 11:00:00 GMT", "Thu, 01 Jan 2026 11:01:00 GMT"}) {
    clock.answered(date);
    own.run_for(60s);
  }
  EXPECT_EQ(clock.now(), *parse_http_date("Thu, 01 Jan 2026 11:02:00 GMT"));
}

}  // namespace
}  // namespace k8s::server_clock_test
