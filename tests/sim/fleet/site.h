// Site: what all actors of one fleet share: the client, the clock, the agenda, the pace, and the mirrors of what the
// API server holds. Plus the faults that a test can switch on.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "k8sclient/api/client.h"
#include "k8sclient/clock.h"
#include "tests/sim/fleet/agenda.h"
#include "tests/sim/fleet/mirror.h"
#include "tests/sim/fleet/outbox.h"
#include "tests/sim/fleet/timing.h"

namespace gso::sim {

// All off by default. May be changed at any time.
struct FleetFaults {
  k8s::Duration late_projection{0};  // Added to each volume sync of a running pod (scaled).
  bool mps_unclean_exit = false;     // MPS daemons are killed instead of stopping: GPUs stay EXCLUSIVE_PROCESS.
  // The first node that is to stop an MPS daemon is lost before it hears of that. It strikes once.
  bool lost_before_mps_stops = false;
  bool jobs_remain = false;  // Driver upgrades wait for jobs, and MIG changes for pods, as long as it is set.
  bool nfd_down = false;     // NFD's master does nothing: labels freeze.
  k8s::Duration late_slice_reports{0};  // From a look of nos's gpu-agent to its report (scaled).
  std::int64_t most_slices = 0;         // Nebuly's fork exits where a GPU has more slices than that. 0: no limit.
  // Not a fault but another way to run: feature discovery writes a file for NFD's worker (nfd_worker.h). From the next
  // labels on.
  bool feature_files = false;
  bool worker_looks_in_the_gap = false;  // NFD's worker looks just when such a file has been removed.
};

struct Site {
  Site(k8s::ApiClient* api, k8s::Clock* time, FleetTiming timing)
      : client(api), clock(time), pace(timing), agenda(time) {}

  // A duration of FleetTiming from now on, scaled and jittered.
  void after(k8s::Duration real, std::weak_ptr<const void> life, Agenda::Task task) {
    agenda.after(pace.delay(real), std::move(life), std::move(task));
  }

  k8s::ApiClient* client;
  k8s::Clock* clock;
  Pace pace;
  Agenda agenda;
  FleetFaults faults;
  Mirror nodes, pods, configmaps, daemonsets, revisions, clusterpolicies, nodefeatures;
};

// Somebody who works on the cluster: acts on what changes and by the agenda, and sends one write after the other.
class Actor {
 public:
  // `site` must outlive it.
  explicit Actor(Site* site) : site_(site), outbox_(site->client, site->clock) {}
  // Sends until stop().
  boost::asio::awaitable<void> run() { return outbox_.run(); }
  void stop() { outbox_.stop(); }

 protected:
  Site* site_;
  Outbox outbox_;
  std::shared_ptr<int> life_ = std::make_shared<int>();  // What was put on the agenda dies with it.
};

}  // namespace gso::sim
