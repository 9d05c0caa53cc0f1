// Leader election over a coordination.k8s.io/v1 Lease, after client-go's tools/leaderelection.
//
// Guarantees
//  - may_write() is true only while this replica holds the Lease and less than renew_deadline has passed since the
//    last renewal that succeeded *was sent*, by the local clock since boot (suspend included). The clocks of the server
//    and of other candidates are never compared with it: a foreign record counts from the moment when this replica saw
//    it change.
//  - Another candidate waits lease_duration after it saw the last renewal, so a write that is sent while may_write()
//    and ends before takeover_after() cannot overlap with another leader's.
//  - The lease is released at a clean stop (empty holder, one second), so the successor need not wait.
// Caveats: no fencing token. Tolerates clocks that run at different *rates* up to lease_duration / renew_deadline.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "k8sclient/api/client.h"
#include "k8sclient/backoff.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"

namespace gso {

using k8s::Duration;
using k8s::MonoTime;

struct LeaderElectionOptions {
  k8s::ObjectKey lease;  // Namespace and name.
  std::string identity;  // Unique per process.
  Duration lease_duration = std::chrono::seconds(15);
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry_period = std::chrono::seconds(2);
  std::uint64_t seed = 0;  // Of the jitter.
  // The Lease says so while this replica holds it: the one that leads next must know, and nothing else is written
  // under max-mode Observe.
  bool only_observes = false;
};
// Of the Lease, "Observe": its holder writes no change of a node.
inline constexpr std::string_view kMaxModeAnnotation = "gpusharing.dev/max-mode";

// client-go's relations: lease_duration > renew_deadline > 1.2 * retry_period, all positive, lease_duration at least
// one second (the Lease counts in seconds); identity and lease named. Errors: `invalid`, naming both sides.
[[nodiscard]] k8s::Result<void> validate(const LeaderElectionOptions& options);

// What the Lease says. Compared as a whole to notice a renewal.
struct LeaseRecord {
  std::string holder;
  std::int64_t duration_seconds = 0;
  std::string acquire_time;
  std::string renew_time;
  std::int64_t transitions = 0;
  friend bool operator==(const LeaseRecord&, const LeaseRecord&) = default;
};

// What the text of a Lease says; nullopt: it has no spec.
[[nodiscard]] std::optional<LeaseRecord> read_lease(std::string_view json);

struct LeaderElectionEvents {
  std::function<void()> started_leading = [] {};
  std::function<void()> stopped_leading = [] {};
  std::function<void(const std::string& identity)> new_leader = [](const std::string&) {};
  // An attempt failed; it is retried by itself. `forbidden` needs somebody's RBAC change.
  std::function<void(const k8s::Error&)> failed = [](const k8s::Error&) {};
  std::function<void()> recovered = [] {};  // The first attempt that succeeds after one that failed.
  std::function<void()> written = [] {};    // The Lease was created or updated.
  // The server has an older version of the Lease than it had before: it has lost writes.
  std::function<void()> went_back = [] {};
};

class LeaderElector {
 public:
  LeaderElector(k8s::ApiClient* client, k8s::Clock* clock, LeaderElectionOptions options, LeaderElectionEvents events);
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;

  // Acquires, renews, and after a loss acquires again, until stop(). Call once.
  boost::asio::awaitable<void> run();
  // Somebody has seen the Lease change: the next attempt is made now. Changes nothing else; rules and clocks stay.
  void look_now() { wake_->notify(); }
  // Ends run() without releasing. Idempotent.
  void stop();
  // After stop(), once no write waits for its answer and none can_land_still(): waits for run() to end, then releases
  // the Lease if this replica still holds it. Best effort, bounded by renew_deadline; nothing is lost when it fails but
  // lease_duration of waiting.
  boost::asio::awaitable<void> release();

  [[nodiscard]] bool leading() const { return leading_; }
  [[nodiscard]] bool may_write() const;
  // The earliest moment at which another candidate may act: writes in flight must have ended by then.
  [[nodiscard]] MonoTime takeover_after() const { return last_renew_ + options_.lease_duration; }
  // A write whose answer was lost then can still land: whoever stops keeps the Lease. A successor waits no longer than
  // the lease duration for a Lease that is not released.
  [[nodiscard]] bool can_land_still(std::optional<MonoTime> answer_lost_at) const {
    return answer_lost_at && clock_->monotonic() - *answer_lost_at < options_.lease_duration;
  }
  // Why the last attempt failed, until one succeeds.
  [[nodiscard]] const std::optional<k8s::Error>& problem() const { return problem_; }
  [[nodiscard]] const LeaseRecord& observed() const { return observed_; }
  // The replica that led before this one, if there was one, only observed.
  [[nodiscard]] bool follows_observer() const { return follows_observer_; }

 private:
  boost::asio::awaitable<bool> try_acquire_or_renew();
  boost::asio::awaitable<k8s::Result<void>> read();
  boost::asio::awaitable<bool> write(MonoTime begun, bool create);
  void observe(const std::string& json);
  void set_leading(bool leading);
  void note_failure(k8s::Error error);
  void note_success();
  [[nodiscard]] bool holds_record() const { return observed_.holder == options_.identity; }
  [[nodiscard]] bool says_observe() const;
  [[nodiscard]] bool record_expired() const;
  [[nodiscard]] MonoTime attempt_deadline() const;
  // `releases`: nobody holds the Lease from then on.
  [[nodiscard]] std::string next_record(bool releases = false) const;

  k8s::ApiClient* client_;
  k8s::Clock* clock_;
  LeaderElectionOptions options_;
  LeaderElectionEvents events_;
  k8s::Jitter jitter_;
  std::unique_ptr<k8s::Signal> wake_;
  std::unique_ptr<k8s::Signal> ended_;
  bool running_ = false;
  bool stopping_ = false;
  bool leading_ = false;
  bool exists_ = false;  // The Lease has been read or written; observed_json_ is its last known text.
  bool fresh_ = false;   // observed_json_ carries a resourceVersion that may still be current.
  bool follows_observer_ = false;
  std::string observed_json_;
  LeaseRecord observed_;
  MonoTime observed_at_;  // When observed_ last changed, as we saw it.
  MonoTime last_renew_;   // When the last successful renewal was sent.
  std::string reported_leader_;
  std::optional<k8s::Error> problem_;
};

}  // namespace gso
