// Watches: each is a queue of bytes that its client drains, filled as objects change.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "k8sclient/clock.h"
#include "tests/sim/apiserver/representation.h"
#include "tests/sim/apiserver/resource.h"
#include "tests/sim/apiserver/selectors.h"
#include "tests/sim/apiserver/storage.h"

namespace gso::sim {

struct WatchOptions {
  ResourcePtr resource;
  std::string ns;
  LabelSelector labels;
  FieldSelector fields;
  std::uint64_t revision = 0;   // Events after this one; 0: from the state now.
  bool from_state = false;      // First the present objects as ADDED (resourceVersion 0 or none).
  bool initial_events = false;  // The same, ended by the bookmark with k8s.io/initial-events-end.
  // The present objects are those of that revision, and the events since precede the bookmark.
  std::optional<std::uint64_t> state_at = std::nullopt;
  bool bookmarks = false;
  k8s::Duration timeout{};
  Format format;
};

class WatchStream {
 public:
  WatchStream(WatchOptions options, k8s::Clock& clock);

  // Bytes that are ready, and no more after end().
  [[nodiscard]] std::string take();
  [[nodiscard]] bool has_data() const { return !buffer_.empty(); }
  [[nodiscard]] bool ended() const { return ended_; }
  // Called whenever data arrives or the stream ends.
  void set_wakeup(std::function<void()> wakeup) { wakeup_ = std::move(wakeup); }
  // When on_timer() has something to do: a bookmark, or the end.
  [[nodiscard]] k8s::MonoTime next_timer() const;
  void on_timer(std::uint64_t revision);

  // Asked for each event before it is queued; false loses the event. For faults.
  void set_filter(std::function<bool(const StoredEvent&)> filter) { filter_ = std::move(filter); }
  // Ends the stream as a broken connection does: what was queued is lost.
  void reset();
  [[nodiscard]] bool was_reset() const { return reset_; }
  // Sends the ERROR event of a resourceVersion that is too old, and ends.
  void expire();

  // The server's side.
  void on_event(const StoredEvent& event);
  void send_state(const Bucket::Objects& objects);
  void send_end_of_state(std::uint64_t revision);
  void fail(const ApiError& error);
  [[nodiscard]] const WatchOptions& options() const { return options_; }

 private:
  [[nodiscard]] bool matches(const Object& object) const;
  void send(const char* type, const Object& object);
  void send_bookmark(std::uint64_t revision, bool initial_end);
  void wake();

  WatchOptions options_;
  k8s::Clock& clock_;
  k8s::MonoTime end_;
  k8s::MonoTime next_bookmark_;
  std::string buffer_;
  bool ended_ = false;
  bool reset_ = false;
  bool sent_columns_ = false;
  std::function<void()> wakeup_;
  std::function<bool(const StoredEvent&)> filter_;
};

// Hands stored events to the watches of their resource.
class WatchHub {
 public:
  WatchHub(Storage& storage, k8s::Clock& clock);

  // A watch that starts with what its options ask for, or whose only event is an error.
  [[nodiscard]] std::shared_ptr<WatchStream> open(WatchOptions options);
  // Ends all watches of a bucket (a CRD was deleted).
  void close_bucket(const std::string& bucket);
  // Ends all watches, as the server's end does.
  void close_all();
  [[nodiscard]] std::size_t open_watches() const;

 private:
  void publish(const std::string& bucket, const StoredEvent& event);

  Storage& storage_;
  k8s::Clock& clock_;
  std::map<std::string, std::vector<std::weak_ptr<WatchStream>>> watches_;
};

}  // namespace gso::sim
