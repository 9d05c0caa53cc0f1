// Events: one per change, series, names, limits, and what happens when the server refuses.
#include <gmock/gmock.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "controller/writes/event_recorder.h"
#include "k8sclient/api/client.h"
#include "tests/controller/sim_time.h"
#include "tests/k8sclient/scripted_transport.h"

namespace gso::events_test {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;
using k8s::test::Answer;

RecordEvent event(const std::string& name, const std::string& reason = "ConfigInvalid") {
  return {.regarding = {"v1", "ConfigMap", "gpu-operator", name, "uid-" + name},
          .warning = true,
          .why = {reason, "line 7: replicas must be at least 2"},
          .verb = "Refuse"};
}

class EventsTest : public testing::Test {
 protected:
  EventsTest() {
    EventRecorderOptions options;
    options.reporting_instance = "pod-1";
    EventRecorderHooks hooks;
    hooks.counted = [this](const char* result) { ++counted[result]; };
    hooks.before_send = [this]() -> k8s::Result<void> {
      if (!leading) return k8s::fail(k8s::Reason::cancelled, "no lease");
      return {};
    };
    recorder = std::make_unique<EventRecorder>(&client, &sim.clock, options, hooks);
    sim.start(recorder->run());
  }
  ~EventsTest() override {
    recorder->stop();
    sim.clock.run_for(1s);
  }
  void pass(std::vector<RecordEvent> events, Duration then = 1s) {
    recorder->record_pass(events);
    sim.clock.run_for(then);
  }
  Json sent(std::size_t i) const { return Json::parse(transport.requests.at(i).body); }

