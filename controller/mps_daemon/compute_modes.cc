#include "controller/mps_daemon/compute_modes.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace gso {
namespace {

namespace asio = boost::asio;
using nlohmann::json;

}  // namespace

k8s::Result<ComputeModes> ComputeModeMemory::read() const {
  const k8s::Result<std::optional<json>> modes = memory_.read();
  if (modes && !*modes) return ComputeModes{};
  const auto is_text = [](const json& mode) { return mode.is_string(); };
  if (modes && (*modes)->is_object() && std::ranges::all_of(**modes, is_text)) return (*modes)->get<ComputeModes>();
  return k8s::fail(k8s::Reason::decode,
                   fmt::format("{}: the compute modes from before the MPS daemon cannot be read. Set the compute mode "
                               "of each GPU as it should be without MPS (nvidia-smi -c), then delete the file",
                               memory_.file()));
}

k8s::Result<void> ComputeModeMemory::write(const ComputeModes& modes) const {
  return memory_.write(modes);
}

asio::awaitable<k8s::Result<void>> set_exclusive(k8s::Clock* clock, ComputeModeMemory memory, std::vector<NodeGpu> gpus,
                                                 Logger* log) {
  k8s::Result<ComputeModes> modes = memory.read();
  if (!modes) co_return std::unexpected(modes.error());
  for (const NodeGpu& gpu : gpus) modes->try_emplace(gpu.uuid, gpu.compute_mode);
  const k8s::Result<void> written = memory.write(*modes);
  if (!written) co_return std::unexpected(written.error());
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (gpus[i].compute_mode == kExclusiveProcess) continue;
    const k8s::Result<void> set = co_await set_compute_mode(clock, gpus[i].uuid, std::string(kExclusiveProcess));
    if (!set) {
      (void)co_await restore_compute_modes(clock, memory, log);
      co_return std::unexpected(set.error());
    }
    log->info("Set compute mode",
              {{"gpu", gpus[i].uuid}, {"mode", kExclusiveProcess}, {"before", modes->at(gpus[i].uuid)}});
  }
  co_return k8s::Result<void>();
}

asio::awaitable<bool> restore_compute_modes(k8s::Clock* clock, ComputeModeMemory memory, Logger* log) {
  k8s::Result<ComputeModes> modes = memory.read();
  if (!modes) log->error("Compute modes not restored", {{"error", modes.error().message}});
  if (!modes || modes->empty()) co_return modes.has_value();
  const k8s::Result<std::vector<NodeGpu>> gpus = co_await list_gpus(clock);
  if (!gpus) {
    log->error("Compute modes not restored", {{"error", gpus.error().message}});
    co_return false;
  }
  for (std::size_t i = 0; i < gpus->size(); ++i) {
    const NodeGpu gpu = (*gpus)[i];
    const auto before = modes->find(gpu.uuid);
    if (before == modes->end()) continue;
    const std::string mode = before->second;
    // Another mode was set by somebody else since: it stays.
    if (gpu.compute_mode == kExclusiveProcess && mode != kExclusiveProcess) {
      const k8s::Result<void> set = co_await set_compute_mode(clock, gpu.uuid, mode);
      if (!set) {
        log->error("Compute mode not restored", {{"gpu", gpu.uuid}, {"mode", mode}, {"error", set.error().message}});
        continue;
      }
      log->info("Restored compute mode", {{"gpu", gpu.uuid}, {"mode", mode}});
    }
    modes->erase(gpu.uuid);
  }
  if (modes->empty()) {
    memory.forget();
    co_return true;
  }
  (void)memory.write(*modes);
  co_return false;
}

}  // namespace gso
