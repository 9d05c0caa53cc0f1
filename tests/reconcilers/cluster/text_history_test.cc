// Which text a pod has read, by the time at which it was created.
#include "reconcilers/cluster/text_history.h"

#include <gtest/gtest.h>

#include "reconcilers/cluster/profile_cache.h"

namespace gso::test::text_history_test {
namespace {

k8s::WallTime at(std::string_view time) {
  return *k8s::parse_rfc3339(time);
}

// The key had A, B from 08:00:00 on, and A again from 08:10:00 on.
const std::vector<RecordedText> kEditedAndBack = {{"A", at("2026-03-02T07:00:00Z"), {}},
                                                  {"B", at("2026-03-02T08:00:00Z"), {}}};
const PresentText kPresent{"A", at("2026-03-02T08:10:00Z")};

struct Case {
  const char* created;
  const char* read;
};

class PodsOfAnEditAndItsReturn : public testing::TestWithParam<Case> {};

TEST_P(PodsOfAnEditAndItsReturn, HaveReadTheTextOfTheirTime) {
  EXPECT_EQ(revision_read_at(kEditedAndBack, kPresent, {at(GetParam().created), {}}), GetParam().read);
}

// Nothing is known of the time before the first text, of the seconds of an edit, and of the present text: whether a pod
// has read that one is another question (loaded_after()).
INSTANTIATE_TEST_SUITE_P(Times, PodsOfAnEditAndItsReturn,
                         testing::Values(Case{"2026-03-02T06:59:59Z", ""}, Case{"2026-03-02T07:00:00Z", ""},
                                         Case{"2026-03-02T07:00:01Z", "A"}, Case{"2026-03-02T07:59:59Z", "A"},
                                         Case{"2026-03-02T08:00:00Z", ""}, Case{"2026-03-02T08:00:01Z", "B"},
                                         Case{"2026-03-02T08:09:59Z", "B"}, Case{"2026-03-02T08:10:00Z", ""},
                                         Case{"2026-03-02T08:10:01Z", ""}));

TEST(TextHistory, ProvesNothingWhereTheClockOfTheApiServerWasSetBack) {
  const PresentText earlier{"A", at("2026-03-02T07:50:00Z")};
  EXPECT_EQ(revision_read_at(kEditedAndBack, earlier, {at("2026-03-02T08:05:00Z"), {}}), "");
}

TEST(TextHistory, APodThatExitedOnAnInvalidTextHasStartedWithAnotherSince) {
  const std::vector<RecordedText> texts = {{"A", at("2026-03-02T07:00:00Z"), {}},
                                           {std::string(kInvalidRevision), at("2026-03-02T08:00:00Z"), {}}};
  EXPECT_EQ(revision_read_at(texts, kPresent, {at("2026-03-02T08:05:00Z"), {}}), "");
}

// Its image was pulled meanwhile: it has read A or B.
TEST(TextHistory, DoesNotKnowWhatAPodHasReadThatStartedAfterTheNextEdit) {
  const auto created = at("2026-03-02T07:59:00Z");
  EXPECT_EQ(revision_read_at(kEditedAndBack, kPresent, {created, at("2026-03-02T07:59:59Z")}), "A");
  EXPECT_EQ(revision_read_at(kEditedAndBack, kPresent, {created, at("2026-03-02T08:00:00Z")}), "");
  EXPECT_EQ(revision_read_at(kEditedAndBack, kPresent, {created, at("2026-03-02T08:05:00Z")}), "");
}

TEST(TextHistory, ATextHasComeBackIfAnotherOneWasThereInBetween) {
  EXPECT_TRUE(has_come_back(kEditedAndBack, "A", "B"));
  EXPECT_FALSE(has_come_back(kEditedAndBack, "B", "A"));
  EXPECT_FALSE(has_come_back(kEditedAndBack, "C", "A"));
}

TEST(TextHistory, ForgetsTheOldestText) {
  std::vector<RecordedText> texts;
  for (const char revision : std::string("ABCDEFGHIJKLM")) {
    add_text(texts, {std::string(1, revision), at("2026-03-02T07:00:00Z"), {}});
  }
  EXPECT_EQ(texts.size(), kMostTexts);
  EXPECT_EQ(texts.front().revision, "B");
  EXPECT_TRUE(is_last(texts, "M"));
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
