// An MPS control daemon that the host runs, as by systemd: it is only watched.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "controller/config/logging.h"
#include "controller/mps_daemon/settings.h"
#include "k8sclient/clock.h"

namespace gso {

// Logs when the daemon of the host appears and disappears, and reports where it answers, until `stop` is notified.
// `once`: until a daemon has answered. Exit status 0.
boost::asio::awaitable<int> observe_mps_daemon(k8s::Clock* clock, MpsDaemonSettings settings, bool once, Logger* log,
                                               k8s::Signal* stop);

}  // namespace gso
