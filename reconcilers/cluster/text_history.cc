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

bool reaches(k8s::WallTime since, const std::optional<k8s::WallTime>& end, const ReadingTime& time,
             k8s::Duration difference) {
  return second_of(since) <= second_of(time.to, difference) &&
         (!end || second_of(time.from) <= second_of(*end, difference));
}

// Until when the key had a text of the list; nullopt: it still has it.
std::optional<k8s::WallTime> end_of(const std::vector<RecordedText>& texts, std::size_t i, const PresentText& present) {
  if (i + 1 < texts.size()) return texts[i + 1].since;
  return is_last(texts, present.revision) ? std::nullopt : std::optional(present.since);
}

}  // namespace

void add_texts_read(const std::vector<RecordedText>& texts, const PresentText& present, const ReadingTime& time,
                    k8s::Duration difference, ReadTexts& out) {
  bool had_present = false;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string& revision = texts[i].revision;
    const bool is_present = revision == present.revision;
    had_present = had_present || is_present;
    const bool counts = is_present || (had_present && revision != kInvalidRevision);
    if (!counts || !reaches(texts[i].since, end_of(texts, i, present), time, difference)) continue;
    if (is_present) {
      out.present = true;
    } else {
      out.others.insert(revision);
    }
  }
  const bool has_come = !is_last(texts, present.revision) && reaches(present.first, std::nullopt, time, difference);
  out.present = out.present || has_come;
}

bool can_have_read_another(const std::vector<RecordedText>& texts, const PresentText& present,
                           std::string_view revision, const ReadingTime& time, k8s::Duration difference) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const bool is_other = texts[i].revision != revision && texts[i].revision != kInvalidRevision;
    if (is_other && reaches(texts[i].since, end_of(texts, i, present), time, difference)) return true;
  }
  return present.revision != revision && !is_last(texts, present.revision) &&
         reaches(present.first, std::nullopt, time, difference);
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
