// PodRunner: kubelet's life of one pod. Volumes, init containers one after the other, containers with restarts and
// crash back-off, graceful termination; and the host of the programs inside.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tests/sim/fleet/pod_spec.h"
#include "tests/sim/fleet/program.h"
#include "tests/sim/fleet/site.h"

namespace gso::sim {

// What a pod needs of the node it runs on.
struct PodEnvironment {
  Site* site = nullptr;
  Machine* machine = nullptr;
  std::function<std::string(std::string_view)> node_label;
  // The pod's status is not what was published.
  std::function<void()> status_changed;
  // Every process has ended after a deletion: the object can be removed.
  std::function<void()> ended;
  // The labels that feature discovery found; nothing when it takes them back.
  std::function<void(std::optional<std::map<std::string, std::string>>)> publish_features;
  // The node's slices are to be reported.
  std::function<void()> report_slices;
};

class PodRunner {
 public:
  PodRunner(PodEnvironment environment, PodSpec spec);
  ~PodRunner();
  PodRunner(const PodRunner&) = delete;
  PodRunner& operator=(const PodRunner&) = delete;

  // Admitted: set up and run.
  void begin();
  // Kubelet refuses the pod, for good.
  void reject(std::string reason, std::string message);
  // The object has a deletionTimestamp. At most `grace` (unscaled) later all processes are killed.
  void terminate(k8s::Duration grace);
  // Kubelet syncs the pod soon: its ConfigMap volumes get today's content.
  void sync_soon();
  void node_changed();

  // The node stops (power loss): everything ends, and starts again with restart() in the same pod.
  void power_off();
  void restart();
  // Faults: the process of a container ends by itself. False when it is not running.
  bool crash(std::string_view container);
  // The MPS server went away under the containers that use it.
  void break_mps_clients();
  // The same for those that use any device.
  void break_gpu_clients();

  [[nodiscard]] const PodSpec& spec() const { return spec_; }
  [[nodiscard]] nlohmann::json status() const;  // Of the Pod object, complete.
  [[nodiscard]] bool ready() const;
  [[nodiscard]] bool finished() const { return stage_ == Stage::finished; }
  [[nodiscard]] bool holds_devices() const { return stage_ != Stage::finished && stage_ != Stage::gone; }
  [[nodiscard]] bool terminating() const { return stage_ == Stage::terminating || stage_ == Stage::gone; }
  void set_uses_mps(bool uses) { uses_mps_ = uses; }
  // What the container's current or last process printed; for tests and failure messages.
  [[nodiscard]] std::string last_log(std::string_view container) const;
  [[nodiscard]] std::optional<std::string> link() const { return link_; }
  // Whether the containers find this file of a ConfigMap volume, as projected now.
  [[nodiscard]] bool shows_file(std::string_view path) const;

 private:
  enum class Stage { created, setup, init, running, finished, terminating, gone };
  struct Container;

  void mount();
  void project();
  void schedule_volume_sync();
  void advance_init();
  void start_containers(std::size_t from);
  void start(Container& container);
  void on_exit(Container& container, int code, std::string message);
  void noticed(Container& container);
  void restart_later(Container& container);
  void finish_if_done();
  void gone_if_done();
  void kill_all();
  [[nodiscard]] bool restarts(const Container& container) const;
  [[nodiscard]] const nlohmann::json* files(std::string_view folder) const;
  [[nodiscard]] bool hang_up(std::string_view process);
  void after(k8s::Duration real, Agenda::Task task);

  PodEnvironment env_;
  PodSpec spec_;
  Stage stage_ = Stage::created;
  std::vector<std::unique_ptr<Container>> init_, main_;
  std::map<std::string, JsonPtr> projected_;  // volume -> the ConfigMap as its files show it.
  std::optional<std::string> link_;
  std::optional<k8s::WallTime> begun_;
  bool main_begun_ = false;  // All init containers have succeeded once.
  k8s::Duration mount_wait_{0};
  std::string reason_, message_;  // Of the pod itself: a rejection.
  bool uses_mps_ = false;
  std::shared_ptr<int> life_ = std::make_shared<int>();

  friend nlohmann::json container_status(const Container& container);
};

}  // namespace gso::sim
