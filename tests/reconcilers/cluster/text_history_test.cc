// Which texts a container can have read, by the time at which it read.
#include "reconcilers/cluster/record.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "reconcilers/cluster/config_maps.h"

namespace gso::test::text_history_test {
namespace {

using namespace std::chrono_literals;

// A time of one day.
k8s::WallTime at(const std::string& time) {
  return *k8s::parse_rfc3339("2026-03-02T" + time + "Z");
}

// The key had A, B from 08:00:00 on, and A again from 08:10:00 on.
const std::vector<RecordedText> kEditedAndBack = {{"A", at("07:00:00"), {}}, {"B", at("08:00:00"), {}}};
const PresentText kPresent{"A", at("08:10:00"), at("08:10:00")};

std::string read(const std::vector<RecordedText>& texts, const PresentText& present, const std::string& from,
                 const std::string& to = "", k8s::Duration difference = {}) {
  ReadTexts found;
  add_texts_read(texts, present, {at(from), at(to.empty() ? from : to)}, difference, found);
  std::string out(found.present ? present.revision : "");
  for (const std::string_view other : found.others) out += other;
  return out;
}

// Nothing is known of the time before the first text. Times are whole seconds: in the second of an edit it is either.
TEST(TextHistory, ContainersOfAnEditAndItsReturnCanHaveReadTheTextsOfTheirTime) {
  const struct {
    const char *from, *to, *read;
  } cases[] = {{"06:59:59", "06:59:59", ""},   {"07:00:00", "07:00:00", "A"}, {"07:59:59", "07:59:59", "A"},
               {"08:00:00", "08:00:00", "AB"}, {"08:00:01", "08:00:01", "B"}, {"08:09:59", "08:09:59", "B"},
               {"08:10:00", "08:10:00", "AB"}, {"08:10:01", "08:10:01", "A"}, {"07:59:00", "07:59:59", "A"},
               {"07:59:00", "08:05:00", "AB"}, {"08:05:00", "09:00:00", "AB"}};
  for (const auto& c : cases) EXPECT_EQ(read(kEditedAndBack, kPresent, c.from, c.to), c.read) << c.from << c.to;
}

TEST(TextHistory, CloseToAnEditItIsEitherTextIfClocksDiffer) {
  const auto in_doubt = [](const std::string& moment) { return read(kEditedAndBack, kPresent, moment, moment, 3s); };
  EXPECT_EQ(in_doubt("07:59:56"), "A");
  EXPECT_EQ(in_doubt("07:59:57"), "AB");
  EXPECT_EQ(in_doubt("08:00:03"), "AB");
  EXPECT_EQ(in_doubt("08:00:04"), "B");
}

TEST(TextHistory, EveryTextOfTheTimeCounts) {
  const std::vector<RecordedText> texts = {
      {"A", at("07:00:00"), {}}, {"B", at("08:00:00"), {}}, {"C", at("08:05:00"), {}}};
  EXPECT_EQ(read(texts, kPresent, "08:04:00", "08:06:00"), "BC");
  EXPECT_EQ(read(texts, kPresent, "07:04:00", "08:11:00"), "ABC");
}

// Somebody edited another key afterwards: the present text came at some time after 08:00:00.
TEST(TextHistory, WhereItIsNotKnownWhenThePresentTextCameBothCount) {
  const PresentText vague{"A", at("08:10:00"), at("08:00:00")};
  EXPECT_EQ(read(kEditedAndBack, vague, "08:05:00"), "AB");
}

// A node is recorded with the present text after that came, and can have loaded it by its label.
TEST(TextHistory, TextsFromBeforeThePresentOneSayNothing) {
  const std::vector<RecordedText> texts = {
      {"B", at("06:00:00"), {}}, {"A", at("07:00:00"), {}}, {"B", at("08:00:00"), {}}};
  EXPECT_EQ(read(texts, kPresent, "06:30:00"), "");
  EXPECT_EQ(read(texts, kPresent, "08:30:00"), "A");
  EXPECT_EQ(read(texts, kPresent, "08:05:00"), "B");
}

TEST(TextHistory, ProvesNothingWhereTheClockOfTheApiServerWasSetBack) {
  const PresentText earlier{"A", at("07:50:00"), at("07:50:00")};
  EXPECT_EQ(read(kEditedAndBack, earlier, "08:05:00"), "A");
}

TEST(TextHistory, APodThatExitedOnAnInvalidTextHasStartedWithAnotherSince) {
  const std::vector<RecordedText> texts = {{"A", at("07:00:00"), {}},
                                           {std::string(kInvalidRevision), at("08:00:00"), {}}};
  EXPECT_EQ(read(texts, kPresent, "08:05:00"), "");
}

TEST(TextHistory, OnlyTheTimeOfATextAloneProvesIt) {
  const auto in_doubt = [](const std::string& from, const std::string& to) {
    return can_have_read_another(kEditedAndBack, kPresent, "B", {at(from), at(to)}, k8s::Duration());
  };
  EXPECT_FALSE(in_doubt("08:00:01", "08:09:59"));
  EXPECT_TRUE(in_doubt("08:00:00", "08:05:00"));
  EXPECT_TRUE(in_doubt("08:05:00", "08:10:00"));
  EXPECT_FALSE(in_doubt("06:00:00", "06:05:00")) << "nothing is recorded of that time";
}

TEST(TextHistory, ATextHasComeBackIfAnotherOneWasThereInBetween) {
  EXPECT_TRUE(has_come_back(kEditedAndBack, "A"));
  EXPECT_FALSE(has_come_back(kEditedAndBack, "B"));
  EXPECT_FALSE(has_come_back(kEditedAndBack, "C"));
}

TEST(TextHistory, WhatItForgetsIsKnownToHaveBeenThere) {
  std::vector<RecordedText> texts;
  k8s::WallTime since = at("07:00:00");
  for (const char revision : std::string("ABCDEFGHIJKLMN")) {
    add_text(texts, {std::string(1, revision), since, {}});
    since += 1h;
  }
  EXPECT_EQ(texts.size(), kMostTexts);
  EXPECT_TRUE(is_last(texts, "N"));
  const PresentText back{"A", at("07:00:00") + 24h, at("07:00:00") + 24h};
  EXPECT_TRUE(has_come_back(texts, "A"));
  EXPECT_EQ(read(texts, back, "07:30:00"), "A");
  EXPECT_EQ(read(texts, back, "08:30:00"), kUnknownText);
  EXPECT_EQ(read(texts, back, "10:30:00"), kUnknownText);
  EXPECT_EQ(read(texts, back, "11:30:00"), "E");
}

TEST(TextHistory, TimesThatProveNothingAreThoseOfTheLastTextOnly) {
  std::vector<RecordedText> texts = {{"A", at("07:00:00"), at("07:05:00")}};
  EXPECT_EQ(doubtful_until(texts, "A"), at("07:05:00"));
  EXPECT_EQ(doubtful_until(texts, "B"), std::nullopt);
  add_text(texts, {"B", at("08:00:00"), {}});
  EXPECT_EQ(doubtful_until(texts, "B"), std::nullopt);
}

}  // namespace
}  // namespace gso::test::text_history_test
