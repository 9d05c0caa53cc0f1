// One machine: its GPUs, kubelet's device manager, and the MPS servers that run on it. What survives a pod, but not a
// reboot.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/fleet/agenda.h"
#include "tests/sim/fleet/gpu.h"
#include "tests/sim/fleet/slice_config.h"
#include "tests/sim/fleet/timing.h"

namespace gso::sim {

class Machine {
 public:
  // What kubelet knows about one extended resource. A key never goes away.
  struct Resource {
    std::int64_t capacity = 0;
    std::int64_t allocatable = 0;
    bool at_most_one = false;  // The plugin refuses requests above one.
    bool mps = false;          // Allocations use the MPS server.
    std::uint64_t registration = 0;
  };
  struct MpsServer {
    std::int64_t replicas = 0;  // Whose memory and thread limits it applied.
  };

  Machine(std::vector<Gpu> gpus, Agenda* agenda, Pace* pace);

  // A device plugin registers `count` devices, or its socket goes away. In the latter case allocatable is 0 at once
  // and capacity 5 minutes later. Source: kubelet's device manager (endpointStopGracePeriod).
  void serve(const std::string& resource, std::int64_t count, bool at_most_one, bool mps);
  void stop_serving(const std::string& resource);
  [[nodiscard]] const std::map<std::string, Resource>& resources() const { return resources_; }
  // The config file as the device plugin read it that serves here; empty: none serves, or it has no file.
  void set_plugin_text(std::string text) { plugin_text_ = std::move(text); }
  [[nodiscard]] const std::string& plugin_text() const { return plugin_text_; }
  // One device of the resource falls ill: allocatable is one less than capacity until the plugin registers again.
  void lose_device(const std::string& resource);

  // Nebuly's fork registers the slices of its config, and nvidia.com/gpu for GPUs without any. What it registered
  // before is gone. Clients of slices that are not among these lose their server (on_slices_served).
  void serve_slices(SliceCounts slices, bool at_most_one);
  void stop_serving_slices();
  // All its clients lose their servers.
  void end_slice_servers() { on_slice_servers_ended(); }
  // Served now; empty while the plugin starts.
  [[nodiscard]] const SliceCounts& slices() const { return slices_; }

  void start_mps(const std::string& resource, std::int64_t replicas);
  // Clean: GPUs go back to the default compute mode. Unclean: they stay in EXCLUSIVE_PROCESS. Either way the clients
  // of the servers break.
  void stop_mps(bool clean);
  [[nodiscard]] const std::map<std::string, MpsServer>& mps() const { return mps_; }
  [[nodiscard]] bool exclusive_process() const { return exclusive_; }

  // The driver was exchanged under running programs: those go on, and new ones find no GPU (NVML's version mismatch).
  void break_driver(bool broken) { driver_broken_ = broken; }
  [[nodiscard]] bool driver_broken() const { return driver_broken_; }

  void reboot();

  [[nodiscard]] const std::vector<Gpu>& gpus() const { return gpus_; }
  void set_gpus(std::vector<Gpu> gpus) { gpus_ = std::move(gpus); }
  // Called after capacity or allocatable changed, and when MPS clients lost their server.
  std::function<void()> on_change = [] {};
  std::function<void()> on_mps_clients_broken = [] {};
  std::function<void()> on_slices_served = [] {};
  std::function<void()> on_slice_servers_ended = [] {};

 private:
  std::vector<Gpu> gpus_;
  Agenda* agenda_;
  Pace* pace_;
  std::map<std::string, Resource> resources_;
  std::map<std::string, MpsServer> mps_;
  SliceCounts slices_;
  std::string plugin_text_;
  std::vector<std::string> slice_resources_;  // Registered by Nebuly's fork.
  bool exclusive_ = false;
  bool driver_broken_ = false;
  std::uint64_t registrations_ = 0;
  std::shared_ptr<int> life_ = std::make_shared<int>();
};

}  // namespace gso::sim
