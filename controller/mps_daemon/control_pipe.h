// Commands for an MPS control daemon, over its pipe directory.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>

#include "k8sclient/clock.h"
#include "k8sclient/value/error.h"

namespace gso {

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

}  // namespace gso
