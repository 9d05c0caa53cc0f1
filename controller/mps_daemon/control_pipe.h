// Commands to the MPS control daemon, and the limits of its clients.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>
#include <vector>

#include "controller/mps_daemon/standalone_daemon.h"

namespace gso {

// --- Commands for an MPS control daemon, over its pipe directory.

// The program that is both the daemon and what sends it commands.
inline constexpr const char* kMpsControl = "nvidia-cuda-mps-control";

// The daemon's answer to one command, without the line feed at its end.
// `stop`: notify it to end the wait for the answer; may be null.
// Errors: `not_found` without the program, `unavailable` if no daemon answers there.
boost::asio::awaitable<k8s::Result<std::string>> ask_mps_daemon(k8s::Clock* clock, std::string pipe_directory,
                                                                std::string command, k8s::Duration limit,
                                                                std::shared_ptr<k8s::Signal> stop = nullptr);

// Whether a daemon answers there: its default percentage of active threads, which every release has.
boost::asio::awaitable<k8s::Result<std::string>> probe_mps_daemon(k8s::Clock* clock, std::string pipe_directory);

// --- The default limits of a daemon's clients: which GPU has which, and how they are set and confirmed.
// nvidia-cuda-mps-control ends with status 0 and often without a word whatever command it gets: a limit for a device
// that is not there, a size that it does not understand ("10X" becomes 10M). Each limit is therefore read back. A
// default holds for servers that start later, so a server that a fast client has started already gets its own limits.
// All of this was seen with driver r580.

// Sets the limits of `settings` in a daemon that answers, and confirms each.
// Errors: `unavailable` if it does not answer, `invalid` if it does not keep a limit.
boost::asio::awaitable<k8s::Result<void>> set_client_limits(k8s::Clock* clock, std::string pipe_directory,
                                                            MpsDaemonSettings settings, std::vector<NodeGpu> gpus,
                                                            Logger* log);

// Starts the server of a user, and waits until the daemon lists one. Errors: `unavailable`.
boost::asio::awaitable<k8s::Result<void>> start_mps_server(k8s::Clock* clock, std::string pipe_directory,
                                                           std::int64_t user, Logger* log);

}  // namespace gso
