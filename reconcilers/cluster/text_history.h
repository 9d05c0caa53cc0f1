// Which texts of its key a container can have read: those that the key had while it read, according to the record.
// Labels do not show that where two texts differ in none of them.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/record.h"

namespace gso {

// Within which time a container has read its text.
struct ReadingTime {
  k8s::WallTime from{};
  k8s::WallTime to{};
};

// Stands in the record for texts that are not known (any more).
inline constexpr std::string_view kUnknownText = "unknown";

// The present text of a key.
struct PresentText {
  std::string_view revision;
  // It has certainly been there since `since` (data_known_since(), config_maps.h), and was not there before
  // `first`.
  k8s::WallTime since{};
  k8s::WallTime first{};
};

// What a container can have read.
struct ReadTexts {
  std::set<std::string_view> others;  // Revisions, kUnknownText among them.
  bool present = false;
};

// Adds the texts that a container can have read in that time. Of the other texts only those count that came after the
// key first had the present one: a node is recorded with the present text once that has come, and can have loaded it by
// its label, with pods that are older. Kubernetes' times are whole seconds, and clocks differ by up to `difference`: so
// close to an edit either text counts. An invalid text does not: a container that exits on it starts again with a later
// one. `texts`: FleetRecord::history of the key.
void add_texts_read(const std::vector<RecordedText>& texts, const PresentText& present, const ReadingTime& time,
                    k8s::Duration difference, ReadTexts& out);

// A container can have read another text than that one in that time. False where the record has no text of that time.
[[nodiscard]] bool can_have_read_another(const std::vector<RecordedText>& texts, const PresentText& present,
                                         std::string_view revision, const ReadingTime& time, k8s::Duration difference);

// The key had the present text, then another one, and now the present text again.
[[nodiscard]] bool has_come_back(const std::vector<RecordedText>& texts, std::string_view present);

// RecordedText::doubtful_until of the present text; nullopt: none, or the record has another text.
[[nodiscard]] std::optional<k8s::WallTime> doubtful_until(const std::vector<RecordedText>& texts,
                                                          std::string_view present);

// The record has the present text as the last one.
[[nodiscard]] bool is_last(const std::vector<RecordedText>& texts, std::string_view present);
// Adds a text. If there are too many, the oldest ones become kUnknownText, all but the first of them: whether the
// present text has come back stays known.
inline constexpr std::size_t kMostTexts = 12;  // Of one key.
void add_text(std::vector<RecordedText>& texts, RecordedText text);

}  // namespace gso
