// Every metric family of the operator: name, type, labels, help, buckets.
// Sources of names, labels and buckets: controller-runtime pkg/internal/controller/metrics and pkg/metrics (v0.22),
// client-go tools/metrics; process_* as the Prometheus client libraries spell them.
#include <span>

#include "controller/serving/metrics.h"

namespace gso {
namespace {

constexpr double kReconcileBuckets[] = {
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75,  2.0,  2.5,   3.0,  3.5, 4.0,  4.5, 5,    6,   7,    8,   9,    10,  15,  20,  25,  30,  40,  50,   60};
constexpr double kQueueBuckets[] = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000};
constexpr double kRequestBuckets[] = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};
// From one watch event to a whole fleet.
constexpr double kConvergenceBuckets[] = {1, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400};

constexpr auto kCounter = Metrics::Type::counter;
constexpr auto kGauge = Metrics::Type::gauge;
constexpr auto kHistogram = Metrics::Type::histogram;

constexpr Metrics::Family kCatalog[] = {
    // As controller-runtime names them.
    {"controller_runtime_reconcile_total", kCounter, "controller,result",
     "Total number of reconciliations per controller."},
    {"controller_runtime_reconcile_errors_total", kCounter, "controller",
     "Total number of reconciliation errors per controller."},
    {"controller_runtime_terminal_reconcile_errors_total", kCounter, "controller",
     "Total number of terminal reconciliation errors per controller."},
    {"controller_runtime_reconcile_panics_total", kCounter, "controller",
     "Total number of reconciliation panics per controller."},
    {"controller_runtime_reconcile_time_seconds", kHistogram, "controller",
     "Length of time per reconciliation per controller.", kReconcileBuckets},
    {"controller_runtime_active_workers", kGauge, "controller", "Number of currently used workers per controller."},
    {"controller_runtime_max_concurrent_reconciles", kGauge, "controller",
     "Maximum number of concurrent reconciles per controller."},

    // As client-go's workqueue names them.
    {"workqueue_depth", kGauge, "name,controller,priority", "Current depth of workqueue by workqueue and priority."},
    {"workqueue_adds_total", kCounter, "name,controller", "Total number of adds handled by workqueue."},
    {"workqueue_retries_total", kCounter, "name,controller", "Total number of retries handled by workqueue."},
    {"workqueue_queue_duration_seconds", kHistogram, "name,controller",
     "How long in seconds an item stays in workqueue before being requested.", kQueueBuckets},
    {"workqueue_work_duration_seconds", kHistogram, "name,controller",
     "How long in seconds processing an item from workqueue takes.", kQueueBuckets},
    {"workqueue_unfinished_work_seconds", kGauge, "name,controller",
     "How many seconds of work has been done that is in progress and hasn't been observed by work_duration."},
    {"workqueue_longest_running_processor_seconds", kGauge, "name,controller",
     "How many seconds has the longest running processor for workqueue been running."},

    // As client-go's client and election name them.
    {"rest_client_requests_total", kCounter, "code,method,host",
     "Number of HTTP requests, partitioned by status code, method, and host."},
    {"rest_client_request_duration_seconds", kHistogram, "verb,host",
     "Request latency in seconds. Broken down by verb, and host.", kRequestBuckets},
    {"rest_client_request_retries_total", kCounter, "code,verb,host",
     "Number of request retries, partitioned by status code, verb, and host."},
    {"leader_election_master_status", kGauge, "name",
     "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master."},

    // Nodes and rollouts.
    {"gpusharing_build_info", kGauge, "version,compiler", "Always 1; the operator's version is in the labels."},
    {"gpusharing_nodes", kGauge, "state",
     "GPU nodes by state of the sharing configuration (UpToDate, Drift, Pending and others)."},
    {"gpusharing_nodes_by_profile", kGauge, "profile,state",
     "GPU nodes by the profile that they should run and their state; beyond 100 profiles the profile is other."},
    {"gpusharing_nodes_drifting", kGauge, "",
     "GPU nodes that should be up to date and do not show what their profile must produce."},
    {"gpusharing_nodes_blocked", kGauge, "reason", "GPU nodes that are Blocked or Held, by reason."},
    {"gpusharing_nodes_allocatable_zero", kGauge, "",
     "GPU nodes that are Ready and have no GPU allocatable, without those in a change or held."},
    {"gpusharing_affected_objects", kGauge, "reason,kind,object",
     "1 for up to five objects of each reason (a finding's, a blocked node's, AllocatableZero, CordonedTooLong, Drift, "
     "Failed, LoadedUngated, ReservationDue): their names, for alerts."},
    {"gpusharing_nodes_cordoned", kGauge, "", "GPU nodes that the operator has cordoned."},
    {"gpusharing_nodes_cordoned_longest_seconds", kGauge, "",
     "Seconds for which the longest cordon of the operator has been observed by this process; 0 without a cordon."},
    {"gpusharing_nodes_cordoned_overdue_seconds", kGauge, "",
     "Seconds for which a node has been cordoned by the operator beyond what its policy allows (idleTimeout while it "
     "waits for its workloads); nodes that are held do not count."},
    {"gpusharing_node_changes_total", kCounter, "reason",
     "Changes written to nodes, by reason (Update, Recorded, LoadedUngated, Failed and others)."},
    {"gpusharing_rollout_waiting", kGauge, "rollout,policy,reason",
     "1 for a SharingRollout that has not ended and starts no node now, with the reason (MaxFailures, Paused, "
     "AwaitingApproval and others)."},
    {"gpusharing_rollout_standstill", kGauge, "rollout,policy,reason",
     "1 for a SharingRollout of phase Progressing that makes no progress until somebody acts, with the reason."},
    {"gpusharing_rollouts", kGauge, "phase", "SharingRollouts by phase."},
    {"gpusharing_rollout_nodes", kGauge, "rollout,state", "Nodes of a rollout that has not ended, by state."},

    // What the planning passes find.
    {"gpusharing_convergence_seconds", kHistogram, "",
     "Time from the first change of the inputs to the moment when nothing was left to do.", kConvergenceBuckets},
    {"gpusharing_plan_seconds", kHistogram, "", "Time that one planning pass took, without its writes.",
     kRequestBuckets},
    {"gpusharing_kai_reservations", kGauge, "state",
     "KAI reservation pods by state: Sound, or the reason of their finding."},
    {"gpusharing_kai_mismatched_nodes", kGauge, "",
     "Nodes where reservations and their consumers do not agree; findings and Events name them."},
    {"gpusharing_reservation_gc_total", kCounter, "decision",
     "Stale KAI reservations that were due for deletion, by result: deleted, kept (by the final check), failed."},
    {"gpusharing_findings", kGauge, "severity,reason", "Findings of the last planning pass."},

    // The operator's own reads and writes.
    {"gpusharing_writes_total", kCounter, "verb,kind,result",
     "Write requests by verb, kind and result (ok, or the error's reason)."},
    {"gpusharing_admission_reviews_total", kCounter, "kind,result",
     "AdmissionReviews that the webhook answered, by kind and result (allowed, warned, refused, too_large, busy, "
     "unreadable)."},
    {"gpusharing_writes_in_flight", kGauge, "", "Write requests that were sent and are not answered yet."},
    {"gpusharing_writes_deferred_total", kCounter, "cause",
     "Planned writes that were deferred, by cause (backoff, earlier-failure, last-look, lease, no-place, record, "
     "stale-view, status-rate, under-way)."},
    {"gpusharing_requests_limit", kGauge, "lane",
     "Requests that the operator allows itself to have open at once, by lane (reads, writes, records, statuses, "
     "events); falls while the API server is slow or refuses."},
    {"gpusharing_requests_waiting", kGauge, "lane",
     "Requests that wait for their turn, by lane (reads, writes, records, statuses, events)."},
    {"gpusharing_throttled_total", kCounter, "", "Answers 429 from the API server."},
    {"gpusharing_events_total", kCounter, "result", "Events by result (sent, merged, dropped, failed)."},
    {"gpusharing_certificate_expiration_timestamp_seconds", kGauge, "server",
     "When the certificate of a TLS server (metrics, webhook) expires, in seconds since the Unix epoch; absent without "
     "TLS."},
    {"gpusharing_watches", kGauge, "resource", "Open watches by resource."},
    {"gpusharing_watch_current", kGauge, "resource",
     "1 while the view of this resource is current: complete, and its watch has delivered an event or a bookmark "
     "within 150 seconds."},
    {"gpusharing_watch_stale_seconds", kGauge, "resource",
     "Seconds since the last event or bookmark of a watch that does not deliver, by resource; 0 while it does."},
    {"gpusharing_watch_failures_total", kCounter, "resource,reason",
     "Failed lists and watches by resource and reason; too_large: an object was skipped."},
    {"gpusharing_watch_lag_seconds", kGauge, "",
     "Seconds for which the oldest write of the operator has not appeared in the watched view; 0 when none is "
     "waiting."},
    {"gpusharing_store_objects", kGauge, "resource", "Objects kept in memory by resource."},
    {"gpusharing_store_bytes", kGauge, "resource", "Bytes of the objects kept in memory by resource, estimated."},
    {"gpusharing_interned_bytes", kGauge, "", "Bytes of label and annotation texts shared between objects."},

    // As the Prometheus client libraries name them.
    {"process_resident_memory_bytes", kGauge, "", "Resident memory size in bytes."},
    {"process_cpu_seconds_total", kCounter, "", "Total user and system CPU time spent in seconds."},
    {"process_start_time_seconds", kGauge, "", "Start time of the process since unix epoch in seconds."},
    {"process_open_fds", kGauge, "", "Number of open file descriptors."},
};

}  // namespace

std::span<const Metrics::Family> metrics_catalog() {
  return kCatalog;
}

}  // namespace gso
