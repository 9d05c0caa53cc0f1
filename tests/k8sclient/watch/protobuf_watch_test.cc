// Watches in protobuf: what an API server has written, and frames that it never would.
#include <gmock/gmock.h>

#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "k8sclient/api/object_json.h"
#include "k8sclient/api/status.h"
#include "k8sclient/value/protobuf_object.h"
#include "k8sclient/watch/watch_decoder.h"
#include "tests/k8sclient/protobuf_envelope.h"
#include "tests/k8sclient/recorded.h"
#include "tests/k8sclient/watch/in_pieces.h"
#include "tests/k8sclient/watch/watcher_fixture.h"

namespace k8s::test::protobuf_watch_test {
namespace {

using namespace std::chrono_literals;
using protozero::pbf_writer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string with_length(const std::string& frame) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(frame.size() >> shift & 0xff);
  return out + frame;
}

std::string frame(const std::string& type, const std::string& object) {
  std::string extension;
  pbf_writer(extension).add_bytes(1, object);
  std::string out;
  pbf_writer writer(out);
  writer.add_string(1, type);
  writer.add_message(2, extension);
  return with_length(out);
}

std::string node(const std::string& name, const std::string& version) {
  std::string meta;
  pbf_writer fields(meta);
  fields.add_string(1, name);
  if (!version.empty()) fields.add_string(6, version);
  std::string message;
  pbf_writer(message).add_message(1, meta);
  return envelope("Node", message);
}

// "TYPE rv name" for each event.
std::vector<std::string> drain(WatchDecoder& decoder) {
  return test::drain(decoder, [](const WatchEvent& event) {
    const auto key = read_object_key(event.object);
    return key ? " " + key->name : "";
  });
}

std::vector<std::string> decode(const std::string& bytes, std::size_t max_line = WatchDecoder::kDefaultMaxLine) {
  WatchDecoder decoder(max_line, WatchEncoding::protobuf);
  decoder.feed(bytes);
  return drain(decoder);
}

TEST(ProtobufWatches, have_the_events_of_the_same_watch_in_json_however_they_are_cut) {
  const std::string bytes = recorded("node_watch.pb");
  const std::vector<std::string> whole = decode(bytes);
  EXPECT_THAT(whole, ElementsAre("ADDED 206 gpu-a", "BOOKMARK 206 end"));
  WatchDecoder json;
  json.feed(recorded("node_watch.json"));
  EXPECT_EQ(drain(json), whole);
  for (std::size_t piece = 1; piece < bytes.size(); piece = piece * 3 / 2 + 1) {
    WatchDecoder decoder(WatchDecoder::kDefaultMaxLine, WatchEncoding::protobuf);
    ASSERT_EQ(in_pieces(decoder, bytes, piece, drain), whole) << "pieces of " << piece;
    EXPECT_EQ(decoder.pending(), 0U);
  }
}

TEST(ProtobufWatches, end_with_the_error_that_json_has) {
  WatchDecoder protobuf(WatchDecoder::kDefaultMaxLine, WatchEncoding::protobuf);
  protobuf.feed(recorded("expired_watch.pb"));
  WatchDecoder json;
  json.feed(recorded("expired_watch.json"));
  const auto found = protobuf.next();
  const auto wanted = json.next();
  ASSERT_TRUE(found && *found && wanted && *wanted);
  EXPECT_EQ((*found)->type, WatchEventType::error);
  const Error error = error_from_answer(0, (*found)->object, "", "watch nodes");
  const Error same = error_from_answer(0, (*wanted)->object, "", "watch nodes");
  EXPECT_EQ(error.reason, Reason::expired);
  EXPECT_EQ(error.reason, same.reason);
  EXPECT_EQ(error.message, same.message);
  EXPECT_EQ(error.http_status, same.http_status);
}

// A server answers in protobuf also where it opens no watch.
TEST(ProtobufWatches, a_refusal_is_read) {
  const Error error = error_from_answer(500, recorded("refused_watch.pb"), "", "watch nodes");
  EXPECT_EQ(error.reason, Reason::unavailable);
  EXPECT_EQ(error.message,
            "watch nodes: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax "
            "(HTTP 500)");
}

TEST(ProtobufWatches, a_refusal_has_its_causes_and_its_delay) {
  std::string cause;
  pbf_writer cause_fields(cause);
  cause_fields.add_string(1, "DisruptionBudget");
  cause_fields.add_string(2, "needs 3 healthy\xff");
  cause_fields.add_string(3, "spec");
  std::string details;
  pbf_writer detail_fields(details);
  detail_fields.add_message(4, cause);
  detail_fields.add_int32(5, 7);
  std::string status;
  pbf_writer fields(status);
  fields.add_string(3, "too many");
  fields.add_string(4, "TooManyRequests");
  fields.add_message(5, details);
  fields.add_int32(6, 429);
  const Error error = error_from_answer(429, envelope("Status", status), "", "watch nodes");
  EXPECT_EQ(error.reason, Reason::too_many_requests);
  EXPECT_EQ(error.retry_after, std::chrono::seconds(7));
  ASSERT_EQ(error.causes.size(), 1U);
  EXPECT_EQ(error.causes[0].reason, "DisruptionBudget");
  EXPECT_EQ(error.causes[0].field, "spec");
  EXPECT_EQ(error.causes[0].message, "needs 3 healthy\xEF\xBF\xBD") << "UTF-8, whatever was sent";
}

TEST(ProtobufWatches, refuse_what_is_not_a_watch_event_and_stay_refusing) {
  const struct {
    std::string bytes;
    const char* message;
  } cases[] = {
      {with_length(""), "unknown type \"\""},
      {with_length("hello"), "not a watch event in protobuf"},
      {frame("RENAMED", node("a", "1")), "unknown type \"RENAMED\""},
      {frame("ADDED", "{}"), "not in Kubernetes' protobuf"},
      {frame("ADDED", node("a", "")), "no metadata.resourceVersion"},
      {frame("ADDED", envelope("Node", "\x0a\x7f")), "not a watch event in protobuf"},
      {frame("ADDED", std::string("k8s\0\x12\x7f", 6)), "not in Kubernetes' protobuf"},
      {"{\"type\":\"ADDED\",\"object\":{}}\n", "longer than"},
  };
  for (const auto& c : cases) {
    WatchDecoder decoder(WatchDecoder::kDefaultMaxLine, WatchEncoding::protobuf);
    decoder.feed(frame("ADDED", node("a", "1")) + c.bytes + frame("ADDED", node("b", "2")));
    const auto events = drain(decoder);
    ASSERT_EQ(events.size(), 2U) << c.message;
    EXPECT_EQ(events[0], "ADDED 1 a");
    EXPECT_THAT(events[1], HasSubstr(c.message));
    decoder.feed(frame("ADDED", node("c", "3")));
    const auto again = decoder.next();
    ASSERT_TRUE(again && !*again);
    EXPECT_EQ(again->error().reason, Reason::decode);
  }
}

TEST(ProtobufWatches, a_frame_over_the_cap_fails_with_its_length_and_an_incomplete_one_is_no_event) {
  const std::string bytes = frame("ADDED", node("a", "1"));
  const std::size_t size = bytes.size() - 4;
  EXPECT_THAT(decode(bytes, size), ElementsAre("ADDED 1 a"));
  EXPECT_THAT(decode(bytes.substr(0, 4), size - 1), ElementsAre(HasSubstr("longer than")));
  EXPECT_THAT(decode(bytes.substr(0, bytes.size() - 1)), IsEmpty());
  EXPECT_THAT(decode(bytes.substr(0, 3)), IsEmpty());
}

TEST(ProtobufWatches, unknown_fields_and_fields_of_another_wire_type_are_skipped) {
  std::string meta;
  pbf_writer fields(meta);
  fields.add_string(1, "a");
  fields.add_uint64(6, 99);  // resourceVersion as a number.
  fields.add_string(6, "5");
  fields.add_fixed64(99, 1);
  std::string message;
  pbf_writer(message).add_message(1, meta);
  EXPECT_THAT(decode(frame("MODIFIED", envelope("Node", message))), ElementsAre("MODIFIED 5 a"));
}

// Keeps the names of what it is given, and whether it was protobuf.
struct Names final : WatchSink {
  void init() override { seen.emplace_back("init"); }
  Result<void> init_apply(std::string_view object) override { return note("init_apply", object); }
  Result<void> init_remove(std::string_view object) override { return note("init_remove", object); }
  void init_done() override { seen.emplace_back("init_done"); }
  Result<void> apply(std::string_view object) override { return note("apply", object); }
  Result<void> remove(std::string_view object) override { return note("remove", object); }
  Result<void> note(const std::string& verb, std::string_view object) {
    seen.push_back(verb + (is_protobuf(object) ? " protobuf " : " json ") + read_object_key(object)->name);
    return {};
  }
  std::vector<std::string> seen;
};

TEST_F(WatcherTest, the_answer_says_which_encoding_it_has) {
  Answer in_protobuf =
      watched({{1s, recorded("node_watch.pb")}, {1s, frame("DELETED", node("gpu-a", "209"))}, {1s, ""}});
  in_protobuf.headers.emplace_back("content-type", "application/vnd.kubernetes.protobuf;stream=watch");
  transport.then(in_protobuf, watched({{1s, event("ADDED", "b", 210)}}));  // An older server behind the load balancer.
  options.protobuf = true;
  Names given;
  start(&given);
  clock.run_for(20s);
  watcher->stop();
  EXPECT_THAT(given.seen,
              ElementsAre("init", "init_apply protobuf gpu-a", "init_done", "remove protobuf gpu-a", "apply json b"));
  ASSERT_EQ(transport.requests.size(), 2U);
  for (const HttpRequest& request : transport.requests)
    EXPECT_EQ(request.accept, "application/vnd.kubernetes.protobuf;stream=watch, application/json");
}

}  // namespace
}  // namespace k8s::test::protobuf_watch_test
