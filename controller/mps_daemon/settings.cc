#include "controller/mps_daemon/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "k8sclient/value/ascii.h"

namespace gso {
namespace {

using k8s::is_digit;

constexpr std::string_view kRunDirectory = "/run/nvidia-mps";
constexpr std::string_view kTmpDirectory = "/tmp/nvidia-mps";
constexpr int kFirstDriverWithRun = 615;

bool is_of_uuid(char c) {
  return is_digit(c) || c == '-' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

std::string_view default_pipe_directory(std::string_view driver_version, bool root) {
  int major = 0;
  std::from_chars(driver_version.data(), driver_version.data() + driver_version.size(), major);
  return root && major >= kFirstDriverWithRun ? kRunDirectory : kTmpDirectory;
}

std::vector<std::string> possible_pipe_directories(const MpsDaemonSettings& settings) {
  if (!settings.pipe_directory.empty()) return {settings.pipe_directory};
  return {settings.root + std::string(kRunDirectory), settings.root + std::string(kTmpDirectory)};
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

}  // namespace gso
