// An MPS control daemon that the host runs, as by systemd: it is only watched.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "controller/config/logging.h"
#include "controller/mps_daemon/settings.h"
#include "k8sclient/clock.h"

namespace gso {

// Logs when the daemon of the host appears and disappears, until `stop` is notified, or until it answers in another
// directory than its pod has reported last (MpsDaemonSettings::last_report): it reports that one and ends, because the
// report of a container is published when it ends. `once`: until a daemon has answered; reports where. Exit status 0.
boost::asio::awaitable<int> observe_mps_daemon(k8s::Clock* clock, MpsDaemonSettings settings, bool once, Logger* log,
                                               k8s::Signal* stop);

}  // namespace gso
