#include "controller/mps_daemon/node_gpus.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ranges>
#include <sstream>

#include "controller/mps_daemon/standalone_daemon.h"
#include "k8sclient/auth/child_process.h"
#include "k8sclient/value/encoding.h"
#include "reconcilers/model/json_access.h"

namespace gso {

namespace {

namespace asio = boost::asio;
using k8s::trimmed;
using nlohmann::json;
constexpr const char* kQuery = "--query-gpu=uuid,driver_version,compute_mode,mig.mode.current";
constexpr const char* kUsersQuery = "--query-compute-apps=gpu_uuid,pid,process_name";
constexpr std::string_view kMpsServer = "nvidia-cuda-mps-server";
constexpr k8s::Duration kLimit = std::chrono::seconds(60);  // Without persistence mode the driver starts first.

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  for (const auto part : std::views::split(text, separator))
    out.emplace_back(trimmed(std::string_view(part.begin(), part.end())));
  return out;
}

k8s::Result<std::vector<NodeGpu>> parse_gpus(std::string_view text) {
  std::vector<NodeGpu> out;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    const std::vector<std::string> fields = split(line, ',');
    if (fields.size() != 4 || !fields[0].starts_with("GPU-")) {
      return k8s::fail(k8s::Reason::unavailable,
                       fmt::format("nvidia-smi {} prints \"{}\", not a GPU with 4 fields", kQuery, line));
    }
    out.push_back({fields[0], fields[1], fields[2], fields[3] == "Enabled"});
  }
  return out;
}

asio::awaitable<k8s::Result<std::string>> nvidia_smi(k8s::Clock* clock, std::vector<std::string> arguments) {
  k8s::ProcessSpec spec;
  spec.program = "nvidia-smi";
  spec.args = std::move(arguments);
  spec.time_limit = kLimit;
  const k8s::Result<k8s::ProcessResult> done = co_await k8s::run_process(spec, clock);
  if (!done) {
    co_return k8s::fail(done.error().reason,
                        fmt::format("{}: the NVIDIA container runtime adds it to pods whose runtimeClassName is "
                                    "nvidia's, with the capability utility",
                                    done.error().message));
  }
  if (done->exit_code == 0) co_return done->out;
  const std::string_view said = trimmed(done->err.empty() ? done->out : done->err);
  co_return k8s::fail(k8s::Reason::unavailable,
                      done->timed_out ? fmt::format("nvidia-smi gave no answer within 60s: restart the node's driver")
                                      : fmt::format("nvidia-smi failed: {}", said));
}

// `mode` is one of the names of NodeGpu::compute_mode. Errors: `unavailable`, with nvidia-smi's own words.
asio::awaitable<k8s::Result<void>> set_compute_mode(k8s::Clock* clock, std::string uuid, std::string mode) {
  std::ranges::transform(mode, mode.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::vector<std::string> arguments{"-i", uuid, "-c", mode};
  const k8s::Result<std::string> done = co_await nvidia_smi(clock, std::move(arguments));
  if (done) co_return k8s::Result<void>();
  co_return k8s::fail(done.error().reason, fmt::format("GPU {}: the compute mode {} was not set: {}. Only root is "
                                                       "allowed to set it: run the container as user 0, privileged",
                                                       uuid, mode, done.error().message));
}

}  // namespace

asio::awaitable<k8s::Result<std::vector<NodeGpu>>> list_gpus(k8s::Clock* clock) {
  std::vector<std::string> arguments{kQuery, "--format=csv,noheader"};
  const k8s::Result<std::string> text = co_await nvidia_smi(clock, std::move(arguments));
  if (!text) co_return std::unexpected(text.error());
  k8s::Result<std::vector<NodeGpu>> gpus = parse_gpus(*text);
  if (gpus && gpus->empty()) {
    co_return k8s::fail(k8s::Reason::unavailable,
                        "nvidia-smi shows no GPU: choose only nodes with GPUs by the node selector, and set "
                        "NVIDIA_VISIBLE_DEVICES=all");
  }
  co_return gpus;
}

