// The memory that decoders of single objects share, and when it is returned.
#include "k8sclient/value/json_access.h"

#include <gtest/gtest.h>

#include <string>

#include "k8sclient/api/object_json.h"
#include "k8sclient/watch/watch_decoder.h"

namespace k8s::json_scratch_test {
namespace {

constexpr std::size_t kLarge = std::size_t{1536} << 10;  // The largest object that etcd takes.

std::string padded_object(std::size_t size) {
  const std::string text(size, 'x');
  std::string json = R"({"metadata":{"name":"large","namespace":"n"},"data":{"text":")" + text + R"("}})";
  json.reserve(json.size() + kJsonPadding);
  return json;
}

TEST(JsonScratchTest, TheMemoryOfALargeObjectIsReturnedByTheNextDecoderWhicheverItIs) {
  const std::string large = padded_object(kLarge);
  const auto key = read_object_key(large);
  ASSERT_TRUE(key.has_value()) << key.error().message;
  EXPECT_EQ(key->name, "large");
  EXPECT_GE(JsonScratch::of_thread().held(), kLarge);
  WatchDecoder decoder;
  decoder.feed(R"({"type":"ADDED","object":{"metadata":{"name":"small","resourceVersion":"7"}}})" + std::string("\n"));
  const auto event = decoder.next();
  ASSERT_TRUE(event && event->has_value());
  EXPECT_EQ((*event)->resource_version, "7");
  EXPECT_LE(JsonScratch::of_thread().held(), JsonScratch::kKept);
}

TEST(JsonScratchTest, ObjectsOfUsualSizeAllocateOnce) {
  ASSERT_TRUE(read_object_key(padded_object(100'000)).has_value());
  const std::size_t held = JsonScratch::of_thread().held();
  EXPECT_GE(held, 100'000U);
  ASSERT_TRUE(read_object_key(padded_object(10)).has_value());
  EXPECT_EQ(JsonScratch::of_thread().held(), held);
}

TEST(JsonScratchTest, ACopyNeedsNoPadding) {
  const std::string_view text = R"({"a":"b"})";
  simdjson::ondemand::document document;
  ASSERT_EQ(JsonScratch::of_thread().open_copy(text, document), simdjson::SUCCESS);
  std::string_view value;
  ASSERT_EQ(document["a"].get(value), simdjson::SUCCESS);
  EXPECT_EQ(value, "b");
}

}  // namespace
}  // namespace k8s::json_scratch_test
