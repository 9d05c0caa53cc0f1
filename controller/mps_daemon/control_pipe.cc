#include "controller/mps_daemon/control_pipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <sstream>
#include <utility>

#include "controller/mps_daemon/node_gpus.h"
#include "k8sclient/auth/child_process.h"

namespace gso {

namespace {

namespace asio = boost::asio;
constexpr k8s::Duration kProbeLimit = std::chrono::seconds(5);

std::string without_line_end(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

}  // namespace

asio::awaitable<k8s::Result<std::string>> ask_mps_daemon(k8s::Clock* clock, std::string pipe_directory,
                                                         std::string command, k8s::Duration limit,
                                                         std::shared_ptr<k8s::Signal> stop) {
  k8s::ProcessSpec spec;
  spec.program = kMpsControl;
  spec.env = {{"CUDA_MPS_PIPE_DIRECTORY", pipe_directory}};
  spec.time_limit = limit;
  spec.text = command + "\n";
  spec.stop = std::move(stop);
  const k8s::Result<k8s::ProcessResult> done = co_await k8s::run_process(spec, clock);
  if (!done) co_return std::unexpected(done.error());
  const std::string said = without_line_end(done->err.empty() ? done->out : done->err);
  if (done->exit_code == 0) co_return without_line_end(done->out);
  co_return k8s::fail(k8s::Reason::unavailable,
                      fmt::format("no MPS control daemon answers `{}` in {}{}", command, pipe_directory,
                                  done->timed_out ? ": no answer in time"
                                  : said.empty()  ? ""
                                                  : ": " + said));
}

asio::awaitable<k8s::Result<std::string>> probe_mps_daemon(k8s::Clock* clock, std::string pipe_directory) {
  const std::string command = "get_default_active_thread_percentage";
  co_return co_await ask_mps_daemon(clock, pipe_directory, command, kProbeLimit);
}

namespace {

constexpr k8s::Duration kCommandLimit = std::chrono::seconds(30);
constexpr k8s::Duration kServerLimit = std::chrono::seconds(30);
constexpr k8s::Duration kServerPoll = std::chrono::milliseconds(100);

// The GPU that a setting names; null: the node has no such GPU.
const NodeGpu* find_gpu(const std::string& device, const std::vector<NodeGpu>& gpus) {
  if (is_number(device)) {
    std::size_t index = 0;
    std::from_chars(device.data(), device.data() + device.size(), index);
    return index < gpus.size() ? &gpus[index] : nullptr;
  }
  const auto found = std::ranges::find(gpus, device, &NodeGpu::uuid);
  return found == gpus.end() ? nullptr : &*found;
}

// "10G" -> 10240, "512M" -> 512. nullopt: anything else.
std::optional<std::int64_t> in_mib(std::string_view size) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), number);
  const std::string_view suffix(end, static_cast<std::size_t>(size.data() + size.size() - end));
  if (error != std::errc() || (suffix != "G" && suffix != "M")) return std::nullopt;
  return suffix == "G" ? number * 1024 : number;
}

struct MemoryLimits {
  std::map<std::string, std::string> of_gpus;  // UUID of a GPU of the node -> limit, as in "10G"
  std::vector<std::string> absent;             // Devices of the settings that the node does not have.
};

