// The standalone MPS daemon of a node: checks, starts, watches and stops nvidia-cuda-mps-control.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <iosfwd>
#include <string>

#include "controller/config/logging.h"
#include "controller/mps_daemon/settings.h"
#include "k8sclient/clock.h"

namespace gso {

// --- The result of a verb, in a file that its container publishes when it ends (its termination message).

// Replaces the report; nothing without MpsDaemonSettings::report.
void write_report(const MpsDaemonSettings& settings, const std::string& text);

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
