// How long things take on a machine with GPUs, and how fast the fleet's time runs. The defaults are those of the real
// components; `scale` shrinks all of them together, so that a demo over HTTP shows the same story in seconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>

#include "k8sclient/value/time.h"

namespace gso::sim {

struct FleetTiming {
  double scale = 1.0;   // Factor on every delay but the heartbeat's; > 0.
  double jitter = 0.2;  // Each delay is multiplied by a random 1..1+jitter.
  std::uint64_t seed = 1;

  // kubelet
  k8s::Duration pod_setup = std::chrono::milliseconds(500);        // Sandbox and volumes.
  k8s::Duration container_start = std::chrono::milliseconds(300);  // Each container after the one before it.
  k8s::Duration container_relist = std::chrono::seconds(1);        // Until an ended container is noticed.
  k8s::Duration crash_backoff = std::chrono::seconds(10);          // After the second end; doubled each time.
  k8s::Duration crash_backoff_limit = std::chrono::minutes(5);
  k8s::Duration crash_backoff_reset = std::chrono::minutes(10);  // Running this long forgets the backoff.
  k8s::Duration mount_retry = std::chrono::seconds(2);           // A volume whose ConfigMap is missing.
  k8s::Duration volume_sync = std::chrono::seconds(60);          // Of a running pod, times 1..1.5.
  k8s::Duration pod_change_sync = std::chrono::seconds(1);       // After an annotation or label of the pod changed.
  k8s::Duration node_status = std::chrono::seconds(10);          // Capacity and allocatable are published this often.
  k8s::Duration stopped_plugin_grace = std::chrono::minutes(5);  // Until the capacity of a stopped plugin is 0.
  k8s::Duration heartbeat = std::chrono::seconds(10);            // Lease renewal; not scaled. 0: none.
  k8s::Duration node_lost = std::chrono::seconds(40);            // Until a silent node's Ready is Unknown.

  // NVIDIA's programs
  k8s::Duration validation = std::chrono::milliseconds(500);    // toolkit-validation, mount-shm.
  k8s::Duration informer = std::chrono::milliseconds(500);      // config-manager learns its node's label.
  k8s::Duration plugin_init = std::chrono::milliseconds(1500);  // NVML, between reading the config and serving.
  k8s::Duration plugin_retry = std::chrono::seconds(30);        // After "Failed to start one or more plugins".
  k8s::Duration discovery_init = std::chrono::milliseconds(1000);
  k8s::Duration discovery_loop = std::chrono::seconds(60);
  k8s::Duration mps_init = std::chrono::seconds(2);
  k8s::Duration slice_init = std::chrono::seconds(5);     // Nebuly's fork, with its MPS servers.
  k8s::Duration slice_report = std::chrono::seconds(10);  // nos's gpu-agent, from one report to the next.
  k8s::Duration stop = std::chrono::seconds(1);           // From SIGTERM to a program's end.
  k8s::Duration nfd_batch = std::chrono::seconds(1);
  k8s::Duration nfd_api = std::chrono::milliseconds(300);  // Until NodeFeatures are looked for again; not scaled.
  k8s::Duration nfd_worker = std::chrono::seconds(60);     // From one look at features.d to the next.
  k8s::Duration upgrade_step = std::chrono::seconds(30);   // Of a driver upgrade.
  k8s::Duration mig_apply = std::chrono::seconds(100);     // Until the GPUs are cut, or until it is tried again.

  // Controllers
  k8s::Duration daemonset_sync = std::chrono::milliseconds(200);
  k8s::Duration scheduler_cycle = std::chrono::milliseconds(100);
  k8s::Duration operator_state = std::chrono::milliseconds(700);  // GPU Operator: from one DaemonSet to the next.

  // The cluster autoscaler and its cloud
  k8s::Duration autoscaler_scan = std::chrono::seconds(10);
  k8s::Duration autoscaler_unneeded = std::chrono::minutes(10);  // --scale-down-unneeded-time
  k8s::Duration machine_boot = std::chrono::seconds(90);         // From the order to a registered node.
  k8s::Duration machine_removal = std::chrono::seconds(40);      // From the taint to a machine that is off.
};

// Draws the delays. One per fleet: the same seed gives the same run on a simulated clock.
class Pace {
 public:
  explicit Pace(FleetTiming timing) : timing_(timing), random_(timing.seed) {}
  [[nodiscard]] const FleetTiming& timing() const { return timing_; }
  // `real` scaled and jittered.
  [[nodiscard]] k8s::Duration delay(k8s::Duration real) { return stretch(real, 1.0 + timing_.jitter * uniform()); }
  // `real` scaled and spread over 1..most of it.
  [[nodiscard]] k8s::Duration spread(k8s::Duration real, double most) {
    return stretch(real, 1.0 + (most - 1.0) * uniform());
  }
  // `real` scaled, exactly.
  [[nodiscard]] k8s::Duration exact(k8s::Duration real) const { return stretch(real, 1.0); }
  // 0 <= x < 1.
  [[nodiscard]] double uniform() { return std::uniform_real_distribution<double>(0.0, 1.0)(random_); }

 private:
  [[nodiscard]] k8s::Duration stretch(k8s::Duration real, double factor) const {
    return k8s::Duration(static_cast<std::int64_t>(static_cast<double>(real.count()) * timing_.scale * factor));
  }
  FleetTiming timing_;
  std::mt19937_64 random_;
};

}  // namespace gso::sim
