#include "controller/mps_daemon/standalone_daemon.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "controller/mps_daemon/control_pipe.h"
#include "k8sclient/value/encoding.h"
#include "reconcilers/model/foreign_names.h"
#include "reconcilers/model/message_text.h"

namespace gso {

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, k8s::is_digit);
}

std::vector<std::string> possible_pipe_directories(const MpsDaemonSettings& settings) {
  if (!settings.pipe_directory.empty()) return {settings.pipe_directory};
  return {settings.root + std::string(kRunPipeDirectory), settings.root + std::string(kTmpPipeDirectory)};
}

k8s::Result<void> check_length(const MpsDaemonSettings& settings) {
  for (const std::string& directory : possible_pipe_directories(settings)) {
    if (directory.size() <= kLongestPipeDirectory) continue;
    return k8s::fail(
        k8s::Reason::invalid,
        fmt::format("the pipe directory {} has {} characters: choose one of at most {}, because the address "
                    "of a socket in it has at most 107",
                    directory, directory.size(), kLongestPipeDirectory));
  }
  return {};
}

std::string path_on_node(const MpsDaemonSettings& settings, const std::string& directory) {
  const bool below = settings.pipe_directory.empty() && directory.starts_with(settings.root);
  return below ? directory.substr(settings.root.size()) : directory;
}

k8s::Result<std::pair<std::string, std::string>> parse_memory_limit(std::string_view text) {
  const auto equals = text.find('=');
  const std::string_view device = text.substr(0, equals);
  const std::string_view limit = equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1);
  const bool has_suffix = limit.ends_with('G') || limit.ends_with('M');
  const std::string_view number = limit.substr(0, limit.size() - (has_suffix ? 1 : 0));
  const auto is_of_uuid = [](char c) { return k8s::is_alphanumeric(c) || c == '-'; };
  const bool fits = !device.empty() && std::ranges::all_of(device, is_of_uuid) && has_suffix && is_number(number) &&
                    number.size() <= 7 && number.find_first_not_of('0') != std::string_view::npos;
  if (!fits) {
    return k8s::fail(k8s::Reason::invalid,
                     fmt::format("--pinned-memory-limit {}: write DEVICE=SIZE, a device number or UUID and a size in M "
                                 "or G, such as 0=10G",
                                 text));
  }
  return std::pair(std::string(device), std::string(limit));
}

namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;
// Arguments with which the program prints something or sends a command. One that is no option is a command, too.
constexpr std::array<std::string_view, 6> kNoDaemon{"-v", "--version", "-h", "--help", "-q", "--quit"};
constexpr const char* kSharedMemory = "/dev/shm";

bool is_in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

// How another user could put their own files in place of the daemon's; empty: in no way. Below a directory where all
// users write, such as /tmp, one that root has made is safe as long as the sticky bit keeps others from renaming it.
std::string replaceable_by(const fs::path& directory) {
  const auto foreign = [](const struct stat& entry) { return entry.st_uid != 0 && entry.st_uid != geteuid(); };
  for (fs::path at = directory;; at = at.parent_path()) {
    struct stat link{};
    struct stat target{};
    if (lstat(at.c_str(), &link) != 0 || stat(at.c_str(), &target) != 0)
      return fmt::format("{}: {}", at.string(), std::strerror(errno));
    if (at == directory && S_ISLNK(link.st_mode)) return fmt::format("{} is a symbolic link", at.string());
    if (foreign(link) || foreign(target))
      return fmt::format("{} is owned by user {}", at.string(), foreign(link) ? link.st_uid : target.st_uid);
    const bool shared = at == directory ? (target.st_mode & (S_IWGRP | S_IWOTH)) != 0
                                        : (target.st_mode & S_IWOTH) != 0 && (target.st_mode & S_ISVTX) == 0;
    if (shared) return fmt::format("{} is writable by other users (mode {:o})", at.string(), target.st_mode & 07777);
    if (at == at.root_path()) return {};
  }
}

