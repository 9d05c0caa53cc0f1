// The server's background actors: the garbage collector (owner references, foreground and orphan deletion), the
// namespace controller (default ServiceAccount, deletion of a namespace's content) and the disruption controller
// (status of PodDisruptionBudgets).
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "k8sclient/clock.h"
#include "tests/sim/apiserver/resource.h"
#include "tests/sim/apiserver/storage.h"
#include "tests/sim/apiserver/writer.h"

namespace gso::sim {

class Collector {
 public:
  struct Options {
    bool default_service_accounts = true;
    k8s::Duration delay{};  // Between a change and what follows from it.
  };
  // `flush` is called after each round, for the audit of what it changed.
  Collector(boost::asio::any_io_executor executor, k8s::Clock& clock, Registry& registry, Storage& storage,
            Writer& writer, Options options, std::function<void()> flush);
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

 private:
  // Outlives the collector in the coroutine, which ends at its next wakeup.
  struct Wakeup {
    std::unique_ptr<k8s::Signal> signal;
    bool stopped = false;
  };
  static boost::asio::awaitable<void> run(Collector* self, std::shared_ptr<Wakeup> wakeup, k8s::Clock* clock,
                                          k8s::Duration delay);

  struct Location {
    std::string bucket;
    k8s::ObjectKey key;
    friend auto operator<=>(const Location&, const Location&) = default;
  };
  struct Work {
    std::set<Location> deleting;    // Marked for deletion with finalizers of ours.
    std::set<Location> dependents;  // Whose owners may be gone.
    std::set<std::string> namespaces;
    std::set<std::string> budgets;  // Namespaces whose budgets may count differently now.
  };

  void on_event(const std::string& bucket, const StoredEvent& event);
  void round();
  void collect_dependent(const Location& at);
  void finish_deletion(const Location& at);
  [[nodiscard]] bool has_budgets(const std::string& ns) const;
  void count_budgets(const std::string& ns);
  void tend_namespace(const std::string& name);
  [[nodiscard]] ResourcePtr resource_of(const std::string& bucket) const;

  k8s::Clock& clock_;
  Registry& registry_;
  Storage& storage_;
  Writer& writer_;
  Options options_;
  std::function<void()> flush_;
  std::shared_ptr<Wakeup> wakeup_;
  std::map<std::string, Location> alive_;                 // By uid.
  std::map<std::string, std::set<Location>> dependents_;  // By owner uid.
  Work work_;
};

}  // namespace gso::sim
