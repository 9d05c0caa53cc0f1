// The settings of a standalone daemon, and what the machine must have for it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/mps_daemon/node_gpus.h"
#include "k8sclient/value/error.h"
#include "k8sclient/value/time.h"

namespace gso {

// --- What the standalone MPS daemon of a node is started with, and where its clients find it.

struct MpsDaemonSettings {
  std::string pipe_directory;  // Empty: the driver's default, below `root`.
  std::string root;            // Where the node's /run and /tmp are mounted; empty: this is the node's own root.
  // What takes the place of the driver's default: the node's pod has reported it. Empty: nothing does.
  std::string announced;
  std::string log_directory = "/var/log/nvidia-mps";
  std::optional<std::int64_t> active_thread_percentage;  // Of clients that set none themselves.
  std::map<std::string, std::string> pinned_memory;      // Device -> the limit of each of its clients, as in "10G".
  std::optional<std::int64_t> server_user;  // The user whose server is started at once; nullopt: with the first client.
  bool exclusive = true;                    // Set EXCLUSIVE_PROCESS. False: leave the compute mode as it is.
  bool restores = false;  // A check that refuses the node sets the compute modes that a daemon before has left behind.
  k8s::Duration stop_timeout = std::chrono::seconds(30);  // How long a stop waits for connected clients.
  std::string processes = "/proc";                        // Where the processes of the node are listed.
  bool alone = false;                                     // The daemon is not ready while another one runs on the node.
  std::string report;  // File for the result, such as the container's termination log; empty: none.
};

// The directory that a daemon and its clients use if none is set: with driver r615 or later a daemon of root uses
// /run/nvidia-mps.
[[nodiscard]] std::string_view default_pipe_directory(std::string_view driver_version, bool root);

// The address of a Unix socket has 107 characters (unix(7)), and the daemon's longest one in its pipe directory is
// "/control_privileged"; its other files there are no sockets. A longer directory has no daemon.
inline constexpr std::size_t kLongestPipeDirectory = 107 - std::string_view("/control_privileged").size();
// Errors: `invalid`, if a directory in which the daemon can be is longer.
[[nodiscard]] k8s::Result<void> check_length(const MpsDaemonSettings& settings);

// Where a daemon can be: the configured directory, else each default of any driver.
[[nodiscard]] std::vector<std::string> possible_pipe_directories(const MpsDaemonSettings& settings);
// The directory's path on the node, which clients mount.
[[nodiscard]] std::string path_on_node(const MpsDaemonSettings& settings, const std::string& directory);

// Decimal digits alone, and at least one.
[[nodiscard]] bool is_number(std::string_view text);

// "0=10G" -> device and limit. Errors: `invalid`.
[[nodiscard]] k8s::Result<std::pair<std::string, std::string>> parse_memory_limit(std::string_view text);

// --- What a node must have before the standalone MPS daemon starts there.

struct Requirements {
  std::vector<std::string> problems;  // For people: object, what is wrong, what to do. Empty: the daemon can start.
  std::vector<NodeGpu> gpus;
  std::string pipe_directory;   // Where the daemon will be.
  bool beside_another = false;  // Another MPS daemon runs on the node.
};

// MPS control daemons that this process has not started.
struct OtherDaemons {
  std::vector<std::string> processes;    // Their ids, as far as this container sees the node's processes.
  std::vector<std::string> directories;  // Where one answers; not looked at if `processes` has any.
  [[nodiscard]] bool empty() const { return processes.empty() && directories.empty(); }
  friend bool operator==(const OtherDaemons&, const OtherDaemons&) = default;
};
// `own`: the pipe directory of this process's daemon; empty: it has none.
boost::asio::awaitable<OtherDaemons> find_other_daemons(k8s::Clock* clock, MpsDaemonSettings settings, std::string own);

// Looks at everything and changes nothing but the two directories, which it creates; that of the pipe only if nothing
// is missing. All problems are listed at once.
boost::asio::awaitable<Requirements> check_requirements(k8s::Clock* clock, MpsDaemonSettings settings);

// The process ids of MPS control daemons that run on the node, as far as this container sees its processes, each with
// that of its parent. The program without options is none: it sends commands, such as those of the readiness probe. Nor
// is the child of a daemon, which becomes a server, nor a process that ended between the reading of its command line
// and that of its status: so that a daemon that was just stopped, as the own one, is not reported as another. Each is
// read once: of a daemon that forks and ends meanwhile, itself or the child is found.
[[nodiscard]] std::map<std::string, std::string> running_control_daemons(const std::string& processes);

}  // namespace gso