asio::awaitable<k8s::Result<GpuUsers>> list_gpu_users(k8s::Clock* clock) {
  std::vector<std::string> arguments{kUsersQuery, "--format=csv,noheader"};
  const k8s::Result<std::string> text = co_await nvidia_smi(clock, std::move(arguments));
  if (!text) co_return std::unexpected(text.error());
  GpuUsers out;
  for (const std::string& line : split(*text, '\n')) {
    const std::vector<std::string> fields = split(line, ',');
    if (fields.size() < 3 || !is_number(fields[1])) continue;
    const std::string_view name = trimmed(std::string_view(line).substr(line.find(',', line.find(',') + 1) + 1));
    if (name.substr(name.rfind('/') + 1) == kMpsServer) continue;
    out[fields[0]].push_back(fmt::format("process {} ({})", fields[1], name));
  }
  co_return out;
}

k8s::Result<ComputeModes> remembered_modes(const BootMemory& memory) {
  const k8s::Result<std::optional<json>> modes = memory.read();
  if (modes && !*modes) return ComputeModes{};
  const auto is_text = [](const json& mode) { return mode.is_string(); };
  if (modes && (*modes)->is_object() && std::ranges::all_of(**modes, is_text)) return (*modes)->get<ComputeModes>();
  return k8s::fail(k8s::Reason::decode,
                   fmt::format("{}: the compute modes from before the MPS daemon cannot be read. Set the compute mode "
                               "of each GPU as it should be without MPS (nvidia-smi -c), then delete the file",
                               memory.file()));
}

asio::awaitable<k8s::Result<void>> set_exclusive(k8s::Clock* clock, BootMemory memory, std::vector<NodeGpu> gpus,
                                                 Logger* log) {
  k8s::Result<ComputeModes> modes = remembered_modes(memory);
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

asio::awaitable<bool> restore_compute_modes(k8s::Clock* clock, BootMemory memory, Logger* log) {
  k8s::Result<ComputeModes> modes = remembered_modes(memory);
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

namespace {

constexpr int kVersion = 1;

// Whether all of the text is on the disk. Otherwise errno says why not.
bool write_through(const std::string& file, std::string_view text) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (descriptor < 0) return false;
  bool good = true;
  while (good && !text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    good = written > 0 || (written < 0 && errno == EINTR);
  }
  good = good && fsync(descriptor) == 0;
  const int why = errno;
  close(descriptor);
  errno = why;
  return good;
}

}  // namespace

std::string boot_id(const std::string& processes) {
  std::ifstream in(processes + "/sys/kernel/random/boot_id");
  std::string out;
  std::getline(in, out);
  return out;
}

k8s::Result<std::optional<json>> BootMemory::read() const {
  std::ifstream in(file_, std::ios::binary);
  if (!in) return std::optional<json>();
  std::ostringstream text;
  text << in.rdbuf();
  if (text.str().empty()) return std::optional<json>();
  const json all = json::parse(text.str(), nullptr, false);
  const json* value = member_at(all, member_);
  if (number_at(all, "v") != kVersion || member_at(all, "bootId") == nullptr || value == nullptr)
    return k8s::fail(k8s::Reason::decode, fmt::format("{}: cannot be read", file_));
  if (text_at(all, "bootId") != boot_id_) return std::optional<json>();
  return std::optional<json>(std::in_place, *value);
}

k8s::Result<void> BootMemory::write(const json& value) const {
  const std::string next = file_ + ".next";
  const json all{{"v", kVersion}, {"bootId", boot_id_}, {member_, value}};
  if (!write_through(next, all.dump() + "\n"))
    return k8s::fail(k8s::Reason::unavailable, fmt::format("{}: cannot be written: {}", next, std::strerror(errno)));
  std::error_code ec;
  std::filesystem::rename(next, file_, ec);
  if (ec) return k8s::fail(k8s::Reason::unavailable, fmt::format("{}: {}", file_, ec.message()));
  return {};
}

void BootMemory::forget() const {
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
}

}  // namespace gso
