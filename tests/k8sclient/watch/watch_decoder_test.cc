// The watch stream's framing, and the watch protocol's steps without sockets.
#include "k8sclient/watch/watch_decoder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "k8sclient/api/object_json.h"
#include "k8sclient/watch/watch_machine.h"
#include "tests/k8sclient/scripted_transport.h"
#include "tests/k8sclient/watch/in_pieces.h"

namespace k8s::test::watch_decoder_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

// "TYPE rv|object" for each event.
std::vector<std::string> decode(WatchDecoder& decoder) {
  return drain(decoder, [](const WatchEvent& event) { return "|" + std::string(event.object); });
}

std::vector<std::string> decode_all(const std::string& bytes) {
  WatchDecoder decoder;
  decoder.feed(bytes);
  return decode(decoder);
}

const std::string kSample =
    event("ADDED", "a", 1) + "\r\n" +
    event("MODIFIED", "a\\u00e9\\\"{}", 2, R"(,"spec":{"text":"}\n{ [","n":[1,{"x":null}]})") + bookmark(3) +
    R"({"object":{"metadata":{"resourceVersion":"4","name":"late"}},"type":"DELETED"})" + "\n" + bookmark(5, true) +
    R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}})" + "\n";

TEST(WatchDecoders, every_split_of_the_same_bytes_gives_the_same_events) {
  const std::vector<std::string> whole = decode_all(kSample);
  ASSERT_EQ(whole.size(), 6U);
  EXPECT_EQ(whole[3], R"(DELETED 4|{"metadata":{"resourceVersion":"4","name":"late"}})");
  EXPECT_THAT(whole[4], HasSubstr("BOOKMARK 5 end|"));
  EXPECT_THAT(whole[5], HasSubstr("ERROR |{\"kind\":\"Status\""));
  for (std::size_t piece = 1; piece < kSample.size(); ++piece) {
    WatchDecoder decoder;
    ASSERT_EQ(in_pieces(decoder, kSample, piece, decode), whole) << "pieces of " << piece;
    EXPECT_EQ(decoder.pending(), 0U);
  }
}

TEST(WatchDecoders, a_last_line_without_newline_is_no_event) {
  WatchDecoder decoder;
  const std::string line = event("ADDED", "a", 1);
  decoder.feed(line.substr(0, line.size() - 1));
  EXPECT_FALSE(decoder.next());
  EXPECT_EQ(decoder.pending(), line.size() - 1);
}

TEST(WatchDecoders, the_end_of_initial_events_is_marked_on_bookmarks_only) {
  const std::string marked =
      R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}})";
  EXPECT_THAT(decode_all(marked + "\n").at(0), HasSubstr("ADDED 1|"));
  const std::string no =
      R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"false"}}}})";
  EXPECT_THAT(decode_all(no + "\n").at(0), HasSubstr("BOOKMARK 1|"));
}

TEST(WatchDecoders, refuse_what_is_not_a_watch_event_and_stay_refusing) {
  const struct {
    const char* line;
    const char* message;
  } cases[] = {
      {"hello", "a line is not a watch event"},
      {R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}})", "a line is not a watch event"},
      {R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}} trailing)", "a line is not a watch event"},
      {R"({"type":"ADDED","object":[]})", "a line is not a watch event"},
      {R"({"type":1,"object":{}})", "a line is not a watch event"},
      {R"({"type":"ADDED"})", "has no object"},
      {R"({"type":"ADDED","object":{"metadata":{}}})", "no metadata.resourceVersion"},
      {R"({"type":"RENAMED","object":{"metadata":{"resourceVersion":"1"}}})", "unknown type \"RENAMED\""},
      {R"({"object":{"metadata":{"resourceVersion":"1"}}})", "unknown type \"\""},
      {"[]", "a line is not a watch event"},
      {"{}", "unknown type"},
      {"\xff\xfe", "a line is not a watch event"},
  };
  for (const auto& c : cases) {
    WatchDecoder decoder;
    decoder.feed(event("ADDED", "a", 1) + c.line + "\n" + event("ADDED", "b", 2));
    const auto events = decode(decoder);
    ASSERT_EQ(events.size(), 2U) << c.line;
    EXPECT_THAT(events[1], HasSubstr(c.message)) << c.line;
    decoder.feed(event("ADDED", "c", 3));
    auto again = decoder.next();
    ASSERT_TRUE(again);
    EXPECT_EQ(again->error().reason, Reason::decode);
  }
}

