// WriteQueue: places by kind of writes, and what becomes of chains that find none.
#include "controller/writes/write_queue.h"

#include <gmock/gmock.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/controller/sim_time.h"

namespace gso::write_queue_test {
namespace {

using namespace std::chrono_literals;
using k8s::WriteKind;
using testing::ElementsAre;
using testing::IsEmpty;

boost::asio::awaitable<void> note_after_a_minute(k8s::Clock* clock, std::vector<std::string>* ended, Chain chain) {
  co_await clock->sleep_for(1min);
  ended->push_back(chain.subject);
}

class WriteQueueTest : public testing::Test {
 protected:
  void add(WriteKind kind, const std::string& subject) {
    queue.add(sim.io.get_executor(), kind, {subject, "", {}},
              [this](Chain chain) { return note_after_a_minute(&sim.clock, &ended, std::move(chain)); });
  }
  Sim sim;
  std::vector<std::string> ended;
  WriteQueue queue{&sim.clock, [](WriteKind kind) { return kind == WriteKind::object ? 2U : 1U; }};
};

TEST_F(WriteQueueTest, ChainsOfOneKindWaitForTheirPlacesAndForNoOtherKind) {
  for (const char* node : {"node/1", "node/2", "node/3"}) add(WriteKind::object, node);
  add(WriteKind::status, "status/1");
  EXPECT_EQ(queue.running(WriteKind::object).size(), 2U);
  EXPECT_TRUE(queue.some_wait(WriteKind::object));
  EXPECT_TRUE(queue.has(WriteKind::object, "node/3"));
  EXPECT_FALSE(queue.has(WriteKind::record, "node/3"));
  EXPECT_EQ(queue.running(WriteKind::status).size(), 1U);
  sim.clock.run_for(61s);
  EXPECT_THAT(ended, ElementsAre("node/1", "node/2", "status/1"));
  sim.clock.run_for(1min);
  EXPECT_THAT(ended, ElementsAre("node/1", "node/2", "status/1", "node/3"));
  EXPECT_FALSE(queue.is_busy());
}

TEST_F(WriteQueueTest, WhatHasNotBegunIsTakenBackInOrderAndACancelledQueueIsEmpty) {
  for (const char* record : {"a", "b", "c"}) add(WriteKind::record, record);
  std::vector<std::string> back;
  for (const Chain& chain : queue.take_back(WriteKind::record)) back.push_back(chain.subject);
  EXPECT_THAT(back, ElementsAre("b", "c"));
  EXPECT_THAT(queue.take_back(WriteKind::record), IsEmpty());
  sim.clock.run_for(2min);
  EXPECT_THAT(ended, ElementsAre("a"));
  for (const char* record : {"d", "e"}) add(WriteKind::record, record);
  sim.clock.run_for(1s);
  queue.cancel();
  sim.clock.run_for(2min);
  EXPECT_THAT(ended, ElementsAre("a"));
  EXPECT_FALSE(queue.is_busy());
  EXPECT_EQ(queue.failure(), "");
}

}  // namespace
}  // namespace gso::write_queue_test
