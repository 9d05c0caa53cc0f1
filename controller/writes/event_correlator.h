// EventCorrelator: which of the Events that planners report are worth a request, and as what. As client-go's core
// recorder (tools/record/events_cache.go) it bounds what one object can cause:
//  - more than kSimilar different notes of one (object, reason, type) within kSimilarWindow become one Event, whose
//  note
//    begins with kCombinedPrefix and which is a series from then on;
//  - an object has kObjectBurst Events at once, and one more for each kObjectRefill.
// Its memory is bounded as well: an Event is known by a hash, its text is in the queue of the recorder only.
// Pure: it gets the time with each call.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "controller/runtime/token_bucket.h"
#include "k8sclient/clock.h"
#include "reconcilers/model/plan.h"

namespace gso {

// Identifies an Event, or a group of them, by a hash of 128 bits: two that collide would be reported as one.
struct EventId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend bool operator==(const EventId&, const EventId&) = default;
};
struct EventIdHash {
  std::size_t operator()(const EventId& id) const noexcept { return id.low; }
};

// (regarding, reason, type, note): what makes two Events the same.
[[nodiscard]] EventId event_id(const RecordEvent& event);

class EventCorrelator {
 public:
  static constexpr std::size_t kSimilar = 10;
  static constexpr k8s::Duration kSimilarWindow = std::chrono::minutes(10);
  static constexpr double kObjectBurst = 25;
  static constexpr k8s::Duration kObjectRefill = std::chrono::minutes(5);
  static constexpr std::string_view kCombinedPrefix = "(combined from similar events): ";

  // The Event that reports an occurrence: its own, or the one of all similar ones.
  struct Reporter {
    EventId id;
    bool combined = false;
  };
  [[nodiscard]] Reporter reporter_of(const RecordEvent& event, k8s::MonoTime now);
  // The object may have one more request about it; counts it. False: it has had too many.
  [[nodiscard]] bool allows(const RecordEvent& event, k8s::MonoTime now);

  // Forgets groups that are older than kSimilarWindow, and objects that have all their Events again.
  void forget_old(k8s::MonoTime now);
  // How much is remembered: groups and objects.
  [[nodiscard]] std::size_t size() const { return groups_.size() + objects_.size(); }

 private:
  struct Group {
    std::vector<EventId> notes;  // At most kSimilar.
    k8s::MonoTime last;
  };
  [[nodiscard]] bool is_one_of_many(const EventId& group, const EventId& id, k8s::MonoTime now);

  std::unordered_map<EventId, Group, EventIdHash> groups_;
  std::unordered_map<EventId, TokenBucket, EventIdHash> objects_;
};

}  // namespace gso