// What keeps a directory from being used; empty: nothing.
std::string directory_problem(const char* what, const std::string& directory) {
  std::error_code ec;
  fs::create_directories(directory, ec);
  if (ec || access(directory.c_str(), W_OK | X_OK) != 0) {
    const std::string why = ec ? ec.message() : std::strerror(errno);
    return fmt::format(
        "{} {} is not writable: {}. Mount a directory of the node there, and run as its owner or as root", what,
        directory, why);
  }
  fs::path whole = fs::absolute(directory, ec).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  const std::string why = replaceable_by(whole);
  if (why.empty()) return {};
  return fmt::format(
      "{} {} is not safe: {}, so another user could put files in place of the daemon's. Remove it on the node, or give "
      "it to root with mode 755",
      what, directory, why);
}

// EXCLUSIVE_PROCESS would let the processes of a GPU open no further context, and no MPS server start beside them. Who
// uses a GPU that has that mode already came with it.
asio::awaitable<std::vector<std::string>> user_problems(k8s::Clock* clock, std::vector<NodeGpu> gpus) {
  std::vector<std::string> out;
  std::erase_if(gpus, [](const NodeGpu& gpu) { return gpu.compute_mode == kExclusiveProcess; });
  if (gpus.empty()) co_return out;
  constexpr std::string_view kKeep = "computeMode Keep sets no mode";
  const k8s::Result<GpuUsers> users = co_await list_gpu_users(clock);
  if (!users) {
    out.push_back(fmt::format("who uses the GPUs is unknown: {}. {}", users.error().message, kKeep));
    co_return out;
  }
  for (const NodeGpu& gpu : gpus) {
    const auto of_gpu = users->find(gpu.uuid);
    if (of_gpu == users->end()) continue;
    out.push_back(
        fmt::format("GPU {} is used by {}: in EXCLUSIVE_PROCESS they could fail, and no MPS server starts beside them. "
                    "End them (drain the node of its GPU pods); the pod looks again by itself. {}",
                    gpu.uuid, first_names(of_gpu->second), kKeep));
  }
  co_return out;
}

std::vector<std::string> gpu_problems(const std::vector<NodeGpu>& gpus, bool exclusive) {
  std::vector<std::string> out;
  for (const NodeGpu& gpu : gpus) {
    if (gpu.mig) {
      out.push_back(
          fmt::format("GPU {} has MIG enabled, and one MPS daemon cannot serve its instances: disable MIG "
                      "there, or take the node out of the node selector",
                      gpu.uuid));
    }
    if (exclusive && gpu.compute_mode == "Prohibited") {
      out.push_back(
          fmt::format("GPU {} is in compute mode Prohibited, which was set so that nothing uses it: "
                      "set it to Default (nvidia-smi -i {} -c DEFAULT), or take the node out of the node "
                      "selector",
                      gpu.uuid, gpu.uuid));
    }
  }
  return out;
}

bool starts_daemon(std::string_view argument) {
  return argument.starts_with('-') && std::ranges::find(kNoDaemon, argument) == kNoDaemon.end();
}

// The process id of the parent; nullopt: there is no status to read, as the process has gone.
std::optional<std::string> parent_of(const std::string& processes, const std::string& pid) {
  constexpr std::string_view kParent = "PPid:";
  std::ifstream in(processes + "/" + pid + "/status");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(kParent)) continue;
    const auto number = line.find_first_not_of(" \t", kParent.size());
    return number == std::string::npos ? std::string() : line.substr(number);
  }
  return std::nullopt;
}

}  // namespace

