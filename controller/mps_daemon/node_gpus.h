// The GPUs of this machine: which ones it has, their compute modes, and memory that outlasts a daemon until the next
// boot.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/config/logging.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"

namespace gso {

// --- The GPUs of the node, as nvidia-smi shows them, and their compute mode.

struct NodeGpu {
  std::string uuid;
  std::string driver_version;
  std::string compute_mode;  // "Default", "Exclusive_Process", "Prohibited", "Exclusive_Thread"
  bool mig = false;          // MIG is enabled.
  friend bool operator==(const NodeGpu&, const NodeGpu&) = default;
};

// Errors: `not_found` without nvidia-smi, `unavailable` if it fails or shows no GPU. The message says what to do.
boost::asio::awaitable<k8s::Result<std::vector<NodeGpu>>> list_gpus(k8s::Clock* clock);

inline constexpr std::string_view kExclusiveProcess = "Exclusive_Process";
// Of those GPUs that processes compute on: UUID -> "process ID (NAME)" of each, without MPS servers. A container that
// does not see the node's processes is shown none. Errors: `not_found`, `unavailable`, as above.
using GpuUsers = std::map<std::string, std::vector<std::string>>;
boost::asio::awaitable<k8s::Result<GpuUsers>> list_gpu_users(k8s::Clock* clock);

// --- A value in a file that holds until the node boots: what a program that is started again must know, and what ends
// with the boot like the thing that it is about.

// Which boot of the node this is. `processes`: where its /proc is.
[[nodiscard]] std::string boot_id(const std::string& processes);

class BootMemory {
 public:
  // `member`: the name of the value in the file.
  BootMemory(std::string file, std::string boot_id, std::string member)
      : file_(std::move(file)), boot_id_(std::move(boot_id)), member_(std::move(member)) {}

  [[nodiscard]] const std::string& file() const { return file_; }
  // The value of this boot; nullopt: none. An empty file is none: a failure of the power leaves one, never this
  // program. Errors (`decode`): the file cannot be read.
  [[nodiscard]] k8s::Result<std::optional<nlohmann::json>> read() const;
  // Replaces the file as a whole, on the disk as well. Errors: `unavailable`.
  [[nodiscard]] k8s::Result<void> write(const nlohmann::json& value) const;
  void forget() const;

 private:
  std::string file_;
  std::string boot_id_;
  std::string member_;
};

// --- Which compute mode each GPU had before the daemon set EXCLUSIVE_PROCESS. A file remembers it, so that a daemon
// that is started again after a crash does not take its own setting for what was before.

// UUID of a GPU -> its compute mode before.
using ComputeModes = std::map<std::string, std::string>;

// What is remembered of this boot; empty without a file. Errors (`decode`): the file cannot be read.
[[nodiscard]] k8s::Result<ComputeModes> remembered_modes(const BootMemory& memory);

// Remembers the mode of each GPU, then sets EXCLUSIVE_PROCESS. If one GPU cannot be set, those before it get their mode
// back.
boost::asio::awaitable<k8s::Result<void>> set_exclusive(k8s::Clock* clock, BootMemory memory, std::vector<NodeGpu> gpus,
                                                        Logger* log);

// Sets the remembered modes, on GPUs that are still in EXCLUSIVE_PROCESS. What could not be set stays remembered.
// Returns whether every GPU has its mode again.
boost::asio::awaitable<bool> restore_compute_modes(k8s::Clock* clock, BootMemory memory, Logger* log);

}  // namespace gso
