#include "reconcilers/model/mps_pipe_directory.h"

#include <algorithm>

namespace gso {

std::string clean_path(std::string_view path) {
  const bool absolute = path.starts_with('/');
  std::string out;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(part.size() + 1, path.size()));
    if (part.empty() || part == ".") continue;
    if (absolute || !out.empty()) out += '/';
    out += part;
  }
  return out.empty() && absolute ? "/" : out;
}

bool is_at_or_below(std::string_view path, std::string_view directory) {
  if (!path.starts_with(directory)) return false;
  return directory.ends_with('/') || path.size() == directory.size() || path[directory.size()] == '/';
}

namespace {

constexpr std::string_view kReport = "pipeDirectory=";
constexpr std::size_t kLongestLabel = 63;

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

std::string_view reported_pipe_directory(std::string_view message) {
  if (!message.starts_with(kReport)) return {};
  message.remove_prefix(kReport.size());
  return message.substr(0, message.find_first_of(" \t\r\n"));
}

std::string pipe_directory_label(std::string_view directory) {
  if (!directory.starts_with('/') || clean_path(directory) != directory) return {};
  std::string out(directory.substr(1));
  if (out.empty() || out.size() > kLongestLabel) return {};
  if (!is_alphanumeric(out.front()) || !is_alphanumeric(out.back())) return {};
  const auto fits = [](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '/'; };
  if (!std::ranges::all_of(out, fits)) return {};
  std::ranges::replace(out, '/', '.');
  return out;
}

std::string pipe_directory_of_label(std::string_view value) {
  std::string out = "/" + std::string(value);
  std::ranges::replace(out, '.', '/');
  return !value.empty() && pipe_directory_label(out) == value ? out : std::string();
}

bool is_usual_pipe_directory(std::string_view path) {
  constexpr std::string_view kUsual[] = {"/run/nvidia/mps",     "/run/nvidia-mps", "/var/run/nvidia/mps",
                                         "/var/run/nvidia-mps", "/tmp/nvidia-mps", "/mps"};
  return std::ranges::any_of(kUsual, [&](std::string_view usual) { return is_at_or_below(path, usual); });
}

}  // namespace gso
