// Watches that follow from other objects: what those of KAI, of partitioning and of the device plugins have in common.
// Each family has scopes of its own, one watch for each scope that is wanted, and says which of them the server
// refuses.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/runtime/task_group.h"
#include "controller/watches/scoped_watch.h"
#include "k8sclient/api/reader.h"
#include "k8sclient/watch/watcher.h"

namespace gso {

// With what watches are opened. Everything must outlive them; `tasks` runs them and is joined by its owner.
struct WatchResources {
  k8s::Reader* client = nullptr;
  k8s::WatcherOptions defaults;
  TaskGroup* tasks = nullptr;
  boost::asio::any_io_executor executor;
};

template <class Scope>
class WatchFamily {
 public:
  WatchFamily(const WatchFamily&) = delete;
  WatchFamily& operator=(const WatchFamily&) = delete;

  // Ends all of them.
  void stop() { watches_.stop(); }
  // Watcher::list_again() of all of them.
  void list_again() { watches_.list_again(); }

  using Refusal = ScopedWatches<Scope>::Refusal;
  [[nodiscard]] std::vector<Refusal> refused() const { return watches_.refused(); }
  [[nodiscard]] std::size_t open() const { return watches_.size(); }

 protected:
  struct ScopeReports {
    std::function<void(const Scope&)> complete;  // Its view has become complete.
    std::function<void(const Scope&, const k8s::Error&)> failed;
  };
  WatchFamily(WatchResources resources, ScopeReports reports)
      : resources_(std::move(resources)), reports_(std::move(reports)) {}
  ~WatchFamily() = default;

  // Those that all have, and a seed of the scope's own: not all of them reconnect at once.
  [[nodiscard]] k8s::WatcherOptions options_of(const Scope& scope) const {
    k8s::WatcherOptions options = resources_.defaults;
    options.seed += std::hash<std::string>{}(to_string(scope));
    return options;
  }
  // `watch` has its sink.
  void start(const Scope& scope, const std::shared_ptr<ScopedWatch>& watch, k8s::Gvr resource,
             k8s::WatcherOptions options) {
    ScopedWatch::Reports reports{
        .complete = [this, scope] { reports_.complete(scope); },
        .failed = [this, scope](const k8s::Error& error) { reports_.failed(scope, error); },
    };
    ScopedWatch::start(watch, resources_.client, std::move(resource), std::move(options), resources_.tasks,
                       resources_.executor, std::move(reports));
  }

  ScopedWatches<Scope> watches_;

 private:
  WatchResources resources_;
  ScopeReports reports_;
};

}  // namespace gso
