// Which program a container runs, and the small ones: a check that ends, a GPU workload, a process that just runs.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/sim/fleet/config_manager.h"
#include "tests/sim/fleet/device_plugin.h"
#include "tests/sim/fleet/feature_discovery.h"
#include "tests/sim/fleet/mps_daemon.h"
#include "tests/sim/fleet/pod_container.h"
#include "tests/sim/fleet/slice_agent.h"
#include "tests/sim/fleet/slice_plugin.h"

namespace gso::sim {
namespace {

// toolkit-validation, mount-shm and the like.
class Check final : public Program {
 public:
  using Program::Program;
  void start() override {
    host().after(host().timing().validation, [this] { host().exit(0, ""); });
  }
  [[nodiscard]] std::string process_name() const override { return "sh"; }
};

// `mps-daemon check` of this project, on a node whose driver has the new default directory.
class StandaloneMpsCheck final : public Program {
 public:
  StandaloneMpsCheck(ProgramHost* host, const std::vector<std::string>& command) : Program(host) {
    constexpr std::string_view kFlag = "--pipe-directory=";
    for (const std::string& word : command)
      if (word.starts_with(kFlag)) directory_ = word.substr(kFlag.size());
  }
  void start() override {
    host().after(host().timing().validation, [this] {
      host().exit(0, "pipeDirectory=" + directory_ +
                         " driver=615.20 gpus=" + std::to_string(host().machine().gpus().size()) + "\n");
    });
  }
  [[nodiscard]] std::string process_name() const override { return "gpu-sharing-operator"; }

 private:
  std::string directory_ = "/run/nvidia-mps";
};

class Forever final : public Program {
 public:
  using Program::Program;
  void start() override {}
  [[nodiscard]] std::string process_name() const override { return "app"; }
};

// A CUDA program on the devices that the pod was given.
class GpuWorkload final : public Program {
 public:
  GpuWorkload(ProgramHost* host, bool uses_mps) : Program(host), uses_mps_(uses_mps) {}
  void start() override {
    if (host().machine().exclusive_process() && !uses_mps_)
      return host().exit(1, "all CUDA-capable devices are busy or unavailable");
  }
  [[nodiscard]] std::string process_name() const override { return "cuda-app"; }

 private:
  bool uses_mps_;
};

}  // namespace

std::unique_ptr<Program> make_program(const ContainerSpec& spec, bool init, bool uses_mps, ProgramHost* host) {
  const bool config_manager =
      spec.env.contains("CONFIG_FILE_SRCDIR") || (!spec.command.empty() && spec.command.front() == "config-manager");
  if (config_manager) return std::make_unique<ConfigManager>(host);
  if (init && spec.name == "standalone-mps-check") return std::make_unique<StandaloneMpsCheck>(host, spec.command);
  if (init) return std::make_unique<Check>(host);
  const auto is = [&spec](std::string_view name) {
    return spec.name == name || spec.name == std::string(name) + "-ctr";
  };
  if (is("nvidia-device-plugin") && spec.image.find("nebuly") != std::string::npos)
    return std::make_unique<SlicePlugin>(host);
  if (is("nvidia-device-plugin")) return std::make_unique<DevicePlugin>(host);
  if (spec.name == "gpu-agent") return std::make_unique<SliceAgent>(host);
  if (is("gpu-feature-discovery")) return std::make_unique<FeatureDiscovery>(host);
  if (is("mps-control-daemon")) return std::make_unique<MpsDaemon>(host);
  if (!spec.gpus.empty()) return std::make_unique<GpuWorkload>(host, uses_mps);
  return std::make_unique<Forever>(host);
}

}  // namespace gso::sim
