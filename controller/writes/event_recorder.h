// Events (events.k8s.io/v1): what the operator did or refused, on the object it concerns. Never blocks planning:
// record() only queues; run() sends.
//
// Planners are level-based, so they repeat an Event in every pass for as long as its cause holds. The recorder makes
// that into one Event per change: an Event that was in the previous pass too is the same occurrence, and silent. One
// that comes back after it was gone becomes the next occurrence of a series (one PATCH a minute at most). What one
// object can cause is bounded as client-go bounds it (event_recorder.h).
// Source of the rules: events.k8s.io/v1 and the community's event style guide.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "k8sclient/api/writer.h"
#include "k8sclient/backoff.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/encoding.h"
#include "k8sclient/value/error.h"
#include "reconcilers/model/plan.h"

namespace gso {

// --- EventCorrelator: which of the Events that planners report are worth a request, and as what. As client-go's core
// recorder (tools/record/events_cache.go) it bounds what one object can cause: - more than kSimilar different notes of
// one (object, reason, type) within kSimilarWindow become one Event, whose note begins with kCombinedPrefix and which
// is a series from then on; - an object has kObjectBurst Events at once, and one more for each kObjectRefill. Its
// memory is bounded as well: an Event is known by its print (two with the same would be reported as one), its text is
// in the queue of the recorder only. Pure: it gets the time with each call.

// (regarding, reason, type, note): what makes two Events the same.
[[nodiscard]] k8s::Print print_of(const RecordEvent& event);

class EventCorrelator {
 public:
  static constexpr std::size_t kSimilar = 10;
  static constexpr k8s::Duration kSimilarWindow = std::chrono::minutes(10);
  static constexpr double kObjectBurst = 25;
  static constexpr k8s::Duration kObjectRefill = std::chrono::minutes(5);
  static constexpr std::string_view kCombinedPrefix = "(combined from similar events): ";

  // The Event that reports an occurrence: its own, or the one of all similar ones.
  struct Reporter {
    k8s::Print id;
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
    std::vector<k8s::Print> notes;  // At most kSimilar.
    k8s::MonoTime last;
  };

  std::unordered_map<k8s::Print, Group> groups_;
  std::unordered_map<k8s::Print, k8s::TokenBucket> objects_;
};

using k8s::Duration;
using k8s::MonoTime;

// The reportingController of the operator's Events.
inline constexpr std::string_view kReportingController = "gpusharing.dev/gpu-sharing-operator";

struct EventRecorderOptions {
  std::string reporting_controller = std::string(kReportingController);
  std::string reporting_instance;                    // The pod's name; at most 128 characters.
  Duration series_window = std::chrono::minutes(6);  // Coming back within this continues the series.
  Duration series_update = std::chrono::minutes(1);  // Between two PATCHes of one series.
  std::size_t queue_limit = 1024;                    // Events waiting to be sent; more are dropped and counted.
  double refill_per_second = 10;                     // Of all Events together,
  double burst = 100;                                // after this many at once.
  std::uint64_t seed = 0;                            // Of the names' random part.
};

struct EventRecorderHooks {
  // "sent", "merged", "dropped" or "failed".
  std::function<void(const char* result)> counted = [](const char*) {};
  std::function<void(const k8s::Error&)> failed = [](const k8s::Error&) {};
  // Consulted just before sending (the lease check); its error drops the Event.
  std::function<k8s::Result<void>()> before_send = [] { return k8s::Result<void>{}; };
};

class EventRecorder {
 public:
  EventRecorder(k8s::Writer* client, k8s::Clock* clock, EventRecorderOptions options, EventRecorderHooks hooks = {});
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  // Everything that one planning pass reported. Queues what is new.
  void record_pass(const std::vector<RecordEvent>& events);
  // One Event of the runtime itself: every call is an occurrence.
  void record(const RecordEvent& event);

  // Sends what is queued until stop(); a failed Event is tried three times, then dropped.
  boost::asio::awaitable<void> run();
  void stop();
  // Returns when everything that is queued was sent, or at the deadline. run() goes on.
  boost::asio::awaitable<void> flush(MonoTime deadline);

  [[nodiscard]] std::size_t queued() const { return queue_.size(); }

 private:
  // What is remembered of an Event: about 100 bytes, so that one for each node of 50,000 costs 5 MB.
  struct Known {
    std::uint64_t stamp = 0;  // The end of the Event object's name.
    std::uint64_t pass = 0;   // Last pass it was in.
    MonoTime last_seen;
    k8s::WallTime first_time{};
    k8s::WallTime last_time{};
    MonoTime series_sent;
    std::uint32_t count = 1;
    bool created = false;
    bool queued = false;
  };
  struct Queued {
    k8s::Print id;
    RecordEvent event;
  };

  void occurrence(const RecordEvent& event, std::uint64_t pass);
  // Queues the Event, or the next one of its series.
  void report(const k8s::Print& id, RecordEvent event);
  void forget_old();
  [[nodiscard]] std::uint64_t new_stamp();
  [[nodiscard]] std::string event_json(const Known& known, const RecordEvent& event) const;
  boost::asio::awaitable<void> send(Queued next);
  boost::asio::awaitable<k8s::Result<std::string>> send_once(Known known, RecordEvent event);

  k8s::Writer* client_;
  k8s::Clock* clock_;
  EventRecorderOptions options_;
  EventRecorderHooks hooks_;
  EventCorrelator correlator_;
  std::unordered_map<k8s::Print, Known> known_;
  std::deque<Queued> queue_;
  std::unique_ptr<k8s::Signal> wake_;
  std::unique_ptr<k8s::Signal> sent_;  // The queue is empty, and nothing is on its way.
  std::uint64_t pass_ = 0;
  std::uint64_t name_counter_;
  k8s::TokenBucket bucket_;
  MonoTime forgot_at_;
  bool sending_ = false;
  bool stopping_ = false;
};

// The note, cut to the API's 1024 bytes at a character boundary, with "…" where something was cut.
[[nodiscard]] std::string cut_note(const std::string& note);

}  // namespace gso
