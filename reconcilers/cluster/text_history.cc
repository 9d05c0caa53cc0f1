#include "reconcilers/cluster/text_history.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include "reconcilers/cluster/profile_cache.h"

namespace gso {

namespace {

// `by`: how much later it can be.
std::chrono::sys_seconds second_of(k8s::WallTime time, k8s::Duration by = {}) {
  return std::chrono::floor<std::chrono::seconds>(time + by);
}

}  // namespace

void add_texts_read(const std::vector<RecordedText>& texts, const PresentText& present, const ReadingTime& time,
                    k8s::Duration difference, ReadTexts& out) {
  const auto can_be = [&](k8s::WallTime since, std::optional<k8s::WallTime> end) {
    return second_of(since) <= second_of(time.to, difference) &&
           (!end || second_of(time.from) <= second_of(*end, difference));
  };
  const bool present_is_last = is_last(texts, present.revision);
  bool had_present = false;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const RecordedText& text = texts[i];
    const bool newest = i + 1 == texts.size();
    const bool is_present = text.revision == present.revision;
    const bool counts = is_present || (had_present && text.revision != kInvalidRevision);
    had_present = had_present || is_present;
    if (!counts) continue;
    std::optional<k8s::WallTime> end;
    if (!newest) end = texts[i + 1].since;
    if (newest && !present_is_last) end = present.since;
    if (!can_be(text.since, end)) continue;
    if (is_present) {
      out.present = true;
    } else {
      out.others.insert(text.revision);
    }
  }
  if (!present_is_last && can_be(present.first, std::nullopt)) out.present = true;
}

bool has_come_back(const std::vector<RecordedText>& texts, std::string_view present) {
  const auto first = std::ranges::find(texts, present, &RecordedText::revision);
  return std::ranges::any_of(first, texts.end(), [&](const RecordedText& text) { return text.revision != present; });
}

std::optional<k8s::WallTime> doubtful_until(const std::vector<RecordedText>& texts, std::string_view present) {
  return is_last(texts, present) ? texts.back().doubtful_until : std::nullopt;
}

bool is_last(const std::vector<RecordedText>& texts, std::string_view present) {
  return !texts.empty() && texts.back().revision == present;
}

void add_text(std::vector<RecordedText>& texts, RecordedText text) {
  texts.push_back(std::move(text));
  if (texts.size() <= kMostTexts) return;
  texts[1].revision = kUnknownText;
  texts.erase(texts.begin() + 2);
}

}  // namespace gso