// Whatever it holds, and however it arrives: one object ends no watch, and its bytes are not kept.
TEST(WatchDecoders, a_line_over_the_cap_is_an_event_without_its_object) {
  const std::string large =
      R"({"type":"MODIFIED","object":{"kind":"Pod","metadata":{"name":"b","generateName":"x","namespace":"ns",)"
      R"("uid":"u","resourceVersion":"2","labels":{"name":"no"}},"spec":{"name":"no","pad":")" +
      std::string(5000, '<') + "\"}}}\n";
  const std::string bytes = event("ADDED", "a", 1) + large + event("DELETED", "c", 3);
  const auto read = [](WatchDecoder& decoder) {
    std::vector<std::string> out = decode(decoder);
    if (decoder.pending() > 700) out.push_back(fmt::format("{} bytes are kept", decoder.pending()));
    return out;
  };
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{333}, bytes.size()}) {
    WatchDecoder decoder(300);
    const std::vector<std::string> events = in_pieces(decoder, bytes, piece, read);
    ASSERT_EQ(events.size(), 3U) << piece;
    EXPECT_EQ(events[1], R"(MODIFIED 2|{"metadata":{"name":"b","namespace":"ns","resourceVersion":"2","uid":"u"}})");
    EXPECT_THAT(events[2], HasSubstr("DELETED 3|"));
  }
  WatchDecoder decoder(300);
  decoder.feed(bytes);
  ASSERT_EQ(decoder.next()->value().skipped_bytes, 0U);
  EXPECT_EQ(decoder.next()->value().skipped_bytes, large.size() - 1);
  EXPECT_EQ(decoder.next()->value().skipped_bytes, 0U);
}

TEST(WatchDecoders, a_line_over_the_cap_that_names_no_object_fails_before_it_is_complete_and_one_below_does_not) {
  const std::string line = event("ADDED", "a", 1, R"(,"pad":")" + std::string(1000, 'x') + "\"");
  const std::size_t length = line.size() - 1;
  WatchDecoder exact(length);
  exact.feed(line);
  EXPECT_EQ(exact.next()->value().skipped_bytes, 0U);
  for (const std::string_view begins :
       {R"({"type":"ADDED","object":{"metadata":{"name":"a"},")", R"({"type":"ODD",)",
        R"({"type":"ERROR","object":{"metadata":{"name":"a","resourceVersion":"1"},)"}) {
    WatchDecoder small(100);
    small.feed(std::string(begins) + std::string(100 - begins.size(), ' '));
    EXPECT_FALSE(small.next());
    small.feed(" ");
    const auto refused = small.next();
    ASSERT_TRUE(refused);
    EXPECT_THAT(refused->error().message, HasSubstr("longer than 100 bytes"));
  }
}