  Sim sim;
  std::function<Answer()> next = [] { return Answer::json(201, R"({"metadata":{}})"); };
  k8s::test::ScriptedTransport transport{&sim.clock, [this](const k8s::HttpRequest&) { return next(); }};
  k8s::ApiClient client{&transport, &sim.clock, {}};
  std::map<std::string, int> counted;
  bool leading = true;
  std::unique_ptr<EventRecorder> recorder;
};

TEST_F(EventsTest, AnEventCarriesWhatTheApiAsksFor) {
  pass({event("mps-config")});
  ASSERT_EQ(transport.lines(),
            (std::vector<std::string>{"POST /apis/events.k8s.io/v1/namespaces/gpu-operator/events"}));
  Json body = sent(0);
  const std::string name = body["metadata"]["name"];
  EXPECT_TRUE(name.starts_with("mps-config.")) << name;
  body["metadata"].erase("name");
  EXPECT_EQ(body, Json::parse(R"({"apiVersion":"events.k8s.io/v1","kind":"Event",
    "metadata":{"namespace":"gpu-operator"},"eventTime":"2026-01-01T00:00:00.000000Z",
    "reportingController":"gpusharing.dev/gpu-sharing-operator","reportingInstance":"pod-1",
    "action":"Refuse","reason":"ConfigInvalid","type":"Warning","note":"line 7: replicas must be at least 2",
    "regarding":{"apiVersion":"v1","kind":"ConfigMap","namespace":"gpu-operator","name":"mps-config",
                 "uid":"uid-mps-config"}})"));
  RecordEvent about_node = event("n1");
  about_node.regarding = {"v1", "Node", "", "n1", ""};
  pass({about_node});
  EXPECT_EQ(transport.lines().at(1), "POST /apis/events.k8s.io/v1/namespaces/default/events") << "of no namespace";
  EXPECT_FALSE(sent(1)["regarding"].contains("uid"));
}

TEST_F(EventsTest, WhatEveryPassRepeatsIsSentOnceAndDifferentObjectsReasonsAndNotesAreDifferentEvents) {
  RecordEvent other_note = event("a");
  other_note.why.message = "line 8: …";
  for (int i = 0; i < 50; ++i) pass({event("a"), event("b"), event("a", "Other"), other_note}, 1h);
  EXPECT_EQ(transport.requests.size(), 4U);
}

TEST_F(EventsTest, OneThatComesBackIsTheNextOfASeriesAndLongAfterwardsANewEvent) {
  pass({event("a")}, 10s);
  pass({}, 2min);
  pass({event("a")}, 10s);
  ASSERT_EQ(transport.requests.size(), 2U);
  EXPECT_TRUE(transport.lines().at(1).starts_with("PATCH /apis/events.k8s.io/v1/namespaces/gpu-operator/events/a."));
  EXPECT_EQ(sent(1)["series"]["count"], 2);
  EXPECT_EQ(sent(1)["series"]["lastObservedTime"], "2026-01-01T00:02:10.000000Z");
  pass({}, 10min);
  pass({}, 1s);
  pass({event("a")}, 10s);
  ASSERT_EQ(transport.requests.size(), 3U);
  EXPECT_TRUE(transport.lines().at(2).starts_with("POST "));
  EXPECT_NE(sent(0)["metadata"]["name"], sent(2)["metadata"]["name"]);
}

TEST_F(EventsTest, ASeriesIsPatchedOnceAMinuteAtMost) {
  for (int i = 0; i < 60; ++i) {
    pass({event("a")}, 1s);
    pass({}, 1s);
  }
  EXPECT_LE(transport.requests.size(), 4U);
  EXPECT_GE(transport.requests.size(), 2U);
}

TEST_F(EventsTest, AnEventThatExpiredOnTheServerIsCreatedAgain) {
  pass({event("a")}, 10s);
  pass({}, 2min);
  int requests = 0;
  next = [&] { return ++requests == 1 ? Answer::status_of(404, "NotFound", "gone") : Answer::json(201, "{}"); };
  pass({event("a")}, 10s);
  EXPECT_TRUE(transport.lines().back().starts_with("POST "));
}

TEST_F(EventsTest, ALongNoteIsCutAtACharacterBoundaryBelowOneKibibyte) {
  std::string note(1022, 'x');
  note += "ééé";
  const std::string cut = cut_note(note);
  EXPECT_LE(cut.size(), 1024U);
  EXPECT_TRUE(cut.ends_with("…"));
  EXPECT_EQ(cut_note("short"), "short");
  RecordEvent long_one = event("a");
  long_one.why.message = note;
  pass({long_one});
  EXPECT_EQ(sent(0)["note"], cut);
}

TEST_F(EventsTest, RefusalsAreGivenUpServerErrorsTriedThreeTimesAndWithoutTheLeaseNothingIsSent) {
  next = [] { return Answer::status_of(403, "Forbidden", "no"); };
  pass({event("a")}, 1min);
  EXPECT_EQ(transport.requests.size(), 1U);
  EXPECT_EQ(counted["failed"], 1);
  next = [] { return Answer::status_of(500, "InternalError", "no"); };
  pass({event("a"), event("b")}, 1min);
  EXPECT_EQ(transport.requests.size(), 4U);
  EXPECT_EQ(counted["failed"], 2);
  leading = false;
  pass({event("c")}, 1min);
  EXPECT_EQ(transport.requests.size(), 4U);
  EXPECT_EQ(counted["dropped"], 1);
}

TEST_F(EventsTest, AFloodIsSpreadOutAndBounded) {
  std::vector<RecordEvent> flood;
  for (int i = 0; i < 2000; ++i) flood.push_back(event("cm" + std::to_string(i)));
  recorder->record_pass(flood);
  EXPECT_EQ(recorder->queued(), 1024U);
  EXPECT_EQ(counted["dropped"], 2000 - 1024);
  sim.clock.run_for(1s);
  EXPECT_LE(transport.requests.size(), 111U) << "a burst of 100, then 10 per second";
  sim.clock.run_for(10min);
  EXPECT_EQ(transport.requests.size(), 1024U);
}

TEST_F(EventsTest, NotesThatDifferInANumberAreCombinedAfterTen) {
  const auto count = [this](int from, int to) {
    for (int i = from; i < to; ++i) {
      RecordEvent counting = event("a");
      counting.why.message = std::to_string(i) + " nodes wait";
      pass({counting}, 2s);
    }
  };
  count(0, 30);
  ASSERT_EQ(transport.requests.size(), 11U)
      << "ten as they are, one for all others; its series is updated once a minute";
  EXPECT_EQ(sent(10)["note"], "(combined from similar events): 10 nodes wait");
  count(30, 60);
  EXPECT_LE(transport.requests.size(), 13U);
  EXPECT_TRUE(transport.lines().back().starts_with("PATCH ")) << transport.lines().back();
}

TEST_F(EventsTest, AnObjectHasTwentyFiveEventsAtOnceAndThenOneInFiveMinutes) {
  std::vector<RecordEvent> many;
  for (int i = 0; i < 40; ++i) many.push_back(event("a", "Reason" + std::to_string(i)));
  pass(many, 1min);
  EXPECT_EQ(transport.requests.size(), 25U);
  EXPECT_EQ(counted["dropped"], 15);
  pass({event("b")}, 1min);
  EXPECT_EQ(transport.requests.size(), 26U) << "of another object";
  pass({}, 10min);
  pass({event("a", "LaterA"), event("a", "LaterB"), event("a", "LaterC"), event("a", "LaterD")}, 1min);
  EXPECT_EQ(transport.requests.size(), 28U) << "twelve minutes later, two more";
}

TEST_F(EventsTest, AStopSendsWhatIsQueuedUpToItsDeadline) {
  next = [] { return Answer::json(201, "{}", 300ms); };
  recorder->record_pass({event("a"), event("b"), event("c"), event("d"), event("e")});
  const MonoTime begun = sim.clock.monotonic();
  auto flushed = sim.start(recorder->flush(begun + 1s));
  ASSERT_TRUE(sim.clock.run_until([&] { return *flushed; }, 10s));
  EXPECT_EQ(sim.clock.monotonic() - begun, 1s);
  EXPECT_EQ(transport.requests.size(), 4U) << "one after the other";
  auto rest = sim.start(recorder->flush(begun + 1h));
  ASSERT_TRUE(sim.clock.run_until([&] { return *rest; }, 10s));
  EXPECT_EQ(sim.clock.monotonic() - begun, 1500ms) << "no longer than it takes";
}

TEST_F(EventsTest, WhatIsNoLongerRepeatedIsForgotten) {
  EventCorrelator correlator;
  for (int i = 0; i < 1000; ++i) {
    const RecordEvent one = event("cm" + std::to_string(i));
    EXPECT_FALSE(correlator.reporter_of(one, sim.clock.monotonic()).combined);
    EXPECT_TRUE(correlator.allows(one, sim.clock.monotonic()));
  }
  EXPECT_EQ(correlator.size(), 2000U);
  correlator.forget_old(sim.clock.monotonic() + 11min);
  EXPECT_EQ(correlator.size(), 0U);
}

}  // namespace
}  // namespace gso::events_test
