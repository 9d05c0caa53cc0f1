// A program in a container, and what it can see and do. One class per program of NVIDIA's (config_manager.h,
// device_plugin.h, feature_discovery.h, mps_daemon.h); PodRunner is the host of them all.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/fleet/machine.h"
#include "tests/sim/fleet/plugin_config.h"
#include "tests/sim/fleet/timing.h"

namespace gso::sim {

class ProgramHost {
 public:
  virtual ~ProgramHost() = default;
  // Ends the program. Call it last: the program is gone when the call's stack unwinds.
  virtual void exit(int code, std::string message) = 0;
  // Runs `task` after `delay` (a duration of FleetTiming: scaled and jittered here), unless the program has ended.
  virtual void after(k8s::Duration delay, std::function<void()> task) = 0;
  virtual void log(std::string line) = 0;
  // Empty when the container does not set it.
  [[nodiscard]] virtual std::string env(std::string_view name) const = 0;
  [[nodiscard]] virtual PluginVersion version() const = 0;
  [[nodiscard]] virtual bool host_pid() const = 0;
  [[nodiscard]] virtual const FleetTiming& timing() const = 0;
  [[nodiscard]] virtual Pace& pace() = 0;
  [[nodiscard]] virtual Machine& machine() = 0;
  [[nodiscard]] virtual k8s::WallTime now() const = 0;

  // Names of the files in a folder that a ConfigMap is mounted at, as projected now.
  [[nodiscard]] virtual std::vector<std::string> list_files(std::string_view folder) const = 0;
  // The pod's one symlink, in an emptyDir that outlives containers: where it points, and reading through it. Reading
  // "/dev/null" gives an empty text; a dangling link is an error.
  [[nodiscard]] virtual std::optional<std::string> link() const = 0;
  virtual void set_link(std::string target) = 0;
  [[nodiscard]] virtual bool readable(std::string_view path) const = 0;
  [[nodiscard]] virtual std::expected<std::string, std::string> read_link() const = 0;

  // The node's label as the API server has it; empty when absent.
  [[nodiscard]] virtual std::string node_label(std::string_view key) const = 0;
  // SIGHUP to the first program of this pod whose argv[0] is exactly `process`; false when there is none.
  virtual bool hang_up(std::string_view process) = 0;
  // Feature discovery hands its labels over (at once, or as a file to NFD's worker).
  virtual void publish_features(std::map<std::string, std::string> labels) = 0;
  // It removes that file; labels that were handed over stay.
  virtual void remove_features() = 0;
  // nos's gpu-agent writes which slices the node has now.
  virtual void report_slices() = 0;
  // FleetFaults::most_slices.
  [[nodiscard]] virtual std::int64_t most_slices() const = 0;
};

class Program {
 public:
  explicit Program(ProgramHost* host) : host_(host) {}
  virtual ~Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  virtual void start() = 0;
  // SIGHUP. The default action ends the process.
  virtual void hang_up() { host().exit(129, "hangup"); }
  // SIGTERM: clean up. The process ends by itself a moment later.
  virtual void terminate() {}
  // The process is gone, whatever the reason: its sockets and children go too.
  virtual void gone() {}
  // The node's object changed.
  virtual void node_changed() {}
  // argv[0], which config-manager looks for.
  [[nodiscard]] virtual std::string process_name() const = 0;
  // False once the process ended (signals cannot reach it) or where signals are nobody's business.
  [[nodiscard]] ProgramHost& host() const { return *host_; }

 private:
  ProgramHost* host_;
};

// The config that CONFIG_FILE names, with the environment's overrides (they win over the file); without CONFIG_FILE
// the built-in defaults.
[[nodiscard]] std::expected<PluginConfig, std::string> load_config(const ProgramHost& host);

}  // namespace gso::sim
