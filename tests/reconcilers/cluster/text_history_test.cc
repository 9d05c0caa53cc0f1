// Which texts a container can have read, by the time at which it read.
#include "reconcilers/cluster/record.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "reconcilers/cluster/config_maps.h"

namespace gso::test::text_history_test {
namespace {

using namespace std::chrono_literals;

k8s::WallTime at(std::string_view time) {
  return *k8s::parse_rfc3339(time);
}

// The key had A, B from 08:00:00 on, and A again from 08:10:00 on.
const std::vector<RecordedText> kEditedAndBack = {{"A", at("2026-03-02T07:00:00Z"), {}},
                                                  {"B", at("2026-03-02T08:00:00Z"), {}}};
const PresentText kPresent{"A", at("2026-03-02T08:10:00Z"), at("2026-03-02T08:10:00Z")};

std::string read(const std::vector<RecordedText>& texts, const PresentText& present, std::string_view from,
                 std::string_view to, k8s::Duration difference) {
  ReadTexts found;
  add_texts_read(texts, present, {at(from), at(to)}, difference, found);
  std::string out(found.present ? present.revision : "");
  for (const std::string_view other : found.others) out += other;
  return out;
}

struct Case {
  const char* from;
  const char* to;
  const char* read;
};

class ContainersOfAnEditAndItsReturn : public testing::TestWithParam<Case> {};

TEST_P(ContainersOfAnEditAndItsReturn, CanHaveReadTheTextsOfTheirTime) {
  EXPECT_EQ(read(kEditedAndBack, kPresent, GetParam().from, GetParam().to, k8s::Duration()), GetParam().read);
}

// Nothing is known of the time before the first text. Times are whole seconds: in the second of an edit it is either.
INSTANTIATE_TEST_SUITE_P(
    Times, ContainersOfAnEditAndItsReturn,
    testing::Values(Case{"2026-03-02T06:59:59Z", "2026-03-02T06:59:59Z", ""},
                    Case{"2026-03-02T07:00:00Z", "2026-03-02T07:00:00Z", "A"},
                    Case{"2026-03-02T07:59:59Z", "2026-03-02T07:59:59Z", "A"},
                    Case{"2026-03-02T08:00:00Z", "2026-03-02T08:00:00Z", "AB"},
                    Case{"2026-03-02T08:00:01Z", "2026-03-02T08:00:01Z", "B"},
                    Case{"2026-03-02T08:09:59Z", "2026-03-02T08:09:59Z", "B"},
                    Case{"2026-03-02T08:10:00Z", "2026-03-02T08:10:00Z", "AB"},
                    Case{"2026-03-02T08:10:01Z", "2026-03-02T08:10:01Z", "A"},
                    Case{"2026-03-02T07:59:00Z", "2026-03-02T07:59:59Z", "A"},     // Its image was pulled,
                    Case{"2026-03-02T07:59:00Z", "2026-03-02T08:05:00Z", "AB"},    // over the edit,
                    Case{"2026-03-02T08:05:00Z", "2026-03-02T09:00:00Z", "AB"}));  // over its return.

TEST(TextHistory, CloseToAnEditItIsEitherTextIfClocksDiffer) {
  const auto in_doubt = [](std::string_view moment) { return read(kEditedAndBack, kPresent, moment, moment, 3s); };
  EXPECT_EQ(in_doubt("2026-03-02T07:59:56Z"), "A");
  EXPECT_EQ(in_doubt("2026-03-02T07:59:57Z"), "AB");
  EXPECT_EQ(in_doubt("2026-03-02T08:00:03Z"), "AB");
  EXPECT_EQ(in_doubt("2026-03-02T08:00:04Z"), "B");
}

TEST(TextHistory, EveryTextOfTheTimeCounts) {
  const std::vector<RecordedText> texts = {{"A", at("2026-03-02T07:00:00Z"), {}},
                                           {"B", at("2026-03-02T08:00:00Z"), {}},
                                           {"C", at("2026-03-02T08:05:00Z"), {}}};
  EXPECT_EQ(read(texts, kPresent, "2026-03-02T08:04:00Z", "2026-03-02T08:06:00Z", k8s::Duration()), "BC");
  EXPECT_EQ(read(texts, kPresent, "2026-03-02T07:04:00Z", "2026-03-02T08:11:00Z", k8s::Duration()), "ABC");
}

// Somebody edited another key afterwards: the present text came at some time after 08:00:00.
TEST(TextHistory, WhereItIsNotKnownWhenThePresentTextCameBothCount) {
  const PresentText vague{"A", at("2026-03-02T08:10:00Z"), at("2026-03-02T08:00:00Z")};
  EXPECT_EQ(read(kEditedAndBack, vague, "2026-03-02T08:05:00Z", "2026-03-02T08:05:00Z", k8s::Duration()), "AB");
}

// A node is recorded with the present text after that came, and can have loaded it by its label.
TEST(TextHistory, TextsFromBeforeThePresentOneSayNothing) {
  const std::vector<RecordedText> texts = {{"B", at("2026-03-02T06:00:00Z"), {}},
                                           {"A", at("2026-03-02T07:00:00Z"), {}},
                                           {"B", at("2026-03-02T08:00:00Z"), {}}};
  EXPECT_EQ(read(texts, kPresent, "2026-03-02T06:30:00Z", "2026-03-02T06:30:00Z", k8s::Duration()), "");
  EXPECT_EQ(read(texts, kPresent, "2026-03-02T08:30:00Z", "2026-03-02T08:30:00Z", k8s::Duration()), "A");
  EXPECT_EQ(read(texts, kPresent, "2026-03-02T08:05:00Z", "2026-03-02T08:05:00Z", k8s::Duration()), "B");
}

TEST(TextHistory, ProvesNothingWhereTheClockOfTheApiServerWasSetBack) {
  const PresentText earlier{"A", at("2026-03-02T07:50:00Z"), at("2026-03-02T07:50:00Z")};
  EXPECT_EQ(read(kEditedAndBack, earlier, "2026-03-02T08:05:00Z", "2026-03-02T08:05:00Z", k8s::Duration()), "A");
}

TEST(TextHistory, APodThatExitedOnAnInvalidTextHasStartedWithAnotherSince) {
  const std::vector<RecordedText> texts = {{"A", at("2026-03-02T07:00:00Z"), {}},
                                           {std::string(kInvalidRevision), at("2026-03-02T08:00:00Z"), {}}};
  EXPECT_EQ(read(texts, kPresent, "2026-03-02T08:05:00Z", "2026-03-02T08:05:00Z", k8s::Duration()), "");
}

TEST(TextHistory, OnlyTheTimeOfATextAloneProvesIt) {
  const auto in_doubt = [](std::string_view from, std::string_view to) {
    return can_have_read_another(kEditedAndBack, kPresent, "B", {at(from), at(to)}, k8s::Duration());
  };
  EXPECT_FALSE(in_doubt("2026-03-02T08:00:01Z", "2026-03-02T08:09:59Z"));
  EXPECT_TRUE(in_doubt("2026-03-02T08:00:00Z", "2026-03-02T08:05:00Z"));
  EXPECT_TRUE(in_doubt("2026-03-02T08:05:00Z", "2026-03-02T08:10:00Z"));
  EXPECT_FALSE(in_doubt("2026-03-02T06:00:00Z", "2026-03-02T06:05:00Z")) << "nothing is recorded of that time";
}

TEST(TextHistory, ATextHasComeBackIfAnotherOneWasThereInBetween) {
  EXPECT_TRUE(has_come_back(kEditedAndBack, "A"));
  EXPECT_FALSE(has_come_back(kEditedAndBack, "B"));
  EXPECT_FALSE(has_come_back(kEditedAndBack, "C"));
}

TEST(TextHistory, WhatItForgetsIsKnownToHaveBeenThere) {
  std::vector<RecordedText> texts;
  k8s::WallTime since = at("2026-03-02T07:00:00Z");
  for (const char revision : std::string("ABCDEFGHIJKLMN")) {
    add_text(texts, {std::string(1, revision), since, {}});
    since += 1h;
  }
  EXPECT_EQ(texts.size(), kMostTexts);
  EXPECT_TRUE(is_last(texts, "N"));
  const PresentText back{"A", at("2026-03-03T07:00:00Z"), at("2026-03-03T07:00:00Z")};
  EXPECT_TRUE(has_come_back(texts, "A"));
  EXPECT_EQ(read(texts, back, "2026-03-02T07:30:00Z", "2026-03-02T07:30:00Z", k8s::Duration()), "A");
  EXPECT_EQ(read(texts, back, "2026-03-02T08:30:00Z", "2026-03-02T08:30:00Z", k8s::Duration()), kUnknownText);
  EXPECT_EQ(read(texts, back, "2026-03-02T10:30:00Z", "2026-03-02T10:30:00Z", k8s::Duration()), kUnknownText);
  EXPECT_EQ(read(texts, back, "2026-03-02T11:30:00Z", "2026-03-02T11:30:00Z", k8s::Duration()), "E");
}

TEST(TextHistory, TimesThatProveNothingAreThoseOfTheLastTextOnly) {
  std::vector<RecordedText> texts = {{"A", at("2026-03-02T07:00:00Z"), at("2026-03-02T07:05:00Z")}};
  EXPECT_EQ(doubtful_until(texts, "A"), at("2026-03-02T07:05:00Z"));
  EXPECT_EQ(doubtful_until(texts, "B"), std::nullopt);
  add_text(texts, {"B", at("2026-03-02T08:00:00Z"), {}});
  EXPECT_EQ(doubtful_until(texts, "B"), std::nullopt);
}

}  // namespace
}  // namespace gso::test::text_history_test
