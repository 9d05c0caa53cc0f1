// kube-scheduler, for API servers that have none beside them, as far as pods with GPUs go: binds pending pods where
// their selector, the taints and the devices allow it, and otherwise says Unschedulable and why. Pods of other
// schedulers are not its business.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tests/sim/fleet/site.h"

namespace gso::sim {

class Scheduler : public Actor {
 public:
  using Actor::Actor;

  // Something changed that can make a pod fit.
  void wake();
  // Pods that are to be bound while it is down stay pending.
  void set_up(bool up);

 private:
  using Devices = std::map<std::string, std::int64_t>;  // nvidia.com/* only.

  void cycle();
  [[nodiscard]] std::vector<JsonPtr> pending() const;
  [[nodiscard]] std::map<std::string, Devices> in_use() const;
  void bind(const nlohmann::json& pod, const std::string& node);
  void reject(const nlohmann::json& pod, const std::string& message);

  bool up_ = true;
  bool due_ = false;
  std::map<std::string, std::string> bound_;  // By uid: a node that the mirror might not show yet.
  std::set<std::string> rejecting_;           // By uid.
};

}  // namespace gso::sim
