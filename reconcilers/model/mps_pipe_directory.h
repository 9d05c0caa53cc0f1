// Paths, and the directory in which clients find an MPS daemon.
#pragma once

#include <string>
#include <string_view>

namespace gso {

// --- Paths of hosts and containers, as manifests spell them.

// One spelling for one path: without repeated slashes, parts ".", and a slash at the end. Parts ".." stay: the API
// server refuses them in host paths.
[[nodiscard]] std::string clean_path(std::string_view path);

// The path is the directory or is below it. Both are clean.
[[nodiscard]] bool is_at_or_below(std::string_view path, std::string_view directory);

// --- The directory of a node in which clients find an MPS control daemon (CUDA_MPS_PIPE_DIRECTORY): what the pods of
// a standalone daemon report of it, and how a label of the Node names it.

// The init container of such a pod, whose termination message reports the directory.
inline constexpr std::string_view kStandaloneMpsCheck = "standalone-mps-check";

// "/run/nvidia-mps" of the message "pipeDirectory=/run/nvidia-mps driver=615.20 gpus=8"; empty: it names no directory.
[[nodiscard]] std::string_view reported_pipe_directory(std::string_view message);

// The directory as a label's value: without its first slash, and with '.' for each other one ("run.nvidia-mps"). Empty:
// it cannot be expressed, because it is not clean (mps_pipe_directory.h), is longer than 64 characters, does not begin
// and end with a letter or digit, or has characters other than these, '-' and '_'. Two directories never have the same
// value.
[[nodiscard]] std::string pipe_directory_label(std::string_view directory);
// The directory that has this value; empty: none has.
[[nodiscard]] std::string pipe_directory_of_label(std::string_view value);

// At or below a directory that MPS daemons use by default (from driver r615 on /run/nvidia-mps), or one of the plugin's
// chart and of the GPU Operator. `path`: clean.
[[nodiscard]] bool is_usual_pipe_directory(std::string_view path);

}  // namespace gso
