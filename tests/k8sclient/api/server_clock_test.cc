#include "k8sclient/clock.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <vector>

#include "tests/sim/sim_clock.h"

namespace k8s::server_clock_test {
namespace {

using namespace std::chrono_literals;

// Of the day of the tests.
std::string at(const std::string& time) {
  return "Thu, 01 Jan 2026 " + time + " GMT";
}
const std::string kNoon = at("12:00:00");

class ServerClockTest : public testing::Test {
 protected:
  boost::asio::io_context io;
  gso::sim::SimClock own{io, *parse_http_date(kNoon)};
  const WallTime noon = own.now();
  std::vector<Duration> switched;
  ServerClock clock{&own,
                    [this](Duration ahead) { switched.push_back(std::chrono::round<std::chrono::hours>(ahead)); }};
};

TEST_F(ServerClockTest, IsTheMachinesOwnUntilAServerHasAnsweredAndWhereBothDifferBySeconds) {
  own.jump_wall_clock(-1h);
  EXPECT_EQ(clock.now(), own.now());
  clock.answered("");
  clock.answered("yesterday");
  EXPECT_EQ(clock.now(), own.now());
  own.jump_wall_clock(1h);
  clock.answered(at("12:00:07"));
  EXPECT_EQ(clock.now(), own.now());
}

TEST_F(ServerClockTest, IsTheServersOnceAllAnswersOfAMinuteContradictTheMachinesUntilThatIsSetRight) {
  own.jump_wall_clock(-1h);
  const WallTime wrong = own.now();
  clock.answered(kNoon);
  own.run_for(59s);
  clock.answered(at("12:00:59"));
  EXPECT_EQ(clock.now(), wrong + 59s);
  own.run_for(1s);
  clock.answered(at("12:01:00"));
  EXPECT_EQ(clock.now(), noon + 60s);
  own.run_for(1500ms);
  clock.answered(at("12:01:01"));
  EXPECT_EQ(clock.now(), noon + 61500ms) << "it does not jump with the seconds of each answer";
  own.run_for(90s);
  EXPECT_EQ(clock.now(), noon + 151500ms);
  own.jump_wall_clock(1h);
  clock.answered(at("12:02:31"));
  EXPECT_EQ(clock.now(), own.now());
}

TEST_F(ServerClockTest, GoesOnWhenTheMachinesClockIsSet) {
  clock.answered(kNoon);
  own.run_for(60s);
  own.jump_wall_clock(1h);
  EXPECT_EQ(clock.now(), noon + 60s);
  own.jump_wall_clock(-1h);
  EXPECT_EQ(clock.now(), own.now());
}

TEST_F(ServerClockTest, IsTheMachinesOwnWhileOneOfSeveralServersAgrees) {
  for (const std::string time : {"00:00", "00:50", "01:40", "02:30"}) {
    for (const char* hour : {"13:", "12:"}) {
      clock.answered(at(hour + time));
      EXPECT_EQ(clock.now(), own.now()) << hour << time;
    }
    own.run_for(50s);
  }
}

TEST_F(ServerClockTest, FollowsServersWhoseClocksAreSet) {
  clock.answered(kNoon);
  for (const std::string& date : {at("11:00:00"), at("11:30:00")}) {
    clock.answered(date);
    EXPECT_EQ(clock.now(), own.now()) << "others might agree with it still";
    own.run_for(30min);
  }
  clock.answered(kNoon);
  EXPECT_EQ(clock.now(), noon);
  EXPECT_EQ(switched, std::vector<Duration>{-1h});
}

// An idle leader hears little but the server that its Lease's connection has reached.
TEST_F(ServerClockTest, IsTheMachinesOwnWhileTheOnlyServerThatItHearsForMinutesIsWrong) {
  clock.answered(kNoon);
  for (int minute = 1; minute <= 30; ++minute) {
    own.run_for(60s);
    clock.answered(at(fmt::format("13:{:02}:00", minute)));
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
  clock.answered(at("12:01:00"));
  EXPECT_FALSE(clock.in_doubt());
  EXPECT_EQ(clock.now(), noon + 60s);
  EXPECT_EQ(switched, std::vector<Duration>{-8h});
}

TEST_F(ServerClockTest, IsNotInDoubtForeverWhereServersDisagree) {
  own.jump_wall_clock(8h);
  for (int i = 0; i < 4; ++i) {
    clock.answered(i % 2 == 0 ? kNoon : at("15:00:00"));
    own.run_for(25s);
  }
  EXPECT_FALSE(clock.in_doubt());
  EXPECT_EQ(clock.now(), own.now());
}

}  // namespace
}  // namespace k8s::server_clock_test
