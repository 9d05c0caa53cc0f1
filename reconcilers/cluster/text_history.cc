#include "reconcilers/cluster/text_history.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include "reconcilers/cluster/profile_cache.h"

namespace gso {

namespace {

std::chrono::sys_seconds second_of(k8s::WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time);
}

}  // namespace

std::string_view revision_read_at(const std::vector<RecordedText>& texts, const PresentText& present,
                                  const PodTimes& pod) {
  const k8s::WallTime started = pod.started.value_or(pod.created);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const bool is_newest = i + 1 == texts.size();
    if (is_newest && texts[i].revision == present.revision) break;
    const k8s::WallTime end = is_newest ? present.since : texts[i + 1].since;
    if (second_of(pod.created) <= second_of(texts[i].since) || second_of(pod.created) >= second_of(end)) continue;
    if (second_of(started) >= second_of(end)) continue;
    // A container that exits on its text starts again with a later one.
    return texts[i].revision == kInvalidRevision ? std::string_view() : std::string_view(texts[i].revision);
  }
  return {};
}

bool has_come_back(const std::vector<RecordedText>& texts, std::string_view present, std::string_view revision) {
  const auto first = std::ranges::find(texts, present, &RecordedText::revision);
  return std::ranges::any_of(first, texts.end(), [&](const RecordedText& text) { return text.revision == revision; });
}

std::optional<k8s::WallTime> doubtful_until(const std::vector<RecordedText>& texts, std::string_view present) {
  return is_last(texts, present) ? texts.back().doubtful_until : std::nullopt;
}

bool is_last(const std::vector<RecordedText>& texts, std::string_view present) {
  return !texts.empty() && texts.back().revision == present;
}

void add_text(std::vector<RecordedText>& texts, RecordedText text) {
  texts.push_back(std::move(text));
  if (texts.size() > kMostTexts) texts.erase(texts.begin());
}

}  // namespace gso
