// GPU consumers: one pod as JSON, and an actor that keeps some running on each node, as batch users do.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tests/sim/fleet/outbox.h"
#include "tests/sim/fleet/site.h"

namespace gso::sim {

struct ConsumerPod {
  std::string node = {};  // Bound directly; empty: for a scheduler to bind.
  std::string name;
  std::string ns = "default";
  std::string resource = "nvidia.com/gpu";
  std::int64_t count = 1;
  k8s::Duration run_for{0};  // 0: until deleted. Scaled by the node that runs it.
  std::map<std::string, std::string> labels = {};
};
[[nodiscard]] nlohmann::json consumer_pod(const ConsumerPod& pod);

struct WorkloadOptions {
  std::int64_t per_node = 0;  // 0: the actor does nothing.
  k8s::Duration run_for = std::chrono::minutes(5);
  std::vector<std::string> nodes;
  std::string ns = "default";
};

// Starts a pod wherever a node that takes pods has a free device and fewer than `per_node` pods of ours; removes those
// that ended.
class Workload {
 public:
  Workload(Site* site, WorkloadOptions options);
  void begin();
  // Changes how many pods a node shall have; 0 lets the running ones end.
  void set_per_node(std::int64_t per_node);
  boost::asio::awaitable<void> run() { return outbox_.run(); }
  void stop() { outbox_.stop(); }

 private:
  void tick();
  void fill(const std::string& node);
  Site* site_;
  WorkloadOptions options_;
  Outbox outbox_;
  bool active_;  // It has been asked for pods once.
  std::uint64_t names_ = 0;
  std::shared_ptr<int> life_ = std::make_shared<int>();
};

}  // namespace gso::sim
