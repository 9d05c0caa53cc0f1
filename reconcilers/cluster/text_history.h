// Which text of its key a pod has read: the one that the key had when the pod was created, according to the record.
// Labels do not show that where two texts differ in none of them.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "reconcilers/cluster/record.h"

namespace gso {

// When a pod was created, and when the last of its containers started, as far as that is known. It has read its text in
// between: an image can be pulled for long.
struct PodTimes {
  k8s::WallTime created{};
  std::optional<k8s::WallTime> started;
};

// The present text of a key.
struct PresentText {
  std::string_view revision;
  k8s::WallTime since{};  // As data_known_since() (config_map_times.h).
};

// The revision that a pod has certainly read which has these times, and whose containers have not restarted. Empty: not
// known, or none that a pod could load. Kubernetes' times are whole seconds, so a pod that was created in the second of
// an edit has certainly read neither text. `texts`: FleetRecord::history of the key.
[[nodiscard]] std::string_view revision_read_at(const std::vector<RecordedText>& texts, const PresentText& present,
                                                const PodTimes& pod);

// The key had the present text, then `revision`, and then the present text again. A node that is recorded with the
// present text can have been recorded before `revision` came.
[[nodiscard]] bool has_come_back(const std::vector<RecordedText>& texts, std::string_view present,
                                 std::string_view revision);

// RecordedText::doubtful_until of the present text; nullopt: none, or the record has another text.
[[nodiscard]] std::optional<k8s::WallTime> doubtful_until(const std::vector<RecordedText>& texts,
                                                          std::string_view present);

// The record has the present text as the last one.
[[nodiscard]] bool is_last(const std::vector<RecordedText>& texts, std::string_view present);
// Adds a text, and forgets the oldest one if there are too many.
inline constexpr std::size_t kMostTexts = 12;  // Of one key.
void add_text(std::vector<RecordedText>& texts, RecordedText text);

}  // namespace gso
