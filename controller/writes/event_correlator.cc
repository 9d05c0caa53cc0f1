#include "controller/writes/event_correlator.h"

#include <algorithm>
#include <functional>

namespace gso {
namespace {

EventId hash_of(std::string text) {
  const std::size_t low = std::hash<std::string>{}(text);
  text += '\x01';  // Another text, and so another hash.
  return {std::hash<std::string>{}(text), low};
}

// No field of these has a null byte.
std::string object_text(const RecordEvent& event) {
  const ObjectRef& object = event.regarding;
  std::string out;
  for (const std::string* part : {&object.api_version, &object.kind, &object.ns, &object.name, &object.uid}) {
    out += *part;
    out += '\0';
  }
  return out;
}

std::string group_text(const RecordEvent& event) {
  return object_text(event) + event.reason + '\0' + (event.warning ? 'W' : 'N');
}

}  // namespace

EventId event_id(const RecordEvent& event) {
  return hash_of(group_text(event) + '\0' + event.note);
}

bool EventCorrelator::is_one_of_many(const EventId& id_of_group, const EventId& id, k8s::MonoTime now) {
  Group& group = groups_[id_of_group];
  if (now - group.last > kSimilarWindow) group.notes.clear();
  group.last = now;
  if (std::ranges::find(group.notes, id) != group.notes.end()) return false;
  if (group.notes.size() >= kSimilar) return true;
  group.notes.push_back(id);
  return false;
}

EventCorrelator::Reporter EventCorrelator::reporter_of(const RecordEvent& event, k8s::MonoTime now) {
  const EventId id = event_id(event);
  const EventId group = hash_of(group_text(event));
  if (is_one_of_many(group, id, now)) return {.id = group, .combined = true};
  return {.id = id, .combined = false};
}

bool EventCorrelator::allows(const RecordEvent& event, k8s::MonoTime now) {
  const double per_second = 1 / std::chrono::duration<double>(kObjectRefill).count();
  const auto object = objects_.try_emplace(hash_of(object_text(event)), per_second, kObjectBurst).first;
  return object->second.try_take(now);
}

void EventCorrelator::forget_old(k8s::MonoTime now) {
  std::erase_if(groups_, [&](const auto& entry) { return now - entry.second.last > kSimilarWindow; });
  std::erase_if(objects_, [&](const auto& entry) { return entry.second.is_full(now); });
}

}  // namespace gso