std::map<std::string, std::string> running_control_daemons(const std::string& processes) {
  std::map<std::string, std::string> out;
  std::error_code ec;
  for (fs::directory_iterator at(processes, ec), end; !ec && at != end; at.increment(ec)) {
    const std::string pid = at->path().filename().string();
    if (!is_number(pid)) continue;
    std::ifstream in(at->path() / "cmdline", std::ios::binary);
    std::string program;
    std::string argument;
    std::getline(in, program, '\0');
    std::getline(in, argument, '\0');
    if (program.substr(program.rfind('/') + 1) != kMpsControl || !starts_daemon(argument)) continue;
    if (std::optional<std::string> parent = parent_of(processes, pid)) out.emplace(pid, *std::move(parent));
  }
  const std::map<std::string, std::string> all = out;
  std::erase_if(out, [&](const auto& daemon) { return all.contains(daemon.second); });
  return out;
}

asio::awaitable<OtherDaemons> find_other_daemons(k8s::Clock* clock, MpsDaemonSettings settings, std::string own) {
  OtherDaemons out;
  const std::string self = fmt::format("{}", getpid());
  for (const auto& [pid, parent] : running_control_daemons(settings.processes))
    if (parent != self) out.processes.push_back(pid);
  const std::vector<std::string> places = possible_pipe_directories(settings);
  for (std::size_t i = 0; i < places.size() && out.processes.empty(); ++i) {
    if (places[i] == own) continue;
    const k8s::Result<std::string> answer = co_await probe_mps_daemon(clock, places[i]);
    if (answer) out.directories.push_back(places[i]);
  }
  co_return out;
}

asio::awaitable<Requirements> check_requirements(k8s::Clock* clock, MpsDaemonSettings settings, bool unused) {
  Requirements out;
  if (!is_in_path(kMpsControl)) {
    out.problems.push_back(
        fmt::format("{} is not in the PATH: the NVIDIA container runtime adds it to pods whose "
                    "runtimeClassName is nvidia's, with the capability compute",
                    kMpsControl));
  }
  k8s::Result<std::vector<NodeGpu>> gpus = co_await list_gpus(clock);
  if (gpus) {
    out.gpus = std::move(*gpus);
    std::ranges::copy(gpu_problems(out.gpus, settings.exclusive), std::back_inserter(out.problems));
    std::vector<std::string> in_use;
    if (unused && settings.exclusive) in_use = co_await user_problems(clock, out.gpus);
    std::ranges::move(in_use, std::back_inserter(out.problems));
  } else {
    out.problems.push_back(gpus.error().message);
  }
  if (access(kSharedMemory, W_OK) != 0) {
    out.problems.push_back(fmt::format("{} is not writable: {}. Clients and the daemon share memory there: set hostIPC",
                                       kSharedMemory, std::strerror(errno)));
  }
  out.pipe_directory = settings.pipe_directory;
  if (out.pipe_directory.empty() && !out.gpus.empty()) {
    out.pipe_directory = settings.root;
    const std::string_view by_driver = default_pipe_directory(out.gpus.front().driver_version, geteuid() == 0);
    out.pipe_directory += settings.announced.empty() ? by_driver : std::string_view(settings.announced);
  }
  const OtherDaemons others = co_await find_other_daemons(clock, settings, "");
  out.beside_another = !others.empty();
  constexpr std::string_view kStopIt = "and two daemons must not serve one GPU: stop it, or watch it with mode observe";
  if (!others.processes.empty()) {
    out.problems.push_back(fmt::format("an MPS control daemon runs on this node already (process {}), {}",
                                       fmt::join(others.processes, ", "), kStopIt));
  }
  for (const std::string& place : others.directories)
    out.problems.push_back(fmt::format("an MPS control daemon answers in {} already, {}", place, kStopIt));
  const std::string log = directory_problem("log directory", settings.log_directory);
  if (!log.empty()) out.problems.push_back(log);
  // Where no daemon will run it is not created: a client that mounts it would take it for the directory of one.
  std::error_code ignored;
  const bool looked_at =
      !out.pipe_directory.empty() && (out.problems.empty() || fs::exists(out.pipe_directory, ignored));
  const std::string pipe = looked_at ? directory_problem("pipe directory", out.pipe_directory) : "";
  if (!pipe.empty()) out.problems.push_back(pipe);
  co_return out;
}

}  // namespace gso
