#include "k8sclient/clock.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <vector>

#include "tests/sim/sim_clock.h"

namespace k8s::server_clock_test {
namespace {

using namespace std::chrono_literals;

constexpr const char* kNoon = "Thu, 01 Jan 2026 12:00:00 GMT";

class ServerClockTest : public testing::Test {
 protected:
  boost::asio::io_context io;
  gso::sim::SimClock own{io, *parse_http_date(kNoon)};
  std::vector<Duration> switched;
  ServerClock clock{&own,
                    [this](Duration ahead) { switched.push_back(std::chrono::round<std::chrono::hours>(ahead)); }};
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
  for (const char* date : {"Thu, 01 Jan 2026 11:00:00 GMT", "Thu, 01 Jan 2026 11:30:00 GMT"}) {
    clock.answered(date);
    EXPECT_EQ(clock.now(), own.now()) << "others might agree with it still";
    own.run_for(30min);
  }
  clock.answered("Thu, 01 Jan 2026 12:00:00 GMT");
  EXPECT_EQ(clock.now(), *parse_http_date("Thu, 01 Jan 2026 12:00:00 GMT"));
  EXPECT_EQ(switched, std::vector<Duration>{-1h});
}

// An idle leader hears little but the server that its Lease's connection has reached.
TEST_F(ServerClockTest, IsTheMachinesOwnWhileTheOnlyServerThatItHearsForMinutesIsWrong) {
  clock.answered(kNoon);
  for (int minute = 1; minute <= 30; ++minute) {
    own.run_for(60s);
    clock.answered(fmt::format("Thu, 01 Jan 2026 13:{:02}:00 GMT", minute));
    EXPECT_EQ(clock.now(), own.now()) << minute;
  }
  EXPECT_TRUE(switched.empty());
}

// A program that starts on a machine whose clock is wrong decides nothing by it.
TEST_F(ServerClockTest, IsInDoubtFromTheFirstContradictionUntilAMinuteHasPassedOrAServerAgrees) {
  EXPECT_FALSE(clock.in_doubt());
  own.jump_wall_clock(8h);
  clock.answered(kNoon);
  EXPECT_TRUE(clock.in_doubt());
  own.run_for(60s);
  EXPECT_TRUE(clock.in_doubt());
  clock.answered("Thu, 01 Jan 2026 12:01:00 GMT");
  EXPECT_FALSE(clock.in_doubt());
  EXPECT_EQ(clock.now(), *parse_http_date("Thu, 01 Jan 2026 12:01:00 GMT"));
  EXPECT_EQ(switched, std::vector<Duration>{-8h});
}

TEST_F(ServerClockTest, IsNotInDoubtForeverWhereServersDisagree) {
  own.jump_wall_clock(8h);
  for (int i = 0; i < 4; ++i) {
    clock.answered(i % 2 == 0 ? kNoon : "Thu, 01 Jan 2026 15:00:00 GMT");
    own.run_for(25s);
  }
  EXPECT_FALSE(clock.in_doubt());
  EXPECT_EQ(clock.now(), own.now());
}

}  // namespace
}  // namespace k8s::server_clock_test
