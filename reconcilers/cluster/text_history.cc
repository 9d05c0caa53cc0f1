#include "reconcilers/cluster/text_history.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include "reconcilers/cluster/profile_cache.h"
#include "reconcilers/model/json_access.h"

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

using Json = nlohmann::json;

namespace {

// nullopt: no timer has that name.
std::optional<Timer> parse_timer(std::string_view name) {
  constexpr int kMost = 255;
  for (int number = 0; number <= kMost; ++number) {
    const auto timer = static_cast<Timer>(number);
    if (to_string(timer) == name) return name == "unknown" ? std::nullopt : std::optional(timer);
  }
  return std::nullopt;
}

std::optional<k8s::WallTime> time_in(const Json& object, const char* field) {
  return k8s::parse_rfc3339(text_at(object, field));
}

// The text before the next '/', which is removed from `rest` with it.
std::string next_part(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('/'), rest.size());
  std::string part(rest.substr(0, end));
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

// "timer/subject/scope", as to_string(TimerKey) prints it. nullopt: this release does not know such a timer.
std::optional<TimerKey> parse_timer_key(std::string_view text) {
  const auto timer = parse_timer(next_part(text));
  if (!timer) return std::nullopt;
  std::string subject = next_part(text);
  if (*timer == Timer::daemonset_stalls) subject += "/" + next_part(text);  // namespace/name
  return TimerKey{*timer, std::move(subject), std::string(text)};
}

// A timer that only another release has is dropped: what it measures begins again.
bool read_timer(const std::string& key, const Json& json, FleetRecord& out) {
  const auto since = json.is_string() ? k8s::parse_rfc3339(json.get<std::string>()) : std::nullopt;
  if (!since) return false;
  if (const auto timer = parse_timer_key(key)) out.timers[*timer] = *since;
  return true;
}

bool read_recorded_text(const Json& json, std::vector<RecordedText>& out) {
  RecordedText read{text_at(json, "revision"), {}, {}};
  const auto since = time_in(json, "since");
  if (read.revision.empty() || !since) return false;
  read.since = *since;
  if (json.contains("doubtfulUntil")) {
    read.doubtful_until = time_in(json, "doubtfulUntil");
    if (!read.doubtful_until) return false;
  }
  add_text(out, std::move(read));
  return true;
}

Json print_text(const RecordedText& text) {
  Json out = {{"revision", text.revision}, {"since", k8s::format_time(text.since)}};
  if (text.doubtful_until) out["doubtfulUntil"] = k8s::format_time(*text.doubtful_until);
  return out;
}

}  // namespace

void print_times(const FleetRecord& record, Json& root) {
  for (const auto& [key, since] : record.timers) {
    root["timers"][to_string(key)] = k8s::format_time(since);
  }
  for (const auto& [id, texts] : record.history) {
    for (const RecordedText& text : texts) root["history"][id].push_back(print_text(text));
  }
}

std::string read_times(const Json& root, FleetRecord& out) {
  constexpr const char* kTimers = "timers must map timers to RFC 3339 times";
  constexpr const char* kHistory = "history must map keys to lists of entries with revision and since";
  if (const Json* timers = member_at(root, "timers")) {
    if (!timers->is_object()) return kTimers;
    for (const auto& [key, since] : timers->items()) {
      if (!read_timer(key, since, out)) return kTimers;
    }
  }
  const Json* history = member_at(root, "history");
  if (history == nullptr) return {};
  if (!history->is_object()) return kHistory;
  for (const auto& [id, texts] : history->items()) {
    if (!texts.is_array() || texts.empty()) return kHistory;
    for (const Json& entry : texts) {
      if (!entry.is_object() || !read_recorded_text(entry, out.history[id])) return kHistory;
    }
  }
  return {};
}

}  // namespace gso
