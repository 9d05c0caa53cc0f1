// Every metric family of the operator: name, type, help, labels, buckets.
// Sources of names, labels and buckets: controller-runtime pkg/internal/controller/metrics and pkg/metrics (v0.22),
// client-go tools/metrics; process_* as the Prometheus client libraries spell them.
#include <string>
#include <utility>
#include <vector>

#include "controller/serving/metrics.h"

namespace gso {
namespace {

std::vector<double> reconcile_buckets() {
  return {0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
          1.75,  2.0,  2.5,   3.0,  3.5, 4.0,  4.5, 5,    6,   7,    8,   9,    10,  15,  20,  25,  30,  40,  50,   60};
}
std::vector<double> queue_buckets() {
  return {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000};
}
std::vector<double> request_buckets() {
  return {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};
}
// From one watch event to a whole fleet.
std::vector<double> convergence_buckets() {
  return {1, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400};
}

// As controller-runtime names them.
std::vector<Metrics::Family> controller_runtime_families() {
  using enum Metrics::Type;
  return {
      {"controller_runtime_reconcile_total",
       counter,
       "Total number of reconciliations per controller.",
       {"controller", "result"}},
      {"controller_runtime_reconcile_errors_total",
       counter,
       "Total number of reconciliation errors per controller.",
       {"controller"}},
      {"controller_runtime_terminal_reconcile_errors_total",
       counter,
       "Total number of terminal reconciliation errors per controller.",
       {"controller"}},
      {"controller_runtime_reconcile_panics_total",
       counter,
       "Total number of reconciliation panics per controller.",
       {"controller"}},
      {"controller_runtime_reconcile_time_seconds",
       histogram,
       "Length of time per reconciliation per controller.",
       {"controller"},
       reconcile_buckets()},
      {"controller_runtime_active_workers", gauge, "Number of currently used workers per controller.", {"controller"}},
      {"controller_runtime_max_concurrent_reconciles",
       gauge,
       "Maximum number of concurrent reconciles per controller.",
       {"controller"}},
  };
}

// As client-go's workqueue names them.
std::vector<Metrics::Family> workqueue_families() {
  using enum Metrics::Type;
  return {
      {"workqueue_depth",
       gauge,
       "Current depth of workqueue by workqueue and priority.",
       {"name", "controller", "priority"}},
      {"workqueue_adds_total", counter, "Total number of adds handled by workqueue.", {"name", "controller"}},
      {"workqueue_retries_total", counter, "Total number of retries handled by workqueue.", {"name", "controller"}},
      {"workqueue_queue_duration_seconds",
       histogram,
       "How long in seconds an item stays in workqueue before being requested.",
       {"name", "controller"},
       queue_buckets()},
      {"workqueue_work_duration_seconds",
       histogram,
       "How long in seconds processing an item from workqueue takes.",
       {"name", "controller"},
       queue_buckets()},
      {"workqueue_unfinished_work_seconds",
       gauge,
       "How many seconds of work has been done that is in progress and hasn't been observed by work_duration.",
       {"name", "controller"}},
      {"workqueue_longest_running_processor_seconds",
       gauge,
       "How many seconds has the longest running processor for workqueue been running.",
       {"name", "controller"}},
  };
}

// As client-go's client and election name them.
std::vector<Metrics::Family> client_families() {
  using enum Metrics::Type;
  return {
      {"rest_client_requests_total",
       counter,
       "Number of HTTP requests, partitioned by status code, method, and host.",
       {"code", "method", "host"}},
      {"rest_client_request_duration_seconds",
       histogram,
       "Request latency in seconds. Broken down by verb, and host.",
       {"verb", "host"},
       request_buckets()},
      {"rest_client_request_retries_total",
       counter,
       "Number of request retries, partitioned by status code, verb, and host.",
       {"code", "verb", "host"}},
      {"leader_election_master_status",
       gauge,
       "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master.",
       {"name"}},
  };
}

// Nodes and rollouts.
std::vector<Metrics::Family> node_families() {
  using enum Metrics::Type;
  return {
      {"gpusharing_build_info", gauge, "Always 1; the operator's version is in the labels.", {"version", "compiler"}},
      {"gpusharing_nodes",
       gauge,
       "GPU nodes by state of the sharing configuration (UpToDate, Drift, Pending and others).",
       {"state"}},
      {"gpusharing_nodes_by_profile",
       gauge,
       "GPU nodes by the profile that they should run and their state; beyond 100 profiles the profile is other.",
       {"profile", "state"}},
      {"gpusharing_nodes_drifting",
       gauge,
       "GPU nodes that should be up to date and do not show what their profile must produce.",
       {}},
      {"gpusharing_nodes_blocked", gauge, "GPU nodes that are Blocked or Held, by reason.", {"reason"}},
      {"gpusharing_nodes_allocatable_zero",
       gauge,
       "GPU nodes that are Ready and have no GPU allocatable, without those in a change or held.",
       {}},
      {"gpusharing_affected_objects",
       gauge,
       "1 for up to five objects of each reason (a finding's, a blocked node's, AllocatableZero, CordonedTooLong, "
       "Drift, Failed, LoadedUngated, ReservationDue): their names, for alerts.",
       {"reason", "kind", "object"}},
      {"gpusharing_nodes_cordoned", gauge, "GPU nodes that the operator has cordoned.", {}},
      {"gpusharing_nodes_cordoned_longest_seconds",
       gauge,
       "Seconds for which the longest cordon of the operator has been observed by this process; 0 without a cordon.",
       {}},
      {"gpusharing_nodes_cordoned_overdue_seconds",
       gauge,
       "Seconds for which a node has been cordoned by the operator beyond what its policy allows (idleTimeout while it "
       "waits for its workloads); nodes that are held do not count.",
       {}},
      {"gpusharing_node_changes_total",
       counter,
       "Changes written to nodes, by reason (Update, Recorded, LoadedUngated, Failed and others).",
       {"reason"}},
      {"gpusharing_rollout_waiting",
       gauge,
       "1 for a SharingRollout that has not ended and starts no node now, with the reason (MaxFailures, Paused, "
       "AwaitingApproval and others).",
       {"rollout", "policy", "reason"}},
      {"gpusharing_rollout_standstill",
       gauge,
       "1 for a SharingRollout of phase Progressing that makes no progress until somebody acts, with the reason.",
       {"rollout", "policy", "reason"}},
      {"gpusharing_rollouts", gauge, "SharingRollouts by phase.", {"phase"}},
      {"gpusharing_rollout_nodes", gauge, "Nodes of a rollout that has not ended, by state.", {"rollout", "state"}},
  };
}

// What the planning passes find.
std::vector<Metrics::Family> pass_families() {
  using enum Metrics::Type;
  return {
      {"gpusharing_convergence_seconds",
       histogram,
       "Time from the first change of the inputs to the moment when nothing was left to do.",
       {},
       convergence_buckets()},
      {"gpusharing_plan_seconds",
       histogram,
       "Time that one planning pass took, without its writes.",
       {},
       request_buckets()},
      {"gpusharing_kai_reservations",
       gauge,
       "KAI reservation pods by state: Sound, or the reason of their finding.",
       {"state"}},
      {"gpusharing_kai_mismatched_nodes",
       gauge,
       "Nodes where reservations and their consumers do not agree; findings and Events name them.",
       {}},
      {"gpusharing_reservation_gc_total",
       counter,
       "Stale KAI reservations that were due for deletion, by result: deleted, kept (by the final check), failed.",
       {"decision"}},
      {"gpusharing_findings", gauge, "Findings of the last planning pass.", {"severity", "reason"}},
  };
}

// The operator's own reads and writes.
std::vector<Metrics::Family> traffic_families() {
  using enum Metrics::Type;
  return {
      {"gpusharing_writes_total",
       counter,
       "Write requests by verb, kind and result (ok, or the error's reason).",
       {"verb", "kind", "result"}},
      {"gpusharing_admission_reviews_total",
       counter,
       "AdmissionReviews that the webhook answered, by kind and result (allowed, warned, refused, too_large, busy, "
       "unreadable).",
       {"kind", "result"}},
      {"gpusharing_writes_in_flight", gauge, "Write requests that were sent and are not answered yet.", {}},
      {"gpusharing_writes_deferred_total",
       counter,
       "Planned writes that were deferred, by cause (backoff, earlier-failure, last-look, lease, no-place, record, "
       "stale-view, status-rate, under-way).",
       {"cause"}},
      {"gpusharing_requests_limit",
       gauge,
       "Requests that the operator allows itself to have open at once, by lane (reads, writes, records, statuses, "
       "events); falls while the API server is slow or refuses.",
       {"lane"}},
      {"gpusharing_requests_waiting",
       gauge,
       "Requests that wait for their turn, by lane (reads, writes, records, statuses, events).",
       {"lane"}},
      {"gpusharing_throttled_total", counter, "Answers 429 from the API server.", {}},
      {"gpusharing_events_total", counter, "Events by result (sent, merged, dropped, failed).", {"result"}},
      {"gpusharing_certificate_expiration_timestamp_seconds",
       gauge,
       "When the certificate of a TLS server (metrics, webhook) expires, in seconds since the Unix epoch; absent "
       "without TLS.",
       {"server"}},
      {"gpusharing_watches", gauge, "Open watches by resource.", {"resource"}},
      {"gpusharing_watch_current",
       gauge,
       "1 while the view of this resource is current: complete, and its watch has delivered an event or a bookmark "
       "within 150 seconds.",
       {"resource"}},
      {"gpusharing_watch_stale_seconds",
       gauge,
       "Seconds since the last event or bookmark of a watch that does not deliver, by resource; 0 while it does.",
       {"resource"}},
      {"gpusharing_watch_failures_total",
       counter,
       "Failed lists and watches by resource and reason; too_large: an object was skipped.",
       {"resource", "reason"}},
      {"gpusharing_watch_lag_seconds",
       gauge,
       "Seconds for which the oldest write of the operator has not appeared in the watched view; 0 when none is "
       "waiting.",
       {}},
      {"gpusharing_store_objects", gauge, "Objects kept in memory by resource.", {"resource"}},
      {"gpusharing_store_bytes", gauge, "Bytes of the objects kept in memory by resource, estimated.", {"resource"}},
      {"gpusharing_interned_bytes", gauge, "Bytes of label and annotation texts shared between objects.", {}},
  };
}

// As the Prometheus client libraries name them.
std::vector<Metrics::Family> process_families() {
  using enum Metrics::Type;
  return {
      {"process_resident_memory_bytes", gauge, "Resident memory size in bytes.", {}},
      {"process_cpu_seconds_total", counter, "Total user and system CPU time spent in seconds.", {}},
      {"process_start_time_seconds", gauge, "Start time of the process since unix epoch in seconds.", {}},
      {"process_open_fds", gauge, "Number of open file descriptors.", {}},
  };
}

}  // namespace

std::vector<Metrics::Family> metrics_catalog() {
  std::vector<Metrics::Family> all;
  for (auto* const families : {&controller_runtime_families, &workqueue_families, &client_families, &node_families,
                               &pass_families, &traffic_families, &process_families}) {
    for (Metrics::Family& family : families()) all.push_back(std::move(family));
  }
  return all;
}

}  // namespace gso
