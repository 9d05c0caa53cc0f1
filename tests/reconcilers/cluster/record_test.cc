// The record: texts of what was verified are kept for an undo, within bounds, and read back as written.
#include <gtest/gtest.h>

#include "reconcilers/cluster/record.h"

namespace gso::test {
namespace {

TEST(Record, KeepsTheTextsOfTheLastTwoVerifiedRevisions) {
  FleetRecord record;
  record.note_verified("ns/map/key", "v1-a", "text a");
  record.note_verified("ns/map/key", "v1-b", "text b");
  EXPECT_EQ(record.verified["ns/map/key"], "v1-b");
  EXPECT_EQ(record.previous["ns/map/key"], "v1-a");
  EXPECT_EQ(record.texts, (std::map<std::string, std::string>{{"v1-a", "text a"}, {"v1-b", "text b"}}));
  record.note_verified("ns/map/key", "v1-c", "text c");
  EXPECT_EQ(record.previous["ns/map/key"], "v1-b");
  EXPECT_FALSE(record.texts.contains("v1-a"));
}

TEST(Record, TheSameRevisionAgainChangesNothing) {
  FleetRecord record;
  record.note_verified("id", "v1-a", "text");
  const FleetRecord before = record;
  record.note_verified("id", "v1-a", "text");
  EXPECT_EQ(record, before);
}

TEST(Record, ATextBeyondTheBoundsIsLeftOutAndTheRevisionIsKept) {
  FleetRecord record;
  record.note_verified("id", "v1-long", std::string(FleetRecord::kMaxText + 1, 'x'));
  EXPECT_EQ(record.verified["id"], "v1-long");
  EXPECT_TRUE(record.texts.empty());
  for (std::size_t i = 0; i < 40; ++i) {
    record.note_verified("id" + std::to_string(i), "v1-" + std::to_string(i), std::string(FleetRecord::kMaxText, 'x'));
  }
  std::size_t size = 0;
  for (const auto& [revision, text] : record.texts) size += text.size();
  EXPECT_EQ(size, FleetRecord::kMaxTexts);
}

TEST(Record, IsReadAsItWasWritten) {
  FleetRecord record;
  record.note_verified("ns/map/key", "v1-a", "a: \"quoted\"\n");
  record.note_verified("ns/map/key", "v1-b", "b\n");
  record.good[{"p", "ns/map"}] = {"gso-p-1", "v1-b", "gso-p-0"};
  record.failures.push_back({"p", "ns/map", "gso-p-2", "v1-c", "1", {}, true});
  const auto read = parse_record(print_record(record));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, record);
}

TEST(Record, AWrongFieldIsNamed) {
  const auto read = parse_record(R"({"version":1,"texts":{"v1-a":7}})");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("texts must map texts to texts"), std::string::npos) << read.error().message;
}

}  // namespace
}  // namespace gso::test
