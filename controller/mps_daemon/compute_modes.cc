#include "controller/mps_daemon/compute_modes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "reconcilers/model/json_access.h"

namespace gso {
namespace {

namespace asio = boost::asio;
using nlohmann::json;
constexpr int kVersion = 1;

}  // namespace

k8s::Result<ComputeModes> ComputeModeMemory::read() const {
  std::ifstream in(file_, std::ios::binary);
  if (!in) return ComputeModes{};
  std::ostringstream text;
  text << in.rdbuf();
  const json value = json::parse(text.str(), nullptr, false);
  const json* modes = member_at(value, "modes");
  const bool known = number_at(value, "v") == kVersion && member_at(value, "bootId") != nullptr && modes != nullptr &&
                     modes->is_object() &&
                     std::ranges::all_of(*modes, [](const json& mode) { return mode.is_string(); });
  if (!known) {
    return k8s::fail(
        k8s::Reason::decode,
        fmt::format("{}: the compute modes from before the MPS daemon cannot be read. Set the compute mode "
                    "of each GPU as it should be without MPS (nvidia-smi -c), then delete the file",
                    file_));
  }
  if (text_at(value, "bootId") != boot_id_) return ComputeModes{};
  return modes->get<ComputeModes>();
}

k8s::Result<void> ComputeModeMemory::write(const ComputeModes& modes) const {
  const std::string next = file_ + ".next";
  {
    std::ofstream out(next, std::ios::binary | std::ios::trunc);
    out << json{{"v", kVersion}, {"bootId", boot_id_}, {"modes", modes}}.dump() << "\n" << std::flush;
    if (!out) return k8s::fail(k8s::Reason::unavailable, fmt::format("{}: cannot be written", next));
  }
  std::error_code ec;
  std::filesystem::rename(next, file_, ec);
  if (ec) return k8s::fail(k8s::Reason::unavailable, fmt::format("{}: {}", file_, ec.message()));
  return {};
}

void ComputeModeMemory::forget() const {
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
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