TEST(WatchDecoders, take_an_object_of_one_and_a_half_mebibytes) {
  const std::string line = event("ADDED", "a", 1, R"(,"pad":")" + std::string(1536 * 1024, 'x') + "\"");
  WatchDecoder decoder;
  for (std::size_t at = 0; at < line.size(); at += 16'384) {
    EXPECT_FALSE(decoder.next());
    decoder.feed(std::string_view(line).substr(at, 16'384));
  }
  EXPECT_TRUE(decoder.next()->has_value());
}

TEST(WatchDecoders, hold_a_large_line_once_however_its_chunks_grow) {
  WatchDecoder decoder;
  decoder.feed(R"({"type":"ADDED","object":{"pad":")" + std::string(1200 * 1024, 'x'));
  EXPECT_FALSE(decoder.next());
  const std::size_t room = decoder.room();
  decoder.feed(std::string(WatchDecoder::kDefaultMaxLine - decoder.pending(), 'x'));
  EXPECT_FALSE(decoder.next());
  decoder.feed(std::string(8 * 1024 * 1024, 'x'));
  EXPECT_EQ(decoder.room(), room);
}

TEST(ObjectKeysInJson, are_read_without_the_rest) {
  const auto key = [](std::string json) {
    json.reserve(json.size() + kJsonPadding);
    return read_object_key(json);
  };
  EXPECT_EQ(
      *key(
          R"({"kind":"Pod","spec":{"metadata":{"name":"no"}},"metadata":{"labels":{"name":"x"},"namespace":"ns","name":"p"}})"),
      (ObjectKey{"ns", "p"}));
  EXPECT_EQ(*key(R"({"metadata":{"name":"n"}})"), (ObjectKey{"", "n"}));
  for (const char* json :
       {"", "{}", "[]", R"({"metadata":{}})", R"({"metadata":{"name":1}})", R"({"metadata":{"name":"a)"}) {
    EXPECT_EQ(key(json).error().reason, Reason::decode) << json;
  }
}

// --- The state machine ---

Failed failure(Reason reason, int status = 0) {
  return Failed{Error{reason, status, "why"}};
}
Failed of_the_future() {
  return Failed{Error{Reason::timeout, 504, "Too large resource version", {}, {{"ResourceVersionTooLarge", "", ""}}}};
}
EventRead read(WatchEventType type, std::string rv, bool end = false) {
  return {type, std::move(rv), end, {}};
}
EventRead error_event(Reason reason) {
  return {WatchEventType::error, "", false, Error{reason, 0, "why"}};
}

struct Then {
  WatchState to;
  WatchEmit emit = WatchEmit::nothing;
  WatchPause pause = WatchPause::none;
  bool reported = false;
  bool relist = false;
  WatchListVerdict verdict = WatchListVerdict::unchanged;
  bool maybe_absent = false;
  bool back_in_time = false;
};
struct StepCase {
  const char* sentence;
  WatchState from;
  WatchInput input;
  Then then;
};

constexpr auto kNothing = WatchEmit::nothing;
constexpr auto kNone = WatchPause::none;
constexpr auto kBackoff = WatchPause::backoff;

// The failure is reported, and the next attempt comes later.
Then backs_off(WatchState to, WatchListVerdict verdict = WatchListVerdict::unchanged) {
  return {std::move(to), kNothing, kBackoff, true, false, verdict};
}
// The same, and what was seen is not trusted.
Then distrusts(WatchState to) {
  return {std::move(to), kNothing, kBackoff, true, true};
}
// Because the server went back in time, which the report says.
Then went_back(WatchState to) {
  Then out = distrusts(std::move(to));
  out.back_in_time = true;
  return out;
}
Then refused(WatchState to) {
  return {std::move(to), kNothing, WatchPause::refused, true};
}
Then maybe_absent(WatchState to) {
  return {std::move(to), kNothing, WatchPause::absent, true, false, WatchListVerdict::unchanged, true};
}

// The connection broke, and the next watch is open.
const Watching kDoubtful{"8", 1, false, true};

void check(const std::vector<StepCase>& cases) {
  for (const StepCase& c : cases) {
    SCOPED_TRACE(c.sentence);
    const WatchStep out = step(c.from, c.input);
    EXPECT_EQ(out.next, c.then.to) << out.next.index();
    EXPECT_EQ(out.emit, c.then.emit);
    EXPECT_EQ(out.pause, c.then.pause);
    EXPECT_EQ(out.report.has_value(), c.then.reported);
    EXPECT_EQ(out.report && has_cause(*out.report, kBackInTimeCause), c.then.back_in_time);
    EXPECT_EQ(out.relist, c.then.relist);
    EXPECT_EQ(out.watch_list, c.then.verdict);
    EXPECT_EQ(out.maybe_absent, c.then.maybe_absent);
  }
}

TEST(WatchMachine, starts_with_watch_list_or_pages) {
  using enum WatchListVerdict;
  check({
      {"a LIST begins", Empty{}, Started{}, Listing{}, WatchEmit::init},
      {"a WatchList opened", Empty{"9"}, Opened{}, InitialWatch{"9"}, WatchEmit::init},
      {"the server refuses WatchList", Empty{}, failure(Reason::invalid, 422), Empty{}, kNothing, kNone, false, false,
       never},
      {"forbidden is reported, retried now and then", Empty{}, failure(Reason::forbidden, 403), refused(Empty{})},
      {"404 may mean absent", Empty{}, failure(Reason::not_found, 404), maybe_absent(Empty{})},
      {"unreachable backs off", Empty{}, failure(Reason::transport), backs_off(Empty{})},
      {"too many requests back off", Empty{}, failure(Reason::too_many_requests, 429), backs_off(Empty{})},
  });
}

TEST(WatchMachine, lists_page_by_page) {
  check({
      {"a page with more to come", Listing{"", "3"}, PageRead{"10", "tok"}, Listing{"tok", "3"}},
      {"the last page", Listing{"tok", "3"}, PageRead{"10", ""}, InitListed{"10"}, WatchEmit::init_done},
      {"a list behind what was seen is reported", Listing{"", "11"}, PageRead{"10", ""},
       Then{.to = InitListed{"10"}, .emit = WatchEmit::init_done, .reported = true, .back_in_time = true}},
      {"an expired token starts over", Listing{"tok", "3"}, failure(Reason::expired, 410), backs_off(Empty{"3"})},
      {"an unreadable page starts over", Listing{"tok", "3"}, failure(Reason::decode), backs_off(Empty{"3"})},
      {"503 asks for the same page again", Listing{"tok", "3"}, failure(Reason::unavailable, 503),
       backs_off(Listing{"tok", "3"})},
      {"403 in the middle", Listing{"tok", "3"}, failure(Reason::forbidden, 403), refused(Empty{"3"})},
      {"404", Listing{"", "3"}, failure(Reason::not_found, 404), maybe_absent(Empty{"3"})},
  });
}

TEST(WatchMachine, streams_the_initial_view) {
  using enum WatchListVerdict;
  using enum WatchEventType;
  check({
      {"an initial object", InitialWatch{"3"}, read(added, "2"), InitialWatch{"3"}, WatchEmit::init_apply},
      {"changed while streaming", InitialWatch{}, read(modified, "5"), InitialWatch{}, WatchEmit::init_apply},
      {"deleted while streaming", InitialWatch{}, read(deleted, "6"), InitialWatch{}, WatchEmit::init_remove},
      {"the end mark", InitialWatch{"3"}, read(bookmark, "7", true), Watching{"7", 0, true}, WatchEmit::init_done},
      {"the end mark behind what was seen", InitialWatch{"30"}, read(bookmark, "7", true),
       Then{.to = Watching{"7", 0, true}, .emit = WatchEmit::init_done, .reported = true, .back_in_time = true}},
      {"a server that ignores the request", InitialWatch{"3"}, read(bookmark, "7"), Empty{"3"}, kNothing, kNone, false,
       false, never},
      {"silence before the mark", InitialWatch{"3"}, Ended{30s, true}, Empty{"3"}, kNothing, kBackoff, false, false,
       not_now},
      {"no answer in time", Empty{"3"}, failure(Reason::timeout), backs_off(Empty{"3"}, not_now)},
      {"the stream ends before the mark", InitialWatch{"3"}, Ended{1s, false}, Empty{"3"}, kNothing, kBackoff, false,
       false, not_now},
      {"it breaks before the mark", InitialWatch{"3"}, failure(Reason::transport), backs_off(Empty{"3"}, not_now)},
      {"expired", InitialWatch{"3"}, error_event(Reason::expired), backs_off(Empty{"3"}, not_now)},
      {"refused in the stream", InitialWatch{"3"}, error_event(Reason::invalid), backs_off(Empty{"3"}, never)},
  });
}

TEST(WatchMachine, watches_from_where_it_was) {
  using enum WatchEventType;
  check({
      {"opened", InitListed{"7", 2}, Opened{}, Watching{"7", 2, false}},
      {"added", Watching{"7", 2}, read(added, "8"), Watching{"8", 0, true}, WatchEmit::apply},
      {"modified", Watching{"7"}, read(modified, "8"), Watching{"8", 0, true}, WatchEmit::apply},
      {"deleted", Watching{"7"}, read(deleted, "8"), Watching{"8", 0, true}, WatchEmit::remove},
      {"the same version twice is no travel in time", Watching{"7"}, read(modified, "7"), Watching{"7", 0, true},
       WatchEmit::apply},
      {"bookmark", Watching{"7"}, read(bookmark, "80"), Watching{"80", 0, true}},
      {"the server's time is up", Watching{"8", 0, true}, Ended{300s, false}, InitListed{"8"}},
      {"silence after something came, as of a machine without power", Watching{"8", 0, true}, Ended{300s, true},
       InitListed{"8", 0, true}},
      {"very short watches back off", Watching{"8", 0, true}, Ended{100ms, false}, InitListed{"8"}, kNothing, kBackoff},
      {"the view is to be renewed", InitListed{"8", 2}, Renew{}, Empty{"8"}},
      {"a watch that ended before it brought anything", Watching{"8", 0}, Ended{50s, false}, InitListed{"8", 1},
       kNothing, kBackoff},
      {"the connection broke", Watching{"8", 1}, failure(Reason::transport), backs_off(InitListed{"8", 1, true})},
      {"the next one is open", InitListed{"8", 1, true}, Opened{}, Watching{"8", 1, false, true}},
      {"the server is no older than what was seen", Watching{"8", 1, false, true}, VersionRead{"8"}, Watching{"8", 1}},
      {"nor is the newest change", kDoubtful, VersionRead{"90", NewestChange{"n", "7", "7"}}, Watching{"8", 1}},
      {"the newest change was a deletion", kDoubtful, VersionRead{"90", NewestChange{"n", "7", "", true}},
       Watching{"8", 1}},
      {"the newest change was followed by another", kDoubtful, VersionRead{"90", NewestChange{"n", "7", "89"}},
       Empty{"8"}},
      {"its object is gone", kDoubtful, VersionRead{"90", NewestChange{"n", "7", ""}}, Empty{"8"}},
      {"its object is there again", kDoubtful, VersionRead{"90", NewestChange{"n", "7", "89", true}}, Empty{"8"}},
      {"its version cannot be read", Watching{"8", 1, false, true}, failure(Reason::unavailable, 503),
       backs_off(InitListed{"8", 1, true})},
      {"its version must not be read", Watching{"8", 1, false, true}, failure(Reason::forbidden, 403),
       Watching{"8", 1}},
  });
}

TEST(WatchMachine, relists_when_it_must) {
  using enum WatchEventType;
  check({
      {"410 at opening", InitListed{"7"}, failure(Reason::expired, 410), distrusts(Empty{"7"})},
      {"410 in the stream", Watching{"7"}, error_event(Reason::expired), distrusts(Empty{"7"})},
      {"an unreadable line", Watching{"7"}, failure(Reason::decode), distrusts(Empty{"7"})},
      {"back in time", Watching{"10"}, read(modified, "9"), went_back(Empty{"10"})},
      {"a bookmark back in time", Watching{"10"}, read(bookmark, "9"), went_back(Empty{"10"})},
      {"the newest change is lost, and the server past its version", kDoubtful,
       VersionRead{"90", NewestChange{"n", "7", "6"}}, went_back(Empty{"8"})},
      {"the server is older than what was seen", Watching{"11", 0, false, true}, VersionRead{"10"},
       went_back(Empty{"11"})},
      {"a deletion is lost", kDoubtful, VersionRead{"90", NewestChange{"n", "7", "6", true}}, went_back(Empty{"8"})},
      {"silence for longer than bookmarks take", Watching{"7"}, Ended{150s, true}, distrusts(Empty{"7"})},
      {"the last strike by an early end", Watching{"7", kMaxStrikes - 1}, Ended{50s, false}, distrusts(Empty{"7"})},
      {"the second refusal of a future version", InitListed{"7", kMostFutureVersions - 1}, of_the_future(),
       distrusts(Empty{"7"})},
      {"the last strike by a refusal", InitListed{"7", kMaxStrikes - 1}, failure(Reason::invalid, 400),
       distrusts(Empty{"7"})},
  });
}

TEST(WatchMachine, keeps_its_place_when_the_failure_says_nothing_about_it) {
  check({
      {"unreachable", InitListed{"7", 3}, failure(Reason::transport), backs_off(InitListed{"7", 3, true})},
      {"429", InitListed{"7", 3}, failure(Reason::too_many_requests, 429), backs_off(InitListed{"7", 3})},
      {"403", InitListed{"7", 3}, failure(Reason::forbidden, 403), refused(InitListed{"7", 3})},
      {"502 of a load balancer", InitListed{"7", 3}, failure(Reason::unavailable, 502), backs_off(InitListed{"7", 3})},
      {"503", InitListed{"7", 3}, failure(Reason::unavailable, 503), backs_off(InitListed{"7", 3})},
      {"504", InitListed{"7", 3}, failure(Reason::timeout, 504), backs_off(InitListed{"7", 3})},
      {"no answer in time", InitListed{"7", 3}, failure(Reason::timeout), backs_off(InitListed{"7", 3})},
      {"404, which may be a proxy's", InitListed{"7", 3}, failure(Reason::not_found, 404),
       maybe_absent(InitListed{"7", 3})},
      {"discovery confirms that the API is absent", InitListed{"7", 3}, ApiAbsent{}, Empty{"7"}},
      {"a view that is not complete yet is not touched by it", Listing{"tok", "7"}, ApiAbsent{}, Listing{"tok", "7"}},
      {"the first refusal of a future version, of a server that is a moment behind", InitListed{"7"}, of_the_future(),
       backs_off(InitListed{"7", 1})},
      {"400 counts", InitListed{"7"}, failure(Reason::invalid, 400), backs_off(InitListed{"7", 1})},
      {"an ERROR event counts", Watching{"7", 1}, error_event(Reason::unavailable), backs_off(InitListed{"7", 2})},
      {"an input of another state changes nothing", Watching{"7"}, PageRead{"9", ""}, Watching{"7"}},
  });
}

TEST(WatchMachine, asks_for_what_its_state_needs) {
  EXPECT_EQ(next_action(Empty{}, {true}), WatchAction::open_watch_list);
  EXPECT_EQ(next_action(Empty{}, {false}), WatchAction::start_list);
  EXPECT_EQ(next_action(Listing{}, {true}), WatchAction::list_page);
  EXPECT_EQ(next_action(InitialWatch{}, {false}), WatchAction::read);
  EXPECT_EQ(next_action(InitListed{}, {true}), WatchAction::open_watch);
  EXPECT_EQ(next_action(Watching{"7", 0, false, true}, {true}), WatchAction::read_version);
  EXPECT_EQ(next_action(Watching{}, {true}), WatchAction::read);
}

TEST(ResourceVersions, are_compared_as_numbers_of_any_length_and_never_when_opaque) {
  EXPECT_TRUE(older("9", "10"));
  EXPECT_FALSE(older("10", "9"));
  EXPECT_FALSE(older("10", "10"));
  EXPECT_FALSE(older("010", "10"));
  EXPECT_TRUE(older("99999999999999999999998", "99999999999999999999999"));
  EXPECT_FALSE(older("abc", "10"));
  EXPECT_FALSE(older("1", ""));
  EXPECT_FALSE(older("", "1"));
}

}  // namespace
}  // namespace k8s::test::watch_decoder_test
