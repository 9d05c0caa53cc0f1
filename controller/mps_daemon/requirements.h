// What a node must have before the standalone MPS daemon starts there.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <map>
#include <string>
#include <vector>

#include "controller/mps_daemon/node_gpus.h"
#include "controller/mps_daemon/settings.h"

namespace gso {

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