// The limits that concern this node: a number counts the GPUs as nvidia-smi lists them. A limit by UUID goes before one
// by number, because of two limits for one GPU the daemon obeys the one that it got first. A device that is not
// there is never sent: releases of the driver drop every limit then.
MemoryLimits memory_limits_of_node(const std::map<std::string, std::string>& settings,
                                   const std::vector<NodeGpu>& gpus) {
  MemoryLimits out;
  for (const bool numbers : {false, true}) {
    for (const auto& [device, size] : settings) {
      if (is_number(device) != numbers) continue;
      const NodeGpu* gpu = find_gpu(device, gpus);
      if (gpu == nullptr)
        out.absent.push_back(device);
      else
        out.of_gpus.try_emplace(gpu->uuid, size);
    }
  }
  return out;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

// Process ids, one a line. Anything else, as a message that no server runs, is none.
std::vector<std::string> process_ids(const std::string& answer) {
  std::vector<std::string> out = words_of(answer);
  if (!std::ranges::all_of(out, is_number)) out.clear();
  return out;
}

k8s::Error not_kept(const std::string& command, const std::string& wanted, const std::string& says) {
  return {.reason = k8s::Reason::invalid,
          .message = fmt::format("{} does not keep a limit: after `{}` it says \"{}\", not {}. Its driver might not "
                                 "know this limit: remove it from the settings, or update the node's driver",
                                 kMpsControl, command, says, wanted)};
}

// Commands to one daemon. Not movable: its coroutines refer to it.
class DaemonCommands {
 public:
  DaemonCommands(k8s::Clock* clock, std::string pipe_directory, Logger* log)
      : clock_(clock), pipe_directory_(std::move(pipe_directory)), log_(log) {}

  asio::awaitable<k8s::Result<std::string>> ask(std::string command) {
    co_return co_await ask_mps_daemon(clock_, pipe_directory_, command, kCommandLimit);
  }

  asio::awaitable<k8s::Result<void>> set_memory(std::string gpu, std::string size) {
    const std::string command = fmt::format("set_default_device_pinned_mem_limit {} {}", gpu, size);
    const k8s::Result<std::string> set = co_await ask(command);
    if (!set) co_return std::unexpected(set.error());
    const k8s::Result<std::string> says = co_await ask(fmt::format("get_default_device_pinned_mem_limit {}", gpu));
    if (!says) co_return std::unexpected(says.error());
    if (in_mib(*says) != in_mib(size)) co_return std::unexpected(not_kept(command, size, *says));
    log_->info("Limited the memory of MPS clients", {{"gpu", gpu}, {"limit", size}});
    co_return k8s::Result<void>();
  }

  asio::awaitable<k8s::Result<void>> set_threads(std::int64_t percentage) {
    const std::string command = fmt::format("set_default_active_thread_percentage {}", percentage);
    const k8s::Result<std::string> says = co_await ask(command);
    if (!says) co_return std::unexpected(says.error());
    if (*says != fmt::format("{}.0", percentage))
      co_return std::unexpected(not_kept(command, fmt::format("{}.0", percentage), *says));
    log_->info("Limited the threads of MPS clients", {{"percent", percentage}});
    co_return k8s::Result<void>();
  }

  // Servers that were started before the defaults were set.
  asio::awaitable<k8s::Result<void>> limit_early_servers(MemoryLimits memory) {
    const k8s::Result<std::string> servers = co_await ask("get_server_list");
    if (!servers) co_return std::unexpected(servers.error());
    for (const std::string& server : process_ids(*servers)) {
      for (const auto& [gpu, size] : memory.of_gpus) {
        const std::string command = fmt::format("set_device_pinned_mem_limit {} {} {}", server, gpu, size);
        const k8s::Result<std::string> set = co_await ask(command);
        if (!set) co_return std::unexpected(set.error());
      }
      const k8s::Result<std::string> clients = co_await ask(fmt::format("get_client_list {}", server));
      if (!clients) co_return std::unexpected(clients.error());
      const std::vector<std::string> early = process_ids(*clients);
      if (early.empty()) continue;
      log_->warning("Clients connected before their memory was limited, and have no limit: start their pods again",
                    {{"server", server}, {"processes", fmt::format("{}", fmt::join(early, ", "))}});
    }
    co_return k8s::Result<void>();
  }

 private:
  k8s::Clock* clock_;
  std::string pipe_directory_;
  Logger* log_;
};

}  // namespace

asio::awaitable<k8s::Result<void>> set_client_limits(k8s::Clock* clock, std::string pipe_directory,
                                                     MpsDaemonSettings settings, std::vector<NodeGpu> gpus,
                                                     Logger* log) {
  const MemoryLimits memory = memory_limits_of_node(settings.pinned_memory, gpus);
  DaemonCommands daemon(clock, std::move(pipe_directory), log);
  for (const auto& [gpu, size] : memory.of_gpus) {
    const k8s::Result<void> set = co_await daemon.set_memory(gpu, size);
    if (!set) co_return set;
  }
  if (settings.active_thread_percentage) {
    const k8s::Result<void> set = co_await daemon.set_threads(*settings.active_thread_percentage);
    if (!set) co_return set;
  }
  if (!memory.of_gpus.empty()) {
    const k8s::Result<void> limited = co_await daemon.limit_early_servers(memory);
    if (!limited) co_return limited;
  }
  if (!memory.absent.empty()) {
    log->warning("Left out memory limits of devices that this node does not have",
                 {{"devices", fmt::format("{}", fmt::join(memory.absent, ", "))}});
  }
  co_return k8s::Result<void>();
}

asio::awaitable<k8s::Result<void>> start_mps_server(k8s::Clock* clock, std::string pipe_directory, std::int64_t user,
                                                    Logger* log) {
  DaemonCommands daemon(clock, std::move(pipe_directory), log);
  const std::string command = fmt::format("start_server -uid {}", user);
  const k8s::Result<std::string> started = co_await daemon.ask(command);
  if (!started) co_return std::unexpected(started.error());
  const k8s::MonoTime deadline = clock->monotonic() + kServerLimit;
  while (true) {
    const k8s::Result<std::string> servers = co_await daemon.ask("get_server_list");
    if (!servers) co_return std::unexpected(servers.error());
    if (!process_ids(*servers).empty()) break;
    if (clock->monotonic() >= deadline) {
      co_return k8s::fail(k8s::Reason::unavailable,
                          fmt::format("no MPS server runs after `{}`: the daemon's log says why", command));
    }
    co_await clock->sleep_for(kServerPoll);
  }
  log->info("Started an MPS server", {{"user", user}});
  co_return k8s::Result<void>();
}

}  // namespace gso
