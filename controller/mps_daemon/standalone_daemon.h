// The standalone MPS daemon of a node: its settings, what the machine must have for it, and the verbs that check,
// start, watch and stop nvidia-cuda-mps-control.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/config/logging.h"
#include "controller/mps_daemon/node_gpus.h"
#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"

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
// is missing. All problems are listed at once. `unused`: so is each GPU that processes use and whose mode would change.
// A daemon that is started again does not ask for that: the clients of the one before might never end.
boost::asio::awaitable<Requirements> check_requirements(k8s::Clock* clock, MpsDaemonSettings settings, bool unused);

// The process ids of MPS control daemons that run on the node, as far as this container sees its processes, each with
// that of its parent. The program without options is none: it sends commands, such as those of the readiness probe. Nor
// is the child of a daemon, which becomes a server, nor a process that ended between the reading of its command line
// and that of its status: so that a daemon that was just stopped, as the own one, is not reported as another. Each is
// read once: of a daemon that forks and ends meanwhile, itself or the child is found.
[[nodiscard]] std::map<std::string, std::string> running_control_daemons(const std::string& processes);

// --- The verbs of `mps-daemon`.

// How a daemon is asked to end. Notify `stop`: it quits once its clients are gone, or after stop_timeout. Notify
// `hurry` as well: it is killed at once. The GPUs get the compute mode that they had either way.
struct DaemonStop {
  k8s::Signal* stop;
  k8s::Signal* hurry;
};

// The daemon from its start to its end. The GPUs get the compute mode that they had whenever it ends: after a stop, by
// itself, or if none starts; also what a daemon before has left that was killed together with this program. After a
// failure they keep it while another daemon runs on the node, which might need it.
// Exit status: 0 stopped, 1 refused, or the daemon ended.
boost::asio::awaitable<int> run_mps_daemon(k8s::Clock* clock, MpsDaemonSettings settings, Logger* log, DaemonStop stop);

// One line on what answers and where: the readiness probe. Exit status: 0 a daemon answers, 1 none does, or another one
// runs as well (MpsDaemonSettings::alone).
boost::asio::awaitable<int> probe_readiness(k8s::Clock* clock, MpsDaemonSettings settings, std::ostream* out);

// The requirements alone, one line for each problem; changes no compute mode but under MpsDaemonSettings::restores, as
// a daemon that is refused does. A daemon that is started later in this boot serves in the directory that this names,
// whatever its driver's default is by then. Exit status: 0 met, 1 not.
boost::asio::awaitable<int> report_requirements(k8s::Clock* clock, MpsDaemonSettings settings, Logger* log,
                                                std::ostream* out);

// --- An MPS control daemon that the host runs, as by systemd: it is only watched.

// Logs when the daemon of the host appears and disappears, and reports where it answers, until `stop` is notified.
// `once`: until a daemon has answered. Exit status 0.
boost::asio::awaitable<int> observe_mps_daemon(k8s::Clock* clock, MpsDaemonSettings settings, bool once, Logger* log,
                                               k8s::Signal* stop);

}  // namespace gso
