// LeaseWatch: watches the one Lease of the election, so that a standby acts at once when the leader has released it
// (up to 2.2 retry periods pass until it is read the next time). It only wakes the elector: what counts is what the
// elector reads then. A watch that is refused or breaks leaves the election as it is without it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "k8sclient/api/reader.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/object.h"
#include "k8sclient/watch/watcher.h"

namespace gso {

struct LeaseWatchEvents {
  // The Lease has changed: its holder (empty: released), or nullopt if there is no Lease.
  std::function<void(std::optional<std::string_view> holder)> changed = [](std::optional<std::string_view>) {};
  std::function<void()> synced = [] {};
  std::function<void(const k8s::Error&)> failed = [](const k8s::Error&) {};
};

class LeaseWatch final : public k8s::WatchSink {
 public:
  // `reader` must outlive run(). Of `options` the namespace and the selectors are replaced.
  LeaseWatch(k8s::Reader* reader, k8s::ObjectKey lease, k8s::WatcherOptions options, LeaseWatchEvents events);

  // Until stop(). Call once.
  boost::asio::awaitable<void> run() { return watcher_.run(); }
  void stop() { watcher_.stop(); }

  void init() override;
  k8s::Result<void> init_apply(std::string_view json) override;
  k8s::Result<void> init_remove(std::string_view json) override;
  void init_done() override;
  k8s::Result<void> apply(std::string_view json) override;
  k8s::Result<void> remove(std::string_view json) override;
  void on_error(const k8s::Error& error) override { events_.failed(error); }

 private:
  // Some servers do not know the selector.
  [[nodiscard]] bool is_the_lease(std::string_view json) const;

  k8s::ObjectKey lease_;
  LeaseWatchEvents events_;
  k8s::Watcher watcher_;
  std::optional<std::string> holder_;  // While a view is being sent.
};

}  // namespace gso
