// kube-scheduler, for API servers that have none beside them, as far as pods with GPUs go: binds pending pods where
// their selector, the taints and the devices allow it, and otherwise says Unschedulable and why. Pods of other
// schedulers are not its business.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tests/sim/fleet/outbox.h"
#include "tests/sim/fleet/site.h"

namespace gso::sim {

class Scheduler {
 public:
  explicit Scheduler(Site* site) : site_(site), outbox_(site->client, site->clock) {}

  // Something changed that can make a pod fit.
  void wake();
  // Pods that are to be bound while it is down stay pending.
  void set_up(bool up);

  boost::asio::awaitable<void> run() { return outbox_.run(); }
  void stop() { outbox_.stop(); }

 private:
  using Devices = std::map<std::string, std::int64_t>;  // nvidia.com/* only.

  void cycle();
  [[nodiscard]] std::vector<JsonPtr> pending() const;
  [[nodiscard]] std::map<std::string, Devices> in_use() const;
  void bind(const nlohmann::json& pod, const std::string& node);
  void reject(const nlohmann::json& pod, const std::string& message);

  Site* site_;
  Outbox outbox_;
  bool up_ = true;
  bool due_ = false;
  std::map<std::string, std::string> bound_;  // By uid: a node that the mirror might not show yet.
  std::set<std::string> rejecting_;           // By uid.
  std::shared_ptr<int> life_ = std::make_shared<int>();
};

}  // namespace gso::sim
