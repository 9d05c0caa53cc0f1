// Fleet: the GPU nodes and everything NVIDIA runs on them, as a client of any API server: the simulated one (in process
// or over HTTP) or the real one. One thread; it waits only on its Clock.
//
//   Fleet fleet(&client, &clock, {.nodes = *topology("demo")});
//   co_spawn(executor, fleet.run(), detached);
//   …  fleet.crash("a100-01", "nvidia-device-plugin-daemonset", "nvidia-device-plugin");
//   fleet.stop();   // run() then returns
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "k8sclient/api/client.h"
#include "k8sclient/clock.h"
#include "tests/sim/fleet/cluster_autoscaler.h"
#include "tests/sim/fleet/dra_driver.h"
#include "tests/sim/fleet/driver_upgrader.h"
#include "tests/sim/fleet/node_agent.h"
#include "tests/sim/fleet/nos_install.h"
#include "tests/sim/fleet/scheduler.h"
#include "tests/sim/fleet/site.h"

namespace gso::sim {

struct FleetOptions {
  std::vector<NodeSpec> nodes;
  FleetTiming timing = {};
  // Be the DaemonSet controller, the pod garbage collector and the node lifecycle controller too: for API servers that
  // have no kube-controller-manager beside them.
  bool act_as_controllers = true;
  // Be the scheduler, too: for API servers that have none beside them, where pods without a node are to be bound.
  bool act_as_scheduler = false;
  std::string gpu_operator_namespace = "gpu-operator";  // Empty: there is no GPU Operator.
};

class Fleet {
 public:
  // `client` and `clock` must outlive the fleet.
  Fleet(k8s::ApiClient* client, k8s::Clock* clock, FleetOptions options);
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  // Registers the nodes and plays them until stop(). Never fails: what the server refuses is tried again.
  boost::asio::awaitable<void> run();
  void stop();

  // Known faults, all off at first.
  [[nodiscard]] FleetFaults& faults() { return site_->faults; }
  // A machine comes up and registers its node, under a name that was never there before.
  void add_node(NodeSpec spec);
  // A machine is switched off for good. Its Node is somebody else's to remove.
  void remove_node(const std::string& name);
  // Of the machines that are not switched off for good.
  [[nodiscard]] std::vector<NodeSpec> machines() const;

  // Ends the process of a container. False when it does not run.
  bool crash(std::string_view node, std::string_view daemonset, std::string_view container);

  [[nodiscard]] NodeAgent* node(std::string_view name);
  [[nodiscard]] const Site& site() const { return *site_; }
  [[nodiscard]] DriverUpgrader& driver_upgrader();
  [[nodiscard]] DraDriver& dra_driver();
  [[nodiscard]] Scheduler& scheduler();
  [[nodiscard]] ClusterAutoscaler& autoscaler();
  // How many pods of a DaemonSet each node has run, by node; nodes without any are left out.
  [[nodiscard]] std::map<std::string, std::size_t> pods_run(const std::string& daemonset) const;

 private:
  struct Parts;
  void connect();
  void make_agent(const NodeSpec& spec);
  void play(NodeAgent* agent);
  std::unique_ptr<Site> site_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace gso::sim
