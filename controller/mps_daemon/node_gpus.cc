#include "controller/mps_daemon/node_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "k8sclient/auth/child_process.h"

namespace gso {
namespace {

namespace asio = boost::asio;
constexpr const char* kQuery = "--query-gpu=uuid,driver_version,compute_mode,mig.mode.current";
constexpr k8s::Duration kLimit = std::chrono::seconds(60);  // Without persistence mode the driver starts first.

std::string trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  while (true) {
    const auto end = text.find(separator);
    out.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
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
  const std::string said = trimmed(done->err.empty() ? done->out : done->err);
  co_return k8s::fail(k8s::Reason::unavailable,
                      done->timed_out ? fmt::format("nvidia-smi gave no answer within 60s: restart the node's driver")
                                      : fmt::format("nvidia-smi failed: {}", said));
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

asio::awaitable<k8s::Result<void>> set_compute_mode(k8s::Clock* clock, std::string uuid, std::string mode) {
  std::ranges::transform(mode, mode.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::vector<std::string> arguments{"-i", uuid, "-c", mode};
  const k8s::Result<std::string> done = co_await nvidia_smi(clock, std::move(arguments));
  if (done) co_return k8s::Result<void>();
  co_return k8s::fail(done.error().reason, fmt::format("GPU {}: the compute mode {} was not set: {}. Only root is "
                                                       "allowed to set it: run the container as user 0, privileged",
                                                       uuid, mode, done.error().message));
}

}  // namespace gso
